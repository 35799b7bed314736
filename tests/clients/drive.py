"""Drives the shops of examples/, which are made of the clients: plays the customer, the network between, and strangers who post to the
receiver.

    drive.py USUAL.env SHORT.env CAMEL.env NAME COMMAND...

The second service's verifications end after seconds; the third writes `txnId` instead of `txn_id`.

Each scenario has a shop and a network of its own, so that all of them run side by side. Every wait is for a condition.
SCENARIO=twice or SCENARIO=java runs only these.
"""

import http.client
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

PATIENCE_S = 60
SIDE_BY_SIDE = 8
HOP_BY_HOP = {"host", "connection", "upgrade", "http2-settings", "transfer-encoding", "content-length", "keep-alive"}
OVSE = "/api/v1/nationalid-ovse"
# Retries that a client saves up, attempts at one request, and requests that earn one retry: clients/README.md.
RETRIES, ATTEMPTS, REQUESTS_PER_RETRY = 50, 5, 10


def exchange(base, method, path, body=None, headers=None, patience=PATIENCE_S):
    """Sends one request; returns its status, headers and body."""
    url = urlsplit(base)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=patience)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


class Told:
    """A growing list whose readers can wait."""

    def __init__(self):
        self.items, self.changed = [], threading.Condition()

    def add(self, item):
        with self.changed:
            self.items.append(item)
            self.changed.notify_all()

    def wait_for(self, what, found, after=0, patience=PATIENCE_S):
        """Waits for the first item from index `after` that is `found`."""
        first = lambda: next((item for item in self.items[after:] if found(item)), None)
        with self.changed:
            assert self.changed.wait_for(lambda: first() is not None, patience), f"waited in vain for {what}"
            return first()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A killed shop does not read its answer."""

    def __init__(self, answer):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_all(self):
                answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

            do_GET = do_POST = do_PATCH = handle_all

            def log_message(self, *_):
                pass

            def reply(self, status, body=b"", headers=()):
                self.send_response(status)
                for name, value in [*headers, ("Content-Length", str(len(body)))]:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Network:
    """Stands between a program and the service, keeps what passed, and disturbs it.

    `disturb` is asked about each request and may return a status with headers, and a body that is not the service's, instead of the
    service's answer, "drop" to carry the request out and lose the answer, or a function that changes the answer's body.
    """

    def __init__(self, base, disturb=lambda request: None):
        self.base, self.disturb, self.passed, self.seen = base, disturb, Told(), Told()
        self.server = Server(self.answer)

    def answer(self, handler, body):
        url = urlsplit(handler.path)
        request = {"method": handler.command, "path": url.path, "query": parse_qs(url.query), "at": time.monotonic()}
        request |= {"url": handler.path, "once": handler.headers.get("Idempotency-Key"), "body": body}
        self.seen.add(request)
        done = self.disturb(request)
        if isinstance(done, tuple):
            status, headers, *page = done
            text = {"code": "disturbed", "message": "The network is disturbed.", "errorId": "0", "statusCode": status}
            return handler.reply(status, page[0] if page else json.dumps(text).encode(), headers)
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in HOP_BY_HOP}
        status, told, text = exchange(self.base, request["method"], request["url"], body or None, headers)
        read = json.loads(text)
        if callable(done):
            done(read)
        self.passed.add(request | {"status": status, "answer": read, "headers": {name.lower(): value for name, value in told}})
        if done == "drop":
            handler.close_connection = True
            return
        kept = [(name, value) for name, value in told if name.lower() not in HOP_BY_HOP]
        handler.reply(status, json.dumps(read).encode(), kept)

    def requests(self, ending):
        return [request for request in self.seen.items if request["path"].endswith(ending)]


class Shop:
    """An example that runs: its lines, and that it keeps its key to itself."""

    def __init__(self, command, service, base, orders=None, **settings):
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "PYENV_ROOT", "PYTHONPATH") if name in os.environ}
        self.directory = tempfile.TemporaryDirectory()
        self.orders = orders or os.path.join(self.directory.name, "orders.jsonl")
        env = kept | {"KEY": service["KEY"], "APP": service["APP"], "BASE": base, "ORDERS": self.orders} | settings
        self.key, self.lines, self.complaints = service["KEY"], Told(), Told()
        words = shlex.split(command)
        while "=" in words[0]:
            name, value = words.pop(0).split("=", 1)
            env[name] = value
        self.process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pipes = [(self.process.stdout, self.lines), (self.process.stderr, self.complaints)]
        self.readers = [threading.Thread(target=self.read, args=pipe, daemon=True) for pipe in pipes]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(pipe, told):
        for line in pipe:
            told.add(line.rstrip("\n"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(PATIENCE_S)
        if kind:
            said = [line[:300] for line in self.lines.items] + [f"stderr: {line[:300]}" for line in self.complaints.items]
            print("\n".join(["", *said]), file=sys.stderr)
        else:
            assert not any(self.key in line for line in self.lines.items + self.complaints.items), "it prints its key"

    def told(self, word):
        """Returns the rest of the line that begins with this word."""
        ended = lambda: self.process.poll() is not None and not any(reader.is_alive() for reader in self.readers)
        deadline = time.monotonic() + PATIENCE_S
        with self.lines.changed:
            while True:
                for line in self.lines.items:
                    if line.startswith(word + " "):
                        return line[len(word) + 1 :]
                assert not ended(), f"it ended without saying {word}"
                assert time.monotonic() < deadline, f"waited in vain for {word}"
                self.lines.changed.wait(0.2)

    def all_told(self, word):
        return [line[len(word) + 1 :] for line in self.lines.items if line.startswith(word + " ")]

    def get(self, path):
        return exchange(self.told("listening"), "GET", path)

    def order(self, reference, claims):
        """Presses the button as the customer; returns the status, and the page to which the browser is sent."""
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode({"reference": reference, "claims": claims})
        status, headers, _ = exchange(self.told("listening"), "POST", "/orders", body, form)
        return status, dict((name.lower(), value) for name, value in headers).get("location")

    def intent(self, service, reference, claims):
        """Places an order, and reads the identity app's data from its page."""
        status, page = self.order(reference, claims)
        assert status == 303, f"the order is answered with {status}"
        status, _, jwt = exchange(service["BASE"], "GET", urlsplit(page).path, None, {"Accept": "application/jwt"})
        assert status == 200, jwt
        return jwt.decode()


