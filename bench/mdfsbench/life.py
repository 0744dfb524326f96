"""The life of a volume beside a new one: filled, rewritten and emptied for a long time (as in `ageing`), given two
disks, one disk drained, defragmented. Are its windows read as fast as those of a new volume, and is every byte in
place?
"""
# SPDX-License-Identifier: Apache-2.0
import hashlib

from mdfsbench import ageing, table
from mdfsbench.context import Failed, Skip, run, say
from mdfsbench.ageing import CACHE, throttled_disks

GROUP = "life"
ADDED = 2
AS_NEW = 0.95


class Some:
    """Those of the disks that make a volume at some time of its life."""

    def __init__(self, disks, first, last):
        self.disks, self.paths = disks, disks.paths[first:last]

    def throttle(self, bps, iops):
        self.disks.throttle(bps, iops)

    def unthrottle(self):
        self.disks.unthrottle()


def digests(mountpoint, names):
    found = {}
    for name in names:
        with open(mountpoint / name, "rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def rows(context):
    size = (96 if context.quick else 256) << 20
    turnovers, count = (3, 100) if context.quick else (6, 400)
    try:
        with throttled_disks.ThrottledDisks(ageing.DISKS + ADDED, size, context.scratch) as disks:
            return on_disks(context, disks, turnovers, count)
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error


def on_disks(context, disks, turnovers, count):
    first = Some(disks, 0, ageing.DISKS)
    last = Some(disks, 1, ageing.DISKS + ADDED)
    with context.volume(first.paths):
        say(f"ageing a volume of {ageing.DISKS} disks")
        pictures, _ = ageing.aged(context, first, turnovers, CACHE)
        aged, aged_fragmentation = ageing.timed(context, first, pictures, count)
        with context.mounted(first.paths, CACHE) as mnt:
            before = digests(mnt, pictures)
            say(f"{ADDED} disks come, one goes")
            context.mdfs("disk", "add", "--balance", mnt, *disks.paths[ageing.DISKS:])
            context.mdfs("disk", "remove", mnt, "0")
            say("defragmentation")
            context.mdfs("defrag", "start", mnt, "--wait")
            if digests(mnt, pictures) != before:
                raise Failed("a picture has changed")
        run(context.program("tools/mdfsck"), "-n", "--data", *last.paths)
        after, after_fragmentation = ageing.timed(context, last, pictures, count)
    with context.volume(last.paths):
        say("the same pictures on a new volume of these disks")
        ageing.fresh(context, last, pictures)
        new, _ = ageing.timed(context, last, pictures, count)
    window = f"windows of {ageing.WINDOW}x{ageing.WINDOW}"
    rates = [ageing.rate(times) for times in (new, aged, after)]

    def fragmentation(found):
        return f"fragmentation {found['factor']:.2f}, imbalance {found['imbalance']:.2f}"

    return [
        table.Row(GROUP, f"{window}, new volume of {len(last.paths)} disks", rates[0], "MB/s"),
        table.Row(GROUP, f"{window}, aged, before disks come and go, {len(first.paths)} disks", rates[1], "MB/s",
                  rates[0], "new volume", note=fragmentation(aged_fragmentation)),
        table.Row(GROUP, f"{window}, aged, {ADDED} disks more, one less, defragmented", rates[2], "MB/s", rates[0],
                  "new volume", f"at least {AS_NEW:g}x", rates[2] >= AS_NEW * rates[0],
                  fragmentation(after_fragmentation)),
    ]
