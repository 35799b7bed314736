#!/usr/bin/env python3
"""Prints a bill of materials (CycloneDX 1.6, JSON): the same bytes from the same input.

    sbom.py binary BINARY --package sakshi --no-default-features --features shipped
    sbom.py image SBOM ROOT.tar NAME

The first is of a binary: the crates that it links, as Cargo.lock has them, and the C libraries in them. The second is of an image with
that binary: SBOM is the binary's, ROOT.tar the image's file system (`docker export`), which names the Debian packages of its base.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib
import urllib.parse
import uuid
from datetime import datetime, timezone

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REGISTRY = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo")) / "registry/src"
# C libraries in crates: the header with the version, the licence, and the name under which vulnerabilities are published.
WITHIN = {
    "aws-lc-sys": ("aws-lc", "aws-lc/include/openssl/base.h", r'AWSLC_VERSION_NUMBER_STRING "(\d+)\.(\d+)\.(\d+)"', "Apache-2.0 OR ISC", "amazon:aws-lc"),
    "libsqlite3-sys": ("sqlite", "sqlite3/sqlite3.h", r'SQLITE_VERSION +"(\d+)\.(\d+)\.(\d+)"', "blessing", "sqlite:sqlite"),
    "libmimalloc-sys": ("mimalloc", "c_src/mimalloc/v3/include/mimalloc.h", r"MI_MALLOC_VERSION (\d)(\d\d)(\d\d)", "MIT", "microsoft:mimalloc"),
}


def purl(kind, name, version, **qualifiers):
    quoted = f"pkg:{kind}/{name}@{urllib.parse.quote(version)}"
    return quoted + ("?" + urllib.parse.urlencode(qualifiers) if qualifiers else "")


def said(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def c_library(crate, version):
    """The C library in a crate, as a component of its own."""
    name, header, pattern, licence, known_as = WITHIN[crate]
    (folder,) = REGISTRY.glob(f"*/{crate}-{version}")
    found = ".".join(str(int(part)) for part in re.search(pattern, (folder / header).read_text()).groups())
    return {
        "type": "library",
        "bom-ref": f"{name}-{found}",
        "name": name,
        "version": found,
        "licenses": [{"expression": licence}],
        "cpe": f"cpe:2.3:a:{known_as}:{found}:*:*:*:*:*:*:*",
        "purl": purl("generic", name, found),
    }


def crates(arguments):
    """Components by reference, and what each needs. Crates of the workspace count as the program."""
    locked = {(item["name"], item["version"]): item.get("checksum") for item in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    program = "sakshi"
    components, needs, above = {}, {program: set()}, []
    for line in said(HERE / "linked.sh", "--prefix", "depth", *arguments).splitlines():
        found = re.match(r"(\d+)(\S+) v(\S+)( \(/[^|]*\))?\|([^|]*)\|(\S*)", line)
        if not found:
            continue
        depth, name, version, is_ours, licence, source = found.groups()
        reference = program if is_ours else f"{name}-{version}"
        above[int(depth) :] = [reference]
        needs.setdefault(reference, set())
        if len(above) > 1 and above[-2] != reference:
            needs[above[-2]].add(reference)
        if is_ours or reference in components:
            continue
        component = {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": version,
            "hashes": [{"alg": "SHA-256", "content": locked[name, version]}],
            "licenses": [{"expression": re.sub(r" ?/ ?", " OR ", licence)}],
            "purl": purl("cargo", name, version),
        }
        if source:
            component["externalReferences"] = [{"type": "vcs", "url": source}]
        components[reference] = component
        if name in WITHIN:
            library = c_library(name, version)
            components[library["bom-ref"]] = library
            needs[reference].add(library["bom-ref"])
            needs[library["bom-ref"]] = set()
    return components, needs


def document(subject, components, needs):
    """The whole, with a time and a number that follow from the content."""
    made = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    body = {
        "metadata": {"timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": subject},
        "components": [components[name] for name in sorted(components)],
        "dependencies": [{"ref": name, "dependsOn": sorted(needs[name])} for name in sorted(needs)],
    }
    number = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(body))}"
    return json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": number, "version": 1} | body, indent=1)


def binary(path, *arguments):
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    components, needs = crates(arguments)
    compiler = dict(line.split(": ") for line in said("rustc", "-vV").splitlines() if ": " in line)["release"]
    std = {"type": "library", "bom-ref": f"rust-std-{compiler}", "name": "rust-std", "version": compiler}
    std |= {"licenses": [{"expression": "MIT OR Apache-2.0"}], "purl": purl("generic", "rust-std", compiler)}
    components[std["bom-ref"]], needs[std["bom-ref"]] = std, set()
    needs["sakshi"].add(std["bom-ref"])
    subject = {"type": "application", "bom-ref": "sakshi", "name": "sakshi", "version": version, "licenses": [{"expression": "Apache-2.0"}]}
    subject["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()}]
    return document(subject, components, needs)


def packages(root):
    """The Debian packages in a file system: of dpkg's file, or of the files that distroless images have in its place."""
    release, stanzas = {}, []
    with tarfile.open(root) as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if name in ("etc/os-release", "usr/lib/os-release") and member.isfile():
                release = dict(line.split("=", 1) for line in tar.extractfile(member).read().decode().splitlines() if "=" in line)
            if re.fullmatch(r"var/lib/dpkg/(status|status\.d/[^/]+(?<!\.md5sums))", name) and member.isfile():
                stanzas += tar.extractfile(member).read().decode().strip().split("\n\n")
    distribution = "debian-" + release.get("VERSION_ID", "").strip('"')
    for stanza in filter(None, stanzas):
        field = dict(re.findall(r"^([\w-]+): (.*)", stanza, re.M))
        name, version = field["Package"], field["Version"]
        yield {
            "type": "library",
            "bom-ref": f"deb-{name}-{version}",
            "name": name,
            "version": version,
            "purl": purl("deb/debian", name, version, arch=field["Architecture"], distro=distribution),
        }


def image(path, root, name):
    inner = json.loads(pathlib.Path(path).read_text())
    program = inner["metadata"]["component"]
    base = {component["bom-ref"]: component for component in packages(root)}
    if not base:
        sys.exit(f"{root} names no packages")
    components = {component["bom-ref"]: component for component in [program, *inner["components"]]} | base
    needs = {entry["ref"]: set(entry["dependsOn"]) for entry in inner["dependencies"]} | {reference: set() for reference in base}
    needs[name] = {program["bom-ref"], *base}
    subject = {"type": "container", "bom-ref": name, "name": name, "version": program["version"]}
    return document(subject, components, needs)


print({"binary": binary, "image": image}[sys.argv[1]](*sys.argv[2:]))
