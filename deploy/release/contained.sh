#!/bin/sh
# Runs a script of deploy/release in the container that the Dockerfile builds in, so that a release has the same bytes on every machine,
# and runs where the C library is as old as the container's. Needs docker.
#
#   deploy/release/contained.sh deploy/release/dist.sh
#   BUILD_BASE=rust@sha256:… deploy/release/contained.sh deploy/release/dist.sh     with the very image that a release names in BUILT-IN
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd -P)
base=${BUILD_BASE:-$(sed -n 's/^ARG BUILD_BASE=//p' "$root/deploy/container/Dockerfile")}
docker pull --quiet "$base" >/dev/null
docker run --rm --volume "$root:$root" --workdir "$root" --env OWNER="$(id -u):$(id -g)" "$base" sh -euc '
  apt-get update -qq && apt-get install -y -qq --no-install-recommends git python3 >/dev/null
  git config --global --add safe.directory "$PWD"
  for script in "$@"; do "$script"; done
  chown -R "$OWNER" target' sh "$@"
docker inspect --format '{{index .RepoDigests 0}}' "$base" >"$root/target/dist/out/BUILT-IN"
