#!/bin/bash
# Pastes the commands of the README, of the guides in docs/guides, and those that the demo prints, into bash, zsh and dash: no
# shell refuses a line, and the answers are those that the documents describe.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
binary=${SAKSHI_BIN:-target/debug/sakshi}
work=$(mktemp -d)
demo=""
finish() {
  [ -z "$demo" ] || kill -KILL "$demo" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED   readme: $1"; shift; [ $# = 0 ] || cat "$@"; exit 1; }

"$binary" demo --port 0 --internal-port 0 >"$work/demo" 2>"$work/log" &
demo=$!
for _ in $(seq 600); do
  grep -q '^Ctrl-C ends it' "$work/demo" && break
  kill -0 "$demo" 2>/dev/null || fail "the demo ends" "$work/demo" "$work/log"
  sleep 0.1
done
grep -q '^Ctrl-C ends it' "$work/demo" || fail "the demo does not serve" "$work/demo" "$work/log"

# The commands: the demo's indented lines, then the blocks of the first guide and of the README's "Five minutes", then those of the
# other guides.
sed -n '/^Still serving/,$s/^  //p' "$work/demo" >"$work/demo.blocks"
# The answers checked below prove that all of them ran.
blocks_of() {
  sed -n '/^```sh$/,/^```$/{/^```/d;p}' >"$work/new.blocks"
  [ -s "$work/new.blocks" ] || fail "$1 has lost its blocks"
  cat "$work/new.blocks" >>"$2"
}
blocks_of docs/guides/start.md "$work/readme.blocks" <docs/guides/start.md
sed -n '/^## Five minutes/,/^## Where/p' README.md | blocks_of README.md "$work/readme.blocks"
for guide in docs/guides/*.md; do
  # Two of them have no commands.
  case $guide in */start.md | */concepts.md | */team.md) continue ;; esac
  blocks_of "$guide" "$work/guides.blocks" <"$guide"
done
# An interactive shell may refuse comments.
if grep -nE '(^|[[:space:]])#' "$work/demo.blocks" "$work/readme.blocks" "$work/guides.blocks"; then fail "a block has a comment"; fi

# As a person at a terminal would: paste everything into one shell.
paste_into() {
  name=${1%% *} out=$work/$name.out err=$work/$name.err
  mkdir "$work/$name"
  # Interactive, as at a terminal.
  # shellcheck disable=SC2086
  cat "$work/demo.blocks" "$work/readme.blocks" "$work/guides.blocks" | env -i HOME="$work/$name" TMPDIR="$work/$name" PATH="$PATH" TERM=dumb PS1= PS2= \
    timeout 900 $1 -i >"$out" 2>"$err" || fail "$name ends with an error" "$err"
  if grep -niE 'not found|no match|syntax|parse error|unmatched|unexpected|bad substitution|illegal|error:' "$err"; then
    fail "$name refuses a line" "$err"
  fi
  for told in '"pending":true' '"verification_passed":true' '"residentName":"Asha' '"qrPayload":"' '"verification_passed":false' \
    '"registration_count":1' '"remaining":1' '"documentStatus":"Completed"' '"Documents fetched"' '"eStampId":' '"uniqueIdentifier":' '"status":"disabled"' '"field":"claims[1]"' '"balance":' '"kind":"root"' 'as it should be' outcome=delivered \
    '"state":"verified"' 'getIntent?value=' '"responseMsg":"Success"' '200 text/html' '"code":"event_closed"' '"webhookUrl":null' \
    '"already":false' '"already":true' '"pin":"' '"request_id":"checkout-7"' '"code":"idempotency_key_reused"' '"error_code":"claims_missing"' '"ageAbove18":false'; do
    grep -qF -- "$told" "$out" || fail "$name: no $told in the answers" "$out" "$err"
  done
  same=$(grep -xE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' "$out" | sort | uniq -c | awk '$1 >= 2' | wc -l)
  [ "$same" -ge 1 ] || fail "$name: the same request twice is two transactions" "$out"
  echo "ok       readme in $name"
}

# Concurrently: some of the commands wait.
pasting=""
for shell in "bash --norc --noprofile" "zsh -f" "dash"; do
  (trap - EXIT; paste_into "$shell") &
  pasting="$pasting $!"
done
for shell in $pasting; do wait "$shell" || exit 1; done

# A program that knows the address and its credentials alone: it follows /llms.txt to the first page and does what stands there.
(
  set +u
  eval "$(sed -n "s/^ *export \(KEY='[^']*' APP='[^']*' BASE='[^']*'\)$/export \1/p" "$work/demo")"
  page=$(curl -sSf "$BASE/llms.txt" | sed -n 's/^- \[Get started\](\([^)]*\)):.*/\1/p')
  curl -sSf "$page" | sed -n '/^```sh$/,/^```$/{/^```/d;p}' >"$work/hosted.blocks"
  timeout 300 bash "$work/hosted.blocks" >"$work/hosted.out" 2>"$work/hosted.err"
) || fail "the hosted page does not run" "$work/hosted.out" "$work/hosted.err"
for told in '"balance":' '"verification_passed":true' '"error_code":"301"' '"registration_count":1'; do
  grep -qF -- "$told" "$work/hosted.out" || fail "no $told from the hosted page" "$work/hosted.out" "$work/hosted.err"
done
[ "$(grep -cF '"client_reference_id":"order-42"' "$work/hosted.out")" = 2 ] || fail "the webhook or the result is missing" "$work/hosted.out"
echo "ok       readme: the first page of /llms.txt, from nothing but an address, a key and an app id"

kill -TERM "$demo"
code=0
wait "$demo" || code=$?
demo=""
[ "$code" = 0 ] || fail "the demo ends with $code"
if grep -E 'ERROR|panic' "$work/log"; then fail "the demo logs an error"; fi
