import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { servePage } from "./page";

const axePath = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
let browser: Browser;
let served: { url: string; close: () => void };
let axe: string;

beforeAll(async () => {
  [browser, served, axe] = await Promise.all([
    chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] }),
    servePage(),
    readFile(axePath, "utf8"),
  ]);
});
afterAll(async () => {
  await browser?.close();
  served?.close();
});

/** What the page complained about: broken policy, uncaught errors. */
const complaints: string[] = [];
afterEach(async () => {
  await Promise.all(browser.contexts().map((context) => context.close()));
  expect(complaints.splice(0)).toEqual([]);
});

interface Look {
  scheme?: "dark" | "light";
  width?: number;
  height?: number;
}

async function open(feed: string, { scheme = "light", width = 1280, height = 800 }: Look = {}): Promise<Page> {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height }, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${served.url}?feed=${feed}`);
  await page.waitForSelector("[data-pane=tabs] [role=row], [data-pane=tabs] .empty, [role=alert]");
  return page;
}

const acts = (page: Page) => page.evaluate(() => window.fakeActs ?? []);
const actsBecome = (page: Page, wanted: string[]) =>
  page.waitForFunction((list) => JSON.stringify(window.fakeActs) === list, JSON.stringify(wanted)).catch(async () => expect(await acts(page)).toEqual(wanted));

async function violations(page: Page): Promise<string[]> {
  // Through the debugging protocol, which the page's policy does not concern.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap((v) => v.nodes.map((node) => `${v.id}: ${node.html.slice(0, 160)} ${node.failureSummary ?? ""}`));
  });
}

for (const feed of ["few", "empty", "many", "dead"]) {
  test(`${feed}: nothing stands in the way of assistive technology, dark and light, large and small`, async () => {
    const page = await open(feed);
    const tab = page.locator("[data-tab]").first();
    if (await tab.count()) await tab.click();
    for (const colorScheme of ["light", "dark"] as const) {
      for (const [width, height] of [[1280, 800], [880, 560]] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height });
        expect(await violations(page), `${colorScheme} ${width}x${height}`).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "no sideways scrolling").toBe(true);
      }
    }
  });
}

test("the help sheet and a session's facts are fit for assistive technology", async () => {
  const page = await open("few");
  await page.click("[data-session=ses_1]");
  await page.waitForFunction(() => document.querySelector("[data-pane=inspector]")?.textContent?.includes("codex-mcp-client"));
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog[open]", { state: "detached" });
});

test("the header counts", async () => {
  const page = await open("few");
  const header = (await page.textContent("header"))?.replaceAll(/\s+/g, " ");
  expect(header).toContain("Chromium running");
  expect(header).toContain("2 agents");
  expect(header).toContain("7 tabs");
  expect(header).toContain("Firewall on (14 today)");
});

test("the keyboard reaches every act on a tab", async () => {
  const page = await open("few");
  // From the page's start: header's button, sessions, tabs.
  for (let n = 0; n < 3; n++) await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("data-tab"))).toBe("tab_0");
  await page.keyboard.press("j");
  await page.keyboard.press("ArrowDown");
  await page.waitForSelector("[data-tab=tab_1][aria-selected=true]:focus");
  await page.keyboard.press("m");
  await actsBecome(page, ["mute tab_1 true"]);
  await page.waitForFunction(() => document.querySelector("[data-tab=tab_1]")?.textContent?.includes("muted"));
  await page.keyboard.press("m");
  await page.keyboard.press("Enter");
  await actsBecome(page, ["mute tab_1 true", "mute tab_1 false", "focus tab_1"]);
  await page.keyboard.press("x");
  await actsBecome(page, ["mute tab_1 true", "mute tab_1 false", "focus tab_1", "close tab_1"]);
  await page.waitForSelector("[data-tab=tab_1].closed");
  // A closed tab takes no more acts; when its row goes, its neighbour has the focus.
  await page.keyboard.press("x");
  await page.waitForSelector("[data-tab=tab_1]", { state: "detached" });
  await page.waitForSelector("[data-tab=tab_2][aria-selected=true]:focus");
  expect((await acts(page)).length).toBe(4);
});

test("the mouse: one click selects, two show the tab in the browser, and so does the button", async () => {
  const page = await open("few");
  await page.click("[data-tab=tab_2]");
  await page.waitForSelector("[data-tab=tab_2][aria-selected=true]");
  expect(await acts(page)).toEqual([]);
  await page.dblclick("[data-tab=tab_5]");
  await actsBecome(page, ["focus tab_5"]);
  await page.click("[data-tab=tab_6] button");
  await actsBecome(page, ["focus tab_5", "focus tab_6"]);
});

test("an act that fails says so", async () => {
  const page = await open("few");
  await page.click("[data-tab=tab_4]");
  await page.keyboard.press("x");
  await page.waitForFunction(() => document.querySelector("[role=status]")?.textContent?.includes("did not close the tab in time"));
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("[role=status]")?.textContent === "");
});

test("a page's title is only ever text", async () => {
  const page = await open("few");
  await page.click("[data-tab=tab_2]");
  const shown = await page.textContent("[data-tab=tab_2] .title");
  expect(shown).toContain("<img src=x onerror=");
  expect(await page.textContent("[data-pane=inspector] h3")).toContain("<script>");
  expect(await page.locator("img[src=x]").count()).toBe(0);
  expect(await page.title()).toBe("Tabwarden");
});

test("nobody is connected: the five clients, each to copy", async () => {
  const page = await open("empty");
  await page.waitForSelector("[data-pane=sessions] pre");
  expect(await page.locator("[data-pane=sessions] h3").allTextContents()).toEqual(["Claude Code", "Cursor", "VS Code", "Codex CLI", "Gemini CLI"]);
  // No permission for the clipboard was given: the way through a selected text must do.
  await page.evaluate(() => document.addEventListener("copy", () => (document.body.dataset.copied = getSelection()?.toString() || (document.activeElement as HTMLTextAreaElement).value)));
  await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error("not allowed"))));
  await page.click("[aria-label='Copy: Claude Code']");
  await page.waitForSelector("[aria-label='Copied: Claude Code']");
  expect(await page.evaluate(() => document.body.dataset.copied)).toBe("claude mcp add --scope user tabwarden -- tabwarden mcp");
});

test("a dead browser can be started again", async () => {
  const page = await open("dead");
  expect(await page.textContent("[role=alert]")).toContain("ended by itself");
  await page.click("text=Start the browser");
  await actsBecome(page, ["start"]);
  await page.waitForSelector("[data-tab=tab_0]");
  expect(await page.locator("[role=alert]").count()).toBe(0);
});

test("what is not known is said: no companion, no sandbox, no answer", async () => {
  const says = { nocompanion: "sound is unknown", nosandbox: "without its sandbox", lost: "does not answer" };
  for (const [feed, words] of Object.entries(says)) {
    const page = await open(feed);
    expect(await page.textContent(".banners")).toContain(words);
    expect(await violations(page), feed).toEqual([]);
  }
});

test("the activity is filtered by chip and by text", async () => {
  const page = await open("few");
  await page.click("text=refusals");
  await page.waitForFunction(() => [...document.querySelectorAll("[data-row]")].every((r) => r.textContent?.includes("domain_not_allowed -32010")));
  await page.click("text=redactions");
  await page.waitForFunction(() => [...document.querySelectorAll("[data-row]")].every((r) => r.textContent?.includes("access_token")));
  await page.click("[data-pane=activity] >> text=all");
  await page.keyboard.press("/");
  await page.keyboard.type("set its dom");
  await page.waitForFunction(() => [...document.querySelectorAll("[data-row]")].every((r) => r.textContent?.includes("set its domains")));
  expect(await page.locator("[data-row]").count()).toBeGreaterThan(0);
  await page.keyboard.type(" of nothing");
  await page.waitForSelector("[data-pane=activity] .empty");
  expect(await acts(page)).toEqual([]);
});

const ROWS_AT_MOST = 120;
const rowCount = (page: Page) => page.locator("[role=row]").count();

test("500 tabs and 10 000 rows: only what is in sight stands in the document", async () => {
  const page = await open("many");
  expect(await page.getAttribute("[data-pane=activity] [role=grid]", "aria-rowcount")).toBe("10000");
  expect(await rowCount(page)).toBeLessThan(ROWS_AT_MOST);
  await page.waitForSelector("[data-row='10000']");
  await page.click("[data-tab=tab_0]");
  await page.keyboard.press("End");
  await page.waitForSelector("[data-tab=tab_499][aria-selected=true]:focus");
  await page.keyboard.press("Home");
  await page.waitForSelector("[data-tab=tab_0][aria-selected=true]:focus");
  expect(await rowCount(page)).toBeLessThan(ROWS_AT_MOST);
});

test("a storm: the list follows, stays put when scrolled up, counts what is new, and stays small", async () => {
  const page = await open("storm");
  const grid = page.locator("[data-pane=activity] [role=grid]");
  // It follows: rows that came after the snapshot are in sight.
  await page.waitForFunction(() => [...document.querySelectorAll("[data-row]")].some((r) => Number(r.getAttribute("data-row")) >= 10_200));
  await grid.hover();
  await page.mouse.wheel(0, -4000);
  const fresh = page.locator("[data-pane=activity] .fresh");
  await fresh.waitFor();
  const inSight = () =>
    grid.evaluate((element) => {
      const top = element.getBoundingClientRect().top;
      const rows = [...element.querySelectorAll("[data-row]")].filter((r) => r.getBoundingClientRect().top >= top - 1);
      return rows.map((r) => Number(r.getAttribute("data-row"))).sort((a, b) => a - b)[0];
    });
  const before = await inSight();
  await page.waitForFunction(() => Number(document.querySelector(".fresh")?.textContent?.replaceAll(/\D/g, "")) >= 1000);
  expect(await inSight()).toBe(before);
  expect(await rowCount(page)).toBeLessThan(ROWS_AT_MOST);
  await page.keyboard.press("f");
  await fresh.waitFor({ state: "detached" });
  expect(await grid.evaluate((e) => e.scrollTop + e.clientHeight >= e.scrollHeight - 2)).toBe(true);
  expect(await rowCount(page)).toBeLessThan(ROWS_AT_MOST);
});

test("twice the text size stays usable in the smallest window", async () => {
  const page = await open("few", { width: 880, height: 560 });
  await page.evaluate(() => (document.documentElement.style.fontSize = "162.5%"));
  await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth);
  await page.click("[data-tab=tab_1]");
  await page.locator("[data-pane=inspector] dl").scrollIntoViewIfNeeded();
  await page.locator("[data-pane=activity] [data-row]").last().scrollIntoViewIfNeeded();
  expect(await violations(page)).toEqual([]);
});
