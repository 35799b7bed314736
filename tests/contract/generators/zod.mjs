// The schemas of hey-api and zod from the document read the service's answers, and errors with later codes.
import assert from "node:assert/strict";
import { zError, zOvseResult, zPong } from "./out/hey/zod.gen.js";

const [base, key, app] = process.argv.slice(2);
const headers = { "X-API-KEY": key, "X-API-APP-ID": app, "Content-Type": "application/json" };
zPong.parse(await (await fetch(`${base}/api/ping`)).json());
const body = JSON.stringify({ claims: ["name"], channel: "web" });
const opened = await (await fetch(`${base}/api/v1/nationalid-ovse/init`, { method: "POST", headers, body })).json();
const result = zOvseResult.parse(await (await fetch(`${base}/api/v1/nationalid-ovse/result/${opened.txnId}`, { headers })).json());
assert(result.data.pending);
const refused = await (await fetch(`${base}/api/v1/nationalid-ovse/result/none`, { headers })).json();
assert.equal(zError.parse({ ...refused, code: "a_code_of_tomorrow" }).code, "a_code_of_tomorrow");
