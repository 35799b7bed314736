"""Runs haproxy with the file that is given, in front of three nodes that misbehave as real ones do not on demand, and looks at
what clients, nodes and the log see. The nodes are sockets: what matters is how often a request reaches them, and with which headers.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

from ports import free_ports

INIT = "/api/v1/nationalid-ovse/init"
CONNECTIONS_OF_ONE = 300


class Node:
    """Answers on two ports. `mode` sets the behaviour of the public one; `seen` holds every request."""

    def __init__(self, name):
        self.name, self.mode, self.ready, self.seen = name, "well", True, []
        self.public = self.listen(self.answer)
        self.internal = self.listen(self.probe)

    @staticmethod
    def listen(handle):
        door = socket.create_server(("127.0.0.1", 0), backlog=64)

        def serve():
            while True:
                try:
                    peer, _ = door.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(peer,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        return door

    def stop_listening(self):
        # As a node that drains: connections are refused from now on.
        self.public.shutdown(socket.SHUT_RDWR)
        self.public.close()

    @staticmethod
    def read(peer):
        text = b""
        while b"\r\n\r\n" not in text:
            part = peer.recv(65536)
            if not part:
                return None
            text += part
        head, _, body = text.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = [(name.lower(), value) for name, value in (line.split(": ", 1) for line in lines if ": " in line)]
        length = int(dict(headers).get("content-length", 0))
        while len(body) < length:
            body += peer.recv(65536)
        return first, headers

    def answer(self, peer):
        with peer:
            request = self.read(peer)
            if request is None:
                return
            self.seen.append(request)
            if self.mode == "dies":
                return
            text = json.dumps({"node": self.name}).encode()
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))

    def probe(self, peer):
        with peer:
            if self.read(peer):
                status = b"200 OK" if self.ready else b"503 Service Unavailable"
                peer.sendall(b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)


class Proxy:
    """haproxy with the file, in front of the nodes."""

    def __init__(self, config, nodes):
        self.folder = tempfile.TemporaryDirectory()
        self.port, self.stats = free_ports(2)
        environment = {
            "SAKSHI_HTTP": f"127.0.0.1:{self.port}",
            "SAKSHI_STATS": f"127.0.0.1:{self.stats}",
            "SAKSHI_ADMIN_SOCKET": self.folder.name + "/admin.sock",
            "SAKSHI_CONNECTIONS_PER_ADDRESS": str(CONNECTIONS_OF_ONE),
        }
        for number, node in enumerate(nodes, 1):
            environment[f"SAKSHI_NODE{number}"] = "127.0.0.1:%d" % node.public.getsockname()[1]
            environment[f"SAKSHI_NODE{number}_INTERNAL"] = str(node.internal.getsockname()[1])
        self.log = open(self.folder.name + "/log", "w+")
        self.process = subprocess.Popen(["haproxy", "-db", "-f", config], env={**os.environ, **environment}, stdout=self.log, stderr=self.log)

    def ask(self, method, path, headers=None, body=None):
        """Sends a request on a connection of its own; returns status, headers and body."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        try:
            client.request(method, path, body=body, headers=headers or {})
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            client.close()

    def states(self):
        """Returns the state of each node as haproxy sees it."""
        client = http.client.HTTPConnection("127.0.0.1", self.stats, timeout=5)
        client.request("GET", "/;csv")
        lines = client.getresponse().read().decode().splitlines()
        rows = [line.split(",") for line in lines if line.startswith("nodes,node")]
        return {row[1]: row[17].split()[0] for row in rows}

    def written(self):
        self.log.flush()
        with open(self.folder.name + "/log") as log:
            return log.read()

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def wait_until(condition, what):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"did not happen: {what}")


def expect(held, what):
    if not held:
        raise AssertionError(what)


def requests_flow_and_carry_what_nodes_rely_on(proxy, nodes):
    status, _, _ = proxy.ask("GET", "/api/ping", {"X-Forwarded-For": "198.51.100.7", "X-Request-ID": "mine"})
    expect(status == 200, "a request is answered")
    _, headers = next(node.seen[-1] for node in nodes if node.seen)
    forwarded = [value for name, value in headers if name == "x-forwarded-for"]
    expect(forwarded == ["127.0.0.1"], f"X-Forwarded-For is the peer's address and nothing that the client said: {forwarded}")
    expect(("x-request-id", "mine") in headers, "the client's X-Request-ID is kept")
    for node in nodes:
        node.seen.clear()
    for _ in range(9):
        proxy.ask("GET", "/api/ping")
    expect(all(node.seen for node in nodes), "every node takes its share")
    ids = {dict(headers)["x-request-id"] for node in nodes for _, headers in node.seen}
    expect(len(ids) == 9, "who brings no X-Request-ID gets one of its own")


