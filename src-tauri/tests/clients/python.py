"""The Python client, through the bridge: python.py MODE TABWARDEN SOCKET SITE_PORT

MODE is `session` (the plain ClientSession), or a mode of the high-level Client: `legacy`, `auto` or a version.
"""

import asyncio
import json
import sys
import traceback
from contextlib import asynccontextmanager

import anyio
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

mode, tabwarden, socket, port = sys.argv[1:]
page = f"http://app.localhost:{port}/python"
# Put together here, so that nothing in this file looks like a secret.
canary = "canary" + "x7q" * 6


@asynccontextmanager
async def connected():
    """The client, and the protocol version that it came to."""
    bridge = StdioServerParameters(command=tabwarden, args=["mcp", "--no-start", "--socket", socket])
    if mode == "session":
        async with stdio_client(bridge) as streams, ClientSession(*streams) as session:
            initialized = await session.initialize()
            yield session, initialized.protocol_version
    else:
        async with Client(bridge, mode=mode) as client:
            yield client, client.protocol_version


async def call(client, name, **arguments):
    """Calls a tool; its text and its structured content must be the same."""
    result = await client.call_tool(name, arguments)
    assert result.is_error is False, result
    assert json.loads(result.content[0].text) == result.structured_content, result
    return result.structured_content


async def refused(client, name, **arguments):
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        assert error.data["hint"], error.data
        return error
    raise AssertionError(f"{name} was not refused: {result}")


async def loaded(client, tab_id):
    with anyio.fail_after(20):
        while True:
            tab = (await call(client, "browser_tab_get", tab_id=tab_id))["tab"]
            if not tab["loading"] and tab["title"] == "Page of /python":
                return tab
            await anyio.sleep(0.02)


async def life():
    """Yields the name of each step when it has passed."""
    async with connected() as (client, version):
        assert (version == "2026-07-28") == (mode in ("auto", "2026-07-28")), version
        yield f"connects with {version}"

        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"browser_tab_list", "browser_tab_get", "browser_tab_new", "browser_tab_close"} <= set(names), names
        yield "lists the tools"

        error = await refused(client, "browser_tab_new", url=page)
        assert error.code == -32010, error
        yield "is refused before it names domains"

        assert (await call(client, "browser_set_allowed_domains", domains=["app.localhost"]))["domains"] == ["app.localhost"]
        yield "names its domains"

        tab = (await call(client, "browser_tab_new", url=page))["tab"]
        assert tab["url"] == page, tab
        yield "opens a tab"

        tabs = (await call(client, "browser_tab_list"))["tabs"]
        assert tab["id"] in [each["id"] for each in tabs], tabs
        yield "sees it in the list"

        got = await loaded(client, tab["id"])
        assert (got["url"], got["audible"], got["muted"]) == (page, False, False), got
        yield "gets it when it has loaded"

        opened = (await call(client, "browser_tab_new", url=f"{page}#access_token={canary}&page=2"))["tab"]
        tabs = (await call(client, "browser_tab_list"))["tabs"]
        urls = [each["url"] for each in tabs if each["id"] == opened["id"]]
        assert [opened["url"], *urls] == [f"{page}#access_token=[REDACTED]&page=2"] * 2, (opened, urls)
        assert canary not in json.dumps(tabs)
        await call(client, "browser_tab_close", tab_id=opened["id"])
        yield "sees no token of an address"

        error = await refused(client, "browser_tab_new", url=f"http://refused.localhost:{port}/")
        assert (error.code, error.data["host"]) == (-32010, "refused.localhost"), error
        yield "is refused another domain"

        closed = await call(client, "browser_tab_close", tab_id=tab["id"])
        assert closed == {"closed": True, "tab_id": tab["id"]}, closed
        yield "closes the tab"

        error = await refused(client, "browser_tab_get", tab_id=tab["id"])
        assert (error.code, error.data["code"]) == (-32020, "tab_not_found"), error
        yield "finds it gone"


async def main():
    try:
        async for passed in life():
            print(f"ok {passed}", flush=True)
    except BaseException:
        print(f"FAILED the next step: {traceback.format_exc()}", flush=True)
        sys.exit(1)


asyncio.run(main())
