"""Stored resolution levels: how fast all levels of a cold image are built, beside a cold read of its samples."""
# SPDX-License-Identifier: Apache-2.0
import json
import statistics

from mdfsbench import images, readers, scan, table
from mdfsbench.context import run, say

GROUP = "levels"
OF_READ = 0.5
CASES = [("picture", "yxc", []), ("volume", "zyx", ["--spacing", "1,1,1um"])]
SHAPES = {"picture": (16384, 16384, 3), "volume": (768, 768, 768)}
QUICK_SHAPES = {"picture": (2048, 2048, 3), "volume": (192, 192, 192)}


def rows(context):
    found = []
    for kind, axes, options in CASES:
        source = images.make(context.images, kind, (QUICK_SHAPES if context.quick else SHAPES)[kind])
        with context.volume([context.new_path("disk")], size=source.bytes * 3 + (256 << 20)) as disks:
            say(f"storing the {kind}")
            with context.mounted(disks) as mnt:
                context.mdfs("image", "import", "--quiet", "--codec", "raw", "--axes", axes, *options, source.npy,
                             mnt / kind)
            rates = context.in_turn(1 if context.quick else 3, read=lambda: read_rate(context, disks, kind, source),
                                    build=lambda: build_rate(context, disks, kind, source))
        read, build = (statistics.median(rates[name]) for name in ("read", "build"))
        row = table.Row(GROUP, f"all levels of a cold {kind} {'x'.join(map(str, source.shape))}", build, "MB/s", read,
                        "cold read of the samples by dd", f"at least {OF_READ:g}x")
        row.met = build >= OF_READ * read
        found.append(row)
    return found


def read_rate(context, disks, kind, source):
    say(f"{kind}, read")
    readers.forget_pages()
    with context.mounted(disks) as mnt:
        return scan.scan(mnt / kind, source.bytes)


def build_rate(context, disks, kind, source):
    """Of the samples of the image. A read of the coarsest level builds all of them."""
    say(f"{kind}, build")
    with context.mounted(disks) as mnt:
        context.mdfs("image", "levels", "--set", "none", mnt / kind)
    readers.forget_pages()
    with context.mounted(disks) as mnt:
        levels = json.loads(context.mdfs("image", "levels", "--set", "auto", "--json", mnt / kind))["levels"]
        rate = scan.scan(f"{mnt / kind}@/win/l{len(levels)}.raw", source.bytes)
        built = json.loads(context.mdfs("image", "levels", "--json", mnt / kind))["levels"]
        assert all(level["built"] == level["extents"] for level in built), built
        run("sync")
    return rate
