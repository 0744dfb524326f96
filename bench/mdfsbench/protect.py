"""Second copies on slow disks beside btrfs raid1 and raid10 on the same ones: what they cost a writer, what readers get
with all disks and without one, and how fast a lost disk's data are whole again.

A window of MDFS is one call. On btrfs the image is a plain file, and each row of a window is a read of its own.
"""
# SPDX-License-Identifier: Apache-2.0
import shutil
import statistics

from mdfsbench import figures, grouped, images, many, protected, raid, readers, table
from mdfsbench.cold import SPARE, throttled_disks
from mdfsbench.context import Skip, say
from mdfsbench.figures import DISKS, RATE, SIDES, p99
from mdfsbench.warm import picture

GROUP = "protect"
SMALL = (4096, 4096, 3)  # of which windows are written
LEAST_IMPORT, LEAST_FRAMES, LEAST_CLIENTS = 0.47, 0.47, 1
MOST_WRITTEN, MOST_HEALTHY = 2, 1 / 0.98
MOST_DEGRADED = 1.14 * 1.1  # what is enumerated for eight disks, and a tenth
LEAST_REBUILD, MOST_BESIDE = 0.8, 2
MOST_BESIDE_SLOW = 2
DESIGN_REBUILD = (DISKS - 1) * RATE / 2  # of a disk on which reads and writes share one rate
ALL_BUSY = "throttle, all disks busy"


def rows(context):
    source = picture(context)
    small = images.make(context.images, "picture", SMALL)
    readers.library(context.program("lib/libmdfs.so"))
    try:
        # Two pictures with two copies each, rebuilt on one disk less; btrfs allocates groups of a tenth of all disks.
        # The last disk is the spare one.
        size = source.bytes * 4 // (DISKS - 1) + 2 * SPARE
        with throttled_disks.ThrottledDisks(DISKS + 1, size, context.scratch) as disks:
            found, floors = protected.measure(context, source, small, disks)
            peers = [raid.measure(context, source, small, disks, profile) for profile in profiles(disks)]
            with_parity = grouped.rows(context, source, disks)
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error
    once, twice = found["once"], found["twice"]
    return [*storing(once, twice, floors, peers), *healthy(once, twice, floors, peers),
            *beside_a_lame_disk(twice), *without_a_disk(twice, floors, peers), *rebuilding(twice, source, peers),
            *with_parity]


def profiles(disks):
    if shutil.which("mkfs.btrfs") is None:
        say("LEFT OUT btrfs: no mkfs.btrfs")
        return []
    if not disks.limits_kernel_threads:
        say("LEFT OUT btrfs: the throttle of this machine does not limit what it writes by threads of the kernel")
        return []
    return raid.PROFILES


def of_peers(peers, value, suffix=""):
    return {peer.name + suffix: value(peer) for peer in peers}


def beside_once(name, unit, twice, once, floor, floor_name, times, peers):
    """A row whose target is relative to the same with one copy: a rate has to reach it, a time must not exceed it."""
    is_rate = unit.endswith("/s")
    row = table.Row(GROUP, name, twice, unit, floor, floor_name, peers=peers)
    row.target = f"at {'least' if is_rate else 'most'} {times:.3g}x one copy"
    row.met = twice >= times * once if is_rate else twice <= times * once
    row.note = f"with one copy {table.number(once)} {unit}: {twice / once:.2f}x"
    return row


def storing(once, twice, floors, peers):
    bytes_s = DISKS * RATE / 2
    found = [
        beside_once("import with two copies", "MB/s", twice.import_mb_s, once.import_mb_s, bytes_s / 1e6, ALL_BUSY,
                    LEAST_IMPORT, of_peers(peers, lambda peer: peer.import_mb_s)),
        beside_once("frames of 1 MiB appended with fsync, two copies", "/s", twice.frames_s, once.frames_s,
                    bytes_s / figures.FRAME_SIDE ** 2, ALL_BUSY, LEAST_FRAMES,
                    of_peers(peers, lambda peer: peer.frames_s))]
    for side in SIDES:
        found.append(beside_once(f"{side}x{side}, written with fsync, two copies", "ms", twice.written[side],
                                 once.written[side], floors.written[side], ALL_BUSY, MOST_WRITTEN,
                                 of_peers(peers, lambda peer, side=side: peer.written[side])))
    return found


