#!/bin/bash
# Tools of others use /openapi.json as a running demo serves it: linters find nothing, generated clients compile and carry one
# verification and one event through, and schemathesis finds no answer that the document does not describe. Linters and
# schemathesis judge the document of the internal listener too.
#
# Linters, generators and compilers run once for each document and version of the tools; clients and schemathesis run each time.
# The lanes run side by side, so lines of one lane follow those of another. With SAKSHI_TESTS=long schemathesis sends 60 generated
# requests for each operation in a phase, otherwise 8.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/contract/clients
tools=$root/target/contract/clients
binary=${SAKSHI_BIN:-$root/target/debug/sakshi}
examples=8
[ "${SAKSHI_TESTS:-}" != long ] || examples=60
"$root/tests/setup.sh" tests/contract/clients
export PATH="$tools/venv/bin:$tools/node_modules/.bin:$PATH" REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
work=$(mktemp -d)
demos=()
finish() {
  [ ${#demos[@]} = 0 ] || kill -KILL "${demos[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED   contract: $1"; shift; [ $# = 0 ] || cat "$@"; exit 1; }
# step NAME COMMAND...: runs a command whose output, in $work/LANE, matters only when it fails.
step() {
  local name=$1 code=0
  shift
  set +e
  (set -e; "$@") >"$work/$lane.said" 2>&1
  code=$?
  set -e
  [ "$code" = 0 ] || fail "$name" "$work/$lane.said"
  echo "ok       contract: $name"
}

# demo NAME: starts a demo in the directory NAME.
demo() {
  mkdir "$work/$1"
  "$binary" demo --port 0 --internal-port 0 >"$work/$1/demo" 2>"$work/$1/log" &
  demos+=($!)
}
# enter NAME PID: waits until that demo serves, and takes its addresses, keys and documents, which name another address.
enter() {
  cd "$work/$1"
  for _ in $(seq 600); do
    ! grep -q '^Ctrl-C ends it' demo || break
    kill -0 "$2" 2>/dev/null || fail "the demo ends" demo log
    sleep 0.1
  done
  eval "$(sed -n "s/^ *export \(KEY='[^']*' APP='[^']*' BASE='[^']*'\)$/export \1/p" demo)"
  eval "$(sed -n 's/.*"\(http:[^"]*\)\/admin\/v1\/tree" -H "\([^"]*\)"$/INTERNAL="\1" TOKEN="\2"/p' demo)"
  curl -sSf "$BASE/openapi.json" | sed "s#$BASE#http://127.0.0.1:8080#" >openapi.json
  curl -sSf "$INTERNAL/openapi.json" -H "$TOKEN" >internal.json
}

# once NAME FILE COMMAND...: runs a command in $work/NAME, unless it has succeeded for this content of FILE with these tools. What it
# leaves in its directory is kept in $tools/kept/NAME until it is made for another content.
once() {
  local kept=$tools/kept/$1 sum
  sum=$(cat "$2" "$tools/installed" "$here"/{*.*,.spectral.yaml} "$root/tests/contract/run.sh" | sha256sum)
  [ "$(cat "$kept/sum" 2>/dev/null)" != "$sum" ] || return 0
  mkdir "$work/$1"
  cd "$work/$1"
  cp "$2" "$here"/{*.*,.spectral.yaml} .
  ln -s "$tools/node_modules" node_modules
  "${@:3}"
  echo "$sum" >sum
  rm -rf "$kept"
  mkdir -p "$tools/kept"
  mv "$work/$1" "$kept"
}
# client NAME COMMAND...: generates the client NAME if need be, and runs it by the command.
client() {
  once "$1" "$work/clients/openapi.json" "generate_$1"
  cd "$tools/kept/$1"
  "${@:2}"
}

redocly_finds_nothing() {
  redocly lint "$1" --format json >redocly.json
  python3 -c 'import json, sys; totals = json.load(open("redocly.json"))["totals"]; print(totals); sys.exit(any(totals.values()))' ||
    { redocly lint "$1"; return 1; }
}
linters() {
  for name in openapi internal; do
    document=$work/clients/$name.json
    step "redocly finds no error and no warning in $name.json" once "redocly-$name" "$document" redocly_finds_nothing "$name.json"
    step "spectral finds no error, warning or hint in $name.json" \
      once "spectral-$name" "$document" spectral lint --fail-severity hint "$name.json"
  done
}

generate_typescript() {
  openapi-typescript openapi.json --output api.ts
  # The libraries' own declarations are not checked.
  tsc --skipLibCheck
}
typescript_client() { step "TypeScript: openapi-typescript, openapi-fetch and tsc --strict" client typescript node out/run.js; }

generate_python() {
  openapi-python-client generate --path openapi.json --config python.yaml --output-path python --fail-on-warning
  mv run.py python/
  (cd python && mypy --strict .)
}
python_client() { step "Python: openapi-python-client and mypy --strict" client python python3 python/run.py; }

# Programs that end soon: a second compiler and a second thread for garbage cost more than they bring.
brief=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
generator=$(echo "$tools"/venv/lib/python3*/site-packages/openapi_generator_cli/openapi-generator.jar)
java_classes=$generator:/usr/share/java/jakarta-annotation-api.jar
generate_java() {
  java "${brief[@]}" -jar "$generator" generate -i openapi.json -g java --library native -o java --additional-properties \
    openApiNullable=false,hideGenerationTimestamp=true,annotationLibrary=none,documentationProvider=none,useJakartaEe=true >generated 2>&1 ||
    { cat generated; return 1; }
  # Messages about every document of this version of OpenAPI, whatever its content.
  if grep -E '\] (WARN|ERROR) ' generated | grep -vE 'still in beta|schema name: null$|Ignoring complex example'; then return 1; fi
  find java/src/main -name '*.java' >sources
  javac "${brief[@]/#/-J}" -proc:none -nowarn -d classes -cp "$java_classes" @sources Run.java
}
java_client() {
  # The service closes a connection that is idle for five seconds; a client that gives it up sooner never writes into a closed one.
  step "Java: openapi-generator and javac" \
    client java java "${brief[@]}" -Djdk.httpclient.keepalive.timeout=2 -cp "$java_classes:classes" Run
}

# Documents served for import.
imports() {
  cd "$work/clients"
  ln -s "$tools/node_modules" node_modules
  cp "$here/asyncapi.mjs" .
  curl -sSf "$BASE/docs/postman.json" >postman.json
  curl -sSf "$BASE/docs/asyncapi.json" >asyncapi.json
  step "newman runs the collection's first folder, from an opening to its result" \
    newman run postman.json --folder 'A verification, step by step' --env-var "KEY=$KEY" --env-var "APP=$APP" --bail
  step "AsyncAPI's parser finds no error and no warning in the document of the webhooks" node asyncapi.mjs asyncapi.json
}

schemathesis() {
  enter generated "${demos[1]}"
  cp "$here"/{schemathesis.toml,hooks.py} .
  step "schemathesis finds no answer that the document does not describe" \
    st --config-file schemathesis.toml run openapi.json --max-examples "$examples" --url "$BASE" \
    --header "X-API-KEY: $KEY" --header "X-API-APP-ID: $APP"
  grep -A40 '= SUMMARY =' "$work/$lane.said" || true
  # Reports are left out: which body is read depends on the path.
  step "schemathesis finds no answer that the internal document does not describe" \
    st --config-file schemathesis.toml run internal.json --max-examples "$examples" --url "$INTERNAL" \
    --header "$TOKEN" --exclude-operation-id reportFlow
  grep -A40 '= SUMMARY =' "$work/$lane.said" || true
}

# Schemathesis also revokes keys and erases data, so the clients have another demo.
demo clients
demo generated
enter clients "${demos[0]}"
lanes=()
for lane in schemathesis java_client typescript_client python_client imports linters; do
  (trap - EXIT; "$lane") &
  lanes+=($!)
done
failed=0
for lane in "${lanes[@]}"; do wait "$lane" || failed=1; done
[ "$failed" = 0 ] || exit 1

for demo in "${demos[@]}"; do
  kill -TERM "$demo"
  code=0
  wait "$demo" || code=$?
  [ "$code" = 0 ] || fail "a demo ends with $code" "$work"/*/log
done
demos=()
if grep -E 'ERROR|panic' "$work"/*/log; then fail "a demo logs an error"; fi
