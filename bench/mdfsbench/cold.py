"""Cold windows on slow disks: the floor is what the busiest disk of the plan must do.

A throttled disk that a window spares gathers credit for the next, so that the mean of a batch may lie below the mean of
its floors; not below what the busiest disk of the batch needs, but for 0.1 s of credit once.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

from mdfsbench import table
from mdfsbench.context import Skip, say
from mdfsbench.warm import picture

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import throttled_disks  # noqa: E402

GROUP = "cold"
RATE, IOPS = 20_000_000, 200  # of each disk
DISKS = [1, 2, 4, 8]
SPARE = 256 << 20
APART = 256  # samples: the largest extent in question
TIMES_FLOOR = 1.15
# name, window, how many at k disks (enough to outlast the 0.1 s of credit of an idle disk many times), and in a hurry.
CASES = [
    ("64x64", "64x64", lambda k: 60 + 60 * k, 60),
    ("512x512", "512x512", lambda k: 40 + 20 * k, 8),
    ("2048x2048", "2048x2048", lambda k: 4 + 2 * k, 1),
    ("one row", "1x0", lambda k: 6 + 4 * k, 5),
    ("one column", "0x1", lambda k: 6 + 4 * k, 5),
]
WARMUP = {"64x64": 30, "512x512": 6, "2048x2048": 1, "one row": 1, "one column": 1}  # a tenth of it in a hurry


def rows(context):
    source = picture(context)
    found = []
    for k in [1, 8] if context.quick else DISKS:
        try:
            with throttled_disks.ThrottledDisks(k, (source.bytes * 3 // 2) // k + SPARE, context.scratch) as disks:
                found += on_disks(context, source, disks, k)
        except throttled_disks.Unavailable as error:
            raise Skip(str(error)) from error
    return found + speed_ups(found)


def on_disks(context, source, disks, k):
    found = []
    with context.volume(disks.paths):
        say(f"storing the picture on {k} disks")
        with context.mounted(disks.paths) as mnt:
            context.mdfs("image", "import", "--quiet", "--codec", "raw", *context.extent, source.npy, mnt / "picture")
        disks.throttle(RATE, IOPS)
        for name, window, count_at, few in CASES:
            count, warmup = (few, WARMUP[name] // 10) if context.quick else (count_at(k), WARMUP[name])
            say(f"cold {name} on {k} disks, {count} windows")
            timed = cold_reads(context, disks, source, window, count, warmup, "--rate", RATE, "--iops", IOPS)
            found.append(judged(name, k, timed))
        disks.unthrottle()
    return found


def cold_reads(context, disks, source, window, count, warmup, *more):
    """Windows that lie apart, after a fresh mount."""
    with context.mounted(disks.paths) as mnt:
        apart = APART if "0" not in window.split("x") else APART // 2
        return context.time_reads(mnt / "picture", "--window", window, "--count", count, "--warmup", warmup, "--apart",
                                  apart, "--source", source.raw, *more)


def judged(name, k, timed):
    mean, floor = timed["mean_ms"], timed["floor_ms"]
    row = table.at_most(GROUP, f"{name}, k={k}, cold", mean, "ms", floor, "busiest disk", TIMES_FLOOR)
    limit = {("512x512", 8): 12, ("2048x2048", 8): 100}.get((name, k))
    if limit is not None:
        row.target += f", {limit} ms"
        row.met = row.met and mean <= limit
    ideal = timed["bytes"] / (k * RATE) * 1e3
    of_batch = table.number(timed["batch_floor_ms"])
    row.note = (f"window bytes / (k x 20 MB/s): {table.number(ideal)} ms; busiest disk of the batch: {of_batch} ms a "
                "window")
    return row


def speed_ups(found):
    """How much faster eight disks are than one."""
    value = {row.name: row.value for row in found}
    out = []
    for name, least in (("512x512", 5), ("2048x2048", 6.5)):
        one, eight = value.get(f"{name}, k=1, cold"), value.get(f"{name}, k=8, cold")
        if one and eight:
            out.append(table.Row(GROUP, f"{name}, k=8 against k=1", one / eight, "x", 8, "ideal",
                                 f"at least {least:g}x", one / eight >= least))
    return out
