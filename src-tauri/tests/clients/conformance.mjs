// The official conformance suite over HTTP: conformance.mjs URL TOKEN
// Its scenarios for what Tabwarden offers, run by its own program on the Node.js that it needs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { step } from "./steps.mjs";

const [url, token] = process.argv.slice(2);
const { port } = new URL(url);
const installed = (name) => path.join(import.meta.dirname, "node_modules", name);
const node = installed("node/bin/node");
const suite = installed("@modelcontextprotocol/conformance/dist/index.js");

// Of each version the scenarios, and of each scenario the checks that must fail: they ask for prompts and resources,
// which are not offered, or for tools made for this suite.
const SCENARIOS = {
  "2025-11-25": {
    "server-initialize": [],
    "server-session-lifecycle": [],
    ping: [],
    "tools-list": [],
    "server-sse-multiple-streams": [],
    "dns-rebinding-protection": [],
  },
  "2026-07-28": {
    "server-stateless": [
      "sep-2575-http-server-no-independent-requests-on-stream",
      "sep-2575-missing-capability-http-400",
      "sep-2575-server-no-log-without-loglevel",
      "sep-2575-server-rejects-undeclared-capability",
    ],
    "tools-list": [],
    caching: [
      "sep-2549-prompts-list-caching-hints",
      "sep-2549-resources-list-caching-hints",
      "sep-2549-resources-templates-list-caching-hints",
    ],
    "http-header-validation": [],
    "server-sse-multiple-streams": [],
    "dns-rebinding-protection": [],
  },
};

// The suite cannot send a token. A proxy adds it, and passes on all else as it came.
const proxy = http.createServer((request, response) => {
  const mine = `:${proxy.address().port}`;
  const headers = request.rawHeaders.map((text, i) => (i % 2 ? text.replace(mine, `:${port}`) : text));
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

/** Runs a scenario, and returns its checks. */
async function run(scenario, version) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tabwarden-conformance-"));
  try {
    const words = ["server", "--url", address, "--scenario", scenario, "--spec-version", version, "-o", folder];
    const child = spawn(node, [suite, ...words]);
    let said = "";
    child.stdout.on("data", (data) => (said += data));
    child.stderr.on("data", (data) => (said += data));
    await new Promise((resolve) => child.on("close", resolve));
    const [result] = fs.readdirSync(folder);
    assert.ok(result, said);
    return JSON.parse(fs.readFileSync(path.join(folder, result, "checks.json"), "utf8"));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

for (const [version, scenarios] of Object.entries(SCENARIOS)) {
  for (const [scenario, absent] of Object.entries(scenarios)) {
    await step(`${scenario} of ${version}`, async () => {
      const checks = await run(scenario, version);
      const failed = checks.filter(({ status }) => status === "FAILURE");
      const why = failed.map(({ id, errorMessage }) => `${id}: ${errorMessage}`).join("\n");
      assert.deepEqual(failed.map(({ id }) => id).sort(), absent, why);
      assert.ok(checks.some(({ status }) => status === "SUCCESS"), "the suite checked nothing");
    });
  }
}
proxy.close();
proxy.closeAllConnections();
