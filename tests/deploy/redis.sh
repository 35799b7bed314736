#!/bin/bash
# Starts Redis with the files of deploy/redis in a temporary directory, on a socket of its own, and asks it what is in effect and
# what the service's user may do.
set -euo pipefail
files=$1
temp=$(mktemp -d)
pids=()
end() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$temp"; }
trap end EXIT
fail() { echo "$*"; exit 1; }

# The users as they are delivered, but with a password that is known here, and somebody who may ask for the settings.
secret=$(printf %s known-here | sha256sum | cut -d' ' -f1)
sed "s/#0\{64\}/#$secret/" "$files/users.acl" >"$temp/users.acl"
grep -q "$secret" "$temp/users.acl" || fail "users.acl has no place for a password"
echo 'user tester on nopass ~* &* +@all' >>"$temp/users.acl"

redis-server "$files/redis.conf" --port 0 --unixsocket "$temp/socket" --dir "$temp" --daemonize no --aclfile "$temp/users.acl" \
  >"$temp/log" 2>&1 &
pids+=($!)
as() { redis-cli -s "$temp/socket" --user "$1" --pass "${2:-any}" --no-auth-warning "${@:3}" 2>&1; }
tries=0
until [ "$(as probe any ping)" = PONG ]; do
  kill -0 "${pids[0]}" 2>/dev/null || fail "redis does not start: $(tail -3 "$temp/log")"
  tries=$((tries + 1)); [ $tries -lt 200 ] || fail "redis does not answer the probe: $(as probe any ping)"
  sleep 0.05
done

# True if an answer holds a word. Not a pipe: grep ends at the first match, and a writer then fails.
says() { [[ $1 =~ $2 ]]; }

set_to() {
  local found
  found=$(as tester any config get "$1" | tail -1)
  [ "$found" = "$2" ] || fail "$1 is '$found' and should be '$2'"
}
set_to maxmemory-policy noeviction
set_to appendonly yes
set_to appendfsync always
set_to no-appendfsync-on-rewrite no
set_to stop-writes-on-bgsave-error no
set_to hash-max-listpack-value 2048
set_to client-output-buffer-limit "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"

# The service's user does its work, also within scripts, and no harm.
script='redis.call("HSET", KEYS[1], "state", "pending") redis.call("XADD", KEYS[2], "*", "id", "1")
redis.call("XGROUP", "CREATE", KEYS[2], "nodes", "0") redis.call("XREADGROUP", "GROUP", "nodes", "one", "STREAMS", KEYS[2], ">")
local waiting = redis.call("XPENDING", KEYS[2], "nodes", "-", "+", 1) redis.call("XCLAIM", KEYS[2], "nodes", "two", 0, waiting[1][1])
redis.call("XACK", KEYS[2], "nodes", waiting[1][1]) redis.call("RPUSH", KEYS[3], "a") redis.call("ZADD", KEYS[4], 1, "a")
redis.call("PEXPIREAT", KEYS[1], "9999999999999") redis.call("PUBLISH", "changed", "1") return redis.call("TIME")[1]'
sha=$(as sakshi known-here script load "$script")
ran=$(as sakshi known-here evalsha "$sha" 4 '{p00}:t' '{p00}:o' '{p00}:l' '{p00}:z')
says "$ran" '^[0-9]{10}$' || fail "a script of the service is refused: $ran"
[ "$(as sakshi known-here wait 0 10)" = 0 ] || fail "the service may not wait for replicas"
set -f
for harm in flushall 'config set maxmemory 1' shutdown 'keys x*' 'acl list' 'debug sleep 0' 'script flush' 'client kill id 1' save; do
  # shellcheck disable=SC2086
  says "$(as tester any acl dryrun sakshi $harm)" 'no permissions' || fail "the service's user may: $harm"
done
says "$(redis-cli -s "$temp/socket" ping 2>&1)" NOAUTH || fail "who has no name is let in"
says "$(as sakshi wrong ping)" 'WRONGPASS|NOAUTH' || fail "a wrong password is let in"
says "$(as tester any acl dryrun probe get x)" 'no permissions' || fail "the probe may read"

