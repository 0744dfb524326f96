"""fsync beside callers of lists: of the same volume, and of another one, which takes as much of the processors."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import statistics
import subprocess
import time

import numpy as np

from mdfsbench import table
from mdfsbench.context import Failed, say

GROUP = "lists"
CALLERS, DISKS = 64, 4
SIDE, EXTENT = 16384, 64  # 65536 extents of 4 KiB
SECONDS, ROUNDS = 6, 3
MOST_TIMES = 3  # the slowest hundredth, of that beside callers of another volume


def rows(context):
    side, seconds = (2048, 1) if context.quick else (SIDE, SECONDS)
    with contextlib.ExitStack() as stack:
        images = {}
        for volume in ("same", "other"):
            disks = [context.new_path(f"{volume}{number}") for number in range(DISKS)]
            stack.enter_context(context.volume(disks, size=side * side + (256 << 20), sparse=True))
            images[volume] = stack.enter_context(context.mounted(disks)) / "image"
            store(context, images[volume], side)
        file = images["same"].parent / "file"
        found = {"alone": [], "same": [], "other": []}
        for _ in range(1 if context.quick else ROUNDS):
            for beside, measured in found.items():
                say(f"fsync beside {CALLERS} callers of lists: {beside}")
                with callers(context, images[beside]) if beside in images else contextlib.nullcontext():
                    measured.append(slowest(file, seconds))
    value = {beside: statistics.median(measured) for beside, measured in found.items()}
    name = f"fsync beside {CALLERS} callers of lists, 99th percentile"
    return [table.Row(GROUP, "fsync of a byte, 99th percentile", value["alone"], "ms"),
            table.at_most(GROUP, name, value["same"], "ms", value["other"], "callers of another volume", MOST_TIMES)]


def store(context, image, side):
    context.mdfs("image", "create", "--shape", f"{side}x{side}", "--type", "u8", "--codec", "raw", "--extent",
                 f"{EXTENT}x{EXTENT}", image)
    with open(image, "r+b") as samples:
        for row in range(0, side, EXTENT):
            samples.write(np.full((EXTENT, side), row // EXTENT % 251, np.uint8))
        os.fsync(samples.fileno())


@contextlib.contextmanager
def callers(context, image):
    """They ask until the end, and have begun when the block does."""
    process = subprocess.Popen([context.program("bench/mount/list_callers"), image, "--threads", str(CALLERS)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(0.3)
        yield
    finally:
        answers, _ = process.communicate()
    if process.returncode != 0 or int(answers) == 0:
        raise Failed(f"list_callers: exit status {process.returncode}, {answers.strip() or 'no'} answers")


def slowest(path, seconds):
    """ms that a hundredth of the calls exceeds."""
    times, end = [], time.perf_counter() + seconds
    with open(path, "wb", buffering=0) as file:
        while time.perf_counter() < end:
            file.write(b"x")
            begin = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - begin) * 1e3)
    return float(np.percentile(times, 99))
