#!/bin/bash
# Installs Debian packages in a new Debian 12, runs debian/tests/volume there, and purges them again. As root.
# usage: packages.sh DIRECTORY_OF_PACKAGES NEW_ROOT, in the sources; the machine's own apt says where Debian is.
# SPDX-License-Identifier: Apache-2.0
set -eu
packages=$(realpath "$1") root=$(realpath -m "$2") sources=$PWD

if [ "${3:-}" != --inside ]; then
  mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  if ! debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1; then
    tail -n 20 "$root.log" >&2
    exit 1
  fi
  # What is mounted inside goes with the namespaces; so do the processes that are left.
  exec unshare --mount --pid --fork --kill-child --propagation private "$0" "$packages" "$root" --inside
fi

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
fail() {
  echo "packages.sh: $*" >&2
  exit 1
}
quietly() {
  "$@" >"$root.log" 2>&1 || {
    tail -n 30 "$root.log" >&2
    fail "$* failed"
  }
}
# Of MDFS, in the new root; what belongs to this script is not.
traces() { (cd "$root" && find . -xdev -iname '*mdfs*' ! -path './packages*' ! -path './proc/*' ! -path './dev/*'); }

mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run" # as on every Debian
mount --rbind /dev "$root/dev"
mkdir "$root/packages"
cp "$packages"/*.deb "$sources/debian/tests/volume" "$root/packages/"
rm -f "$root"/packages/*-dbgsym_*

for package in mdfs libmdfs0 libmdfs-dev mdfs-gstreamer mdfs-doc; do
  ls "$root/packages/${package}"_*.deb >/dev/null || fail "there is no package $package"
  depends=$(dpkg-deb -f "$root"/packages/"${package}"_*.deb Depends)
  case $depends in *openimageio*) fail "$package depends on OpenImageIO" ;; esac
done
case $(dpkg-deb -f "$root"/packages/mdfs_*.deb Recommends) in
  *libopenimageio*) ;;
  *) fail "mdfs does not recommend OpenImageIO" ;;
esac

quietly inside apt-get update
quietly inside apt-get install -y --no-install-recommends file gcc libc6-dev pkg-config procps
quietly inside sh -c 'apt-get install -y --no-install-recommends /packages/*.deb'
[ "$(inside dpkg --audit)" = "" ] || fail "$(inside dpkg --audit)"
inside /packages/volume

purge() {
  quietly inside apt-get purge -y mdfs libmdfs0 libmdfs-dev mdfs-gstreamer mdfs-doc
  local left
  left=$(traces)
  [ "$left" = "" ] || fail "left after the purge: $left"
}
purge
quietly inside sh -c 'apt-get install -y --no-install-recommends /packages/*.deb' # again, where the user exists
inside mdfs --version >/dev/null
purge
umount -l "$root/dev" "$root/proc" "$root/run"
rm -rf --one-file-system "$root" "$root.log"
echo "the packages install, work, and leave nothing behind"
