// A sakshi process of one's own: free ports, a fresh store, and a client that may call it.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export class Service {
  // `settings` are further SAKSHI__… variables.
  static async start(settings = {}) {
    const service = new Service();
    service.directory = await mkdtemp(join(tmpdir(), "sakshi-browser-"));
    const free = "127.0.0.1:0";
    service.process = spawn(process.env.SAKSHI_BIN, ["serve"], {
      cwd: service.directory,
      env: {
        SAKSHI__SERVER__PUBLIC_ADDR: free,
        SAKSHI__SERVER__INTERNAL_ADDR: free,
        SAKSHI__STORE__PATH: join(service.directory, "store"),
        RUST_LOG: "warn",
        ...settings,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    service.log = "";
    const [listening, key, app] = await Promise.race([
      Promise.all([
        service.line("stdout", /^(\{.*"listening".*\})$/),
        service.line("stderr", /X-API-KEY: (\S+)/),
        service.line("stderr", /X-API-APP-ID: (\S+)/),
      ]),
      once(service.process, "exit").then(() => { throw new Error(`the service ended at once:\n${service.log}`); }),
    ]);
    service.base = JSON.parse(listening).public;
    service.headers = { "X-API-KEY": key, "X-API-APP-ID": app };
    return service;
  }

  // Resolves with the first group of the first line that matches.
  line(from, pattern) {
    return new Promise((resolve) => {
      this[from] ??= createInterface({ input: this.process[from] }).on("line", (line) => { this.log += `${line}\n`; });
      this[from].on("line", (line) => { const found = pattern.exec(line); if (found) resolve(found[1]); });
    });
  }

  async call(path, body) {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const headers = { ...this.headers, "Content-Type": "application/json" };
    const answer = await fetch(`${this.base}/api/v1/nationalid-ovse/${path}`, { ...init, headers });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  open(more = {}) {
    return this.call("init", { claims: ["name", "dob", "photo"], channel: "web", ...more });
  }

  // Ends a transaction as the resident would, without a page.
  async answer(opened, action) {
    const body = JSON.stringify({ intent: opened.intentJwt, resident: "asha", action });
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`${this.base}/sandbox/app/answer`, { method: "POST", body, headers });
    if (!answer.ok) throw new Error(`answer: ${answer.status} ${await answer.text()}`);
  }

  async stop() {
    if (this.process.exitCode === null) {
      const gone = once(this.process, "exit");
      this.process.kill("SIGTERM");
      await gone;
    }
    await rm(this.directory, { recursive: true, force: true });
  }
}
