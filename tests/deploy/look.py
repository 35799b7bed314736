"""Looks at units, compose files, image, rules and dashboard: whether they hold to what the service needs. Takes the folder deploy/,
the repository's root, and what to look at."""

import pathlib
import re
import sys
import tomllib

import yaml

import dashboard
import facts
import rules
from facts import expect

deploy, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def default(key):
    return int(re.search(rf"^{key} = (\d+)", (root / "config/default.toml").read_text(), re.M)[1])


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


def unit(name):
    """Returns the lines of a unit as keys and values, in order."""
    lines = (deploy / "systemd" / name).read_text().splitlines()
    return [tuple(line.split("=", 1)) for line in lines if re.match(r"\w+=", line)]


def values(lines, key):
    """Returns every value of a key; an empty one discards those before it."""
    found = []
    for name, value in lines:
        if name == key:
            found = [*found, value] if value else []
    return found


def systemd():
    service, backup = unit("sakshi.service"), unit("sakshi-backup.service")
    instance = service + unit("sakshi@.service.d/instance.conf")
    environment = lambda lines: dict(value.split("=", 1) for value in values(lines, "Environment"))
    directories = lambda lines: " ".join(values(lines, "StateDirectory")).split()
    for name, lines in (("sakshi.service", service), ("sakshi@.service", instance), ("sakshi-backup.service", backup)):
        unknown = environment(lines).keys() - facts.settings(root)
        expect(not unknown, f"{name}: {unknown} are no settings")
        for key, value in environment(lines).items():
            place = re.match(r"%S/([^/]+)", value)
            expect(not place or place[1] in directories(lines), f"{name}: {key} is in no directory of the service")
        for page in values(lines, "Documentation"):
            page = page.removeprefix("file:///usr/local/share/doc/sakshi/")
            packed = re.search(r"archive HEAD (.*) \|", (deploy / "release/dist.sh").read_text())[1].split()
            expect((root / page).is_file() and page.split("/")[0] in packed, f"{name}: no archive has {page}")
    # A credential is copied when the unit starts; these change while it runs.
    for name, lines in (("sakshi.service", service), ("sakshi@.service", instance)):
        keys = environment(lines)["SAKSHI__AUTHORITY__JWKS_PATH"]
        expect(keys.startswith("%S/"), f"{name}: a changed {keys} is not seen before a restart")
    for key in ("DynamicUser", "User", "StateDirectoryMode", "UMask"):
        expect(values(backup, key) == values(service, key) != [], f"the backup has another {key} than the service")
    expect(set(values(backup, "LoadCredential")) <= set(values(service, "LoadCredential")), "the backup reads other settings")
    # `nice` is this call, and @resources, which the line before takes away, has it.
    expect(values(service, "SystemCallFilter")[-1] == "setpriority", "work for strangers runs at the priority of the HTTP workers")
    store = "SAKSHI__STORE__PATH"
    expect(environment(backup)[store] == environment(service)[store], "the backup reads another store")
    # The runbook restores with the binary and settings of the service.
    line = re.search(r"systemd-run .*? restore ", (deploy / "runbook.md").read_text(), re.S)[0]
    for key, value in re.findall(r'-p (\w+)="?([^"\n]*?)"?(?= -|\s\\)', line):
        expect(value in values(backup, key), f"the runbook restores with another {key} than the service has")
    expect(f"-E {store}=/var/lib/{environment(backup)[store].removeprefix('%S/')} " in line, "the runbook restores another store")
    target = re.search(r" backup %S/(\S+) --keep \d+$", values(backup, "ExecStart")[0])
    expect(target and target[1] in directories(backup), "the backup is written elsewhere than into a directory of its own")


