// The companion: tells Tabwarden how windows and tabs are, and opens, selects and mutes them.
//
// It reports levels, not edges. Whatever event comes, it looks at everything again and sends what differs from what it
// sent last; so nothing that happens in between can be missed, and a storm of events costs one look after the other.
"use strict";

const companion = (() => {
  /** The longest icon that is passed on, in characters: a page may make its own, of any size. */
  const MAX_ICON = 65536;
  /** How soon a tab that is loading is looked at again, in ms, and the longest that this grows to. */
  const [SOON, LATE] = [50, 1000];

  /** What was sent last, by tab id. */
  let sent = new Map();
  /** Tabs that the browser said are gone; a query made in that moment may still hold them. */
  const gone = new Set();
  /** Tabs that the browser put in another's place, not reported yet: pairs of the old id and the new one. */
  let replaced = [];
  let sequence = 0;
  /** The look that is under way, and the one that follows it, which whoever asks meanwhile shares. */
  let looking = Promise.resolve();
  let next = null;
  let timer = null;
  let wait = SOON;

  const describe = (tab) => ({
    id: tab.id,
    // A page can name itself with half a character, which is no text to anybody else.
    title: (tab.title ?? "").toWellFormed(),
    url: (tab.url || tab.pendingUrl || "").toWellFormed(),
    favicon: icon(tab.favIconUrl),
    active: tab.active,
    loading: tab.status === "loading",
    audible: tab.audible ?? false,
    muted: tab.mutedInfo?.muted ?? false,
    discarded: tab.discarded ?? false,
  });

  const icon = (url) => (url?.length <= MAX_ICON && /^(https?|data):/.test(url) ? url.toWellFormed() : null);

  // Not an agent's business, and not a page: extensions' own pages and developer tools.
  const listed = (tab) => !/^(chrome-extension|devtools):/.test(tab.url || tab.pendingUrl || "");

  async function look() {
    if (!globalThis.tabwardenReport) return;
    const windows = await chrome.windows.getAll({ populate: true, windowTypes: ["normal", "popup"] });
    windows.sort((a, b) => a.id - b.id);
    const now = new Map();
    const changed = [];
    const order = [];
    let loading = false;
    for (const window of windows) {
      const ids = [];
      for (const tab of window.tabs ?? []) {
        if (gone.has(tab.id) || !listed(tab)) continue;
        const described = describe(tab);
        const text = JSON.stringify(described);
        now.set(tab.id, text);
        ids.push(tab.id);
        loading ||= described.loading;
        if (sent.get(tab.id) !== text) changed.push(described);
      }
      if (ids.length > 0) {
        order.push({ id: window.id, popup: window.type === "popup", focused: window.focused, tabs: ids });
      }
    }
    sent = now;
    globalThis.tabwardenReport(JSON.stringify({ sequence: sequence++, windows: order, changed, replaced }));
    replaced = [];
    // Chromium does not always tell that a page has loaded: not of one that began before we listened, and not of a
    // frame that came late.
    clearTimeout(timer);
    wait = changed.length > 0 ? SOON : Math.min(wait * 2, LATE);
    timer = loading ? setTimeout(report, wait) : null;
  }

  /** Looks again, and resolves when a look that began after this call was sent. */
  function report() {
    next ??= looking.catch(() => {}).then(() => {
      next = null;
      looking = look();
      looking.catch(() => setTimeout(report, LATE));
      return looking;
    });
    return next;
  }

  const { tabs, windows, webNavigation } = chrome;
  for (const event of [
    tabs.onCreated, tabs.onUpdated, tabs.onMoved, tabs.onActivated, tabs.onAttached, tabs.onDetached,
    windows.onCreated, windows.onRemoved, windows.onFocusChanged,
    // Frames: a tab loads while any of them does, and `tabs.onUpdated` tells of the outermost alone.
    webNavigation.onBeforeNavigate, webNavigation.onCompleted, webNavigation.onErrorOccurred,
  ]) {
    event.addListener(() => void report());
  }
  tabs.onRemoved.addListener((id) => { gone.add(id); void report(); });
  tabs.onReplaced.addListener((added, removed) => {
    gone.add(removed);
    replaced.push([removed, added]);
    void report();
  });

  /** Begins anew: the next report holds everything. */
  async function begin() {
    sent = new Map();
    sequence = 0;
    await report();
  }

  // Begins by itself as soon as Tabwarden listens, whichever of the two comes first. Tabwarden asks nothing before: what
  // is evaluated in a worker whose script has not run yet may find no globals, or never be answered.
  (function awaitListener() {
    if (globalThis.tabwardenReport) void begin();
    else setTimeout(awaitListener, 5);
  })();

  return {
    begin,

    /** Opens a tab; makes a window where there is none. Never raises one. */
    async open({ url, active, window }) {
      let tab;
      if (window === null) {
        const last = await chrome.windows.getLastFocused({ windowTypes: ["normal"] }).catch(() => null);
        window = last?.type === "normal" ? last.id : (await chrome.windows.getAll({ windowTypes: ["normal"] }))[0]?.id;
      }
      if (window === undefined) {
        const wish = { focused: false };
        if (url !== null) wish.url = url;
        tab = (await chrome.windows.create(wish)).tabs[0];
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

    /** Whether the person touched mouse or keyboard in the last 15 s, the shortest that Chromium can tell. */
    async inUse() {
      return (await chrome.idle.queryState(15)) === "active";
    },
  };
})();
