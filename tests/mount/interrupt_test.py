"""Requests that take long end with the process that asked for them."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import signal
import time
import unittest

import harness
from harness import Mounted, bind, make_image, slow_machine

LIBC = ctypes.CDLL(None, use_errno=True)
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
# One row of extents, each of which the requests below change in part.
ROWS, UNITS = 4, 50000
SHAPE = (ROWS, 64 * UNITS)
MOST_SECONDS = 1.0

SLOW = slow_machine(0.03)


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def punch(fd):
    fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 100, SHAPE[0] * SHAPE[1] - 200)


def zero(fd):
    fallocate(fd, ZERO_RANGE, 100, SHAPE[0] * SHAPE[1] - 200)


def cut(fd):
    os.ftruncate(fd, SHAPE[1] * 3 + 5)


def write(fd):
    os.pwrite(fd, b"\2" * (1 << 20), 0)  # a part of each of 16384 extents


def read(fd):
    os.pread(fd, 1 << 20, 0)


class Interrupt(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=1, size="512M")
        self.addCleanup(self.volume.remove)
        self.image = self.volume / "image"
        make_image(self.image, SHAPE, codec=1, extent=(4, 64))
        self.fill()
        self.machine = os.path.join(self.volume.folder, "slow.toml")
        with open(self.machine, "w", encoding="utf8") as file:
            file.write(SLOW)

    def fill(self):
        with open(self.image, "r+b") as file:
            file.write(b"\1" * (SHAPE[0] * SHAPE[1]))

    def slow_mount(self):
        """Nothing is in the cache, and each read of a disk takes 30 ms."""
        self.volume.unmount()
        self.volume.mount(f"noatime,cache=16M,model={self.machine}")

    def child(self, work):
        pid = os.fork()
        if pid == 0:
            try:
                fd = os.open(self.image, os.O_RDWR)
                work(fd)
                os._exit(0)
            except OSError as error:
                os._exit(error.errno)
        return pid

    def seconds_to_end(self, pid, number):
        os.kill(pid, number)
        begun = time.monotonic()
        status = os.waitpid(pid, 0)[1]
        return time.monotonic() - begun, status

    def test_what_a_killed_process_asked_for_ends_within_a_second(self):
        cases = ((punch, signal.SIGKILL), (zero, signal.SIGTERM), (cut, signal.SIGKILL), (cut, signal.SIGTERM),
                 (write, signal.SIGKILL), (read, signal.SIGKILL))
        for work, number in cases:
            with self.subTest(work=work.__name__, signal=number):
                self.volume.unmount()
                self.volume.mount()
                self.fill()
                self.slow_mount()
                pid = self.child(work)
                time.sleep(0.7)
                self.assertEqual(os.waitpid(pid, os.WNOHANG), (0, 0), "it takes longer than that")
                seconds, status = self.seconds_to_end(pid, number)
                print(f"{work.__name__}: {seconds:.2f} s after the signal", flush=True)
                self.assertEqual(os.WTERMSIG(status), number)
                self.assertLess(seconds, MOST_SECONDS)

    def test_what_is_read_after_an_interrupted_hole_is_what_is_read_after_a_mount(self):
        self.slow_mount()
        pid = self.child(punch)
        time.sleep(0.7)
        self.seconds_to_end(pid, signal.SIGKILL)
        self.volume.unmount()
        self.volume.mount()
        with open(self.image, "rb") as file:
            before = file.read()
        self.assertEqual(set(before), {0, 1})
        self.volume.unmount()
        self.volume.mount()
        with open(self.image, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_a_signal_that_is_handled_interrupts_nothing(self):
        self.slow_mount()
        part = (64 * 1000, 64 * 400)

        def work(fd):
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
            fallocate(fd, PUNCH_HOLE | KEEP_SIZE, part[0] + 1, part[1])

        pid = self.child(work)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        with open(self.image, "rb") as file:
            file.seek(part[0] + 1)
            self.assertEqual(file.read(part[1]), bytes(part[1]))

    def test_a_window_write_of_a_killed_process_leaves_the_old_window(self):
        self.slow_mount()

        def work(fd):
            size = bind(fd, (1, 1), (ROWS - 2, 64 * 2000))
            data = b"\2" * size
            done = 0
            while done < size:
                done += os.pwrite(fd, data[done:], done)

        pid = self.child(work)
        time.sleep(0.7)
        seconds, status = self.seconds_to_end(pid, signal.SIGKILL)
        self.assertTrue(os.WIFSIGNALED(status))
        self.volume.unmount()
        self.volume.mount()
        with open(self.image, "rb") as file:
            values = set(file.read())
        self.assertTrue(values in ({1}, {1, 2}), values)
        if values == {1}:
            self.assertLess(seconds, 2 * MOST_SECONDS)


if __name__ == "__main__":
    harness.main()
