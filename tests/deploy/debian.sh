#!/bin/bash
# Prints the path of a tar with files of Debian packages, which are unpacked and not set up. It is made once and kept for later runs.
#
#   tests/deploy/debian.sh SUITE PACKAGE…
set -euo pipefail
kept=$(cd "$(dirname "$0")/../.." && pwd)/target/deploy
key=$(printf '%s ' "$@" | cksum | cut -d' ' -f1)
tar=$kept/$1-$key.tar
mkdir -p "$kept"
if [ ! -f "$tar" ]; then
  # The name ends in .tar, by which mmdebstrap knows the format.
  new=$(mktemp -p "$kept" --suffix=.tar)
  trap 'rm -f "$new"' EXIT
  mmdebstrap --quiet --variant=extract --include="$(IFS=,; echo "${*:2}")" "$1" "$new" >&2
  mv "$new" "$tar"
fi
echo "$tar"
