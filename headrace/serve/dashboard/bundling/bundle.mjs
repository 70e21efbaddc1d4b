/**
 * Write assets/vendor anew: the libraries, their licences, and which versions they are.
 *
 * Usage: node bundle.mjs FOLDER VENDOR, where FOLDER has been filled by `npm install`.
 */
import { cpSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [folder, vendor] = process.argv.slice(2).map((each) => resolve(each));
const { buildSync } = createRequire(join(folder, "package.json"))("esbuild");

const bundle = (entry, name) => {
  const { metafile } = buildSync({
    absWorkingDir: folder,
    bundle: true,
    entryPoints: [entry],
    format: "esm",
    legalComments: "none", // the licences stand in a file of their own
    metafile: true,
    minify: true,
    outfile: join(vendor, name),
    target: "es2022",
  });
  const packages = Object.keys(metafile.inputs)
    .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    .filter(Boolean);
  return [...new Set(packages)].sort().map(readPackage);
};

const readPackage = (name) => {
  const home = join(folder, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  const file = readdirSync(home).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name} has no licence file`);
  return { name, version, license, text: readFileSync(join(home, file), "utf8").trim() };
};

const writeLicences = (packages, name) => {
  const texts = packages.map((each) => `${each.name} ${each.version}\n\n${each.text}\n`);
  writeFileSync(join(vendor, name), texts.join(`\n${"-".repeat(72)}\n\n`));
};

const bundled = {
  "codemirror.js": bundle("codemirror.js", "codemirror.js"),
  "uplot.js": bundle(join(folder, "node_modules/uplot/dist/uPlot.esm.js"), "uplot.js"),
};
cpSync(join(folder, "node_modules/uplot/dist/uPlot.min.css"), join(vendor, "uplot.css"));
for (const [file, packages] of Object.entries(bundled)) {
  writeLicences(packages, file.replace(/\.js$/, ".LICENSE.txt"));
}
const rows = Object.entries(bundled).flatMap(([file, packages]) =>
  packages.map((each) => `| ${file} | ${each.name} | ${each.version} | ${each.license} |`),
);
writeFileSync(
  join(vendor, "VERSIONS.md"),
  [
    "# Libraries of the dashboard",
    "",
    "`make dashboard-vendor` writes this folder anew from the versions in `bundling/package.json`.",
    "`uplot.css` belongs to uplot.",
    "",
    "| file | package | version | licence |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n"),
);
