"""Second copies on slow disks: what they cost a writer, what they give readers, and how a lost disk is rebuilt."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import time

from mdfsbench import many, readers, table
from mdfsbench.cold import SPARE, throttled_disks
from mdfsbench.context import Skip, run, say
from mdfsbench.readers import Mdfs
from mdfsbench.warm import picture

GROUP = "copies"
DISKS, RATE, IOPS = 8, 20_000_000, 200
LEAST_IMPORT, MOST_HEALTHY, MOST_DEGRADED, LEAST_REBUILD = 0.47, 1.02, 1.25, 0.8
WINDOWS, WARMUP, CLIENT_WINDOWS = 200, 6, 10
FRAME_SIDE, FRAMES, LEAST_FRAMES = 1024, 64, 0.47


def rows(context):
    source = picture(context)
    readers.library(context.program("lib/libmdfs.so"))
    try:
        with throttled_disks.ThrottledDisks(DISKS, source.bytes * 3 // DISKS + SPARE, context.scratch) as disks:
            with context.volume(disks.paths):
                return on_disks(context, source, disks)
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error


def on_disks(context, source, disks):
    say(f"storing the picture on {DISKS} slow disks, with one copy and with two")
    seconds, frames = {}, {}
    with context.mounted(disks.paths) as mnt:
        for name in ("once", "twice"):
            (mnt / name).mkdir()
        context.mdfs("image", "protect", mnt / "twice", "copies=2")
        disks.throttle(RATE, 0)
        for name in ("once", "twice"):
            begin = time.monotonic()
            context.mdfs("image", "import", "--quiet", "--codec", "raw", source.npy, mnt / name / "picture")
            context.mdfs("volume", "sync", mnt)
            seconds[name] = time.monotonic() - begin
            frames[name] = append_frames(context, mnt / name / "frames")
    rate = {name: source.bytes / taken / 1e6 for name, taken in seconds.items()}
    found = [at_least("import with two copies", rate["twice"], "MB/s", rate["once"], "one copy", LEAST_IMPORT),
             at_least("frames appended with fsync, two copies", frames["twice"], "/s", frames["once"], "one copy",
                      LEAST_FRAMES)]
    disks.throttle(RATE, IOPS)
    mean = {name: windows(context, source, disks, disks.paths, name) for name in ("once", "twice")}
    found.append(table.at_most(GROUP, "512x512, cold, two copies", mean["twice"], "ms", mean["once"], "one copy",
                               MOST_HEALTHY))
    found.append(clients(context, source, disks))
    disks.unthrottle()
    return found + without_a_disk(context, source, disks, mean["twice"])


def at_least(name, value, unit, floor, floor_name, times):
    return table.Row(GROUP, name, value, unit, floor, floor_name, f"at least {times:g}x", value >= times * floor)


def append_frames(context, path):
    """Frames a second, each of 1 MiB and synced."""
    say(f"{FRAMES} frames appended to {path.name}")
    context.mdfs("image", "create", "--shape", f"0x{FRAME_SIDE}x{FRAME_SIDE}", "--codec", "raw", path)
    frame = os.urandom(FRAME_SIDE * FRAME_SIDE)
    begin = time.monotonic()
    with open(path, "ab", buffering=0) as file:
        for _ in range(FRAMES):
            file.write(frame)
            os.fsync(file.fileno())
    taken = time.monotonic() - begin
    path.unlink()
    return FRAMES / taken


def windows(context, source, disks, paths, name):
    """ms of a window, after a fresh mount."""
    count, warmup = (8, 1) if context.quick else (WINDOWS, WARMUP)
    say(f"{count} cold windows of the picture that is stored {name}")
    with context.mounted(paths) as mnt:
        return context.time_reads(mnt / name / "picture", "--window", "512x512", "--count", count, "--warmup", warmup,
                                  "--apart", 256, "--source", source.raw)["mean_ms"]


def clients(context, source, disks):
    wanted = many.windows_apart(source, 1 if context.quick else CLIENT_WINDOWS)
    rate = {}
    for name in ("once", "twice"):
        say(f"{len(wanted)} clients of the picture that is stored {name}")
        with context.mounted(disks.paths) as mnt:
            rate[name], _ = many.run_clients(Mdfs, mnt / name / "picture", source, wanted, many.MOST_SECONDS)
    return at_least(f"{len(wanted)} processes, windows 512x512, cold, two copies", rate["twice"], "/s", rate["once"],
                    "one copy", 1)


def without_a_disk(context, source, disks, healthy):
    disks.lose(DISKS - 1)
    disks.throttle(RATE, IOPS)
    degraded = windows(context, source, disks, disks.paths, "twice")
    found = [table.at_most(GROUP, "512x512, cold, two copies, a disk lost", degraded, "ms", healthy, "all disks",
                           MOST_DEGRADED)]
    disks.throttle(RATE, 0)
    say("rebuild of the lost disk")
    with context.mounted(disks.paths) as mnt:
        begin = time.monotonic()
        done = json.loads(run(context.program("tools/mdfs"), "disk", "rebuild", "--json", mnt))
        rate = done["written_bytes"] / (time.monotonic() - begin) / 1e6
    disks.unthrottle()
    # Each byte is read once and written once, and the throttle counts reads and writes apart.
    found.append(at_least("rebuild of a lost disk", rate, "MB/s", len(disks.paths) * RATE / 1e6,
                          "all other disks busy", LEAST_REBUILD))
    return found
