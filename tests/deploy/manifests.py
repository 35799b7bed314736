"""Looks at the built manifests of Kubernetes: whether they hold to the schemas, to what the service needs and to each other.

    manifests.py DEPLOY ROOT FOLDER

The folder holds OVERLAY.yaml, OVERLAY+COMPONENT.yaml for each component alone, OVERLAY+all.yaml, and redis.yaml.
"""

import functools
import itertools
import json
import pathlib
import re
import subprocess
import sys
from urllib.parse import urlsplit

import kubernetes_validate
import yaml
from kubernetes_validate import utils

import network
from facts import expect, metrics, settings
from rules import groups

deploy, root, folder = map(pathlib.Path, sys.argv[1:])
LISTENERS = {"public": 8080, "internal": 8081, "connectors": 8082}
KUBERNETES = deploy / "kubernetes"
# Kinds that the API server learns from third parties, with their own schemas.
CUSTOM = ("PodMonitor", "PrometheusRule", "HTTPRoute", "ExternalSecret")
utils.schema_contents = functools.cache(utils.schema_contents)


def read(path):
    return [item for item in yaml.safe_load_all(path.read_text()) if item]


SECRETS = {item["metadata"]["name"]: item["stringData"] for item in read(KUBERNETES / "secrets.example.yaml")}


class Overlay:
    """A built overlay: its objects by kind, the node's pod, and the pod's settings."""

    def __init__(self, path):
        self.name, self.objects = path.stem, read(path)
        self.overlay = self.name.partition("+")[0]
        self.is_single = self.overlay == "single"
        (self.workload,) = self.of("Deployment", "StatefulSet")
        self.pod = self.workload["spec"]["template"]["spec"]
        (self.container,) = self.pod["containers"]
        (self.config,) = [item for item in self.of("ConfigMap") if "SAKSHI__PROFILE" in item["data"]]
        self.environment = self.config["data"]
        self.labels = self.workload["spec"]["template"]["metadata"]["labels"].items()
        self.mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}

    def of(self, *kinds):
        return [item for item in self.objects if item["kind"] in kinds]

    def expect(self, held, what):
        expect(held, f"{self.name}: {what}")


def pods(objects):
    """Returns every pod of these objects, with its labels and owner."""
    for item in objects:
        spec = item["spec"].get("jobTemplate", item)["spec"] if item["kind"] == "CronJob" else item.get("spec", {})
        if "template" in spec:
            yield f"{item['kind']} {item['metadata']['name']}", spec["template"]["metadata"]["labels"], spec["template"]["spec"]


def schemas(built):
    """Returns the oldest version that the base asks for, and the newest that the package knows."""
    oldest = re.search(r"^# Needs Kubernetes (\d\.\d+) ", (KUBERNETES / "base/kustomization.yaml").read_text(), re.M)[1]
    newest = kubernetes_validate.latest_version()
    each = {json.dumps(item): item for path in built for item in read(path)}.values()
    for item, version in itertools.product([*each, *read(KUBERNETES / "secrets.example.yaml")], (oldest, newest)):
        if item["kind"] not in CUSTOM:
            try:
                kubernetes_validate.validate(item, version, strict=True)
            except kubernetes_validate.ValidationError as fault:
                expect(False, f"{item['kind']} {item['metadata']['name']} in {version}: {'.'.join(map(str, fault.path))}: {fault.message}")
    custom = [item for item in [*each, *prometheus_rules("sakshi-production")] if item["kind"] in CUSTOM]
    said = subprocess.run(["node", root / "target/deploy/custom.mjs"], input=json.dumps(custom), text=True, capture_output=True)
    expect(said.returncode == 0, said.stdout + said.stderr)


def prometheus_rules(namespace):
    """Returns the rules as the Prometheus operator gets them. Each query of a node's series names the namespace."""
    script = KUBERNETES / "components/monitoring/rules.sh"
    for wrong in ([], [""], ["a/b"]):
        expect(subprocess.run([script, *wrong], capture_output=True).returncode == 2, f"rules.sh takes {wrong} for a namespace")
    made = subprocess.run([script, namespace], capture_output=True, check=True, text=True).stdout
    objects = list(yaml.safe_load_all(made))
    chosen = lambda groups: [rule["expr"] for group in groups for rule in group["rules"]]
    wanted = [expr.replace('job="sakshi"', f'job="sakshi", namespace="{namespace}"') for expr in chosen(groups(deploy))]
    expect(chosen(group for item in objects for group in item["spec"]["groups"]) == wanted, "rules.sh prints other queries, or nodes of every namespace")
    return objects


