"""Drives the backends of examples/: plays the person who scans, the network between, and strangers who post to the webhook.

    drive.py USUAL.env SHORT.env CAMEL.env NAME COMMAND...

The second service's verifications end after seconds; the third writes `txnId` instead of `txn_id`.

Each scenario has a program and a network of its own, so that all of them run side by side. Every wait is for a condition.
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
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PATIENCE_S = 60
SIDE_BY_SIDE = 8
HOP_BY_HOP = {"host", "connection", "upgrade", "http2-settings", "transfer-encoding", "content-length", "keep-alive"}
OVSE = "/api/v1/nationalid-ovse"


def exchange(base, method, path, body=None, headers=None, patience=PATIENCE_S):
    """One request; its status, headers and body."""
    url = urlsplit(base)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=patience)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


class Told:
    """A growing list that others wait on."""

    def __init__(self):
        self.items, self.changed = [], threading.Condition()

    def add(self, item):
        with self.changed:
            self.items.append(item)
            self.changed.notify_all()

    def wait_for(self, what, found, after=0):
        """The first item from index `after` that is `found`."""
        first = lambda: next((item for item in self.items[after:] if found(item)), None)
        with self.changed:
            assert self.changed.wait_for(lambda: first() is not None, PATIENCE_S), f"waited in vain for {what}"
            return first()


class Server(ThreadingHTTPServer):
    daemon_threads = True

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

    `disturb` is asked about each request and may return a status with headers instead of the service's answer, "drop" to carry
    the request out and lose the answer, or a function that changes the answer's body.
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
            status, headers = done
            text = {"code": "disturbed", "message": "The network is disturbed.", "errorId": "0", "statusCode": status}
            return handler.reply(status, json.dumps(text).encode(), headers)
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


class Program:
    """An example that runs: its lines, its end, and that it keeps its key to itself."""

    def __init__(self, command, service, base, *arguments, **settings):
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "PYENV_ROOT") if name in os.environ}
        env = kept | {"KEY": service["KEY"], "APP": service["APP"], "BASE": base} | settings
        self.key, self.lines, self.complaints = service["KEY"], Told(), Told()
        words = [*shlex.split(command), *arguments]
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
        if kind:
            said = [line[:300] for line in self.lines.items] + [f"stderr: {line[:300]}" for line in self.complaints.items]
            print("\n".join(["", *said]), file=sys.stderr)

    def told(self, word):
        """The rest of the line that begins with this word."""
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

    def ends(self, code=0):
        ended = self.process.wait(PATIENCE_S)
        for reader in self.readers:
            reader.join(PATIENCE_S)
        assert ended == code, f"it ended with {ended}"
        assert not any(self.key in line for line in self.lines.items + self.complaints.items), "it prints its key"


def answer(service, intent, action="approve", resident="asha"):
    """The person answers in the identity app."""
    body = json.dumps({"intent": intent, "resident": resident, "action": action})
    status, _, said = exchange(service["BASE"], "POST", "/sandbox/app/answer", body, {"Content-Type": "application/json"})
    assert status == 200 and json.loads(said)["callback"]["status"] == 200, said


def post(url, body):
    """Anybody posts to a webhook address; the status, or None when the connection was closed."""
    parts = urlsplit(url)
    try:
        return exchange(f"http://{parts.netloc}", "POST", parts.path, body, {"Content-Type": "application/json"}, 20)[0]
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException):
        return None


def is_result(request):
    return "/result/" in request["path"]


def passed(command, usual, *_):
    """approved, although an init is refused, another loses its answer, and qr-intent is asked too often"""
    tries = {"/init": [(503, [("Retry-After", "3")]), "drop"], "/qr-intent": [(429, [("Retry-After", "3")])]}

    def disturb(request):
        left = next((left for ending, left in tries.items() if request["path"].endswith(ending)), None)
        return left.pop(0) if left else None

    network = Network(usual["BASE"], disturb)
    with Program(command, usual, network.server.url, "verify", "order-1", "name", "dob") as program:
        answer(usual, program.told("qr"))
        assert program.told("outcome") == "order-1 passed: dob, residentName", program.all_told("outcome")
        program.ends()
    inits = network.requests("/init")
    assert len(inits) == 3 and inits[0]["once"], "an init is repeated until it is answered"
    assert all((init["once"], init["body"]) == (inits[0]["once"], inits[0]["body"]) for init in inits), "each time the same"
    opened = [request for request in network.passed.items if request["path"].endswith("/init")]
    assert opened[0]["answer"]["txnId"] == opened[1]["answer"]["txnId"], "one transaction was opened"
    asked = network.requests("/qr-intent")
    for first, second in (inits[:2], asked):
        assert second["at"] - first["at"] >= 2.9, "it comes again before Retry-After"
    assert json.loads(inits[0]["body"])["client_reference_id"] == "order-1"


def declined(command, usual, *_):
    """declined, after strangers had posted that it had passed, and while results could not be fetched"""
    left = [(503, [("Retry-After", "0")])] * 5
    network = Network(usual["BASE"], lambda request: left.pop() if left and is_result(request) else None)
    with Program(command, usual, network.server.url, "verify", "order-2", "name") as program:
        intent, txn, hook = program.told("qr"), program.told("txn"), program.told("receiver")
        other = "11111111-1111-4111-8111-111111111111"
        claims = {"residentName": "Mallory Forged"}
        snake = {"pending": False, "verification_passed": True, "verified_claims": claims, "verified_at": "2026-01-01T00:00:00.000Z"}
        camel = {"pending": False, "verificationPassed": True, "verifiedClaims": claims, "verifiedAt": "2026-01-01T00:00:00.000Z"}
        forged = {"success": True, "statusCode": 200, "message": "Verification successful", "request_id": "forged"}
        nonsense = ["", "no JSON", "[]", "null", "7", "{}", '{"data":null}', '{"data":[]}', '{"data":{"txn_id":{"a":[]}}}', "[" * 200_000]
        for body in [*nonsense, json.dumps(forged | {"data": snake | {"txn_id": other}}), "x" * 12_000_000]:
            post(hook, body)
        post(hook, json.dumps(forged | {"data": snake | {"txn_id": txn}}))
        network.seen.wait_for("the attempts at a result", lambda _: not left)
        for data in (snake | {"txn_id": txn}, camel | {"txnId": txn}):
            known = len(network.passed.items)
            assert post(hook, json.dumps(forged | {"data": data})) == 200, "a webhook is answered"
            # A poll by the clock would have a longer wait.
            at_once = lambda request: is_result(request) and request["query"]["wait"] == ["0"]
            asked = network.passed.wait_for("the result of a webhook's transaction", at_once, known)
            assert asked["answer"]["data"]["pending"], "the person has not answered yet"
        assert not program.all_told("outcome"), "a stranger's webhook is believed"
        answer(usual, intent, "decline")
        assert program.told("outcome") == "order-2 not passed: User Reject", program.all_told("outcome")
        program.ends()
    assert not network.requests(other), "a stranger chooses what is fetched"
    assert len(program.all_told("outcome")) == 1


def twice(command, _usual, _short, camel):
    """one outcome, although the webhook comes three times, for an app that has chosen camelCase"""
    came, open_again = Told(), threading.Event()
    relay = Server(lambda handler, body: (came.add(body), handler.reply(200)))
    network = Network(camel["BASE"], lambda request: is_result(request) and not open_again.wait(PATIENCE_S) or None)
    with Program(command, camel, network.server.url, "verify", "order-3", "name", PUBLIC_URL=relay.url) as program:
        answer(camel, program.told("qr"))
        body = came.wait_for("the webhook", lambda _: True)
        assert "txnId" in json.loads(body)["data"], "it is in camelCase"
        assert [post(program.told("receiver"), body) for _ in range(3)] == [200] * 3, "a webhook is answered at once"
        assert not program.all_told("outcome"), "an outcome is told before its result was fetched"
        open_again.set()
        assert program.told("outcome") == "order-3 passed: residentName", program.all_told("outcome")
        program.ends()
    assert len(program.all_told("outcome")) == 1, program.all_told("outcome")
    assert len(came.items) == 1, "the service sends one webhook"


def never(command, usual, *_):
    """approved, although the webhook address cannot be reached: the poll is answered"""
    nobody = socket.socket()
    nobody.bind(("127.0.0.1", 0))  # Nobody listens there, and nobody else can.
    network = Network(usual["BASE"])
    url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    with Program(command, usual, network.server.url, "verify", "order-4", "name", PUBLIC_URL=url) as program:
        intent = program.told("qr")
        network.seen.wait_for("a poll", lambda request: is_result(request) and int(request["query"]["wait"][0]) > 0)
        answer(usual, intent)
        assert program.told("outcome") == "order-4 passed: residentName", program.all_told("outcome")
        program.ends()
    assert json.loads(network.requests("/init")[0]["body"])["webhook_url"] == url + "/hook"


def expired(command, _usual, short, _camel):
    """expired, when the person does nothing"""
    network = Network(short["BASE"])
    with Program(command, short, network.server.url, "verify", "order-5", "name") as program:
        assert program.told("outcome") == "order-5 expired", program.all_told("outcome")
        program.ends()
    assert network.passed.items[-1]["status"] == 410


def refused(command, usual, *_):
    """stopped at what only its developer can correct, with the service's words"""
    network = Network(usual["BASE"])
    with Program(command, usual, network.server.url, "verify", "order-6", "name", "shoe_size") as program:
        program.ends(1)
    said = "\n".join(program.complaints.items)
    for word in ("validation_failed", "claims[1]", "is not a known claim", "errorId", "400"):
        assert word in said, f"no {word} in: {said}"
    assert len(network.seen.items) == 1, "what is refused is asked for again"

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with Program(command, usual, network.server.url, "verify", "order-7", "name", PORT=port) as program:
            program.ends(1)
    assert len(network.seen.items) == 1, "it opens a verification before it can receive its webhook"


