#!/bin/sh
# Installs the YAML reader, the Dockerfile linter and the schemas of Kubernetes under target/deploy/, unless these very versions are there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
place="$here/../../target/deploy"
wanted=$(cksum <"$here/requirements.txt")
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
[ "$(cat "$place/installed" 2>/dev/null)" = "$wanted" ] && exit 0

rm -rf "$place/venv" "$place/installed"
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
echo "$wanted" >"$place/installed"
