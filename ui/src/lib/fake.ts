import type { Backend } from "./backend";
import type { ActError } from "./contract/ActError";
import type { ActivityKind } from "./contract/ActivityKind";
import type { ActivityRow } from "./contract/ActivityRow";
import type { BrowserView } from "./contract/BrowserView";
import type { ClientSnippet } from "./contract/ClientSnippet";
import type { SessionView } from "./contract/SessionView";
import type { Snapshot } from "./contract/Snapshot";
import type { TabView } from "./contract/TabView";
import type { Update } from "./contract/Update";
import type { WindowView } from "./contract/WindowView";

declare global {
  interface Window {
    /** The acts that reached the fake, as `mute tab_3 true`. */
    fakeActs?: string[];
  }
}

const RUNNING: BrowserView = { state: "running", product: "Chromium 156.0.8078.114", pid: 4711, companion: true, no_sandbox: false };

const SNIPPETS: ClientSnippet[] = [
  { id: "claude-code", name: "Claude Code", text: "claude mcp add --scope user tabwarden -- tabwarden mcp", file: null },
  ...(
    [
      ["cursor", "Cursor", "~/.cursor/mcp.json"],
      ["vscode", "VS Code", "~/.config/Code/User/mcp.json"],
      ["codex", "Codex CLI", "~/.codex/config.toml"],
      ["gemini", "Gemini CLI", "~/.gemini/settings.json"],
    ] as const
  ).map(([id, name, file]) => ({
    id,
    name,
    file,
    text: file.endsWith("toml")
      ? '[mcp_servers.tabwarden]\ncommand = "tabwarden"\nargs = ["mcp"]\n'
      : `${JSON.stringify({ [id === "vscode" ? "servers" : "mcpServers"]: { tabwarden: { command: "tabwarden", args: ["mcp"] } } }, null, 2)}\n`,
  })),
];

const PAGES = [
  ["Example Domain", "https://example.com/"],
  ["Pull requests · tabwarden/garden", "https://github.com/tabwarden/garden/pulls"],
  ["<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>", "https://evil.example/"],
  ["Quarterly report, with a title that goes on for much longer than any row of the list could ever show", "https://docs.example.org/reports/q3"],
  ["Inbox (12)", "https://mail.example.org/inbox"],
  ["Lofi beats to test to", "https://music.example/watch?v=1"],
  ["localhost:5173", "http://localhost:5173/"],
] as const;

const FAVICON = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#7a5"/></svg>')}`;

const AGENTS = [
  ["Claude Code", "claude-code", "2.1.7", "/usr/bin/node"],
  ["codex", "codex-mcp-client", "0.88.0", "/usr/local/bin/codex"],
  ["Gemini CLI", "gemini-cli", "0.31.2", "/usr/bin/node"],
] as const;

function session(n: number, now: number): SessionView {
  const [label, client, version, executable] = AGENTS[n % AGENTS.length] ?? AGENTS[0];
  return {
    id: `ses_${n}`,
    label,
    client,
    client_version: version,
    era: n === 2 ? "stateless" : "handshake",
    via: n === 2 ? "http" : "socket",
    pid: n === 2 ? null : 5200 + n,
    executable: n === 2 ? null : executable,
    since_ms: now - (n + 1) * 312_000,
    domains: n === 1 ? ["localhost", "*.example.org"] : ["*"],
    connected: n !== 2,
    calls: 41 - n * 13,
    refused: n,
    tabs: [3, 2, 1][n] ?? 0,
  };
}

function tab(n: number, now: number, companion: boolean): TabView {
  const [title, url] = PAGES[n % PAGES.length] ?? PAGES[0];
  const by = n % 3 === 2 ? null : (AGENTS[n % 3]?.[0] ?? null);
  return {
    id: `tab_${n}`,
    title: n < PAGES.length ? title : `${title} ${n}`,
    url,
    domain: new URL(url).hostname,
    favicon: n % 2 ? FAVICON : null,
    active: n % 100 === 0,
    loading: n === 3,
    audible: companion ? n === 5 : null,
    muted: companion ? n === 4 : null,
    discarded: n === 6,
    opened_by: by,
    last: by ? { tool: "browser_tab_get", session: by, at_ms: now - n * 17_000 } : null,
    withheld: n === 1 ? 3 : 0,
  };
}

