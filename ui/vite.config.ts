import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [svelte()],
  // The store is tested as it runs in the page, not as a server would render it.
  resolve: process.env.VITEST ? { conditions: ["browser"] } : {},
  test: { include: ["tests/*.test.ts"], reporters: ["default", "./tests/tally.ts"], testTimeout: 20_000, hookTimeout: 20_000 },
  build: {
    target: ["es2022", "safari17.5"],
    cssTarget: ["chrome125", "safari17.5"],
    // The page's policy allows neither inline scripts nor inline styles: everything stays a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
