#!/bin/sh
# Prints the rules of deploy/prometheus as PrometheusRules: each file is the spec of one.
set -eu
cd "$(dirname "$0")/../../../prometheus"
for file in objectives alerts; do
  printf '%s\n' --- 'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' \
    "metadata: {name: sakshi-$file, labels: {app.kubernetes.io/name: sakshi}}" 'spec:'
  sed 's/^\(.\)/  \1/' "$file.yaml"
done
