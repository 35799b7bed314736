"""Runs every query of the rules and of the dashboard by a real Prometheus, which scrapes two nodes on Redis behind haproxy and one with
an embedded store while guests come and go. Each must be valid and find something.

    observed.py DEPLOY SAKSHI SAKSHI-LOAD
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

from ports import free_ports
from rules import FILES, alerts, dashboard, queries

deploy, sakshi, load = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
SECONDS = 200
# Queries that find nothing while all is well.
NOTHING = {"SakshiSignerAway": "these nodes sign with a key in a file", "SakshiAuditLogUnsent": "nobody receives the audit log of these nodes"}

work = pathlib.Path(tempfile.mkdtemp())
started = []


def start(name, command, **environment):
    log = open(work / f"{name}.log", "w")
    started.append(subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, cwd=work, env=os.environ | environment))


def fail(what):
    logs = "".join(f"--- {log.name}\n{log.read_text()[-500:]}\n" for log in sorted(work.glob("*.log")))
    sys.exit(f"{what}\n{logs}")


def until(holds, what):
    end = time.monotonic() + SECONDS
    while not (found := holds()):
        if time.monotonic() > end or any(process.poll() is not None for process in started):
            fail(what() if callable(what) else what)
        time.sleep(0.1)
    return found


def answers(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def start_node(name, public, internal, **settings):
    environment = {"PROFILE": "sandbox", "SERVER__PUBLIC_ADDR": f"127.0.0.1:{public}", "SERVER__INTERNAL_ADDR": f"127.0.0.1:{internal}"}
    environment |= {"STORE__PATH": str(work / "store")} | settings
    start(name, [sakshi, "serve"], SAKSHI_LOG="warn", **{f"SAKSHI__{key}": value for key, value in environment.items()})
    until(lambda: answers(internal, "/readyz"), f"{name} does not become ready")


def start_all():
    """Starts everything; returns the ports of Prometheus, and of the balancer and the first node for guests."""
    redis, public1, internal1, public2, internal2, public3, internal3, closed, http, stats, prometheus = free_ports(11)
    start("redis", ["redis-server", deploy / "redis/redis.conf", "--port", redis, "--bind", "127.0.0.1", "--dir", work, "--daemonize", "no"])
    until(lambda: subprocess.run(["redis-cli", "-p", str(redis), "ping"], capture_output=True).stdout == b"PONG\n", "no Redis")
    key = subprocess.run(["openssl", "rand", "-base64", "32"], capture_output=True, check=True, text=True).stdout.strip()
    shared = {"STORE__KIND": "redis", "STORE__REDIS_URL": f"redis://127.0.0.1:{redis}", "STORE__ENCRYPTION_KEY": key,
              "SERVER__PUBLIC_BASE_URL": f"http://127.0.0.1:{http}", "SERVER__TRUSTED_PROXIES": "127.0.0.1"}
    start_node("node1", public1, internal1, **shared)
    start_node("node2", public2, internal2, **shared)
    pem = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "90", "-subj", "/CN=localhost"]
    subprocess.run([*pem, "-keyout", work / "key.pem", "-out", work / "chain.pem"], capture_output=True, check=True)
    embedded = {"STORE__PATH": str(work / "embedded"), "SERVER__TLS_CERT": str(work / "chain.pem"), "SERVER__TLS_KEY": str(work / "key.pem")}
    start_node("node3", public3, internal3, **embedded)
    settings = {f"SAKSHI__{name}": value for name, value in embedded.items()}
    subprocess.run([sakshi, "backup", work / "backups"], env=os.environ | settings, capture_output=True, check=True)
    nodes = {"SAKSHI_NODE1": f"127.0.0.1:{public1}", "SAKSHI_NODE2": f"127.0.0.1:{public2}", "SAKSHI_NODE3": f"127.0.0.1:{closed}",
             "SAKSHI_NODE1_INTERNAL": str(internal1), "SAKSHI_NODE2_INTERNAL": str(internal2), "SAKSHI_NODE3_INTERNAL": str(closed)}
    start("haproxy", ["haproxy", "-db", "-f", deploy / "haproxy/haproxy.cfg"], SAKSHI_HTTP=f"127.0.0.1:{http}",
          SAKSHI_STATS=f"127.0.0.1:{stats}", SAKSHI_ADMIN_SOCKET=str(work / "haproxy.sock"), **nodes)
    until(lambda: answers(http, "/api/ping"), "haproxy reaches no node")
    write_config({"sakshi": [internal1, internal2, internal3], "haproxy": [stats]})
    start("prometheus", ["prometheus", f"--config.file={work}/prometheus.yaml", f"--storage.tsdb.path={work}/data",
                         f"--web.listen-address=127.0.0.1:{prometheus}", "--log.level=warn"])
    until(lambda: answers(prometheus, "/-/ready"), "no Prometheus")
    return prometheus, http, internal1


def write_config(targets):
    """Writes the shipped configuration and rules with these ports, and with a second in the place of each interval."""
    config = yaml.safe_load((deploy / "prometheus/prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    # No Alertmanager of this machine learns of the test.
    del config["alerting"]
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{port}" for port in targets.pop(job["job_name"])]}]
    (work / "prometheus.yaml").write_text(yaml.safe_dump(config))
    for name in FILES:
        text = (deploy / "prometheus" / name).read_text()
        (work / name).write_text(re.sub(r"^    interval: \w+$", "    interval: 1s", text, flags=re.M))


def told(port, path, **arguments):
    """Returns the data of an answer of Prometheus, or its error as text."""
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        return json.load(error)["error"]


def plain(expression):
    """Returns a query without variables and filters: a comparison gives 0 or 1, so that normal values are found too."""
    expression = expression.replace("$instance", ".*").replace("$__rate_interval", "1m")
    parts = re.split(r'("[^"]*"|\{[^}]*\})', expression)
    parts[::2] = [re.sub(r"(==|!=|>=|<=|>|<)", r"\1 bool", part) for part in parts[::2]]
    return "".join(parts)


def send_guests(http, internal):
    issuer = work / "store/sandbox-keys/issuer.p8"
    for scenario in (["kiosk", "--guests", "40"], ["api", "--guests", "30"]):
        command = [load, *scenario, "--rate", "20", "--base", f"http://127.0.0.1:{http}", "--internal", f"http://127.0.0.1:{internal}",
                   "--issuer-key", issuer]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"the guests were not served: {done.stdout[-2_000:]}{done.stderr[-2_000:]}")


def run():
    prometheus, http, internal = start_all()
    variables = [one["query"]["query"] for one in dashboard(deploy)["templating"]["list"] if one["type"] == "query"]
    asked = dict(queries(deploy)) | {f"variable {text}": re.sub(r"label_values\((.*), \w+\)", r"\1", text) for text in variables}
    send_guests(http, internal)
    open_queries = {place: plain(expression) for place, expression in asked.items()}

    def all_found():
        for place, expression in list(open_queries.items()):
            data = told(prometheus, "query", query=expression)
            if isinstance(data, str):
                fail(f"{place}: {data}")
            if data["result"]:
                del open_queries[place]
        return open_queries.keys() <= NOTHING.keys()

    until(all_found, lambda: f"nothing is found by {sorted(open_queries)}")
    known = [rule for group in told(prometheus, "rules")["groups"] for rule in group["rules"]]
    ill = [(rule["name"], rule["lastError"]) for rule in known if rule["health"] not in ("ok", "unknown")]
    if ill:
        fail(f"rules that cannot be evaluated: {ill}")
    wrong = NOTHING.keys() - open_queries.keys()
    if wrong:
        fail(f"{sorted(wrong)} find something after all")
    print(f"{len(asked)} queries, {len(alerts(deploy))} of them alerts: each finds something but {', '.join(NOTHING)}")


try:
    run()
finally:
    for process in started:
        process.kill()
    for process in started:
        process.wait()
    shutil.rmtree(work)
