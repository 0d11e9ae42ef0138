// Bundles the scripts and stylesheets of the report and of the live page into WEIR_WEB_OUT (default: ../src/weir/_web).
import { mkdir, rename, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const outdir = process.env.WEIR_WEB_OUT ?? fileURLToPath(new URL("../src/weir/_web", import.meta.url));

const { outputFiles } = await build({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  entryPoints: { report: "src/report.ts", live: "src/live.ts" },
  outdir,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  // One page, one encoding: what is inlined must survive any editor.
  charset: "ascii",
  legalComments: "inline",
  logLevel: "warning",
  write: false,
});

// Another process may read a bundle at any moment, and must find the whole old or the whole new one.
await mkdir(outdir, { recursive: true });
for (const { path, contents } of outputFiles) {
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, contents);
  await rename(unfinished, path);
}
