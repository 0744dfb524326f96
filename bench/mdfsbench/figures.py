"""What `protect` measures of each filesystem, and the disks and amounts that are the same for all of them."""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import os
import time

import numpy as np

from mdfsbench.peers import boxes_apart

DISKS, RATE, IOPS = 8, 20_000_000, 200  # the rates of each disk, reads and writes apart
WINDOWS = (RATE, IOPS)  # the throttle of windows
BULK = (RATE, 0)  # that of imports and rebuilds: requests in order are one on a disk, several under a throttle
SIDES = (64, 512)
WRITTEN = {64: 60, 512: 25}  # windows: enough to outlast the 0.1 s of credit of an idle disk
FRAME_SIDE, FRAMES = 1024, 64
READER_SIDE = 512
ALONE, BESIDE = 200, 220  # windows of the reader without a rebuild and beside it, on places of their own


@dataclasses.dataclass
class Figures:
    """Windows by their side. None: not measured."""
    name: str
    import_mb_s: float = 0
    frames_s: float = 0
    written: dict[int, float] = dataclasses.field(default_factory=dict)  # ms
    windows: dict[int, float] = dataclasses.field(default_factory=dict)  # ms
    clients_s: float = 0  # windows a second
    degraded: dict[int, float] = dataclasses.field(default_factory=dict)  # ms
    beside_lame: dict[int, dict] = dataclasses.field(default_factory=dict)  # what the timer says, by the rate of a disk
    rebuild_mb_s: float | None = None  # to the free space of the other disks
    replace_mb_s: float | None = None  # to a new disk
    alone_ms: list[float] = dataclasses.field(default_factory=list)  # of each window, a disk lost
    beside_ms: list[float] = dataclasses.field(default_factory=list)  # the same beside the rebuild
    beside_mb_s: float = 0  # what all disks write of the rebuild while the reader reads


def p99(times):
    return float(np.percentile(times, 99))


def written_boxes(context, source, side):
    return boxes_apart(source, side, 3 if context.quick else WRITTEN[side])


def reader_boxes(source):
    """For a reader without a rebuild, and beside it. Fewer on a small picture."""
    boxes = boxes_apart(source, READER_SIDE, ALONE + BESIDE)
    alone = len(boxes) * ALONE // (ALONE + BESIDE)
    return boxes[:alone], boxes[alone:]


def append_synced(path):
    """Frames a second, each of 1 MiB and synced."""
    frame = os.urandom(FRAME_SIDE * FRAME_SIDE)
    begin = time.monotonic()
    with open(path, "ab", buffering=0) as file:
        for _ in range(FRAMES):
            file.write(frame)
            os.fsync(file.fileno())
    return FRAMES / (time.monotonic() - begin)


def clock(work):
    """Seconds."""
    begin = time.monotonic()
    work()
    return time.monotonic() - begin