function happening(n: number): ActivityKind {
  switch (n % 9) {
    case 1:
      return { kind: "call", tool: "browser_tab_list", outcome: { outcome: "done", duration_ms: 3.2 } };
    case 2:
      return { kind: "redaction", tool: "browser_tab_list", surface: "url", place: "tabs[1].url ?access_token", rule: "url_parameter", count: 1, tag: "#a3f1" };
    case 4:
      return { kind: "call", tool: "browser_tab_new", outcome: { outcome: "refused", code: -32010, slug: "domain_not_allowed", duration_ms: 0.4 } };
    case 6:
      return { kind: "call", tool: "browser_set_allowed_domains", outcome: { outcome: "done", duration_ms: 0.2 } };
    case 7:
      return { kind: "call", tool: "browser_tab_close", outcome: { outcome: "cancelled", duration_ms: 2210 } };
    case 8:
      return { kind: "call", tool: "browser_tab_get", outcome: { outcome: "running" } };
    default:
      return { kind: "call", tool: n % 2 ? "browser_tab_get" : "browser_tab_new", outcome: { outcome: "done", duration_ms: 12 + (n % 80) } };
  }
}

function activity(rows: number, now: number): ActivityRow[] {
  return Array.from({ length: rows }, (_, n) => {
    const agent = AGENTS[n % 2]?.[0] ?? null;
    const at_ms = now - (rows - n) * 1700;
    if (n < 3) {
      const what: ActivityKind = n === 0 ? { kind: "browser", browser: RUNNING } : { kind: "session_opened" };
      return { id: n + 1, at_ms, session: n === 0 ? null : agent, tab: null, what };
    }
    return { id: n + 1, at_ms, session: agent, tab: n % 9 === 1 || n % 9 === 4 ? null : `tab_${n % 7}`, what: happening(n) };
  });
}

function opening(feed: string): Snapshot {
  const now = Date.now();
  const dead = feed === "dead";
  const companion = feed !== "nocompanion";
  const busy = feed === "many" || feed === "storm";
  const tabs = dead ? 0 : feed === "empty" ? 1 : busy ? 500 : 7;
  const perWindow = busy ? 100 : 5;
  const windows: WindowView[] = Array.from({ length: Math.ceil(tabs / perWindow) }, (_, w) => ({
    id: `win_${w}`,
    popup: !busy && w === 1,
    focused: w === 0,
    tabs: Array.from({ length: Math.min(perWindow, tabs - w * perWindow) }, (_, n) => `tab_${w * perWindow + n}`),
  }));
  return {
    revision: 7,
    browser: dead
      ? { state: "failed", reason: "Chromium ended by itself (signal 9). Start it again; if that happens often, see whether memory runs out." }
      : RUNNING.state === "running"
        ? { ...RUNNING, companion, no_sandbox: feed === "nosandbox" }
        : RUNNING,
    server: { version: "0.1.0", socket: "/run/user/1000/tabwarden.sock", http: "http://127.0.0.1:7333/mcp" },
    windows,
    tabs: Array.from({ length: tabs }, (_, n) => tab(n, now, companion)).map((t) => (feed === "empty" ? { ...t, opened_by: null, last: null } : t)),
    sessions: feed === "empty" ? [] : [0, 1, 2].map((n) => session(n, now)),
    activity: feed === "empty" ? [] : activity(busy ? 10_000 : 48, now),
    withheld_today: feed === "empty" ? 0 : 14,
  };
}