def what_may_have_been_carried_out_is_not_sent_again(proxy, nodes):
    once = {"Idempotency-Key": "order-1"}
    cases = [
        ("GET", "/api/v1/nationalid-ovse/result/x", {}, True),
        ("GET", "/v/x/status", {}, True),
        ("GET", "/e/abc", {"Accept": "application/jwt"}, False),
        ("POST", INIT, {}, False),
        ("POST", INIT, once, True),
        ("POST", "/api/v1/nationalid-ovse/events", once, True),
        ("POST", "/e/abc/start", once, False),
        ("POST", "/cb/txn/capability", {}, True),
        ("POST", "/api/v1/nationalid-ovse/qr-intent", {}, True),
        ("PATCH", "/api/v1/nationalid-ovse/events/abc", once, False),
    ]
    for node in nodes:
        node.mode = "dies"
    for method, path, headers, again in cases:
        for node in nodes:
            node.seen.clear()
        status, _, body = proxy.ask(method, path, headers, b"{}" if method != "GET" else None)
        count = sum(len(node.seen) for node in nodes)
        expect(status == 502 and json.loads(body)["code"] == "node_lost", f"{method} {path}: a 502 of the API's form, not {status} {body}")
        expect((count > 1) == again, f"{method} {path} {headers} reached nodes {count} times")
    for node in nodes:
        node.mode = "well"


def a_node_that_is_not_ready_gets_nothing(proxy, nodes):
    nodes[0].ready = False
    wait_until(lambda: proxy.states()["node1"] == "DOWN", "node1 is taken out")
    nodes[0].seen.clear()
    expect(all(proxy.ask("GET", "/api/ping")[0] == 200 for _ in range(9)) and not nodes[0].seen, "no request goes to it")
    nodes[0].ready = True
    wait_until(lambda: proxy.states()["node1"] == "UP", "node1 is taken in again")


def when_none_is_ready_those_that_listen_answer_for_themselves(proxy, nodes):
    for node in nodes:
        node.ready = False
    wait_until(lambda: set(proxy.states().values()) == {"DOWN"}, "all are taken out")
    expect(all(proxy.ask("GET", "/api/ping")[0] == 200 for _ in range(9)), "the nodes are asked all the same")
    for node in nodes:
        node.ready = True
    wait_until(lambda: set(proxy.states().values()) == {"UP"}, "all are taken in again")


def nodes_that_refuse_connections_cost_no_request(proxy, nodes):
    # Ready by their probes still, as in the moment after SIGTERM. A POST too: it reached nobody.
    for node in nodes[:2]:
        node.stop_listening()
    expect(all(proxy.ask("POST", INIT, body=b"{}")[0] == 200 for _ in range(9)), "every POST is answered by the third node")


def an_address_has_no_more_connections_than_it_may(proxy, _nodes):
    kept, answered = [], 0
    try:
        for _ in range(CONNECTIONS_OF_ONE + 20):
            client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=15, source_address=("127.0.0.66", 0))
            kept.append(client)
            try:
                client.request("GET", "/api/ping")
                answered += client.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                pass
        expect(answered == CONNECTIONS_OF_ONE, f"{answered} of one address are answered")
        expect(proxy.ask("GET", "/api/ping")[0] == 200, "another address is answered")
    finally:
        for client in kept:
            client.close()


def an_id_that_could_forge_a_line_is_replaced(proxy, _nodes):
    for forged in ("a b retries=9", "\x1b[31m", "x" * 129, ""):
        proxy.ask("GET", "/api/ping", {"X-Request-ID": forged})
    said = proxy.written()
    expect("retries=9" not in said and "\x1b" not in said and "x" * 129 not in said, "the log holds a forged id")


def without_nodes_the_answer_is_one_of_the_api(proxy, nodes):
    nodes[2].stop_listening()
    wait_until(lambda: proxy.ask("POST", INIT, body=b"{}")[0] == 503, "nobody is left")
    for node in nodes:
        node.ready = False
    wait_until(lambda: set(proxy.states().values()) == {"DOWN"}, "all are down")
    status, headers, body = proxy.ask("POST", INIT, {"X-Request-ID": 'a"b\\c'}, b"{}")
    said = json.loads(body)
    expect(status == 503 and headers["Retry-After"] == "1" and headers["Content-Type"] == "application/json", "503 with Retry-After")
    expect(said["code"] == "no_node" and said["errorId"] == 'a"b\\c', f"the API's error body with the request's id: {body}")


def the_log_names_no_path(proxy, _nodes):
    said = proxy.written()
    expect("id=mine" in said, "a request is logged under its id")
    for word in ("/cb/", "capability", "/e/abc", "order-1"):
        expect(word not in said, f"the log holds {word}")


def main(config):
    nodes = [Node(f"node{number}") for number in (1, 2, 3)]
    proxy = Proxy(config, nodes)
    try:
        wait_until(lambda: list(proxy.states().values()) == ["UP"] * 3, "haproxy serves and three nodes are up")
        for check in (
            requests_flow_and_carry_what_nodes_rely_on,
            what_may_have_been_carried_out_is_not_sent_again,
            a_node_that_is_not_ready_gets_nothing,
            when_none_is_ready_those_that_listen_answer_for_themselves,
            an_address_has_no_more_connections_than_it_may,
            an_id_that_could_forge_a_line_is_replaced,
            nodes_that_refuse_connections_cost_no_request,
            without_nodes_the_answer_is_one_of_the_api,
            the_log_names_no_path,
        ):
            try:
                check(proxy, nodes)
            except (AssertionError, OSError, http.client.HTTPException) as error:
                sys.exit(f"{check.__name__}: {error}")
    finally:
        proxy.close()


main(sys.argv[1])
