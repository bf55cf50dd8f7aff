#!/usr/bin/env bash
# Measures nodeactor beside the upstream control plane and prints one Markdown table; raw JSON lines are added to BENCH_OUT.
#
#   BENCH_KIT   folder of the benchmark kit (upstream/run.sh, kbench/)            (required)
#   PEER_BIN    folder of the upstream programs; built there when they are missing  .peerbin in the temporary folder
#   BENCH_OUT   file of the raw lines                                              bench.jsonl in the temporary folder
#   further arguments go to the program, see `run.sh --help`: --rounds 3, --only create_seq,deploy, --skip-peer, --large, --blast 80s,
#   --pprof DIR, and after -- flags of the load program, such as -- --configmaps 4000
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
kit=$(cd "${BENCH_KIT:?set BENCH_KIT to the folder of the benchmark kit}" && pwd)
tmp=${TMPDIR:-/tmp}
peer=${PEER_BIN:-$tmp/.peerbin}
out=${BENCH_OUT:-$tmp/bench.jsonl}
work=$(mktemp -d "$tmp/nabench-build-XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# The kit is a module of its own: it is built from a copy and never touched.
cp -r "$kit/kbench" "$work/kbench" && chmod -R u+w "$work/kbench"
(cd "$work/kbench" && GOFLAGS=-mod=mod go build -p 2 -o "$work/load" .)
(cd "$root" && go build -p 2 -o "$work/bench" ./test/bench)

case " $* " in
*" --skip-peer "* | *" -skip-peer "*) ;;
*)
  missing=()
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do [ -x "$peer/$name" ] || missing+=("$name"); done
  if [ ${#missing[@]} -gt 0 ]; then bash "$kit/upstream/build.sh" "$peer" "${missing[@]}" >&2; fi
  ;;
esac
"$work/bench" --kit "$kit" --kbench "$work/load" --peer-bin "$peer" --bin "$root/bin" --out "$out" "$@" &
bench=$!
# A signal to this script has to reach the program, which ends what it started and removes what it made.
trap 'kill -TERM "$bench" 2>/dev/null || true' INT TERM
status=0
wait "$bench" || status=$?
while kill -0 "$bench" 2>/dev/null; do wait "$bench" || status=$?; done
exit "$status"