def compose():
    file = yaml.safe_load((deploy / "compose/compose.yaml").read_text())
    drain = default("drain_timeout_s")
    nodes = [name for name in file["services"] if name.startswith("node")]
    expect(len(nodes) == 3, "three nodes")
    for name, service in file["services"].items():
        expect(not service.get("privileged") and not service.get("cap_add"), f"{name}: is privileged")
        expect(service.get("cap_drop") == ["ALL"], f"{name}: has capabilities")
        expect(service.get("read_only") is True, f"{name}: may write to its image")
        expect("no-new-privileges:true" in service.get("security_opt", []), f"{name}: may gain privileges")
        expect(int(service["user"].split(":")[0]) > 0, f"{name}: runs as root")
        expect({"healthcheck", "mem_limit", "pids_limit"} <= service.keys(), f"{name}: has no health check or no limits")
        expect(("ports" in service) == (name == "haproxy"), f"{name}: only haproxy is reachable from outside")
        for secret in service.get("secrets", []):
            expect(secret in file["secrets"], f"{name}: there is no secret {secret}")
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            is_ours = source.startswith(".") and not source.startswith("./secrets/")
            expect(not is_ours or (deploy / "compose" / source).is_file(), f"{name}: {source} does not exist")
        for network in service["networks"]:
            expect(network in file["networks"], f"{name}: there is no network {network}")
    for name in nodes:
        service = file["services"][name]
        expect(seconds(service["stop_grace_period"]) > drain, f"{name}: is killed before it has drained")
        for key in service["environment"]:
            expect(key in facts.settings(root), f"{name}: {key} is no setting")
        # A file mounted by itself stays the old one after a replacement.
        keys = pathlib.PurePath(service["environment"]["SAKSHI__AUTHORITY__JWKS_PATH"])
        expect(f"./secrets/issuer:{keys.parent}" in service["volumes"], f"{name}: nobody can replace {keys}")
    sandbox = yaml.safe_load((deploy / "compose/sandbox.yaml").read_text())
    (service,) = sandbox["services"].values()
    host, port = "${SAKSHI_HOST:-127.0.0.1}", "${SAKSHI_PORT:-8080}"
    named = {"SAKSHI__SERVER__PUBLIC_ADDR": f"0.0.0.0:{port}", "SAKSHI__SERVER__PUBLIC_BASE_URL": f"http://{host}:{port}"}
    expect("secrets" not in sandbox, "a sandbox has nothing to prepare")
    expect(service["environment"] == named, "a sandbox names another address than its own")
    expect(service["ports"] == [f"{host}:{port}:{port}"], "a sandbox is reached from this machine only")
    expect(service["cap_drop"] == ["ALL"] and service["read_only"] is True, "the sandbox has more rights than it needs")
    expect(seconds(service["stop_grace_period"]) > drain, "the sandbox is killed before it has drained")
    build = file["services"]["node1"]["build"]
    expect(service["build"] == build | {"args": {"FEATURES": "shipped,sandbox"}}, "the sandbox is more than the image with that feature")
    expect(service["image"] != file["services"]["node1"]["image"], "the sandbox has the name of the production image")
    expect((root / "deploy/compose" / build["context"] / build["dockerfile"]).is_file(), f"there is no {build['dockerfile']}")
    haproxy = file["services"]["haproxy"]
    local = [port for port in haproxy["ports"] if port not in ("80:80", "443:443")]
    expect(local == ["127.0.0.1:8404:8404"], f"haproxy is reached from outside at {local}")
    expect(haproxy["environment"]["SAKSHI_ADMIN_SOCKET"].startswith("ipv4@127.0.0.1:"), "haproxy's control socket leaves its container")
    expect(file["networks"]["data"]["internal"] is True, "Redis can be reached from outside")
    expect("edge" not in file["services"]["redis"]["networks"], "Redis stands at the edge")


def secrets(folder):
    """Checks that the files made by the README's block are those that the containers' users read."""
    folder = pathlib.Path(folder)
    file = yaml.safe_load((folder / "compose.yaml").read_text())
    readers = {}
    for service in file["services"].values():
        given = [file["secrets"][name]["file"] for name in service.get("secrets", [])]
        given += [mount.split(":")[0] for mount in service.get("volumes", []) if mount.startswith("./secrets/")]
        readers |= {name: int(service["user"].split(":")[0]) for name in given}
    for name, user in readers.items():
        about = (folder / name).stat()
        expect(about.st_uid == user and about.st_mode & 0o077 == 0, f"{name} is not for user {user} alone")
    expect(not re.search(r"#(0{64}|1{64})", (folder / "secrets/users.acl").read_text()), "Redis has passwords that nobody knows")
    made = tomllib.loads((folder / "secrets/sakshi.toml").read_text())
    profile = made.pop("profile")
    names = {f"SAKSHI__{section}__{key}".upper() for section, keys in made.items() for key in keys}
    expect(profile == "stage" and names <= facts.settings(root), f"{names - facts.settings(root)} are no settings")


def is_in_context(path):
    """Returns true if the build sees this path: the last matching line of the ignore file decides."""
    seen = True
    for line in (deploy / "container/Dockerfile.dockerignore").read_text().splitlines():
        pattern = pathlib.PurePath(line.removeprefix("!"))
        if not line.startswith("#") and pathlib.PurePath(path).is_relative_to("" if line == "*" else pattern):
            seen = line.startswith("!")
    return seen


