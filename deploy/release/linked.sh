#!/bin/sh
# Prints the crates that a binary links, each as "name vVERSION|licence|repository": neither what only compiles them nor what only
# tests need. Takes arguments of cargo tree.
exec cargo tree --locked --target "$(rustc -vV | sed -n 's/^host: //p')" --edges no-proc-macro,normal --format '{p}|{l}|{r}' "$@"
