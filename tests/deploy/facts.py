"""Shared parts of the checks of deploy/: the settings that the service takes, and the end of a check."""

import re
import sys


def expect(held, what):
    if not held:
        sys.exit(what)


def settings(root):
    """Returns every environment name that the service takes, from the file that documents them."""
    names, section = {"SAKSHI__PROFILE"}, ""
    for line in (root / "config/default.toml").read_text().splitlines():
        if found := re.match(r"\[(\w+)\]", line):
            section = found[1]
        elif section and (found := re.match(r"(\w+) = ", line)):
            names.add(f"SAKSHI__{section}__{found[1]}".upper())
    return names


def metrics(root):
    """Returns every metric that the service counts."""
    return set(re.findall(r'metric\("(\w+)"', (root / "src/server/src/telemetry/catalogue.rs").read_text()))
