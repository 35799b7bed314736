#!/bin/sh
# Builds the release of the commit twice, in folders and with caches of crates that differ, and compares the files. Prints the digests.
# Twenty minutes on two cores.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
crates=${CARGO_HOME:-$HOME/.cargo}/registry

build() {
  mkdir -p "$work/home-$1/registry"
  [ ! -d "$crates/cache" ] || cp -r "$crates/cache" "$crates/index" "$work/home-$1/registry/"
  git clone --quiet "$root" "$work/$2"
  (umask "$3" && CARGO_HOME=$work/home-$1 "$work/$2/deploy/release/dist.sh" >&2)
  cd "$work/$2/target/dist/out"
  cat SHA256SUMS
  # Neither the program nor what a debugger reads of it names the machine.
  if grep -aFl "$work" ./*/sakshi ./*.debug; then echo "these name the folder of the build" >&2; exit 1; fi
}

first=$(build one first 022)
second=$(build another in/another/folder 077)
printf '%s\n\n%s\n' "$first" "$second"
[ "$first" = "$second" ] || { echo "two builds differ" >&2; exit 1; }
