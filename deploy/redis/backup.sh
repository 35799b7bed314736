#!/bin/bash
# Backup of a Redis that serves: a snapshot of one moment, fetched as a replica would fetch it, checked, with its SHA-256.
#
#   backup.sh DIRECTORY KEEP [redis-cli arguments]
#   REDISCLI_AUTH=<password> backup.sh /var/backups/sakshi 14 -h 10.0.0.5 --user operator
#
# Keeps the newest KEEP backups of the directory. The user needs the rights of `operator`. Of a cluster, back up each master.
# Redis writes the snapshot in a child process; plan memory for the pages that change meanwhile, as for any snapshot.
set -euo pipefail
directory=$1 keep=$2
shift 2
[ "$keep" -ge 1 ]
umask 077
name=sakshi-redis-$(date -u +%Y%m%dT%H%M%S.%3NZ).rdb
cd "$directory"
trap 'rm -f "$name.part"' EXIT
redis-cli --no-auth-warning "$@" --rdb "$name.part" >/dev/null
redis-check-rdb "$name.part" >/dev/null
mv "$name.part" "$name"
sha256sum "$name" >"$name.sha256"
sync "$name" "$name.sha256"
echo "$directory/$name: $(stat -c %s "$name") bytes"
# By name, the oldest first; a backup goes with its checksum.
mapfile -t found < <(printf '%s\n' sakshi-redis-*.rdb | sort)
if [ "${found[-1]}" != "$name" ]; then
  echo "$directory/${found[-1]}: has a later time than this backup, so the clock is or was wrong. No older backup was removed; remove or rename that one."
  exit 0
fi
for old in "${found[@]:0:$((${#found[@]} > keep ? ${#found[@]} - keep : 0))}"; do
  rm -f "$old" "$old.sha256"
  echo "$directory/$old: removed"
done
