#!/bin/sh
# Runs the browser tests against SAKSHI_BIN (default: the debug build).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export SAKSHI_BIN="${SAKSHI_BIN:-$here/../../target/debug/sakshi}"
"$here/setup.sh"
exec node --test --test-concurrency=2 "$here"/*.test.mjs
