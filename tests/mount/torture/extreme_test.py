"""Images of extreme shapes in the hands of an ordinary user: the daemon survives, and its memory stays bounded.

MDFS_TEST_SEEDS=A-B runs these seeds, each for 200 operations; MDFS_TORTURE=N tries N times as many as the default.
"""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import fcntl
import os
import random
import signal
import time

from torture import LONGER, TortureTest, bind, main, make_image, tried

import harness  # noqa: E402, found by torture

LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534
CACHE_MB = 32
MOST_MB = 8 * CACHE_MB  # of the daemon: the budget, its threads, and what an allocator keeps
MOST_SECONDS = 5        # of an operation, before its process is killed; then it has some more to end
SECONDS_TO_END = 15
OPERATIONS = 60
SIDES = (1, 2, 3, 13, 64, 255, 1000, 4097, 65535, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 53) + 1,
         1 << 61, (1 << 62) - 1)
EXTENTS = (1, 2, 7, 32, 64, 100, 512, 4096, 1 << 16)
ALLOWED = {errno.EINVAL, errno.EFBIG, errno.ENOSPC, errno.E2BIG, errno.ENXIO, errno.EOVERFLOW, errno.ENODATA,
           errno.ENOENT, errno.ERANGE, errno.EOPNOTSUPP, errno.ESTALE, errno.EBUSY, errno.EINTR}
FORMATS = ("raw", "npy", "pgm", "ppm", "png")


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


