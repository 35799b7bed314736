"""The programs on the machines: Redis with the files of deploy/redis (alone, with replicas and sentinels, or as a cluster), nodes, haproxy
with deploy/haproxy, and a name server. Addresses and passwords are this run's; settings are those that are shipped, but for a cluster's
patience."""

import base64
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading
import time

from machines import ROOT, WORK, Broken, end, run, until

DEPLOY = pathlib.Path(os.environ.get("DEPLOY", ROOT / "deploy"))
BINARY = os.environ.get("SAKSHI_BIN", str(ROOT / "target/debug/sakshi"))
LOADER = os.environ.get("SAKSHI_LOAD_BIN", str(pathlib.Path(BINARY).parent / "sakshi-load"))
ADMIN = {"Authorization": "Bearer sandbox-admin-token-never-in-production"}
HUB = "10.77.0.1"
KEY = base64.b64encode(os.urandom(32)).decode()
# Time after which a cluster's members take one for dead; Redis' own default is 15 s.
CLUSTER_PATIENCE_MS = 3_000


def ask(address, method, path, body=None, headers=(), timeout=15):
    """Sends a request on a connection of its own; returns status, headers, body."""
    host, _, port = address.partition(":")
    connection = http.client.HTTPConnection(host, int(port or 80), timeout=timeout)
    try:
        text = json.dumps(body) if body is not None else None
        connection.request(method, path, text, {"Content-Type": "application/json", **dict(headers)})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, answer.headers, json.loads(text) if text.startswith((b"{", b"[")) else {"text": text.decode(errors="replace")}
    except http.client.HTTPException as broken:
        raise OSError(repr(broken)) from broken
    finally:
        connection.close()


def with_passwords(text):
    for digit, user in enumerate(("sakshi", "operator", "replica", "sentinel")):
        text = text.replace(str(digit) * 64, hashlib.sha256(f"of-{user}".encode()).hexdigest())
    return text.replace("replace-me", "of-sentinel")


class Redis:
    def __init__(self, machine, *more, directory=None, restarts=False):
        self.machine, self.more, self.restarts, self.process = machine, more, restarts, None
        self.directory = directory or WORK / machine.name
        self.directory.mkdir(exist_ok=True)
        self.stopping, self.lock = False, threading.Lock()
        conf = WORK / f"{machine.name}.conf"
        # Sentinel lets servers write into this file too.
        shutil.copy(DEPLOY / "redis/redis.conf", conf)
        users = WORK / "users.acl"
        users.write_text(with_passwords("".join((DEPLOY / "redis" / name).read_text() for name in ("users.acl", "users.replicas.acl"))))
        self.command = ["redis-server", conf, "--port", 6379, "--bind", "0.0.0.0", "--dir", self.directory, "--daemonize", "no"]
        self.command += ["--aclfile", users, "--masteruser", "replica", "--masterauth", "of-replica", *more]
        self.start()
        if restarts:
            threading.Thread(target=self.follow, daemon=True).start()

    def start(self):
        self.process = self.machine.start(self.command, self.machine.name)

    def follow(self):
        """Restarts a server that ends, as an init system does."""
        while True:
            ended = self.process
            ended.wait()
            time.sleep(0.5)
            with self.lock:
                if not self.stopping and self.process is ended:
                    self.start()

    def ask(self, *words, port=6379):
        login = ["--user", "operator", "--pass", "of-operator", "--no-auth-warning"]
        return run("redis-cli", "-h", self.machine.address, "-p", port, *login, *words)

    def says(self, word, *words, **where):
        return word in self.ask(*words, **where).replace("\r", "")

    def serves(self):
        return self.says("PONG", "ping") and self.says("loading:0", "info", "persistence")

    def repair(self):
        """Truncates the file where it is damaged, as the runbook says; the rest was not acknowledged."""
        if "Bad file format" not in (WORK / f"{self.machine.name}.log").read_text()[-400:]:
            return self.serves()
        with self.lock:
            end(self.process)
            manifest = self.directory / "appendonlydir/appendonly.aof.manifest"
            subprocess.run(["redis-check-aof", "--fix", manifest], input="y\n", text=True, capture_output=True, check=True)
            self.start()

    def rewrite(self):
        """Writes the whole file anew."""
        self.ask("bgrewriteaof")
        done = ("rewrite_in_progress:0", "rewrite_scheduled:0", "bgrewrite_status:ok")
        until("the file is written anew", lambda: all(self.says(word, "info", "persistence") for word in done))


