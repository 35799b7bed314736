"""Checks that the network policies of a built overlay let the nodes reach the hosts of its own examples, and no others."""

import ipaddress
import itertools
from urllib.parse import urlsplit

DEFAULT_PORTS = {"https": 443, "http": 80, "redis": 6379, "rediss": 6379}
# Settings with the URLs that nodes connect to. Those of the authority and of the service itself are only named.
CONNECTED = ("_REDIS_URL", "_JWKS_URL", "_OTLP_ENDPOINT")
# Addresses of Redis and its sentinels in the cluster, and of the name server of every node.
ALWAYS = [("redis.redis.svc", 6379), ("sentinel.redis.svc", 26379), ("169.254.20.10", 53), ("203.0.113.7", 8443)]
NEVER = [("10.1.2.3", 443), ("169.254.169.254", 80), ("127.0.0.1", 8081), ("other.default.svc", 8443), ("else.example.internal", 6379)]


def peers_of(environment):
    """Returns host and port of everything to which the settings let a node connect."""
    for key, value in environment.items():
        if key.endswith(CONNECTED) or (key.startswith("SAKSHI__UPSTREAMS__") and key.endswith("_URL")):
            for url in map(urlsplit, value.split(",")):
                yield url.hostname, url.port or DEFAULT_PORTS[url.scheme]


def has_port(rule, port):
    return any(one["port"] <= port <= one.get("endPort", one["port"]) for one in rule["ports"])


def in_block(block, address):
    inside = lambda cidr: address.version == ipaddress.ip_network(cidr).version and address in ipaddress.ip_network(cidr)
    return inside(block["cidr"]) and not any(inside(cidr) for cidr in block.get("except", []))


def is_meant(peer, host, hosts):
    """Returns true if a peer of a rule stands for the host. `hosts`: those whose addresses the policy names."""
    space = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("sakshi/role")
    block = peer.get("ipBlock")
    if host.removesuffix(".cluster.local").endswith(".svc"):
        return space == host.split(".")[1]
    if block is None:
        return False
    try:
        return in_block(block, ipaddress.ip_address(host))
    except ValueError:
        # A name: private addresses belong to hosts that the policy names, public ones to all others.
        is_private = ipaddress.ip_network(block["cidr"]).is_private
        return host in hosts if is_private else not host.endswith(".internal")


def rules(policies, direction):
    for policy in policies:
        hosts = policy["metadata"].get("annotations", {}).get("sakshi/hosts", "").split()
        for rule in policy["spec"].get(direction, []):
            yield rule, hosts


def comers(policies):
    """Returns the callers of each listener: the roles of namespaces, and the hosts whose addresses the policy has."""
    found = {}
    for rule, hosts in rules(policies, "ingress"):
        for port, peer in itertools.product(rule["ports"], rule["from"]):
            role = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("sakshi/role")
            found.setdefault(port["port"], set()).update([role] if role else hosts or [str(peer)])
    return found


def reaches(policies, host, port):
    return any(
        has_port(rule, port) and any(is_meant(peer, host, hosts) for peer in rule["to"]) for rule, hosts in rules(policies, "egress")
    )


def faults(policies, environment):
    """Returns a sentence for each unreachable example, and for each address that should be unreachable."""
    for host, port in [*peers_of(environment), *ALWAYS]:
        if not reaches(policies, host, port):
            yield f"no policy lets nodes reach {host}:{port}"
    for host, port in NEVER:
        if reaches(policies, host, port):
            yield f"a policy lets nodes reach {host}:{port}"
    # Receivers of orders report back.
    reporters = [hosts for rule, hosts in rules(policies, "ingress") for peer in rule["from"] if "ipBlock" in peer]
    for key, value in environment.items():
        host = urlsplit(value).hostname or ""
        if key.startswith("SAKSHI__UPSTREAMS__") and host.endswith(".internal") and not any(host in hosts for hosts in reporters):
            yield f"no policy lets {host} report"
