#!/bin/sh
# Compiles crates with the counters of libFuzzer; what cargo runs at build time goes without.
for argument in "$@"; do
  case "$argument" in build_script_*) exec "$@" ;; esac
done
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Copt-level=1 -Cdebug-assertions=on
