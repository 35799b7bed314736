"""Looks at what deploy/release makes and at the workflows: whether a release can be trusted.

    release.py archive OUT COMMIT_TIME BINARY   the archive and its bill of materials; BINARY is what was packed
    release.py image SBOM                       the bill of materials of an image, made of the program's and base.tar
    release.py base TAR                         writes such a base: packages as dpkg has them and as distroless images have them
    release.py workflows FOLDER DEPLOY          rules for .github
"""

import collections
import hashlib
import importlib.util
import io
import json
import pathlib
import re
import sys
import tarfile

import jsonschema
import referencing
import yaml


def expect(held, what):
    if not held:
        sys.exit(what)


def bill(path):
    """Checks that a bill of materials matches the schema, and that its references resolve."""
    folder = pathlib.Path(importlib.util.find_spec("cyclonedx").origin).parent / "schema/_res"
    schema = lambda name: json.loads((folder / f"{name}.SNAPSHOT.schema.json").read_text())
    others = [(schema(name)["$id"], referencing.Resource.from_contents(schema(name))) for name in ("spdx", "jsf-0.82")]
    document = json.loads(pathlib.Path(path).read_text())
    validator = jsonschema.validators.validator_for(schema("bom-1.6"))
    faults = validator(schema("bom-1.6"), registry=referencing.Registry().with_resources(others)).iter_errors(document)
    for fault in faults:
        sys.exit(f"{path}: {fault.json_path}: {fault.message[:300]}")
    expect(document["specVersion"] == "1.6", "the bill has another version than its schema")
    names = [component["bom-ref"] for component in [document["metadata"]["component"], *document["components"]]]
    expect(len(names) == len(set(names)), "the bill names a part twice")
    needed = {name for entry in document["dependencies"] for name in [entry["ref"], *entry["dependsOn"]]}
    expect(needed == set(names), f"nothing needs {sorted(set(names) ^ needed)[:3]}")
    return document


def archive(out, made, binary):
    out = pathlib.Path(out)
    (packed,) = out.glob("*.tar.gz")
    name = packed.name.removesuffix(".tar.gz")
    lines = (out / "SHA256SUMS").read_text().splitlines()
    expect({line.split()[1] for line in lines} == {f"{name}.{kind}" for kind in ("tar.gz", "debug", "cdx.json")}, f"the checksums are of {lines}")
    for line in lines:
        digest, file = line.split()
        expect(hashlib.sha256((out / file).read_bytes()).hexdigest() == digest, f"the checksum of {file} is wrong")
    with tarfile.open(packed) as tar:
        members = {member.name.removeprefix(f"{name}/"): member for member in tar.getmembers()}
        content = lambda path: tar.extractfile(members[path]).read()
        program, third, own = content("sakshi"), content("THIRD-PARTY.txt").decode(), content("LICENSE").decode()
    for path, member in members.items():
        expect((member.uid, member.gid, member.mtime) == (0, 0, int(made)), f"{path} has the owner or the time of a machine")
        expect(member.mode in (0o644, 0o755), f"{path} has mode {member.mode:o}, from the umask of a machine")
    wanted = ("CHANGELOG.md", "config/default.toml", "deploy/README.md", "docs/install.md", "completions/sakshi.bash", "man/sakshi.1")
    expect(members.keys() >= set(wanted), f"the archive lacks {set(wanted) - members.keys()}")

    document = bill(out / f"{name}.cdx.json")
    subject = document["metadata"]["component"]
    expect(subject["hashes"][0]["content"] == hashlib.sha256(program).hexdigest(), "the bill is of another binary")
    parts = document["components"]
    expect(all(part.get("licenses") and part.get("purl") for part in parts), "a part has no licence or no name for scanners")
    crates = {part["bom-ref"]: part for part in parts if part["purl"].startswith("pkg:cargo/")}
    expect(all(part.get("hashes") for part in crates.values()), "a crate has no checksum")
    expect({"sqlite", "aws-lc", "mimalloc", "rust-std"} <= {part["name"] for part in parts}, "a library that is not Rust's is missing")
    # Paths of sources, which are in a binary for its panics, name crates too: none but those of the bill.
    within = re.findall(rb"/registry/src/[^/]+/([\w+-]+-\d[\w.+-]*)/", pathlib.Path(binary).read_bytes())
    missing = {crate.decode() for crate in within} - crates.keys()
    expect(within and not missing, f"the binary has crates that the bill lacks: {sorted(missing)[:5]}")

    # A list, then texts; each text after the crates that it is for. Some crates have a short note beside the licence itself.
    listed, *texts = third.split("\n" + 80 * "-" + "\n")
    words = collections.Counter()
    for text in texts:
        given, text = text.strip().split("\n\n", 1)
        words.update({crate: len(text) for crate in given.split()})
    lacking = [name for name in [*crates, *(part["bom-ref"] for part in parts if part["name"] == "rust-std")] if words[name] < 500]
    expect(not lacking, f"no licence text for {lacking[:5]}")
    expect("\nsakshi " not in listed and "Apache License" in own, "our own licence is no third party's")


