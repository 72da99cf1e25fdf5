import { Channel, invoke } from "@tauri-apps/api/core";
import type { Backend } from "./backend";
import type { Snapshot } from "./contract/Snapshot";
import type { Update } from "./contract/Update";

/** The program's commands. Snapshots and updates cross as JSON text, which is much faster to hand over. */
export const tauri: Backend = {
  async snapshot() {
    return JSON.parse(await invoke<string>("snapshot")) as Snapshot;
  },
  async subscribe(onUpdate) {
    const updates = new Channel<string>();
    updates.onmessage = (text) => onUpdate(JSON.parse(text) as Update);
    await invoke("subscribe", { updates });
    return () => {
      updates.onmessage = () => undefined;
    };
  },
  focusTab: (id) => invoke("focus_tab", { id }),
  closeTab: (id) => invoke("close_tab", { id }),
  muteTab: (id, muted) => invoke("mute_tab", { id, muted }),
  startBrowser: () => invoke("start_browser"),
  clientSnippets: () => invoke("client_snippets"),
};
