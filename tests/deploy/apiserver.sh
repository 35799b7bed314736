#!/bin/bash
# Gives the built manifests to a real API server: its schemas, its rules between fields, its defaults, and Pod Security. It stores
# nothing but namespaces. What runs pods (controllers, scheduler, kubelet) is not here, and kinds of operators are left out.
#
#   apiserver.sh BUILT_FOLDER SECRETS.yaml PYTHON
#
# etcd and kube-apiserver come from $KUBEBUILDER_ASSETS (as `setup-envtest use` prints it) or from PATH.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
built=$1 secrets=$2 python=$3
PATH=${KUBEBUILDER_ASSETS:-}:$PATH
for program in etcd kube-apiserver kubectl; do
  command -v "$program" >/dev/null || { echo "$program is not here: setup-envtest of controller-runtime installs etcd and kube-apiserver"; exit 3; }
done
temp=$(mktemp -d)
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$temp"' EXIT
trap 'exit 1' INT TERM
cd "$temp" || exit 1
read -r client peer api < <(PYTHONPATH=$here "$python" -c 'from ports import free_ports; print(*free_ports(3))')

openssl genrsa -out sa.key 2048 2>/dev/null
token=$(openssl rand -hex 16)
echo "$token,admin,1,system:masters" >tokens
etcd --data-dir etcd --unsafe-no-fsync --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
  --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer" \
  >etcd.log 2>&1 &
pids+=($!)
kube-apiserver --etcd-servers "http://127.0.0.1:$client" --bind-address 127.0.0.1 --secure-port "$api" --cert-dir certs --token-auth-file tokens \
  --authorization-mode RBAC --service-account-issuer https://cluster.test --service-account-key-file sa.key \
  --service-account-signing-key-file sa.key --service-cluster-ip-range 10.43.0.0/16 >api.log 2>&1 &
pids+=($!)
cluster() { kubectl --kubeconfig=/dev/null --server="https://127.0.0.1:$api" --insecure-skip-tls-verify --token="$token" --cache-dir="$temp/cache" "$@"; }
for _ in $(seq 300); do
  [ "$(cluster get --raw /readyz 2>said)" = ok ] && break
  { kill -0 "${pids[0]}" && kill -0 "${pids[1]}"; } 2>/dev/null || { tail -n 3 etcd.log api.log; exit 1; }
  sleep 0.2
done
cluster version 2>/dev/null | sed -n 's/^Server Version: /API server /p'

# The pods of every workload, as its controller would make them, without what only other controllers give them.
pods() {
  "$python" - "$1" <<'END'
import sys, yaml
for item in yaml.safe_load_all(open(sys.argv[1])):
    spec = item and (item["spec"]["jobTemplate"]["spec"] if item["kind"] == "CronJob" else item.get("spec", {}))
    if spec and "template" in spec:
        pod = spec["template"]["spec"]
        pod["volumes"] = pod.get("volumes", []) + [{"name": one["metadata"]["name"], "emptyDir": {}} for one in spec.get("volumeClaimTemplates", [])]
        pod.pop("priorityClassName", None)
        name = item["metadata"]
        print(yaml.dump({"apiVersion": "v1", "kind": "Pod", "metadata": {**spec["template"]["metadata"], "name": name["name"], "namespace": name["namespace"]}, "spec": pod}))
        print("---")
END
}

# Those of Kubernetes itself.
own() {
  "$python" - "$1" <<'END'
import sys, yaml
custom = ("gateway.networking.k8s.io", "monitoring.coreos.com", "external-secrets.io")
print(yaml.dump_all(item for item in yaml.safe_load_all(open(sys.argv[1])) if item and not item["apiVersion"].startswith(custom)))
END
}

for file in "$built"/*+all.yaml "$built/redis.yaml"; do
  own "$file" >objects.yaml
  "$python" -c 'import sys, yaml; print(yaml.dump_all(i for i in yaml.safe_load_all(open("objects.yaml")) if i["kind"] in ("Namespace", "ServiceAccount")))' >spaces.yaml
  cluster apply --server-side -f spaces.yaml >/dev/null 2>said || { cat said; exit 1; }
  space=$(sed -n 's/^  namespace: //p' objects.yaml | head -1)
  cluster -n "$space" get serviceaccount default >/dev/null 2>&1 || cluster -n "$space" create serviceaccount default >/dev/null || exit 1
  pods "$file" >pods.yaml
  # A warning is an error: the server warns of what it will refuse one day, and of pods that Pod Security would refuse.
  for objects in objects.yaml pods.yaml "$secrets"; do
    cluster -n "$space" apply --server-side --dry-run=server --validate=strict -f "$objects" >/dev/null 2>said && [ ! -s said ] \
      || { echo "$(basename "$file"):"; cat said; exit 1; }
  done
done
