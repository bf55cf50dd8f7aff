#!/usr/bin/env bash
# Installs the Debian packages that are missing, and nothing when all are there.
#   deps.sh build   what `make run` needs
#   deps.sh test    what `make test` needs as well
set -euo pipefail
packages=(gcc libc6-dev)
[ "${1:-build}" = test ] && packages+=(busybox-static iproute2 nftables curl openssl procps qemu-system-x86 seabios qemu-system-common kmod xz-utils)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
sudo=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "deps.sh: cannot install ${missing[*]}: run as root, or install sudo" >&2; exit 1; }
  sudo=(sudo)
fi
echo "installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
