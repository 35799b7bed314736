"""Looks at manifests, compose file, rules and dashboard: whether they hold to what the service needs. Takes the folder deploy/,
the repository's root, what to look at, and for Kubernetes the built overlays."""

import json
import pathlib
import re
import sys
import tomllib

import kubernetes_validate
import yaml

import network

deploy, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
PUBLIC, INTERNAL, CONNECTORS = 8080, 8081, 8082


def expect(held, what):
    if not held:
        sys.exit(what)


def settings():
    """Every environment name that the service takes, from the file that documents them."""
    names, section = {"SAKSHI__PROFILE"}, ""
    for line in (root / "config/default.toml").read_text().splitlines():
        if found := re.match(r"\[(\w+)\]", line):
            section = found[1]
        elif section and (found := re.match(r"(\w+) = ", line)):
            names.add(f"SAKSHI__{section}__{found[1]}".upper())
    return names


def default(key):
    return int(re.search(rf"^{key} = (\d+)", (root / "config/default.toml").read_text(), re.M)[1])


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


def issuer_keys(name, pod, environment):
    """The file of the issuer's keys is replaced while a pod runs: by the kubelet, or by the node when there is a URL."""
    (container,) = pod["containers"]
    place = pathlib.PurePath(environment["SAKSHI__AUTHORITY__JWKS_PATH"])
    mount = next((one for one in container["volumeMounts"] if place.is_relative_to(one["mountPath"])), None)
    expect(mount and "subPath" not in mount, f"{name}: {place} never changes")
    volume = next(one for one in pod["volumes"] if one["name"] == mount["name"])
    is_fetched = "SAKSHI__AUTHORITY__JWKS_URL" in environment
    expect("emptyDir" in volume and not mount.get("readOnly") if is_fetched else "secret" in volume, f"{name}: nobody can replace {place}")


