#!/bin/bash
# Runs SEEDS seeds (a million by default) of the tree's simulation, beginning with FIRST, in
# JOBS processes (one for each core), and prints how far it is. It ends with the first seed that
# breaks a rule, whose trace and replay command are shown.
set -euo pipefail
cd "$(dirname "$0")/../.."
export GOGC=400 # short lives, little memory
seeds=${SEEDS:-1000000} first=${FIRST:-1} jobs=${JOBS:-$(nproc)} chunk=${CHUNK:-10000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go test -c -o "$dir/sim.test" ./test/sim

# one runs the seeds of one chunk, quietly unless they fail.
one() {
	local from=$1 n=$2
	cd test/sim
	if ! HARNESS_FIRST=$from HARNESS_SEEDS=$n "$dir/sim.test" -test.run '^TestTree$' -test.timeout 1h >"$dir/$from.log" 2>&1; then
		cat "$dir/$from.log"
		return 255 # xargs starts nothing more
	fi
	rm "$dir/$from.log"
	echo "$n" >>"$dir/done"
	awk -v all="$seeds" -v since="$begin" -v now="$(date +%s)" '{ n += $1 }
		END { s = now - since; printf "%d of %d seeds in %d s, %.0f/s\n", n, all, s, s ? n / s : n }' "$dir/done"
}
export -f one
begin=$(date +%s)
export seeds begin dir
for ((at = first; at < first + seeds; at += chunk)); do
	left=$((first + seeds - at))
	echo "$at $((left < chunk ? left : chunk))"
done | xargs -P "$jobs" -L 1 bash -c 'one "$@"' one
echo "no rule was broken in $seeds seeds"