/** The page's backend without a program: a feed from memory, acts that change it, and a log of them. */
export function fake(feed: string): Backend {
  let state = opening(feed);
  let listener: ((update: Update) => void) | null = null;
  const acts: string[] = (window.fakeActs = []);
  let next = (state.activity.at(-1)?.id ?? 0) + 1;

  const tell = (change: Partial<Update>) => {
    const revision = state.revision + 1;
    const update: Update = { revision, browser: null, tabs: null, sessions: null, activity: [], withheld_today: state.withheld_today, ...change };
    const removed = new Set(update.tabs?.removed);
    const tabs = new Map(state.tabs.filter((t) => !removed.has(t.id)).map((t) => [t.id, t]));
    for (const changed of update.tabs?.changed ?? []) tabs.set(changed.id, changed);
    state = {
      ...state,
      revision,
      browser: update.browser ?? state.browser,
      sessions: update.sessions ?? state.sessions,
      windows: update.tabs?.windows ?? state.windows,
      tabs: [...tabs.values()],
      activity: [...state.activity, ...update.activity].slice(-10_000),
      withheld_today: update.withheld_today,
    };
    listener?.(structuredClone(update));
  };
  const find = (id: string): TabView => {
    const found = state.tabs.find((t) => t.id === id);
    if (found) return found;
    throw { code: "tab_not_found", message: "That tab is closed already." } satisfies ActError;
  };
  const without = (id: string) => state.windows.map((w) => ({ ...w, tabs: w.tabs.filter((t) => t !== id) })).filter((w) => w.tabs.length > 0);

  /** A burst: 100 rows, a tab that closes, a tab that opens. */
  const burst = () => {
    const rows = Array.from({ length: 100 }, () => {
      const id = next++;
      return { id, at_ms: Date.now(), session: AGENTS[id % 2]?.[0] ?? null, tab: `tab_${id % 500}`, what: happening(id) };
    });
    const old = state.windows.at(-1)?.tabs[0] ?? "";
    const fresh = { ...tab(next, Date.now(), true), active: false };
    const windows = without(old).map((w, at) => (at === 0 ? { ...w, tabs: [...w.tabs, fresh.id] } : w));
    tell({ activity: rows, tabs: { windows, changed: [fresh], removed: [old] }, withheld_today: state.withheld_today + 11 });
  };

  return {
    snapshot: () => (feed === "lost" ? Promise.reject(new Error("no answer")) : Promise.resolve(structuredClone(state))),
    subscribe(onUpdate) {
      listener = onUpdate;
      const timer = feed === "storm" ? setInterval(burst, 100) : undefined;
      return Promise.resolve(() => {
        listener = null;
        clearInterval(timer);
      });
    },
    async focusTab(id) {
      acts.push(`focus ${id}`);
      find(id);
      const strip = state.windows.find((w) => w.tabs.includes(id))?.tabs ?? [];
      const changed = state.tabs.filter((t) => strip.includes(t.id) && t.active !== (t.id === id)).map((t) => ({ ...t, active: t.id === id }));
      tell({ tabs: { windows: state.windows, changed, removed: [] } });
    },
    async closeTab(id) {
      acts.push(`close ${id}`);
      if (find(id).title === "Inbox (12)") {
        throw { code: "timed_out", message: "The browser did not close the tab in time. Close it in the browser." } satisfies ActError;
      }
      tell({ tabs: { windows: without(id), changed: [], removed: [id] } });
    },
    async muteTab(id, muted) {
      acts.push(`mute ${id} ${muted}`);
      tell({ tabs: { windows: state.windows, changed: [{ ...find(id), muted }], removed: [] } });
    },
    async startBrowser() {
      acts.push("start");
      tell({ browser: { state: "starting" } });
      tell({ browser: RUNNING, tabs: { windows: [{ id: "win_new", popup: false, focused: true, tabs: ["tab_0"] }], changed: [tab(0, Date.now(), true)], removed: [] } });
    },
    clientSnippets: () => Promise.resolve(SNIPPETS),
  };
}
