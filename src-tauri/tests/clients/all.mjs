// Runs the stock clients against one running Tabwarden: all.mjs TABWARDEN PYTHON

import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

const [tabwarden, python] = process.argv.slice(2).map((word) => path.resolve(word));
const here = (name) => path.join(import.meta.dirname, name);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tabwarden-clients-"));
const socket = path.join(folder, "run/mcp.sock");
const places = ["--socket", socket, "--data-dir", path.join(folder, "data")];
const tokenFile = path.join(folder, "token");

// The pages that the clients open. `*.localhost` is this machine to Chromium, so one server is many hosts.
const hosts = new Set();
const site = http.createServer((request, response) => {
  hosts.add(request.headers.host.split(":")[0]);
  response.setHeader("content-type", "text/html");
  response.end(`<!doctype html><title>Page of ${request.url.split("?")[0]}</title>`);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
const port = String(site.address().port);

/** Starts a program; `closed` is its exit status, or why it could not be started. */
function start(program, ...words) {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
  const closed = new Promise((resolve) => child.on("close", resolve).on("error", resolve));
  return { child, closed, lines: createInterface({ input: child.stdout }) };
}

let [passed, failed] = [0, 0];

function count(line) {
  if (line.includes(": ok ")) passed += 1;
  if (line.includes(": FAILED ")) failed += 1;
  console.log(line);
}

/** Runs a client, and counts its steps. One that ends without any has failed. */
async function run(name, program, ...words) {
  const { closed, lines } = start(program, ...words);
  const before = [passed, failed];
  for await (const line of lines) count(`${name}: ${line}`);
  const code = await closed;
  if (passed === before[0] || (code !== 0 && failed === before[1])) count(`${name}: FAILED (${code})`);
}

const serve = ["serve", "--headless", "--http", "0", "--token-file", tokenFile, "--log", "warn"];
const server = start(tabwarden, ...serve, ...places);
try {
  const { value: line } = await server.lines[Symbol.asyncIterator]().next();
  if (line !== `ready ${socket}`) throw new Error(`tabwarden serve did not start: ${line ?? (await server.closed)}`);

  const bridge = [tabwarden, socket, port];
  await run("TypeScript SDK", process.execPath, here("sdk.mjs"), ...bridge);
  await run("Inspector", process.execPath, here("inspector.mjs"), ...bridge);
  for (const mode of ["session", "legacy", "auto", "2026-07-28"]) {
    await run(`Python (${mode})`, python, here("python.py"), mode, ...bridge);
  }
  const status = JSON.parse(execFileSync(tabwarden, ["status", "--json", ...places]));
  const token = fs.readFileSync(tokenFile, "utf8").trim();
  await run("Conformance", process.execPath, here("conformance.mjs"), status.http, token);

  count(`Site: ${hosts.has("app.localhost") ? "ok" : "FAILED"} the allowed host was asked`);
  count(`Site: ${hosts.has("refused.localhost") ? "FAILED" : "ok"} the refused host was sent nothing`);
} catch (error) {
  count(`Clients: FAILED ${error.stack}`);
} finally {
  server.child.kill("SIGTERM");
  await server.closed;
  site.close();
  site.closeAllConnections();
  fs.rmSync(folder, { recursive: true, force: true });
}
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
