# Functions of run.sh: the guest's kernel and its initial RAM disk.

# The drivers the guest needs, in no order: modprobe knows what each depends on.
guest_modules="virtio_pci virtiofs overlay veth bridge br_netfilter nf_tables nft_chain_nat nft_nat nft_masq nft_ct nft_numgen
nft_reject nft_reject_inet nft_fib nft_fib_inet nft_log nft_limit nf_conntrack vxlan tun dummy"

# guest_kernel CACHE prints the folder with an unpacked kernel package: boot/vmlinuz and lib/modules.
guest_kernel() {
  local cache=$1 name
  mkdir -p "$cache"
  name=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image/{print $2; exit}')
  if [ -z "$name" ] && ! ls -d "$cache"/linux-image-*/boot/vmlinuz >/dev/null 2>&1; then
    apt-get update -qq >&2
    name=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/{print $2; exit}')
  fi
  [ -n "$name" ] || name=$(basename "$(ls -d "$cache"/linux-image-* | tail -1)")
  if [ ! -e "$cache/$name/boot/vmlinuz" ]; then
    local part
    part=$(mktemp -d "$cache/part.XXXXXX")
    (cd "$part" && { apt-get download -qq "$name" || { apt-get update -qq && apt-get download -qq "$name"; }; } && dpkg -x ./*.deb tree) >&2
    [ -d "$part/tree/lib/modules" ] || ln -s usr/lib "$part/tree/lib"
    cp "$part"/tree/boot/vmlinuz-* "$part/tree/boot/vmlinuz"
    rm -rf "${cache:?}/$name"
    mv "$part/tree" "$cache/$name"
    rm -rf "$part"
  fi
  echo "$cache/$name"
}

# make_initrd KERNEL INIT OUT packs busybox, the modules in loading order, and the first stage.
make_initrd() {
  local kernel=$1 init=$2 out=$3 root version
  root=$(mktemp -d)
  version=$(basename "$kernel"/lib/modules/*)
  [ -e "$kernel/lib/modules/$version/modules.dep" ] || depmod -b "$kernel" "$version"
  mkdir -p "$root"/{bin,dev,proc,sys,mod,ro,rw,new}
  cp "$(command -v busybox)" "$root/bin/busybox"
  cp "$init" "$root/init"
  chmod +x "$root/init"
  pack_modules "$kernel" "$version" "$root/mod"
  (cd "$root" && find . | cpio -o -H newc --quiet 2>/dev/null || busybox find . | busybox cpio -o -H newc) | gzip -1 >"$out"
  rm -rf "$root"
}

# pack_modules KERNEL VERSION DIR copies each driver and what it depends on, unpacked, named so that their order is that of
# loading.
pack_modules() {
  local kernel=$1 version=$2 dir=$3 n=1000 name file
  for name in $guest_modules; do
    modprobe -d "$kernel" -S "$version" --show-depends "$name" 2>/dev/null || true
  done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' | while read -r file; do
    n=$((n + 1))
    case $file in
    *.xz) xz -dc "$file" >"$dir/$n-$(basename "$file" .xz)" ;;
    *.zst) zstd -qdc "$file" >"$dir/$n-$(basename "$file" .zst)" ;;
    *) cp "$file" "$dir/$n-$(basename "$file")" ;;
    esac
  done
}
