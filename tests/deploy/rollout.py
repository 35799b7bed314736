"""Does with processes what Kubernetes does with the pods of a built overlay: it starts them with the settings of the map and of the
secrets' example, asks the probes at their periods, replaces secrets, brings in a new version, a pod at a time or in place, adds a pod and
takes one away as an autoscaler does, empties a machine within the disruption budget, and runs the backup, while clients send requests.
The programs, arguments, settings, probes, pauses and signals are the manifest's; only addresses and paths are this machine's.

    rollout.py BINARY OVERLAY.yaml SECRETS.yaml JWKS.py
"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import yaml

from ports import free_ports

binary, overlay, secrets, jwks = sys.argv[1:]
INIT = "/api/v1/nationalid-ovse/init"
CREDITS = 1_000_000
# Seconds from an answer to the next request. Forty requests a second reach every moment of a pod's end; the long form has no pause.
PAUSE_S = 0 if os.environ.get("SAKSHI_TESTS") == "long" else 0.1


started, giving_up = [], threading.Lock()


def start(command, **options):
    started.append(subprocess.Popen(command, **options))
    return started[-1]


def give_up(what):
    """Ends everything that was started, from any thread; the first one gives the reason."""
    giving_up.acquire()
    print(what, flush=True)
    for process in started:
        process.kill()
    shutil.rmtree(work, ignore_errors=True)
    os._exit(1)


def expect(held, what):
    if not held:
        give_up(what)


def wait(happened, what, within=60):
    end = time.monotonic() + within
    while not happened():
        expect(time.monotonic() < end, what)
        time.sleep(0.05)


# Nothing outlives a mistake of this script, Ctrl-C or SIGTERM.
sys.excepthook = lambda *about: give_up("".join(traceback.format_exception(*about)))
threading.excepthook = lambda about: give_up("".join(traceback.format_exception(about.exc_type, about.exc_value, about.exc_traceback)))
signal.signal(signal.SIGTERM, lambda *_: give_up("ended from outside"))


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, **options)
    expect(done.returncode == 0, f"{command[:2]} ends with {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode().strip()


def ask(port, method, path, body=None, headers=(), timeout=30):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json", **dict(headers)})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else {}
    finally:
        connection.close()


def publish(place, contents):
    """Puts files into a mounted secret as the kubelet does: into a new folder, to which one link is turned in one step."""
    fresh = place / f"..{time.monotonic_ns()}"
    fresh.mkdir(parents=True)
    for name, text in contents.items():
        (fresh / name).write_text(text + "\n")
        if not (place / name).is_symlink():
            (place / name).symlink_to(f"..data/{name}")
    (place / "..next").symlink_to(fresh.name)
    (place / "..next").rename(place / "..data")


class Manifest:
    """The overlay's description of its pods."""

    def __init__(self):
        objects = [item for item in yaml.safe_load_all(open(overlay)) if item]
        of = lambda kind: [item for item in objects if item["kind"] == kind]
        (self.workload,) = of("Deployment") + of("StatefulSet")
        (config,) = [item for item in of("ConfigMap") if "SAKSHI__PROFILE" in item["data"]]
        spec = self.workload["spec"]
        pod = spec["template"]["spec"]
        (self.container,) = pod["containers"]
        self.in_place = self.workload["kind"] == "StatefulSet"
        self.replicas = ([item["spec"]["minReplicas"] for item in of("HorizontalPodAutoscaler")] or [spec.get("replicas", 1)])[0]
        self.min_ready, self.grace = spec["minReadySeconds"], pod["terminationGracePeriodSeconds"]
        self.pause = self.container["lifecycle"]["preStop"]["sleep"]["seconds"]
        (budget,) = of("PodDisruptionBudget")
        self.may_be_away = budget["spec"]["maxUnavailable"]
        jobs = [item["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0] for item in of("CronJob")]
        self.backup = jobs[0] if jobs else None
        self.environment = dict(config["data"])
        self.fill_in()

    def fill_in(self):
        """Puts generated values in place of the example's, and this machine's paths in place of the pod's."""
        held = {item["metadata"]["name"]: item["stringData"] for item in yaml.safe_load_all(open(secrets))}
        random = lambda key: run("openssl", "rand", *(("-base64", "32") if key.endswith("_KEY") else ("-hex", "32")))
        self.settings = {key: value if "://" in value else random(key) for key, value in held["sakshi-settings"].items()}
        if self.environment["SAKSHI__STORE__KIND"] == "redis":
            self.settings["SAKSHI__STORE__REDIS_URL"] = start_redis()
        publish(work / "settings", self.settings)
        self.authority = {"intent.pem": run("openssl", "genrsa", "2048"), "jwks.json": run(sys.executable, jwks)}
        expect(self.authority.keys() == held["sakshi-authority"].keys(), "the secret has other files")
        publish(work / "authority", self.authority)
        mounts = [*self.container["volumeMounts"], *(self.backup["volumeMounts"] if self.backup else [])]
        self.places = {mount["mountPath"]: work / mount["name"] for mount in mounts}
        for mount, place in self.places.items():
            place.mkdir(exist_ok=True)
            for key, value in self.environment.items():
                if value.startswith(mount + "/") or value == mount:
                    self.environment[key] = str(place) + value[len(mount):]

    def probe(self, name):
        """Returns path, seconds between two probes, timeout, and failures in a row."""
        probe = self.container[name]
        expect(probe["httpGet"]["port"] == "internal", f"{name} asks another port")
        return probe["httpGet"]["path"], probe["periodSeconds"], probe.get("timeoutSeconds", 1), probe["failureThreshold"]


class Pod:
    def __init__(self, manifest, name):
        self.manifest, self.name, self.answers_ready, self.ending = manifest, name, False, False
        self.public, self.internal = free_ports(2)
        self.log = open(work / f"{name}.log", "w")
        address = {f"SAKSHI__SERVER__{which}_ADDR": f"127.0.0.1:{port}" for which, port in (("PUBLIC", self.public), ("INTERNAL", self.internal))}
        address |= {key: "127.0.0.1:0" for key in manifest.environment if key == "SAKSHI__SERVER__CONNECTOR_ADDR"}
        command = [binary, *manifest.container["args"]]
        self.process = start(command, env={**manifest.environment, **address}, stdout=self.log, stderr=self.log, cwd=work)
        self.probed("startupProbe", until=True)
        threading.Thread(target=self.watch, daemon=True).start()
        threading.Thread(target=self.follow, daemon=True).start()

    @property
    def ready(self):
        """True if it is part of the service. A readiness probe that is answered after the end began changes nothing."""
        return self.answers_ready and not self.ending

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.internal, timeout=10)
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()

    def answers(self, name):
        path, _, patience, _ = self.manifest.probe(name)
        try:
            return ask(self.internal, "GET", path, timeout=patience)[0] == 200
        except OSError:
            return False

    def probed(self, name, until):
        """Probes until the answer is this, as often as the probe may fail."""
        _, period, _, failures = self.manifest.probe(name)
        for _ in range(failures):
            if self.answers(name) == until:
                return
            self.expect_running()
            time.sleep(period)
        self.fail(f"{name} fails")

    def watch(self):
        """Runs the liveness probe, until the pod ends."""
        _, period, _, allowed = self.manifest.probe("livenessProbe")
        failures = 0
        while not self.ending:
            failures = 0 if self.answers("livenessProbe") else failures + 1
            if failures >= allowed and not self.ending:
                self.fail("livenessProbe fails")
            time.sleep(period)

    def follow(self):
        """Runs the readiness probe, which brings the pod into the service and out of it."""
        _, period, _, allowed = self.manifest.probe("readinessProbe")
        failures = 0
        while not self.ending:
            failures = 0 if self.answers("readinessProbe") else failures + 1
            self.answers_ready = failures == 0 or (self.answers_ready and failures < allowed)
            time.sleep(period)

    def expect_running(self):
        if self.process.poll() is not None:
            self.fail(f"ended with {self.process.returncode}")

    def fail(self, what):
        give_up(f"{self.name}: {what}\n" + pathlib.Path(self.log.name).read_text()[-2_000:])

    def become_available(self):
        """True if it has been ready without a break for as long as the manifest asks."""
        since, end = None, time.monotonic() + 120
        while since is None or time.monotonic() - since < self.manifest.min_ready:
            since = (since or time.monotonic()) if self.ready else None
            self.expect_running()
            if time.monotonic() > end:
                self.fail("does not become available")
            time.sleep(0.1)

    def terminate(self):
        """Leaves the service, waits for the pause, gets SIGTERM, and must end within its grace."""
        begun, self.ending = time.monotonic(), True
        time.sleep(self.manifest.pause)
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(self.manifest.grace - (time.monotonic() - begun))
        except subprocess.TimeoutExpired:
            self.fail("would be killed: its grace is over")
        if code != 0:
            self.fail(f"ends with {code}")


class Clients:
    """Sends requests to any ready pod, each on a connection of its own, with a pause after each answer."""

    def __init__(self, pods, headers):
        self.pods, self.headers = pods, headers
        self.opened, self.refused, self.stopped, self.lock = [], 0, False, threading.Lock()
        self.threads = [threading.Thread(target=self.send, args=(number,), daemon=True) for number in range(4)]
        for thread in self.threads:
            thread.start()

    def send(self, number):
        turn = number
        while not self.stopped:
            turn += 1
            ready = [pod for pod in self.pods if pod.ready]
            if not ready:
                self.refused += 1
                time.sleep(0.05)
                continue
            try:
                status, answer = ask(ready[turn % len(ready)].public, "POST", INIT, {"claims": ["name"], "channel": "qr"}, self.headers)
            except OSError as error:
                status, answer = None, error
            expect(status == 200, f"an init is answered with {status} {answer}")
            with self.lock:
                self.opened.append(answer["txnId"])
            time.sleep(PAUSE_S)

    def send_more(self, requests):
        """Waits for this many more answers, on a machine of any speed."""
        goal = len(self.opened) + requests
        while len(self.opened) < goal:
            time.sleep(0.05)

    def stop(self):
        self.stopped = True
        for thread in self.threads:
            thread.join()
        return self.opened


def become_client(pod, token):
    admin = {"Authorization": f"Bearer {token}"}
    made = lambda path, body: ask(pod.internal, "POST", f"/admin/v1/clients{path}", body, admin)[1]
    client = made("", {"name": "Rehearsal"})["client_id"]
    app, key = made(f"/{client}/apps", {"name": "Rehearsal"})["app_id"], made(f"/{client}/keys", {"label": "rehearsal"})["api_key"]
    made(f"/{client}/credits", {"kind": "grant", "amount": CREDITS, "reference": "rehearsal"})
    return {"X-API-KEY": key, "X-API-APP-ID": app}


def start_redis():
    (port,) = free_ports(1)
    settings = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(work), "--appendonly", "yes", "--maxmemory-policy", "noeviction"]
    start(["redis-server", *settings], stdout=subprocess.DEVNULL)
    return f"redis://127.0.0.1:{port}"


