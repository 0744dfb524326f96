"""Warm windows: what was read once before comes out of the daemon's memory. And small windows written.

Each case has a mount of its own with the default cache, and so many windows that their extents fit into the cache.
"""
# SPDX-License-Identifier: Apache-2.0
from mdfsbench import images, table
from mdfsbench.context import say

GROUP = "warm"
DEFAULT_CACHE = "the default cache, a quarter of the memory"  # as bench/results.py says it
# Of windows read: side, how many (at most 160 MB of extents), and how.
READ_CASES = [(512, 80, []), (64, 400, ["--one-call"]), (64, 400, []), (2048, 8, [])]
WRITTEN_CASES = [(64, 100), (512, 40)]
CODECS = ["raw", "zstd"]
SAMPLE_BYTES = 3


def picture(context):
    side = 4096 if context.quick else 16384
    say(f"making the picture of {side}x{side}x3")
    return images.make(context.images, "picture", (side, side, SAMPLE_BYTES))


def rows(context):
    source = picture(context)
    rounds = 3 if context.quick else 9
    found = []
    with context.trivial_server(source.raw) as trivial, \
            context.volume([context.new_path("disk")], size=3 * source.bytes + (256 << 20)) as disks:
        with context.mounted(disks) as mnt:
            for codec in CODECS:
                context.mdfs("image", "import", "--quiet", "--codec", codec, source.npy, mnt / codec)
        for codec in CODECS:
            for side, count, how in READ_CASES:
                with context.mounted(disks) as mnt:
                    found.append(one(context, source, trivial, mnt / codec, codec, side, count, rounds, how))
            with context.mounted(disks) as mnt:
                for side, count in WRITTEN_CASES:
                    found.append(written(context, source, mnt / codec, codec, side, count, rounds))
    return found


def written(context, source, image, codec, side, count, rounds):
    """A write of a window until it is answered: whole on the disks, and published, but not committed."""
    say(f"writing {side}x{side}, {codec}")
    timed = context.alternate(rounds, write=lambda: context.time_reads(
        image, "--write", "--window", f"{side}x{side}", "--apart", 1, "--count", count, "--warmup", count // 10,
        "--source", source.raw)["median_ms"])
    note = "the extents that it touches are read, encoded and written" if codec == "zstd" else ""
    return table.Row(GROUP, f"write of a window {side}x{side}, {codec}", timed["write"], "ms", note=note)


def one(context, source, trivial, image, codec, side, count, rounds, how):
    """A window of side x side against the trivial server's read of as many bytes; 64x64 against its smallest read."""
    say(f"warm {side}x{side}, {codec}")
    bytes_read = 1 if side == 64 else side * side * SAMPLE_BYTES
    common = ["--warm", "--source", source.raw, "--count", count]

    def window():
        return context.time_reads(image, "--window", f"{side}x{side}", *how, *common)["median_ms"]

    def floor():
        return context.time_reads(trivial, "--bytes", bytes_read, *common)["median_ms"]

    def copy():
        return context.time_reads(image, "--window", f"{side}x{side}", "--memory", *common)["median_ms"]

    window()  # the first pass fills the cache
    median = context.alternate(rounds, window=window, floor=floor, copy=copy)
    name = f"window {side}x{side}, {codec}, warm" + (", one call" if how else "")
    note = f"copied within memory: {table.number(median['copy'])} ms"
    if side == 64 and not how:
        name += ", bind and pread"
        note += "; two requests: twice the floor before anything is done"
    if side == 2048:
        return table.Row(GROUP, name, median["window"], "ms", median["floor"], "trivial server, same bytes", note=note)
    floor_name = "trivial server, 1 byte" if side == 64 else "trivial server, same bytes"
    return table.at_most(GROUP, name, median["window"], "ms", median["floor"], floor_name, 2, note)
