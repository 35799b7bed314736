// A receiver on Node: HTTP/2 and HTTP/1.1 over TLS, with and without session tickets. It counts ids, and takes commands as
// JSON lines like the roles in role.rs.
import { constants as http2constants, createSecureServer } from "node:http2";
import { createServer } from "node:https";
import { constants } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [directory] = process.argv.slice(2);
const key = readFileSync(`${directory}/key.pem`);
const cert = readFileSync(`${directory}/certificate.pem`);
let seen = new Map();
// "fast" answers at once, "slow" within 20 ms; "faulty" also sometimes refuses, resets or hangs.
let mode = "fast";
const sessions = new Set();

function serve(request, response) {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const id = Number(/"id":(\d+)/.exec(Buffer.concat(parts).toString("latin1"))[1]);
    const chance = mode === "faulty" ? Math.floor(Math.random() * 2000) : 2000;
    if (chance < 20) return request.stream.close(http2constants.NGHTTP2_REFUSED_STREAM);
    seen.set(id, (seen.get(id) ?? 0) + 1);
    if (chance < 22) return request.stream.close(http2constants.NGHTTP2_INTERNAL_ERROR);
    if (chance < 23) return;
    if (mode === "fast") response.end();
    else setTimeout(() => response.end(), id % 20);
  });
}

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const listen = (server) => new Promise((ready) => server.listen(0, "127.0.0.1", () => ready(server.address().port)));

const ports = {};
for (const tickets of [true, false]) {
  const secureOptions = tickets ? 0 : constants.SSL_OP_NO_TICKET;
  const name = (protocol) => (tickets ? protocol : `${protocol}_no_tickets`);
  const http2 = createSecureServer({ key, cert, secureOptions }, serve);
  http2.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  ports[name("h2")] = await listen(http2);
  ports[name("h1")] = await listen(createServer({ key, cert, secureOptions }, serve));
}
say(ports);

createInterface({ input: process.stdin }).on("line", (line) => {
  const order = JSON.parse(line);
  if (order.seen_ids) {
    const doubled = [...seen.values()].filter((count) => count > 1).length;
    const of = order.seen_ids.filter((id) => seen.has(id)).length;
    say({ received: seen.size, doubled, of });
    seen = new Map();
    return;
  }
  if (order.mode) {
    mode = order.mode;
    say({});
    return;
  }
  for (const session of sessions) {
    if (order.now === "drain") session.close();
    else session.destroy();
  }
  say({});
}).on("close", () => process.exit());
