"""What the shops of examples/ do not reach in the Python client: odd spellings of ids, slow responses, odd addresses, many webhooks."""

import asyncio
import io
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from sakshi_client import Arrival, Receiver, Sakshi, SakshiError, Verdict
from sakshi_client import fastapi as fastapi_receiver
from sakshi_client.receiver import WAITING_MAX
from starlette.requests import Request

TXN = "ca3d0000-0000-4000-8000-00000000000a"
ODD = "a/../b?c#d \n\u00e9"
paths: list[str] = []
idempotency_keys: list[str | None] = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        paths.append(self.path)
        if not self.path.endswith("/credits"):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")
            return
        try:  # A response that never ends.
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b" ")
                time.sleep(0.05)
        except OSError:
            pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        idempotency_keys.append(self.headers.get("Idempotency-Key"))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


class Service:
    """Answers each id with a verdict."""

    def __init__(self, fetched: str) -> None:
        self.fetched, self.asked = fetched, []

    def verdict(self, txn_id: str) -> Verdict:
        self.asked.append(txn_id)
        return Verdict("passed", self.fetched, "")


def taken(service: Service, *ids: str) -> list[str]:
    """Posts webhooks to a receiver that waits for every id; returns the keys under which it stores."""
    keys: list[str] = []
    errors: list[Exception] = []

    def store(arrival: Arrival) -> None:
        keys.append(arrival.key)

    receiver = Receiver(service, is_open=lambda kind, id: True, on_outcome=store, on_error=errors.append)
    for id in ids:
        receiver.take({"data": {"txn_id": id, "pending": False}})
    assert not errors, errors
    return keys


service = Service(TXN)
assert taken(service, TXN.upper(), TXN + "#1", TXN + "?a", TXN + "\n", "..", "") == [TXN]
assert service.asked == [TXN], service.asked
assert taken(Service("00000000-0000-4000-8000-000000000000"), TXN) == [], "the record of another verification"

# One key for each change of each consent.
changes: list[str] = []
consents = Receiver(Service(""), is_open=lambda kind, id: True, on_outcome=lambda arrival: changes.append(arrival.key))
for consent in ({"consentId": "c-1"}, {"consentId": "c-2"}, {}, {"consentId": ""}):
    consents.take({"uniqueIdentifier": "u-1", "status": "Expiring Soon"} | consent)
assert changes == ["u-1 c-1 Expiring Soon", "u-1 c-2 Expiring Soon"], changes

# Webhooks that wait are few.
settings.configure()
django.setup()
from sakshi_client import django as django_receiver  # noqa: E402

decided = threading.Event()
WEBHOOK = json.dumps({"data": {"txn_id": TXN}}).encode()
busy = Receiver(Service(TXN), is_open=lambda kind, id: not decided.wait(60), on_outcome=lambda arrival: None)
view, endpoint = django_receiver.webhooks(busy), fastapi_receiver.webhooks(busy).routes[0].endpoint


def posted_to_django() -> int:
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/", "CONTENT_LENGTH": str(len(WEBHOOK)), "wsgi.input": io.BytesIO(WEBHOOK)}
    return view(WSGIRequest(environ)).status_code


async def body() -> dict[str, object]:
    return {"type": "http.request", "body": WEBHOOK, "more_body": False}


def posted_to_fastapi() -> int:
    return asyncio.run(endpoint(Request({"type": "http", "method": "POST", "headers": []}, body))).status_code


statuses = [posted_to_django() for _ in range(WAITING_MAX - 1)] + [posted_to_fastapi()]
assert statuses == [200] * WAITING_MAX, statuses
assert (posted_to_django(), posted_to_fastapi()) == (503, 503), "webhooks wait without a bound"
decided.set()
deadline = time.monotonic() + 60
while posted_to_django() != 200:
    assert time.monotonic() < deadline, "a webhook that was taken keeps its place"

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}"
sakshi = Sakshi(base, "key", "app", attempts=1)
sakshi.event(ODD)
assert paths == ["/api/v1/nationalid-ovse/events/a%2F..%2Fb%3Fc%23d%20%0A%C3%A9"], paths
sakshi.call("POST", "/orders", {}, idempotency_key="")
assert idempotency_keys == [""], "a request that may be repeated lacks its key"
addresses: list[tuple[str, int]] = []


def unreachable(address: tuple[str, int], *_: object) -> None:
    addresses.append(address)
    raise OSError("unreachable")


with mock.patch("socket.create_connection", unreachable):
    for base in ("http://[2001:db8::1]", "http://[2001:db8::1]:8080/"):
        try:
            Sakshi(base, "key", "app", attempts=1).credits()
        except SakshiError as error:
            assert error.status == 0, error
assert addresses == [("2001:db8::1", 80), ("2001:db8::1", 8080)], addresses
begun = time.monotonic()
try:
    Sakshi(base, "key", "app", attempts=1, timeout_s=0.4).credits()
    raise AssertionError("a response that never ends is read")
except SakshiError as error:
    assert (error.status, error.code) == (0, "no_answer"), error
assert time.monotonic() - begun < 60
print("ok       clients: units in Python")