class Node:
    def __init__(self, machine, settings):
        self.machine, self.process = machine, None
        self.public, self.internal = f"{machine.address}:8080", f"{machine.address}:8081"
        self.environment = {"PATH": os.environ["PATH"], "SAKSHI_LOG": "info"}
        for key, value in {
            "SERVER__PUBLIC_ADDR": "0.0.0.0:8080", "SERVER__INTERNAL_ADDR": "0.0.0.0:8081", "SERVER__WORKERS": 2,
            "STORE__PATH": WORK / "store", "STORE__ENCRYPTION_KEY": KEY, **settings,
        }.items():
            self.environment[f"SAKSHI__{key}"] = str(value)

    def start(self):
        self.process = self.machine.start([BINARY, "serve"], self.machine.name, env=self.environment)

    def ready(self):
        return ask(self.internal, "GET", "/readyz", timeout=2)[0] == 200

    def unready(self):
        return ask(self.internal, "GET", "/readyz", timeout=2)[0] == 503


class Proxy:
    def __init__(self, machine, nodes):
        self.machine = machine
        environment = {"PATH": os.environ["PATH"], "SAKSHI_HTTP": "0.0.0.0:80", "SAKSHI_STATS": "0.0.0.0:8404"}
        environment["SAKSHI_ADMIN_SOCKET"] = str(WORK / "haproxy.sock")
        for number, node in enumerate(nodes, 1):
            environment |= {f"SAKSHI_NODE{number}": node.public, f"SAKSHI_NODE{number}_INTERNAL": "8081"}
        command = ["haproxy", "-db", "-f", DEPLOY / "haproxy/haproxy.cfg"]
        self.process = machine.start(command, "haproxy", env=environment)

    def up(self):
        """Returns the nodes that get requests."""
        lines = ask(f"{self.machine.address}:8404", "GET", "/;csv")[2]["text"].splitlines()
        rows = [line.split(",") for line in lines if line.startswith("nodes,node")]
        return {row[1] for row in rows if row[17].startswith("UP")}


class NameServer:
    """Answers every query for an address with that of this process."""

    PORT = 53

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((HUB, self.PORT))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            question, whence = self.socket.recvfrom(512)
            # RFC 1035 §4.1: the question ends five bytes after the name's last label.
            asked = question[12 : question.index(0, 12) + 5]
            has = asked.endswith(b"\0\x01\0\x01")
            answer = question[:2] + struct.pack(">HHHHH", 0x8180, 1, has, 0, 0) + asked
            if has:
                answer += b"\xc0\x0c\0\x01\0\x01" + struct.pack(">IH", 1, 4) + socket.inet_aton(HUB)
            self.socket.sendto(answer, whence)


def use_name_server():
    run("ip", "address", "add", f"{HUB}/32", "dev", "lo")
    (WORK / "resolv.conf").write_text(f"nameserver {HUB}\n")
    run("mount", "--bind", WORK / "resolv.conf", "/etc/resolv.conf")
    return NameServer()


