#!/bin/sh
# Installs the independent issuers under target/contract/.
exec "$(dirname "$0")/../setup.sh" tests/contract
