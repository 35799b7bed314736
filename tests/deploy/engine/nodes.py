"""Three nodes, Redis and haproxy of compose/compose.yaml, by the commands of its README and of the runbook: started, used, and under load killed,
upgraded and restarted."""

import json
import os
import pathlib
import re
import signal
import sys
import time

import yaml

from daemon import expect, run, until
from people import ISSUER, IdentityApp, Receiver, ask
from privileges import expect_contained, expect_limits
from traffic import Traffic

HERE = pathlib.Path(__file__).parent
NODES = ("node1", "node2", "node3")
USERS = dict.fromkeys(NODES, 65532) | {"redis": 999, "haproxy": 99}
CREDITS = 1_000_000
# As the README's block sets it.
BASE = "https://verify.example.com"
AUTHORITY = f"""issuer = "{ISSUER}"
qr_host = "https://id-authority.example"
client_id = "verifier"
registration = "0001"
android_web_action = "example.WEB"
android_app_action = "example.APP"
ios_scheme = "idauthority"
ios_host = "verify"
"""
# README.md on docker-compose 1.29: another name, no --wait, and -T without a terminal.
OLDER = """docker() {
  [ "$1" = compose ] || { command docker "$@"; return; }
  shift
  local said=() word
  for word; do
    case $word in
      --wait | -T) ;;
      exec) said+=(exec -T) ;;
      *) said+=("$word") ;;
    esac
  done
  command docker-compose "${said[@]}"
}
"""


def find_blocks(page):
    """Returns the commands of a page between fences of bash."""
    return re.findall(r"^```bash\n(.*?)^```$", page.read_text(), re.M | re.S)


def find_commands(page, after):
    """Returns the indented commands below the paragraph that begins with these words."""
    text = page.read_text()
    return re.search(rf"^{re.escape(after)}.*\n(?:.+\n)*\n((?:    .*\n)+)", text, re.M)[1]


class Cluster:
    def __init__(self, engine, repository, outside):
        self.engine, self.outside = engine, outside
        self.folder = repository / "deploy/compose"
        self.readme, self.runbook = self.folder / "README.md", repository / "deploy/runbook.md"
        self.services = yaml.safe_load((self.folder / "compose.yaml").read_text())["services"]
        self.environment = engine.environment | {"DOCKER_BUILDKIT": "1"}
        self.operator = find_commands(self.runbook, "With Compose, in its folder")
        self.differences = self.override()

    def override(self):
        """Writes a file beside the shipped one for features that this machine lacks. Returns a sentence for it."""
        with open("/proc/self/limits") as limits:
            files = int(re.search(r"^Max open files +\d+ +(\d+)", limits.read(), re.M)[1])
        changed = {name: files for name, service in self.services.items() if service.get("ulimits", {}).get("nofile", 0) > files}
        # Bit 24 is CAP_SYS_RESOURCE, which raises limits.
        with open("/proc/self/status") as status:
            if not changed or int(re.search(r"^CapEff:\s*(\w+)", status.read(), re.M)[1], 16) >> 24 & 1:
                return []
        file = {"services": {name: {"ulimits": {"nofile": files}} for name in changed}}
        (self.folder / "limits.yaml").write_text(yaml.safe_dump(file))
        self.environment["COMPOSE_FILE"] = "compose.yaml:limits.yaml"
        for name in changed:
            self.services[name]["ulimits"]["nofile"] = files
        return [f"nofile {files} for {', '.join(changed)}: this machine allows no more"]

    def shell(self, script):
        """Runs commands of a page in its folder."""
        older = OLDER if self.engine.compose == ["docker-compose"] else ""
        return run("bash", "-euo", "pipefail", "-c", older + script, name=script.splitlines()[-1], cwd=self.folder, env=self.environment)

    def operate(self, script):
        """Runs commands of the runbook."""
        return self.shell(f"export REDISCLI_AUTH={self.password}\n{self.operator}\n{script}")

    def find_container(self, service):
        return self.engine.find_container("sakshi", service)

    def wait_until_healthy(self, *services):
        self.engine.wait_until_healthy(*map(self.find_container, services or USERS))

    def prepare(self):
        """Runs the README's block, with files in place of those that others provide, and fills in the authority."""
        work = self.engine.work
        (work / "jwks.json").write_text(run(sys.executable, str(HERE.parent / "jwks.py"), str(work / "issuer.pem")))
        block = re.sub("^jwks=.*", f"jwks={work}/jwks.json tls={work}/tls.pem", find_blocks(self.readme)[0])
        self.password = re.search(r"shown once: (\w+)", self.shell(block))[1]
        settings = self.folder / "secrets/sakshi.toml"
        settings.write_text(settings.read_text() + AUTHORITY)

    def start(self):
        """Checks the settings, builds and starts. Returns the seconds until all are healthy, and those of the build."""
        began = time.monotonic()
        self.shell(find_commands(self.readme, "Fill in the section"))
        built = time.monotonic()
        self.shell(find_commands(self.readme, "Then start it"))
        self.wait_until_healthy()
        return time.monotonic() - built, built - began

    def drain_and_back(self):
        """Returns the runbook's commands that take a node out of service, and bring it back."""
        return find_commands(self.runbook, "On SIGTERM the node is unready at once").splitlines()

    def become_client(self):
        """Makes a client with an app, a key and credits by the operator's commands. Returns its traffic."""
        made = lambda command, field: json.loads(self.operate(f"sakshi admin --json {command}"))[field]
        client = made("clients create Rehearsal", "client_id")
        app, key = made(f"apps create {client} Rehearsal", "app_id"), made(f"keys issue {client} --label rehearsal", "api_key")
        self.operate(f"sakshi admin credits grant {client} {CREDITS} --reference rehearsal")
        receiver, work = Receiver(self.engine.work / "receiver.pem"), self.engine.work
        self.traffic = Traffic(BASE, key, app, IdentityApp(work / "issuer.pem"), receiver, f"https://{self.outside}:{receiver.port}/hook")
        return self.traffic


