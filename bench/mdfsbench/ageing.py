"""A volume that has been written, rewritten and emptied for a long time beside a new one: in how many runs windows
lie, how fast they are read, what defragmentation brings, and what its readers feel.

The workload is that of a media store (half reads, half writes, a tenth of them at random places, up to 10 MB at a
time), by several writers at once: pictures are stored and removed, windows of them rewritten, frames appended to
movies, files written, until the volume has been turned over several times at 80 to 90 % full. Then it has a rest, until
no extent is left that may return to its place.
"""
# SPDX-License-Identifier: Apache-2.0
import fcntl
import json
import os
import pathlib
import random
import statistics
import struct
import sys
import threading
import time

from mdfsbench import table
from mdfsbench.context import Failed, Skip, say
from mdfsbench.scale import GEOMETRY, SET_GEOMETRY

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import throttled_disks  # noqa: E402

GROUP = "ageing"
RATE, IOPS = 20_000_000, 200  # of each disk, while windows are timed
DISKS = 8
SEED = 11
LOW, HIGH = 0.80, 0.90  # of the room for data
WRITERS = 4
PICTURE, EXTENT = (2048, 2048), (128, 128)  # samples of CHANNELS bytes
CHANNELS = 3
WINDOW = 1024
FRAME, FRAME_EXTENT, MOST_FRAMES = (512, 512), (8, 128, 128), 64
MOST_BYTES = 10 << 20
CACHE = "cache=32M,log=error"
U8, RAW = 1, 0
WINDOW_STRUCT = struct.Struct("<II5Q5QiIQII3Q")  # struct mdfs_ioc_window
BIND = (3 << 30) | (WINDOW_STRUCT.size << 16) | (0xD5 << 8) | 3
UNBIND = (0xD5 << 8) | 4
REST_S = 60
TIMES_FRESH, DEFRAGGED_FRESH = 0.90, 0.95


def make_image(path, shape, extent, channels):
    """An image of u8, raw, that takes no room yet; an open descriptor."""
    def five(values):
        return list(values) + [0] * (5 - len(values))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    fcntl.ioctl(fd, SET_GEOMETRY, GEOMETRY.pack(GEOMETRY.size, len(shape), U8, channels, RAW, 0, *five(shape),
                                                *five(extent), 0, b"", 0, 0, 0, 0, 0, b"", -1, -1, *[0] * 12))
    return fd


def bind(fd, start, length):
    """The bytes of the window."""
    def five(values):
        return list(values) + [0] * (5 - len(values))
    window = WINDOW_STRUCT.pack(WINDOW_STRUCT.size, len(start), *five(start), *five(length), -1, 0, 0, 0, 0, 0, 0, 0)
    return WINDOW_STRUCT.unpack(fcntl.ioctl(fd, BIND, window))[14]


def read_all(fd, count):
    done = 0
    while done < count:
        got = len(os.pread(fd, min(count - done, 1 << 20), done))
        if got == 0:
            raise Failed("a window ended early")
        done += got


class Content:
    """One thing on the volume."""

    def __init__(self, path, kind, size):
        self.path, self.kind, self.size = path, kind, size


