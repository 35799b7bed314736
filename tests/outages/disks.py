"""Disks that break under load, under the embedded store and under Redis' append-only file, one case each. Each disk is broken and mended
while the service runs, where that can be, then broken again; the process is killed, the disk mended, and all is started again.
Where power is cut, only what had reached the disk is left."""

import contextlib
import signal
import time

from machines import until
from services import ask, unless_broken


class Case:
    """`codes`: with what requests are refused while it is broken, by store; none, when they are served."""

    codes = {"embedded": ["storage_unavailable"], "redis": ["storage_unavailable"]}
    # Repaired once while the service runs; reads are served meanwhile; files must be mounted anew; power is cut at last.
    in_place, reads, anew, power = True, False, False, False

    def __init__(self, kind):
        self.kind = kind

    def mend(self, disk):
        disk.set()

    @contextlib.contextmanager
    def quietly(self, site, backends):
        """Linux reports success to any program for a sync at the moment when ext4 gives up its journal. So no client waits for an answer
        then."""
        if not self.anew:
            yield
            return
        site.guests.process.send_signal(signal.SIGSTOP)
        with backends.quiet():
            time.sleep(1)
            yield
        site.guests.process.send_signal(signal.SIGCONT)

    def broken(self, site, backends):
        with self.quietly(site, backends):
            self.break_(site.disk)
        if not self.codes:
            answered = lambda: backends.try_one() is None
            for _ in range(5):
                until("a request is answered", answered, 60)
            return
        backends.try_until_refused(self.codes[self.kind], 5)
        if self.reads and self.kind == "embedded":
            status, _, content = ask(site.public, "GET", "/api/v1/credits", headers=backends.headers)
            unless_broken(status == 200, f"a read is answered with {status} {content}")

    def whole(self, site, backends):
        """Waits until requests are answered again."""
        until("the node is ready again, and a request is answered", lambda: site.is_whole() and backends.try_one() is None, 60)
        at = time.monotonic()
        backends.try_until_answered(20)
        return at

    def run(self, site, backends):
        """Returns the time until requests were answered after each repair or start."""
        took = []
        if self.in_place:
            self.broken(site, backends)
            self.mend(site.disk)
            mended = time.monotonic()
            took.append(self.whole(site, backends) - mended)
        self.broken(site, backends)
        site.kill()
        if self.anew:
            site.disk.remount()
        else:
            self.mend(site.disk)
        took.append(self.started(site, backends))
        if self.power:
            site.disk.cut_power(site.kill)
            took.append(self.started(site, backends))
        return took

    def started(self, site, backends):
        site.start()
        started = time.monotonic()
        return self.whole(site, backends) - started


class Full(Case):
    """No space left."""

    codes = {"embedded": ["storage_full"], "redis": ["storage_unavailable"]}
    reads, power = True, True

    def break_(self, disk):
        disk.fill()

    def mend(self, disk):
        disk.free()


class ReadOnly(Case):
    """The file system has become read-only after an error, as ext4 does."""

    in_place, reads, anew = False, True, True

    def break_(self, disk):
        disk.become_read_only()


class Gone(Case):
    """Every operation fails (EIO): the disk is gone, and with it all that was not synced."""

    # SQLite takes a page that it needs and cannot read for damage.
    codes = {"embedded": ["storage_unavailable", "storage_corrupt"], "redis": ["storage_unavailable"]}
    in_place, anew = False, True

    def break_(self, disk):
        disk.be_gone()


class Sync(Case):
    """Writes succeed and fsync fails: the kernel has dropped what it could not write, and later says that all is well."""

    power = True

    def break_(self, disk):
        disk.fail_contents()

    def whole(self, site, backends):
        """Redis may find its file damaged at the end, and what it loads may be in memory alone: the runbook says what to do."""
        if site.redis:
            until("Redis has loaded its file", site.redis.repair)
        at = super().whole(site, backends)
        if site.redis:
            site.redis.rewrite()
        return at


class Slow(Case):
    """Each request to the disk takes 50 ms, and a sync several of them."""

    codes = None
    power = True

    def break_(self, disk):
        disk.set(delay_ms=50)


CASES = {f"{store}-{name}": (case, store) for store in ("embedded", "redis") for name, case in
         {"full": Full, "read-only": ReadOnly, "gone": Gone, "sync": Sync, "slow": Slow}.items()}
SHORT_FORM = ("embedded-full", "embedded-sync", "redis-slow")
