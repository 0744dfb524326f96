"""Windows that a program reads or writes from Python: cold, written and synced, and while other work goes on."""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import threading
import time

import numpy as np
from mdfsbench import many, readers
from mdfsbench.context import Failed
from mdfsbench.peers import checked


def cold_ms(program, path, source, wanted):
    """ms of each window. The caller has emptied the caches."""
    reader = program(path, source.shape)
    try:
        return checked(reader.read, np.load(source.npy, mmap_mode="r"), wanted)
    finally:
        reader.close()


def written_ms(program, path, source, wanted):
    """ms of each window until it is durable. The windows hold the inverse of the source afterwards."""
    array, times = np.load(source.npy, mmap_mode="r"), []
    samples = [~readers.cut(array, box) for box in wanted]
    writer = program(path, source.shape, os.O_RDWR)
    try:
        for box, inverse in zip(wanted, samples):
            begin = time.perf_counter()
            writer.write(box, inverse)
            writer.sync()
            times.append((time.perf_counter() - begin) * 1e3)
    finally:
        writer.close()
    return times


def check_written(program, path, source, wanted):
    """Every window that written_ms() has written is there. The caller has emptied the caches."""
    array, reader = np.load(source.npy, mmap_mode="r"), program(path, source.shape)
    try:
        for box in wanted:
            if not np.array_equal(~readers.cut(array, box), reader.read(box)):
                raise AssertionError(f"{program.name}: WRONG BYTES after a write")
    finally:
        reader.close()


class Work:
    """A command that runs beside a reader: `with Work(...) as work`. It is stopped if the measurement fails; `cancel`
    is the command that stops what the first one has left to others."""

    def __init__(self, *command, cancel=()):
        self.command, self.cancel = [str(word) for word in command], [str(word) for word in cancel]
        self.output, self.errors, self.begin, self.end = "", "", None, None

    def __enter__(self):
        self.begin = time.monotonic()
        # In a session of its own, a Ctrl-C stops it by __exit__() alone.
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()
        return self

    def _wait(self):
        self.output, self.errors = self.process.communicate()
        self.end = time.monotonic()

    def is_running(self):
        return self.thread.is_alive()

    def join(self, seconds):
        """Until it has ended, but no longer than this."""
        self.thread.join(seconds)

    def seconds(self):
        """Of all of it, when it has ended. Failed if it did not do its work."""
        self.thread.join()
        if self.process.returncode != 0:
            raise Failed(f"{' '.join(self.command)}: exit status {self.process.returncode}: "
                         f"{self.errors.strip()[-2000:]}")
        return self.end - self.begin

    def __exit__(self, *_):
        if self.is_running():
            if self.cancel:
                subprocess.run(self.cancel, capture_output=True, check=False)
            self.process.terminate()
        self.thread.join()


def read_while(program, path, source, wanted, goes_on):
    """ms of each window, one after another; at least one, and no more once `goes_on()` is false."""
    array, times, reader = np.load(source.npy, mmap_mode="r"), [], program(path, source.shape)
    try:
        for box in wanted:
            begin = time.perf_counter()
            got = reader.read(box)
            times.append((time.perf_counter() - begin) * 1e3)
            if many.is_wrong(array, box, got):
                raise AssertionError(f"{program.name}: WRONG BYTES")
            if not goes_on():
                break
    finally:
        reader.close()
    return times


def until(seconds):
    """A `goes_on` that is true for so long."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end
