"""Reads one window of an image in several ways and says whether all gave the same samples.

usage: compare.py IMAGE WINDOW PPM, with a window such as y420+640,x1380+960 and the PPM file copied from its path.
"""
# SPDX-License-Identifier: Apache-2.0
import fcntl
import json
import os
import re
import struct
import sys

import numpy

# struct mdfs_ioc_window and MDFS_IOC_BIND of mdfs/ioctl.h.
WINDOW = struct.Struct("=II5Q5QiIQII3Q")
BIND = 3 << 30 | WINDOW.size << 16 | 0xD5 << 8 | 3


def by_ioctl(path, start, length):
    """What read(2) gives after the window was bound to the open file."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        request = WINDOW.pack(WINDOW.size, 2, *start, 0, 0, 0, *length, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0)
        size = WINDOW.unpack(fcntl.ioctl(fd, BIND, request))[14]
        return os.pread(fd, size, 0)
    finally:
        os.close(fd)


def main():
    path, spec, ppm = sys.argv[1:]
    info = json.load(open(path + "@/info.json"))
    shape = (*info["shape"], info["channels"])
    y, height, x, width = map(int, re.fullmatch(r"y(\d+)\+(\d+),x(\d+)\+(\d+)", spec).groups())
    plain = numpy.memmap(path, dtype=numpy.uint8, mode="r", shape=shape)
    expected = numpy.array(plain[y:y + height, x:x + width])
    ways = {
        "numpy.load of the path": numpy.load(f"{path}@/win/{spec}.npy"),
        "numpy.load(mmap_mode='r') of the path": numpy.load(f"{path}@/win/{spec}.npy", mmap_mode="r"),
        "ioctl and pread": numpy.frombuffer(by_ioctl(path, (y, x), (height, width)), numpy.uint8),
        "cp of the path as PPM": numpy.frombuffer(open(ppm, "rb").read()[-expected.size:], numpy.uint8),
    }
    print(f"numpy.memmap of the whole image: {shape}, mean of the window {expected.mean():.3f}")
    for way, samples in ways.items():
        equal = numpy.array_equal(numpy.asarray(samples).reshape(expected.shape), expected)
        print(f"{way}: {'the same samples' if equal else 'DIFFERENT'}")
        if not equal:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
