import type { Reporter, TestModule } from "vitest/node";

/** Prints the one line that other programs read: how many tests passed and failed. */
export default class Tally implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === "passed").length;
    const skipped = tests.filter((test) => test.result().state === "skipped").length;
    const broken = modules.filter((module) => module.errors().length > 0).length;
    console.log(`${passed} passed, ${tests.length - passed - skipped + broken + errors.length} failed`);
  }
}
