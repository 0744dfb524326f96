"""Appending whole frames to a file."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import fcntl
import os


def append_whole(file: int, data: memoryview, frame_bytes: int) -> None:
    """Writes the data behind the last whole frame of a file that is open for writing, or leaves the whole frames alone.

    The lock lasts until the file is closed: appenders take turns. A part of a frame at the end, which a killed appender
    has left, is cut off.
    """
    fcntl.flock(file, fcntl.LOCK_EX)
    size = os.fstat(file).st_size
    begin = size - size % frame_bytes if frame_bytes > 0 else size
    if begin < size:
        os.ftruncate(file, begin)
    at = begin
    try:
        while at - begin < len(data):
            at += os.pwrite(file, data[at - begin:], at)
    except BaseException:
        with contextlib.suppress(OSError):  # a full volume; then the next append cuts it off
            os.ftruncate(file, begin)
        raise
