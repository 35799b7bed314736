#!/bin/sh
# Installs the servers of the bench `peers` with their libraries under target/peers/, unless these versions are there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
place="$here/../../target/peers"
wanted=$(cat "$here/python/requirements.txt" "$here/node/package-lock.json" | cksum)
mkdir -p "$place/node"
exec 9>"$place/lock"
flock 9
cp "$here/node/server.mjs" "$here/node/package.json" "$here/node/package-lock.json" "$here/node/.npmrc" "$place/node/"
[ "$(cat "$place/installed" 2>/dev/null)" = "$wanted" ] && exit 0

rm -rf "$place/venv" "$place/node/node_modules" "$place/installed"
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/python/requirements.txt"
(cd "$place/node" && npm ci --silent)
echo "$wanted" >"$place/installed"
