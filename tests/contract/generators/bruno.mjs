// Imports a Postman collection with Bruno's converter, into a folder that Bruno runs.
//
//   node bruno.mjs postman.json FOLDER
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
const { postmanToBruno } = require("@usebruno/converters");
const { createCollectionFromBrunoObject } = require("@usebruno/cli/src/utils/collection.js");

const [, , file, folder] = process.argv;
const { collection } = await postmanToBruno(JSON.parse(readFileSync(file, "utf8")));
mkdirSync(folder);
await createCollectionFromBrunoObject(collection, folder);