# Every acknowledged write is in the file after a stop: single commands, and steps of several.
as sakshi known-here set kept yes >/dev/null
step='redis.call("INCR", KEYS[1]) redis.call("INCR", KEYS[2]) return redis.call("GET", KEYS[1])'
for signal in TERM KILL; do
  steps=$(as sakshi known-here eval "$step" 2 '{s}one' '{s}two')
  kill -s "$signal" "${pids[0]}"; wait "${pids[0]}" 2>/dev/null || true
  redis-server "$files/redis.conf" --port 0 --unixsocket "$temp/socket" --dir "$temp" --daemonize no --aclfile "$temp/users.acl" \
    >>"$temp/log" 2>&1 &
  pids=($!)
  tries=0
  until [ "$(as sakshi known-here get kept)" = yes ]; do
    tries=$((tries + 1)); [ $tries -lt 200 ] || fail "a write that was answered is gone after SIG$signal"
    sleep 0.05
  done
  [ "$(as sakshi known-here get '{s}two')" = "$steps" ] || fail "a step that was answered is gone after SIG$signal"
done

# A backup of what runs, two of three kept, and a Redis that starts from it with the settings of redis.conf.
mkdir "$temp/backups"
for n in 1 2 3; do
  as sakshi known-here set "kept$n" yes >/dev/null
  "$files/backup.sh" "$temp/backups" 2 -s "$temp/socket" --user tester --pass any >"$temp/said" 2>&1 || fail "backup: $(cat "$temp/said")"
done
[ "$(ls "$temp/backups" | wc -l)" = 4 ] || fail "not two backups with their checksums: $(ls "$temp/backups")"
newest=$temp/backups/$(ls "$temp/backups" | grep "rdb$" | tail -1)
later=$temp/backups/sakshi-redis-20990101T000000.000Z.rdb
touch "$later"
"$files/backup.sh" "$temp/backups" 1 -s "$temp/socket" --user tester --pass any >"$temp/said" 2>&1 || fail "backup: $(cat "$temp/said")"
says "$(cat "$temp/said")" 'No older backup was removed' || fail "a backup of a wrong clock goes unnoticed: $(cat "$temp/said")"
rm "$later"
[ -f "$newest" ] && [ "$(ls "$temp/backups" | wc -l)" = 6 ] || fail "a backup was removed because of a wrong clock: $(ls "$temp/backups")"
as sakshi known-here set later yes >/dev/null
"$files/restore.sh" "$newest" "$temp/restored" >"$temp/said" 2>&1 || fail "restore: $(cat "$temp/said")"
"$files/restore.sh" "$newest" "$temp/restored" >"$temp/said" 2>&1 && fail "a directory that is not empty is overwritten"
redis-server "$files/redis.conf" --port 0 --unixsocket "$temp/restored.socket" --dir "$temp/restored" --daemonize no >"$temp/restored.log" 2>&1 &
pids+=($!)
tries=0
until [ "$(redis-cli -s "$temp/restored.socket" get kept3 2>/dev/null)" = yes ]; do
  tries=$((tries + 1)); [ $tries -lt 200 ] || fail "what the backup had is not in the restored one: $(tail -3 "$temp/restored.log")"
  sleep 0.05
done
[ -z "$(redis-cli -s "$temp/restored.socket" get later)" ] || fail "the restored one has what came after the backup"

# The commands of the runbook after an erasure, one at once after the other: a rewrite that takes its time refuses no snapshot.
restored() { redis-cli -s "$temp/restored.socket" "$@"; }
mapfile -t commands < <(grep -oE '`BG[A-Z ]+`' "$files/../runbook.md" | tr -d '`')
[ ${#commands[@]} = 2 ] || fail "the runbook has other commands after an erasure: ${commands[*]}"
restored config set rdb-key-save-delay 100000 >/dev/null
for command in "${commands[@]}"; do
  # shellcheck disable=SC2086
  said=$(restored $command)
  says "$said" 'started|scheduled' || fail "$command is refused: $said"
done
restored config set rdb-key-save-delay 0 >/dev/null

printf x | dd of="$newest" bs=1 seek=20 conv=notrunc 2>/dev/null
! "$files/restore.sh" "$newest" "$temp/damaged" >"$temp/said" 2>&1 || fail "a damaged backup is restored"
