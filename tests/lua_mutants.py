#!/usr/bin/env python3
"""Small changes of the Lua scripts, one at a time, and the tests that notice them.

    tests/lua_mutants.py [--only NAME] [--sample N] [--list]

The scripts stand as text in the test program of the store, so a mutant is a copy of that program in which a line has another text of the same
length. Nothing is compiled again. A mutant that Redis cannot compile is unviable. Prints what survives; ends with 1 if there is any that
`EXPLAINED` does not name.
"""
import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LUA = ROOT / "src/store/src/redis/lua"
# The quick tests that see most, and then all that need a Redis.
SUITES = [["redis::tests::engines::random"], ["redis::tests::conformance"], ["redis::"]]
SECONDS = 400

# Changes of a line: a pattern, and the replacement of each match.
CHANGES = [
    (r"==", "~="), (r"~=", "=="), (r"<=", "<"), (r">=", ">"), (r"(?<![<>=~]) < ", " <= "), (r"(?<![<>=~]) > ", " >= "),
    (r"(?<![<>=~]) < ", " > "), (r"(?<![<>=~]) > ", " < "), (r"\band\b", "or"), (r"\bor\b", "and"), (r"\bnot ", ""),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r" \+ ", " - "), (r" - ", " + "), (r"(?<![\w.'%])0(?![\w.])", "1"),
    (r"(?<![\w.'%\[])1(?![\w.\]])", "2"), (r"(?<![\w.'%\[])1(?![\w.\]])", "0"), (r"\bmath\.max\b", "math.min"), (r"\bmath\.min\b", "math.max"),
    (r"\bif (?!not )", "if not "),
]
# A line that is a statement of its own may go.
STATEMENT = re.compile(r"^\s*(redis\.call\(.*\)|with_children\(.*\)|[\w.\[\]#+, ]+ = .*[^{(,]|return .*|for .* end|if .* end)$")

# Mutants that may live, by file and changed line, with the reason.
EXPLAINED = {}


def mutants(path):
    """Returns the changed lines of a script: number, text before, text after, and the change in words."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.strip().startswith("--"):
            continue
        found = set()
        for pattern, instead in CHANGES:
            for match in re.finditer(pattern, line):
                found.add(line[: match.start()] + instead + line[match.end() :])
        if STATEMENT.match(line):
            found.add("")
        for after in sorted(found - {line}):
            yield number, line, after


def fitted(before, after):
    """Returns the text after with the length of the text before, or None if it is too long."""
    spare = len(before) - len(after.encode())
    if spare >= 0:
        return after + " " * spare
    stripped = after.lstrip(" ")
    return after[-spare:] if len(after) - len(stripped) >= -spare else None


def patched(program, path, number, before, after):
    """Returns the program with a line changed in each script with this file; None if there is none."""
    lines = path.read_text().splitlines()
    text = path.read_bytes()
    changed = "\n".join(lines[: number - 1] + [after] + lines[number:]).encode()
    changed += b"\n" if text.endswith(b"\n") else b""
    assert len(changed) == len(text), (path, number)
    return program.replace(text, changed) if text in program else None


def scripts_of(program):
    """The whole scripts in a program: from the first line to where the next text begins cannot be told, so files are joined as Rust does."""
    for path in sorted(LUA.glob("*.lua")):
        if path.stem in ("prelude", "records"):
            continue
        yield path.stem, ["prelude", "records", path.stem]


class Server:
    """A Redis that compiles scripts."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.directory = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--dir", self.directory.name], stdout=subprocess.DEVNULL
        )
        for _ in range(200):
            if subprocess.run(["redis-cli", "-p", str(self.port), "PING"], capture_output=True).stdout == b"PONG\n":
                return
            time.sleep(0.05)
        sys.exit("redis-server did not start")

    def compiles(self, text):
        loaded = subprocess.run(["redis-cli", "-p", str(self.port), "-x", "SCRIPT", "LOAD"], input=text.encode(), capture_output=True)
        return re.fullmatch(rb"[0-9a-f]{40}\n", loaded.stdout) is not None

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()


def killed_by(program, directory, seconds):
    """Returns the first test that a program fails, or None. Its files are in a directory."""
    env = dict(os.environ, TMPDIR=directory, RUST_TEST_THREADS=str(4 * (os.cpu_count() or 1)), RUST_BACKTRACE="0")
    for filters in SUITES:
        # A group of its own, so that the servers of a program that hangs end with it.
        run = subprocess.Popen(
            [program, *filters], env=env, cwd=ROOT / "src/store", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        late = threading.Timer(seconds, os.killpg, (run.pid, signal.SIGKILL))
        late.start()
        # The first failure is enough: the rest of the run is cut off.
        failed = next((line.split()[1].decode() for line in run.stdout if line.endswith(b" ... FAILED\n")), None)
        if failed:
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        is_late = not late.is_alive()
        late.cancel()
        if failed or is_late or run.returncode != 0:
            return failed or ("timeout" if is_late else f"exit {run.returncode}")
    return None


def test_program():
    """Returns the test program of the store, built."""
    built = subprocess.run(
        ["cargo", "test", "--package", "sakshi-store", "--lib", "--no-run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ROOT / re.search(r"\((target/\S+)\)", built.stderr).group(1)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", help="a script alone, such as apply")
    options.add_argument("--list", action="store_true", help="print the mutants and try none")
    options.add_argument("--sample", type=int, default=1, help="try every N-th mutant")
    options.add_argument("--program", help="the test program of the store; built when left out")
    given = options.parse_args()
    program = b"" if given.list else Path(given.program or test_program()).read_bytes()
    counts = {"unviable": 0, "killed": 0, "timeout": 0, "survived": 0, "explained": 0}
    server = Server()
    try:
        for path in sorted(LUA.glob("*.lua")):
            if given.only and path.stem != given.only:
                continue
            for number, before, after in islice(mutants(path), None, None, given.sample):
                place = f"{path.name}:{number}: {before.strip()}  →  {after.strip() or '(nothing)'}"
                text = fitted(before, after)
                if text is None:
                    continue
                lines = path.read_text().splitlines()
                names = next((names for _, names in scripts_of(program) if path.stem in names), [path.stem])
                joined = "\n".join(
                    "\n".join([*lines[: number - 1], text, *lines[number:]]) if name == path.stem else (LUA / f"{name}.lua").read_text()
                    for name in names
                )
                if not server.compiles(joined):
                    counts["unviable"] += 1
                    continue
                if given.list:
                    print(place)
                    continue
                mutant = patched(program, path, number, before, text)
                assert mutant and mutant != program, f"{path.name} is not in the program"
                with tempfile.TemporaryDirectory() as directory:
                    file = Path(directory, "program")
                    file.write_bytes(mutant)
                    file.chmod(0o700)
                    killer = killed_by(file, directory, SECONDS)
                if killer is None and (path.name, before.strip()) in EXPLAINED:
                    counts["explained"] += 1
                elif killer is None:
                    counts["survived"] += 1
                    print(f"survived: {place}", flush=True)
                else:
                    counts["timeout" if killer == "timeout" else "killed"] += 1
                    print(f"killed: {place}  by {killer}", flush=True)
    finally:
        server.stop()
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    sys.exit(1 if counts["survived"] else 0)


main()
