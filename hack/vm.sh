#!/usr/bin/env bash
# Builds the tests that need a pure cgroup v2 system and runs them in a virtual machine.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for p in kubelet/runtime kubelet/network kubelet; do
  go test -p 2 -c -o "$out/$(tr / - <<<"$p").test" "./$p"
done
# Of the pods' tests those that cgroups matter to: the machine is emulated, and slow.
test/vm/run.sh "$out"/kubelet-runtime.test "$out"/kubelet-network.test \
  "$out"/kubelet.test:'OOM|PodRuns|OneShot|Grace|SecurityContexts|Adoption|NodeRegisters'
