#!/bin/bash
# Whether the checks can fail: plants one fault at a time in a copy of deploy/ and expects the check that is named to notice.
# Not part of `make test`; run it after changing a check.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
missed=0

plant() {
  local check=$1 file=$2 change=$3 said
  rm -rf "$temp/deploy" && cp -r "$here/../../deploy" "$temp/deploy"
  sed -i -E "$change" "$temp/deploy/$file"
  if cmp -s "$temp/deploy/$file" "$here/../../deploy/$file"; then
    echo "NOTHING PLANTED  $check: $change"; missed=1; return
  fi
  said=$(DEPLOY=$temp/deploy "$here/check.sh" "$check" 2>&1)
  case $? in
    0) echo "NOT NOTICED      $check: $change ($said)"; missed=1 ;;
    *) echo "noticed          $check: $change"; printf '%s\n' "$said" | sed -n '2,$p' | tail -1 | sed 's/^ */                 -> /' ;;
  esac
}

plant proxy haproxy/haproxy.cfg 's/timeout connect 3s/timeout connekt 3s/'
plant proxy haproxy/haproxy.cfg '/set-header X-Forwarded-For/s/set-header X-Forwarded-For %\[src\]/add-header X-Forwarded-For %[src]/'
plant proxy haproxy/haproxy.cfg '/disable-l7-retry/d'
plant proxy haproxy/haproxy.cfg 's#path_beg /api/ /v/#path_beg /api/ /e/ /v/#'
plant proxy haproxy/haproxy.cfg 's/is_post once_key once_path/is_post once_path/'
plant proxy haproxy/haproxy.cfg 's/^(    retry-on) .*/\1 none/'
plant proxy haproxy/haproxy.cfg 's#uri /readyz#uri /api/ping#; s/http-check expect status 200/http-check expect rstatus .*/'
plant proxy haproxy/haproxy.cfg 's/%ci %HM %ST/%ci %HM %HP %ST/'
plant proxy haproxy/haproxy.cfg '/http-error status 503/d'
plant proxy haproxy/haproxy.cfg '/use_backend unready/d'
plant proxy haproxy/haproxy.cfg 's/retries 2/retries 0/'
plant redis redis/redis.conf 's/^maxmemory-policy noeviction/maxmemory-policy allkeys-lru/'
plant redis redis/redis.conf 's/^appendonly yes/appendonly no/'
plant redis redis/redis.conf 's/^hz 10/herz 10/'
plant redis redis/users.acl 's/ -@dangerous -@admin//'
plant redis redis/users.acl 's/\+@write //'
plant redis redis/users.acl 's/user default off/user default on nopass +@all/'
plant sentinel redis/sentinel.conf 's/^sentinel monitor sakshi/sentinel monitor somebody/'
plant sentinel redis/users.replicas.acl 's/ \+psync//'
plant sentinel redis/users.replicas.acl 's/ \+slaveof//'
plant sentinel redis/users.replicas.acl 's/&__sentinel__:hello/\&other/'
plant sentinel redis/sentinel.acl 's/ \+sentinel\|get-master-addr-by-name//'
plant sentinel redis/sentinel.acl 's/ \+sentinel\|is-master-down-by-addr//'
plant sentinel redis/sentinel.acl 's/user default off/user default on nopass ~* \&* +@all/'
plant sentinel redis/sentinel.acl 's/(user sakshi .*)/\1 +@all/'
plant sentinel redis/sentinel.conf '/^sentinel sentinel-pass/d'
plant sentinel redis/sentinel.conf '/^sentinel auth-user/d'
plant kubernetes kubernetes/base/deployment.yaml 's/terminationGracePeriodSeconds: 45/terminationGracePeriodSeconds: 30/'
plant kubernetes kubernetes/base/deployment.yaml 's#path: /readyz, port: internal#path: /readyz, port: public#'
plant kubernetes kubernetes/base/deployment.yaml 's/runAsUser: 65532/runAsUser: 0/'
plant kubernetes kubernetes/base/deployment.yaml 's/kind: Deployment/kind Deployment/'
plant kubernetes kubernetes/base/disruption.yaml 's#app.kubernetes.io/name: sakshi#app.kubernetes.io/name: other#'
plant kubernetes kubernetes/production/kustomization.yaml 's/SAKSHI__PROFILE=production/SAKSHI__PROFILE=stage/'
plant kubernetes kubernetes/stage/kustomization.yaml 's/SAKSHI__AUTHORITY__ISSUER=/SAKSHI__AUTHORITY__ISUER=/'
plant kubernetes kubernetes/stage/kustomization.yaml 's/count: 2/count: 1/'
plant kubernetes kubernetes/components/ingress/ingress.yaml 's/host: verify/host: other/'
plant kubernetes kubernetes/components/ingress/ingress.yaml 's/pathType: Prefix/pathKind: Prefix/'
plant kubernetes kubernetes/components/connectors/kustomization.yaml 's/targetPort, value: connectors/targetPort, value: internal/'
plant kubernetes kubernetes/components/connectors/kustomization.yaml '/op: replace, path: .spec.ingress/s/value: connectors/value: internal/'
plant kubernetes kubernetes/base/network.yaml '/ipBlock: \{cidr: 10.0.80.0/d'
plant kubernetes kubernetes/base/network.yaml 's#sakshi/role: redis\}#sakshi/role: database}#'
plant kubernetes kubernetes/base/network.yaml 's/, \{port: 26379\}//'
plant kubernetes kubernetes/base/network.yaml 's/port: 8443/port: 8444/'
plant kubernetes kubernetes/base/network.yaml '/169.254.20.10/d'
plant kubernetes kubernetes/base/network.yaml '/- 10.0.0.0\/8/d'
plant kubernetes kubernetes/base/network.yaml 's/hosts: doclocker/hosts: other/'
plant kubernetes kubernetes/components/tracing/network.yaml 's/4318/4317/'
plant kubernetes kubernetes/components/issuer-url/network.yaml 's/ports: .*/ports: [{port: 80}]/'
plant kubernetes kubernetes/components/issuer-url/kustomization.yaml 's#JWKS_PATH=.*#JWKS_PATH=/etc/sakshi/authority/jwks.json#'
plant kubernetes kubernetes/base/deployment.yaml 's#mountPath: /etc/sakshi/authority, #mountPath: /etc/sakshi/authority/jwks.json, subPath: jwks.json, #'
plant kubernetes kubernetes/base/services.yaml '0,/publishNotReadyAddresses/{/publishNotReadyAddresses/d}'
plant kubernetes kubernetes/components/ingress/ingress.yaml 's/default-backend: sakshi-unready/default-backend: sakshi-public/'
plant kubernetes kubernetes/components/monitoring/podmonitor.yaml 's/port: internal/port: public/'
plant kubernetes kubernetes/single/kustomization.yaml 's#STORE__PATH=/var/lib/sakshi#STORE__PATH=/tmp/sakshi#'
plant kubernetes kubernetes/secrets.example.yaml 's/SAKSHI__ADMIN__TOKEN/SAKSHI__ADMIN__TOKENS/'
plant rollout kubernetes/base/deployment.yaml 's/args: \[serve\]/args: [check-config]/'
plant rollout kubernetes/secrets.example.yaml '/SAKSHI__ADMIN__CONNECTOR_TOKEN/d'
plant systemd systemd/sakshi.service 's/^TimeoutStopSec=45/TimeoutStopSec=20/'
plant systemd systemd/sakshi.service 's/^Restart=on-failure/Restart=sometimes/'
plant systemd systemd/sakshi.service '/^(CapabilityBoundingSet|SystemCallFilter|DynamicUser|ProtectSystem)=/d'
plant systemd systemd/sakshi@.service.d/instance.conf 's/^Environment=SAKSHI__STORE__PATH/Enviroment=SAKSHI__STORE__PATH/'
plant systemd systemd/sakshi.service 's#JWKS_PATH=%S/sakshi-issuer#JWKS_PATH=%d#'
plant systemd systemd/sakshi@.service.d/instance.conf 's/^(StateDirectory=sakshi-%i) .*/\1/'
plant systemd systemd/sakshi.service 's#sakshi/deploy/runbook#sakshi/runbook#'
plant systemd systemd/sakshi-backup.service '/^User=/d'
plant systemd systemd/sakshi-backup.service 's#%S/sakshi-backups#/var/backups#'
plant systemd systemd/sakshi-backup.service '/^(PrivateNetwork|PrivateUsers|SystemCallFilter)=/d'
plant systemd systemd/sakshi-backup.timer 's/^OnCalendar=.*/OnCalendar=nightly/'
plant systemd runbook.md 's/-p User=sakshi/-p User=root/'
plant systemd runbook.md 's#STORE__PATH=/var/lib/sakshi #STORE__PATH=/var/lib/sakshi/store #'
plant systemd release/dist.sh 's/ deploy docs/ docs/'
plant compose compose/compose.yaml 's/^  cap_drop: \[ALL\]/  privileged: true/'
plant compose compose/compose.yaml 's/stop_grace_period: 45s/stop_grace_period: 10s/'
plant compose compose/compose.yaml 's#\.\./redis/redis\.conf:#../redis/redis.cfg:#'
plant compose compose/compose.yaml 's/^  node3:/ node3:/'
plant compose compose/compose.yaml 's#\./secrets/issuer:#./secrets/issuer/jwks.json:#'
plant compose compose/compose.yaml 's/127.0.0.1:8404:8404/8404:8404/'
plant compose compose/compose.yaml 's/ipv4@127.0.0.1:8405/ipv4@0.0.0.0:8405/'
plant compose compose/README.md 's/; chown 99 tls.pem//'
plant compose compose/README.md 's/^install -d -m 700 issuer.*//'
plant container container/Dockerfile 's/^USER .*/USER root/'
plant container container/Dockerfile 's/^WORKDIR .*/WORKDIR source/'
plant container container/Dockerfile.dockerignore '/^!actors/d'
plant container container/Dockerfile 's/PUBLIC_ADDR=0.0.0.0/PUBLIC_ADDR=127.0.0.1/'
plant compose compose/sandbox.yaml 's/^    ports: .*/    ports: ["8080:8080"]/'
plant image container/Dockerfile 's#^CMD .*#CMD ["healthcheck"]#'
plant image container/Dockerfile 's#/out/state /var/lib/sakshi#/out/state /var/lib/other#'
plant engine container/Dockerfile 's#--chown=65532:65532 /out/state#/out/state#'
plant engine compose/sandbox.yaml 's/PUBLIC_ADDR: .*/PUBLIC_ADDR: "0.0.0.0:8080"/'
plant engine compose/compose.yaml '/ no-new-privileges:true/d; s/"no-new-privileges:true"//'
plant engine compose/compose.yaml '/restart: unless-stopped/d'
plant engine compose/compose.yaml 's/stop_signal: SIGUSR1/stop_signal: SIGABRT/'
plant engine compose/README.md 's/ --no-deps "\$node"/ --no-deps node1 node2 node3/'
plant engine redis/users.acl 's/user default off .*/user default off/'
plant engine runbook.md 's#tcp/127.0.0.1/8405#tcp/127.0.0.1/8406#'
plant metrics prometheus/alerts.yaml 's/sakshi_actor_restarts_total/sakshi_actors_restarted_total/'
plant metrics grafana/sakshi.json 's/"panels": \[/"panels": [,/'
plant metrics runbook.md 's/`SakshiStoreRefuses`//'
plant alerts prometheus/alerts.yaml 's/histogram_quantile\(0.99, /histogram_quantile(/'
plant alerts prometheus/alerts.yaml 's/offset 15m/offset 1s/'
exit $missed
