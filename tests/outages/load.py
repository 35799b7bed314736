"""Steady load, and its judges. Two clients at once: sakshi-load's guests, who repeat nothing but callbacks, judged by its judge;
and backends that repeat as docs/guides/errors.md says, with an Idempotency-Key, whose journal is compared here with results, ledger and
webhooks. Both refused requests and the longest gap are counted; neither is a fault of its own."""

import base64
import contextlib
import http.server
import json
import signal
import subprocess
import threading
import time
import uuid

from machines import WORK, Broken, end, until
from services import ADMIN, HUB, LOADER, ask

INIT = "/api/v1/nationalid-ovse/init"
RESULT = "/api/v1/nationalid-ovse/result/"
HOOKS = 9000
CREDITS = 1_000_000
BACKENDS = 4
# Guests per second, and seconds of a backend between two transactions.
RATE, PAUSE = 8, 0.15
# Seconds within which a retrying backend must get its answer after the fault is over.
PATIENCE = 60
REPORTED = "each outcome is reported by a webhook"


class Webhooks:
    """Receives webhooks, and counts them by transaction."""

    def __init__(self):
        self.arrived, lock = {}, threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
                with lock:
                    txn = body["data"]["txn_id"]
                    self.arrived[txn] = self.arrived.get(txn, 0) + 1
                handler.send_response(200)
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            def log_message(handler, *words):
                pass

        self.server = http.server.ThreadingHTTPServer((HUB, HOOKS), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Transaction:
    def __init__(self):
        self.key, self.host, self.txn, self.declined, self.finished = str(uuid.uuid4()), None, None, False, False


class Backends:
    """Clients that open a transaction, let its person decline, and read the result; each step until it is answered."""

    def __init__(self, public, internal):
        self.public, self.internal, self.hooks, self.hosts = public, internal, Webhooks(), ["hooks.example.test"]
        self.lock, self.gate, self.under_way, self.stopped = threading.Lock(), threading.Lock(), 0, False
        self.hurry = threading.Event()
        self.all, self.left, self.answers, self.refusals, self.wrong, self.codes = [], [], [], [], [], {}
        made = lambda path, body: self.operator("POST", f"/admin/v1/clients{path}", body)
        self.client = made("", {"name": "Outage"})["client_id"]
        app, key = made(f"/{self.client}/apps", {"name": "Outage"})["app_id"], made(f"/{self.client}/keys", {"label": "outage"})["api_key"]
        made(f"/{self.client}/credits", {"kind": "grant", "amount": CREDITS, "reference": "outage"})
        self.headers = {"X-API-KEY": key, "X-API-APP-ID": app}
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(BACKENDS)]

    def operator(self, method, path, body=None):
        status, _, answer = ask(self.internal, method, path, body, ADMIN)
        if status != 200:
            raise OSError(f"{path} is answered with {status} {answer}")
        return answer

    def start(self):
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()

    def work(self):
        while not self.stopped:
            with self.gate, self.lock:
                self.under_way += 1
            transaction = Transaction()
            with self.lock:
                self.all.append(transaction)
            self.carry_through(transaction)
            with self.lock:
                self.under_way -= 1
            time.sleep(PAUSE)

    @contextlib.contextmanager
    def quiet(self):
        """Pauses the requests."""
        with self.gate:
            until("no transaction is under way", lambda: self.under_way == 0, PATIENCE)
            yield

    def opening(self, it):
        it.host = it.host or self.hosts[len(self.all) % len(self.hosts)]
        terms = {"claims": ["name"], "channel": "qr", "webhook_url": f"http://{it.host}:{HOOKS}/"}
        return "POST", INIT, terms, {**self.headers, "Idempotency-Key": it.key}

    def carry_through(self, it, opened=None):
        opened = opened or self.until_answered(*self.opening(it))
        if not opened:
            return
        part = opened["intentJwt"].split(".")[1]
        intent = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        it.txn, cb = opened["txnId"], "/" + intent["cb"].split("/", 3)[3]
        declined = {"txn": intent["txn"], "errCode": "301", "errInfo": "User Reject"}
        it.declined = self.until_answered("POST", cb, declined, {}) is not None
        it.finished = it.declined and self.until_answered("GET", RESULT + it.txn, None, self.headers) is not None

    def try_one(self):
        """Opens one more transaction at once; returns the code of a refusal. It is completed at the end."""
        it = Transaction()
        with self.lock:
            self.all.append(it)
        try:
            status, _, content = ask(self.public, *self.opening(it))
        except OSError:
            status, content = 0, {}
        self.left.append((it, content if status == 200 else None))
        return None if status == 200 else content.get("code", "no answer")

    def try_until_refused(self, codes, count):
        """Waits for `count` refusals in a row with one of these codes."""
        row, seen, end = 0, set(), time.monotonic() + 90
        while row < count:
            found = self.try_one()
            row = row + 1 if found in codes else 0
            seen.add(found)
            if time.monotonic() > end:
                raise Broken(f"{count} requests in a row were to be refused with {' or '.join(codes)}, and these came: {seen}")

    def try_until_answered(self, count):
        until(f"{count} requests are answered", lambda: self.try_one() is None, 60)
        for _ in range(count):
            if found := self.try_one():
                raise Broken(f"requests were answered again, and then one is refused with {found}")

    def until_answered(self, method, path, body, headers):
        """Retries unanswered requests after Retry-After; any answer but a success or a request to retry is wrong."""
        while True:
            try:
                status, answered, content = ask(self.public, method, path, body, headers)
            except OSError:
                status, answered, content = 0, {}, {}
            now = time.monotonic()
            with self.lock:
                if status == 200:
                    self.answers.append(now)
                    return content
                code = content.get("code", "no answer")
                self.refusals.append(now)
                self.codes[code] = self.codes.get(code, 0) + 1
                if status and status < 500 and status != 429:
                    self.wrong.append(f"{method} {path.split('?')[0]} was answered with {status} {content}")
                    return None
                if self.stopped and now - self.stopped > PATIENCE:
                    self.wrong.append(f"{method} {path} got no answer within {PATIENCE} s: {status} {content}")
                    return None
            # At the end no wait is longer than necessary.
            self.hurry.wait(float(answered.get("Retry-After", 1)))
            time.sleep(0.05)

    def more(self, count, seconds=60):
        """Waits for `count` more answers."""
        goal = len(self.answers) + count
        until(f"{count} more requests are answered", lambda: len(self.answers) >= goal, seconds)

    def refused_with(self, code, count, seconds=60):
        goal = self.codes.get(code, 0) + count
        until(f"{count} requests are refused with {code}; {self.codes}", lambda: self.codes.get(code, 0) >= goal, seconds)

    def stop(self):
        self.hurry.set()
        for it, opened in self.left:
            self.carry_through(it, opened)
        self.stopped = time.monotonic()
        for thread in self.threads:
            thread.join(PATIENCE + 15)

    def close(self):
        self.hooks.server.shutdown()
        self.hooks.server.server_close()

    def gap(self):
        times = sorted(self.answers)
        return max((after - before for before, after in zip(times, times[1:])), default=0)

    def ledger(self):
        entries, page = [], 1
        while True:
            found = self.operator("GET", f"/admin/v1/clients/{self.client}/statement?page={page}&page_size=100")
            entries += found["entries"]
            if not found.get("next"):
                return entries
            page += 1

    def outcome(self, txn):
        attempt = self.operator("GET", f"/admin/v1/transactions/{txn}/delivery")["attempt"]
        return attempt and attempt["outcome"]

    def judge(self, excused=()):
        """Returns losses, duplicates, and the number of missing webhooks; excused outcomes explain one of these."""
        opened = [it for it in self.all if it.txn]
        lost = []
        for it in opened:
            status, _, content = ask(self.public, "GET", RESULT + it.txn, None, self.headers)
            data = content.get("data", {})
            if status != 200 or (it.declined and data.get("error_code") != "301"):
                lost.append(f"{it.txn} is {status} {content}")
        debits = [entry["reference"] for entry in self.ledger() if entry["kind"] == "debit"]
        known = {it.txn for it in opened}
        doubled = [f"{txn} is debited twice" for txn in known if debits.count(txn) > 1]
        doubled += [f"{txn} is debited and was never answered" for txn in set(debits) - known if len(opened) == len(self.all)]
        lost += [f"{txn} is not debited" for txn in known - set(debits)]
        owed = [it.txn for it in opened if it.declined]
        came = lambda: all(txn in self.hooks.arrived or self.outcome(txn) in excused for txn in owed)
        try:
            until("every webhook comes", came, 45)
        except Broken:
            pass
        doubled += [f"{txn} got {count} webhooks" for txn, count in self.hooks.arrived.items() if count > 1]
        silent = [txn for txn in owed if txn not in self.hooks.arrived]
        lost += [f"the webhook of {txn} never came: {self.outcome(txn)}" for txn in silent if self.outcome(txn) not in excused]
        return lost + self.wrong, doubled, len(silent)


