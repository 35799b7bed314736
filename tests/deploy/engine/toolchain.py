"""The build base of the long form: this machine's Rust beside Debian's C compiler, so that the build in the engine is a real one.

The crates are in the image, because a container of the run reaches no registry. The build is not optimised."""

import os
import pathlib
import shutil

from daemon import run

ROOT = pathlib.Path(__file__).parents[3]
# Packages that the official slim image adds to Debian's essential ones, and those of the latter that a build needs.
PACKAGES = ("bookworm", "base-files", "bash", "dash", "coreutils", "grep", "sed", "tar", "gzip", "findutils", "perl-base", "gcc", "libc6-dev",
            "ca-certificates")
TARGET = "x86_64-unknown-linux-gnu"
LINES = (
    "RUN ln -s gcc /usr/bin/cc",
    "COPY toolchain /usr/local/rust",
    # Another place than the official image's, which the build covers with a cache.
    "COPY registry /cargo/registry",
    "ENV CARGO_HOME=/cargo CARGO_NET_OFFLINE=true PATH=/usr/local/rust/bin:/usr/bin:/bin",
    "ENV CARGO_PROFILE_DIST_LTO=off CARGO_PROFILE_DIST_OPT_LEVEL=0 CARGO_PROFILE_DIST_DEBUG=0",
)


def fetch():
    """Fetches every crate of the lock file into cargo's own directory."""
    run("cargo", "fetch", "--quiet", "--locked", cwd=ROOT)


def fill(context):
    """Puts the toolchain and the crates into the context of an image."""
    rust = pathlib.Path(run("rustc", "--print", "sysroot", cwd=ROOT).strip())
    # Linker and libraries.
    of_target = f"lib/rustlib/{TARGET}"
    for part in ("bin/cargo", "bin/rustc", of_target):
        copy = shutil.copytree if part == of_target else shutil.copy2
        (context / "toolchain" / part).parent.mkdir(parents=True, exist_ok=True)
        copy(rust / part, context / "toolchain" / part)
    for library in (rust / "lib").glob("*.so*"):
        shutil.copy2(library, context / "toolchain/lib")
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    for part in ("cache", "index"):
        shutil.copytree(home / "registry" / part, context / "registry" / part)
