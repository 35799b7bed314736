// Holds objects of the Gateway API, the Prometheus operator and External Secrets against the models of their packages: values by the
// schemas, names of fields by the types, since the schemas let unknown fields pass. Rules between fields (CEL) are not in the packages.
//
//     node custom.mjs < objects.json        beside node_modules

import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

const PACKAGES = {
  "gateway.networking.k8s.io": "gateway-api",
  "monitoring.coreos.com": "prometheus-operator",
  "external-secrets.io": "external-secrets",
};
const objects = JSON.parse(readFileSync(0, "utf8"));
const faults = [];

const place = (apiVersion) => `@kubernetes-models/${PACKAGES[apiVersion.split("/")[0]]}/${apiVersion}`;

const lines = objects.map(({ apiVersion, kind }, at) => {
  return `import type { I${kind} as T${at} } from ${JSON.stringify(place(apiVersion))};\nexport const o${at}: T${at} = ${JSON.stringify(objects[at])};`;
});
const file = join(import.meta.dirname, "objects.ts");
const options = { noEmit: true, strict: true, skipLibCheck: true, types: [], module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists } = host;
host.fileExists = (name) => name === file || fileExists(name);
host.getSourceFile = (name, ...rest) =>
  name === file ? ts.createSourceFile(name, lines.join("\n"), ts.ScriptTarget.ES2022) : getSourceFile(name, ...rest);
for (const { messageText } of ts.getPreEmitDiagnostics(ts.createProgram([file], options, host))) {
  faults.push(ts.flattenDiagnosticMessageText(messageText, " "));
}

for (const object of objects) {
  const models = await import(place(object.apiVersion));
  try {
    new models[object.kind](object).validate();
  } catch (error) {
    faults.push(`${object.kind} ${object.metadata.name}: ${error.message}`);
  }
}
console.log([...new Set(faults)].join("\n"));
process.exit(faults.length > 0 ? 1 : 0);
