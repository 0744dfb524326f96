"""Stores through a mapping of a volume that gets full: msync and fsync succeed only if every byte is kept."""
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


class FullMappings(unittest.TestCase):
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

    def store(self, path, data, with_msync):
        """The errors of the calls that are to make the bytes durable."""
        failed = []
        file = os.open(path, os.O_RDWR)
        with mmap.mmap(file, len(data)) as pages:
            pages[:] = data
            calls = [lambda: os.fsync(file), lambda: os.fsync(file)]
            if with_msync:
                calls.insert(0, pages.flush)
            for call in calls:
                try:
                    call()
                except OSError as error:
                    failed.append(error.errno)
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


if __name__ == "__main__":
    main()
