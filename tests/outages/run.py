"""Breaks a network or a disk under load, repairs it, and compares the clients' answers with the state afterwards.

  run.py [networks|disks|CASE...]     all cases of a kind in their short form (SAKSHI_TESTS=long: all of them), or these
  run.py --list                       their names

Prints a line for each case and fails when a promise is broken. Ends with 3 where namespaces cannot be made."""

import os
import signal
import subprocess
import sys
import time
import traceback

import disks
import machines
import networks
from disk import Disk
from load import Backends, Guests
from services import BINARY, LOADER, Alone, Site, tail

LONG = os.environ.get("SAKSHI_TESTS") == "long"


class Load:
    """Both clients from before the fault until after it; then their judges."""

    def __init__(self, site, internal):
        self.backends = site.backends = Backends(site.public, internal)
        self.guests = site.guests = Guests(site.client, site.public, internal)
        self.backends.start()
        machines.until("guests come", lambda: self.guests.present() >= 5, 60)
        self.backends.more(20)

    def judge(self, name, whole, excused, more=""):
        judged = self.guests.stop()
        self.backends.stop()
        lost, doubled, silent = self.backends.judge(excused)
        self.backends.close()
        transactions = sum(it.finished for it in self.backends.all) + judged.transactions
        lost += judged.sentences(excused)
        refused = f"{len(self.backends.wrong)} / {judged.refused} of {judged.requests}"
        figures = f"lost {len(lost)} doubled {len(doubled)} refused {refused} gap {self.backends.gap():.1f} s whole after {whole}"
        more += f"; {silent} webhooks {' or '.join(excused)}" if silent else ""
        codes = ", ".join(f"{count} {code}" for code, count in self.backends.codes.items())
        print(f"{name}: {transactions} transactions, {figures}{more}{'; repeated after ' + codes if codes else ''}", flush=True)
        if excused == ("unresolved",) and not silent:
            lost.append("the fault shows nowhere: no webhook was lost and recorded")
        if lost or doubled:
            raise machines.Broken("; ".join((lost + doubled)[:4]))


def network_case(name, site):
    case = networks.CASES[name]()
    load = Load(site, site.nodes[1].internal)
    mended = case.run(site, load.backends, LONG)
    machines.until("the site is whole", site.is_whole, 90)
    whole = time.monotonic()
    load.backends.more(40)
    whole = max([whole, *load.backends.refusals]) - mended
    load.judge(name, f"{whole:.1f} s", case.excused)


def disk_case(name, site):
    case = disks.CASES[name][0](site.kind)
    load = Load(site, site.internal)
    took = case.run(site, load.backends)
    # A webhook in flight at a kill is never sent again.
    load.judge(name, " / ".join(f"{seconds:.1f} s" for seconds in took), ("unknown",))


def site_of(name):
    network = machines.Network()
    if name in networks.CASES:
        return Site(network, networks.CASES[name].kind, networks.CASES[name].wait)
    return Alone(network, Disk("disk"), disks.CASES[name][1])


def run_here(names):
    """Runs cases that share a site, as long as it is whole."""
    site = None
    for name in names:
        try:
            site = site or site_of(name)
            (network_case if name in networks.CASES else disk_case)(name, site)
        except Exception as error:
            why = error if isinstance(error, machines.Broken) else traceback.format_exc()
            print(f"{tail()}\nnot run: {' '.join(names[names.index(name) + 1 :]) or 'none'}\nFAILED {name}: {why}", flush=True)
            return 1
    return 0


def apart(names):
    """Cases that share a site; each group is a run of this program in namespaces of its own. A disk is broken once."""
    groups = {}
    for name in names:
        case = networks.CASES.get(name)
        groups.setdefault((case.kind, case.wait) if case else name, []).append(name)
    return list(groups.values())


def main(words):
    if words == ["--list"]:
        print(*networks.CASES, *disks.CASES, sep="\n")
        return 0
    names = []
    for word in words or ["networks", "disks"]:
        every = {"networks": networks, "disks": disks}.get(word)
        names += [word] if not every else list(every.CASES) if LONG else list(every.SHORT_FORM)
    if len(apart(names)) > 1:
        with_us = lambda: machines.die_with_parent(signal.SIGTERM)
        codes = [subprocess.run([sys.executable, __file__, *group], preexec_fn=with_us).returncode for group in apart(names)]
        # A failure, also a death by a signal (negative), counts more than a group that cannot run here.
        return next((code for code in codes if code not in (0, 3)), max(codes))
    if missing := [program for program in (BINARY, LOADER) if not os.path.exists(program)]:
        print("not built:", *missing)
        return 1
    machines.enter()
    return run_here(names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