class Site:
    """Three nodes behind haproxy on one kind of Redis."""

    def __init__(self, network, kind, wait=0):
        self.network, self.kind, self.wait = network, kind, wait
        self.names = use_name_server()
        self.client = network.add("client")
        proxy, *machines = [network.add(name) for name in ("proxy", "node1", "node2", "node3")]
        count = {"single": 1, "sentinel": 3, "cluster": 6}[kind]
        self.stores = [network.add(f"redis{number}") for number in range(1, count + 1)]
        settings = {"STORE__KIND": "redis", "STORE__REDIS_WAIT_REPLICAS": wait, "SERVER__PUBLIC_BASE_URL": f"http://{proxy.address}"}
        settings |= {"SERVER__TRUSTED_PROXIES": proxy.address, **getattr(self, f"start_{kind}")()}
        self.nodes = [Node(machine, settings) for machine in machines]
        for node in self.nodes:
            # One after another: the first makes the keys that all of them share.
            node.start()
            until(f"{node.machine.name} is ready", node.ready)
        self.proxy = Proxy(proxy, self.nodes)
        until("haproxy has three nodes", lambda: len(self.proxy.up()) == 3)
        self.public = proxy.address

    def start_single(self):
        self.redis = [Redis(self.stores[0])]
        until("Redis answers", self.redis[0].serves)
        return {"STORE__REDIS_URL": self.url(self.stores[:1], 6379)}

    def url(self, machines, port):
        return ",".join(f"redis://sakshi:of-sakshi@{machine.address}:{port}" for machine in machines)

    def start_sentinel(self):
        master = self.stores[0]
        self.redis = [Redis(master)]
        self.redis += [Redis(machine, "--replicaof", master.address, 6379) for machine in self.stores[1:]]
        for replica in self.redis[1:]:
            until("the replica follows", lambda: replica.says("master_link_status:up", "info", "replication"))
        acl = WORK / "sentinel.acl"
        acl.write_text(with_passwords((DEPLOY / "redis/sentinel.acl").read_text()))
        conf = with_passwords((DEPLOY / "redis/sentinel.conf").read_text())
        conf = conf.replace("sentinel monitor sakshi 127.0.0.1 6379 2", f"sentinel monitor sakshi {master.address} 6379 2")
        for number, machine in enumerate(self.stores, 1):
            own = WORK / f"sentinel{number}.conf"
            own.write_text(conf)
            machine.start(["redis-server", own, "--sentinel", "--dir", WORK, "--aclfile", acl], f"sentinel{number}")
        for server in self.redis:
            knows = lambda word: server.says(word, "sentinel", "master", "sakshi", port=26379)
            until("sentinels know each other", lambda: knows("num-other-sentinels\n2\n") and knows("num-slaves\n2\n"))
        urls = self.url(self.stores, 26379)
        return {"STORE__REDIS_URL": urls, "STORE__REDIS_TOPOLOGY": "sentinel", "STORE__REDIS_SENTINEL_SERVICE": "sakshi"}

    def start_cluster(self):
        own = ["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-node-timeout", CLUSTER_PATIENCE_MS]
        self.redis = [Redis(machine, *own) for machine in self.stores]
        for server in self.redis:
            until("Redis answers", server.serves)
        members = [f"{machine.address}:6379" for machine in self.stores]
        login = ["--user", "operator", "--pass", "of-operator", "--no-auth-warning"]
        run("redis-cli", *login, "--cluster", "create", *members, "--cluster-replicas", 1, "--cluster-yes")
        agrees = lambda server: all(server.says(word, "cluster", "info") for word in ("cluster_state:ok", "known_nodes:6"))
        follows = lambda server: any(server.says(word, "info", "replication") for word in ("role:master", "link_status:up"))
        until("the cluster is of one mind", lambda: all(agrees(server) for server in self.redis))
        until("replicas follow", lambda: all(follows(server) for server in self.redis))
        return {"STORE__REDIS_URL": self.url(self.stores, 6379), "STORE__REDIS_TOPOLOGY": "cluster"}

    def master(self):
        """Returns the index of the server that the second sentinel names, which no case cuts off."""
        address = self.redis[1].ask("sentinel", "get-master-addr-by-name", "sakshi", port=26379).split()[0]
        return next(number for number, machine in enumerate(self.stores) if machine.address == address)

    def is_whole(self):
        return all(node.ready() for node in self.nodes) and len(self.proxy.up()) == 3


class Alone:
    """One node, on the embedded store or on one Redis, whose files are on a disk that can be broken."""

    def __init__(self, network, disk, kind):
        self.network, self.disk, self.kind, self.redis = network, disk, kind, None
        self.names = use_name_server()
        self.client, machine = network.add("client"), network.add("node1")
        settings = {"SERVER__PUBLIC_BASE_URL": f"http://{machine.address}:8080"}
        if kind == "redis":
            store = network.add("redis1")
            self.redis = Redis(store, directory=disk.place / "redis", restarts=True)
            until("Redis answers", self.redis.serves)
            settings |= {"STORE__KIND": "redis", "STORE__REDIS_URL": f"redis://sakshi:of-sakshi@{store.address}:6379"}
        else:
            settings |= {"STORE__PATH": disk.place / "store"}
        self.node = Node(machine, settings)
        self.node.start()
        until("the node is ready", self.node.ready)
        # The guests' credentials are signed with it, whatever happens to the disk.
        keys = WORK / "store/sandbox-keys"
        if kind == "embedded":
            keys.parent.mkdir()
            shutil.copytree(disk.place / "store/sandbox-keys", keys)
        self.public, self.internal = self.node.public, self.node.internal

    def kill(self, after_signal=lambda: None):
        """Kills (kill -9) the processes with files on the disk. A process that waits for the disk ends after its answer."""
        process = self.redis.process if self.redis else self.node.process
        if self.redis:
            self.redis.stopping = True
        if process.poll() is None:
            process.kill()
        after_signal()
        process.wait()

    def start(self):
        if self.redis:
            with self.redis.lock:
                self.redis.stopping = False
                self.redis.start()
        else:
            self.node.start()

    def is_whole(self):
        return self.node.ready()


def tail(count=5):
    """Returns the last lines of every log, for a case that fails."""
    logs = sorted(WORK.glob("*.log"))
    return "\n".join(f"{log.stem}: {line}" for log in logs for line in log.read_text(errors="replace").splitlines()[-count:])


def unless_broken(held, sentence):
    if not held:
        raise Broken(sentence)