def answer(service, intent, action="approve", resident="asha"):
    """Answers in the identity app as the person."""
    body = json.dumps({"intent": intent, "resident": resident, "action": action})
    status, _, said = exchange(service["BASE"], "POST", "/sandbox/app/answer", body, {"Content-Type": "application/json"})
    assert status == 200 and json.loads(said)["callback"]["status"] == 200, said


def post(url, body):
    """Posts to a webhook address as anybody can; returns the status, or None if the connection was closed."""
    parts = urlsplit(url)
    try:
        return exchange(f"http://{parts.netloc}", "POST", parts.path, body, {"Content-Type": "application/json"})[0]
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException):
        return None


def is_result(request):
    return "/result/" in request["path"]


def passed(command, usual, *_):
    """approved, although an init is refused, another loses its answer, and the result is asked for too often"""
    tries = {"/init": [(503, [("Retry-After", "3")]), (503, [("Retry-After", "3")]), "drop"], "/result": [(429, [("Retry-After", "3")])]}

    def disturb(request):
        left = next((left for part, left in tries.items() if part in request["path"]), None)
        return left.pop(0) if left else None

    network = Network(usual["BASE"], disturb)
    with Shop(command, usual, network.server.url) as shop:
        assert b"Verify my age" in shop.get("/")[2], "the order page"
        answer(usual, shop.intent(usual, "order-1", "name dob"))
        assert shop.told("outcome") == "order-1 passed: dob, residentName", shop.all_told("outcome")
        assert b"Order order-1: passed" in shop.get("/orders/order-1")[2], "the return page"
    inits = network.requests("/init")
    assert len(inits) == 4 and inits[0]["once"], "an init is repeated until it is answered"
    assert all((init["once"], init["body"]) == (inits[0]["once"], inits[0]["body"]) for init in inits), "each time the same"
    opened = [request for request in network.passed.items if request["path"].endswith("/init")]
    assert opened[0]["answer"]["txnId"] == opened[1]["answer"]["txnId"], "one transaction was opened"
    asked = [request for request in network.seen.items if is_result(request)]
    pauses = [second["at"] - first["at"] for first, second in (inits[:2], inits[1:3], asked[:2])]
    assert min(pauses) >= 2.9, "it comes again before Retry-After"
    # Each is up to half as long again.
    assert max(pauses) > 3.05, "all clients come again at the same moment"
    terms = json.loads(inits[0]["body"])
    assert terms["client_reference_id"] == "order-1" and terms["redirect_url"].endswith("/orders/order-1"), terms


