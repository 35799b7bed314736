// Sends every request that the importers of Postman and Bruno make of an OpenAPI document: those that need nothing to be there
// before must be answered with 2xx, all others with 2xx or 404.
//
//   node importers.mjs openapi.json BASE KEY APP
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";
const require = createRequire(import.meta.url);
const [, , file, base, apiKey, appId] = process.argv;
const document = JSON.parse(readFileSync(file, "utf8"));

// Settings that a person makes once in the tool.
const known = { apiKey, appId, baseUrl: base };
const filled = (text) => String(text ?? "").replace(/{{(\$?\w+)}}/g, (whole, name) => (name === "$guid" ? randomUUID() : (known[name] ?? whole)));
const leaves = (items, key) => items.flatMap((item) => (item[key] ? leaves(item[key], key) : [item]));
const query = (pairs) => pairs.map(([name, value]) => `${name}=${encodeURIComponent(filled(value))}`).join("&");

function bruno() {
  const { openApiToBruno } = require("@usebruno/converters");
  return leaves(openApiToBruno(document).items, "items").map(({ name, request }) => {
    const params = request.params ?? [];
    const path = params.filter(({ type }) => type === "path").reduce((url, { name, value }) => url.replace(`:${name}`, value || "none"), request.url);
    const sent = params.filter(({ type, enabled, value }) => type === "query" && enabled && value !== "");
    const headers = request.headers.filter(({ enabled }) => enabled).map(({ name, value }) => [name, filled(value)]);
    const json = request.body?.mode === "json" ? request.body.json : undefined;
    if (json) headers.push(["Content-Type", "application/json"]);
    return { name, method: request.method, url: `${filled(path).split("?")[0]}?${query(sent.map(({ name, value }) => [name, value]))}`, headers, body: json };
  });
}

async function postman() {
  const options = { parametersResolution: "Example", requestParametersResolution: "Example" };
  const converted = await new Promise((done, failed) =>
    require("openapi-to-postmanv2").convert({ type: "json", data: document }, options, (error, result) => (error ? failed(error) : done(result))),
  );
  return leaves(converted.output[0].data.item, "item").map(({ name, request }) => {
    const variable = (key) => request.url.variable?.find((variable) => variable.key === key)?.value || "none";
    const path = request.url.path.map((part) => (part.startsWith(":") ? variable(part.slice(1)) : part)).join("/");
    const headers = request.header.filter(({ disabled }) => !disabled).map(({ key, value }) => [key, filled(value)]);
    if (request.auth?.type === "apikey") {
      const auth = Object.fromEntries(request.auth.apikey.map(({ key, value }) => [key, value]));
      headers.push([auth.key, filled(auth.value)]);
    }
    const sent = (request.url.query ?? []).filter(({ disabled }) => !disabled).map(({ key, value }) => [key, value]);
    return { name, method: request.method, url: `${base}/${path}?${query(sent)}`, headers, body: request.body?.raw };
  });
}

// These ask for something by an id, in the path or in the body.
const needsState = ({ name, path, operationId }) => path.includes("{") || ["createQrIntent", "getEsignStatus"].includes(operationId);
const operations = Object.entries(document.paths).flatMap(([path, item]) => Object.values(item).map((operation) => ({ path, ...operation })));
const stateful = new Set(operations.filter(needsState).map(({ summary }) => summary));

let failed = false;
console.debug = console.info = () => {};
for (const importer of [bruno, postman]) {
  const requests = await importer();
  const statuses = {};
  for (const { name, method, url, headers, body } of requests) {
    const response = await fetch(url, { method, headers, body: method === "GET" ? undefined : body });
    const text = await response.text();
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    const good = response.ok || (stateful.has(name) && response.status === 404);
    if (!good) console.log(`${importer.name}: ${method} ${url} (${name}) answers ${response.status}: ${text}`);
    failed ||= !good;
  }
  console.log(importer.name, JSON.stringify(statuses));
  failed ||= requests.length !== operations.length;
}
process.exit(failed ? 1 : 0);