def healthy(once, twice, floors, peers):
    found = []
    for side in SIDES:
        found.append(beside_once(f"{side}x{side}, cold, two copies", "ms", twice.windows[side], once.windows[side],
                                 floors.windows[side], "busiest disk of all windows", MOST_HEALTHY,
                                 of_peers(peers, lambda peer, side=side: peer.windows[side])))
    found.append(beside_once(f"{many.COLD_CLIENTS} processes, windows 512x512, cold, two copies", "/s",
                             twice.clients_s, once.clients_s, floors.clients_s, ALL_BUSY, LEAST_CLIENTS,
                             of_peers(peers, lambda peer: peer.clients_s)))
    return found


def beside_a_lame_disk(twice):
    """A disk that is slow must not be felt, and one that hangs must not stop anybody."""
    side, times = figures.READER_SIDE, twice.beside_lame
    even = times[RATE]["p99_ms"]
    found = []
    for rate, what in ((protected.SLOW_RATE, "a disk 4 times slower"), (protected.HUNG_RATE, "a disk that hangs")):
        row = table.Row(GROUP, f"{side}x{side}, cold, 99th percentile, {what}", times[rate]["p99_ms"], "ms", even,
                        "99th percentile of equal disks")
        row.note = "; ".join(f"{name} {table.number(times[rate][key])} ms ({table.number(times[RATE][key])})"
                             for name, key in (("mean", "mean_ms"), ("longest", "max_ms")))
        found.append(row)
    found[0].target, found[0].met = f"at most {MOST_BESIDE_SLOW:g}x", found[0].value <= MOST_BESIDE_SLOW * even
    return found


def without_a_disk(twice, floors, peers):
    found = []
    for side in SIDES:
        value, whole = twice.degraded[side], twice.windows[side]
        row = table.Row(GROUP, f"{side}x{side}, cold, two copies, a disk lost", value, "ms", floors.degraded[side],
                        "that of all disks, on one less", f"at most {MOST_DEGRADED:.3g}x all disks",
                        value <= MOST_DEGRADED * whole,
                        peers=of_peers(peers, lambda peer, side=side: peer.degraded[side]))
        row.note = f"with all disks {table.number(whole)} ms: {value / whole:.2f}x"
        found.append(row)
    return found


def rebuilding(twice, source, peers):
    others = (DISKS - 1) * RATE / 1e6
    removing = of_peers(peers, lambda peer: peer.rebuild_mb_s, ", device remove")
    replacing = of_peers(peers, lambda peer: peer.replace_mb_s, ", replace")
    found = [
        # Each byte is read once and written once, and the throttle counts reads and writes apart.
        at_least("rebuild of a lost disk on the others", twice.rebuild_mb_s, others, "throttle, all other disks busy",
                 removing, f"of disks where reads and writes share the rate: {DESIGN_REBUILD / 1e6:.0f} MB/s"),
        at_least("replacement of a lost disk by a new one", twice.replace_mb_s, RATE / 1e6,
                 "throttle, the new disk busy", replacing)]
    window = figures.READER_SIDE
    size = window * window * source.shape[2]
    found.append(table.Row(
        GROUP, f"{window}x{window}, cold, beside the rebuild", statistics.mean(twice.beside_ms), "ms",
        size / ((DISKS - 1) * RATE) * 1e3, "throttle, the bytes of the window",
        peers=of_peers(peers, lambda peer: statistics.mean(peer.beside_ms), ", replace"),
        note="; ".join(f"{at.name if at is not twice else 'MDFS'}: {table.number(statistics.mean(at.alone_ms))} ms "
                       "without it" for at in (twice, *peers))))
    found.append(table.Row(
        GROUP, "the rebuild beside this reader", twice.beside_mb_s, "MB/s", others, "throttle, all other disks busy",
        peers=of_peers(peers, lambda peer: peer.beside_mb_s, ", replace")))
    found.append(table.at_most(
        GROUP, f"{window}x{window}, cold, 99th percentile beside the rebuild", p99(twice.beside_ms), "ms",
        p99(twice.alone_ms), "the same reader without it", MOST_BESIDE))
    found[-1].peers = of_peers(peers, lambda peer: p99(peer.beside_ms), ", replace")
    found[-1].note = "; ".join([f"{len(twice.beside_ms)} windows"] + [
        f"{peer.name}: {table.number(p99(peer.alone_ms))} ms without it, {len(peer.beside_ms)} windows"
        for peer in peers])
    return found


def at_least(name, value, floor, floor_name, peers, note=""):
    return table.Row(GROUP, name, value, "MB/s", floor, floor_name, f"at least {LEAST_REBUILD:g}x",
                     value >= LEAST_REBUILD * floor, note, peers)