def base(path):
    stanza = "Package: {}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {}\nDescription: a package\n over two lines\n"
    files = {
        "./etc/os-release": 'NAME="Debian"\nVERSION_ID="12"\n',
        "./var/lib/dpkg/status": stanza.format("libc6", "2.36-9+deb12u13") + "\n" + stanza.format("tzdata", "2025b-0+deb12u2"),
        "./var/lib/dpkg/status.d/libgcc-s1": stanza.format("libgcc-s1", "12.2.0-14+deb12u1"),
        "./var/lib/dpkg/status.d/libgcc-s1.md5sums": "d41d8cd98f00b204e9800998ecf8427e  lib/libgcc_s.so.1\n",
    }
    with tarfile.open(path, "w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))


def image(path):
    document = bill(path)
    expect(document["metadata"]["component"]["type"] == "container", "the bill is not of an image")
    purls = {part.get("purl") for part in document["components"]}
    for name, version in (("libc6", "2.36-9%2Bdeb12u13"), ("tzdata", "2025b-0%2Bdeb12u2"), ("libgcc-s1", "12.2.0-14%2Bdeb12u1")):
        expect(f"pkg:deb/debian/{name}@{version}?arch=amd64&distro=debian-12" in purls, f"the image's bill lacks {name}")
    expect(any(purl and purl.startswith("pkg:cargo/actix-web@") for purl in purls), "the image's bill lacks the program's crates")


def workflows(folder, deploy):
    files = {path.name: path.read_text() for path in pathlib.Path(folder).glob("workflows/*.yml")}
    expect({"release.yml", "nightly.yml"} <= files.keys(), "a workflow is missing")
    for name, text in files.items():
        workflow = yaml.safe_load(text)
        # YAML reads the key `on` as true.
        expect("pull_request_target" not in workflow[True], f"{name}: strangers' code would run with our rights")
        expect(workflow.get("permissions") in ({}, {"contents": "read"}), f"{name}: jobs have rights that they do not ask for")
        for line in re.findall(r"uses: *(.*)", text):
            expect(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), f"{name}: {line} can change under its name")
        for job, body in workflow["jobs"].items():
            expect("timeout-minutes" in body, f"{name}: {job} may run for ever")
            may_write = "write" in body.get("permissions", {}).values()
            compiles = any(re.search(r"\b(cargo|make|contained\.sh|\.ci/run)\b", step.get("run", "")) for step in body["steps"])
            expect(not (may_write and compiles), f"{name}: {job} runs what crates do when they are compiled, and may write")
            for step in body["steps"]:
                if step.get("uses", "").startswith("actions/checkout@"):
                    expect(step["with"]["persist-credentials"] is False, f"{name}: {job} leaves a token beside the sources")
    release = yaml.safe_load(files["release.yml"])["jobs"]
    needs = lambda job: {job}.union(*(needs(other) for other in release[job].get("needs", [])))
    expect(needs("publish") == release.keys(), f"a release does not wait for {release.keys() - needs('publish')}")
    # A version of a tool is chosen in one place.
    toolchain = re.search(r"=rust:([\d.]+)-", pathlib.Path(deploy, "container/Dockerfile").read_text())[1]
    for name, text in files.items():
        for version in re.findall(r"toolchain install ([\d.]+)", text):
            expect(toolchain.startswith(version), f"{name}: Rust {version} is not that of the Dockerfile")


globals()[sys.argv[1]](*sys.argv[2:])
