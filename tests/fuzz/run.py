#!/usr/bin/env python3
"""Builds the fuzzer and feeds every target, or those that are named.

    run.py                        a minute over all targets, with what the tests have built of other crates
    run.py --whole --total 20000000 --table tests/evidence.md
                                  counters in every crate, optimised code, and so many executions more in the table
    run.py --seconds 60 jwks      one target for a minute
    run.py --shrink               keeps of the corpus only what reaches something of its own

An input that breaks a promise is left in target/fuzz/found, and the run fails.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COUNTERS = [
    "-Cpasses=sancov-module", "-Cllvm-args=-sanitizer-coverage-level=4", "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table", "-Cllvm-args=-sanitizer-coverage-trace-compares",
]
# Bytes of the largest input, where the usual is too small or too large.
LARGEST = {"values": 512, "queries": 512, "intent_signed": 256, "store_rows": 512, "callback_reply": 512}
USUAL = 2048
# The heading of the table in its document.
SECTION = "## Fuzzing"


def cargo():
    return os.environ.get("FUZZ_CARGO", os.environ.get("CARGO", "cargo")).split()


def built(whole):
    """Builds the programs; returns the path of each by its group."""
    command = [*cargo(), "test", "--test", "fuzz-*", "--features", "sakshi-fuzz/libfuzzer", "--no-run", "--message-format", "json-render-diagnostics"]
    environment = dict(os.environ)
    if whole:
        # With a target of its own, what runs at build time is compiled without counters.
        host = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))[1]
        environment["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(COUNTERS)
        environment["CARGO_TARGET_DIR"] = str(ROOT / "target" / "fuzz" / "build")
        environment["CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS"] = environment["CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS"] = "true"
        command += ["--package", "sakshi-fuzz", "--release", "--target", host]
    else:
        # Only crates of this workspace have counters, so that everything else is what the tests have built.
        environment["RUSTC_WORKSPACE_WRAPPER"] = str(HERE / "with-counters.sh")
        command += ["--workspace"]
    output = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    messages = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    made = {found["target"]["name"]: found["executable"] for found in messages if found.get("executable")}
    return {group.upper(): made[f"fuzz-{group}"] for group in ("parsers", "browsers", "stores")}


def targets():
    """Returns the group of each target, as listed in src/lib.rs."""
    lists = re.findall(r"const (\w+): &\[Target\] = &\[(.*?)\];", (HERE / "src" / "lib.rs").read_text(), re.DOTALL)
    return {name: group for group, listed in lists for name in re.findall(r'name: "(\w+)"', listed)}


def options(name, found):
    largest = LARGEST.get(name, USUAL)
    words = HERE / "words.txt"
    return [f"-max_len={largest}", "-timeout=10", "-rss_limit_mb=2048", f"-dict={words}", f"-artifact_prefix={found}/{name}-", "-print_final_stats=1"]


def fed(program, name, seconds, runs, found):
    """Runs one target; returns its row of the table, or nothing if it found something."""
    grown = ROOT / "target" / "fuzz" / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    limits = [f"-runs={runs}"] if runs else []
    limits += [f"-max_total_time={seconds}"] if seconds else []
    command = [program, *options(name, found), *limits, str(grown), str(HERE / "corpus" / name)]
    began = time.monotonic()
    ran = subprocess.run(command, env={**os.environ, "SAKSHI_FUZZ_TARGET": name}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    log, took = ran.stderr.decode(errors="replace"), time.monotonic() - began
    (found / f"{name}.log").write_text(log)
    if ran.returncode:
        why = "a promise is broken" if re.search("^artifact_prefix=", log, re.MULTILINE) else f"ended with {ran.returncode}"
        print(f"{name}: {why}; {found}/{name}.log\n" + "\n".join(log.splitlines()[-25:]), file=sys.stderr)
        return None
    executions = int(re.findall(r"number_of_executed_units:\s+(\d+)", log)[-1])
    coverage = re.findall(r"cov: (\d+) ft: ", log)[-1]
    print(f"{name}: {executions:,} executions in {took:.0f} s, {coverage} edges", flush=True)
    return name, executions, round(executions / max(took, 0.1)), int(coverage)


def told(path):
    """Returns the rows of a table, to which a run adds its executions."""
    text = path.read_text() if path and path.exists() else ""
    found = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", text, re.MULTILINE)
    return {name: (name, *(int(number.replace(",", "")) for number in numbers)) for name, *numbers in found}


def table(rows, whole):
    total = sum(row[1] for row in rows)
    counted = "every crate" if whole else "the crates of this workspace"
    head = [
        SECTION,
        "",
        f"Written by `tests/fuzz/run.py --table`: {total:,} executions over {len(rows)} targets in several runs, with counters in {counted}. No finding is open.",
        "",
        "| Target | Executions | Per second, last run | Edges |",
        "|---|---:|---:|---:|",
    ]
    body = [f"| `{row[0]}` | " + " | ".join(f"{number:,}" for number in row[1:]) + " |" for row in rows]
    return "\n".join([*head, *body, ""])


def write(path, section):
    """Replaces the section of a document that has the table, or adds it at the end."""
    before, _, after = (path.read_text() if path.exists() else "").partition(SECTION)
    rest = after.partition("\n## ")
    path.write_text(before + section + "".join(rest[1:]))


def shrink(programs, groups, chosen):
    """Replaces each corpus by the fewest inputs that reach as much, small ones first."""
    for name in chosen:
        kept, grown = HERE / "corpus" / name, ROOT / "target" / "fuzz" / "corpus" / name
        fewest = ROOT / "target" / "fuzz" / "fewest" / name
        shutil.rmtree(fewest, ignore_errors=True)
        for folder in (fewest, grown):
            folder.mkdir(parents=True, exist_ok=True)
        command = [programs[groups[name]], "-merge=1", "-max_len=1024", "-rss_limit_mb=2048", str(fewest), str(kept), str(grown)]
        subprocess.run(command, env={**os.environ, "SAKSHI_FUZZ_TARGET": name}, check=True, stderr=subprocess.DEVNULL)
        smallest = sorted(fewest.iterdir(), key=lambda path: path.stat().st_size)
        size, inputs = 0, []
        for path in smallest:
            size += path.stat().st_size
            if size > 12_000 or len(inputs) == 40:
                break
            inputs.append(path)
        for path in kept.iterdir():
            # Inputs that were written by hand or found something stay.
            if re.fullmatch("[0-9a-f]{40}", path.name):
                path.unlink()
        for path in inputs:
            shutil.copyfile(path, kept / path.name)
        print(f"{name}: {len(inputs)} of {len(smallest)} inputs, {sum(path.stat().st_size for path in inputs)} bytes")


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("targets", nargs="*", help="names of targets; all if none is named")
    asked.add_argument("--seconds", type=int, default=0, help="time for each target")
    asked.add_argument("--runs", type=int, default=0, help="executions of each target")
    asked.add_argument("--total", type=int, default=0, help="executions over all targets; beyond --runs they go to the fastest targets")
    asked.add_argument("--whole", action="store_true", help="counters in every crate, optimised")
    asked.add_argument("--table", type=Path, help="the table to which the executions are added")
    asked.add_argument("--shrink", action="store_true", help="make the corpus smaller, and feed nothing")
    asked = asked.parse_args()
    found = ROOT / "target" / "fuzz" / "found"
    found.mkdir(parents=True, exist_ok=True)
    groups, programs = targets(), built(asked.whole)
    chosen = asked.targets or list(groups)
    if asked.shrink:
        return shrink(programs, groups, chosen)
    seconds = asked.seconds if asked.seconds or asked.runs or asked.total else max(1, 60 // len(chosen))
    rows, is_good, left = told(asked.table), True, asked.total

    def feed(name, seconds, runs):
        row = fed(programs[groups[name]], name, seconds, runs, found)
        if row is None:
            return 0
        rows[name] = (name, rows.get(name, row[:1] + (0,))[1] + row[1], *row[2:])
        if asked.table:
            write(asked.table, table([rows[name] for name in groups if name in rows], asked.whole))
        return row[1]

    for name in chosen:
        # The rest of a total is divided by the known times of each target.
        if asked.runs or seconds or name not in rows:
            fed_to = feed(name, seconds, asked.runs or (0 if seconds else 100_000))
            is_good &= fed_to > 0
            left -= fed_to
    while left > 0 and is_good:
        fastest = sorted((name for name in chosen if name in rows), key=lambda name: rows[name][2])[-6:]
        fed_to = feed(min(fastest, key=lambda name: rows[name][1]), 0, min(left, 2_000_000))
        is_good &= fed_to > 0
        left -= fed_to
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
