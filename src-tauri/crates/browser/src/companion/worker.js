// The companion: tells Tabwarden how windows and tabs are, and opens, selects and mutes them.
//
// It reports levels, not edges. Whatever event comes, it looks at everything again and sends what differs from what it
// sent last; so nothing that happens in between can be missed, and a storm of events costs one look after the other.
"use strict";

const companion = (() => {
  /** What was sent last, by tab id. */
  let sent = new Map();
  /** Tabs that the browser said are gone; a query made in that moment may still hold them. */
  const gone = new Set();
  let sequence = 0;
  let looking = null;
  let again = false;

  const describe = (tab) => ({
    id: tab.id,
    title: tab.title ?? "",
    url: tab.url || tab.pendingUrl || "",
    favicon: tab.favIconUrl ?? null,
    active: tab.active,
    loading: tab.status === "loading",
    audible: tab.audible ?? false,
    muted: tab.mutedInfo?.muted ?? false,
    discarded: tab.discarded ?? false,
  });

  // Not an agent's business, and not a page: extensions' own pages and developer tools.
  const listed = (tab) => !/^(chrome-extension|devtools):/.test(tab.url || tab.pendingUrl || "");

  async function look() {
    const windows = await chrome.windows.getAll({ populate: true, windowTypes: ["normal", "popup"] });
    windows.sort((a, b) => a.id - b.id);
    const now = new Map();
    const changed = [];
    const order = [];
    for (const window of windows) {
      const ids = [];
      for (const tab of window.tabs ?? []) {
        if (gone.has(tab.id) || !listed(tab)) continue;
        const text = JSON.stringify(describe(tab));
        now.set(tab.id, text);
        ids.push(tab.id);
        if (sent.get(tab.id) !== text) changed.push(JSON.parse(text));
      }
      if (ids.length > 0) {
        order.push({ id: window.id, popup: window.type === "popup", focused: window.focused, tabs: ids });
      }
    }
    sent = now;
    globalThis.tabwardenReport?.(JSON.stringify({ sequence: sequence++, windows: order, changed }));
  }

  /** Looks again, and resolves when a look that began after this call was sent. */
  function report() {
    again = true;
    looking ??= (async () => {
      try {
        while (again) {
          again = false;
          await look();
        }
      } finally {
        looking = null;
      }
    })();
    return looking;
  }

  for (const event of [
    chrome.tabs.onCreated, chrome.tabs.onUpdated, chrome.tabs.onMoved, chrome.tabs.onActivated,
    chrome.tabs.onAttached, chrome.tabs.onDetached, chrome.windows.onCreated, chrome.windows.onRemoved,
    chrome.windows.onFocusChanged,
  ]) {
    event.addListener(() => void report());
  }
  chrome.tabs.onRemoved.addListener((id) => { gone.add(id); void report(); });
  chrome.tabs.onReplaced.addListener((_added, removed) => { gone.add(removed); void report(); });

  return {
    /** Begins anew: the next report holds everything. */
    async begin() {
      sent = new Map();
      sequence = 0;
      await report();
    },

    /** Opens a tab; makes a window where there is none. */
    async open({ url, active, window }) {
      let tab;
      if (window === null) {
        const last = await chrome.windows.getLastFocused({ windowTypes: ["normal"] }).catch(() => null);
        window = last?.type === "normal" ? last.id : (await chrome.windows.getAll({ windowTypes: ["normal"] }))[0]?.id;
      }
      if (window === undefined) {
        const made = await chrome.windows.create(url === null ? {} : { url });
        tab = made.tabs[0];
      } else {
        const wish = { active, windowId: window };
        if (url !== null) wish.url = url;
        tab = await chrome.tabs.create(wish);
      }
      await report();
      return tab.id;
    },

    /** The DevTools target of a tab; null where it has none, as a discarded one. */
    async target(id) {
      const target = (await chrome.debugger.getTargets()).find((t) => t.tabId === id && t.type === "page");
      return target?.id ?? null;
    },

    /** Closes a tab that has no target; a page that is not in memory cannot object. */
    async remove(id) {
      await chrome.tabs.remove(id);
      await report();
    },

    /** Selects a tab and raises its window. */
    async focus(id) {
      const tab = await chrome.tabs.update(id, { active: true });
      await chrome.windows.update(tab.windowId, { focused: true });
      await report();
    },

    async mute(id, muted) {
      await chrome.tabs.update(id, { muted });
      await report();
    },
  };
})();
