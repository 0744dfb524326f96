#!/bin/bash
# Starts a cluster of three OSDs, runs the tests of disks and of mounts on it, and destroys it.
# usage: run.sh DEVICE_TESTS [arguments of rados_test.py]; MDFS, MKMDFS and MDFSCK name the programs
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(dirname "$(realpath "$0")")
readonly device_tests=$1 cluster=$here/../support/rados_cluster.sh
shift
if ! command -v ceph-osd >/dev/null || ! command -v ceph-mgr >/dev/null; then
  echo "SKIPPED: Ceph is not installed (Debian: ceph-mon ceph-mgr ceph-osd ceph-common); ./dev rados installs it"
  exit 77
fi
RADOS_FOLDER=$(mktemp --directory --tmpdir mdfs-rados-XXXXXX)
export RADOS_FOLDER CEPH_CONF=$RADOS_FOLDER/ceph.conf MDFS_TEST_RADOS=pinned0
# Another one may be running.
export RADOS_PORT=${RADOS_PORT:-$((20000 + $$ % 40 * 300))}
trap '"$cluster" destroy "$RADOS_FOLDER"; rm -rf --one-file-system "$RADOS_FOLDER"' EXIT
"$cluster" start "$RADOS_FOLDER"
"$device_tests" --gtest_brief=1 --gtest_filter='*/DiskConformance.*Rados*:*EverySchemeTest*:RadosDiskTest.*'
python3 "$here/rados_test.py" "$@"
[ $# -gt 0 ] || python3 "$here/standby_test.py"
