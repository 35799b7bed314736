// A sakshi process of a test's own: free ports, a fresh store, and a client that may call it.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Running processes. None outlives a run of the tests that ends early.
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

// Sends a request over a connection of its own: the service may close a kept one while a slow machine writes to it.
const request = (url, { headers, ...init } = {}) => fetch(url, { ...init, headers: { ...headers, Connection: "close" } });

export async function statusOf(url, init) {
  const answer = await request(url, init);
  await answer.arrayBuffer();
  return answer.status;
}

export class Service {
  // `settings` are further SAKSHI__… variables.
  static async start(settings = {}) {
    const service = new Service();
    service.directory = await mkdtemp(join(tmpdir(), "sakshi-browser-"));
    service.settings = settings;
    const { base, key, app } = await service.run({ SAKSHI__SERVER__PUBLIC_ADDR: "127.0.0.1:0" }, { key: /X-API-KEY: (\S+)/, app: /X-API-APP-ID: (\S+)/ });
    service.base = base;
    service.headers = { "X-API-KEY": key, "X-API-APP-ID": app };
    return service;
  }

  // Ends the process without warning and starts another one.
  async killAndRestart() {
    await this.end("SIGKILL");
    await this.restart();
  }

  // Starts a process on the store and the address of one that has ended.
  async restart() {
    await this.run({ SAKSHI__SERVER__PUBLIC_ADDR: new URL(this.base).host }, {});
  }

  // Starts the process; resolves when it listens and has printed everything wanted on stderr.
  async run(address, wanted) {
    this.process = spawn(process.env.SAKSHI_BIN, ["serve"], {
      cwd: this.directory,
      env: {
        SAKSHI__SERVER__INTERNAL_ADDR: "127.0.0.1:0",
        SAKSHI__STORE__PATH: join(this.directory, "store"),
        RUST_LOG: "warn",
        ...address,
        ...this.settings,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    running.add(this.process);
    this.process.once("exit", () => running.delete(this.process));
    this.log = "";
    const lines = Object.fromEntries(["stdout", "stderr"].map((from) => [from, createInterface({ input: this.process[from] })]));
    for (const from of Object.values(lines)) from.on("line", (line) => { this.log += `${line}\n`; });
    const found = (from, pattern) => new Promise((resolve) => {
      from.on("line", (line) => { const match = pattern.exec(line); if (match) resolve(match[1]); });
    });
    const told = Promise.all([
      found(lines.stdout, /^(\{.*"listening".*\})$/).then((line) => {
        const { public: base, internal } = JSON.parse(line);
        this.internal = internal;
        return ["base", base];
      }),
      ...Object.entries(wanted).map(async ([name, pattern]) => [name, await found(lines.stderr, pattern)]),
    ]);
    const ended = once(this.process, "exit").then(() => { throw new Error(`the service ended at once:\n${this.log}`); });
    ended.catch(() => {});
    return Object.fromEntries(await Promise.race([told, ended]));
  }

  // A new event comes with the address of its kiosk.
  async call(path, body) {
    const answer = await this.ask(`nationalid-ovse/${path}`, body);
    return path === "events" && body ? this.call(`events/${answer.event_id}`) : answer;
  }

  async ask(path, body) {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const headers = { ...this.headers, "Content-Type": "application/json" };
    const answer = await request(`${this.base}/api/v1/${path}`, { ...init, headers });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  open(more = {}) {
    return this.call("init", { claims: ["name", "dob", "photo"], channel: "web", ...more });
  }

  // Ends a transaction as the resident would, without a page.
  async answer(opened, action, resident = "asha") {
    const body = JSON.stringify({ intent: opened.intentJwt, resident, action });
    const headers = { "Content-Type": "application/json" };
    const answer = await request(`${this.base}/sandbox/app/answer`, { method: "POST", body, headers });
    if (!answer.ok) throw new Error(`answer: ${answer.status} ${await answer.text()}`);
  }

  // Registers a guest at an event.
  async attend({ qr_url: address }, resident = "asha") {
    const intent = await (await request(address, { headers: { Accept: "application/jwt" } })).text();
    await this.answer({ intentJwt: intent }, "approve", resident);
    return `${this.base}/v/${JSON.parse(Buffer.from(intent.split(".")[1], "base64url")).txn}`;
  }

  async patch({ event_id: event }, change) {
    const init = { method: "PATCH", headers: { ...this.headers, "Content-Type": "application/json" }, body: JSON.stringify(change) };
    const answer = await request(`${this.base}/api/v1/nationalid-ovse/events/${event}`, init);
    if (!answer.ok) throw new Error(`${event}: ${answer.status} ${await answer.text()}`);
  }

  // Sends a request as the operator, with the sandbox's own token.
  async operate(method, path, body) {
    const headers = { Authorization: "Bearer sandbox-admin-token-never-in-production", "Content-Type": "application/json" };
    const answer = await request(`${this.internal}/admin/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  // Revokes every key of every client.
  async revokeKeys() {
    for (const { client_id: client } of (await this.operate("GET", "clients")).clients) {
      for (const { key_id: key } of (await this.operate("GET", `clients/${client}/keys`)).keys) await this.operate("DELETE", `keys/${key}`);
    }
  }

  // Takes the first client's credits.
  async leaveNoCredits() {
    const [{ client_id: client }] = (await this.operate("GET", "clients")).clients;
    const { balance } = await this.operate("GET", `clients/${client}/credits`);
    await this.operate("POST", `clients/${client}/credits`, { kind: "adjust", amount: -balance, reference: "to the last one" });
  }

  async end(signal) {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const gone = once(this.process, "exit");
    this.process.kill(signal);
    await gone;
  }

  async stop() {
    await this.end("SIGTERM");
    await rm(this.directory, { recursive: true, force: true });
  }
}
