#!/usr/bin/env bash
# Runs test binaries in a small virtual machine whose cgroups are version 2 and nothing else.
#
#   test/vm/run.sh BIN[:TESTS]...
#
# Each BIN was made by `go test -c`; a name like kubelet-runtime.test is run in the folder kubelet/runtime of this tree, so
# that its testdata is there. TESTS is a pattern for -test.run. The exit code is that of the first binary that failed, 124
# when the machine was ended at its time limit; then what it said last is printed in full.
#
# The machine sees this host's root file system, read-only, with a layer in memory on top: what runs here runs there, and
# nothing it writes comes back. Environment:
#   VM_TIMEOUT   seconds for the whole run (default 480: four times what an idle machine takes); each binary gets half of it,
#                then its tests end with the stack of what hung
#   VM_STALL     seconds without a sign of life from the guest after which the machine itself is given up (default 60)
#   VM_MEMORY    MiB (default 3072)
#   VM_ARGS      arguments of every binary (default -test.short and a time limit)
#   VM_CACHE     where the guest's kernel is kept (default /var/cache/nodeactor-vm)
#   VM_ACCEL     "kvm" to use the hardware; the default emulates, which works everywhere
#   VM_VERBOSE   "1" prints all the machine says, not only results
#   VM_KEEP      "1" keeps the working folder and prints its path
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../.." && pwd)
timeout=${VM_TIMEOUT:-480}
stall=${VM_STALL:-60}
cache=${VM_CACHE:-/var/cache/nodeactor-vm}
[ $# -gt 0 ] || { echo "usage: $0 BIN..." >&2; exit 2; }

skip() { echo "vm: not run: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "sharing the root file system needs root"
[ "$(uname -m)" = x86_64 ] || skip "only x86_64 is set up, this is $(uname -m)"
need() { command -v "$1" >/dev/null || { echo "vm: $1 is missing: install $2" >&2; exit 1; }; }
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need modprobe kmod
for virtiofsd in /usr/libexec/virtiofsd /usr/lib/qemu/virtiofsd ""; do [ -x "$virtiofsd" ] && break; done
[ -n "$virtiofsd" ] || { echo "vm: virtiofsd is missing: install virtiofsd or qemu-system-common" >&2; exit 1; }

work=$(mktemp -d /tmp/nodeactor-vm.XXXXXX)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  if [ "${VM_KEEP:-}" = 1 ]; then echo "vm: kept $work"; else rm -rf "$work"; fi
}
trap finish EXIT

# shellcheck source=test/vm/kernel.sh
. "$here/kernel.sh"
kernel=$(guest_kernel "$cache")
make_initrd "$kernel" "$here/init.sh" "$work/initrd"

# What the second stage runs: one line per binary, its folder and path.
mkdir "$work/job"
for arg in "$@"; do
  bin=$(readlink -f "${arg%%:*}")
  tests=.
  [ "${arg#*:}" = "$arg" ] || tests=${arg#*:}
  folder=$tree/$(basename "$bin" .test | tr - /)
  [ -d "$folder" ] || folder=$tree
  echo "$folder $bin $tests"
done >"$work/job/list"
helper=${NODEACTOR_HELPER:-$tree/bin/nodeactor-runtime}
[ -x "$helper" ] || { helper=$work/helper/nodeactor-runtime; (cd "$tree" && go build -p 2 -o "$helper" ./cmd/nodeactor-runtime 2>/dev/null); }
{
  echo "export NODEACTOR_HELPER=$helper NODEACTOR_VM=1 HOME=/root PATH=$PATH"
  echo "VM_TREE='$tree'"
  echo "VM_ARGS='${VM_ARGS:--test.v -test.short -test.timeout=$((timeout / 2))s}'"
} >"$work/job/env"
cp "$here/stage2.sh" "$work/job/"

# Shares this host's root; the daemon serves one machine and ends with it.
start_sharing() {
  rm -f "$work/fs.sock"
  "$virtiofsd" --socket-path="$work/fs.sock" -o source=/ -o cache=always -o sandbox=chroot -o no_posix_lock >"$work/virtiofsd.log" 2>&1 &
  pids+=($!)
  for _ in $(seq 100); do [ -S "$work/fs.sock" ] && return; sleep 0.05; done
  echo "vm: virtiofsd did not start:" >&2
  cat "$work/virtiofsd.log" >&2
  exit 1
}

accel=(-accel "tcg,thread=multi")
[ "${VM_ACCEL:-}" != kvm ] || accel=(-accel kvm)
memory=${VM_MEMORY:-3072}
# The time stamp counter is calibrated at boot against a timer; on a busy host that goes wrong by a factor, and every
# deadline in the guest with it. The ACPI timer counts what it says.
clock="tsc=unstable clocksource=acpi_pm"
show='^vm:\|^--- \|^FAIL\|^panic:'
[ "${VM_VERBOSE:-}" != 1 ] || show=
last_words() { echo "vm: it said last:" >&2; tr -d '\r' <"$work/console" | tail -n 200 >&2; }

# Starts the emulator. Over the second serial line the guest sends a dot every other second, and at last the exit code.
boot_machine() {
  : >"$work/rc"
  qemu-system-x86_64 -machine q35,memory-backend=mem "${accel[@]}" -cpu max -smp 2 -m "$memory" \
    -object "memory-backend-memfd,id=mem,size=${memory}M,share=on" \
    -nographic -nodefaults -no-reboot -serial stdio -serial "file:$work/rc" -monitor none \
    -kernel "$kernel/boot/vmlinuz" -initrd "$work/initrd" \
    -chardev "socket,id=fs,path=$work/fs.sock" -device vhost-user-fs-pci,chardev=fs,tag=root \
    -append "console=ttyS0 quiet loglevel=4 mitigations=off nokaslr $clock panic=-1 job=$work/job" </dev/null >"$work/console" 2>"$work/qemu.log" &
  qemu=$!
  pids+=("$qemu")
  tail -n +1 -f --pid="$qemu" "$work/console" 2>/dev/null | tr -d '\r' | grep --line-buffered -a "$show" &
  pids+=($!)
}

# Waits for the end of the machine; gives it up when it stands still, or at the time limit.
watch_machine() {
  local signs=-1 heard=$SECONDS now
  while kill -0 "$qemu" 2>/dev/null; do
    now=$(stat -c %s "$work/rc")
    if [ "$now" != "$signs" ]; then signs=$now heard=$SECONDS; fi
    if [ $((SECONDS - heard)) -ge "$stall" ]; then give_up; return 125; fi
    if [ $((SECONDS - began)) -ge "$timeout" ]; then give_up; return 124; fi
    sleep 0.2
  done
}

give_up() {
  kill -9 "$qemu"
  wait "$qemu" 2>/dev/null || true
  sleep 1
  last_words
}

began=$SECONDS
ended=0
start_sharing
boot_machine
watch_machine || ended=$?
if [ "$ended" = 125 ]; then
  # The emulator now and then stops running its guest altogether. That says nothing about the tests.
  echo "vm: the machine gave no sign of life for $stall s; it is started once more, with its processors in one thread"
  accel=(-accel "tcg,thread=single")
  ended=0
  start_sharing
  boot_machine
  watch_machine || ended=$?
fi
case $ended in
  124) echo "vm: ended at the time limit of $timeout s"; exit 124 ;;
  125) echo "vm: the machine stood still again"; exit 125 ;;
esac
wait "$qemu" || { echo "vm: the emulator failed:" >&2; cat "$work/qemu.log" >&2; exit 1; }
sleep 1.2 # the last of the console
rc=$(tr -cd '0-9' <"$work/rc")
[ -n "$rc" ] || { echo "vm: the machine ended without a result" >&2; cat "$work/qemu.log" >&2; exit 1; }
[ "$rc" = 0 ] || last_words
echo "vm: exit code $rc after $((SECONDS - began)) s"
exit "$rc"