def ending(pods, pod):
    """Ends a pod in the background."""
    thread = threading.Thread(target=lambda: (pod.terminate(), pods.remove(pod)))
    thread.start()
    return thread


def roll(manifest, pods):
    """Every pod makes way for a new one. With Deployments the new one is available first; in place the old one ends first."""
    endings = []
    for number, old in enumerate(list(pods)):
        if manifest.in_place:
            ending(pods, old).join()
        pods.append(Pod(manifest, f"new-{number}"))
        pods[-1].become_available()
        if not manifest.in_place:
            endings.append(ending(pods, old))
    return endings


def empty_machine(manifest, pods):
    """Two pods of one machine are evicted, each as soon as the budget allows it, and each has a successor elsewhere at once."""
    evicted, endings = [pod for pod in pods if not pod.ending][:2], []
    for number, old in enumerate(evicted):
        wait(lambda: sum(pod.ready for pod in pods) > manifest.replicas - manifest.may_be_away, "the budget never allows an eviction")
        endings.append(ending(pods, old))
        pods.append(Pod(manifest, f"moved-{number}"))
    wait(lambda: pods[-1].ready, "the last pod that was moved is not ready")
    return endings


def scale(manifest, pods):
    """One pod more joins, and then one goes, as the autoscaler asks for."""
    pods.append(Pod(manifest, "more"))
    wait(lambda: pods[-1].ready, "the pod that was added is not ready")
    clients.send_more(40)
    return [ending(pods, next(pod for pod in pods if pod.ready))]


