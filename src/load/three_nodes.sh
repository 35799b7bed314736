#!/bin/bash
# Lets guests through three nodes on one Redis behind haproxy, all on this machine and in a directory of their own:
#
#   src/load/three_nodes.sh kiosk --guests 20000 --minutes 3 --report report.html
#
# Needs redis-server and haproxy, and the release build (cargo build --release -p sakshi -p sakshi-load). Everything it
# starts ends with it. FIRST_PORT (default 21700) and the nine ports after it must be free.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${CARGO_TARGET_DIR:-target}/release
first=${FIRST_PORT:-21700}
work=$(mktemp -d)
running=() watched=()

end() {
    code=$?
    [ ${#running[@]} = 0 ] || kill "${running[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
    exit "$code"
}
trap end EXIT

# Waits until a command succeeds, for a minute.
until_good() {
    for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
    echo "in vain: $*" >&2; tail -n 5 "$work"/*.log >&2
    return 1
}

redis-server deploy/redis/redis.conf --port "$first" --bind 127.0.0.1 --dir "$work" --logfile "$work/redis.log" --daemonize no &
running+=($!) watched+=(--pid "redis=$!")
until_good redis-cli -p "$first" ping

export SAKSHI__STORE__ENCRYPTION_KEY=$(head -c 32 /dev/urandom | base64)
export SAKSHI__STORE__KIND=redis SAKSHI__STORE__REDIS_URL="redis://127.0.0.1:$first" SAKSHI__STORE__PATH="$work/store"
export SAKSHI__SERVER__PUBLIC_BASE_URL="http://127.0.0.1:$((first + 7))" SAKSHI__SERVER__TRUSTED_PROXIES=127.0.0.1
for node in 1 2 3; do
    public=127.0.0.1:$((first + 2 * node - 1)) internal=127.0.0.1:$((first + 2 * node))
    SAKSHI__SERVER__PUBLIC_ADDR=$public SAKSHI__SERVER__INTERNAL_ADDR=$internal SAKSHI_LOG=warn "$bin/sakshi" serve 2>"$work/node$node.log" &
    running+=($!) watched+=(--pid "node$node=$!")
    export "SAKSHI_NODE$node=$public" "SAKSHI_NODE${node}_INTERNAL=${internal#*:}"
    # One after another: the first makes the keys that all of them share.
    until_good "$bin/sakshi" healthcheck --url "http://$internal"
done

SAKSHI_HTTP=127.0.0.1:$((first + 7)) SAKSHI_STATS=127.0.0.1:$((first + 8)) SAKSHI_ADMIN_SOCKET=$work/haproxy.sock \
    haproxy -db -f deploy/haproxy/haproxy.cfg 2>"$work/haproxy.log" >/dev/null &
running+=($!) watched+=(--pid "haproxy=$!")
until_good curl --noproxy "*" -fsS "http://127.0.0.1:$((first + 7))/api/ping"

"$bin/sakshi-load" "$@" --base "http://127.0.0.1:$((first + 7))" --internal "http://127.0.0.1:$((first + 2))" \
    --issuer-key "$work/store/sandbox-keys/issuer.p8" "${watched[@]}"