class Ager:
    """Works on the volume until so many bytes have been written. What each writer does follows from its seed; how they
    interleave does not."""

    def __init__(self, mountpoint, room, turnovers):
        self.mountpoint, self.room, self.left = mountpoint, room, int(room * turnovers)
        self.lock = threading.Lock()
        self.contents, self.stored, self.serial, self.written, self.steps = [], 0, 0, 0, 0
        self.error = None
        self.noise = os.urandom(16 << 20)

    def run(self):
        threads = [threading.Thread(target=self.work, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.error:
            raise self.error

    def work(self, number):
        rng = random.Random(SEED * 1000 + number)
        try:
            while self.left > self.written and self.error is None:
                with self.lock:
                    self.steps += 1
                    full = self.stored / self.room
                    victim = self.contents.pop(rng.randrange(len(self.contents))) if full > HIGH else None
                if victim:
                    self.remove(victim)
                elif full < LOW:
                    self.create(rng)
                elif rng.random() < 0.5:
                    self.read(rng)
                else:
                    self.change(rng)
        except OSError as error:
            self.error = error

    def remove(self, content):
        os.unlink(content.path)
        with self.lock:
            self.stored -= content.size

    def note(self, grown, written):
        with self.lock:
            self.stored += grown
            self.written += written

    def some_bytes(self, rng, count):
        at = rng.randrange(len(self.noise))
        piece = self.noise[at:at + count]
        while len(piece) < count:
            piece += self.noise[:count - len(piece)]
        return piece

    def write(self, rng, fd, offset, count):
        """In blocks of 4 KiB to 1 MiB, as they come."""
        block = 4096 << rng.randrange(9)
        for at in range(0, count, block):
            os.pwrite(fd, self.some_bytes(rng, min(block, count - at)), offset + at)

    def create(self, rng):
        with self.lock:
            self.serial += 1
            path = self.mountpoint / f"{self.serial:06}"
        kind = rng.choices(["picture", "movie", "file"], [5, 2, 3])[0]
        if kind == "picture":
            size = PICTURE[0] * PICTURE[1] * CHANNELS
            fd = make_image(path, PICTURE, EXTENT, CHANNELS)
        elif kind == "movie":
            size = 8 * FRAME[0] * FRAME[1]
            fd = make_image(path, (0, *FRAME), FRAME_EXTENT, 1)
        else:
            size = rng.randrange(4096, MOST_BYTES)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        with self.lock:
            self.stored += size
        self.write(rng, fd, 0, size)
        if rng.random() < 0.1:
            os.fsync(fd)
        os.close(fd)
        with self.lock:
            self.written += size
            self.contents.append(Content(path, kind, size))

    def take(self, rng):
        """One of the contents, away from the others meanwhile; None if there is none."""
        with self.lock:
            return self.contents.pop(rng.randrange(len(self.contents))) if self.contents else None

    def give_back(self, content):
        with self.lock:
            self.contents.append(content)

    def read(self, rng):
        content = self.take(rng)
        if content is None:
            return
        fd = os.open(content.path, os.O_RDONLY)
        offset = 0 if rng.random() < 0.9 else rng.randrange(content.size)
        os.pread(fd, rng.randrange(4096, 1 << 20), offset)
        os.close(fd)
        self.give_back(content)

    def change(self, rng):
        draw = rng.random()
        content = self.take(rng) if draw < 0.8 else None
        if content is None:
            # Room for something new is made first, so that the volume is turned over and not only changed.
            victim = self.take(rng)
            if victim:
                self.remove(victim)
            return self.create(rng)
        fd = os.open(content.path, os.O_RDWR)
        if content.kind == "picture":
            length = [rng.randrange(1, PICTURE[0] // 3) for _ in PICTURE]
            start = [rng.randrange(side - more) for side, more in zip(PICTURE, length)]
            count = bind(fd, start, length)
            self.write(rng, fd, 0, count)
            self.note(0, count)
        elif content.kind == "movie" and content.size < MOST_FRAMES * FRAME[0] * FRAME[1]:
            count = rng.randrange(1, 5) * FRAME[0] * FRAME[1]
            self.write(rng, fd, content.size, count)
            content.size += count
            self.note(count, count)
        else:
            count = rng.randrange(1, content.size)
            offset = rng.randrange(content.size - count) if rng.random() < 0.1 else 0
            self.write(rng, fd, offset, count)
            self.note(0, count)
        if rng.random() < 0.1:
            os.fsync(fd)
        os.close(fd)
        self.give_back(content)


class Reader:
    """Times windows of pictures, each of which has left the cache since it was last read."""

    def __init__(self, pictures, seed):
        self.pictures, self.rng = pictures, random.Random(seed)

    def one(self):
        fd = os.open(self.pictures[self.rng.randrange(len(self.pictures))], os.O_RDONLY)
        try:
            start = [self.rng.randrange(side - WINDOW) for side in PICTURE]
            begin = time.monotonic()
            read_all(fd, bind(fd, start, [WINDOW, WINDOW]))
            return time.monotonic() - begin
        finally:
            os.close(fd)

    def times(self, count):
        return [self.one() for _ in range(count)]

    def times_until(self, ended):
        found = []
        while not ended():
            found.append(self.one())
        return found


def rate(times):
    """MB/s of windows."""
    return WINDOW * WINDOW * CHANNELS / statistics.mean(times) / 1e6


def p99(times):
    return sorted(times)[int(0.99 * (len(times) - 1))] * 1e3


def fragmentation(context, mountpoint):
    return json.loads(context.mdfs("volume", "status", "--json", mountpoint))["fragmentation"]


def stored_overhead(mountpoint, stored):
    state = os.statvfs(mountpoint)
    used = (state.f_blocks - state.f_bfree) * state.f_frsize
    return used / stored


def rest(context, mountpoint):
    """Nobody reads or writes until rewritten extents have relocated home, REST_S at most."""
    begin = time.monotonic()
    before = fragmentation(context, mountpoint)
    while fragmentation(context, mountpoint)["away_from_home"] > 0 and time.monotonic() - begin < REST_S:
        time.sleep(0.1)
    found = fragmentation(context, mountpoint)
    say(f"{before['relocated_home']} extents had relocated home while others wrote, {found['relocated_home']} "
        f"({found['relocated_home_bytes'] / 1e6:.0f} MB) after a rest of {time.monotonic() - begin:.1f} s")


def aged(context, disks, turnovers, options):
    """Ages the volume; its pictures and the bytes that it holds."""
    with context.mounted(disks.paths, options) as mnt:
        state = os.statvfs(mnt)
        ager = Ager(mnt, state.f_bavail * state.f_frsize, turnovers)
        ager.run()
        context.mdfs("volume", "sync", mnt)
        pictures = sorted(content.path.name for content in ager.contents if content.kind == "picture")
        say(f"{ager.steps} steps, {ager.written / ager.room:.1f} times its room written, {len(ager.contents)} things, "
            f"{len(pictures)} pictures, {ager.stored / ager.room:.0%} full")
        overhead = stored_overhead(mnt, ager.stored)
        rest(context, mnt)
    if len(pictures) < 2:
        raise Failed("ageing left no pictures to read")
    return pictures, overhead


def timed(context, disks, pictures, count):
    """Windows after a fresh mount, on throttled disks."""
    disks.throttle(RATE, IOPS)
    try:
        with context.mounted(disks.paths, CACHE) as mnt:
            reader = Reader([mnt / name for name in pictures], SEED)
            reader.times(DISKS)
            times = reader.times(count)
            return times, fragmentation(context, mnt)
    finally:
        disks.unthrottle()


def fresh(context, disks, pictures):
    """As many pictures stored one after another on a new volume."""
    noise = os.urandom(PICTURE[0] * PICTURE[1] * CHANNELS)
    with context.mounted(disks.paths, CACHE) as mnt:
        for name in pictures:
            fd = make_image(mnt / name, PICTURE, EXTENT, CHANNELS)
            for at in range(0, len(noise), 1 << 20):
                os.pwrite(fd, noise[at:at + (1 << 20)], at)
            os.close(fd)


def rows(context):
    size = (96 if context.quick else 256) << 20
    turnovers, count = (3, 300) if context.quick else (6, 400)
    found = []
    try:
        with throttled_disks.ThrottledDisks(DISKS, size, context.scratch) as disks:
            found = on_disks(context, disks, turnovers, count)
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error
    return found


def on_disks(context, disks, turnovers, count):
    with context.volume(disks.paths):
        say(f"ageing a volume of {DISKS} disks, grouping off")
        off_pictures, _ = aged(context, disks, turnovers, f"{CACHE},no_grouping")
        off, off_fragmentation = timed(context, disks, off_pictures, count)
    with context.volume(disks.paths):
        say("ageing, grouping on")
        pictures, overhead = aged(context, disks, turnovers, CACHE)
        on, on_fragmentation = timed(context, disks, pictures, count)
        say("defragmentation beside a reader")
        during, report = defragmented(context, disks, pictures)
        after, after_fragmentation = timed(context, disks, pictures, count)
    with context.volume(disks.paths):
        say("the same pictures on a new volume")
        fresh(context, disks, pictures)
        new, new_fragmentation = timed(context, disks, pictures, count)
    return as_rows(locals())


def defragmented(context, disks, pictures):
    """Defragments with the disks as slow as they are for readers, beside a reader; its times, and the report."""
    disks.throttle(RATE, IOPS)
    try:
        with context.mounted(disks.paths, CACHE) as mnt:
            context.mdfs("defrag", "start", mnt, "--threshold", "1.02")
            state = {"state": "running"}
            looked = [0.0]

            def ended():
                if time.monotonic() - looked[0] > 0.5:
                    looked[0] = time.monotonic()
                    state.update(json.loads(context.mdfs("defrag", "status", "--json", mnt)))
                return state["state"] != "running"

            times = Reader([mnt / name for name in pictures], SEED + 1).times_until(ended)
            if state["state"] != "done":
                raise Failed(f"defragmentation: {state}")
            return times, state
    finally:
        disks.unthrottle()


def as_rows(found):
    new, on, off, after = (rate(found[name]) for name in ("new", "on", "off", "after"))
    window = f"windows of {WINDOW}x{WINDOW} of aged pictures, {DISKS} disks"

    def runs(name):
        return found[f"{name}_fragmentation"]["runs_per_disk"]

    return [
        table.Row(GROUP, f"{window}, new volume", new, "MB/s", note=f"{runs('new'):.2f} runs on a disk"),
        table.Row(GROUP, f"{window}, grouping on", on, "MB/s", new, "new volume",
                  f"at least {TIMES_FRESH:g}x", on >= TIMES_FRESH * new,
                  f"{runs('on'):.2f} runs on a disk, fragmentation {found['on_fragmentation']['factor']:.2f}"),
        table.Row(GROUP, f"{window}, grouping off", off, "MB/s", new, "new volume",
                  note=f"{runs('off'):.2f} runs on a disk, fragmentation {found['off_fragmentation']['factor']:.2f}"),
        table.Row(GROUP, f"{window}, defragmented", after, "MB/s", new, "new volume",
                  f"at least {DEFRAGGED_FRESH:g}x", after >= DEFRAGGED_FRESH * new,
                  f"{runs('after'):.2f} runs on a disk, fragmentation {found['after_fragmentation']['factor']:.2f}; "
                  f"{found['report']['moved_bytes'] / 1e6:.0f} MB moved in {found['report']['work_s']:.0f} s"),
        table.Row(GROUP, "p99 of these windows during defragmentation", p99(found["during"]), "ms", p99(found["on"]),
                  "before it", note=f"{len(found['during'])} windows"),
        table.Row(GROUP, "space used for a byte stored, aged", found["overhead"], "x"),
    ]
