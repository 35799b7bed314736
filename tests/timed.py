#!/usr/bin/env python3
"""How long the suites take, in wall-clock and processor seconds.

    timed.py run SUITE COMMAND...    runs a suite and keeps its times; ends as the command does
    timed.py program PROGRAM...      the same for one test program of cargo, which is its `runner`; not for those named in ELSEWHERE
    timed.py forget                  forgets what was kept
    timed.py told                    what was kept: a table of the suites, and the slowest tests of each
    timed.py alone                   the same, after the slowest tests of each test program ran alone, which tells their processor time

Times are kept in target/timings. Processor seconds are those of all processes that a suite started (getrusage(2), proc(5)).
"""

import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "target" / "timings"
SLOWEST = 20
TICKS = os.sysconf("SC_CLK_TCK")
# Variables that cargo sets for a test program, which it needs again to run alone.
TOLD_BY_CARGO = re.compile("CARGO_(MANIFEST_DIR|BIN_EXE_.*)|SAKSHI_.*|LD_LIBRARY_PATH")
STEP = re.compile(r"ok +(?:\d+ - )?(.*)")
TEST = re.compile(r"test (.*) \.\.\. (?:ok|FAILED) <([\d.]+)s>")


def processor_seconds():
    """Returns the time that this process' children have used, running and ended."""
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            fields = stat[stat.rindex(")") + 2:].split()
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / TICKS
    family, found = {os.getpid()}, -1
    while len(family) != found:
        found = len(family)
        family |= {child for child, parent in parents.items() if parent in family}
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(used[pid] for pid in family - {os.getpid()})


def adopt():
    """Makes orphaned processes children of this one, so that their time is counted (prctl(2))."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def wait_for_orphans():
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def watched(command, environment, seen):
    """Runs a command, prints its output and calls `seen` with each line; returns its exit code, wall and processor seconds."""
    adopt()
    began, before = time.monotonic(), processor_seconds()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    for line in child.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        seen(line.decode(errors="replace").strip())
    ended = child.wait()
    wait_for_orphans()
    return ended, time.monotonic() - began, processor_seconds() - before


def keep(suite, wall, cpu, ended, tests, again=None):
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = {"suite": suite, "wall": wall, "cpu": cpu, "ended": ended, "tests": tests, "again": again}
    (KEPT / f"{suite}.json").write_text(json.dumps(kept))


def run(suite, command):
    """A suite that works sequentially, and prints `ok` and a name after each step."""
    tests, last = [], [time.monotonic(), 0.0]

    def seen(line):
        step = STEP.fullmatch(line)
        if step:
            now = [time.monotonic(), processor_seconds()]
            tests.append({"name": step[1], "wall": now[0] - last[0], "cpu": now[1] - last[1]})
            last[:] = now

    ended, wall, cpu = watched(command, None, seen)
    keep(suite, wall, cpu, ended, tests)
    return ended


def program(command):
    """A test program of cargo. Its harness reports the time of each test, as an unstable feature."""
    name = re.sub("-[0-9a-f]{16}$", "", Path(command[0]).name)
    if name in os.environ.get("ELSEWHERE", "").split():
        return 0
    store = os.environ.get("SAKSHI_TEST_STORE")
    again = {"program": command[0], "directory": os.getcwd(), "environment": {k: v for k, v in os.environ.items() if TOLD_BY_CARGO.fullmatch(k)}}
    tests = []

    def seen(line):
        test = TEST.match(line)
        if test:
            tests.append({"name": test[1], "wall": float(test[2]), "cpu": None})

    more = ["-Zunstable-options", "--report-time"]
    ended, wall, cpu = watched([*command, *more], {**os.environ, "RUSTC_BOOTSTRAP": "1"}, seen)
    keep(f"{name} on Redis" if store == "redis" else name, wall, cpu, ended, tests, again)
    return ended


def slowest(kept):
    return sorted(kept["tests"], key=lambda test: -test["wall"])[:SLOWEST]


def measured_alone(kept):
    """Runs the slowest tests of a test program, one at a time."""
    again = kept["again"]
    for test in slowest(kept):
        environment = {**os.environ, **again["environment"]}
        before, began = processor_seconds(), time.monotonic()
        subprocess.run([again["program"], "--exact", test["name"]], cwd=again["directory"], env=environment, stdout=subprocess.DEVNULL)
        wait_for_orphans()
        test["alone"], test["cpu"] = time.monotonic() - began, processor_seconds() - before


def told(is_alone):
    suites = [json.loads(path.read_text()) for path in KEPT.glob("*.json")]
    suites.sort(key=lambda kept: -kept["cpu"])
    if is_alone:
        adopt()
        for kept in suites:
            if kept["again"]:
                measured_alone(kept)
    # A suite of the Makefile may consist of several test programs, which are counted with it.
    total = sum(kept["cpu"] for kept in suites if not kept["again"])
    print("| Suite | Tests | Wall s | Processor s |\n|---|---:|---:|---:|")
    for kept in suites:
        print(f"| {kept['suite']} | {len(kept['tests']) or ''} | {kept['wall']:.0f} | {kept['cpu']:.0f} |")
    print(f"| all | | | {total:.0f} |")
    for kept in suites:
        if len(kept["tests"]) < 2 or kept["wall"] < 1:
            continue
        print(f"\n{kept['suite']}: the slowest, in wall and processor seconds{', and alone' if is_alone and kept['again'] else ''}")
        for test in slowest(kept):
            cpu = "" if test["cpu"] is None else f"{test['cpu']:.1f}"
            alone = f"{test['alone']:8.1f}" if "alone" in test else ""
            print(f"{test['wall']:8.1f} {cpu:>7}{alone}  {test['name'][:110]}")
    return 0


def main():
    what, *words = sys.argv[1:] or ["told"]
    if what == "run":
        return run(words[0], words[1:])
    if what == "program":
        return program(words)
    if what == "forget":
        for path in KEPT.glob("*.json"):
            path.unlink()
        return 0
    if what in ("told", "alone"):
        try:
            return told(what == "alone")
        except BrokenPipeError:
            return 1
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
