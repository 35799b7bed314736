# Sets what makes a build the same wherever and whenever it is done: no path of the building machine, neither from Rust nor from C, and no
# time but the commit's. Sourced from the root of the sources before cargo, by dist.sh, tools.sh and the Dockerfile.
here=$(pwd -P)
: "${CARGO_HOME:=$HOME/.cargo}"
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}"
# Of several prefixes that fit, the last one counts.
RUSTFLAGS="--remap-path-prefix=$here=/sakshi --remap-path-prefix=$CARGO_HOME=/cargo \
--remap-path-prefix=$(rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')"
CFLAGS="-ffile-prefix-map=$here=/sakshi -ffile-prefix-map=$CARGO_HOME=/cargo"
CARGO_INCREMENTAL=0 LC_ALL=C TZ=UTC
export CARGO_HOME SOURCE_DATE_EPOCH RUSTFLAGS CFLAGS CXXFLAGS="$CFLAGS" CARGO_INCREMENTAL LC_ALL TZ

# The package that is shipped, as arguments of cargo.
SHIPPED="--package sakshi --no-default-features --features shipped"

# Packs a folder beside it: the same bytes from the same files, on every machine and at any time.
pack() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mode=a=rX,u+w --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1" | gzip -n -9 >"$1.tar.gz"
}
