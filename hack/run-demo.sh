#!/usr/bin/env bash
# Starts a node in the foreground and, beside it, the demo Deployment. Extra arguments go to
# `nodeactor run`; DATA_DIR chooses another data directory.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${DATA_DIR:-/var/lib/nodeactor}
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "run-demo.sh: a node needs root, and sudo is not installed" >&2; exit 1; }
  exec sudo DATA_DIR="$dir" "$0" "$@"
fi
kubectl=(bin/nodeactor kubectl --data-dir "$dir")

# What a pod answers on its port 8080, without any tool but bash.
answer() {
  exec 3<>"/dev/tcp/$1/8080" && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && tr -d '\r' <&3 | tail -1
}

demo() {
  until "${kubectl[@]}" get --raw /readyz >/dev/null 2>&1; do sleep 0.2; done
  bin/nodeactor image import --data-dir "$dir" bin/demo-image.tar
  "${kubectl[@]}" apply -f examples/demo.yaml
  "${kubectl[@]}" rollout status deployment/demo --timeout=120s
  echo
  local ip
  for ip in $("${kubectl[@]}" get pods -l app=demo -o 'jsonpath={.items[*].status.podIP}'); do
    echo "http://$ip:8080/ answers: $(answer "$ip")"
  done
  cat <<TEXT

The node runs and both replicas answer. From another terminal:

  $PWD/bin/nodeactor status --data-dir $dir
  $PWD/bin/nodeactor kubectl --data-dir $dir get pods -o wide
  $PWD/bin/nodeactor kubectl --data-dir $dir logs -f deployment/demo
  $PWD/bin/nodeactor kubectl --data-dir $dir exec -it deployment/demo -- /demo env
  export KUBECONFIG=$dir/admin.kubeconfig        # for your own kubectl or Helm

Ctrl-C stops the node.
TEXT
}

demo &
helper=$!
trap 'kill "$helper" 2>/dev/null || true' EXIT
bin/nodeactor run --data-dir "$dir" "$@"
