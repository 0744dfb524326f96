"""Windows on two fast and two slow disks: the rate against the sum of the disks' rates, with weights and without."""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import sys

from mdfsbench import table
from mdfsbench.context import Skip, run, say
from mdfsbench.warm import CACHE, picture

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import throttled_disks  # noqa: E402

GROUP = "unequal"
RATES = [40_000_000, 40_000_000, 20_000_000, 20_000_000]
SPARE = 256 << 20
WINDOW = "2048x2048"
LEAST = 0.9


def rows(context):
    source = picture(context)
    count, warmup = (2, 1) if context.quick else (20, 2)
    try:
        # Weighted 2 to 1, a fast disk gets a third of the picture.
        with throttled_disks.ThrottledDisks(len(RATES), source.bytes // 2 + SPARE, context.scratch) as disks:
            return [with_weights(context, source, disks, weights, count, warmup)
                    for weights in ("measure", "equal")]
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error


def with_weights(context, source, disks, weights, count, warmup):
    say(f"2 fast and 2 slow disks, --weights {weights}")
    disks.throttle(RATES, 0)  # what the measurement sees
    with context.volume(disks.paths, weights=weights):
        disks.unthrottle()
        with context.mounted(disks.paths, CACHE) as mnt:
            context.mdfs("image", "import", "--quiet", "--codec", "raw", source.npy, mnt / "picture")
            listed = json.loads(run(context.program("tools/mdfs"), "disk", "list", "--json", mnt))["disks"]
        disks.throttle(RATES, 0)
        with context.mounted(disks.paths, CACHE) as mnt:
            timed = context.time_reads(mnt / "picture", "--window", WINDOW, "--count", count, "--warmup", warmup,
                                       "--apart", 256, "--source", source.raw)
        disks.unthrottle()
    rate = timed["bytes"] / timed["mean_ms"] / 1e3
    row = table.Row(GROUP, f"{WINDOW} on disks of 40, 40, 20 and 20 MB/s, --weights {weights}", rate, "MB/s",
                    sum(RATES) / 1e6, "sum of the disks")
    row.note = "weights " + ", ".join(str(disk["weight"]) for disk in listed)
    if weights == "measure":
        row.target, row.met = f"at least {LEAST:g}x", rate >= LEAST * sum(RATES) / 1e6
    return row
