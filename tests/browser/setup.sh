#!/bin/sh
# Installs the browser driver and the accessibility checker under target/browser/.
set -eu
chromium=${CHROMIUM:-$(command -v chromium-headless-shell || echo chromium)}
for tool in "$chromium" zbarimg gs node npm; do
  command -v "$tool" >/dev/null || { echo "tests/browser needs $tool; see its README.md" >&2; exit 1; }
done
exec "$(dirname "$0")/../setup.sh" tests/browser
