import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { KEPT_ROWS, mergeRows } from "../src/lib/activity";
import type { Backend } from "../src/lib/backend";
import type { ActivityRow } from "../src/lib/contract/ActivityRow";
import type { OutcomeView } from "../src/lib/contract/OutcomeView";
import type { Snapshot } from "../src/lib/contract/Snapshot";
import type { TabView } from "../src/lib/contract/TabView";
import type { Update } from "../src/lib/contract/Update";
import type { WindowView } from "../src/lib/contract/WindowView";
import { LINGER_MS, Live, RETRY_MS } from "../src/lib/live.svelte";
import { callWords } from "../src/lib/words";

const tab = (id: string, title = id): TabView => ({
  id, title, url: "https://a.example/", domain: "a.example", favicon: null, active: false, loading: false,
  audible: false, muted: false, discarded: false, opened_by: null, last: null, withheld: 0,
});
const win = (id: string, ...tabs: string[]): WindowView => ({ id, popup: false, focused: false, tabs });
const row = (id: number, outcome: OutcomeView = { outcome: "running" }): ActivityRow => ({
  id, at_ms: id, session: "codex", tab: null, what: { kind: "call", tool: "browser_tab_list", outcome },
});
const snapshot = (revision: number, tabs: string[], activity: ActivityRow[] = []): Snapshot => ({
  revision, browser: { state: "stopped" }, server: { version: "0", socket: "s", http: null },
  windows: tabs.length ? [win("w", ...tabs)] : [], tabs: tabs.map((id) => tab(id)), sessions: [], activity, withheld_today: revision,
});
const update = (revision: number, change: Partial<Update> = {}): Update => ({
  revision, browser: null, tabs: null, sessions: null, activity: [], withheld_today: revision, ...change,
});

/** A backend whose answers the test gives. */
class Hand implements Partial<Backend> {
  order: string[] = [];
  answers: ((answer: Snapshot | Error) => void)[] = [];
  send: (update: Update) => void = () => undefined;
  subscribe(onUpdate: (update: Update) => void): Promise<() => void> {
    this.order.push("subscribe");
    this.send = onUpdate;
    return Promise.resolve(() => undefined);
  }
  snapshot(): Promise<Snapshot> {
    this.order.push("snapshot");
    return new Promise((resolve, reject) => this.answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer))));
  }
  async answer(answer: Snapshot | Error): Promise<void> {
    this.answers.shift()?.(answer);
    await vi.advanceTimersByTimeAsync(0);
  }
}

let hand: Hand;
let live: Live;
beforeEach(async () => {
  vi.useFakeTimers();
  hand = new Hand();
  live = new Live(hand as unknown as Backend);
  void live.start();
  await vi.advanceTimersByTimeAsync(0);
});
afterEach(() => {
  live.stop();
  vi.useRealTimers();
});
const strips = () => live.strips.map((s) => s.ids.join(" "));

test("subscribes before it asks for the snapshot, and drops updates that the snapshot holds", async () => {
  expect(hand.order).toEqual(["subscribe", "snapshot"]);
  hand.send(update(4));
  hand.send(update(5));
  hand.send(update(6));
  await hand.answer(snapshot(5, ["a"]));
  expect(live.ready).toBe(true);
  expect(live.withheldToday).toBe(6);
  hand.send(update(6, { withheld_today: 99 }));
  expect(live.withheldToday).toBe(6);
  expect(hand.order).toEqual(["subscribe", "snapshot"]);
});

test("a gap asks for a new snapshot and goes on from it", async () => {
  await hand.answer(snapshot(1, ["a"]));
  hand.send(update(3));
  hand.send(update(4, { browser: { state: "starting" } }));
  expect(hand.order).toEqual(["subscribe", "snapshot", "snapshot"]);
  expect(live.withheldToday).toBe(1);
  await hand.answer(snapshot(3, ["a", "b"]));
  expect(live.withheldToday).toBe(4);
  expect(live.browser.state).toBe("starting");
  expect(strips()).toEqual(["a b"]);
});

test("changed tabs take their place by id, untouched parts stay", async () => {
  await hand.answer(snapshot(1, ["a", "b"]));
  hand.send(update(2, { tabs: { windows: [win("w", "b", "a")], changed: [tab("a", "New")], removed: [] } }));
  expect(strips()).toEqual(["b a"]);
  expect(live.tabs.get("a")?.title).toBe("New");
  expect(live.tabs.get("b")?.title).toBe("b");
});

test("a closed tab stays at its place for a while", async () => {
  await hand.answer(snapshot(1, ["a", "b", "c"]));
  hand.send(update(2, { tabs: { windows: [win("w", "a", "c", "d")], changed: [tab("d")], removed: ["b"] } }));
  expect(strips()).toEqual(["a b c d"]);
  expect([...live.closed]).toEqual(["b"]);
  await vi.advanceTimersByTimeAsync(LINGER_MS - 1);
  expect(strips()).toEqual(["a b c d"]);
  await vi.advanceTimersByTimeAsync(1);
  expect(strips()).toEqual(["a c d"]);
  expect(live.tabs.has("b")).toBe(false);
});

test("a window that closed stays as long as its tabs do", async () => {
  await hand.answer(snapshot(1, ["a", "b"]));
  hand.send(update(2, { tabs: { windows: [], changed: [], removed: ["a", "b"] } }));
  expect(strips()).toEqual(["a b"]);
  await vi.advanceTimersByTimeAsync(LINGER_MS);
  expect(strips()).toEqual([]);
});

test("a program that does not answer is lost, and found again", async () => {
  await hand.answer(new Error("gone"));
  expect(live.lost).toBe(true);
  await vi.advanceTimersByTimeAsync(RETRY_MS);
  await hand.answer(snapshot(1, ["a"]));
  expect(live.lost).toBe(false);
  expect(hand.order).toEqual(["subscribe", "snapshot", "snapshot"]);
  expect(strips()).toEqual(["a"]);
});

test("a call's end takes the place of its start", async () => {
  await hand.answer(snapshot(1, [], [row(1), row(2)]));
  hand.send(update(2, { activity: [row(1, { outcome: "done", duration_ms: 3 }), row(3)] }));
  expect(live.activity.map((r) => r.id)).toEqual([1, 2, 3]);
  expect(live.activity[0]?.what).toMatchObject({ outcome: { outcome: "done" } });
});

test("the list keeps its newest rows, and an old row does not come back", () => {
  const full = Array.from({ length: KEPT_ROWS }, (_, n) => row(n + 1));
  const merged = mergeRows(full, [row(KEPT_ROWS + 1), row(1, { outcome: "cancelled", duration_ms: 1 })]);
  expect(merged.length).toBe(KEPT_ROWS);
  expect(merged[0]?.id).toBe(2);
  expect(merged.at(-1)?.id).toBe(KEPT_ROWS + 1);
});

test("a refusal is said in words", () => {
  expect(callWords("browser_tab_new", { outcome: "done", duration_ms: 1 })).toBe("opened a tab");
  expect(callWords("browser_tab_new", { outcome: "refused", code: -32010, slug: "domain_not_allowed", duration_ms: 1 })).toBe(
    "could not open a tab: the domain is not allowed",
  );
});
