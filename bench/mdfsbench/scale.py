"""What must not grow with size: opening a huge image, mounting many images, listing many files."""
# SPDX-License-Identifier: Apache-2.0
import fcntl
import os
import statistics
import struct
import time

from mdfsbench import table
from mdfsbench.context import say

GROUP = "scale"
SET_GEOMETRY_NUMBER, MAGIC = 1, 0xD5
# struct mdfs_ioc_geometry of include/mdfs/ioctl.h; _IOW(0xD5, 1, ..)
GEOMETRY = struct.Struct("<I B B H B b 6x 5Q 5I I 8s 5d 40s i i 4Q 8Q 0q")
SET_GEOMETRY = (1 << 30) | (GEOMETRY.size << 16) | (MAGIC << 8) | SET_GEOMETRY_NUMBER
U8, RAW = 1, 0
HUGE_SIDE, SMALL_SIDE = 1 << 20, 1 << 10  # 1 TiB, 1 MiB of u8
PAIRS = 40


def set_geometry(fd, height, width):
    """Makes the empty file an image of u8 with all that can be left open left open."""
    fcntl.ioctl(fd, SET_GEOMETRY, GEOMETRY.pack(GEOMETRY.size, 2, U8, 1, RAW, 0, height, width, 0, 0, 0, 0, 0, 0, 0, 0,
                                                0, b"", 0, 0, 0, 0, 0, b"", -1, -1, *[0] * 12))


def create_image(path, height, width):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        set_geometry(fd, height, width)
        os.pwrite(fd, b"\x5a" * 4096, 0)
    finally:
        os.close(fd)


def rows(context):
    return [huge_image(context), *many_images(context), *many_files(context)]


def huge_image(context):
    """Open and first window, in turn of an image of 1 TiB and one of 1 MiB, each never opened since the mount."""
    say("open and first window of a huge image")
    with context.volume([context.new_path("disk")], size=1 << 30) as disks:
        with context.mounted(disks) as mnt:
            for index in range(PAIRS):
                create_image(mnt / f"huge{index}", HUGE_SIDE, HUGE_SIDE)
                create_image(mnt / f"small{index}", SMALL_SIDE, SMALL_SIDE)
        times = {"huge": [], "small": []}
        for _ in range(2 if context.quick else 5):
            with context.mounted(disks) as mnt:
                for kind in times:
                    files = [mnt / f"{kind}{index}" for index in range(PAIRS)]
                    times[kind].append(context.time_reads(*files, "--open", "--window", "64x64", "--count", PAIRS - 4,
                                                          "--warmup", 4)["median_ms"])
    median = {kind: statistics.median(found) for kind, found in times.items()}
    return table.at_most(GROUP, "open + first 64x64 window of 1 TiB sparse", median["huge"], "ms", median["small"],
                         "the same of 1 MiB", 1.2)


def timed(call):
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def under_a_second(name, seconds, floor=None, floor_name=""):
    return table.Row(GROUP, name, seconds, "s", floor, floor_name, "under 1 s", seconds < 1)


def many_images(context):
    count = 1000 if context.quick else 10_000
    say(f"mounting {count} images")
    with context.volume([context.new_path("disk")], size=2 << 30) as disks:
        with context.mounted(disks) as mnt:
            for index in range(count):
                create_image(mnt / f"image{index:05}", 256, 256)
        mountpoint = context.new_path("mnt")
        mountpoint.mkdir()
        times = []
        for _ in range(3):
            times.append(timed(lambda: context.mdfs("mount", *disks, mountpoint)))
            found = len(os.listdir(mountpoint))
            context.mdfs("umount", mountpoint)
            if found != count:
                raise AssertionError(f"{found} images instead of {count}")
        mountpoint.rmdir()
    return [under_a_second(f"mount of a volume with {count} images", statistics.median(times))]


def fill_directory(folder, count):
    folder.mkdir()
    for index in range(count):
        os.close(os.open(folder / f"file{index:06}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def many_files(context):
    count = 10_000 if context.quick else 100_000
    say(f"listing {count} files")
    beside = context.new_path("many")
    fill_directory(beside, count)

    def listed(folder):
        begin = time.monotonic()
        found = len(os.listdir(folder))
        seconds = time.monotonic() - begin
        if found != count:
            raise AssertionError(f"{found} files instead of {count}")
        return seconds

    with context.volume([context.new_path("disk")], size=2 << 30) as disks:
        with context.mounted(disks) as mnt:
            created = timed(lambda: fill_directory(mnt / "many", count))
        with context.mounted(disks) as mnt:
            cold = listed(mnt / "many")
            median = context.alternate(5, mdfs=lambda: listed(mnt / "many"), beside=lambda: listed(beside))
    local = "the filesystem below"
    return [under_a_second(f"list of {count} files, first after the mount", cold, median["beside"], local),
            under_a_second(f"list of {count} files, again", median["mdfs"], median["beside"], local),
            table.Row(GROUP, f"creating {count} files", created, "s")]
