"""Stores through a mapping of a volume that is full: msync and fsync succeed only if every byte is kept."""
# SPDX-License-Identifier: Apache-2.0
import errno
import mmap
import os
import random
import subprocess
import unittest

from harness import MDFS, Mounted, main, make_image, read_all

MIB = 1 << 20
LENGTH = 4 * MIB
# Room that is left, in bytes: from none to enough. Write-back sends up to 1 MiB at once.
ROOMS = (0, 20_000, 300_000, 1_000_000, 2_500_000, 3_000_000, 4_000_000, 12_000_000)


class MappingTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(1)
        self.volume = Mounted(2, "64M", "cache=64M")
        self.addCleanup(self.volume.remove)

    def leave(self, room):
        """Fills the volume but for some bytes."""
        path = self.volume / "ballast"
        with open(path, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(self.random.randbytes(MIB))
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)
            os.fsync(file.fileno())
            file.truncate(max(0, file.tell() - room))
            os.fsync(file.fileno())

    @staticmethod
    def errors_of(calls):
        failed = []
        for call in calls:
            try:
                call()
            except OSError as error:
                failed.append(error.errno)
        return failed


class FullMappings(MappingTest):
    def store(self, path, data, with_msync):
        """The errors of the calls that are to make the bytes durable."""
        file = os.open(path, os.O_RDWR)
        with mmap.mmap(file, len(data)) as pages:
            pages[:] = data
            calls = [lambda: os.fsync(file), lambda: os.fsync(file)]
            failed = self.errors_of([pages.flush, *calls] if with_msync else calls)
        os.close(file)
        return failed

    def check(self, make, with_msync):
        outcomes = set()
        for room in ROOMS:
            with self.subTest(room=room):
                path = self.volume / f"mapped{room}"
                make(path)
                self.leave(room)
                data = self.random.randbytes(LENGTH)
                failed = self.store(path, data, with_msync)
                self.assertLessEqual(set(failed), {errno.ENOSPC})
                outcomes.add(bool(failed))
                if not failed:
                    self.assertTrue(read_all(path) == data, "the calls have succeeded")
                    unmounted = subprocess.run([MDFS, "umount", self.volume.path], capture_output=True, check=False)
                    self.assertEqual(unmounted.returncode, 0)
                    self.volume.mount("cache=64M")
                    self.assertTrue(read_all(path) == data, "and the bytes outlast the mount")
                os.unlink(path)
                os.unlink(self.volume / "ballast")
                subprocess.run([MDFS, "volume", "sync", self.volume.path], check=True, capture_output=True)
        self.assertEqual(outcomes, {True, False}, "some rooms are too small, and some are not")

    def make_file(self, path):
        with open(path, "wb") as file:
            file.truncate(LENGTH)

    def make_image(self, path):
        make_image(path, (LENGTH // 2048, 2048), codec=0, extent=(256, 256))

    def test_a_file_that_msync_and_fsync_have_acknowledged_is_whole(self):
        self.check(self.make_file, with_msync=True)

    def test_a_file_that_fsync_has_acknowledged_is_whole(self):
        self.check(self.make_file, with_msync=False)

    def test_an_image_that_msync_and_fsync_have_acknowledged_is_whole(self):
        self.check(self.make_image, with_msync=True)


class WritesBesideMappings(MappingTest):
    """A write that fails or comes short makes the kernel read its pages again, and with them the stores of others."""

    STORED = 60000
    WRITTEN = 50000

    def begin(self):
        """Writes over a part of the mapped bytes. Returns how many bytes, and where they begin."""
        return self.one_call(os.O_WRONLY, lambda file: os.pwrite(file, b"w" * self.WRITTEN, 2000)), 2000

    def append(self):
        flags = os.O_WRONLY | os.O_APPEND
        return self.one_call(flags, lambda file: os.write(file, b"w" * self.WRITTEN)), self.STORED

    def send(self):
        with open(self.volume / "source", "rb") as source:
            return self.one_call(os.O_WRONLY, lambda file: os.sendfile(file, source.fileno(), 0, self.WRITTEN)), 0

    def one_call(self, flags, call):
        file = os.open(self.volume / "mapped", flags)
        try:
            return call(file)
        except OSError as error:
            self.assertEqual(error.errno, errno.ENOSPC)
            return 0
        finally:
            os.close(file)

    def check(self, write, room):
        path = self.volume / "mapped"
        with open(path, "wb") as made:
            made.truncate(self.STORED)
        self.leave(room)
        data = self.random.randbytes(self.STORED)
        file = os.open(path, os.O_RDWR)
        with mmap.mmap(file, len(data)) as pages:
            pages[:] = data
            done, start = write()
            os.unlink(self.volume / "ballast")
            subprocess.run([MDFS, "volume", "sync", self.volume.path], check=True, capture_output=True)
            os.pread(file, self.STORED, 0)
            failed = self.errors_of([pages.flush, lambda: os.fsync(file)])
        os.close(file)
        got = read_all(path)
        self.assertTrue(failed or got[:start] == data[:start], "before the write")
        self.assertTrue(failed or got[start + self.WRITTEN:len(data)] == data[start + self.WRITTEN:], "behind it")
        later = os.open(path, os.O_RDWR)
        os.fsync(later)  # opened after the failure
        os.close(later)
        os.unlink(path)
        return done < self.WRITTEN

    def test_an_fsync_that_succeeds_beside_a_write_that_fails_has_all_stores(self):
        with open(self.volume / "source", "wb") as source:
            source.write(bytes(self.WRITTEN))
        failures = 0
        for write in (self.begin, self.append, self.send):
            for room in (0, 6000, 20_000):
                with self.subTest(write=write.__name__, room=room):
                    failures += self.check(write, room)
        self.assertGreaterEqual(failures, 3)


if __name__ == "__main__":
    main()
