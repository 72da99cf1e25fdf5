// The official conformance suite over HTTP: conformance.mjs URL TOKEN
// Its scenarios that need no fixtures. They are run by its own program, on the Node.js that it needs.

import { spawn } from "node:child_process";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { step } from "./steps.mjs";

const [url, token] = process.argv.slice(2);
const { port } = new URL(url);
const path = (name) => fileURLToPath(import.meta.resolve(name));
const node = path("node/bin/node");
const suite = path("@modelcontextprotocol/conformance");

// The suite cannot send a token. A proxy adds it, and passes on all else as it came.
const proxy = http.createServer((request, response) => {
  const mine = String(proxy.address().port);
  const headers = request.rawHeaders.map((text, i) => (i % 2 ? text.replace(`:${mine}`, `:${port}`) : text));
  headers.push("Authorization", `Bearer ${token}`);
  const onward = http.request({ host: "127.0.0.1", port, path: request.url, method: request.method, headers });
  onward.on("response", (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    answer.pipe(response);
  });
  onward.on("error", (error) => response.destroy(error));
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${proxy.address().port}/mcp`;

function run(scenario, version) {
  const words = ["server", "--url", address, "--scenario", scenario, "--spec-version", version];
  const child = spawn(node, [suite, ...words]);
  let said = "";
  child.stdout.on("data", (data) => (said += data));
  child.stderr.on("data", (data) => (said += data));
  return new Promise((resolve, reject) => {
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(said))));
  });
}

const SCENARIOS = {
  "2025-11-25": ["server-initialize", "server-session-lifecycle", "ping", "tools-list", "dns-rebinding-protection"],
  "2026-07-28": ["server-stateless", "tools-list", "dns-rebinding-protection", "caching", "http-header-validation"],
};
for (const [version, scenarios] of Object.entries(SCENARIOS)) {
  for (const scenario of scenarios) await step(`${scenario} of ${version}`, () => run(scenario, version));
}
proxy.close();
proxy.closeAllConnections();
