// The TypeScript SDK, through the bridge: sdk.mjs TABWARDEN SOCKET SITE_PORT

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { step, until } from "./steps.mjs";

const [tabwarden, socket, port] = process.argv.slice(2);
const page = `http://app.localhost:${port}/sdk`;
// Put together here, so that nothing in this file looks like a secret.
const canary = ["canary", "x7q".repeat(6)].join("");

const client = new Client({ name: "sdk", version: "1.0.0" });
const transport = new StdioClientTransport({ command: tabwarden, args: ["mcp", "--no-start", "--socket", socket] });

/** Calls a tool; its text and its structured content must be the same. */
async function call(name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, false);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

async function refused(name, args) {
  const error = await client.callTool({ name, arguments: args }).then(
    (result) => assert.fail(`${name} was not refused: ${JSON.stringify(result)}`),
    (error) => error,
  );
  assert.equal(typeof error.data.hint, "string");
  return error;
}

await step("connects", async () => {
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, "tabwarden");
});

await step("lists the tools", async () => {
  const list = await client.listTools();
  const names = list.tools.map((tool) => tool.name);
  for (const name of ["list", "get", "new", "close"]) assert.ok(names.includes(`browser_tab_${name}`), names);
  for (const name of ["set", "get"]) assert.ok(names.includes(`browser_${name}_allowed_domains`), names);
  assert.ok(Buffer.byteLength(JSON.stringify(list)) < 8000, "the tools cost a model too much");
  for (const tool of list.tools) assert.ok(tool.outputSchema && tool.annotations, tool.name);
});

await step("is refused before it names domains", async () => {
  const error = await refused("browser_tab_new", { url: page });
  assert.equal(error.code, -32010);
});

await step("names its domains", async () => {
  const { domains } = await call("browser_set_allowed_domains", { domains: ["app.localhost"] });
  assert.deepEqual(domains, ["app.localhost"]);
});

let tab;
await step("opens a tab", async () => {
  ({ tab } = await call("browser_tab_new", { url: page }));
  assert.equal(tab.url, page);
});

await step("sees it in the list", async () => {
  const { tabs } = await call("browser_tab_list");
  assert.ok(tabs.some(({ id }) => id === tab.id));
});

await step("gets it when it has loaded", async () => {
  const got = await until("the page", async () => {
    const { tab: now } = await call("browser_tab_get", { tab_id: tab.id });
    return now.loading === false && now.title === "Page of /sdk" ? now : undefined;
  });
  assert.deepEqual([got.url, got.audible, got.muted], [page, false, false]);
});

await step("sees no token of an address", async () => {
  const { tab: opened } = await call("browser_tab_new", { url: `${page}?access_token=${canary}&page=2` });
  const { tabs } = await call("browser_tab_list");
  const urls = tabs.filter(({ id }) => id === opened.id).map(({ url }) => url);
  assert.deepEqual([opened.url, ...urls], Array(2).fill(`${page}?access_token=[REDACTED]&page=2`));
  assert.ok(!JSON.stringify(tabs).includes(canary));
  await call("browser_tab_close", { tab_id: opened.id });
});

await step("is refused another domain", async () => {
  const error = await refused("browser_tab_new", { url: `http://refused.localhost:${port}/` });
  assert.deepEqual([error.code, error.data.code, error.data.host], [-32010, "domain_not_allowed", "refused.localhost"]);
});

await step("closes the tab", async () => {
  assert.deepEqual(await call("browser_tab_close", { tab_id: tab.id }), { closed: true, tab_id: tab.id });
  const { tabs } = await call("browser_tab_list");
  assert.ok(!tabs.some(({ id }) => id === tab.id));
});

await step("finds it gone", async () => {
  const error = await refused("browser_tab_get", { tab_id: tab.id });
  assert.deepEqual([error.code, error.data.code], [-32020, "tab_not_found"]);
});

await client.close();
