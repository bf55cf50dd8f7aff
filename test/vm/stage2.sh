#!/bin/sh
# Second stage, on the shared root: cgroup v2 with every controller, memory file systems where tests write, then the tests.
job=$1
rc=0
# The sign of life that run.sh waits for.
(exec >/dev/ttyS1; while :; do printf .; sleep 2; done) &
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=0666 devpts /dev/pts
ln -sf pts/ptmx /dev/ptmx 2>/dev/null
mount -t tmpfs -o mode=1777 shm /dev/shm
ln -sf /proc/self/fd /dev/fd
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs
for c in $(cat /sys/fs/cgroup/cgroup.controllers); do echo "+$c" >/sys/fs/cgroup/cgroup.subtree_control; done
# The job folder may lie in /tmp, so it is read before that is covered.
. "$job/env"
list=$(cat "$job/list")
mkdir -p /run/nodeactor-vm
echo "$list" | while read -r _ bin _; do cp "$bin" /run/nodeactor-vm/; done
cp "$NODEACTOR_HELPER" /run/nodeactor-vm/nodeactor-runtime
export NODEACTOR_HELPER=/run/nodeactor-vm/nodeactor-runtime
# The tree, too, may lie in /tmp.
mkdir -p /run/nodeactor-vm/tree
mount -o bind "$VM_TREE" /run/nodeactor-vm/tree
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=755 lib /var/lib
ip link set lo up
echo "vm: kernel $(uname -r), controllers $(cat /sys/fs/cgroup/cgroup.controllers)"
while read -r folder bin tests; do
  [ -n "$bin" ] || continue
  name=$(basename "$bin")
  began=$(cut -d. -f1 /proc/uptime)
  cd "/run/nodeactor-vm/tree${folder#"$VM_TREE"}" || cd /
  code=0
  "/run/nodeactor-vm/$name" $VM_ARGS -test.run="$tests" </dev/null 2>&1 || code=$?
  [ "$rc" != 0 ] || rc=$code
  echo "vm: $name ended with $code after $(($(cut -d. -f1 /proc/uptime) - began)) s"
done <<LIST
$list
LIST
sync
echo "$rc" >/dev/ttyS1
busybox poweroff -f
