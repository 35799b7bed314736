#!/bin/bash
# More generators and the importers of Postman and Bruno use /openapi.json of a running demo. Part of the long form of the contract.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/tests/contract/generators
tools=$root/target/contract/generators
binary=${SAKSHI_BIN:-$root/target/debug/sakshi}
"$root/tests/setup.sh" tests/contract/generators
export PATH="$tools/venv/bin:$tools/node_modules/.bin:$PATH"
work=$(mktemp -d)
demo=""
finish() {
  [ -z "$demo" ] || kill -KILL "$demo" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED   generators: $1"; [ ! -f "$work/said" ] || cat "$work/said"; exit 1; }
# step NAME COMMAND...
step() {
  "${@:2}" >"$work/said" 2>&1 || fail "$1"
  echo "ok       generators: $1"
}

cd "$work"
cp "$here"/*.* .
ln -s "$tools/node_modules" node_modules
"$binary" demo --port 0 --internal-port 0 >demo 2>log &
demo=$!
for _ in $(seq 600); do
  ! grep -q '^Ctrl-C ends it' demo || break
  kill -0 "$demo" 2>/dev/null || fail "the demo ends"
  sleep 0.1
done
eval "$(sed -n "s/^ *export \(KEY='[^']*' APP='[^']*' BASE='[^']*'\)$/export \1/p" demo)"
curl -sSf "$BASE/openapi.json" >openapi.json

jar=$(echo "$tools"/venv/lib/python3*/site-packages/openapi_generator_cli/openapi-generator.jar)
generate() { java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -jar "$jar" generate -i openapi.json -g "$@"; }
# A boolean with one value becomes an enum of words in these languages, which does not compile.
no_boolean_enums() { ! grep -rniE '(true|false) *(\("(true|false)"\)|= *(true|false),)' "$1"; }

step "the importers of Postman and Bruno" node importers.mjs openapi.json "$BASE" "$KEY" "$APP"
cat said
curl -sSf "$BASE/docs/postman.json" >postman.json
step "Bruno imports the Postman collection" node bruno.mjs postman.json bruno
step "Bruno runs its first folder, from an opening to its result" \
  env --chdir=bruno bru run 'A verification, step by step' --env-var "KEY=$KEY" --env-var "APP=$APP" --bail
step "hey-api" openapi-ts --input openapi.json --output hey --plugins @hey-api/client-fetch @hey-api/typescript @hey-api/sdk zod
step "orval" orval --input openapi.json --output orval.ts --client fetch
step "tsc --strict" tsc
step "zod reads answers" node zod.mjs "$BASE" "$KEY" "$APP"
step "datamodel-code-generator" datamodel-codegen --input openapi.json --input-file-type openapi --output models.py \
  --output-model-type pydantic_v2.BaseModel
step "OpenAPI Generator: python" generate python -o python --package-name openapi_client
step "Python reads answers" env PYTHONPATH=python:. python3 generated.py "$BASE" "$KEY" "$APP"
step "OpenAPI Generator: java, okhttp-gson" generate java --library okhttp-gson -o java
step "no enum of booleans in Java" no_boolean_enums java/src/main
step "OpenAPI Generator: spring" generate spring -o spring
step "no enum of booleans in Spring" no_boolean_enums spring/src/main
step "OpenAPI Generator: csharp" generate csharp -o csharp
step "no enum of booleans in C#" no_boolean_enums csharp/src