def kubernetes(*built):
    *built, example = built
    secrets = [item for item in yaml.safe_load_all(open(example))]
    given = {name: value for item in secrets for name, value in item["stringData"].items() if name.startswith("SAKSHI__")}
    expect(given.keys() <= settings(), f"the secrets have {given.keys() - settings()}, which are no settings")
    for path in built:
        objects = [item for item in yaml.safe_load_all(open(path)) if item]
        # The schemas of the oldest version that the base asks for. A PodMonitor is no part of Kubernetes.
        for item in [*objects, *secrets]:
            if item["kind"] != "PodMonitor":
                kubernetes_validate.validate(item, "1.30", strict=True)
        of = lambda kind: [item for item in objects if item["kind"] == kind]
        name = pathlib.Path(path).stem
        (deployment,), (config,) = of("Deployment") + of("StatefulSet"), of("ConfigMap")
        is_single = deployment["kind"] == "StatefulSet"
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        environment = config["data"]
        for key in environment:
            expect(key.removesuffix("_FILE") in settings(), f"{name}: {key} is no setting")
        secret = lambda key: "TOKEN" in key or key.endswith(("ENCRYPTION_KEY", "ENCRYPTION_KEYS", "REDIS_URL"))
        held = [key for key in environment if secret(key) and not key.endswith("_FILE")]
        expect(not held, f"{name}: {held} belong into a secret")
        expect(environment["SAKSHI__PROFILE"] == ("production" if is_single else name), f"{name}: the profile is {environment['SAKSHI__PROFILE']}")

        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        is_apart = "SAKSHI__SERVER__CONNECTOR_ADDR" in environment
        wanted = {"public": PUBLIC, "internal": INTERNAL} | ({"connectors": CONNECTORS} if is_apart else {})
        expect(ports == wanted, f"{name}: the ports are {ports}")
        for listener, port in ports.items():
            address = environment[f"SAKSHI__SERVER__{listener.removesuffix('s').upper()}_ADDR"]
            expect(address.endswith(f":{port}"), f"{name}: the {listener} listener is elsewhere")
        for probe, path_wanted in (("livenessProbe", "/livez"), ("startupProbe", "/livez"), ("readinessProbe", "/readyz")):
            asked = container[probe]["httpGet"]
            expect((asked["path"], asked["port"]) == (path_wanted, "internal"), f"{name}: {probe} asks {asked}")

        pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        drain, grace = int(environment["SAKSHI__SERVER__DRAIN_TIMEOUT_S"]), pod["terminationGracePeriodSeconds"]
        expect(pause >= 3, f"{name}: {pause} s are too few for every proxy to learn that a pod is leaving")
        expect(grace > pause + drain, f"{name}: {grace} s of grace are not longer than pause ({pause} s) and drain ({drain} s)")

        may = {**pod["securityContext"], **container["securityContext"]}
        expect(may["runAsNonRoot"] and may["runAsUser"] > 0, f"{name}: runs as root")
        expect(may["allowPrivilegeEscalation"] is False and may["readOnlyRootFilesystem"] is True, f"{name}: may write or gain privileges")
        expect(may["capabilities"] == {"drop": ["ALL"]}, f"{name}: has capabilities")
        expect(may["seccompProfile"] == {"type": "RuntimeDefault"}, f"{name}: may make any system call")
        expect(pod["automountServiceAccountToken"] is False and not pod.get("hostNetwork"), f"{name}: reaches the cluster or its machine")
        (source,) = container["envFrom"]
        expect(source["configMapRef"]["name"] == config["metadata"]["name"], f"{name}: the environment is from elsewhere")
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        (settings_at,) = (mounts[one["name"]] for one in pod["volumes"] if one.get("secret", {}).get("secretName") == "sakshi-settings")
        for key in given.keys() - ({"SAKSHI__STORE__REDIS_URL"} if is_single else set()):
            expect(environment.get(f"{key}_FILE") == f"{settings_at}/{key}", f"{name}: nothing reads {key}")
        expect(not of("Secret"), f"{name}: a secret stands in the repository")

        labels = deployment["spec"]["template"]["metadata"]["labels"].items()
        chosen = [item["spec"]["selector"] for item in of("Service")]
        chosen += [item["spec"]["selector"]["matchLabels"] for item in of("PodDisruptionBudget")]
        chosen += [item["spec"]["podSelector"]["matchLabels"] for item in of("NetworkPolicy")]
        expect(all(one.items() <= labels for one in chosen), f"{name}: something selects other pods: {chosen}")
        services = {item["metadata"]["name"]: item["spec"] for item in of("Service")}
        for service, unready in (("sakshi-public", False), ("sakshi-unready", True)):
            targets = [port["targetPort"] for port in services[service]["ports"]]
            expect(targets == ["public"], f"{name}: {service} leads to {targets}")
            expect(services[service].get("publishNotReadyAddresses", False) == unready, f"{name}: {service} leads to the wrong pods")
        to_connectors = "connectors" if is_apart else "internal"
        targets = [port["targetPort"] for port in services["sakshi-reports"]["ports"]]
        expect(targets == [to_connectors], f"{name}: the service of reports leads to {targets}")
        policies = of("NetworkPolicy")
        connector = {"namespaceSelector": {"matchLabels": {"sakshi/role": "connector"}}}
        reached = [rule["ports"] for policy in policies for rule in policy["spec"].get("ingress", []) if connector in rule["from"]]
        expect(reached == [[{"port": to_connectors}]], f"{name}: connectors reach {reached}")
        for fault in network.faults(policies, given | environment):
            expect(False, f"{name}: {fault}")
        issuer_keys(name, pod, environment)
        expect(services["sakshi-internal"]["clusterIP"] == "None", f"{name}: the internal service is balanced")
        spaces = {item["metadata"].get("namespace") for item in objects if item["kind"] != "Namespace"}
        expect(spaces == {f"sakshi-{name}"}, f"{name}: objects are in {spaces}")
        for monitor in of("PodMonitor"):
            (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
            expect(monitor["spec"]["selector"]["matchLabels"].items() <= labels, f"{name}: the monitor selects other pods")
            expect((endpoint["port"], endpoint["path"]) == ("internal", "/metrics"), f"{name}: the monitor asks {endpoint}")
        for ingress in of("Ingress"):
            (rule,), (tls,) = ingress["spec"]["rules"], ingress["spec"]["tls"]
            host = environment["SAKSHI__SERVER__PUBLIC_BASE_URL"].removeprefix("https://")
            expect(rule["host"] == host and tls["hosts"] == [host], f"{name}: the ingress is not for {host}")
            (way,) = rule["http"]["paths"]
            expect(way["backend"]["service"] == {"name": "sakshi-public", "port": {"name": "public"}}, f"{name}: the ingress leads to {way}")
            otherwise = ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/default-backend"]
            expect(otherwise == "sakshi-unready", f"{name}: without ready pods the ingress leads to {otherwise}")
        if is_single:
            (claim,) = deployment["spec"]["volumeClaimTemplates"]
            mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            expect(environment["SAKSHI__STORE__KIND"] == "embedded", f"{name}: its store is no file")
            expect(mounts.get(claim["metadata"]["name"]) == environment["SAKSHI__STORE__PATH"], f"{name}: the store is not on the volume")
            expect(deployment["spec"]["replicas"] == 1, f"{name}: a file is for one node")
            continue
        enough = [item["spec"]["minReplicas"] for item in of("HorizontalPodAutoscaler")] or [deployment["spec"].get("replicas", 1)]
        expect(enough[0] >= 2, f"{name}: one node is no cluster")


def unit(name):
    """The lines of a unit as keys and values, in order."""
    lines = (deploy / "systemd" / name).read_text().splitlines()
    return [tuple(line.split("=", 1)) for line in lines if re.match(r"\w+=", line)]


def values(lines, key):
    """Every value of a key; an empty one takes back those before it."""
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
        unknown = environment(lines).keys() - settings()
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
    store = "SAKSHI__STORE__PATH"
    expect(environment(backup)[store] == environment(service)[store], "the backup reads another store")
    # What the runbook restores with is what the service runs with.
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
            expect(key in settings(), f"{name}: {key} is no setting")
        # A file that is mounted alone stays the old one when another takes its place.
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
    """The files that the block of the README has made are those that the containers' users read."""
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
    expect(profile == "stage" and names <= settings(), f"{names - settings()} are no settings")


def is_in_context(path):
    """Whether the build sees this path: the last line of the ignore file that is about it decides."""
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
    toolchain = re.search(r'rust-version = "([\d.]+)"', (root / "Cargo.toml").read_text())[1]
    expect(f"=rust:{toolchain}." in text, f"the build does not use Rust {toolchain}")
    features = re.search(r"^ARG FEATURES=(.*)$", text, re.M)[1]
    expect("sandbox" not in features.split(","), "the production image has the sandbox")
    # Nothing that a manifest of the workspace names is kept out of the build.
    for member in tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["members"]:
        expect(is_in_context(member), f"the build does not see {member}")


def metrics():
    """Every metric that a rule or a panel names is one that the code counts; what is not ours must be known here."""
    catalogue = (root / "src/server/src/telemetry/catalogue.rs").read_text()
    ours = set(re.findall(r'metric\("(\w+)"', catalogue))
    theirs = {"up", "haproxy_server_status", "haproxy_backend_retry_warnings_total"}
    rules = yaml.safe_load((deploy / "prometheus/alerts.yaml").read_text())
    every = [rule for group in rules["groups"] for rule in group["rules"]]
    panels = json.loads((deploy / "grafana/sakshi.json").read_text())["panels"]
    said = [rule["expr"] for rule in every] + [target["expr"] for panel in panels for target in panel["targets"]]
    used = {re.sub(r"_bucket$", "", name) for text in said for name in re.findall(r"\b([a-z_]+)\{", text)}
    expect(used, "no rule names a metric")
    unknown = used - ours - theirs
    expect(not unknown, f"nobody counts {sorted(unknown)}")
    runbook = (deploy / "runbook.md").read_text()
    for rule in every:
        expect(f"`{rule['alert']}`" in runbook, f"the runbook does not know {rule['alert']}")
        expect(rule["labels"]["severity"] in ("page", "ticket"), f"{rule['alert']}: who is told?")
    expect(len({panel["id"] for panel in panels}) == len(panels), "two panels have one id")


globals()[sys.argv[3]](*sys.argv[4:])
