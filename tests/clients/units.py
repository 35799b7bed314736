"""What the shops of examples/ do not reach in the Python client: odd spellings of ids, slow responses, odd paths."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sakshi_client import Arrival, Receiver, Sakshi, SakshiError, Verdict

TXN = "ca3d0000-0000-4000-8000-00000000000a"
ODD = "a/../b?c#d \n\u00e9"
paths: list[str] = []


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

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}"
Sakshi(base, "key", "app", attempts=1).event(ODD)
assert paths == ["/api/v1/nationalid-ovse/events/a%2F..%2Fb%3Fc%23d%20%0A%C3%A9"], paths
begun = time.monotonic()
try:
    Sakshi(base, "key", "app", attempts=1, timeout_s=0.4).credits()
    raise AssertionError("a response that never ends is read")
except SakshiError as error:
    assert (error.status, error.code) == (0, "no_answer"), error
assert time.monotonic() - begun < 60
print("ok       clients: units in Python")
