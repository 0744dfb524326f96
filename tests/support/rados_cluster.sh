#!/bin/bash
# A Ceph cluster of one machine for tests: a monitor, a manager and some OSDs on the loopback interface, with cephx, and
# without systemd. Everything lies in one folder, below which nothing is left after `destroy`.
# SPDX-License-Identifier: Apache-2.0
#
# usage: rados_cluster.sh start|stop|destroy|status FOLDER
#        rados_cluster.sh kill-osd|start-osd FOLDER NUMBER
# RADOS_OSDS (3): number of OSDs. RADOS_BYTES (4 GiB): size of each, a sparse file. RADOS_PORT (40700): of the monitor.
# RADOS_REPLICAS (2): of the pool "shared". The pools "pinned0", "pinned1", .. keep each object once, on that OSD.
# After start, CEPH_CONF=FOLDER/ceph.conf is all that a client needs.
# Needs, of Debian: ceph-mon ceph-mgr ceph-osd ceph-common. Exit status 77: they are not installed.
set -euo pipefail

die() {
  echo "rados_cluster.sh: $*" >&2
  exit 1
}

[ $# -ge 2 ] || die "usage: start|stop|destroy|status|kill-osd|start-osd FOLDER [NUMBER]"
readonly VERB=$1 FOLDER=$2
readonly OSDS=${RADOS_OSDS:-3} BYTES=${RADOS_BYTES:-4294967296} PORT=${RADOS_PORT:-40700} REPLICAS=${RADOS_REPLICAS:-2}
readonly CONF=$FOLDER/ceph.conf
export CEPH_ARGS="" CEPH_CONF=$CONF

for program in ceph ceph-mon ceph-mgr ceph-osd; do
  if ! command -v "$program" >/dev/null; then
    echo "rados_cluster.sh: $program is not installed (Debian: ceph-mon ceph-mgr ceph-osd ceph-common)" >&2
    exit 77
  fi
done

ceph_() { timeout 40 ceph --conf "$CONF" --connect-timeout 10 "$@"; }

# process NAME: prints the number of the daemon, if it runs.
process() {
  local number
  number=$(cat "$FOLDER/run/$1.pid" 2>/dev/null) || return 1
  [ -n "$number" ] && grep -qs '^ceph-' "/proc/$number/comm" && printf '%s\n' "$number"
}

# until_true SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}

write_conf() {
  cat >"$CONF" <<CONF
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon_host = [v2:127.0.0.1:$PORT/0,v1:127.0.0.1:$((PORT + 1))/0]
mon_initial_members = a
public_network = 127.0.0.0/8
cluster_network = 127.0.0.0/8
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_ipv6 = false
ms_bind_port_min = $((PORT + 10))
ms_bind_port_max = $((PORT + 200))
keyring = $FOLDER/keyring
run_dir = $FOLDER/run
log_to_syslog = false
osd_crush_chooseleaf_type = 0
osd_pool_default_size = $REPLICAS
osd_pool_default_min_size = 1
mon_data_avail_warn = 2
mon_data_avail_crit = 1
[mon]
mon_data = $FOLDER/mon.\$id
mon_cluster_log_file = $FOLDER/log/cluster.log
mon_allow_pool_size_one = true
mon_allow_pool_delete = true
mon_warn_on_pool_no_redundancy = false
mon_max_pg_per_osd = 1000
mon_osd_down_out_interval = 3600
auth_allow_insecure_global_id_reclaim = false
osd_pool_default_pg_autoscale_mode = off
[mgr]
mgr_data = $FOLDER/mgr.\$id
mgr_module_path = /usr/share/ceph/mgr
mgr_initial_modules =
[osd]
osd_data = $FOLDER/osd.\$id
osd_memory_target = 939524096
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 1
osd_heartbeat_interval = 1
osd_heartbeat_grace = 5
osd_max_pg_log_entries = 500
osd_min_pg_log_entries = 100
bluestore_block_size = $BYTES
bluestore_block_create = true
bluestore_block_wal_create = false
bluestore_block_db_create = false
bluestore_cache_size = 134217728
bluestore_cache_autotune = false
ms_async_op_threads = 2
CONF
  local daemon
  for daemon in mon mgr osd; do
    sed -i "/^\[$daemon\]/r /dev/stdin" "$CONF" <<CONF
pid_file = $FOLDER/run/\$type.\$id.pid
log_file = $FOLDER/log/\$type.\$id.log
admin_socket = $FOLDER/run/\$type.\$id.asok
crash_dir = $FOLDER/crash
CONF
  done
}

make_monitor() {
  mkdir -p "$FOLDER"/{run,log,crash,mon.a,mgr.x}
  chmod 755 "$FOLDER"
  write_conf
  ceph-authtool --create-keyring "$FOLDER/keyring" --gen-key --name mon. --cap mon 'allow *' >/dev/null
  ceph-authtool "$FOLDER/keyring" --gen-key --name client.admin --cap mon 'allow *' --cap osd 'allow *' \
    --cap mgr 'allow *' >/dev/null
  ceph-authtool "$FOLDER/keyring" --gen-key --name mgr.x --cap mon 'allow profile mgr' --cap osd 'allow *' >/dev/null
  chmod 600 "$FOLDER/keyring"
  monmaptool --create --fsid "$(sed -n 's/^fsid = //p' "$CONF")" --clobber \
    --addv a "[v2:127.0.0.1:$PORT,v1:127.0.0.1:$((PORT + 1))]" "$FOLDER/monmap" >/dev/null
  ceph-mon --conf "$CONF" --id a --mkfs --monmap "$FOLDER/monmap" --keyring "$FOLDER/keyring" \
    >"$FOLDER/log/mkfs-mon.log" 2>&1 || die "ceph-mon --mkfs failed: see $FOLDER/log/mkfs-mon.log"
}

make_osd() {
  local number=$1 uuid secret
  mkdir -p "$FOLDER/osd.$number"
  uuid=$(cat /proc/sys/kernel/random/uuid)
  secret=$(ceph-authtool --gen-print-key)
  printf '{"cephx_secret": "%s"}' "$secret" | ceph_ osd new "$uuid" "$number" -i - >/dev/null
  ceph-authtool "$FOLDER/keyring" --name "osd.$number" --add-key "$secret" >/dev/null
  ceph-osd --conf "$CONF" --id "$number" --mkfs --osd-uuid "$uuid" >"$FOLDER/log/mkfs-osd.$number.log" 2>&1 ||
    die "ceph-osd --mkfs failed: see $FOLDER/log/mkfs-osd.$number.log"
}

run_daemon() {
  process "$1.$2" >/dev/null || ceph-"$1" --conf "$CONF" --id "$2" >/dev/null 2>>"$FOLDER/log/start.log"
}

all_up() { ceph_ osd stat -f json 2>/dev/null | grep -q "\"num_up_osds\":$OSDS,"; }
answers() { ceph_ mon stat >/dev/null 2>&1; }
all_clean() { ceph_ pg stat 2>/dev/null | grep -Eq '^([0-9]+) pgs: \1 active\+clean;'; }

make_pools() {
  local number
  {
    ceph_ osd pool create shared 16 16 replicated
    ceph_ osd pool set shared size "$REPLICAS" --yes-i-really-mean-it
    ceph_ osd pool set shared min_size 1
    for number in $(seq 0 $((OSDS - 1))); do
      ceph_ osd crush rm-device-class "osd.$number"
      ceph_ osd crush set-device-class "only$number" "osd.$number"
      ceph_ osd crush rule create-replicated "only$number" default osd "only$number"
      ceph_ osd pool create "pinned$number" 8 8 replicated "only$number"
      ceph_ osd pool set "pinned$number" size 1 --yes-i-really-mean-it
      ceph_ osd pool application enable "pinned$number" mdfs
    done
    ceph_ osd pool application enable shared mdfs
  } >>"$FOLDER/log/pools.log" 2>&1 || die "pools were not made: see $FOLDER/log/pools.log"
}

start() {
  local fresh=0 number
  if [ ! -s "$CONF" ]; then
    fresh=1
    make_monitor
  fi
  run_daemon mon a
  until_true 30 answers || die "the monitor does not answer: see $FOLDER/log"
  run_daemon mgr x
  for number in $(seq 0 $((OSDS - 1))); do
    [ -s "$FOLDER/osd.$number/whoami" ] || make_osd "$number"
    run_daemon osd "$number"
  done
  until_true 60 all_up || die "not all OSDs came up: see $FOLDER/log"
  [ $fresh = 0 ] || make_pools
  until_true 60 all_clean || die "the placement groups did not become clean: ceph --conf $CONF -s"
}

end_daemon() {
  local number
  number=$(process "$1") || return 0
  kill "$2" "$number"
  until_true 10 not_alive "$number" || kill -KILL "$number"
  rm -f "$FOLDER/run/$1.pid"
}
not_alive() { ! kill -0 "$1" 2>/dev/null; }

stop() {
  local number
  for number in $(seq 0 $((OSDS - 1))); do end_daemon "osd.$number" -TERM; done
  end_daemon mgr.x -TERM
  end_daemon mon.a -TERM
}

case $VERB in
  start) start ;;
  stop) stop ;;
  destroy)
    [ -s "$CONF" ] || exit 0 # nothing of this script
    stop
    rm -rf --one-file-system "$FOLDER"
    ;;
  status) ceph_ -s ;;
  kill-osd) end_daemon "osd.${3:?}" -KILL ;;
  start-osd) run_daemon osd "${3:?}" ;;
  *) die "there is no verb '$VERB'" ;;
esac
