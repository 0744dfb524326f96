"""The simulator beside a mount: the same windows predicted and read, on modelled disks and on throttled ones."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import sys

from mdfsbench import table
from mdfsbench.context import Failed, Skip, run, say
from mdfsbench.warm import picture

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import throttled_disks  # noqa: E402

GROUP = "simulator"
DISKS = [1, 2, 4, 8]
MACHINES = ["gigaview-t800", "gigaview-t9000-000"]
WITHIN = 0.1
# Of all throttled disks together, without a limit of requests, whose cost no straight line describes. The throttle lets
# bytes through in portions, ten a second: only windows that take longer than that see disks of a constant rate.
RATE = 4_000_000
SIZES = "16K,64K,128K,256K"  # the throttle is exact for these, over several portions
BATCH = "1 s"
WINDOWS = "256x256,512x512,1024x1024"
LONG_WINDOWS = "512x512,1024x1024,1536x1536"
SPARE = 256 << 20
# Disks whose rate falls by half from their beginning to their end, and cost nothing else.
ZONES = """
name = "zones"
[[resource]]
name = "disk"
count = "disks"
head = { track = "0 s", stroke = "0 s", rotation = "0 s", capacity = "4 TB" }
[[stage]]
name = "read"
resource = "disk"
cost = "full / 20 MB/s .. 10 MB/s"
"""
FULL = 0.77  # before the last images, which take the volume to 0.9
IMAGES = 4  # one lies in few groups: where those fall is random


def rows(context):
    found = []
    for machine in MACHINES[:1] if context.quick else MACHINES:
        counts = [1, 8] if context.quick else DISKS
        say(f"{machine}: windows on modelled disks")
        out = compare(context, machine, "--disk-counts", ",".join(map(str, counts)), "--windows",
                      5 if context.quick else 15, "--shape", "8192x8192", "--scratch", context.scratch, "--sizes",
                      "512x512" if context.quick else WINDOWS)
        found += [judged(f"{machine}, k={row['disks']}, {row['size']}", row) for row in out["rows"]]
    found.append(on_filled_disks(context))
    try:
        found += on_throttled_disks(context)
    except throttled_disks.Unavailable as error:
        if not found:
            raise Skip(str(error)) from error
        say(f"SKIPPED throttled disks: {error}")
    return found


def compare(context, *words):
    """What `mdfs-sim compare` says; its exit status is 1 too where the means lie far apart."""
    command = [str(context.program("tools/mdfs-sim")), "compare", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def judged(name, row):
    note = (f"{row['windows']} windows of {table.number(row['window_bytes'] / 1e6)} MB, extents {row['extent']}, "
            f"ratio {row['ratio']:.3f} +- {row['ratio_half_width_95']:.3f}")
    return table.Row(GROUP, name, row["measured_s"] * 1e3, "ms", row["simulated_s"] * 1e3, "simulated",
                     f"within {WITHIN:.0%}", abs(row["ratio"] - 1) <= WITHIN, note)


def on_filled_disks(context):
    """Windows of images that came when the volume was nearly full, beside those of images that came first."""
    machine = context.new_path("zones.toml")
    machine.write_text(ZONES)
    paths = [context.new_path("disk") for _ in range(4)]
    with context.volume(paths, size=400 << 20, sparse=True) as disks:
        with context.mounted(disks, "cache=64M") as mnt:
            noise_images(context, mnt, "first")
        first = rate_of(context, disks, machine, "first")
        say("filling a volume of disks with zones")
        with context.mounted(disks, "cache=64M") as mnt:
            while used(mnt) < FULL:
                (mnt / f"file{used(mnt)}").write_bytes(os.urandom(32 << 20))
                context.mdfs("volume", "sync", mnt)
            noise_images(context, mnt, "last")
            context.mdfs("volume", "sync", mnt)
            share = used(mnt)
        last = rate_of(context, disks, machine, "last")
    return table.Row(GROUP, "windows on modelled disks with zones, nearly full", last, "MB/s", first, "when empty",
                     "at least 0.9x", last >= 0.9 * first, f"{share:.0%} full; the disks' ends have half the rate")


def used(mnt):
    figures = os.statvfs(mnt)
    return 1 - figures.f_bavail / figures.f_blocks


def noise_images(context, mnt, name):
    for i in range(IMAGES):
        path = mnt / f"{name}{i}"
        context.mdfs("image", "create", "--shape", "4096x4096", "--channels", 3, "--codec", "raw", "--extent",
                     "128x128", path)
        with open(path, "r+b") as file:
            for _ in range(48):
                file.write(os.urandom(1 << 20))


def rate_of(context, disks, machine, name):
    with context.mounted(disks, f"cache=256M,noatime,model={machine}") as mnt:
        rows = [compare(context, machine, mnt / f"{name}{i}", "--size", "1024x1024", "--windows", 10, "--warm-up",
                        0)["rows"][0] for i in range(IMAGES)]
    return sum(row["window_bytes"] for row in rows) / sum(row["measured_s"] for row in rows) / 1e6


def on_throttled_disks(context):
    source = picture(context)
    found = []
    for k in [1, 8] if context.quick else DISKS:
        with throttled_disks.ThrottledDisks(k, (source.bytes * 3 // 2) // k + SPARE, context.scratch) as disks:
            found += on_disks(context, source, disks, k)
    return found


def on_disks(context, source, disks, k):
    with context.volume(disks.paths):
        say(f"storing the picture on {k} disks")
        with context.mounted(disks.paths) as mnt:
            context.mdfs("image", "import", "--quiet", "--codec", "raw", *context.extent, source.npy, mnt / "picture")
        disks.throttle(RATE // k, 0)
        machine = context.new_path("measured.toml")
        say("measuring a disk")
        run(context.program("tools/mdfs-sim"), "calibrate", disks.paths[0], "--sizes", SIZES, "--batch", BATCH,
            "--reads", 2 if context.quick else 5, "--disks", k, "-o", machine)
        say(f"windows on {k} throttled disks")
        with context.mounted(disks.paths, "noatime") as mnt:
            out = compare(context, machine, mnt / "picture", "--windows", 5 if context.quick else 20,
                          "--sizes", "1024x1024" if context.quick else LONG_WINDOWS)
        disks.unthrottle()
    return [judged(f"throttled loop disks, calibrated, k={k}, {row['size']}", row) for row in out["rows"]]
