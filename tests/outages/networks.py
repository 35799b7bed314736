"""Networks that break under load, one case each: what is broken, where that must show while it lasts, and what clients must see
meanwhile. Nothing is decided by a moment: a case goes on when its sign is there and so many requests were answered or refused."""

import signal
import time

from machines import until
from services import NameServer, unless_broken

# Minimum seconds for which a network stays broken: in the long form, and in the short one.
LONG, SHORT = 15, 4


class Case:
    """`serves`: requests are answered while it is broken; otherwise they are refused with this code."""

    kind, wait, seconds, serves, code, excused = "single", 0, None, True, None, ()

    def seconds_of(self, long):
        return self.seconds or (LONG if long else SHORT)

    def sign(self, site):
        """Returns true once the fault shows."""
        return site.network.dropped() > 0

    def heal(self, site):
        site.network.heal()

    def run(self, site, backends, long):
        """Breaks the network, watches, repairs it; returns the time of the repair."""
        began = time.monotonic()
        self.break_(site)
        until(f"the fault shows: {self.__doc__}", lambda: self.sign(site), 60)
        if self.serves:
            backends.more(30, 90)
        else:
            backends.refused_with(self.code, 5, 90)
        self.meanwhile(site, backends)
        time.sleep(max(0, began + self.seconds_of(long) - time.monotonic()))
        self.heal(site)
        return time.monotonic()

    def meanwhile(self, site, backends):
        pass


class RedisCut(Case):
    """node1 and Redis: packets dropped in both directions."""

    def break_(self, site):
        site.network.cut(site.nodes[0].machine, site.stores)

    def sign(self, site):
        return super().sign(site) and site.nodes[0].unready() and "node1" not in site.proxy.up()


class RedisReplies(RedisCut):
    """node1 and Redis: only Redis' packets dropped (half open)."""

    def break_(self, site):
        for store in site.stores:
            site.network.drop(store, site.nodes[0].machine)


class ProxyCut(Case):
    """node1 and haproxy: packets dropped in both directions."""

    def break_(self, site):
        site.network.cut(site.nodes[0].machine, [site.proxy.machine])

    def sign(self, site):
        return super().sign(site) and "node1" not in site.proxy.up() and site.nodes[0].ready()


class ReplicaCut(Case):
    """Redis and one of two replicas, writes wait for one."""

    kind, wait = "sentinel", 1

    def break_(self, site):
        number = site.master()
        self.replica = site.redis[(number + 1) % 3]
        site.network.cut(site.stores[number], [self.replica.machine])

    def sign(self, site):
        lines = self.replica.ask("info", "replication").splitlines()
        silent = next((line for line in lines if line.startswith("master_last_io_seconds_ago:")), ":0")
        return super().sign(site) and (int(silent.split(":")[1]) >= 2 or "master_link_status:down" in lines)


class ReplicaCutAll(ReplicaCut):
    """The same, writes wait for both."""

    wait, serves, code = 2, False, "storage_unavailable"


class Loss(Case):
    """Every fifth packet from and to Redis lost at random."""

    def break_(self, site):
        site.network.lose(site.stores[0], 20)

    def sign(self, site):
        return site.network.dropped() > 50


class Delay(Case):
    """Each packet to Redis 300 ms later."""

    def break_(self, site):
        site.network.delay(site.stores[0], 300)

    def sign(self, site):
        asked = time.monotonic()
        site.redis[0].ask("ping")
        return time.monotonic() - asked >= 0.3


class SplitOne(Case):
    """The master with its sentinel and node1, alive and cut off from the rest; writes wait for one of two replicas."""

    kind, wait, seconds = "sentinel", 1, 25

    def break_(self, site):
        number = site.master()
        self.old = number
        minority = [site.stores[number], site.nodes[0].machine]
        rest = [store for store in site.stores if store is not minority[0]] + [node.machine for node in site.nodes[1:]]
        for machine in minority:
            site.network.cut(machine, rest)

    def sign(self, site):
        names = lambda server: server.ask("sentinel", "get-master-addr-by-name", "sakshi", port=26379).split()[0]
        others = {names(server) for number, server in enumerate(site.redis) if number != self.old}
        return super().sign(site) and site.nodes[0].unready() and len(others) == 1 and site.stores[self.old].address not in others


class SplitAll(SplitOne):
    """The same, writes wait for both replicas: none can be confirmed until the old master is back."""

    wait, serves, code = 2, False, "storage_unavailable"


class ClusterMinority(Case):
    """A cluster's master and node1, cut off from the majority of masters and the other nodes. Writes wait for the only replica of each: the
    clients of that master are refused until it is back."""

    kind, wait, seconds, serves, code = "cluster", 1, 20, False, "storage_unavailable"

    def break_(self, site):
        self.old = next(number for number, server in enumerate(site.redis) if self.has(server, site.backends.client))
        minority = [site.stores[self.old], site.nodes[0].machine]
        rest = [store for store in site.stores if store is not minority[0]] + [node.machine for node in site.nodes[1:]]
        for machine in minority:
            site.network.cut(machine, rest)

    def has(self, server, client):
        return server.says("role:master", "info", "replication") and bool(server.ask("--scan", "--pattern", f"*{client}*"))

    def sign(self, site):
        """Some other server has become a master, so that there are four who say so."""
        masters = [server.says("role:master", "info", "replication") for server in site.redis]
        return super().sign(site) and sum(masters) == 4 and site.nodes[0].unready()


class RedisPaused(Case):
    """Redis stands still (SIGSTOP)."""

    serves, code = False, "storage_unavailable"

    def seconds_of(self, long):
        return 30 if long else SHORT

    def break_(self, site):
        site.redis[0].process.send_signal(signal.SIGSTOP)

    def sign(self, site):
        return all(node.unready() for node in site.nodes)

    def heal(self, site):
        site.redis[0].process.send_signal(signal.SIGCONT)


class NamesGone(Case):
    """The name server is silent for 12 s. Half of the webhooks from then on go to a name that no node has looked up before: they wait."""

    seconds, new = 12, "new.example.test"

    def break_(self, site):
        site.network.silence(NameServer.PORT)
        site.backends.hosts.append(self.new)

    def meanwhile(self, site, backends):
        backends.more(30)
        early = [it for it in backends.all if it.host == self.new and it.txn in backends.hooks.arrived]
        unless_broken(not early, "webhooks arrive at a name that cannot be looked up")


class NamesGoneLong(NamesGone):
    """The same for 60 s: webhooks to the new name that wait for 30 s are lost, and recorded as `unresolved`."""

    seconds, excused = 60, ("unresolved",)


CASES = {
    "redis-cut": RedisCut, "redis-replies": RedisReplies, "haproxy-cut": ProxyCut, "redis-loss": Loss, "redis-delay": Delay,
    "redis-paused": RedisPaused, "names-12": NamesGone, "names-60": NamesGoneLong, "replica-cut": ReplicaCut, "split-one": SplitOne,
    "replica-cut-all": ReplicaCutAll, "split-all": SplitAll, "cluster-minority": ClusterMinority,
}
SHORT_FORM = ("redis-cut", "redis-replies", "redis-paused")
