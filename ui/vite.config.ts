import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: ["es2022", "safari17.5"],
    cssTarget: ["chrome125", "safari17.5"],
    // The page's policy allows neither inline scripts nor inline styles: everything stays a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
