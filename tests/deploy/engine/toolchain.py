"""The build base of the long form: this machine's Rust beside Debian's C compiler, so that the build in the engine is a real one.

The crates are a folder in the image, because a container of the run reaches no registry. The build is not optimised."""

import pathlib
import shutil

from daemon import run

ROOT = pathlib.Path(__file__).parents[3]
# The packages that the official slim image adds to Debian's essential ones, and what of the latter a build needs.
PACKAGES = ("bookworm", "base-files", "bash", "dash", "coreutils", "grep", "sed", "tar", "gzip", "findutils", "perl-base", "gcc", "libc6-dev", "ca-certificates")
TARGET = "x86_64-unknown-linux-gnu"
SOURCES = """[source.crates-io]
replace-with = "folder"
[source.folder]
directory = "/usr/local/crates"
"""
LINES = (
    "RUN ln -s gcc /usr/bin/cc",
    "COPY toolchain /usr/local/rust",
    "COPY crates /usr/local/crates",
    "COPY config.toml /usr/local/cargo/config.toml",
    "ENV CARGO_HOME=/usr/local/cargo PATH=/usr/local/rust/bin:/usr/bin:/bin CARGO_PROFILE_DIST_LTO=off CARGO_PROFILE_DIST_OPT_LEVEL=0 CARGO_PROFILE_DIST_DEBUG=0",
)


def vendor():
    """Lays out every crate of the lock file in a folder, which is kept."""
    folder = ROOT / "target/deploy/crates"
    run("cargo", "vendor", "--quiet", "--locked", "--versioned-dirs", str(folder), cwd=ROOT, patience=900)
    return folder


def fill(context):
    """Puts the toolchain, the crates and cargo's settings into the context of an image."""
    rust = pathlib.Path(run("rustc", "--print", "sysroot", cwd=ROOT).strip())
    libraries = f"lib/rustlib/{TARGET}/lib"
    for part in ("bin/cargo", "bin/rustc", libraries):
        copy = shutil.copytree if part == libraries else shutil.copy2
        (context / "toolchain" / part).parent.mkdir(parents=True, exist_ok=True)
        copy(rust / part, context / "toolchain" / part)
    for library in (rust / "lib").glob("*.so*"):
        shutil.copy2(library, context / "toolchain/lib")
    shutil.copytree(ROOT / "target/deploy/crates", context / "crates")
    (context / "config.toml").write_text(SOURCES)
