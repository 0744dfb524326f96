"""Streams at reserved rates on eight slow disks, beside two greedy readers, a greedy writer and a scrub: how many
frames are late, and how many of the same frames are without a reservation."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import pathlib
import subprocess
import sys

import numpy as np

from mdfsbench import table
from mdfsbench.context import Skip, say

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import throttled_disks  # noqa: E402

GROUP = "streams"
DISKS, RATE, IOPS = 8, 20_000_000, 200
SHAPE = (16384, 256, 512)  # t, y, x: 2 GiB
EXTENT = "1x128x128"  # a request of 16 KiB, which takes 5 ms
TILES = [(y, x) for y in (0, 128) for x in range(0, 512, 128)]
LIMIT = 0.8
STREAM_RATE = 100  # frames a second of each
SPARE = 512 << 20
OPTIONS = "cache=256M"
ALL_FRAMES = 100_000  # of all streams together
SENT_RATE = 100  # whole frames a second, 8 requests each: half of the disks' time
SENT_SECONDS = 60


def rows(context):
    frames = SHAPE[0] // 4 if context.quick else SHAPE[0]
    size = frames * SHAPE[1] * SHAPE[2]
    try:
        with throttled_disks.ThrottledDisks(DISKS, size // DISKS + SPARE, context.scratch) as disks, \
                context.volume(disks.paths):
            movie = store(context, disks, frames)
            disks.throttle(RATE, IOPS)
            return [row for case in (reserved, without, too_much, sent)
                    for row in case(context, disks, movie, frames)]
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error


def store(context, disks, frames):
    """The name of a movie on the volume."""
    say(f"storing a movie of {frames} frames")
    random = np.random.default_rng(5)
    with context.mounted(disks.paths, OPTIONS) as mnt:
        context.mdfs("image", "create", "--shape", "x".join(map(str, (frames, *SHAPE[1:]))), "--type", "u8", "--axes",
                     "tyx", "--codec", "raw", "--extent", EXTENT, mnt / "movie")
        with open(mnt / "movie", "r+b") as file:
            for _ in range(frames // 64):
                file.write(random.bytes(64 * SHAPE[1] * SHAPE[2]))
        context.mdfs("volume", "sync", mnt)
    return "movie"


def first_frame(index, frames):
    """Streams begin at different tiles and frames, so that none finds what another has read."""
    y, x = TILES[index % len(TILES)]
    return f"t{(index // len(TILES)) * frames // 2}+1,y{y}+128,x{x}+128"


@contextlib.contextmanager
def other_load(context, mnt):
    """Two readers, a writer and a scrub, each as fast as it gets."""
    code = """
import os, random, sys
path, kind = sys.argv[1:]
if kind == "write":
    data = os.urandom(4 << 20)
    while True:
        with open(path, "wb") as file:
            for _ in range(16):
                file.write(data)
            os.fsync(file.fileno())
fd = os.open(path, os.O_RDONLY)
size = os.fstat(fd).st_size
while True:
    os.pread(fd, 1 << 20, random.randrange(size - (1 << 20)))
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path), kind])
                 for path, kind in ((mnt / "movie", "read"), (mnt / "movie", "read"), (mnt / "written", "write"))]
    context.mdfs("scrub", "start", mnt)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
        subprocess.run([str(context.program("tools/mdfs")), "scrub", "cancel", str(mnt)], capture_output=True,
                       check=False)