def container():
    text = (deploy / "container/Dockerfile").read_text()
    last = text[text.rindex("\nFROM ") :]
    user = re.search(r"^USER (\d+)", last, re.M)
    expect(user and int(user[1]) > 0, "the image runs as root")
    for name in ("PUBLIC_ADDR", "INTERNAL_ADDR"):
        expect(re.search(rf"SAKSHI__SERVER__{name}=0\.0\.0\.0:", last), f"{name} of the image cannot be reached from outside")
    expect("HEALTHCHECK" in last and "STOPSIGNAL SIGTERM" in last, "no health check, or another signal than the drain's")
    for label in ("version", "revision", "source", "url", "created", "base.name", "licenses"):
        expect(f"org.opencontainers.image.{label}=" in last, f"the image has no label {label}")
    expect("/out/share/THIRD-PARTY.txt" in text and "/out/share/ /usr/local/share/doc/" in last, "the image lacks the licences of its parts")
    toolchain = re.search(r'rust-version = "([\d.]+)"', (root / "Cargo.toml").read_text())[1]
    expect(f"=rust:{toolchain}." in text, f"the build does not use Rust {toolchain}")
    features = re.search(r"^ARG FEATURES=(.*)$", text, re.M)[1]
    expect("sandbox" not in features.split(","), "the production image has the sandbox")
    # Nothing that a manifest of the workspace names is kept out of the build.
    for member in tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["members"]:
        expect(is_in_context(member), f"the build does not see {member}")


def metrics():
    """Checks that every metric of a rule or a panel is counted by the code or recorded by a rule; others must be known here."""
    theirs = {"up", "haproxy_server_status", "haproxy_backend_retry_warnings_total"}
    recorded = {rule["record"] for rule in rules.rules(deploy) if "record" in rule}
    used = {name for _, query in rules.queries(deploy) for name in rules.names(query)}
    unknown = used - facts.metrics(root) - theirs - recorded
    expect(not unknown and recorded <= used, f"nobody counts {sorted(unknown)}, or asks for {sorted(recorded - used)}")
    runbook = (deploy / "runbook.md").read_text()
    rows = set(re.findall(r"^\| `(Sakshi\w+)` \|", runbook, re.M))
    alerts = {rule["alert"] for rule in rules.alerts(deploy)}
    expect(rows == alerts, f"the runbook and the alerts differ in {sorted(rows ^ alerts)}")
    for rule in rules.alerts(deploy):
        expect(rule["labels"]["severity"] in ("page", "ticket"), f"{rule['alert']}: who is told?")
        expect(rule["annotations"].keys() == {"summary", "runbook_url"}, f"{rule['alert']} says {rule['annotations']}")
    # A scraper may come once a minute, and a rate needs two samples.
    short = {rule.get("alert") or rule["record"] for rule in rules.rules(deploy) if re.search(r"\[(1m|\d+s)\]", rule["expr"])}
    expect(not short, f"{sorted(short)} find nothing when the scraper comes once a minute")
    config = yaml.safe_load((deploy / "prometheus/prometheus.yaml").read_text())
    expect(config.get("alerting", {}).get("alertmanagers"), "Prometheus sends its alerts to nobody")
    expect(config["rule_files"] == [*rules.FILES], f"Prometheus loads {config['rule_files']}")
    board = rules.dashboard(deploy)
    expect(len({panel["id"] for panel in board["panels"]}) == len(board["panels"]), "two panels have one id")
    faults = dashboard.faults(board)
    expect(not faults, f"Grafana does not know {faults}")
    objectives()


def objectives():
    """Checks that the budgets and bounds of the rules are those of the page."""
    page = (root / "docs/objectives.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| .*? \| ([\d.]+) % \| (?:([\d.]+) s)? ?\|", page, re.M)
    told = {(objective, sli): (round(1 - float(percent) / 100, 6), bound) for objective, sli, percent, bound in rows}
    held = {}
    for rule in rules.rules(deploy):
        key = tuple(rule.get("labels", {}).get(label) for label in ("objective", "sli"))
        if rule.get("record") == "sakshi:objective_budget:ratio":
            held.setdefault(key, ["", ""])[0] = float(re.fullmatch(r"vector\((.*)\)", rule["expr"])[1])
        elif rule.get("record") == "sakshi:objective_misses:rate2m":
            held[key][1] = "".join(re.findall(r'le="([\d.]+)"', rule["expr"]))
    held = {key: tuple(value) for key, value in held.items()}
    expect(told == held, f"docs/objectives.md says {told}, and the rules say {held}")


globals()[sys.argv[3]](*sys.argv[4:])