def declined(command, usual, *_):
    """declined, after strangers had posted that it had passed, and while results could not be fetched"""
    left = [(503, [("Retry-After", "0")])] * 5
    network = Network(usual["BASE"], lambda request: left.pop() if left and is_result(request) else None)
    with Shop(command, usual, network.server.url) as shop:
        intent, hook = shop.intent(usual, "order-2", "name"), shop.told("receiver")
        txn = shop.told("order").split(" ")[1]
        other = "11111111-1111-4111-8111-111111111111"
        claims = {"residentName": "Mallory Forged"}
        snake = {"pending": False, "verification_passed": True, "verified_claims": claims, "verified_at": "2026-01-01T00:00:00.000Z"}
        camel = {"pending": False, "verificationPassed": True, "verifiedClaims": claims, "verifiedAt": "2026-01-01T00:00:00.000Z"}
        forged = {"success": True, "statusCode": 200, "message": "Verification successful", "request_id": "forged"}
        nonsense = ["", "no JSON", "[]", "null", "7", "{}", '{"data":null}', '{"data":[]}', '{"data":{"txn_id":{"a":[]}}}', "[" * 200_000]
        misspelt = [json.dumps(forged | {"data": snake | {"txn_id": id}}) for id in (other, txn + "#1", txn + "?x=1", "../" + txn, "\ud800 \n")]
        for body in [*nonsense, *misspelt, "x" * 30_000_000]:
            assert post(hook, body) in (200, 400, 413, None), body[:100]
        post(hook, json.dumps(forged | {"data": snake | {"txn_id": txn}}))
        network.seen.wait_for("the attempts at a result", lambda _: not left)
        for data in (snake | {"txn_id": txn}, camel | {"txnId": txn}):
            asked = asked_for(network, hook, json.dumps(forged | {"data": data}))
            assert asked["answer"]["data"]["pending"], "the person has not answered yet"
        assert not shop.all_told("outcome"), "a stranger's webhook is believed"
        answer(usual, intent, "decline")
        assert shop.told("outcome") == "order-2 not passed: User Reject", shop.all_told("outcome")
    paths = {request["path"] for request in network.seen.items if is_result(request)}
    assert paths == {f"{OVSE}/result/{txn}"}, f"a stranger chooses what is fetched: {paths}"
    assert len(shop.all_told("outcome")) == 1


def asked_for(network, hook, body):
    """Posts until the result is requested: a post during another check is dropped."""
    known, deadline = len(network.passed.items), time.monotonic() + PATIENCE_S
    # A scheduled poll would wait longer.
    at_once = lambda request: is_result(request) and request["query"]["wait"] == ["0"]
    while True:
        assert post(hook, body) == 200, "a webhook is answered"
        try:
            return network.passed.wait_for("the result of a webhook's transaction", at_once, known, 2)
        except AssertionError:
            if time.monotonic() > deadline:
                raise


def twice(command, _usual, _short, camel):
    """one outcome, although the webhook comes four times and first with its id in upper case, for an app that has chosen camelCase"""
    came, open_again = Told(), threading.Event()
    relay = Server(lambda handler, body: (came.add(body), handler.reply(200)))
    network = Network(camel["BASE"], lambda request: is_result(request) and not open_again.wait(PATIENCE_S) or None)
    with Shop(command, camel, network.server.url, PUBLIC_URL=relay.url) as shop:
        answer(camel, shop.intent(camel, "order-3", "name"))
        body = came.wait_for("the webhook", lambda _: True)
        txn = json.loads(body)["data"]["txnId"]  # It is in camelCase.
        assert txn != txn.upper(), "a random id without a letter"
        assert post(shop.told("receiver"), body.replace(txn.encode(), txn.upper().encode())) == 200
        network.seen.wait_for("the result of the upper-case id", lambda request: is_result(request) and request["query"]["wait"] == ["0"])
        assert [post(shop.told("receiver"), body) for _ in range(3)] == [200] * 3, "a webhook is answered at once"
        assert not shop.all_told("outcome"), "an outcome is told before its result was fetched"
        open_again.set()
        assert shop.told("outcome") == "order-3 passed: residentName", shop.all_told("outcome")
    paths = {request["path"] for request in network.seen.items if is_result(request)}
    assert paths == {f"{OVSE}/result/{txn}"}, f"a webhook chooses the spelling of the id: {paths}"
    assert len(shop.all_told("outcome")) == 1, shop.all_told("outcome")
    assert len(came.items) == 1, "the service sends one webhook"


