import { mergeRows } from "./activity";
import type { Backend } from "./backend";
import type { ActivityRow } from "./contract/ActivityRow";
import type { BrowserView } from "./contract/BrowserView";
import type { ServerView } from "./contract/ServerView";
import type { SessionView } from "./contract/SessionView";
import type { Snapshot } from "./contract/Snapshot";
import type { TabView } from "./contract/TabView";
import type { Update } from "./contract/Update";
import type { WindowView } from "./contract/WindowView";
import { mergeStrips, type Strip } from "./strips";

/** How long a closed tab stays in the list, in milliseconds. */
export const LINGER_MS = 5000;
/** How long to wait before the program is asked again after it did not answer, in milliseconds. */
export const RETRY_MS = 2000;

/** What the window shows: a snapshot, kept up to date by updates. */
export class Live {
  /** Whether a first snapshot is there. */
  ready = $state(false);
  /** Whether the program behind the page does not answer. */
  lost = $state(false);
  browser = $state.raw<BrowserView>({ state: "stopped" });
  server = $state.raw<ServerView | null>(null);
  /** Windows with their tabs, in order, with tabs that closed a moment ago. */
  strips = $state.raw<Strip[]>([]);
  /** Tabs by id, with those that closed a moment ago. */
  tabs = $state.raw<ReadonlyMap<string, TabView>>(new Map());
  /** The tabs that closed a moment ago. */
  closed = $state.raw<ReadonlySet<string>>(new Set());
  sessions = $state.raw<SessionView[]>([]);
  /** Oldest first, in ascending order of their numbers. */
  activity = $state.raw<ActivityRow[]>([]);
  withheldToday = $state(0);

  readonly #backend: Backend;
  #revision = -1;
  /** Updates that came while a snapshot was asked for; null when none is. */
  #waiting: Update[] | null = null;
  #unsubscribe: (() => void) | null = null;
  #timers = new Set<ReturnType<typeof setTimeout>>();
  #stopped = false;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Subscribes first and asks for the snapshot then, so that nothing falls between the two. */
  async start(): Promise<void> {
    try {
      if (!this.#unsubscribe) {
        this.#waiting ??= [];
        const unsubscribe = await this.#backend.subscribe((update) => this.#take(update));
        if (this.#stopped) unsubscribe();
        else this.#unsubscribe = unsubscribe;
      }
      await this.#resync();
    } catch {
      this.#lose();
    }
  }

  /** Ends the subscription and forgets the timers. */
  stop(): void {
    this.#stopped = true;
    this.#unsubscribe?.();
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #later(delay: number, what: () => void): void {
    if (this.#stopped) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      what();
    }, delay);
    this.#timers.add(timer);
  }

  #lose(): void {
    this.lost = true;
    this.#later(RETRY_MS, () => void this.start());
  }

  #take(update: Update): void {
    if (this.#waiting) {
      this.#waiting.push(update);
    } else if (update.revision > this.#revision + 1) {
      this.#waiting = [update];
      this.#resync().catch(() => this.#lose());
    } else if (update.revision === this.#revision + 1) {
      this.#apply(update);
    }
  }

  async #resync(): Promise<void> {
    this.#waiting ??= [];
    this.#replace(await this.#backend.snapshot());
    this.lost = false;
    const waiting = this.#waiting;
    this.#waiting = null;
    for (const update of waiting) this.#take(update);
  }

  #replace(snapshot: Snapshot): void {
    this.#revision = snapshot.revision;
    this.browser = snapshot.browser;
    this.server = snapshot.server;
    this.sessions = snapshot.sessions;
    this.activity = mergeRows([], snapshot.activity);
    this.withheldToday = snapshot.withheld_today;
    const open = new Set(snapshot.tabs.map((tab) => tab.id));
    const removed = [...this.tabs.keys()].filter((id) => !open.has(id));
    this.#changeTabs(snapshot.windows, snapshot.tabs, removed);
    this.ready = true;
  }

  #apply(update: Update): void {
    this.#revision = update.revision;
    if (update.browser) this.browser = update.browser;
    if (update.sessions) this.sessions = update.sessions;
    if (update.activity.length > 0) this.activity = mergeRows(this.activity, update.activity);
    this.withheldToday = update.withheld_today;
    if (update.tabs) this.#changeTabs(update.tabs.windows, update.tabs.changed, update.tabs.removed);
  }

  #changeTabs(windows: WindowView[], changed: TabView[], removed: string[]): void {
    const tabs = new Map(this.tabs);
    const closed = new Set(this.closed);
    for (const tab of changed) {
      tabs.set(tab.id, tab);
      closed.delete(tab.id);
    }
    const fresh = removed.filter((id) => tabs.has(id) && !closed.has(id));
    for (const id of fresh) closed.add(id);
    this.strips = mergeStrips(this.strips, windows, closed);
    this.tabs = tabs;
    this.closed = closed;
    if (fresh.length > 0) this.#later(LINGER_MS, () => this.#forget(fresh));
  }

  #forget(ids: string[]): void {
    const gone = new Set(ids.filter((id) => this.closed.has(id)));
    this.closed = new Set([...this.closed].filter((id) => !gone.has(id)));
    this.tabs = new Map([...this.tabs].filter(([id]) => !gone.has(id)));
    this.strips = this.strips
      .map((strip) => ({ window: strip.window, ids: strip.ids.filter((id) => !gone.has(id)) }))
      .filter((strip) => strip.ids.length > 0 || strip.window.tabs.some((id) => this.tabs.has(id)));
  }
}
