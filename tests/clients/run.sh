#!/bin/bash
# Builds the clients of clients/ as their READMEs say, installs the packages, and runs with them the pieces of the documentation and the
# shops of examples/. drive.py plays the customer, the network between, and strangers who reach the receiver.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
binary=${SAKSHI_BIN:-target/debug/sakshi}
work=$(mktemp -d)
demos=()
finish() {
  [ ${#demos[@]} = 0 ] || kill -KILL "${demos[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED   clients: $1"; shift; [ $# = 0 ] || cat "$@"; exit 1; }

# demo NAME VARIABLE=VALUE...: starts a demo with these settings.
demo() {
  local name=$1
  shift
  env "$@" "$binary" demo --port 0 --internal-port 0 >"$work/$name" 2>"$work/$name.log" &
  demos+=($!)
}
# serves NAME PID: waits until it serves, and keeps its KEY, APP and BASE in $work/NAME.env.
serves() {
  for _ in $(seq 600); do
    grep -q '^Ctrl-C ends it' "$work/$1" && break
    kill -0 "$2" 2>/dev/null || fail "the demo $1 ends" "$work/$1" "$work/$1.log"
    sleep 0.1
  done
  sed -n 's/^ *export \(KEY=.*\)$/\1/p' "$work/$1" >"$work/$1.env"
  [ -s "$work/$1.env" ] || fail "the demo $1 does not serve" "$work/$1" "$work/$1.log"
}
demo usual
demo short SAKSHI__OVSE__WINDOW_S=12
demo camel

tests/setup.sh tests/clients clients/typescript
venv=$root/target/clients/venv packages=$root/target/clients/typescript/node_modules built=$root/target/clients/built
# The virtual environment may have no pip of its own.
pip() { "$machine_python" -m pip --python "$venv/bin/python3" --disable-pip-version-check "$@"; }
machine_python=$(command -v python3)
export PATH="$venv/bin:$PATH"

# once NAME FILE... -- COMMAND...: runs a command in $built/NAME, unless it has succeeded for these files.
once() {
  local name=$1 files=() sum
  shift
  while [ "$1" != -- ]; do files+=("$1"); shift; done
  sum=$(find "${files[@]}" -type f | sort | xargs cat "$root/tests/clients/run.sh" "$root/target/clients/installed" | sha256sum)
  [ "$(cat "$built/$name.sum" 2>/dev/null)" != "$sum" ] || return 0
  rm -rf "${built:?}/$name"
  mkdir -p "$built/$name"
  local code=0
  set +e
  (set -e; cd "$built/$name"; "${@:2}") >"$work/said" 2>&1
  code=$?
  set -e
  [ "$code" = 0 ] || fail "$name is not built" "$work/said"
  echo "$sum" >"$built/$name.sum"
}

build_typescript() {
  cp -r "$root"/clients/typescript/. package
  cp "$root/clients/openapi.json" .
  ln -s "$packages" package/node_modules
  (cd package && npm pack --silent --pack-destination ..)
  # A shop that has installed the package.
  mkdir -p shop/node_modules
  ln -s "$packages"/* shop/node_modules/
  mkdir shop/node_modules/sakshi-client
  tar -xzf sakshi-client-*.tgz -C shop/node_modules/sakshi-client --strip-components 1
  cp "$root"/examples/typescript/{*.ts,*.json} shop
  (cd shop && "$packages/.bin/tsc")
}
build_python() {
  cp -r "$root/clients/python" "$root/clients/openapi.json" .
  python/types.sh
  (cd python && mypy --strict sakshi_client/{__init__,client,receiver,fastapi}.py)
  pip wheel --quiet --no-deps --no-build-isolation --wheel-dir wheel ./python
  pip install --quiet --no-deps --target installed wheel/*.whl
}
libraries=/usr/share/java
jackson=$libraries/jackson-databind.jar:$libraries/jackson-core.jar:$libraries/jackson-annotations.jar
java=$built/java/client/sakshi-client.jar:$jackson:$libraries/jakarta-annotation-api.jar:$libraries/tomcat10-embed-core.jar
build_java() {
  "$root/clients/java/build.sh" "$(echo "$venv"/lib/python3*/site-packages/openapi_generator_cli/openapi-generator.jar)" client
  javac -J-XX:TieredStopAtLevel=1 -Xlint:all,-serial,-classfile,-processing -Werror -cp "$java" -d shop "$root"/examples/java/*.java
  javac -J-XX:TieredStopAtLevel=1 -Xlint:all,-classfile,-processing -Werror -cp "$java:$libraries/spring3-web.jar:$libraries/spring3-core.jar" -d spring "$root"/clients/java/spring/*.java
}
# React Native alone: tests/clients/package.json has no browser's and no Node's types.
build_react_native() {
  ln -s "$root/target/clients/node_modules" .
  cp "$root/clients/mobile/identityApp.ts" .
  "$packages/.bin/tsc" --noEmit --strict --exactOptionalPropertyTypes --target es2020 --lib es2020 --module esnext --moduleResolution bundler \
    --types react-native identityApp.ts
}
once typescript clients/typescript clients/openapi.json examples/typescript -- build_typescript
once python clients/python clients/openapi.json -- build_python
once java clients/java clients/openapi.json examples/java -- build_java
once react-native clients/mobile/identityApp.ts -- build_react_native
export PYTHONPATH=$built/python/installed:$root/examples/python
# A second compiler and a second thread for garbage cost more than they bring to programs that end soon.
brief=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)

cp tests/clients/units.mjs "$built/typescript/shop"
timeout 300 node "$built/typescript/shop/units.mjs" >"$work/units" 2>&1 || fail "units in TypeScript" "$work/units"
cat "$work/units"
timeout 300 python3 tests/clients/units.py >"$work/units" 2>&1 || fail "units in Python" "$work/units"
cat "$work/units"
timeout 100 java "${brief[@]}" -cp "$java" tests/clients/Units.java >"$work/units" 2>&1 || fail "units in Java" "$work/units"
cat "$work/units"

serves usual "${demos[0]}"
serves short "${demos[1]}"
serves camel "${demos[2]}"
# An app with txnId instead of txn_id in its webhooks and results.
internal=$(grep -o 'http://[0-9.:]*/admin' "$work/camel" | head -1 | sed 's#http://\(.*\)/admin#\1#')
app=$(sed -n "s/.*APP='\([^']*\)'.*/\1/p" "$work/camel.env")
SAKSHI_ADMIN_URL="http://$internal" "$binary" admin apps patch "$app" --spelling camelCase >"$work/patched" ||
  fail "the app is not patched" "$work/patched"

# The pieces of the documentation: each line that they print is there. They wait for a transaction that has ended.
(
  set -a
  eval "$(cat "$work/usual.env")"
  api() { curl -sSf "$BASE$1" -H "X-API-KEY: $KEY" -H "X-API-APP-ID: $APP" -H 'Content-Type: application/json' "${@:2}"; }
  for kind in DocLocker RegistryEStamp; do
    api /api/v1/user/webhook -X PUT -d '{"apiType":"'"$kind"'","webhookUrl":"https://shop.example/hooks"}' >/dev/null
  done
  opened=$(api /api/v1/nationalid-ovse/init -d '{"claims":["name"],"channel":"web"}')
  intent=$(sed 's/.*"intentJwt":"\([^"]*\)".*/\1/' <<<"$opened")
  ENDED=$(sed 's/.*"txnId":"\([^"]*\)".*/\1/' <<<"$opened")
  curl -sSf "$BASE/sandbox/app/answer" -H 'Content-Type: application/json' -d "{\"intent\":\"$intent\",\"action\":\"approve\"}" >/dev/null
  pieces() {
    timeout 300 "${@:2}" >"$work/pieces" 2>&1 || fail "the pieces in $1" "$work/pieces"
    for line in '^[0-9]\{3,\}' '/v/' 'getIntent?value=' '/e/' '^valid [Tt]rue' '^[Tt]rue' 'borrower http' '^waiting' 'sandbox/doclocker' 'sandbox/wealth' '^hello Asha Rao'; do
      grep -q "$line" "$work/pieces" || fail "no $line of the pieces in $1" "$work/pieces"
    done
    echo "ok       clients: the pieces of the documentation in $1"
  }
  pieces Python python3 examples/python/pieces.py
  pieces TypeScript node "$built/typescript/shop/out/pieces.js"
  pieces Java java "${brief[@]}" -cp "$built/java/shop:$java" Pieces
)

timeout 1200 python3 tests/clients/drive.py "$work/usual.env" "$work/short.env" "$work/camel.env" \
  fastapi "python3 examples/python/shop.py" \
  django "FRAMEWORK=django python3 examples/python/shop.py" \
  express "node $built/typescript/shop/out/shop.js" \
  fastify "FRAMEWORK=fastify node $built/typescript/shop/out/shop.js" \
  java "java ${brief[*]} -cp $built/java/shop:$java Shop"

for demo in "${demos[@]}"; do
  kill -TERM "$demo"
  code=0
  wait "$demo" || code=$?
  [ "$code" = 0 ] || fail "a demo ends with $code"
done
demos=()
if grep -E 'ERROR|panic' "$work"/*.log; then fail "a demo logs an error"; fi
