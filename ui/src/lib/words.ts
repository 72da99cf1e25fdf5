import type { Chip } from "./activity";
import type { ActivityKind } from "./contract/ActivityKind";
import type { ActivityRow } from "./contract/ActivityRow";
import type { BrowserView } from "./contract/BrowserView";
import type { OutcomeView } from "./contract/OutcomeView";
import type { SessionView } from "./contract/SessionView";
import type { TabView } from "./contract/TabView";

/** A number with its noun. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

const TOOLS: Record<string, string> = {
  browser_tab_list: "listed tabs",
  browser_tab_get: "looked at a tab",
  browser_tab_new: "opened a tab",
  browser_tab_close: "closed a tab",
  browser_set_allowed_domains: "set its domains",
  browser_get_allowed_domains: "asked for its domains",
  browser_session_open: "opened a session",
  browser_session_close: "ended a session",
};

const TOOLS_NOT_DONE: Record<string, string> = {
  browser_tab_list: "list tabs",
  browser_tab_get: "look at a tab",
  browser_tab_new: "open a tab",
  browser_tab_close: "close a tab",
  browser_set_allowed_domains: "set its domains",
  browser_get_allowed_domains: "ask for its domains",
  browser_session_open: "open a session",
  browser_session_close: "end a session",
};

const SLUGS: Record<string, string> = {
  not_initialized: "it has not said hello yet",
  invalid_params: "an argument is wrong",
  invalid_request: "the request is malformed",
  parse_error: "the request is not JSON",
  method_not_found: "there is no such method",
  internal: "something went wrong inside",
  tab_busy: "the tab is busy",
  domain_not_allowed: "the domain is not allowed",
  refused_by_user: "you said no",
  kept_by_user: "you kept it open",
  no_answer: "nobody answered",
  no_user: "nobody could be asked",
  timed_out: "the browser did not answer in time",
  browser_unavailable: "the browser is not running",
  tab_not_found: "there is no such tab",
};

const BECAUSE: Record<string, string> = {
  asked: "it said goodbye",
  connection_lost: "its connection was lost",
  shutdown: "Tabwarden was quitting",
};

/** What a tool does, as something that was done. */
export const didTool = (tool: string): string => TOOLS[tool] ?? `called ${tool}`;
/** An error's slug in words. */
export const slugWords = (slug: string): string => SLUGS[slug] ?? slug.replaceAll("_", " ");

/** A call in words: what was done, is being done or was not done. */
export function callWords(tool: string, outcome: OutcomeView): string {
  switch (outcome.outcome) {
    case "done":
      return didTool(tool);
    case "running":
      return `wants to ${TOOLS_NOT_DONE[tool] ?? `call ${tool}`}`;
    case "refused":
      return `could not ${TOOLS_NOT_DONE[tool] ?? `call ${tool}`}: ${slugWords(outcome.slug)}`;
    case "cancelled":
      return `wanted to ${TOOLS_NOT_DONE[tool] ?? `call ${tool}`} and cancelled it`;
  }
}

/** One line of the activity list in words. */
export function whatHappened(what: ActivityKind): string {
  switch (what.kind) {
    case "call":
      return callWords(what.tool, what.outcome);
    case "redaction":
      return `${count(what.count, "value")} withheld from ${what.place}`;
    case "session_opened":
      return "connected";
    case "session_closed":
      return `left: ${BECAUSE[what.because] ?? what.because.replaceAll("_", " ")}`;
    case "browser":
      return what.browser.state === "failed" ? `Browser failed: ${what.browser.reason}` : `Browser ${browserWord(what.browser)}`;
  }
}

/** The small print of a line: the tool's own name, the error's code, the rule. */
export function smallPrint(what: ActivityKind): string {
  switch (what.kind) {
    case "call":
      return what.outcome.outcome === "refused" ? `${what.outcome.slug} ${what.outcome.code} · ${what.tool}` : what.tool;
    case "redaction":
      return [what.rule, what.tag, what.tool].filter(Boolean).join(" · ");
    case "browser":
      return what.browser.state === "running" ? what.browser.product : "";
    default:
      return "";
  }
}