def never(command, usual, *_):
    """approved, although the webhook address cannot be reached: the poll is answered"""
    nobody = socket.socket()
    nobody.bind(("127.0.0.1", 0))  # Nobody listens there, and nobody else can.
    network = Network(usual["BASE"])
    url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    with Shop(command, usual, network.server.url, PUBLIC_URL=url) as shop:
        intent = shop.intent(usual, "order-4", "name")
        network.seen.wait_for("a poll", lambda request: is_result(request) and int(request["query"]["wait"][0]) > 0)
        answer(usual, intent)
        assert shop.told("outcome") == "order-4 passed: residentName", shop.all_told("outcome")
    assert json.loads(network.requests("/init")[0]["body"])["webhook_url"] == url + "/hooks/sakshi"


def expired(command, _usual, short, _camel):
    """expired, when the person does nothing"""
    network = Network(short["BASE"])
    with Shop(command, short, network.server.url) as shop:
        shop.intent(short, "order-5", "name")
        assert shop.told("outcome") == "order-5 expired", shop.all_told("outcome")
    assert any(request["status"] == 410 for request in network.passed.items if is_result(request))


def restarted(command, usual, *_):
    """killed twice: an opening whose answer was lost is paid once, and an answer that came meanwhile is found"""
    lost = threading.Event()

    def drop(request):
        if request["path"].endswith("/init"):
            lost.set()
            return "drop"
        return None

    cut, whole = Network(usual["BASE"], drop), Network(usual["BASE"])
    with Shop(command, usual, cut.server.url) as shop:
        shop.told("listening")
        threading.Thread(target=lambda: contextless(lambda: shop.order("order-8", "name")), daemon=True).start()
        assert lost.wait(PATIENCE_S)
        first = cut.passed.wait_for("the lost answer", lambda request: request["path"].endswith("/init"))
        orders = open(shop.orders, encoding="utf-8").read()
    with tempfile.TemporaryDirectory() as directory:
        kept = os.path.join(directory, "orders.jsonl")
        with open(kept, "w", encoding="utf-8") as file:
            file.write(orders)
        with Shop(command, usual, whole.server.url, orders=kept) as shop:
            txn = shop.told("order").split(" ")[1]
            again = whole.passed.wait_for("the same again", lambda request: request["path"].endswith("/init"))
        assert (again["once"], again["body"]) == (first["once"], first["body"]), "the opening is repeated with its key"
        assert txn == again["answer"]["txnId"] == first["answer"]["txnId"], "it was paid once"
        page = again["answer"]["requestUrl"]
        status, _, jwt = exchange(usual["BASE"], "GET", urlsplit(page).path, None, {"Accept": "application/jwt"})
        assert status == 200
        answer(usual, jwt.decode())
        with Shop(command, usual, whole.server.url, orders=kept) as shop:
            assert shop.told("outcome") == "order-8 passed: residentName", shop.all_told("outcome")
        with Shop(command, usual, whole.server.url, orders=kept) as shop:
            assert b"Order order-8: passed" in shop.get("/orders/order-8")[2], "the outcome is kept"
            assert not shop.all_told("outcome"), "it is told once"


def contextless(act):
    """The steps that the kill interrupts."""
    try:
        act()
    except (OSError, http.client.HTTPException, AssertionError):
        pass


def refused(command, usual, *_):
    """told to its developer in the service's words, when only the developer can correct it"""
    network = Network(usual["BASE"])
    with Shop(command, usual, network.server.url, PUBLIC_URL="http://user:password@127.0.0.1:9") as shop:
        assert shop.order("order-6", "name")[0] == 502
        assert shop.order("no spaces please", "name")[0] == 400
        refusal = network.passed.wait_for("the refusal", lambda request: request["path"].endswith("/init"))["answer"]
        words = ("validation_failed", "webhook_url", "400", refusal["errorId"])
        shop.complaints.wait_for("the words", lambda line: all(word in line for word in words))
    assert len(network.seen.items) == 1, "what is refused is asked for again"

    with socket.create_server(("127.0.0.1", 0)) as taken:
        shop = Shop(command, usual, network.server.url, PORT=str(taken.getsockname()[1]))
        assert shop.process.wait(PATIENCE_S) != 0, "it runs without its port"
    assert len(network.seen.items) == 1


