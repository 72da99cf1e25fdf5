// The companion: tells Tabwarden how windows and tabs are, and opens, selects and mutes them.
//
// It reports levels, not edges. Whatever event comes, it looks at everything again and sends what differs from what it
// sent last; so nothing that happens in between can be missed, and a storm of events costs one look after the other.
// A look can wait some 10 ms behind what the browser has to do around a tab that opens or closes. So what is certain
// without one, that a tab is there, gone or selected, is sent at once, and looked at after.
"use strict";

const companion = (() => {
  /** The longest icon that is passed on, in characters: a page may make its own, of any size. */
  const MAX_ICON = 65536;
  /** How soon a tab that is loading is looked at again, in ms, and the longest that this grows to. */
  const [SOON, LATE] = [50, 1000];

  /** What was sent last: the tabs, by id, and the windows with their order; none before the first whole report. */
  let sent = new Map();
  let placed = null;
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

  /** Sends these windows, and those of these tabs that differ from what was sent last. */
  function send(windows, tabs) {
    const now = new Map();
    const changed = [];
    for (const tab of tabs) {
      const text = JSON.stringify(tab);
      now.set(tab.id, text);
      if (sent.get(tab.id) !== text) changed.push(tab);
    }
    [sent, placed] = [now, windows];
    globalThis.tabwardenReport(JSON.stringify({ sequence: sequence++, windows, changed, replaced }));
    replaced = [];
    return changed.length > 0;
  }

  async function look() {
    if (!globalThis.tabwardenReport) return;
    const windows = await chrome.windows.getAll({ populate: true, windowTypes: ["normal", "popup"] });
    windows.sort((a, b) => a.id - b.id);
    const [order, described] = [[], []];
    for (const window of windows) {
      const tabs = (window.tabs ?? []).filter((tab) => !gone.has(tab.id) && listed(tab)).map(describe);
      if (tabs.length === 0) continue;
      const { id, type, focused } = window;
      order.push({ id, popup: type === "popup", focused, tabs: tabs.map((tab) => tab.id) });
      described.push(...tabs);
    }
    const news = send(order, described);
    // Chromium does not always tell that a page has loaded: not of one that began before we listened, and not of a
    // frame that came late.
    clearTimeout(timer);
    wait = news ? SOON : Math.min(wait * 2, LATE);
    timer = described.some((tab) => tab.loading) ? setTimeout(report, wait) : null;
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

  /** Sends what was sent last once more, as far as it is not gone, with another tab added or selected. */
  function sendAgain({ added, selected }) {
    const order = placed.map((window) => ({ ...window, tabs: window.tabs.filter((tab) => !gone.has(tab)) }));
    const described = [...sent.values()].map((text) => JSON.parse(text)).filter((tab) => !gone.has(tab.id));
    if (added) {
      described.push(describe(added));
      order.find((window) => window.id === added.windowId).tabs.splice(added.index, 0, added.id);
    }
    const strip = order.find((window) => window.tabs.includes(selected))?.tabs ?? [];
    for (const tab of described) if (strip.includes(tab.id)) tab.active = tab.id === selected;
    send(order.filter((window) => window.tabs.length > 0), described);
  }

  /** Sends that a tab is there; says whether it could. */
  function sendOpened(tab) {
    if (sent.has(tab.id)) return true;
    if (!placed?.some((window) => window.id === tab.windowId) || !listed(tab) || gone.has(tab.id)) return false;
    sendAgain({ added: tab, selected: tab.active ? tab.id : null });
    return true;
  }

  const { tabs, windows, webNavigation } = chrome;
  for (const event of [
    tabs.onCreated, tabs.onUpdated, tabs.onMoved, tabs.onAttached, tabs.onDetached, windows.onCreated,
    windows.onRemoved, windows.onFocusChanged,
    // Frames: a tab loads while any of them does, and `tabs.onUpdated` tells of the outermost alone.
    webNavigation.onBeforeNavigate, webNavigation.onCompleted, webNavigation.onErrorOccurred,
  ]) {
    event.addListener(() => void report());
  }
  tabs.onRemoved.addListener((id) => {
    gone.add(id);
    const strip = placed?.find((window) => window.tabs.includes(id))?.tabs;
    // Of a selected tab's heir the browser tells next.
    if (strip?.length === 1 || (strip && !JSON.parse(sent.get(id)).active)) sendAgain({});
    void report();
  });
  tabs.onActivated.addListener(({ tabId }) => {
    if (placed && sent.has(tabId)) sendAgain({ selected: tabId });
    void report();
  });
  tabs.onReplaced.addListener((added, removed) => {
    gone.add(removed);
    replaced.push([removed, added]);
    // Only a look knows the new one.
    placed = null;
    void report();
  });

  /** Begins anew: the next report holds everything. */
  async function begin() {
    [sent, placed, sequence] = [new Map(), null, 0];
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
      if (!sendOpened(tab)) await report();
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