class Image:
    """Operations at random on one image, each checked as far as one process can."""

    def __init__(self, folder, rng, number):
        self.rng = rng
        self.path = os.path.join(folder, f"image{number}")
        self.rank = rng.randint(1, 3)
        small = rng.random() < 0.3
        self.shape = tuple(rng.choice(SIDES[:8] if small else SIDES) for _ in range(self.rank))
        self.element = rng.choice(("u8", "u16", "u32", "f64"))
        self.channels = rng.choice((1, 1, 1, 3, 4, 65535))
        self.extent = () if rng.random() < 0.4 else tuple(rng.choice(EXTENTS) for _ in range(self.rank))
        self.codec = rng.choice((0, 1))
        self.fd = -1

    def __str__(self):
        return f"{self.shape} {self.element} x{self.channels} extent {self.extent} codec {self.codec}"

    def make(self):
        make_image(self.path, self.shape, element=self.element, channels=self.channels, codec=self.codec,
                   extent=self.extent)
        self.fd = os.open(self.path, os.O_RDWR)

    def size(self):
        return os.fstat(self.fd).st_size

    def place(self):
        """A byte: near the ends, near powers of two, or anywhere."""
        size = self.size()
        kind = self.rng.random()
        if kind < 0.2:
            return self.rng.randrange(0, 5000)
        if kind < 0.5:
            return max(0, size - self.rng.randrange(0, 5000))
        if kind < 0.6:
            return max(0, (1 << self.rng.randrange(10, 62)) - self.rng.randrange(0, 3))
        return self.rng.randrange(0, max(1, size))

    def length(self):
        return self.rng.choice((1, 100, 4096, 70_000, 1 << 20)) + self.rng.randrange(0, 10)

    def box(self):
        """A window of at most 1 MiB and its bytes: thin along some axes, long along others."""
        room = (1 << 20) // (self.channels * {"u8": 1, "u16": 2, "u32": 4, "f64": 8}[self.element])
        start, length = [], []
        for side in self.shape:
            longest = max(1, min(side, room))
            part = self.rng.choice((1, longest, self.rng.randint(1, longest)))
            room //= part
            start.append(self.rng.choice((0, side - part, self.rng.randint(0, side - part))))
            length.append(part)
        return start, length

    def op_write(self):
        at, data = self.place(), os.urandom(64) * (self.length() // 64 + 1)
        done = os.pwrite(self.fd, data, at)
        if os.pread(self.fd, done, at) != data[:done]:
            raise AssertionError(f"wrote {done} at {at}, read something else")

    def op_append(self):
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, b"y" * self.rng.choice((1, 500, 100_000)))
        finally:
            os.close(fd)

    def op_truncate(self):
        size = self.place()
        os.ftruncate(self.fd, size)
        if self.size() != size:
            raise AssertionError(f"cut to {size}, has {self.size()}")

    def op_hole(self):
        at, size = self.place(), self.size()
        length = self.rng.choice((self.length(), max(1, size // 2), max(1, size - at), 1 << 61))
        fallocate(self.fd, self.rng.choice((3, 3, 16, 17)), at, min(length, (1 << 63) - 1 - at))
        for inside in (at, at + length // 2, at + length - 1):
            if inside < self.size() and os.pread(self.fd, 1, inside) not in (b"\0", b""):
                raise AssertionError(f"no hole at {inside} of {at}+{length}")

    def op_fallocate(self):
        fallocate(self.fd, self.rng.choice((0, 1)), self.place(), self.length())

    def op_window(self):
        start, length = self.box()
        fd = os.open(self.path, os.O_RDWR)
        try:
            size = bind(fd, start, length)
            data = os.urandom(16) * (size // 16 + 1)
            done = os.pwrite(fd, data[:size], 0)
            if done == size and os.pread(fd, size, 0) != data[:size]:
                raise AssertionError(f"window {start} {length} reads otherwise")
        finally:
            os.close(fd)

    def op_read(self):
        os.pread(self.fd, self.length(), self.place())

    def op_view(self):
        start, length = self.box()
        spec = ",".join(f"{'zyx'[3 - self.rank + i]}{start[i]}+{length[i]}" for i in range(self.rank))
        for name in (f"{self.path}@/info.json", f"{self.path}@/win/{spec}.{self.rng.choice(FORMATS)}",
                     f"{self.path}@/{os.path.basename(self.path)}.npy"):
            fd = os.open(name, os.O_RDONLY)
            try:
                size = os.fstat(fd).st_size
                os.pread(fd, 1 << 20, self.rng.choice((0, size // 2, max(0, size - 100))))
            finally:
                os.close(fd)

    def op_seek(self):
        os.lseek(self.fd, self.place(), self.rng.choice((os.SEEK_DATA, os.SEEK_HOLE)))

    def op_look(self):
        start, length = self.box()
        call = bytearray(harness.PLAN_BYTES)
        call[:harness.WINDOW.size] = harness.window(start, length)
        fcntl.ioctl(self.fd, harness.PLAN, call)
        fcntl.ioctl(self.fd, harness.LAYOUT, bytearray(harness.LAYOUT_BYTES))

    def op_copy(self):
        os.copy_file_range(self.fd, self.fd, self.length(), self.place(), self.place())

    def op_sync(self):
        os.fsync(self.fd)

    def operations(self):
        return [getattr(self, name) for name in sorted(dir(self)) if name.startswith("op_")]


def run_seed(folder, seed, log, count):
    """What the user's process does. Each operation is said before it begins."""
    rng = random.Random(seed)
    image, number = None, 0
    for _ in range(count):
        try:
            if image is None or rng.random() < 0.12:
                if image is not None and image.fd >= 0:
                    os.close(image.fd)
                    if rng.random() < 0.7:
                        os.unlink(image.path)
                number += 1
                image = Image(folder, rng, f"{seed}-{os.getpid()}-{number}")
                os.write(log, f"make {image}\n".encode())
                image.make()
                continue
            if image.fd < 0:
                image = None
                continue
            operation = rng.choice(image.operations())
            os.write(log, f"{operation.__name__} of {image}\n".encode())
            operation()
        except OSError as error:
            if error.errno not in ALLOWED:
                os.write(log, f"FAILED: {error}\n".encode())
                return 1
        except AssertionError as error:
            os.write(log, f"FAILED: {error}\n".encode())
            return 1
    return 0


class Extreme(TortureTest):
    disks = 3
    size = "96M"
    options = f"cache={CACHE_MB}M,allow_other,max_window=64M"

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o777)

    def memory_mb(self, daemon):
        with open(f"/proc/{daemon}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) // 1024
        return 0

    def lines(self, path):
        with open(path, encoding="utf8") as log:
            return log.read().splitlines()

    def run_process(self, seed, count):
        """Returns what the process said, and whether it was killed since an operation took long."""
        path = self.outside("log")
        log = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_APPEND)
        child = os.fork()
        if child == 0:
            code = 9
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                code = run_seed(self.dir, seed, log, count)
            finally:
                os._exit(code)
        os.close(log)
        daemon = self.volume.daemon()
        said, since, killed, most = 0, time.monotonic(), None, 0
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid != 0:
                break
            time.sleep(0.02)
            now, length = time.monotonic(), os.path.getsize(path)
            if length != said:
                said, since = length, now
            self.assertTrue(os.path.exists(f"/proc/{daemon}"), f"seed {seed}: no daemon: {self.lines(path)[-1:]}")
            most = max(most, self.memory_mb(daemon))
            self.assertLess(most, MOST_MB, f"seed {seed}: {self.lines(path)[-1:]}")
            if killed is None and now - since > MOST_SECONDS:
                os.kill(child, signal.SIGKILL)
                killed = now
            if killed is not None:
                self.assertLess(now - killed, SECONDS_TO_END, f"seed {seed} cannot be killed: {self.lines(path)[-1:]}")
        lines = self.lines(path)
        if killed is None:
            self.assertEqual(os.waitstatus_to_exitcode(status), 0, f"seed {seed}: {lines[-2:]}")
        return lines, killed is not None, most

    def test_an_ordinary_user_with_extreme_shapes_does_not_end_the_daemon(self):
        words = os.environ.get("MDFS_TEST_SEEDS")
        first, last = map(int, words.split("-")) if words else (1, 8 * LONGER)
        count = 200 if words else OPERATIONS
        operations, killed, most = 0, 0, 0
        for seed in range(first, last + 1):
            lines, was_killed, memory = self.run_process(seed, count)
            operations += len(lines)
            killed += was_killed
            most = max(most, memory)
            if was_killed:
                print(f"seed {seed}: took long: {lines[-1]}", flush=True)
            for name in os.listdir(self.dir):
                os.unlink(self.at(name))
        tried(f"{operations} operations on images of extreme shapes, {killed} processes killed, {most} MB at most")


if __name__ == "__main__":
    main()