def replace_secrets(manifest):
    """New keys of the issuer, which nodes read without a restart, and a new token, for the pods that start from now on."""
    manifest.authority["jwks.json"] = run(sys.executable, jwks)
    publish(work / "authority", manifest.authority)
    manifest.settings["SAKSHI__ADMIN__TOKEN"] = run("openssl", "rand", "-hex", "32")
    publish(work / "settings", manifest.settings)


def back_up(manifest):
    """The job's program runs beside the node, on its volume, with its settings, and leaves one file."""
    args = [str(manifest.places.get(word, word)) for word in manifest.backup["args"]]
    run(binary, *args, env=manifest.environment)
    place = pathlib.Path(args[1])
    expect(len(list(place.glob("*.db"))) == 1, f"the backup leaves {list(place.iterdir())}")


work = pathlib.Path(tempfile.mkdtemp())
manifest = Manifest()
with ThreadPoolExecutor() as pool:
    pods = list(pool.map(lambda number: Pod(manifest, f"old-{number}"), range(manifest.replicas)))
old_token = manifest.settings["SAKSHI__ADMIN__TOKEN"]
replace_secrets(manifest)
for pod in pods:
    pod.become_available()
    changed = 'sakshi_issuer_keys_read_total{result="changed"} 1'
    wait(lambda: changed in pod.metrics(), f"{pod.name} does not read the issuer's new keys")
