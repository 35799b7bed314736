/** A client of a sakshi service. README.md shows its use. */

export type { components, operations, webhooks } from "./api.js";
export { Sakshi, SakshiError } from "./client.js";
export type { Check, Options, Schemas, Settings, Verdict } from "./client.js";
export { Receiver } from "./receiver.js";
export type { Arrival, Handlers, Kind } from "./receiver.js";
