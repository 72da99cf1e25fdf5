import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));
const CONFIG = fileURLToPath(new URL("../../tauri.conf.json", import.meta.url));
const TYPES: Record<string, string> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };

/** Serves the built page on a free port with the policy that the program's window has. */
export async function servePage(): Promise<{ url: string; close: () => void }> {
  const config = JSON.parse(await readFile(CONFIG, "utf8")) as { app: { security: { csp: Record<string, string> } } };
  const policy = Object.entries(config.app.security.csp)
    .map(([name, sources]) => `${name} ${sources}`)
    .join("; ");
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://page").pathname;
    const file = join(DIST, normalize(path === "/" ? "/index.html" : path));
    readFile(file).then(
      (body) => response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream", "content-security-policy": policy }).end(body),
      // Chromium asks for an icon by itself.
      () => response.writeHead(path === "/favicon.ico" ? 204 : 404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}
