"""Disks that break under load, under the embedded store and under Redis' append-only file, one case each. Each disk is broken and mended
while the service runs, where that can be, then broken again; the process is killed, the disk mended, and all is started again.
Where power is cut, only what had reached the disk is left."""

import time

from machines import until
from services import ask, unless_broken


class Case:
    """`codes`: with what requests are refused while it is broken, by store; none, when they are served."""

    codes = {"embedded": "storage_unavailable", "redis": "storage_unavailable"}
    # Mended once while the service runs; reads are served meanwhile; files must be mounted anew; power is cut at last.
    in_place, reads, anew, power = True, False, False, False

    def __init__(self, kind):
        self.kind = kind

    def mend(self, disk):
        disk.set()

    def broken(self, site, backends):
        self.break_(site.disk)
        if not self.codes:
            backends.try_until_answered(10)
            return
        backends.try_until_refused(self.codes[self.kind], 10)
        if self.reads and self.kind == "embedded":
            status, _, content = ask(site.public, "GET", "/api/v1/credits", headers=backends.headers)
            unless_broken(status == 200, f"a read is answered with {status} {content}")

    def whole(self, site, backends):
        """Waits until requests are answered again."""
        until("the node is ready again", site.is_whole, 60)
        at = time.monotonic()
        backends.try_until_answered(20)
        return at

    def run(self, site, backends):
        """Returns how long it took until requests were answered after each mending or start."""
        took = []
        if self.in_place:
            self.broken(site, backends)
            self.mend(site.disk)
            mended = time.monotonic()
            took.append(self.whole(site, backends) - mended)
        self.broken(site, backends)
        site.kill()
        self.mend(site.disk)
        took.append(self.started(site, backends, self.anew))
        if self.power:
            site.disk.cut_power()
            site.kill()
            took.append(self.started(site, backends, True))
        return took

    def started(self, site, backends, anew):
        if anew:
            site.disk.unmount()
            site.disk.mount()
        site.start()
        started = time.monotonic()
        return self.whole(site, backends) - started


class Full(Case):
    """No space left."""

    codes = {"embedded": "storage_full", "redis": "storage_unavailable"}
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

    in_place, anew = False, True

    def break_(self, disk):
        disk.cut_power()


class Sync(Case):
    """Writes succeed and fsync fails: the kernel has dropped what it could not write, and later says that all is well."""

    power = True

    def break_(self, disk):
        disk.set(failing=True)


class Slow(Case):
    """Each request to the disk takes 100 ms, and a sync several of them."""

    codes = None
    power = True

    def break_(self, disk):
        disk.set(delay_ms=100)


CASES = {f"{store}-{name}": (case, store) for store in ("embedded", "redis") for name, case in
         {"full": Full, "read-only": ReadOnly, "gone": Gone, "sync": Sync, "slow": Slow}.items()}
SHORT_FORM = ("embedded-full", "embedded-sync", "redis-sync")