def confined(name, objects):
    """Checks for Pod Security's restricted profile, a read-only root, no access to the cluster, and a bounded share of the machine."""
    (space,) = [item["metadata"] for item in objects if item["kind"] == "Namespace"]
    for mode in ("enforce", "warn"):
        expect(space["labels"].get(f"pod-security.kubernetes.io/{mode}") == "restricted", f"{name}: the namespace does not {mode} restricted pods")
    chosen = [item["spec"]["podSelector"]["matchLabels"] for item in objects if item["kind"] == "NetworkPolicy"]
    for maker, labels, pod in pods(objects):
        made = f"{name}: the pod of {maker}"
        (container,) = pod["containers"]
        may = {**pod["securityContext"], **container["securityContext"]}
        expect(may["runAsNonRoot"] and may["runAsUser"] > 0, f"{made} runs as root")
        expect(may["allowPrivilegeEscalation"] is False and may["readOnlyRootFilesystem"] is True, f"{made} may write or gain privileges")
        expect(may["capabilities"] == {"drop": ["ALL"]}, f"{made} has capabilities")
        expect(may["seccompProfile"] == {"type": "RuntimeDefault"}, f"{made} may make any system call")
        expect(pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False, f"{made} is told of the cluster")
        expect(not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys(), f"{made} shares its machine's")
        resources = container["resources"]
        expect({"cpu", "memory"} <= resources["requests"].keys() and "memory" in resources["limits"], f"{made} asks for no share")
        expect(re.search(r"[:@](?!latest)[^/]+$", container["image"]), f"{made} runs any version")
        expect(any(one.items() <= labels.items() for one in chosen), f"{made} has no network policy")


def environment(look):
    """Checks that settings exist, that none is secret, and that each secret is a file of the pod."""
    for key in look.environment:
        look.expect(key.removesuffix("_FILE") in settings(root), f"{key} is no setting")
    secret = lambda key: "TOKEN" in key or key.endswith(("ENCRYPTION_KEY", "ENCRYPTION_KEYS", "REDIS_URL"))
    held = [key for key in look.environment if secret(key) and not key.endswith("_FILE")]
    look.expect(not held, f"{held} belong into a secret")
    profile = look.environment["SAKSHI__PROFILE"]
    look.expect(profile == ("production" if look.is_single else look.overlay), f"the profile is {profile}")
    (source,) = look.container["envFrom"]
    look.expect("env" not in look.container and source["configMapRef"]["name"] == look.config["metadata"]["name"], "the environment is from elsewhere")
    (settings_at,) = (look.mounts[one["name"]] for one in look.pod["volumes"] if one.get("secret", {}).get("secretName") == "sakshi-settings")
    for key in SECRETS["sakshi-settings"].keys() - ({"SAKSHI__STORE__REDIS_URL"} if look.is_single else set()):
        look.expect(look.environment.get(f"{key}_FILE") == f"{settings_at}/{key}", f"nothing reads {key}")
    look.expect(not look.of("Secret"), "a secret stands in the repository")


def issuer_keys(look):
    """Checks that the file of the issuer's keys can change while a pod runs: through the kubelet, or through the node if there is a URL."""
    place = pathlib.PurePath(look.environment["SAKSHI__AUTHORITY__JWKS_PATH"])
    mount = next((one for one in look.container["volumeMounts"] if place.is_relative_to(one["mountPath"])), None)
    look.expect(mount and "subPath" not in mount, f"{place} never changes")
    volume = next(one for one in look.pod["volumes"] if one["name"] == mount["name"])
    is_fetched = "SAKSHI__AUTHORITY__JWKS_URL" in look.environment
    look.expect("emptyDir" in volume and not mount.get("readOnly") if is_fetched else "secret" in volume, f"nobody can replace {place}")