def expect_shipped_privileges(cluster):
    for service, user in USERS.items():
        expect_contained(cluster.engine, cluster.find_container(service), user)
        expect_limits(cluster.engine, cluster.find_container(service), cluster.services[service])
    published = {service: cluster.engine.inspect(cluster.find_container(service))["HostConfig"]["PortBindings"] for service in USERS}
    expect([service for service, ports in published.items() if ports] == ["haproxy"], f"ports are published: {published}")
    address = lambda network: cluster.engine.inspect(cluster.find_container("node1"))["NetworkSettings"]["Networks"][f"sakshi_{network}"]["IPAddress"]
    expect(address("edge").startswith("172.30.80."), f"node1 has {address('edge')}")
    networks = set(cluster.engine.inspect(cluster.find_container("redis"))["NetworkSettings"]["Networks"])
    expect(networks == {"sakshi_data"}, f"Redis is in {networks}")


def expect_operable(cluster):
    """The runbook's first look, and nodes taken out of service and back."""
    tree = cluster.operate("sakshi healthcheck && sakshi admin tree")
    expect("webhook-dispatcher" in tree, f"the tree is {tree[:400]}")
    state = lambda: dict(re.findall(r"^\d+ nodes \d+ (node\d) \S+ (\d) (?:\d+)", cluster.operate('hactl "show servers state nodes"'), re.M))
    until(lambda: "haproxy has " + cluster.operate('hactl "show servers state nodes"'), lambda: state() == dict.fromkeys(NODES, "2"))
    expect("aof_enabled:1" in cluster.operate("redis-cli info persistence"), "Redis has no append-only file")
    for line in cluster.drain_and_back():
        cluster.operate(line)
    until(lambda: f"haproxy has {state()}", lambda: state() == dict.fromkeys(NODES, "2"))
    status, _, metrics = ask("GET", "http://127.0.0.1:8404/metrics")
    expect(status == 200 and "haproxy_server_status" in metrics, f"haproxy's metrics are answered with {status}")


def expect_tls():
    plain = BASE.replace("https:", "http:")
    status, headers, _ = ask("GET", f"{plain}/api/ping")
    expect(status == 308 and headers["Location"] == f"{BASE}/api/ping", f"plain HTTP is answered with {status} {dict(headers)}")
    status, headers, _ = ask("GET", f"{BASE}/api/ping")
    expect(status == 200 and "max-age" in headers.get("Strict-Transport-Security", ""), f"a ping is answered with {status} {dict(headers)}")