class Guests:
    """A run of sakshi-load, until it is stopped."""

    def __init__(self, machine, public, internal):
        self.report = WORK / "load.json"
        self.report.unlink(missing_ok=True)
        (WORK / "load.log").unlink(missing_ok=True)
        self.process = machine.start([
            LOADER, "kiosk", "--rate", RATE, "--guests", 20_000, "--base", f"http://{public}", "--internal", f"http://{internal}",
            "--issuer-key", WORK / "store/sandbox-keys/issuer.p8", "--webhook-host", machine.address, "--timeout", 10, "--late", 120,
            "--json", self.report, "--i-own-this-target",
        ], "load", env={"NO_PROXY": "*"})

    def present(self):
        """Returns the number of completed transactions."""
        lines = (WORK / "load.log").read_text().splitlines()
        return int(lines[-1].split(" transactions, ")[1].split()[0]) if lines and " transactions, " in lines[-1] else 0

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(150)
        except subprocess.TimeoutExpired:
            end(self.process)
            raise Broken("sakshi-load does not end") from None
        if not self.report.exists():
            raise Broken(f"sakshi-load ended with {code}: {(WORK / 'load.log').read_text()[-600:]}")
        return Judged(json.loads(self.report.read_text()))


class Judged:
    """The verdict of sakshi-load."""

    def __init__(self, report):
        self.transactions = report["guests"]["completed"] + report["guests"]["declined"]
        outcomes = [outcome for step in report["steps"] for outcome in step["outcomes"]]
        self.requests = sum(count for _, count in outcomes)
        self.refused = sum(count for outcome, count in outcomes if outcome not in ("200", "303"))
        self.broken = [finding for finding in report["findings"] if not finding["held"]]

    def sentences(self, excused):
        """Returns the broken rules, with examples. Excused outcomes explain a missing webhook."""
        named = lambda example: any(f'"outcome":"{outcome}"' in example for outcome in excused)
        left = [(it, [example for example in it["examples"] if not (named(example) and it["rule"] == REPORTED)]) for it in self.broken]
        return [f"{it['rule']}: {it['figures']}; {'; '.join(examples[:2])}" for it, examples in left if examples]