def life(look):
    """Checks listeners, probes, egress, and the number of nodes that may be down at a time."""
    ports = {port["name"]: port["containerPort"] for port in look.container["ports"]}
    is_apart = "SAKSHI__SERVER__CONNECTOR_ADDR" in look.environment
    look.expect(ports == {name: port for name, port in LISTENERS.items() if is_apart or name != "connectors"}, f"the ports are {ports}")
    for listener, port in ports.items():
        address = look.environment[f"SAKSHI__SERVER__{listener.removesuffix('s').upper()}_ADDR"]
        look.expect(address.endswith(f":{port}"), f"the {listener} listener is elsewhere")
    for probe, path in (("livenessProbe", "/livez"), ("startupProbe", "/livez"), ("readinessProbe", "/readyz")):
        asked = look.container[probe]["httpGet"]
        look.expect((asked["path"], asked["port"]) == (path, "internal"), f"{probe} asks {asked}")
    pause = look.container["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain, grace = int(look.environment["SAKSHI__SERVER__DRAIN_TIMEOUT_S"]), look.pod["terminationGracePeriodSeconds"]
    look.expect(pause >= 3, f"{pause} s are too few for every proxy to learn that a pod is leaving")
    look.expect(grace > pause + drain, f"{grace} s of grace are not longer than pause ({pause} s) and drain ({drain} s)")
    look.expect(look.workload["spec"].get("minReadySeconds", 0) > 0, "a node counts before it has shown that it stays")
    (budget,) = look.of("PodDisruptionBudget")
    look.expect(budget["spec"].get("maxUnavailable") == 1, "machines may be emptied of two nodes at a time")
    look.expect(budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow", "while Redis is away no machine can be emptied")
    if look.is_single:
        look.expect(look.workload["spec"]["replicas"] == 1, "a file is for one node")
        probe = look.container["startupProbe"]
        look.expect(probe["failureThreshold"] * probe["periodSeconds"] >= 3600, "an upgrade of a large store is killed")
        return
    spread = {one["topologyKey"]: one["labelSelector"]["matchLabels"] for one in look.pod["topologySpreadConstraints"]}
    look.expect(spread.keys() == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}, f"nodes are spread over {spread.keys()}")
    look.expect(all(one.items() <= look.labels for one in spread.values()), "other pods are spread")
    rolling = look.workload["spec"]["strategy"]["rollingUpdate"]
    look.expect(rolling["maxUnavailable"] == 0, "an old node drains before a new one is ready")
    enough = [item["spec"]["minReplicas"] for item in look.of("HorizontalPodAutoscaler")] or [look.workload["spec"].get("replicas", 1)]
    look.expect(enough[0] >= (3 if look.overlay == "production" else 2), f"{enough[0]} nodes are too few")


def services(look):
    """Checks the routing to pods, and access to the internal listener."""
    chosen = [item["spec"]["selector"] for item in look.of("Service")]
    chosen += [item["spec"]["selector"]["matchLabels"] for item in look.of("PodDisruptionBudget")]
    chosen += [item["spec"]["podSelector"]["matchLabels"] for item in look.of("NetworkPolicy") if item["metadata"]["name"] != "sakshi-backup"]
    look.expect(all(one.items() <= look.labels for one in chosen), f"something selects other pods: {chosen}")
    each = {item["metadata"]["name"]: item["spec"] for item in look.of("Service")}
    is_apart = "SAKSHI__SERVER__CONNECTOR_ADDR" in look.environment
    to_connectors = "connectors" if is_apart else "internal"
    wanted = {"sakshi-public": ("public", False), "sakshi-unready": ("public", True), "sakshi-reports": (to_connectors, False)}
    for service, (target, unready) in wanted.items():
        targets = [port["targetPort"] for port in each[service]["ports"]]
        look.expect(targets == [target], f"{service} leads to {targets}")
        look.expect(each[service].get("publishNotReadyAddresses", False) == unready, f"{service} leads to the wrong pods")
    look.expect(each["sakshi-internal"]["clusterIP"] == "None", "the internal service is balanced")
    policies = [item for item in look.of("NetworkPolicy") if item["metadata"]["name"] != "sakshi-backup"]
    for fault in network.faults(policies, SECRETS["sakshi-settings"] | look.environment):
        look.expect(False, fault)
    hosts = {urlsplit(url).hostname for key, url in look.environment.items() if re.fullmatch("SAKSHI__UPSTREAMS__.*_URL", key)}
    wanted = {"public": {"ingress"}, "internal": {"monitoring"}}
    wanted.setdefault(to_connectors, set()).update({"connector"} | {host for host in hosts if host.endswith(".internal")})
    reached = network.comers(policies)
    look.expect(reached == wanted, f"listeners are reached by {reached}")
    for monitor in look.of("PodMonitor"):
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        look.expect(monitor["spec"]["selector"]["matchLabels"].items() <= look.labels, "the monitor selects other pods")
        look.expect((endpoint["port"], endpoint["path"]) == ("internal", "/metrics"), f"the monitor asks {endpoint}")
    spaces = {item["metadata"].get("namespace") for item in look.objects if item["kind"] not in ("Namespace", "PriorityClass")}
    look.expect(spaces == {f"sakshi-{look.overlay}"}, f"objects are in {spaces}")


def ways_in(look):
    """Checks ingress and routes: the host of the settings, to the ready pods, with room for long answers."""
    host = look.environment["SAKSHI__SERVER__PUBLIC_BASE_URL"].removeprefix("https://")
    # The components are written for production's host.
    host = host.removeprefix("stage.")
    for ingress in look.of("Ingress"):
        (rule,), (tls,) = ingress["spec"]["rules"], ingress["spec"]["tls"]
        look.expect(rule["host"] == host and tls["hosts"] == [host], f"the ingress is not for {host}")
        (way,) = rule["http"]["paths"]
        look.expect(way["backend"]["service"] == {"name": "sakshi-public", "port": {"name": "public"}}, f"the ingress leads to {way}")
        otherwise = ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/default-backend"]
        look.expect(otherwise == "sakshi-unready", f"without ready pods the ingress leads to {otherwise}")
    public = [port["port"] for item in look.of("Service") if item["metadata"]["name"] == "sakshi-public" for port in item["spec"]["ports"]]
    for route in look.of("HTTPRoute"):
        look.expect(route["spec"]["hostnames"] == [host], f"the route is not for {host}")
        (parent,), (rule,) = route["spec"]["parentRefs"], route["spec"]["rules"]
        if parent["sectionName"] == "http":
            (redirect,) = (one["requestRedirect"] for one in rule["filters"])
            look.expect("backendRefs" not in rule and redirect["scheme"] == "https", "something is answered without TLS")
            continue
        look.expect([(one["name"], one["port"]) for one in rule["backendRefs"]] == [("sakshi-public", *public)], "the route leads elsewhere")
        look.expect(rule.get("timeouts") == {"request": "0s"}, "the gateway cuts long answers")
        look.expect("retry" not in rule and "filters" not in rule, "the gateway sends requests again, or others")


def autoscaler(look):
    """Checks that this workload is scaled, always by processor time, and by a metric that nodes have and the adapter serves."""
    for item in look.of("HorizontalPodAutoscaler"):
        target = item["spec"]["scaleTargetRef"]
        look.expect((target["kind"], target["name"]) == (look.workload["kind"], look.workload["metadata"]["name"]), f"it scales {target}")
        look.expect("replicas" not in look.workload["spec"], "applying it sets back what the autoscaler has decided")
        given = {one["type"]: one for one in item["spec"]["metrics"]}
        look.expect(given["Resource"]["resource"]["name"] == "cpu" and "cpu" in look.container["resources"]["requests"], "nothing scales without the adapter")
        workers = look.environment["SAKSHI__SERVER__WORKERS"]
        look.expect(workers == look.container["resources"]["requests"]["cpu"], f"{workers} workers have another share of processors")
        if "Pods" in given:
            metric, target = given["Pods"]["pods"]["metric"]["name"], given["Pods"]["pods"]["target"]
            (rule,) = yaml.safe_load((KUBERNETES / "components/autoscale-load/adapter.yaml").read_text())["rules"]["custom"]
            series = rule["seriesQuery"].split("{")[0]
            look.expect(metric == series and metric in metrics(root), f"nobody serves {metric}")
            look.expect(rule["resources"]["overrides"].keys() == {"namespace", "pod"}, "the adapter does not know whose load it is")
            look.expect(target["type"] == "AverageValue" and re.fullmatch(r"[3-8]00m", target["averageValue"]), f"{target} is no load")
    wanted = look.pod.get("priorityClassName")
    look.expect([wanted] == ([item["metadata"]["name"] for item in look.of("PriorityClass")] or [None]), f"there is no priority {wanted}")


def backup(look):
    """Checks that one node's job reads the node's store, as its user and with its settings, and writes elsewhere."""
    if not look.is_single:
        return
    (claim,), (job,) = look.workload["spec"]["volumeClaimTemplates"], look.of("CronJob")
    look.expect(look.environment["SAKSHI__STORE__KIND"] == "embedded", "its store is no file")
    store = look.environment["SAKSHI__STORE__PATH"]
    look.expect(look.mounts.get(claim["metadata"]["name"]) == store, "the store is not on the volume")
    look.expect(claim["spec"]["accessModes"] == ["ReadWriteOnce"], "the backup cannot mount the store")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
    claimed = f"{claim['metadata']['name']}-{look.workload['metadata']['name']}-0"
    look.expect(mounts[store]["persistentVolumeClaim"]["claimName"] == claimed, "the backup reads another store")
    users = [[one["securityContext"][key] for key in ("runAsUser", "runAsGroup", "fsGroup")] for one in (look.pod, pod)]
    look.expect(users[0] == users[1], "the backup is another user")
    programs = [(one["image"], one["envFrom"]) for one in (look.container, container)]
    look.expect(programs[0] == programs[1], "the backup is another program, or has other settings")
    settings_at = pathlib.PurePath(look.environment["SAKSHI__STORE__ENCRYPTION_KEY_FILE"]).parent
    look.expect(mounts[str(settings_at)]["secret"]["secretName"] == "sakshi-settings", "the backup has no key")
    (near,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    look.expect(near["labelSelector"]["matchLabels"].items() <= look.labels and near["topologyKey"] == "kubernetes.io/hostname", "the backup runs on another machine")
    command, place, keep, count = container["args"]
    look.expect((command, keep) == ("backup", "--keep") and int(count) > 1, f"the job runs {container['args']}")
    kept = [item["metadata"]["name"] for item in look.of("PersistentVolumeClaim")]
    look.expect([mounts[place]["persistentVolumeClaim"]["claimName"]] == kept, "the backups are not kept")
    look.expect(job["spec"]["concurrencyPolicy"] == "Forbid" and job["spec"]["startingDeadlineSeconds"] > 100, "backups run side by side, or never")


def external_secrets(look):
    """Checks that they make the secrets of the example, key by key."""
    made = {item["spec"]["target"]["name"]: {one["secretKey"] for one in item["spec"]["data"]} for item in look.of("ExternalSecret")}
    look.expect(not made or made == {name: set(keys) for name, keys in SECRETS.items()}, f"the operator makes {made}")


def redis(path, space):
    """Checks Redis of deploy/redis in a cluster: the command of Compose, a volume under it, and access for nodes alone."""
    objects = read(path)
    by = lambda kind: next(item for item in objects if item["kind"] == kind)
    pod = by("StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    composed = yaml.safe_load((deploy / "compose/compose.yaml").read_text())["services"]["redis"]
    rename = {"/run/secrets/users.acl": "/run/secrets/redis/users.acl"}
    expect(container["args"] == [rename.get(word, word) for word in composed["command"]], f"redis: starts with {container['args']}")
    expect(container["image"].endswith("/" + composed["image"]), f"redis: is {container['image']}")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        expect(container[probe]["exec"]["command"][-1] == composed["healthcheck"]["test"][1], f"redis: {probe} asks something else")
    (claim,) = by("StatefulSet")["spec"]["volumeClaimTemplates"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    expect(mounts.get("/data") == claim["metadata"]["name"], "redis: its file is not on the volume")
    expect({"/etc/redis", "/run/secrets/redis"} <= mounts.keys(), "redis: has no settings or no users")
    gigabytes = lambda text: int(re.fullmatch(r"(\d+)(gb|Gi)", text)[1])
    expect(gigabytes(container["resources"]["limits"]["memory"]) >= 2 * gigabytes(container["args"][-1]), "redis: a rewrite does not fit")
    expect(pod["terminationGracePeriodSeconds"] == int(composed["stop_grace_period"].removesuffix("s")), "redis: is killed before its last sync")
    (rule,) = by("NetworkPolicy")["spec"]["ingress"]
    (peer,) = rule["from"]
    expect(peer["namespaceSelector"]["matchLabels"].items() <= space["labels"].items(), "redis: nodes are not let in")
    expect(by("Namespace")["metadata"]["labels"]["sakshi/role"] == "redis", "redis: nodes are not let out")
    expect((by("Service")["metadata"]["name"], by("Namespace")["metadata"]["name"]) == ("redis", "redis"), "redis: is not at redis.redis.svc")


unknown = {key for key in SECRETS["sakshi-settings"] if key not in settings(root)}
expect(not unknown, f"the secrets have {unknown}, which are no settings")
built = sorted(folder.glob("*.yaml"))
schemas(built)
for path in built:
    confined(path.stem, read(path))
    if path.stem == "redis":
        continue
    look = Overlay(path)
    for check in (environment, issuer_keys, life, services, ways_in, autoscaler, backup, external_secrets):
        check(look)
redis(folder / "redis.yaml", look.of("Namespace")[0]["metadata"])
print(f"{len(built)} manifests")
