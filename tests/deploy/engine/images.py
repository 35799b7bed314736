"""Images under the names in the shipped files, made without a registry, and their differences from the real ones.

Programs are Debian's, users, directories and commands those of the official images. In the short form the build base has a `cargo` that puts
given binaries where cargo would, so that every line of the Dockerfile runs."""

import os
import pathlib
import subprocess

import toolchain
from daemon import expect, run

IS_LONG = os.environ.get("SAKSHI_TESTS") == "long"
HERE = pathlib.Path(__file__).parent
REDIS, HAPROXY = "redis:7.2-bookworm", "haproxy:3.0-bookworm"
BUILD, RUN = "rust:1.95.0-slim-bookworm", "gcr.io/distroless/cc-debian12:nonroot"
PROGRAMS = ("trixie", "base-files", "bash", "dash", "coreutils", "grep", "sed", "findutils", "redis-server", "redis-tools", "haproxy")
LIBRARIES = ("bookworm", "libc6", "libgcc-s1", "ca-certificates")

CARGO = """#!/bin/sh
# Puts the binary of --package where cargo would, with its features at the end; knows of no crates. Another build has time to replace it.
[ "$1" = build ] || exit 0
for argument; do
  case $before in --package) package=$argument ;; --features) features=$argument ;; esac
  before=$argument
done
install -D "/given/$package" "target/dist/$package"
printf %s "$features" >>"target/dist/$package"
sleep 2
"""
RUSTC = """#!/bin/sh
case $1 in --print) echo /usr/local ;; -vV) echo "release: 1.95.0" ;; esac
"""


def fetch():
    """Fetches and stores the parts of the images. The run itself has no network."""
    for packages in (PROGRAMS, LIBRARIES, *([toolchain.PACKAGES] if IS_LONG else [])):
        unpack(*packages)
    if IS_LONG:
        toolchain.fetch()


def unpack(*packages):
    """Returns the tar with files of these Debian packages."""
    return pathlib.Path(run(str(HERE.parent / "debian.sh"), *packages).strip())


def bundle_roots(tar, further):
    """Returns the bundle of root certificates, which the package builds at setup, and one more."""
    bundle = subprocess.run(["tar", "-xOf", tar, "--wildcards", "./usr/share/ca-certificates/mozilla/*.crt"], capture_output=True, check=True).stdout
    return bundle + further.read_bytes()


def make(engine, binary, authority):
    """Makes all four and returns a sentence for each difference."""
    work = engine.work
    programs, libraries = unpack(*PROGRAMS), unpack(*LIBRARIES)
    # Official: the user 999 owns /data, which is a volume.
    engine.build_from(programs, REDIS, ["RUN install -d -o 999 -g 999 /data", "VOLUME /data", "WORKDIR /data", 'CMD ["redis-server"]'])
    # Official: the entry point adds these options; SIGUSR1 is the signal to stop.
    engine.build_from(programs, HAPROXY, [
        "RUN install -d -o 99 -g 99 /var/lib/haproxy", "ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin", "STOPSIGNAL SIGUSR1", "USER 99", "WORKDIR /var/lib/haproxy",
        'ENTRYPOINT ["haproxy", "-W", "-db"]', 'CMD ["-f", "/usr/local/etc/haproxy/haproxy.cfg"]'])
    build = make_real_build(engine) if IS_LONG else make_given_build(engine, programs, binary)
    # Official: certificates and the user 65532.
    lines = ["COPY ca-certificates.crt /etc/ssl/certs/", "ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "USER 65532"]
    engine.build_from(libraries, RUN, lines, lambda context: (context / "ca-certificates.crt").write_bytes(bundle_roots(libraries, authority)))
    return list_differences(engine, build)


def make_given_build(engine, programs, binary):
    def fill(context):
        for name in ("sakshi", "sakshi-load"):
            run("strip", "-o", str(context / name), str(binary.with_name(name)))
        for program, text in (("cargo", CARGO), ("rustc", RUSTC)):
            (context / program).write_text(text)
            (context / program).chmod(0o755)

    lines = ["COPY sakshi sakshi-load /given/", "COPY cargo rustc /usr/local/cargo/bin/", "ENV PATH=/usr/local/cargo/bin:/usr/bin:/bin"]
    engine.build_from(programs, BUILD, lines, fill)
    return "a file system whose cargo puts given binaries, with every feature and not optimised, where cargo would"


def check_features(engine):
    """Checks that images that were built at the same time have the binaries of their own features. Returns a sentence; none in the
    long form, where a real cargo leaves no features in its binaries."""
    if IS_LONG:
        return []
    for image, features in (("sakshi:0.1.0", b"shipped"), ("sakshi-sandbox:0.1.0", b"shipped,sandbox")):
        container, copy = engine.docker("create", image).strip(), engine.work / "binary"
        engine.docker("cp", f"{container}:/usr/local/bin/sakshi", str(copy))
        engine.docker("rm", container)
        found = copy.read_bytes()[-20:]
        expect(found.endswith(b"\0" + features), f"{image} was built with {features}, and its binary ends with {found}")
    return ["images that were built at the same time have their own binaries"]


def make_real_build(engine):
    engine.build_from(unpack(*toolchain.PACKAGES), BUILD, toolchain.LINES, toolchain.fill)
    return "Debian bookworm's gcc with this machine's Rust, and the crates; the build is not optimised"


def list_differences(engine, build):
    version = lambda image, *command: engine.docker("run", "--rm", "--network=none", "--entrypoint", command[0], image, *command[1:]).split("\n")[0]
    return [
        f"{REDIS}: Debian trixie's {version(REDIS, 'redis-server', '--version').split(' sha')[0]}, without the image's entry point",
        f"{HAPROXY}: Debian trixie's {version(HAPROXY, 'haproxy', '-v').split(' ', 3)[2]}, without the image's entry point",
        f"{BUILD}: {build}",
        f"{RUN}: Debian bookworm's C library and certificates, and the authority of the test's receiver of webhooks",
    ]