/** How long a call took, empty where that says nothing. */
export function tookWords(what: ActivityKind): string {
  if (what.kind !== "call") return "";
  if (what.outcome.outcome === "running") return "running";
  const ms = what.outcome.duration_ms;
  return ms < 1 ? "<1 ms" : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** The kind of a line in one word, for its mark. */
export function markOf(what: ActivityKind): { word: string; icon: string; tone: string } {
  switch (what.kind) {
    case "call":
      switch (what.outcome.outcome) {
        case "running":
          return { word: "running", icon: "running", tone: "busy" };
        case "done":
          return { word: "done", icon: "check", tone: "good" };
        case "refused":
          return { word: "refused", icon: "refused", tone: "bad" };
        case "cancelled":
          return { word: "cancelled", icon: "stop", tone: "muted" };
      }
      break;
    case "redaction":
      return { word: "withheld", icon: "shield", tone: "ward" };
    case "session_opened":
      return { word: "joined", icon: "plug", tone: "good" };
    case "session_closed":
      return { word: "left", icon: "unplug", tone: "muted" };
    case "browser":
      return { word: "browser", icon: "globe", tone: what.browser.state === "failed" ? "bad" : "muted" };
  }
}

/** All text of a line, in lower case, for the filter. */
export function searchText(row: ActivityRow): string {
  return [row.session, row.tab, markOf(row.what).word, whatHappened(row.what), smallPrint(row.what)].join(" ").toLowerCase();
}

/** The browser's state in one word. */
export function browserWord(browser: BrowserView): string {
  return { stopped: "stopped", starting: "starting", running: "running", failed: "failed" }[browser.state];
}

/** The colour of the browser's state. */
export function browserTone(browser: BrowserView): string {
  return { stopped: "muted", starting: "busy", running: "good", failed: "bad" }[browser.state];
}

/** A tab's title, or what stands for it. */
export const titleOf = (tab: TabView): string => tab.title || tab.url || "Untitled";

/** How a tab's sound is. */
export function soundWords(tab: TabView): string {
  if (tab.muted === null || tab.audible === null) return "Unknown without the companion";
  if (tab.muted) return tab.audible ? "Muted, would be playing" : "Muted";
  return tab.audible ? "Playing" : "Silent";
}

/** How a tab is, in words. */
export function tabState(tab: TabView, closed: boolean): string {
  if (closed) return "Closed";
  const states = [tab.active ? "Active in its window" : "In the background"];
  if (tab.loading) states.push("loading");
  if (tab.discarded) states.push("put to sleep");
  return states.join(", ");
}

/** Who opened a tab. */
export const openedBy = (tab: TabView): string => tab.opened_by ?? "you";

/** Whether a session is there, in words. */
export const sessionState = (session: SessionView): string => (session.connected ? "Connected" : "Connection lost, may come back");

/** How a session speaks. */
export const eraWords = (session: SessionView): string =>
  session.era === "handshake" ? "Opens with a handshake" : "Says who it is with every request";

/** How long ago something was. */
export function ago(at: number, now: number): string {
  const seconds = Math.max(0, Math.floor((now - at) / 1000));
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return count(Math.floor(seconds / 86_400), "day");
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
/** A time of day to the second. */
export const clock = (at: number): string => CLOCK.format(at);

export const CHIP_WORDS: Record<Chip, string> = { all: "all", calls: "calls", redactions: "redactions", refusals: "refusals" };

/** The keys, for the help sheet. */
export const KEYS: readonly [string, string][] = [
  ["↑ ↓ or j k", "Move in a list"],
  ["Tab", "Go to the next pane"],
  ["Enter", "Show the tab in the browser"],
  ["x", "Close the tab"],
  ["m", "Mute the tab, or let it sound again"],
  ["/", "Filter the activity"],
  ["f", "Follow the activity"],
  ["?", "This sheet"],
  ["Esc", "Close the sheet, leave the filter, clear the selection"],
];

export const WORDS = {
  sessions: "Sessions",
  tabs: "Tabs",
  inspector: "Inspector",
  activity: "Activity",
  help: "Keys",
  notices: "Notices",
  close: "Close",
  start: "Start the browser",
  starting: "The browser is starting…",
  stopped: "The browser is not running. It starts with the first call of an agent, or now.",
  failed: "The browser is not running.",
  lost: "Tabwarden does not answer, so what you see may be old. Trying again every two seconds; if this stays, quit Tabwarden and start it again.",
  noCompanion: "The browser's companion extension does not answer, so sound is unknown and muting may not work. Restarting the browser usually brings it back.",
  noSandbox: "The browser runs without its sandbox. Visit only sites that you trust.",
  noTabs: "No tabs are open.",
  noSelection: "Select a tab or a session to see its facts.",
  noActivity: "Nothing has happened yet. Each call of an agent is listed here.",
  noMatch: "Nothing matches the filter.",
  connectionLost: "connection lost",
  connect: "No agent is connected",
  connectHow: "Add Tabwarden to a client, then start the client.",
  run: "Run this:",
  copy: "Copy",
  copied: "Copied",
  copyFailed: "Copying did not work. Select the text and copy it yourself.",
  filter: "Filter",
  focusTab: "Show in the browser",
  noMute: "Muting needs the browser's companion extension, which does not answer.",
  loading: "Loading…",
} as const;