def event(command, usual, *_):
    """an event, from its creation to the list of three guests on two pages"""

    def small_pages(request):
        if request["path"].endswith("/registrations"):
            request["url"] = re.sub("page_size=[0-9]+", "page_size=2", request["url"])

    network = Network(usual["BASE"], small_pages)
    with Program(command, usual, network.server.url, "event", "Open day", "4", "3") as program:
        identity, qr_url = program.told("event"), program.told("qr_url")
        guests = [("asha", "Asha Rao"), ("vikram", "Vikram Namuna"), ("meena", "Meena Mathiri")]
        for arrived, (resident, _) in enumerate(guests):
            counted = lambda request: request["answer"].get("registration_count") == arrived
            network.passed.wait_for(f"a count of {arrived}", counted)
            assert not program.all_told("guest"), "the list is printed before all are there"
            status, _, intent = exchange(usual["BASE"], "GET", urlsplit(qr_url).path, None, {"Accept": "application/jwt"})
            assert status == 200, f"the event does not take a guest: {intent}"
            answer(usual, intent.decode(), resident=resident)
        program.ends()
    assert [line.split(" ", 1)[1] for line in program.all_told("guest")] == [name for _, name in guests], program.lines.items
    headers = {"X-API-KEY": usual["KEY"], "X-API-APP-ID": usual["APP"]}
    state = json.loads(exchange(usual["BASE"], "GET", f"{OVSE}/events/{identity}", None, headers)[2])
    assert (state["status"], state["max_guests"], state["name"]) == ("disabled", 4, "Open day"), state
    ended = next(at for at, request in enumerate(network.seen.items) if request["method"] == "PATCH")
    listed = next(at for at, request in enumerate(network.seen.items) if request["path"].endswith("/registrations"))
    assert ended < listed, "a guest who comes after the list would be missing in it"
    assert network.requests("/events")[0]["once"], "an event is created with an Idempotency-Key"


SCENARIOS = [never, expired, passed, event, declined, twice, refused]


def main(usual, short, camel, *programs):
    services = []
    for file in (usual, short, camel):
        with open(file, encoding="utf-8") as lines:
            services.append(dict(re.findall(r"(\w+)='([^']*)'", lines.read())))
    commands = dict(zip(programs[::2], programs[1::2]))
    failed = []
    only = os.environ.get("SCENARIO")

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
