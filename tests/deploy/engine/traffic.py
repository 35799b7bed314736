"""Clients and guests that use the service without a break, their answers, and the comparison of both with the records.

Clients are the library of clients/python, which repeats requests as documented, with an Idempotency-Key."""

import collections
import contextlib
import os
import pathlib
import sys
import threading
import time
import uuid

from daemon import expect, until
from people import ask

CLAIMS = {"residentName": "Asha Rao", "gender": "F"}
ASKED = ["name", "gender"]
OVSE = "/api/v1/nationalid-ovse"
PLACES = 50_000
# Seconds from an answer to the next request of a client.
PAUSE_S = 0 if os.environ.get("SAKSHI_TESTS") == "long" else 0.1
ROOT = pathlib.Path(__file__).parents[3]


def import_library():
    sys.path.insert(0, str(ROOT / "clients/python"))
    from sakshi_client import Sakshi

    return Sakshi


class Traffic:
    """Runs three clients and one guest after another, each with a pause after each verification."""

    def __init__(self, base, key, app, identity_app, receiver, webhook):
        self.base, self.identity_app, self.receiver, self.webhook = base, identity_app, receiver, webhook
        self.phase, self.stopped, self.lock = "quiet", threading.Event(), threading.Lock()
        # Transactions that were opened, and those whose answer was accepted with 200, by opener.
        self.opened, self.taken = {"client": [], "guest": []}, {"client": [], "guest": []}
        # Failed requests: every attempt, and those that failed for good.
        self.attempts, self.lost, self.took = collections.Counter(), collections.Counter(), {}
        self.sakshi = self.count_failures(import_library())(base, key, app)
        self.threads, self.errors = [], []

    def count_failures(self, library):
        traffic = self

        class Counting(library):
            def _attempt(self, method, path, *rest):
                answer, pause = super()._attempt(method, path, *rest)
                if isinstance(answer, Exception):
                    traffic.failed(path.split("?")[0].split("/")[3:5][-1], answer.status)
                return answer, pause

        return Counting

    @contextlib.contextmanager
    def during(self, phase):
        """Counts failures under this name, and the seconds until everything is healthy again; then lets some more pass."""
        self.phase, began = phase, time.monotonic()
        yield
        self.took[phase] = time.monotonic() - began
        self.go_on()

    def failed(self, request, status):
        with self.lock:
            self.attempts[self.phase, request, status or "no answer"] += 1

    def expect_none_failed(self, phase, but=()):
        """Checks that no attempt failed, except requests that are not repeated because that may spend a credit twice."""
        failed = {key[1:]: count for key, count in self.attempts.items() if key[0] == phase and key[1] not in but}
        expect(not failed, f"{phase}: requests failed, {failed}")

    def gave_up(self, who):
        with self.lock:
            self.lost[self.phase, who] += 1

    def start(self):
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
        terms = {"name": "Rehearsal", "claims": ASKED, "max_guests": PLACES, "expires_at": end, "webhook_url": self.webhook}
        self.event = self.sakshi.create_event(terms)["event_id"]
        self.threads = [threading.Thread(target=self.repeat, args=(what,), daemon=True) for what in (self.verify, self.verify, self.verify, self.scan)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def repeat(self, step):
        try:
            while not self.stopped.wait(PAUSE_S):
                step()
        except Exception as error:
            self.errors.append(error)

    def go_on(self, verifications=10):
        """Waits for this many more answers."""
        goal = len(self.taken["client"]) + verifications
        until(lambda: f"clients get no answer: {self.attempts}", lambda: len(self.taken["client"]) >= goal or self.errors)

    def verify(self):
        terms = {"claims": ASKED, "channel": "qr", "webhook_url": self.webhook}
        try:
            opened = self.sakshi.open_verification(terms, idempotency_key=str(uuid.uuid4()))
        except Exception:
            return self.gave_up("init")
        self.opened["client"].append(opened["txnId"])
        self.answer("client", opened["txnId"], opened["intentJwt"])

    def scan(self):
        """Starts as a guest at the event's page, and requests the intent from the verify page as the identity app."""
        status, headers, _ = ask("POST", f"{self.base}/e/{self.event}/start", "", {"Sec-Fetch-Site": "same-origin"})
        if status != 303:
            self.failed("start", status)
            return self.gave_up("start")
        txn = headers["Location"].rsplit("/", 1)[1]
        self.opened["guest"].append(txn)
        for _ in range(8):
            status, _, intent = ask("GET", f"{self.base}/v/{txn}", None, {"Accept": "application/jwt"})
            if status == 200:
                return self.answer("guest", txn, intent)
            self.failed("intent", status)
            time.sleep(1)
        self.gave_up("intent")

    def answer(self, who, txn, intent):
        if self.identity_app.answer(intent, CLAIMS, self.failed) != 200:
            return self.gave_up("callback")
        self.taken[who].append(txn)

    def list_states(self):
        """Returns the state of every transaction, from the client's own list."""
        states, page = {}, f"{OVSE}/transactions?limit=100"
        while page:
            answer = self.sakshi.call("GET", page)
            states |= {row["txn_id"]: row["status"] for row in answer["transactions"]}
            page = answer.get("next")
        return states

    def judge(self, granted):
        """Compares the answers with the records."""
        opened, taken = ([txn for list in lists.values() for txn in list] for lists in (self.opened, self.taken))
        states = self.list_states()
        gone = [txn for txn in opened if txn not in states]
        expect(not gone, f"{len(gone)} of {len(opened)} transactions that were answered are gone")
        undone = [txn for txn in taken if states[txn] != "passed"]
        expect(not undone, f"{len(undone)} of {len(taken)} callbacks that were answered with 200 are not in the records")
        balance = self.sakshi.credits()["balance"]
        expect(balance == granted - len(states), f"{len(states)} transactions are listed, and of {granted} credits {balance} are left")
        # An init without an answer may have opened one. A guest who pressed the button again did not.
        unknown = sum(count for (_, who), count in self.lost.items() if who in ("init", "start"))
        expect(len(opened) <= len(states) <= len(opened) + unknown, f"{len(opened)} were opened, {unknown} are unknown, and {len(states)} are listed")
        guests = {row["txn_id"] for row in self.sakshi.guests(self.event)}
        expect(guests == set(self.taken["guest"]), f"{len(self.taken['guest'])} guests were answered, and {len(guests)} are registered")
        doubled = [txn for txn, count in self.receiver.arrived.items() if count > 1]
        expect(not doubled, f"webhooks of {len(doubled)} transactions came more than once")
        foreign = self.receiver.arrived.keys() - states.keys()
        expect(not foreign, f"{len(foreign)} webhooks are of no transaction")
        return [txn for txn in taken if txn not in self.receiver.arrived]

    def report(self):
        """Returns a line for each phase, with its failed requests."""
        yield f"{len(self.opened['client'])} verifications and {len(self.opened['guest'])} guests: nothing lost, no webhook twice"
        for phase, seconds in self.took.items():
            failed = [f"{count} {request} ({status})" for (when, request, status), count in sorted(self.attempts.items(), key=str) if when == phase]
            yield f"{phase}: healthy after {seconds:.1f} s; requests that failed at first: {', '.join(failed) or 'none'}"
        yield f"given up by clients: {dict(self.lost) or 'none'}"
