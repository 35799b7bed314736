#!/bin/sh
# Runs the browser tests against SAKSHI_BIN (default: the debug build): those of all files, or of the ones named. The long
# form is for SAKSHI_TESTS=long.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export SAKSHI_BIN="${SAKSHI_BIN:-$here/../../target/debug/sakshi}"
# Chromium's headless shell opens a page in a third of the time that the browser takes.
export CHROMIUM="${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium)}"
"$here/setup.sh"
exec node --test-reporter=tap "$here/all.mjs" "$@"
