#!/bin/bash
# The tools of the system with an installed MDFS: mkfs(8), mount(8), umount(8), fsck(8), fstab(5).
# usage: system.sh TOP WORK, in a mount namespace of its own; 77: it cannot be tried here.
# SPDX-License-Identifier: Apache-2.0
set -u
top=$1
cd "$2" || exit 1
if ! mount -t overlay overlay -o "lowerdir=$top:/usr" /usr 2>/dev/null; then
  echo "no overlay filesystem to lay MDFS over /usr"
  exit 77
fi
mkdir there other
place=$PWD/there

# expect CODE COMMAND...: runs it; anything but that exit code ends the test.
expect() {
  local wanted=$1 code=0
  shift
  said=$("$@" 2>&1) || code=$?
  [ "$code" = "$wanted" ] || { echo "$*: exit $code, not $wanted: $said"; exit 1; }
}
# One line that says what is wrong.
says() {
  [[ $said == *"$1"* ]] || { echo "'$said' does not say '$1'"; exit 1; }
}
mounted() { [ "$(findmnt -n -o FSTYPE --target "$place")" = fuse.mdfs ] || { echo "$1: not mounted"; exit 1; }; }
# umount(8) returns before the daemon has ended; mounting again waits for its locks, mdfsck does not.
free() { for _ in {1..500}; do mdfsck -n disk0 >/dev/null 2>&1; [ $? = 8 ] || return 0; sleep 0.02; done; }

expect 0 mkfs -t mdfs --size 16M disk0 disk1
expect 0 mount -t mdfs disk0 "$place"
mounted "mount -t mdfs"
echo kept >"$place/file"
expect 32 mount -t mdfs disk1 other
says "in use"
expect 0 umount "$place"
free
expect 0 mount -t mdfs -o ro,cache=32M,noatime disk1 "$place"
expect 0 grep -q kept "$place/file"
expect 1 touch "$place/new"
says "Read-only"
expect 0 umount "$place"
free
expect 0 mount -t mdfs . "$place" # a directory that holds the disks
mounted "a directory"
expect 0 mdfs umount "$place"
uuid=$(mdfsck -n --json disk0 | grep -oE '"uuid": "[0-9a-f-]{36}"' | cut -d'"' -f4)
[ -n "$uuid" ] || { echo "mdfsck --json tells no UUID"; exit 1; }
expect 1 mount -t mdfs "UUID=$uuid" "$place" # blkid does not know MDFS: mount(8) itself says so

# One line of a private fstab.
echo "$PWD/disk0 $place mdfs noauto,cache=32M,x-test.a=b,_netdev 0 2" >fstab
expect 0 mount -T fstab "$place"
mounted "fstab"
expect 0 grep -q kept "$place/file"
expect 0 umount "$place"
free
echo "$PWD/disk0 $place mdfs defaults,nofail,nodev,noexec,relatime 0 2" >fstab
expect 0 mount -T fstab -a -t mdfs
mounted "mount -a"
expect 0 umount "$place"
free
echo "$PWD/absent $place mdfs defaults,nofail 0 2" >fstab
expect 0 mount -T fstab -a -t mdfs

# What cannot be: mount(8)'s exit codes, one line each.
expect 32 mount -t mdfs "$PWD/absent" "$place"
says "absent"
expect 1 mount -t mdfs -o bogus=1 disk0 "$place"
says "bogus"
expect 32 mount -t mdfs "$0" "$place"
expect 32 mount -t mdfs disk0 "$PWD/nowhere"

# fsck (which ignores names that do not begin with a slash): clean, clean by fstab, damaged, not to be checked.
expect 0 fsck -T -t mdfs "$PWD/disk0"
echo "$PWD/disk0 $place mdfs defaults 0 2" >fstab
expect 0 env FSTAB_FILE=fstab fsck -A -T -t mdfs
for at in 0 4096 8192 12288; do # some of the first copies of labels and slots
  printf 'damaged' | dd of=disk0 bs=1 seek=$((at + 100)) conv=notrunc status=none
done
expect 4 fsck -T -t mdfs "$PWD/disk0" -- -n
expect 1 fsck -T -t mdfs "$PWD/disk0" -- -y
expect 0 fsck -T -t mdfs "$PWD/disk0"
head -c 16M /dev/zero >zeros
expect 8 fsck -T -t mdfs "$PWD/zeros"
expect 0 mount -t mdfs disk0 "$place"
expect 0 grep -q kept "$place/file"
expect 0 umount "$place"
free
echo "all is known"
