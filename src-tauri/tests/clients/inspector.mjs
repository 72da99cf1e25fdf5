// The Inspector's command line, through the bridge: inspector.mjs TABWARDEN SOCKET SITE_PORT
// Each of its runs is one call on a connection of its own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { step } from "./steps.mjs";

const [tabwarden, socket, port] = process.argv.slice(2);
const program = fileURLToPath(import.meta.resolve("@modelcontextprotocol/inspector/cli/build/cli.js"));

/** Runs it, and returns what it printed and whether it was content. */
function inspect(...words) {
  const bridge = [tabwarden, "mcp", "--no-start"];
  const env = { ...process.env, TABWARDEN_SOCKET: socket };
  const child = spawn(process.execPath, [program, "--cli", ...bridge, ...words], { env });
  let [printed, complained] = ["", ""];
  child.stdout.on("data", (data) => (printed += data));
  child.stderr.on("data", (data) => (complained += data));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, printed, complained })));
}

async function call(tool, ...args) {
  const words = args.flatMap((arg) => ["--tool-arg", arg]);
  return inspect("--method", "tools/call", "--tool-name", tool, ...words);
}

async function answered(tool, ...args) {
  const { code, printed, complained } = await call(tool, ...args);
  assert.equal(code, 0, complained);
  return JSON.parse(printed).structuredContent;
}

async function refused(error, tool, ...args) {
  const { code, printed, complained } = await call(tool, ...args);
  assert.notEqual(code, 0, printed);
  assert.ok(complained.includes(`${error}`), complained);
}

await step("lists the tools", async () => {
  const { code, printed, complained } = await inspect("--method", "tools/list");
  assert.equal(code, 0, complained);
  assert.ok(JSON.parse(printed).tools.some(({ name }) => name === "browser_tab_list"));
});

await step("names domains", async () => {
  const { domains } = await answered("browser_set_allowed_domains", 'domains=["App.localhost"]');
  assert.deepEqual(domains, ["app.localhost"]);
});

await step("is refused a domain that its session has not named", () =>
  refused(-32010, "browser_tab_new", `url=http://refused.localhost:${port}/`));

let tab;
await step("opens a tab", async () => {
  ({ tab } = await answered("browser_tab_new", "active=false"));
});

await step("sees it in the list", async () => {
  const { tabs } = await answered("browser_tab_list");
  assert.ok(tabs.some(({ id }) => id === tab.id));
});

await step("gets it", async () => {
  assert.equal((await answered("browser_tab_get", `tab_id=${tab.id}`)).tab.id, tab.id);
});

await step("closes it", async () => {
  assert.deepEqual(await answered("browser_tab_close", `tab_id=${tab.id}`), { closed: true, tab_id: tab.id });
});

await step("finds it gone", () => refused(-32020, "browser_tab_get", `tab_id=${tab.id}`));