def open_stream(context, movie, index, frames, rate, count, *words):
    """A client that takes `count` frames; None if it is refused, with the rate that would be accepted."""
    process = subprocess.Popen(
        [str(context.program("tools/mdfs")), "stream", "open", "--json", "--rate", f"{rate:.4f}", "--frames",
         str(count),
         "--window", first_frame(index, frames), *words, str(movie)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    listed = number_of_streams(context, movie)
    while process.poll() is None and number_of_streams(context, movie) == listed:
        pass
    if process.poll() is None:
        return process, None
    words = process.communicate()[1]
    return None, float(words.rsplit(" ", 1)[1]) if "has time for" in words else 0.0


def number_of_streams(context, path):
    return len(json.loads(context.mdfs("stream", "list", "--json", path))["streams"])


def fill_up(context, movie, frames, count):
    """Streams until the disks have no time for a further one; the processes, and their rates."""
    processes, rates = [], []
    while len(processes) < 2 * len(TILES):
        rate = STREAM_RATE
        process, fits = open_stream(context, movie, len(processes), frames, rate, count)
        if process is None and fits > 1:
            rate = fits * 0.999
            process, _ = open_stream(context, movie, len(processes), frames, rate, count)
        if process is None:
            break
        processes.append(process)
        rates.append(rate)
        if rate < STREAM_RATE:
            break
    return processes, rates


def outcome(processes):
    answers = [json.loads(process.communicate()[0]) for process in processes]
    return (sum(answer["in_time"] + answer["late"] for answer in answers), sum(answer["late"] for answer in answers),
            max(answer["latest_ms"] for answer in answers))


def frames_each(frames):
    return min(ALL_FRAMES // 12, frames // 2)


def reserved(context, disks, movie, frames):
    with context.mounted(disks.paths, f"{OPTIONS},streams={LIMIT}") as mnt:
        processes, rates = fill_up(context, mnt / movie, frames, frames_each(frames))
        total_rate = sum(rates)
        say(f"{len(rates)} streams with {total_rate:.0f} frames per second beside other load")
        with other_load(context, mnt):
            total, late, latest = outcome(processes)
    of_disks = DISKS * IOPS
    return [table.Row(GROUP, "rate that is accepted", total_rate, "/s", LIMIT * of_disks,
                      f"{LIMIT:g} of the disks' requests", "at least 0.85x", total_rate >= 0.85 * LIMIT * of_disks,
                      f"{len(rates)} streams of 128x128 samples"),
            table.Row(GROUP, "frames that are late, reserved", float(late), "", 0, "none", "none", late == 0,
                      f"of {total}; the latest {latest:.1f} ms behind its deadline")]


def without(context, disks, movie, frames):
    """The same frames by clients that read them ahead without a reservation."""
    count = frames_each(frames) // 4
    with context.mounted(disks.paths, OPTIONS) as mnt:
        rates = [STREAM_RATE] * int(LIMIT * DISKS * IOPS / STREAM_RATE)
        with other_load(context, mnt):
            processes = [subprocess.Popen(
                [str(context.program("bench/mount/paced_reader")), "--rate", str(rate), "--frames", str(count),
                 "--lookahead", "50", "--window", first_frame(index, frames), str(mnt / movie)],
                stdout=subprocess.PIPE, text=True) for index, rate in enumerate(rates)]
            total, late, latest = outcome(processes)
    return [table.Row(GROUP, "frames that are late, the same without reservation", float(late), "", None, "", "",
                      None, f"of {total}; the latest {latest / 1e3:.1f} s behind its deadline")]


def too_much(context, disks, movie, frames):
    """A stream that is refused, and is accepted by force all the same."""
    count = frames_each(frames) // 4
    with context.mounted(disks.paths, f"{OPTIONS},streams={LIMIT}") as mnt:
        processes, rates = fill_up(context, mnt / movie, frames, count)
        forced, _ = open_stream(context, mnt / movie, len(processes), frames, 0.5 * DISKS * IOPS, count, "--unchecked")
        total, late, latest = outcome([*processes, forced])
    return [table.Row(GROUP, "frames that are late, with a refused stream by force", float(late), "", None, "",
                      "some", late > 0, f"of {total}; the latest {latest:.0f} ms behind its deadline")]


def sent(context, disks, movie, frames):
    """Whole frames that a sender leaves out because they come late."""
    result = []
    count = min(SENT_RATE * SENT_SECONDS, frames // 2)
    for words, name in ((["--reserve"], "reserved"), ([], "the same without reservation")):
        with context.mounted(disks.paths, f"{OPTIONS},streams={LIMIT}") as mnt, other_load(context, mnt):
            say(f"sending {count} frames beside other load, {name}")
            # Port 9 of this machine: nobody listens.
            report = json.loads(context.mdfs("send", "--json", "--codec", "raw", "--fps", SENT_RATE, "--window",
                                             f"t1+{count}", "--to", "127.0.0.1:9", *words, mnt / movie))
        dropped = report["dropped"]
        promised = "none" if words else ""
        result.append(table.Row(GROUP, f"frames that mdfs send drops, {name}", float(dropped), "",
                                0 if words else None, promised, promised, dropped == 0 if words else None,
                                f"of {count} at {SENT_RATE}/s"))
    return result
