"""btrfs raid1 and raid10 on the throttled disks of `protect`: what MDFS is compared with.

The image is a plain file, row by row. The disk that is lost is the one that holds most: raid1 fills two disks at a
time.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import statistics
import subprocess
import time

import numpy as np

from mdfsbench import figures, many, readers, timed
from mdfsbench.cold import throttled_disks
from mdfsbench.context import run, say
from mdfsbench.peers import boxes_apart
from mdfsbench.readers import RowMajor

PROFILES = ["raid1", "raid10"]
WINDOWS, WRITTEN = {64: 12, 512: 4}, {64: 10, 512: 3}  # a row takes 5 ms of a disk of 200 requests a second
CLIENT_WINDOWS = 1
PAGE = 4096  # of which the kernel reads whole ones
READER_S = 8  # of a reader, without a replace and beside it
WORK_S = 15  # of a replace or a device remove that is timed; it ends without a throttle


class Raid:
    """A filesystem over all disks but the last, which is the spare one. Used as `with Raid(...) as raid`."""

    def __init__(self, context, disks, profile):
        self.context, self.disks, self.profile = context, disks, profile
        self.members, self.spare = list(disks.paths[:-1]), disks.paths[-1]
        self.numbers = {device: number for number, device in enumerate(self.members, 1)}
        self.mountpoint, self.options = context.new_path("btrfs"), []

    def __enter__(self):
        self.mountpoint.mkdir()
        try:
            run("mkfs.btrfs", "--quiet", "--force", "--data", self.profile, "--metadata", self.profile, *self.members)
            self.empty = {device: throttled_disks.written_bytes(device) for device in self.members}
            self.mount()
        except BaseException:
            self.mountpoint.rmdir()
            raise
        return self

    def mount(self):
        options = ",".join(["noatime", *self.options, *(f"device={device}" for device in self.members)])
        run("mount", "-t", "btrfs", "-o", options, self.members[0], self.mountpoint)

    def forget(self):
        """Empties its caches, and writes what is dirty."""
        run("umount", self.mountpoint)
        self.mount()

    def fullest(self):
        """The member to which most has been written since the filesystem was made."""
        return max(self.members, key=lambda device: throttled_disks.written_bytes(device) - self.empty.get(device, 0))

    def lose(self, device):
        """Mounted without this device; its number."""
        run("umount", self.mountpoint)
        run("btrfs", "device", "scan", "--forget", device)
        self.disks.lose(self.disks.paths.index(device))
        self.members.remove(device)
        self.options = ["degraded"]
        self.mount()
        return self.numbers[device]

    def replace(self, number):
        """The work that fills the spare disk with what the lost one had."""
        return timed.Work("btrfs", "replace", "start", "-B", "-f", number, self.spare, self.mountpoint,
                          cancel=["btrfs", "replace", "cancel", self.mountpoint])

    def was_replaced(self, number):
        self.members.append(self.spare)
        self.numbers[self.spare], self.options = number, []

    def give_up_the_lost(self):
        """The work that makes the pieces of the lost disk anew on the others."""
        return timed.Work("btrfs", "device", "remove", "missing", self.mountpoint,
                          cancel=["btrfs", "device", "remove", "cancel", self.mountpoint])

    def __exit__(self, *_):
        # What is dirty is written at once, not at the rate of the disks.
        self.disks.unthrottle()
        if subprocess.run(["umount", str(self.mountpoint)], capture_output=True, check=False).returncode != 0:
            subprocess.run(["umount", "--lazy", str(self.mountpoint)], capture_output=True, check=False)
        with contextlib.suppress(OSError):  # it was not mounted lazily for nothing
            self.mountpoint.rmdir()
        for device in self.disks.paths:
            subprocess.run(["btrfs", "device", "scan", "--forget", device], capture_output=True, check=False)


def measure(context, source, small, disks, profile):
    """The figures of one profile. The lost devices are there again at the end."""
    found = figures.Figures(f"btrfs {profile}")
    with Raid(context, disks, profile) as raid:
        stored(context, source, small, raid, found)
        disks.throttle(*figures.WINDOWS)
        found.windows = windows(context, source, raid, found.name)
        found.clients_s = clients(context, source, raid, found.name)
        number = raid.lose(raid.fullest())
        found.degraded = windows(context, source, raid, f"{found.name}, a disk lost")
        disks.throttle(*figures.BULK)
        lost_bytes = replaced(source, raid, number, found)
        raid.lose(raid.spare)
        disks.throttle(*figures.BULK)
        found.rebuild_mb_s = removed(raid, lost_bytes, found.name)
    disks.bring_back()
    return found


def stored(context, source, small, raid, found):
    """The import, frames and windows that are written and synced."""
    small_image, image = raid.mountpoint / "small", raid.mountpoint / "picture"
    run("cp", small.raw, small_image)
    raid.forget()
    raid.disks.throttle(*figures.BULK)
    say(f"{found.name}: storing the picture")
    found.import_mb_s = source.bytes / 1e6 / figures.clock(
        lambda: (run("cp", source.raw, image), run("sync", "-f", image)))
    found.frames_s = figures.append_synced(raid.mountpoint / "frames")
    (raid.mountpoint / "frames").unlink()
    raid.disks.throttle(*figures.WINDOWS)
    for side in figures.SIDES:
        say(f"{found.name}: windows of {side}x{side}, written and synced")
        wanted = figures.written_boxes(context, small, side)[:WRITTEN[side]]
        raid.forget()
        found.written[side] = statistics.mean(timed.written_ms(RowMajor, small_image, small, wanted))
        raid.disks.unthrottle()
        raid.forget()
        timed.check_written(RowMajor, small_image, small, wanted)
        raid.disks.throttle(*figures.WINDOWS)


def windows(context, source, raid, name):
    found = {}
    for side in figures.SIDES:
        say(f"{name}: windows of {side}x{side}, cold")
        raid.forget()
        wanted = boxes_apart(source, side, 2 if context.quick else WINDOWS[side])
        found[side] = statistics.mean(timed.cold_ms(RowMajor, raid.mountpoint / "picture", source, wanted))
    return found


def clients(context, source, raid, name):
    wanted = many.windows_apart(source, CLIENT_WINDOWS)
    say(f"{name}: {len(wanted)} clients")
    raid.forget()
    return many.run_clients(RowMajor, raid.mountpoint / "picture", source, wanted, many.MOST_SECONDS)[0]


def replaced(source, raid, number, found):
    """The bytes that the new disk gets. The rate is that of the replace when its reader has ended."""
    boxes = pages_apart(source)
    alone, beside = boxes[::2], boxes[1::2]
    image = raid.mountpoint / "picture"
    say(f"{found.name}: a reader without a replace, then beside it")
    raid.forget()
    found.alone_ms = timed.read_while(RowMajor, image, source, alone, timed.until(READER_S))

    def written():
        return throttled_disks.written_bytes(raid.spare)

    before = written()
    with raid.replace(number) as work:
        enough, begin = timed.until(READER_S), time.monotonic()
        found.beside_ms = timed.read_while(RowMajor, image, source, beside, lambda: work.is_running() and enough())
        found.beside_mb_s = (written() - before) / (time.monotonic() - begin) / 1e6
        part, seconds = some_time(work, written)
        found.replace_mb_s = part / seconds / 1e6
        raid.disks.unthrottle()
        work.seconds()
    raid.was_replaced(number)
    return written() - before


def pages_apart(source):
    """Windows of the reader of which no two share a page of the file, so that each is cold."""
    height, width, channels = source.shape
    across = width // -(-(figures.READER_SIDE * channels + PAGE) // channels)
    down = height // figures.READER_SIDE
    chosen = np.random.default_rng(5).permutation(across * down)
    corners = [(int(at) // across * figures.READER_SIDE, int(at) % across * (width // across)) for at in chosen]
    return [[(y, y + figures.READER_SIDE), (x, x + figures.READER_SIDE), (0, channels)] for y, x in corners]


def some_time(work, written):
    """(bytes written, seconds) of a part of the work."""
    begin, before = time.monotonic(), written()
    work.join(WORK_S)
    return written() - before, time.monotonic() - begin


def removed(raid, lost_bytes, name):
    """MB/s of the lost bytes. A device remove writes more than these: whole groups of blocks, with both copies."""
    say(f"{name}: device remove of the next lost disk")

    def written():
        return sum(throttled_disks.written_bytes(device) for device in raid.members)

    before = written()
    with raid.give_up_the_lost() as work:
        part, seconds = some_time(work, written)
        raid.disks.unthrottle()
        work.seconds()
    return lost_bytes * part / (written() - before) / seconds / 1e6
