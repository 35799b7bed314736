#!/bin/sh
# Installs the browser driver and the accessibility checker under target/browser/, unless these
# very versions are there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
place="$here/../../target/browser"
chromium=${CHROMIUM:-$(command -v chromium-headless-shell || echo chromium)}
for tool in "$chromium" zbarimg gs node npm; do
  command -v "$tool" >/dev/null || { echo "tests/browser needs $tool; see its README.md" >&2; exit 1; }
done
wanted=$(cat "$here/package-lock.json" "$here/.npmrc" | cksum)
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
[ "$(cat "$place/installed" 2>/dev/null)" = "$wanted" ] && exit 0

rm -rf "$place/node_modules" "$place/installed"
cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$place/"
(cd "$place" && npm ci --silent)
echo "$wanted" >"$place/installed"
