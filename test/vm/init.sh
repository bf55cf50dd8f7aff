#!/bin/busybox sh
# First stage, in the initial RAM disk: load drivers, put a writable layer over the shared root, go there.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
fail() {
  echo "vm: $*"
  echo 1 >/dev/ttyS1
  poweroff -f
}
for m in /mod/*.ko; do insmod "$m" || echo "vm: cannot load $m"; done
mount -t virtiofs -o ro root /ro || fail "cannot mount the shared root"
mount -t tmpfs -o mode=755,size=90% rw /rw || fail "cannot mount the layer in memory"
mkdir /rw/upper /rw/work
mount -t overlay -o lowerdir=/ro,upperdir=/rw/upper,workdir=/rw/work root /new || fail "cannot mount the root"
for d in proc sys dev; do
  mkdir -p "/new/$d"
  mount --move "/$d" "/new/$d"
done
job=$(sed -n 's/.*job=\([^ ]*\).*/\1/p' /new/proc/cmdline)
exec switch_root /new /bin/sh "$job/stage2.sh" "$job"