def proxied(command, usual, *_):
    """approved after a proxy's page with 503; its page with 413 and its redirect are told to the developer with their status"""
    page, lured = b"<html>\r\n<title>nginx</title>\r\n</html>", Told()
    elsewhere = Server(lambda handler, _: (lured.add(handler.path), handler.reply(200, b"{}")))
    html = ("Content-Type", "text/html")
    tries = [(413, [html], page), (307, [html, ("Location", f"{elsewhere.url}{OVSE}/init")], page), (503, [html, ("Retry-After", "3")], page)]
    network = Network(usual["BASE"], lambda request: tries.pop(0) if tries and request["path"].endswith("/init") else None)
    with Shop(command, usual, network.server.url) as shop:
        for number, status in enumerate((413, 307)):
            assert shop.order(f"order-10-{number}", "name")[0] == 502
            shop.complaints.wait_for(f"the status {status}", lambda line: f"{status} unknown: status {status}" in line)
        assert len(network.requests("/init")) == 2, "a page with 413 or a redirect is asked for again"
        answer(usual, shop.intent(usual, "order-10-2", "name"))
        assert shop.told("outcome") == "order-10-2 passed: residentName", shop.all_told("outcome")
    first, second = network.requests("/init")[2:]
    assert first["once"] == second["once"] and second["at"] - first["at"] >= 2.9, "a page's Retry-After is not kept"
    assert not lured.items, "a redirect is followed with the key"


def outage(command, usual, *_):
    """refused, while the service is overloaded: the shop spends its retries, and then sends each request once"""
    orders = 40
    network = Network(usual["BASE"], lambda request: (503, [("Retry-After", "0")]))
    with Shop(command, usual, network.server.url) as shop:
        answers = [shop.order(f"order-9-{number}", "name")[0] for number in range(orders)]
    assert set(answers) == {502}, f"the customer is told {answers}"
    attempts = Counter(init["once"] for init in network.requests("/init"))
    assert len(attempts) == orders, "each order has a key of its own"
    assert max(attempts.values()) == ATTEMPTS, f"a client with retries left makes {max(attempts.values())} attempts"
    retries = attempts.total() - orders
    assert RETRIES <= retries <= RETRIES + orders // REQUESTS_PER_RETRY, f"{retries} retries for {orders} requests"


def event(command, usual, *_):
    """the guests of an event, on two pages; and an order whose button is pressed eight times at once is paid once"""

    def small_pages(request):
        if request["path"].endswith("/registrations"):
            request["url"] = re.sub("page_size=[0-9]+", "page_size=2", request["url"])

    network = Network(usual["BASE"], small_pages)
    headers = {"X-API-KEY": usual["KEY"], "X-API-APP-ID": usual["APP"], "Content-Type": "application/json"}
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3_600))
    terms = json.dumps({"name": "Open day", "claims": ["name"], "max_guests": 4, "expires_at": end})
    created = json.loads(exchange(usual["BASE"], "POST", f"{OVSE}/events", terms, headers)[2])
    guests = [("asha", "Asha Rao"), ("vikram", "Vikram Namuna"), ("meena", "Meena Mathiri")]
    for resident, _ in guests:
        path = urlsplit(created["qr_url"]).path
        status, _, intent = exchange(usual["BASE"], "GET", path, None, {"Accept": "application/jwt"})
        assert status == 200, f"the event does not take a guest: {intent}"
        answer(usual, intent.decode(), resident=resident)
    with Shop(command, usual, network.server.url) as shop:
        listed = json.loads(shop.get(f"/events/{created['event_id']}/guests")[2])
        with ThreadPoolExecutor(8) as threads:
            presses = list(threads.map(lambda _: shop.order("order-11", "name"), range(8)))
    assert listed == [name for _, name in guests], listed
    assert len(network.requests("/registrations")) == 2, "there were two pages"
    assert len(set(presses)) == 1 and presses[0][0] == 303, f"the presses lead to {presses}"
    assert len({init["once"] for init in network.requests("/init")}) == 1, "presses at once pay more than once"


SCENARIOS = [never, expired, restarted, passed, event, declined, twice, outage, refused, proxied]


def main(usual, short, camel, *programs):
    services = []
    for file in (usual, short, camel):
        with open(file, encoding="utf-8") as lines:
            services.append(dict(re.findall(r"(\w+)='([^']*)'", lines.read())))
    commands = dict(zip(programs[::2], programs[1::2]))
    failed = []
    only = os.environ.get("SCENARIO")
    if only not in (None, *commands, *(scenario.__name__ for scenario in SCENARIOS)):
        sys.exit(f"no scenario and no program is named {only}")

    def run(language, scenario):
        begun = time.monotonic()
        try:
            scenario(commands[language], *services)
            print(f"ok       {language}: {scenario.__doc__} ({time.monotonic() - begun:.0f} s)", flush=True)
        except Exception as error:
            failed.append(language)
            print(f"FAILED   {language}: {scenario.__doc__}: {type(error).__name__}: {error}", flush=True)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        for scenario in SCENARIOS:
            for language in commands:
                if only in (None, scenario.__name__, language):
                    threads.submit(run, language, scenario)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
