#!/bin/sh
# Prints the rules of deploy/prometheus as PrometheusRules, for the nodes of one namespace: each file is the spec of one.
#
#   rules.sh NAMESPACE
#
# Without the namespace they would add up the nodes of every installation, and a stage at work would hide a production without nodes.
set -eu
case ${1-} in
  '' | *[!a-z0-9-]*)
    echo "usage: rules.sh NAMESPACE, such as sakshi-production" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/../../../prometheus"
for file in objectives alerts; do
  printf '%s\n' --- 'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' \
    "metadata: {name: sakshi-$file, labels: {app.kubernetes.io/name: sakshi}}" 'spec:'
  sed -e "s/job=\"sakshi\"/&, namespace=\"$1\"/g" -e 's/^\(.\)/  \1/' "$file.yaml"
done
