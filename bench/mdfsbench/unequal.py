"""Windows on two fast and two slow disks: the rate against the sum of the disks' rates, with weights and without."""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import sys

from mdfsbench import table
from mdfsbench.context import Skip, run, say
from mdfsbench.warm import picture

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import throttled_disks  # noqa: E402

GROUP = "unequal"
RATES = [40_000_000, 40_000_000, 20_000_000, 20_000_000]
SPARE = 256 << 20
EXTENT = 256  # side of the picture's extents
# Windows that lie apart: their sides, at multiples of what they begin, how many, after how many; the first in a hurry.
WINDOWS = [("2048x2048", EXTENT, 20, 2), ("2048x2048", 1, 20, 2), ("4096x4096", 1, 6, 1)]
QUICK = [("1024x1024", 1, 2, 1)]
LEAST = 0.9


def rows(context):
    source = picture(context)
    windows = QUICK if context.quick else WINDOWS
    try:
        # Weighted 2 to 1, a fast disk gets a third of the picture.
        with throttled_disks.ThrottledDisks(len(RATES), source.bytes // 2 + SPARE, context.scratch) as disks:
            return [row for weights in ("measure", "equal")
                    for row in with_weights(context, source, disks, weights, windows)]
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error


def with_weights(context, source, disks, weights, windows):
    say(f"2 fast and 2 slow disks, --weights {weights}")
    disks.throttle(RATES, 0)  # what the measurement sees
    with context.volume(disks.paths, weights=weights):
        disks.unthrottle()
        with context.mounted(disks.paths) as mnt:
            context.mdfs("image", "import", "--quiet", "--codec", "raw", source.npy, mnt / "picture")
            listed = json.loads(run(context.program("tools/mdfs"), "disk", "list", "--json", mnt))["disks"]
        disks.throttle(RATES, 0)
        found = []
        for window, align, count, warmup in windows:
            with context.mounted(disks.paths) as mnt:
                timed = context.time_reads(mnt / "picture", "--window", window, "--count", count, "--warmup", warmup,
                                           "--apart", EXTENT, "--align", align, "--source", source.raw, "--rate",
                                           RATES[-1])
            found.append(as_row(window, align, weights, timed, listed, None if context.quick else LEAST))
        disks.unthrottle()
    return found


def as_row(window, align, weights, timed, listed, least):
    rate, of_disks = (timed[what] / timed["mean_ms"] / 1e3 for what in ("bytes", "planned_bytes"))
    where = "from borders of extents" if align > 1 else "from anywhere"
    row = table.Row(GROUP, f"{window} {where}, disks of 40, 40, 20 and 20 MB/s, --weights {weights}", rate, "MB/s",
                    sum(RATES) / 1e6, "sum of the disks")
    row.note = (f"weights {', '.join(str(disk['weight']) for disk in listed)}; the disks read {of_disks:.0f} MB/s, "
                f"{of_disks / rate:.2f} bytes for one: whole rows of extents that the window cuts")
    if weights == "measure" and least:
        row.target, row.met = f"at least {least:g}x", rate >= least * sum(RATES) / 1e6
    return row
