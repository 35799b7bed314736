#!/bin/sh
# Installs the linters and generators under target/contract/clients/, unless these very versions are there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
place="$here/../../../target/contract/clients"
wanted=$(cat "$here/requirements.txt" "$here/package-lock.json" | cksum)
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
[ "$(cat "$place/installed" 2>/dev/null)" = "$wanted" ] && exit 0

rm -rf "$place/venv" "$place/node_modules" "$place/installed"
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$place/"
(cd "$place" && npm ci --silent)
echo "$wanted" >"$place/installed"
