// SPDX-License-Identifier: Apache-2.0
// Bundles src/ and writes the compressed files as a C++ array:  node build.mjs BUILD_FOLDER
// Uses the modules in BUILD_FOLDER/node_modules. Writes for the build which files and folders it depends on, so
// that no list of them is kept: a new file changes its folder.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const source = dirname(fileURLToPath(import.meta.url));
const build = process.argv[2];
const esbuild = createRequire(join(build, "package.json"))("esbuild");
const kMostCompressed = 150 * 1024;

const runbooks = join(source, "../../docs/runbook");
const runbookOf = (file) => [basename(file, ".md"), readFileSync(join(runbooks, file), "utf8")];

// The phrase of each kind of fact about a host.
const facts = readFileSync(join(source, "../../proto/host_facts.def"), "utf8");
const fact = /HOST_FACT\(\w+, "(\w+)", "\w*",\s*"([^"]*)"\)/g;
const phrases = [...facts.matchAll(fact)].map(([, kind, phrase]) => [kind, phrase]);
if (phrases.length !== facts.split("\nHOST_FACT(").length - 1) {
  throw new Error("build.mjs cannot read all rows of host_facts.def");
}

// The words of each fault of a transfer over the network.
const faults = readFileSync(join(source, "../../proto/network_faults.def"), "utf8");
const columns = faults
  .split("\nNETWORK_FAULT(")
  .slice(1)
  .map((row) => [...row.matchAll(/"([^"]*)"/g)].map(([, text]) => text));
if (columns.length === 0 || columns.some((row) => row.length !== 8)) {
  throw new Error("build.mjs cannot read all rows of network_faults.def");
}
const faultWords = columns.map(([word, , , , line, short]) => [word, { line, short }]);

const bundle = await esbuild.build({
  entryPoints: [join(source, "src/main.tsx")],
  bundle: true,
  minify: true,
  target: "es2021",
  format: "iife",
  jsx: "automatic",
  jsxImportSource: "preact",
  nodePaths: [join(build, "node_modules")],
  define: {
    RUNBOOKS: JSON.stringify(Object.fromEntries(readdirSync(runbooks).map(runbookOf))),
    HOST_FACTS: JSON.stringify(Object.fromEntries(phrases)),
    NETWORK_FAULTS: JSON.stringify(Object.fromEntries(faultWords)),
  },
  legalComments: "none",
  outfile: join(build, "app.js"),
  write: false,
  logLevel: "warning",
});
const outputText = (ending) => bundle.outputFiles.find((file) => file.path.endsWith(ending)).text;
const files = [
  ["/index.html", "text/html; charset=utf-8", readFileSync(join(source, "index.html"), "utf8")],
  ["/app.js", "text/javascript; charset=utf-8", outputText(".js")],
  ["/app.css", "text/css; charset=utf-8", outputText(".css")],
];

let arrays = "";
let rows = "";
let total = 0;
files.forEach(([path, type, text], index) => {
  const bytes = gzipSync(text, { level: 9 });
  total += bytes.length;
  arrays += `const unsigned char kFile${index}[] = {${[...bytes].join(",")}};\n`;
  rows += `    {"${path}", "${type}", kFile${index}, sizeof(kFile${index})},\n`;
});
if (total > kMostCompressed) {
  throw new Error(`the page has ${total} bytes compressed; the limit is ${kMostCompressed}`);
}
writeFileSync(
  join(build, "page_files.cc"),
  `// Made by daemon/page/build.mjs.\n#include "daemon/page/page_files.h"\n\n` +
    `namespace rollcall {\n` +
    `namespace {\n\n${arrays}\n}  // namespace\n\nconst PageFile kPageFiles[] = {\n${rows}` +
    `    {nullptr, nullptr, nullptr, 0}};\n\n}  // namespace rollcall\n`,
);
const everythingBelow = (folder) => [
  folder,
  ...readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? everythingBelow(join(folder, entry.name)) : join(folder, entry.name),
  ),
];
const inMake = (path) => path.replaceAll(" ", "\\ ");
writeFileSync(
  join(build, "page_files.cc.d"),
  `${[join(build, "page_files.cc:"), ...everythingBelow(join(source, "src"))].map(inMake).join(" ")}\n`,
);
console.log(`page: ${files.length} files, ${total} bytes compressed`);
