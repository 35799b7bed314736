#!/bin/bash
# Whether tools of others can use /openapi.json as a running demo serves it: linters find nothing, generated clients compile and
# carry one verification and one event through, and schemathesis finds no answer that the document does not describe. Linters and
# schemathesis judge the document of the internal listener too.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/contract/clients
tools=$root/target/contract/clients
binary=${SAKSHI_BIN:-$root/target/debug/sakshi}
"$here/setup.sh"
export PATH="$tools/venv/bin:$tools/node_modules/.bin:$PATH" REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
work=$(mktemp -d)
demo=
finish() {
  [ -z "$demo" ] || kill -KILL "$demo" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED   contract: $1"; shift; [ $# = 0 ] || cat "$@"; exit 1; }
# step NAME COMMAND...: runs a command whose output matters only when it fails.
step() {
  local name=$1
  shift
  "$@" >"$work/step" 2>&1 || fail "$name" "$work/step"
  echo "ok       contract: $name"
}

cd "$work"
"$binary" demo --port 0 --internal-port 0 >demo 2>demo.log &
demo=$!
for _ in $(seq 600); do
  grep -q '^Ctrl-C ends it' demo && break
  kill -0 "$demo" 2>/dev/null || fail "the demo ends" demo demo.log
  sleep 0.1
done
eval "$(sed -n "s/^ *export \(KEY='[^']*' APP='[^']*' BASE='[^']*'\)$/export \1/p" demo)"
eval "$(sed -n 's/.*"\(http:[^"]*\)\/admin\/v1\/tree" -H "\([^"]*\)"$/INTERNAL="\1" TOKEN="\2"/p' demo)"
curl -sSf "$BASE/openapi.json" >openapi.json
curl -sSf "$INTERNAL/openapi.json" >internal.json
ln -s "$tools/node_modules" node_modules
cp "$here"/{run.ts,run.py,Run.java,tsconfig.json,python.yaml,schemathesis.toml,hooks.py,.spectral.yaml} .
cp "$tools/package.json" .

redocly_finds_nothing() {
  redocly lint "$1" --format json >redocly.json
  python3 -c 'import json, sys; totals = json.load(open("redocly.json"))["totals"]; print(totals); sys.exit(any(totals.values()))' ||
    { redocly lint "$1"; return 1; }
}
for document in openapi.json internal.json; do
  step "redocly finds no error and no warning in $document" redocly_finds_nothing "$document"
  step "spectral finds no error, warning or hint in $document" spectral lint --fail-severity hint "$document"
done

typescript() { openapi-typescript openapi.json --output api.d.ts && tsc && node out/run.js; }
step "TypeScript: openapi-typescript, openapi-fetch and tsc --strict" typescript

python() {
  openapi-python-client generate --path openapi.json --config python.yaml --output-path python --fail-on-warning
  cp run.py python/
  (cd python && mypy --strict . && python3 run.py)
}
step "Python: openapi-python-client and mypy --strict" python

java_classes=$(echo "$tools"/venv/lib/python3*/site-packages/openapi_generator_cli/openapi-generator.jar):/usr/share/java/jakarta-annotation-api.jar
java() {
  openapi-generator-cli generate -i openapi.json -g java --library native -o java --additional-properties \
    openApiNullable=false,hideGenerationTimestamp=true,annotationLibrary=none,documentationProvider=none,useJakartaEe=true >generated 2>&1
  # What it says of every document of this version of OpenAPI, whatever is in it.
  if grep -E '\] (WARN|ERROR) ' generated | grep -vE 'still in beta|schema name: null$|Ignoring complex example'; then return 1; fi
  find java/src/main -name '*.java' >sources
  javac -nowarn -d classes -cp "$java_classes" @sources Run.java
  # The service closes a connection that is idle for five seconds; a client that gives it up sooner never writes into a closed one.
  command java -Djdk.httpclient.keepalive.timeout=2 -cp "$java_classes:classes" Run
}
step "Java: openapi-generator and javac" java

step "schemathesis finds no answer that the document does not describe" \
  st --config-file schemathesis.toml run openapi.json --url "$BASE" --header "X-API-KEY: $KEY" --header "X-API-APP-ID: $APP"
grep -A40 '= SUMMARY =' step || true
# Reports are left out: which body is read depends on the path.
step "schemathesis finds no answer that the internal document does not describe" \
  st --config-file schemathesis.toml run internal.json --url "$INTERNAL" --header "$TOKEN" --exclude-operation-id reportFlow
grep -A40 '= SUMMARY =' step || true

kill -TERM "$demo"
code=0
wait "$demo" || code=$?
demo=
[ "$code" = 0 ] || fail "the demo ends with $code" demo.log
if grep -E 'ERROR|panic' demo.log; then fail "the demo logs an error"; fi
