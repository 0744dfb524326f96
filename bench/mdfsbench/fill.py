"""Images stored as a volume fills, by policy of where groups begin: in virtual time, so that the figures are exact."""
# SPDX-License-Identifier: Apache-2.0
import json

from mdfsbench import table
from mdfsbench.context import run, say

GROUP = "fill"
WITHIN = 0.9


def rows(context):
    say("filling volumes on modelled disks with zones")
    words = ["--seeds", 2, "--disk-mib", 512] if context.quick else []
    told = json.loads(run(context.program("bench/fill/fill"), *words))
    return [row for policy, points in told["policies"].items() for row in of_policy(policy, points)]


def of_policy(policy, points):
    first, last = points[0], points[-1]
    for what, key in (("whole images", "image_mb_per_s"), ("windows 1024x1024", "window_mb_per_s")):
        value, floor = last[key]["mean"], first[key]["mean"]
        target, met = ("at least 0.9x", value >= WITHIN * floor) if policy == "scatter" else ("", None)
        note = (f"+- {last[key]['half_width_95']:.1f} and {first[key]['half_width_95']:.1f} MB/s; "
                f"{first['runs_per_image_and_disk']:.1f} and {last['runs_per_image_and_disk']:.1f} runs per image "
                "and disk")
        yield table.Row(GROUP, f"{policy}: {what} stored at {last['full']:.0%} full", value, "MB/s", floor,
                        f"stored at {first['full']:.0%}", target, met, note)
