#!/bin/bash
# Makes an empty directory for Redis from a backup: the snapshot, and the append-only file that redis.conf needs. With the snapshot alone
# a Redis with `appendonly yes` starts empty.
#
#   restore.sh BACKUP.rdb DIRECTORY
#
# Stop all nodes and Redis first, move Redis' old directory away, and give the new one to Redis' user afterwards.
set -euo pipefail
backup=$(realpath "$1") directory=$2
umask 077
mkdir -p "$directory"
cd "$directory"
[ -z "$(ls -A)" ] || { echo "$directory is not empty" >&2; exit 1; }
[ ! -f "$backup.sha256" ] || (cd "$(dirname "$backup")" && sha256sum --check --quiet "$(basename "$backup").sha256")
redis-check-rdb "$backup" >/dev/null
cp "$backup" dump.rdb
socket=$(mktemp -u "${TMPDIR:-/tmp}/sakshi-restore-XXXXXX")
redis-server --port 0 --unixsocket "$socket" --unixsocketperm 700 --dir "$PWD" --appendonly no --save '' --daemonize no >restore.log 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -f "$socket"' EXIT
ask() { redis-cli -s "$socket" "$@"; }
until [ "$(ask ping 2>/dev/null)" = PONG ]; do
  kill -0 "$server" 2>/dev/null || { tail -3 restore.log >&2; exit 1; }
  sleep 0.1
done
keys=$(ask dbsize)
ask config set appendonly yes >/dev/null
until ask info persistence | grep -q '^aof_rewrite_in_progress:0' && ask info persistence | grep -q '^aof_rewrite_scheduled:0'; do sleep 0.1; done
ask info persistence | grep -q '^aof_last_bgrewrite_status:ok' || { echo "the append-only file could not be written" >&2; exit 1; }
ask shutdown nosave >/dev/null 2>&1 || true
wait "$server" || true
rm -f dump.rdb restore.log
echo "$directory: $keys keys"
