"""Frames appended with fsync after each, and a stack copied frame by frame, beside sequential writes of fio: on a file
of the fastest disk there is, and on disks of known speeds."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

from mdfsbench import table
from mdfsbench.context import run, say

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mount"))
import throttled_disks  # noqa: E402

GROUP = "streaming"
FRAME = (2048, 4096)  # u8: 8 MiB
EXTENTS = ["8x128x128", "16x128x64", "32x64x64"]  # 128 KiB each
OF_DISK = 0.5
SMALL_CACHE = "cache=64M"  # a slab of 32 frames has 256 MiB
RATES = [1_000_000_000, 250_000_000]  # of slower disks, bytes a second
SPARE = 256 << 20


def rows(context):
    source = make_frames(context, 36 if context.quick else 68)
    size = source.stat().st_size
    with context.removed_after(source):
        rounds = 1 if context.quick else 2
        found = on_disk(context, source, None, 0, rounds)
        try:
            for rate in RATES:
                with throttled_disks.ThrottledDisks(1, 3 * size + SPARE, context.scratch) as disks:
                    found += on_disk(context, source, disks, rate, rounds)
        except throttled_disks.Unavailable as error:
            say(f"no slower disk: {error}")
    return found


def on_disk(context, source, disks, rate, rounds):
    """Rows of one disk: one throttled to a rate, or a file."""
    size = source.stat().st_size
    measured = {"fio, fsync": lambda: fio(context, disks, size, fsync_every=8),
                "fio": lambda: fio(context, disks, size)}
    for extent in EXTENTS:
        measured[extent] = lambda extent=extent: Volume(context, disks, source, extent).measure(append_frames)
    measured["cp"] = lambda: Volume(context, disks, source, EXTENTS[-1], SMALL_CACHE).measure(
        lambda source, image: copy_frames(context, source, image))
    found = {name: [] for name in measured}
    for _ in range(rounds):
        for name, measure in measured.items():
            of_rate = f", disk of {rate // 1_000_000} MB/s" if disks else ""
            say(name + of_rate)
            if disks:
                disks.throttle(rate, 0)
            found[name].append(measure())
    floor = statistics.median(found.pop("fio, fsync"))
    unsynced = statistics.median(found.pop("fio"))
    result = []
    for name, runs in found.items():
        beside = unsynced if name == "cp" else floor
        speed, written, consolidated = (statistics.median(values) for values in zip(*runs))
        title = (f"cp of frames, slabs of 256 MiB, {SMALL_CACHE}" if name == "cp" else
                 f"8 MiB frames appended, fsync after each, extents {name}")
        title += of_rate
        note = (f"{written:.2f} bytes written for one until then; "
                f"everything whole {consolidated:.1f} s after the last frame")
        result.append(table.Row(GROUP, title, speed, "MB/s", beside,
                                "fio, O_DIRECT" + ("" if name == "cp" else ", fsync every 8 MiB"),
                                f"at least {OF_DISK:g}x", speed >= OF_DISK * beside, note))
    return result


def make_frames(context, frames):
    """A file of frames that no codec makes smaller by much."""
    path = context.images / f"frames-{frames}.raw"
    if not path.exists():
        random = np.random.default_rng(7)
        with open(path, "wb") as file:
            for _ in range(frames):
                file.write(random.bytes(FRAME[0] * FRAME[1]))
    return path


def fio(context, disks, size, fsync_every=0):
    """MB/s of writing until it is on the disk."""
    file = disks.paths[0] if disks else context.new_path("fio")
    with context.removed_after(*([] if disks else [file])):
        text = run("fio", "--name=write", f"--filename={file}", "--rw=write", "--bs=256k", "--direct=1",
                   "--ioengine=libaio", "--iodepth=8", f"--size={size}", f"--fsync={4 * fsync_every}", "--end_fsync=1",
                   "--output-format=json")
    job = json.loads(text)["jobs"][0]
    return size / 1e6 / (job["job_runtime"] / 1e3)


class Volume:
    """A mounted volume on one disk, with an empty stack, and what has been written to that disk."""

    def __init__(self, context, disks, source, extent, options=""):
        self.context, self.disks, self.source, self.extent, self.options = context, disks, source, extent, options

    @contextlib.contextmanager
    def mounted(self):
        size = 3 * self.source.stat().st_size + SPARE
        made = (self.context.volume(self.disks.paths) if self.disks else
                self.context.volume([self.context.new_path("disk")], size=size))
        with made as disks, self.context.mounted(disks, self.options) as mnt:
            yield mnt

    def measure(self, store):
        """MB/s of what `store` does, bytes written for each byte of it, seconds until nothing is left in strips."""
        size = self.source.stat().st_size
        with self.mounted() as mnt:
            image = mnt / "stack"
            self.context.mdfs("image", "create", "--shape", f"0x{FRAME[0]}x{FRAME[1]}", "--type", "u8", "--codec",
                              "raw", "--extent", self.extent, image)
            daemon = daemon_of(mnt)
            before, begin = written_by(daemon), time.monotonic()
            store(self.source, image)
            seconds, written = time.monotonic() - begin, written_by(daemon) - before
            begin = time.monotonic()
            consolidated = wait_until_consolidated(self.context, image)
            if self.disks:
                self.disks.unthrottle()
            run("cmp", self.source, image)
            return size / 1e6 / seconds, written / size, consolidated - begin


def copy_frames(context, source, image):
    run("cp", source, image)
    context.mdfs("volume", "sync", image.parent)


def append_frames(source, image):
    bytes_of_frame = FRAME[0] * FRAME[1]
    with open(source, "rb", buffering=0) as frames:
        file = os.open(image, os.O_WRONLY)
        try:
            at = 0
            while frame := frames.read(bytes_of_frame):
                done = 0
                while done < len(frame):
                    done += os.pwrite(file, frame[done:done + (1 << 20)], at + done)
                os.fsync(file)
                at += len(frame)
        finally:
            os.close(file)


def daemon_of(mnt):
    """The process that serves a mount: the child of ours with its name in the arguments that has open disks."""
    found = run("pgrep", "-f", f"mount .*{mnt}$").split()
    return max((int(pid) for pid in found), key=lambda pid: len(os.listdir(f"/proc/{pid}/task")))


def written_by(pid):
    """Bytes that a process has sent to the disks."""
    with open(f"/proc/{pid}/io", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("write_bytes:"))


def wait_until_consolidated(context, image, limit_s=120):
    """The time when only the last slab, which is not full, has bytes in strips; or none that ends in time."""
    least, since = None, time.monotonic()
    deadline = since + limit_s
    while time.monotonic() < deadline:
        layout = json.loads(context.mdfs("image", "layout", "--json", image))
        strips = sum(place.get("strip", False) for place in layout["extents"])
        if strips != least:
            least, since = strips, time.monotonic()
        elif time.monotonic() - since > 4:
            break
        time.sleep(1)  # asking counts as work, which consolidation gives way to
    return since
