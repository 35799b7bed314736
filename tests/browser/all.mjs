// Runs the tests of all files, or of those whose names are given, in one process and one after the other.

import { readdirSync } from "node:fs";

const here = new URL(".", import.meta.url);
const wanted = process.argv.slice(2);
const files = readdirSync(here).filter((file) => file.endsWith(".test.mjs"));
for (const file of files.filter((file) => wanted.length === 0 || wanted.includes(file.replace(".test.mjs", "")))) await import(new URL(file, here));
