#!/usr/bin/env bash
# The main job on a real photograph: make a volume, mount it, store the picture, read a window of it four ways, check.
# SPDX-License-Identifier: Apache-2.0
#
# usage: demo.sh BUILD_DIRECTORY PHOTOGRAPH OUTPUT_DIRECTORY
set -euo pipefail

build=$(cd "$1" && pwd)
photograph=$2
mkdir -p "$3"
output=$(cd "$3" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$build/tools:$PATH"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/mdfs-demo-XXXXXX")
mount_point=$work/mnt
clean_up() {
  local status=$?
  if mountpoint -q "$mount_point" 2>/dev/null; then
    mdfs umount "$mount_point" || umount -l "$mount_point" || true
  fi
  rm -rf --one-file-system "$work"
  [ "$status" -eq 0 ] || printf 'demo: FAILED\n' >&2
}
trap clean_up EXIT

step() { printf '\n== %s\n' "$*"; }
run() {
  printf '$ %s\n' "$*"
  "$@"
}

mkdir "$mount_point"
cd "$work"

step "A volume on four disks of 64 MiB"
run mkmdfs --size 64M --label demo disk0 disk1 disk2 disk3
run mdfs mount disk0 mnt

step "A photograph becomes an image"
run mdfs image import "$photograph" mnt/photo
run mdfs image info mnt/photo
printf '$ mdfs image layout mnt/photo | tail -n 4\n'
mdfs image layout mnt/photo >layout.txt
tail -n 4 layout.txt

window=y420+640,x1380+960
step "A window of it: where it lies"
run mdfs window explain mnt/photo "$window"

step "The same window by a path, by a command, by numpy and by ioctl"
run cp "mnt/photo@/win/$window.ppm" window.ppm
run mdfs window read mnt/photo "$window" -o window.png
run /usr/bin/python3 "$here/compare.py" mnt/photo "$window" window.ppm
cp window.png window.ppm "$output/"

step "A part of it is replaced, atomically"
run /usr/bin/python3 "$here/invert.py" mnt/photo y520+200,x1480+300 frame.npy
run mdfs window write mnt/photo y520+200,x1480+300 frame.npy
run mdfs window read mnt/photo "$window" -o "$output/window-after.png" --force

step "Unmounted, checked with all data, mounted again: nothing has changed"
sha256sum <mnt/photo >before
run mdfs umount mnt
run mdfsck --data disk0
run mdfs mount disk2 mnt
sha256sum <mnt/photo | cmp - before
run mdfs umount mnt

printf '\nLook at %s/window.png, and at window-after.png beside it.\n' "$output"
