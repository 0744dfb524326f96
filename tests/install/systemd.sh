#!/bin/bash
# A volume kept by systemd: mdfs@.service with its sandbox, under a systemd of its own that knows no other units.
# usage: systemd.sh TOP WORK, in a mount namespace of its own; 77: it cannot be tried here.
# WORK/said ends with "all is known", or tells what went wrong.
# SPDX-License-Identifier: Apache-2.0
set -u
top=$1 work=$2
unit=mdfs@run-place.service
cannot() { echo "$*"; exit 77; }

# ---- as a service: systemd.sh --inside WORK
if [ "$top" = --inside ]; then
  exec >"$work/said" 2>&1
  wrong() { echo "$*"; systemctl status --no-pager -l "$unit"; systemctl --force exit 1; exit 1; }
  mounted() { [ "$(findmnt -n -o FSTYPE --mountpoint /run/place)" = fuse.mdfs ]; }
  systemctl start "$unit" || wrong "the unit does not start"
  mounted || wrong "started, but not mounted where others see it"
  echo kept >/run/place/file || wrong "cannot write"
  sync /run/place/file || wrong "cannot sync"
  pid=$(systemctl show -P MainPID "$unit")
  grep -q '^NoNewPrivs:.*1' "/proc/$pid/status" || wrong "new privileges are possible"
  grep -q '^Seccomp:.*2' "/proc/$pid/status" || wrong "no filter of system calls"
  grep -q "^Uid:.$(id -u mdfs)" "/proc/$pid/status" || wrong "the daemon is not the user mdfs"
  grep -q '^CapEff:.*0000000000000000' "/proc/$pid/status" || wrong "the daemon has kept capabilities"
  kill -9 "$pid"
  for _ in {1..200}; do
    sleep 0.05
    [ "$(systemctl show -P ActiveState "$unit")" = active ] && mounted && break
  done
  grep -q kept /run/place/file || wrong "after a crash the volume is not back"
  systemctl stop "$unit" || wrong "cannot stop"
  mounted && wrong "stopped, but still mounted"
  mdfsck -n --data "$work/disk0" || wrong "the volume is not clean"
  systemctl start "$unit" || wrong "does not start again"
  grep -q kept /run/place/file || wrong "the file is gone"
  systemctl stop "$unit" || wrong "cannot stop again"
  echo "all is known"
  systemctl --force exit 0
  exit 0
fi

# ---- as the first process of its namespaces: systemd.sh --boot TOP WORK
if [ "$top" = --boot ]; then
  top=$2 work=$3
  umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup || cannot "no control groups of its own"
  mount -t tmpfs tmpfs /run || cannot "no /run of its own"
  mkdir -p /run/place /run/etc/upper /run/etc/work "$work/units" "$work/none"
  mount -t overlay overlay -o "lowerdir=$top:/usr" /usr || cannot "no overlay filesystem"
  mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work /etc ||
    cannot "no /etc of its own"
  rm -rf /etc/systemd
  systemd-sysusers "$top/lib/sysusers.d/mdfs.conf" || { echo "no user mdfs"; exit 1; }
  mkdir /etc/mdfs
  printf 'DISKS=%s/disk0\nOPTIONS=-o cache=32M\n' "$work" >/etc/mdfs/run-place.conf
  sed "s|=[^ ]*/bin/mdfs|=/usr/bin/mdfs|" "$top/lib/systemd/system/mdfs@.service" >"$work/units/mdfs@.service"
  for target in sysinit basic shutdown multi-user local-fs; do
    printf '[Unit]\nDefaultDependencies=no\n' >"$work/units/$target.target"
  done
  printf '[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/bash %s --inside %s\n' \
    "$work/script" "$work" >"$work/units/test.service"
  export container=other SYSTEMD_UNIT_PATH=$work/units SYSTEMD_GENERATOR_PATH=$work/none \
    SYSTEMD_ENVIRONMENT_GENERATOR_PATH=$work/none
  exec /lib/systemd/systemd --system --unit=test.service --show-status=no --log-target=console --log-level=notice
fi

[ -x /lib/systemd/systemd ] || cannot "no systemd"
mkdir "$work/groups" && mount -t cgroup2 cgroup2 "$work/groups" || cannot "no control groups"
group=$work/groups/mdfs-test-$$
mkdir "$group" || cannot "no control group of its own"
cp "$0" "$work/script"
(
  echo 0 >"$group/cgroup.procs"
  exec timeout 200 unshare --mount --pid --fork --kill-child --mount-proc --cgroup --uts --ipc --propagation private \
    bash "$work/script" --boot "$top" "$work"
)
status=$?
find "$group" -depth -type d -exec rmdir {} +
exit $status
