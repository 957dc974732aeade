#!/usr/bin/env bash
# Prints a kubeconfig of an account on the hub, for a component that runs in another cluster: hack/hub-kubeconfig.sh ACCOUNT [NAMESPACE]
#
# It uses kubectl and its current context, which is that of the hub, with the rights of an administrator. The token is that of a
# Secret, which is made if it does not exist; it is valid until the Secret is deleted. The Secret is of the hub: its controller
# manager fills it in (controller serviceaccount-token).
#
# SECRET       the name of the Secret (default: ACCOUNT-token)
# SERVER       the address of the hub as the component reaches it (default: that of the context)
# KUBECTL      kubectl, with flags such as --context (default: kubectl)
set -euo pipefail

account=${1:?give an account: entourage-controllers, entourage-webhook or entourage-proxy}
namespace=${2:-karmada-system}
secret=${SECRET:-$account-token}
read -ra kubectl <<<"${KUBECTL:-kubectl}"

on_hub() {
    "${kubectl[@]}" "$@"
}

config() { # a template of the context in use
    on_hub config view --minify --raw --flatten -o "jsonpath=$1"
}

on_hub -n "$namespace" get serviceaccount "$account" >/dev/null
on_hub apply -f - >/dev/null <<EOF
apiVersion: v1
kind: Secret
metadata:
  name: $secret
  namespace: $namespace
  annotations:
    kubernetes.io/service-account.name: $account
type: kubernetes.io/service-account-token
EOF

token=""
for _ in $(seq 30); do
    token=$(on_hub -n "$namespace" get secret "$secret" -o 'jsonpath={.data.token}')
    [[ -n "$token" ]] && break
    sleep 1
done
if [[ -z "$token" ]]; then
    echo "the Secret $namespace/$secret has no token after 30 s: does the hub's controller manager run serviceaccount-token?" >&2
    exit 1
fi

server=${SERVER:-$(config '{.clusters[0].cluster.server}')}
authority=$(config '{.clusters[0].cluster.certificate-authority-data}')
if [[ -z "$authority" ]]; then
    authority=$(on_hub -n "$namespace" get secret "$secret" -o 'jsonpath={.data.ca\.crt}')
fi

cat <<EOF
apiVersion: v1
kind: Config
clusters:
  - name: hub
    cluster:
      server: $server
      certificate-authority-data: $authority
users:
  - name: $account
    user:
      token: $(base64 -d <<<"$token")
contexts:
  - name: hub
    context:
      cluster: hub
      user: $account
current-context: hub
EOF