def crash(cluster, traffic, service):
    """Kills the process as a defect would; the engine starts it again."""
    name = cluster.find_container(service)
    before = cluster.engine.inspect(name)
    with traffic.during(f"kill {service}"):
        os.kill(before["State"]["Pid"], signal.SIGKILL)
        until(f"{service} is not started again", lambda: cluster.engine.inspect(name)["RestartCount"] > before["RestartCount"])
        cluster.wait_until_healthy(service)
    if service in NODES:
        traffic.expect_none_failed(f"kill {service}", but=("start",))


def upgrade(cluster, traffic):
    """Runs the README's commands for a new version, under another tag."""
    dockerfile = cluster.folder.parent / "container/Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("ARG VERSION=", "ARG VERSION=next-"))
    cluster.environment["SAKSHI_TAG"] = "next"
    with traffic.during("upgrade"):
        cluster.shell(find_blocks(cluster.readme)[1])
    for node in NODES:
        image = cluster.engine.inspect(cluster.find_container(node))["Config"]
        expect(image["Image"] == "sakshi:next" and image["Labels"]["org.opencontainers.image.version"].startswith("next-"), f"{node} runs {image}")
    traffic.expect_none_failed("upgrade")


def make_anew(cluster, traffic, service):
    """Stops and removes a container; another one takes its place and its volume."""
    with traffic.during(f"{service} anew"):
        cluster.shell(f"docker compose rm --stop --force {service} && docker compose up --detach --no-deps {service}")
        cluster.wait_until_healthy(service)


def expect_records(cluster, traffic):
    """Checks that all acknowledged data survives, also after a restart of everything, and that a lost webhook is recorded as such."""
    cluster.operate("sakshi admin credits audit")
    arrived = traffic.receiver.arrived
    for txn in traffic.judge(CREDITS):
        read_attempt = lambda: json.loads(cluster.operate(f"sakshi admin --json delivery {txn}"))["attempt"]
        # A webhook that was queued at a restart is sent some seconds after it.
        attempt = until(f"the webhook of {txn} is not sent", lambda: txn in arrived or read_attempt())
        expect(txn in arrived or attempt["outcome"] == "unknown", f"the webhook of {txn} did not come, and its attempt is {attempt}")


def expect_good_ends(cluster):
    """Checks that every container ended by itself within its grace and with code 0, except those that were killed."""
    killed = 0
    for service, code, seconds in cluster.engine.list_ends("sakshi"):
        grace = int(cluster.services[service]["stop_grace_period"][:-1])
        killed += code == 137
        expect(code in (0, 137) and seconds < grace, f"{service} ends with {code} after {seconds:.1f} s of {grace}")
    expect(killed == len(USERS), f"{killed} containers were killed, and not {len(USERS)}")


def check(cluster):
    cluster.prepare()
    up, built = cluster.start()
    expect_shipped_privileges(cluster)
    expect_operable(cluster)
    expect_tls()
    traffic = cluster.become_client()
    traffic.start()
    traffic.go_on()
    for service in USERS:
        crash(cluster, traffic, service)
    upgrade(cluster, traffic)
    for service in ("redis", "haproxy"):
        make_anew(cluster, traffic, service)
    traffic.stop()
    cluster.shell("docker compose restart")
    cluster.wait_until_healthy()
    expect_records(cluster, traffic)
    expect_good_ends(cluster)
    differences = (f"instead: {one}" for one in cluster.differences)
    return [f"compose: built in {built:.1f} s, five containers healthy {up:.1f} s after `up`", *traffic.report(), *differences]


def check_restart(cluster):
    """Restarts the engine, as a machine does: containers start in any order."""
    began = time.monotonic()
    cluster.engine.restart()
    cluster.wait_until_healthy()
    took = time.monotonic() - began
    expect_records(cluster, cluster.traffic)
    return [f"engine restarted: five containers healthy after {took:.1f} s, nothing lost"]
