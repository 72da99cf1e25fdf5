import type { WindowView } from "./contract/WindowView";

/** A window as it is drawn: its tabs in strip order, with those that closed a moment ago at their old places. */
export interface Strip {
  window: WindowView;
  ids: string[];
}

/**
 * The windows as they are now, with the tabs in `lingering` kept behind the neighbour that they had before.
 * A window that is gone stays for as long as one of its tabs lingers.
 */
export function mergeStrips(before: Strip[], now: WindowView[], lingering: ReadonlySet<string>): Strip[] {
  const open = new Set(now.flatMap((w) => w.tabs));
  const stays = (id: string) => lingering.has(id) && !open.has(id);
  const merged = now.map((window) => {
    const ids = [...window.tabs];
    const own = new Set(window.tabs);
    const old = before.find((strip) => strip.window.id === window.id)?.ids ?? [];
    let previous: string | undefined;
    for (const id of old) {
      if (stays(id)) {
        ids.splice(previous === undefined ? 0 : ids.indexOf(previous) + 1, 0, id);
        previous = id;
      } else if (own.has(id)) {
        previous = id;
      }
    }
    return { window, ids };
  });
  before.forEach((strip, at) => {
    if (now.some((w) => w.id === strip.window.id)) return;
    const ids = strip.ids.filter(stays);
    if (ids.length > 0) merged.splice(at, 0, { window: strip.window, ids });
  });
  return merged;
}
