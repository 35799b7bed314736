// Reads the document of the webhooks as AsyncAPI's own parser does: it finds no error and no warning.
//
//   node asyncapi.mjs asyncapi.json
import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";

const { document, diagnostics } = await new Parser().parse(readFileSync(process.argv[2], "utf8"));
// 0: an error, 1: a warning; the rest are hints, such as that there is a newer version of the format.
const wrong = diagnostics.filter(({ severity }) => severity < 2);
for (const { code, message, path } of wrong) console.error(code, message, path.join("."));
const names = document?.operations().map((operation) => operation.id()) ?? [];
console.log(names.join(" "));
process.exit(wrong.length === 0 && names.length === 7 ? 0 : 1);