headers = become_client(pods[0], old_token)
clients = Clients(pods, headers)
clients.send_more(50)
endings = roll(manifest, pods)
if manifest.backup:
    back_up(manifest)
if not manifest.in_place:
    endings += empty_machine(manifest, pods) + scale(manifest, pods)
clients.send_more(50)
for thread in endings:
    thread.join()
opened = clients.stop()
expect(len(pods) == manifest.replicas, f"{len(pods)} pods are left")
for pod in pods:
    for token, status in ((old_token, 401), (manifest.settings["SAKSHI__ADMIN__TOKEN"], 200)):
        said = ask(pod.internal, "GET", "/admin/v1/clients", headers={"Authorization": f"Bearer {token}"})[0]
        expect(said == status, f"{pod.name} answers {said} to the {'new' if status == 200 else 'old'} token")
left = ask(pods[0].public, "GET", "/api/v1/credits", headers=headers)[1]
for txn in opened[:: max(1, len(opened) // 200)]:
    status = ask(pods[0].public, "GET", f"/api/v1/nationalid-ovse/result/{txn}", headers=headers)[0]
    expect(status in (200, 202), f"{txn} was answered, and now it is {status}")
expect(left["balance"] == CREDITS - len(opened), f"{len(opened)} transactions were answered, and the balance is {left}")
expect(manifest.in_place or clients.refused == 0, "for a while no pod was ready")
for thread in [ending(pods, pod) for pod in list(pods)]:
    thread.join()
for process in started:
    process.kill()
shutil.rmtree(work)
print(f"{manifest.workload['kind']}: {len(opened)} requests, none failed")
