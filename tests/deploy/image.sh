#!/bin/bash
# Builds the image of deploy/container from a binary that is there, without registry or engine, and runs what is in it as an
# engine would: its own environment and user, a file system that cannot be written to, first process of a container.
#
#   tests/deploy/image.sh DEPLOY BINARY
#
# Ends with 3 where this machine cannot do it, with a sentence that says why.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
deploy=$1 binary=$2
cannot() { echo "$1"; exit 3; }

[ "$(id -u)" = 0 ] || cannot "an image is built and run by root only"
for program in buildah mmdebstrap unshare nsenter ip curl; do
  command -v "$program" >/dev/null || cannot "$program is not here"
done
[ -x "$binary" ] || cannot "there is no $binary"
unshare --mount --net --pid --fork true 2>/dev/null || cannot "namespaces cannot be made here"

work=$(mktemp -d)
container="" outer=""
buildah() { command buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" "$@"; }
finish() {
  [ -z "$outer" ] || kill -KILL "$outer" 2>/dev/null || true
  [ -z "$container" ] || buildah umount "$container" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "$1"; tail -n 20 "$work/log" 2>/dev/null || true; exit 1; }

# The base that the image is put on: Debian's C library and nothing that runs. The place of the build stage is taken by its result.
# Its packages are unpacked and not set up, so the bundle of root certificates is put together here.
tar=$("$here/debian.sh" bookworm libc6 libgcc-s1 ca-certificates 2>"$work/log") || cannot "Debian's packages cannot be reached"
tar -xOf "$tar" --wildcards './usr/share/ca-certificates/mozilla/*.crt' >"$work/ca-certificates.crt"
base=$(buildah from scratch)
buildah add --quiet "$base" "$tar" / >/dev/null
buildah add --quiet "$base" "$work/ca-certificates.crt" /etc/ssl/certs/ >/dev/null
buildah commit --quiet "$base" localhost/run-base >/dev/null
mkdir -p "$work/stage/out/bin" && install -m 0755 "$binary" "$work/stage/out/bin/sakshi" && install -d -m 0700 "$work/stage/out/state" "$work/stage/out/share"
buildah build --quiet --isolation chroot --format docker --build-context "build=$work/stage" --build-arg RUN_BASE=localhost/run-base \
  --ignorefile "$deploy/container/Dockerfile.dockerignore" --file "$deploy/container/Dockerfile" --tag localhost/sakshi "$root" \
  >"$work/log" 2>&1 || fail "the image is not built"

container=$(buildah from localhost/sakshi)
place=$(buildah mount "$container")
config() { buildah inspect --format "{{range .Docker.Config.$1}}{{println .}}{{end}}" localhost/sakshi | sed '/^$/d'; }
mapfile -t environment < <(config Env)
mapfile -t command < <(config Entrypoint; config Cmd)
mapfile -t health < <(config Healthcheck.Test | sed 1d)
user=$(buildah inspect --format '{{.Docker.Config.User}}' localhost/sakshi)
[ ${#health[@]} -gt 0 ] || fail "the image has no health check"
[ "$(find "$place/bin" "$place/usr/bin" -type f 2>/dev/null | wc -l)" -lt 40 ] || fail "the image has more programs than it needs"

# Starts the image's command as a container: a network, a process tree and a mount table of its own, everything read-only but
# the volume. One more address stands for the one by which a container is reached from outside.
start() {
  local volume=$1; shift
  unshare --mount --net --pid --fork --kill-child -- env -i PATH="$PATH" "${environment[@]}" "$@" bash -c '
    set -e
    place=$1 volume=$2 user=$3; shift 3
    mount --bind "$place" "$place"
    mount --bind "$volume" "$place/var/lib/sakshi"
    mount -o remount,bind,ro "$place"
    ip link set lo up
    ip address add 192.0.2.1/32 dev lo
    exec chroot --userspec="$user" "$place" "$@"
  ' start "$place" "$volume" "$user" "${command[@]}" >"$work/out" 2>"$work/log" &
  outer=$!
  for _ in $(seq 300); do
    grep -q '"listening"' "$work/out" && inner=$(pgrep -P "$outer") && return
    kill -0 "$outer" 2>/dev/null || fail "the image's command ends"
    sleep 0.1
  done
  fail "the image's command does not listen"
}
within() { nsenter --target "$inner" --net -- "$@"; }
ask() { within curl --silent --max-time 10 "$@"; }
status() { ask --output /dev/null --write-out '%{http_code}' "http://192.0.2.1:$1"; }
stop() {
  kill -TERM "$inner"
  local code=0
  wait "$outer" || code=$?
  outer=""
  [ "$code" = 0 ] || fail "SIGTERM ends it with $code"
}
volume() { install -d -m 0700 -o "${user%:*}" -g "${user#*:}" "$1"; }

# A sandbox, as the image is when it is built with that feature.
volume "$work/sandbox"
start "$work/sandbox"
grep -q "^Uid:	${user%:*}	" "/proc/$inner/status" || fail "it does not run as ${user%:*}"
grep -q '^NSpid:.*	1$' "/proc/$inner/status" || fail "it is not the first process"
if nsenter --target "$inner" --mount -- touch "$place/file" 2>/dev/null; then fail "its file system can be written to"; fi
[ "$(status 8080/api/ping)" = 200 ] || fail "the public listener cannot be reached from outside"
[ "$(status 8081/readyz)" = 200 ] || fail "the internal listener cannot be reached from outside"
nsenter --target "$inner" --mount --net --pid -- env -i "${environment[@]}" chroot --userspec="$user" "$place" "${health[@]}" >/dev/null \
  || fail "the health check fails"
key=$(sed -n 's/^ *X-API-KEY: //p' "$work/log") app=$(sed -n 's/^ *X-API-APP-ID: //p' "$work/log")
opened=$(ask http://192.0.2.1:8080/api/v1/nationalid-ovse/init -H "X-API-KEY: $key" -H "X-API-APP-ID: $app" \
  -H 'Content-Type: application/json' -d '{"claims":["name"],"channel":"qr"}')
case $opened in *'"txnId"'*) ;; *) fail "no transaction is opened: $opened" ;; esac
stop

# Production: the same image, with the settings and keys that only production has.
volume "$work/production"
openssl genrsa -out "$work/production/intent.pem" 2048 2>/dev/null
"$root/target/deploy/venv/bin/python3" "$here/jwks.py" >"$work/production/jwks.json"
chown "$user" "$work/production/intent.pem" "$work/production/jwks.json"
secret() { openssl rand -hex 32; }
mapfile -t settings <<END
SAKSHI__PROFILE=production
SAKSHI__SERVER__PUBLIC_BASE_URL=https://verify.example
SAKSHI__SERVER__DRAIN_NOTICE_S=0
SAKSHI__STORE__ENCRYPTION_KEY=$(openssl rand -base64 32)
SAKSHI__ADMIN__TOKEN=$(secret)
SAKSHI__ADMIN__CONNECTOR_TOKEN=$(secret)
SAKSHI__UPSTREAMS__TOKEN=$(secret)
SAKSHI__AUTHORITY__INTENT_KEY=/var/lib/sakshi/intent.pem
SAKSHI__AUTHORITY__JWKS_PATH=/var/lib/sakshi/jwks.json
SAKSHI__AUTHORITY__ISSUER=https://issuer.example
SAKSHI__AUTHORITY__QR_HOST=https://id-authority.example
SAKSHI__AUTHORITY__CLIENT_ID=verifier
SAKSHI__AUTHORITY__REGISTRATION=0001
SAKSHI__AUTHORITY__ANDROID_WEB_ACTION=example.WEB
SAKSHI__AUTHORITY__ANDROID_APP_ACTION=example.APP
SAKSHI__AUTHORITY__IOS_SCHEME=idauthority
SAKSHI__AUTHORITY__IOS_HOST=verify
END
start "$work/production" "${settings[@]}"
[ "$(status 8081/readyz)" = 200 ] || fail "it is not ready in production"
[ "$(status 8080/sandbox/residents)" = 404 ] || fail "production has stand-ins"
stop
