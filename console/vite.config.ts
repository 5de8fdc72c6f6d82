import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Writes each file a second and a third time, compressed, so that the server need not compress. */
function precompress(): Plugin {
  return {
    name: "precompress",
    writeBundle(options) {
      const folder = join(options.dir ?? "", "assets");
      for (const name of readdirSync(folder)) {
        const content = readFileSync(join(folder, name));
        writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
        const parameters = { [constants.BROTLI_PARAM_QUALITY]: 11 };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params: parameters }));
      }
    },
  };
}

export default defineConfig({
  // Relative, so that the console works below any prefix; the server adds the way to the page's folder.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: {
      input: ["index.html", "enter.html"],
      // What pages that load later share with the first load is one script, whatever uses what.
      output: { codeSplitting: { groups: [{ name: "shared", test: /console\/(src\/(api|ui)\/|node_modules\/@?preact)/ }] } },
    },
  },
  plugins: [precompress()],
});
