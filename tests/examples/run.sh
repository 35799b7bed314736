#!/bin/bash
# Runs the backends of examples/ against a sandbox, as a client's developer would: compiled as their READMEs say, each as a
# program of its own. drive.py plays the person, the network between, and whoever else can reach the webhook address.
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
fail() { echo "FAILED   examples: $1"; shift; [ $# = 0 ] || cat "$@"; exit 1; }

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

tests/setup.sh examples/typescript
typescript=target/examples/typescript
cp examples/typescript/backend.ts examples/typescript/tsconfig.json "$typescript/"
# The libraries' own declarations are not checked.
(cd "$typescript" && npm run --silent build -- --skipLibCheck) || fail "the TypeScript example does not compile"
# A second compiler and a second thread for garbage cost more than they bring to programs that end soon.
brief=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
jackson=/usr/share/java/jackson-databind.jar:/usr/share/java/jackson-core.jar:/usr/share/java/jackson-annotations.jar
javac "${brief[@]/#/-J}" -Xlint:all,-serial -Werror -cp "$jackson" -d target/examples/java examples/java/Backend.java || fail "the Java example does not compile"

for language in typescript/backend.ts python/backend.py java/Backend.java; do
  [ "$(wc -l <"examples/$language")" -lt 150 ] || fail "examples/$language has 150 lines or more"
done

serves usual "${demos[0]}"
serves short "${demos[1]}"
serves camel "${demos[2]}"
# An app whose webhooks and results have txnId instead of txn_id.
internal=$(grep -o 'http://[0-9.:]*/admin' "$work/camel" | head -1 | sed 's#http://\(.*\)/admin#\1#')
app=$(sed -n "s/.*APP='\([^']*\)'.*/\1/p" "$work/camel.env")
SAKSHI_ADMIN_URL="http://$internal" "$binary" admin apps patch "$app" --spelling camelCase >"$work/patched" ||
  fail "the app is not patched" "$work/patched"

timeout 300 python3 tests/examples/drive.py "$work/usual.env" "$work/short.env" "$work/camel.env" \
  python "python3 examples/python/backend.py" \
  typescript "node $typescript/out/backend.js" \
  java "java ${brief[*]} -cp target/examples/java:$jackson Backend"

for demo in "${demos[@]}"; do
  kill -TERM "$demo"
  code=0
  wait "$demo" || code=$?
  [ "$code" = 0 ] || fail "a demo ends with $code"
done
demos=()
if grep -E 'ERROR|panic' "$work"/*.log; then fail "a demo logs an error"; fi
