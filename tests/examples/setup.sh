#!/bin/sh
# Installs the compiler of the TypeScript example under target/examples/, unless this very version is there.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
place="$root/target/examples/typescript"
wanted=$(cat "$root/examples/typescript/package-lock.json" "$root/examples/typescript/package.json" | cksum)
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
[ "$(cat "$place/installed" 2>/dev/null)" = "$wanted" ] && exit 0

rm -rf "$place/node_modules" "$place/installed"
cd "$root/examples/typescript"
cp package.json package-lock.json .npmrc "$place/"
(cd "$place" && npm ci --silent)
echo "$wanted" >"$place/installed"
