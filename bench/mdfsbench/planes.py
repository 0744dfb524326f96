"""Planes of a volume, frames and time series of a movie: warm and cold, on one fast disk."""
# SPDX-License-Identifier: Apache-2.0
import statistics

from mdfsbench import images, table
from mdfsbench.context import say
from mdfsbench.warm import picture

GROUP = "planes"
MOST_APART_WARM = 3  # the slowest plane against the fastest
# name, window, how many warm (at most 180 MB of extents); cold: how many at each mount, and how many samples apart
VOLUME_CASES = [("plane xy", "1x0x0", 4, 2, 64), ("plane xz", "0x1x0", 4, 2, 64), ("plane yz", "0x0x1", 8, 2, 64)]
MOVIE_CASES = [("frame", "1x0x0", 12, 4, 4), ("256x256 over all frames", "0x256x256", 3, 1, 0)]
COLD_MOUNTS = 6


def rows(context):
    volume_shape = (192, 192, 192) if context.quick else (768, 768, 768)
    movie_shape = (32, 720, 1280, 3) if context.quick else (132, 720, 1280, 3)
    say("making the volume and the movie")
    sources = {"volume": images.make(context.images, "volume", volume_shape),
               "movie": images.make(context.images, "movie", movie_shape)}
    axes = {"volume": "zyx", "movie": "tyxc"}
    still = picture(context)
    found = []
    disk_bytes = (sum(source.bytes for source in sources.values()) + still.bytes) * 3 // 2 + (256 << 20)
    with context.volume([context.new_path("disk")], size=disk_bytes) as disks:
        with context.mounted(disks) as mnt:
            for name, source in sources.items():
                context.mdfs("image", "import", "--quiet", "--codec", "raw", "--axes", axes[name], source.npy,
                             mnt / name)
            context.mdfs("image", "import", "--quiet", "--codec", "raw", still.npy, mnt / "picture")
        for name, cases in (("volume", VOLUME_CASES), ("movie", MOVIE_CASES)):
            for case, window, warm_count, cold_count, apart in cases:
                found.append(warm(context, disks, sources[name], name, case, window, warm_count))
                found += cold(context, disks, sources[name], name, case, window, cold_count, apart)
        found += cold(context, disks, still, "picture", "512x512", "512x512", 8, 256)
        found.append(again(context, disks, still))
    return found + [evenness(found)]


def warm(context, disks, source, image, case, window, count):
    say(f"{image}, {case}, warm")
    common = ["--window", window, "--count", count, "--warm", "--source", source.raw]
    with context.mounted(disks) as mnt:
        median = context.alternate(
            2 if context.quick else 5,
            window=lambda: context.time_reads(mnt / image, *common)["median_ms"],
            copy=lambda: context.time_reads(mnt / image, "--memory", *common)["median_ms"])
    return table.Row(GROUP, f"{image} {'x'.join(map(str, source.shape))}, {case}, warm", median["window"], "ms",
                     median["copy"], "copy within memory")


def cold(context, disks, source, image, case, window, count, apart):
    say(f"{image}, {case}, cold")
    times, floors, cpu = [], [], []
    for seed in range(1 if context.quick else COLD_MOUNTS):
        with context.mounted(disks) as mnt:
            before = context.daemon_cpu_ms()
            timed = context.time_reads(mnt / image, "--window", window, "--count", count, "--apart", apart, "--seed",
                                       seed, "--iops", 1, "--source", source.raw)
            cpu.append((context.daemon_cpu_ms() - before) / count)
        times.append(timed["mean_ms"])
        floors.append(context.time_reads(source.npy, "--direct", "--bytes", timed["bytes"], "--count", 4, "--seed",
                                         seed)["mean_ms"])
    name = f"{image} {'x'.join(map(str, source.shape))}, {case}, cold"
    return [table.Row(GROUP, name, statistics.mean(times), "ms", statistics.mean(floors),
                      "one contiguous O_DIRECT read"),
            table.Row(GROUP, f"{name}, processor time of the daemon", statistics.mean(cpu), "ms")]


def again(context, disks, source):
    """Windows whose extents fit into the default cache, but not into 256 MiB."""
    count = 40 if context.quick else 400
    say(f"picture, {count} windows, again")
    medians = []
    for options in ("", "cache=256M"):
        with context.mounted(disks, options) as mnt:
            medians.append(context.time_reads(mnt / "picture", "--window", "512x512", "--count", count, "--warm",
                                              "--source", source.raw)["median_ms"])
    return table.Row(GROUP, f"picture, {count} windows 512x512 again, default cache", medians[0], "ms", medians[1],
                     "with cache=256M")


def evenness(found):
    times = [row.value for row in found if ", plane " in row.name and row.name.endswith("warm")]
    worst = max(times) / min(times)
    return table.Row(GROUP, "slowest plane against the fastest, warm", worst, "x", target=f"at most {MOST_APART_WARM}x",
                     met=worst <= MOST_APART_WARM)
