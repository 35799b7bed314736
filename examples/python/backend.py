"""A client's backend: `verify` verifies a person by QR code, `event` registers guests. README.md says how to run it."""

import http.client
import json
import os
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

OVSE = "/api/v1/nationalid-ovse"
ATTEMPTS = 5  # Of one request, where repeating it can help.
REPEATABLE = {0, 429, 500, 502, 503, 504}  # 0: no answer.
QUIET_S, WAIT_S = 10, 20  # So long a webhook may take before the result is polled, and a poll.
GRACE = timedelta(minutes=1)  # After expiresAt, for the service to say how it ended.


class Failure(Exception):
    """The service refused a request, or did not answer."""

    def __init__(self, request, status, body):
        fields = [f"\n  {wrong.get('field')} {wrong.get('message')}" for wrong in body.get("errors", [])]
        told = f"{body.get('code')}: {body.get('message')}{''.join(fields)}\n  errorId {body.get('errorId')}"
        super().__init__(f"{request}: {status} {told}" if status else f"{request}: no answer, {body['message']}")
        self.status = status


class Service:
    def __init__(self, base, key, app):
        self.base = urlsplit(base)
        self.headers = {"X-API-KEY": key, "X-API-APP-ID": app, "Content-Type": "application/json"}

    def call(self, method, path, body=None, once=None, wait=0):
        """Repeats what may succeed later. `once` is the Idempotency-Key of what costs a credit: however often it is sent,
        it is carried out and charged once. The other requests of this program do no harm when they are sent twice."""
        headers = self.headers | ({"Idempotency-Key": once} if once else {})
        kind = http.client.HTTPSConnection if self.base.scheme == "https" else http.client.HTTPConnection
        for attempt in range(ATTEMPTS):
            connection = kind(self.base.hostname, self.base.port, timeout=wait + 10)
            try:
                connection.request(method, path, json.dumps(body) if body else None, headers)
                answer = connection.getresponse()  # A redirect is not followed: the key goes nowhere else.
                status, pause, read = answer.status, answer.getheader("Retry-After", ""), dict(json.load(answer))
            except (OSError, http.client.HTTPException, ValueError, TypeError) as error:
                status, pause, read = 0, "", {"message": f"{type(error).__name__} {error}"}
            finally:
                connection.close()
            if 200 <= status < 300:
                return read
            if status not in REPEATABLE or attempt + 1 == ATTEMPTS:
                raise Failure(f"{method} {path}", status, read)
            time.sleep(int(pause) if pause.isdecimal() else 2**attempt)


def receiver(port, hints):
    """Anybody can post here. So a webhook is only a hint that the result of its transaction is worth fetching."""

    class Receiver(BaseHTTPRequestHandler):
        timeout = 10  # Seconds for a sender that sends nothing.

        def do_POST(self):
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or len(length) > 7:  # A photo makes a webhook large, but not 10 MB.
                return self.send_error(413)
            body = self.rfile.read(int(length))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()
            try:
                data = json.loads(body)["data"]
                hints[data.get("txn_id", data.get("txnId"))].set()
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                pass  # Not about a transaction that waits here.

    server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)  # In production behind a proxy with TLS.
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def outcome(service, txn, wait):
    """What became of a transaction, as the service says when it is asked with our key. None: nothing yet."""
    try:
        data = service.call("GET", f"{OVSE}/result/{txn}?wait={wait}", wait=wait)["data"]
    except Failure as failure:
        if failure.status == 410:
            return "expired"
        if failure.status not in REPEATABLE:
            raise
        return print(failure, file=sys.stderr)
    if data["pending"]:
        return None
    passed = data["verification_passed" if "verification_passed" in data else "verificationPassed"]  # A setting of the app.
    claims = data["verified_claims" if "verified_claims" in data else "verifiedClaims"]
    return f"passed: {', '.join(sorted(claims))}" if passed is True else f"not passed: {data['message']}"


def verify(service, reference, claims):
    hints = {}  # By transaction. In production a table, which also takes the outcome: one for each transaction.
    port = receiver(int(os.environ.get("PORT", "0")), hints)
    webhook_url = os.environ.get("PUBLIC_URL", f"http://127.0.0.1:{port}") + "/hook"
    terms = {"claims": claims, "channel": "qr", "client_reference_id": reference, "webhook_url": webhook_url}
    opened = service.call("POST", f"{OVSE}/init", terms, once=os.urandom(16).hex())
    txn, end = opened["txnId"], datetime.fromisoformat(opened["expiresAt"]) + GRACE
    hint = hints[txn] = threading.Event()
    print(f"receiver http://127.0.0.1:{port}/hook\ntxn {txn}")
    print(f"qr {service.call('POST', f'{OVSE}/qr-intent', {'txnId': txn})['qrPayload']}")
    while datetime.now(timezone.utc) < end:
        hinted = hint.wait(QUIET_S)
        hint.clear()
        if found := outcome(service, txn, 0 if hinted else WAIT_S):
            return print(f"outcome {reference} {found}")
    sys.exit(f"{reference}: no outcome yet; fetch the result of {txn} later")


def event(service, name, places, guests):
    end = (datetime.now(timezone.utc) + timedelta(hours=8)).isoformat()
    terms = {"name": name, "claims": ["name"], "max_guests": places, "expires_at": end}
    created = service.call("POST", f"{OVSE}/events", terms, once=os.urandom(16).hex())
    path = f"{OVSE}/events/{created['event_id']}"
    print(f"event {created['event_id']}\nqr_url {created['qr_url']}")
    while (now := service.call("GET", path))["registration_count"] < guests and now["status"] == "active":
        time.sleep(2)
    service.call("PATCH", path, {"is_active": False})  # Before the list, so that it is complete.
    page = f"{path}/registrations?page_size=100"
    while page:
        listed = service.call("GET", page)
        for guest in listed["registrations"]:
            print(f"guest {guest['verified_at']} {guest['verified_claims']['residentName']}")
        page = listed.get("next")  # Absent on the last page.


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    base, key, app = (os.environ.get(name) or sys.exit(f"{name} is not set") for name in ("BASE", "KEY", "APP"))
    try:
        match sys.argv[1:]:
            case ["verify", reference, *claims] if claims:
                verify(Service(base, key, app), reference, claims)
            case ["event", name, places, guests] if places.isdecimal() and guests.isdecimal():
                event(Service(base, key, app), name, int(places), int(guests))
            case _:
                sys.exit("usage: backend.py verify REFERENCE CLAIM... | event NAME PLACES GUESTS")
    except (Failure, OSError, LookupError, TypeError) as failure:
        sys.exit(f"stopped: {failure if isinstance(failure, (Failure, OSError)) else f'an answer without {failure}'}")
