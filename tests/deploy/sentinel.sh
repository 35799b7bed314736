#!/bin/bash
# Starts a master, a replica and three sentinels with the files of deploy/redis and their users, lets a node find them, and kills the
# master: the replica takes its place, and the node is ready again.
#
#   tests/deploy/sentinel.sh FILES BINARY
set -euo pipefail
files=$1 binary=$2
temp=$(mktemp -d)
pids=()
end() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$temp"; }
trap end EXIT
fail() { echo "$*"; tail -n 3 "$temp"/*.log; exit 1; }
until_true() {
  local tries=0
  until "${@:2}" >/dev/null 2>&1; do
    tries=$((tries + 1)); [ $tries -lt 400 ] || fail "did not happen: $1"
    sleep 0.05
  done
}
free_ports() { python3 "$(dirname "$0")/ports.py" "$1"; }
hash() { printf %s "$1" | sha256sum | cut -d' ' -f1; }

# The users as they are delivered, with passwords that are known here.
with_passwords() {
  sed "s/#0\{64\}/#$(hash of-sakshi)/; s/#1\{64\}/#$(hash of-operator)/; s/#2\{64\}/#$(hash of-replica)/; s/#3\{64\}/#$(hash of-sentinel)/"
}
cat "$files/users.acl" "$files/users.replicas.acl" | with_passwords >"$temp/users.acl"
with_passwords <"$files/sentinel.acl" >"$temp/sentinel.acl"

# on_free_port COMMAND...: runs it with a free port, which it leaves in $port; with another one if a process has taken that meanwhile.
on_free_port() {
  for _ in 1 2 3 4 5; do
    port=$(free_ports 1)
    "$1" "$port" "${@:2}"
    until grep -qs "Ready to accept connections\|Sentinel ID is" "$temp/$port.log"; do
      kill -0 "${pids[-1]}" 2>/dev/null || continue 2
      sleep 0.05
    done
    return
  done
  fail "$1 has no port"
}
server() {
  mkdir -p "$temp/$1"
  # Sentinel lets servers write into this file too.
  cp "$files/redis.conf" "$temp/$1/redis.conf"
  redis-server "$temp/$1/redis.conf" --port "$1" --bind 127.0.0.1 --dir "$temp/$1" --daemonize no --aclfile "$temp/users.acl" \
    --masteruser replica --masterauth of-replica "${@:2}" >"$temp/$1.log" 2>&1 &
  pids+=($!)
}
ask() { redis-cli -p "$1" --user "$2" --pass "of-$2" --no-auth-warning "${@:3}"; }
says() { [[ $("${@:2}" 2>&1) =~ $1 ]]; }

on_free_port server
master=$port first=${pids[-1]}
on_free_port server --replicaof 127.0.0.1 "$master"
replica=$port
until_true "the replica follows" says 'master_link_status:up' ask "$replica" operator info replication

# As delivered, with the address, the password and a shorter patience.
sentinel() {
  mkdir -p "$temp/$1"
  sed -e "s/^sentinel monitor sakshi .*/sentinel monitor sakshi 127.0.0.1 $master 2/" -e 's/replace-me/of-sentinel/' \
    -e 's/^\(sentinel down-after-milliseconds sakshi\) .*/\1 500/' "$files/sentinel.conf" >"$temp/$1/sentinel.conf"
  redis-server "$temp/$1/sentinel.conf" --sentinel --port "$1" --dir "$temp/$1" --aclfile "$temp/sentinel.acl" >"$temp/$1.log" 2>&1 &
  pids+=($!)
}
on_free_port sentinel; s1=$port
on_free_port sentinel; s2=$port
on_free_port sentinel; s3=$port
for port in "$s1" "$s2" "$s3"; do
  until_true "sentinels know each other" says $'num-other-sentinels\n2' ask "$port" operator sentinel master sakshi
  until_true "sentinels know the replica" says $'num-slaves\n1\n' ask "$port" operator sentinel master sakshi
done
says NOPERM ask "$s1" sakshi sentinel failover sakshi || fail "the service's user may start a failover"
says NOPERM ask "$s1" sentinel sentinel set sakshi quorum 1 || fail "a sentinel may change another one"
says NOAUTH redis-cli -p "$s1" sentinel master sakshi || fail "who has no name may ask a sentinel"
says NOPERM ask "$master" sentinel get x || fail "a sentinel may read the store"
says NOPERM ask "$master" replica set x y || fail "a replica may write to its master"

# A node with the URL that sentinel.conf shows.
read -r public internal <<<"$(free_ports 2)"
url() { printf 'redis://sakshi:of-sakshi@127.0.0.1:%s' "$1"; }
env SAKSHI__SERVER__PUBLIC_ADDR="127.0.0.1:$public" SAKSHI__SERVER__INTERNAL_ADDR="127.0.0.1:$internal" SAKSHI__STORE__PATH="$temp/node" \
  SAKSHI__STORE__ENCRYPTION_KEY="$(openssl rand -base64 32)" SAKSHI__STORE__KIND=redis \
  SAKSHI__STORE__REDIS_TOPOLOGY=sentinel SAKSHI__STORE__REDIS_SENTINEL_SERVICE=sakshi \
  SAKSHI__STORE__REDIS_URL="$(url "$s1"),$(url "$s2"),$(url "$s3")" "$binary" serve >"$temp/node.log" 2>&1 &
pids+=($!)
ready() { "$binary" healthcheck --url "http://127.0.0.1:$internal"; }
until_true "the node is ready" ready
kill -9 "$first"; wait "$first" 2>/dev/null || true
new_master() { [ "$(ask "$1" sakshi sentinel get-master-addr-by-name sakshi | tail -1)" = "$replica" ]; }
for port in "$s1" "$s2" "$s3"; do until_true "sentinel $port names the replica" new_master "$port"; done
until_true "the node is ready at the new master" ready
says OK ask "$replica" sakshi set kept yes || fail "the new master takes no writes"
for port in "$replica" "$s2"; do
  refused=$(ask "$port" operator acl log)
  [ -z "$refused" ] || fail "somebody lacks a right: $refused"
done
