import type { ClientSnippet } from "./contract/ClientSnippet";
import type { Snapshot } from "./contract/Snapshot";
import type { Update } from "./contract/Update";

/** What the page needs from the program behind it. A failed act rejects with an `ActError`. */
export interface Backend {
  snapshot(): Promise<Snapshot>;
  /** Calls back with every update from now on; the answer ends that. */
  subscribe(onUpdate: (update: Update) => void): Promise<() => void>;
  focusTab(id: string): Promise<void>;
  closeTab(id: string): Promise<void>;
  muteTab(id: string, muted: boolean): Promise<void>;
  startBrowser(): Promise<void>;
  clientSnippets(): Promise<ClientSnippet[]>;
}

/** The program's own backend inside its window; elsewhere the fake, with the feed that the address names. */
export async function chooseBackend(): Promise<Backend> {
  if ("__TAURI_INTERNALS__" in window) return (await import("./tauri")).tauri;
  return (await import("./fake")).fake(new URLSearchParams(location.search).get("feed") ?? "few");
}
