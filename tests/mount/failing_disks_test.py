"""Disks that cannot be written: fsync, msync and synchronous writes say so, through the kernel; nothing is claimed that
is lost; when the disks can be written again it is made good. The disks are sparse files on a small filesystem that
another file fills.
"""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import mmap
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from harness import MDFS, MDFSCK, Mounted, bind, fill_filesystem, make_image, read_all, run

MIB = 1 << 20
REFUSED = (errno.EIO, errno.ENOSPC)
SIDE = 2048  # of images: their windows take more room than blocks that were freed leave


class FailingDisks(Mounted):
    """Two sparse disks of 64 MiB on a filesystem of 48 MiB."""

    def __init__(self):
        self.floor = tempfile.mkdtemp(prefix="mdfs-floor-")
        run("mount", "-t", "tmpfs", "-o", "size=48M", "mdfs-test", self.floor)
        self.ballast = os.path.join(self.floor, "ballast")
        before = tempfile.tempdir
        tempfile.tempdir = self.floor
        try:
            super().__init__(2, "64M", "cache=64M,commit=600")
        except BaseException:
            self.remove_floor()
            raise
        finally:
            tempfile.tempdir = before

    def remount(self):
        self.mount("cache=64M,commit=600")

    def take_room(self):
        fill_filesystem(self.ballast)

    def give_room(self):
        if os.path.exists(self.ballast):
            os.truncate(self.ballast, 0)

    def cut(self):
        """The daemon is gone at once, as by a power cut; the disks are mounted again."""
        os.kill(self.daemon(), signal.SIGKILL)
        for _ in range(100):
            if harness.is_dead(self.path):
                break
            time.sleep(0.05)
        self.remount()

    def remove(self):
        self.give_room()
        super().remove()
        self.remove_floor()

    def remove_floor(self):
        subprocess.run(["umount", "-l", self.floor], stderr=subprocess.DEVNULL, check=False)
        os.rmdir(self.floor)


class Gate(unittest.TestCase):
    tried = 0

    @classmethod
    def tearDownClass(cls):
        print(f"tried: {cls.tried} calls of fsync, msync and write on disks that could not be written", flush=True)

    def setUp(self):
        self.volume = FailingDisks()
        self.addCleanup(self.volume.remove)
        self.random = random.Random(6)

    def refused(self, call, *arguments):
        """Says so, each time that it is asked as long as there is no room."""
        for _ in range(3):
            Gate.tried += 1
            with self.assertRaises(OSError) as caught:
                call(*arguments)
            self.assertIn(caught.exception.errno, REFUSED, os.strerror(caught.exception.errno))

    def state(self):
        return json.loads(harness.status_of(self.volume.path, "--json", unhealthy=None))

    def made_good(self, call, *arguments):
        """There is room again, and the same call succeeds."""
        self.volume.give_room()
        Gate.tried += 1
        call(*arguments)

    def expect(self, path, data):
        """Also after a cut: it was said to be safe."""
        self.assertEqual(read_all(path), data)
        self.volume.cut()
        self.assertEqual(read_all(path), data)

    def clean(self):
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", *self.volume.disks)
        self.volume.remount()

    def opened(self, name, flags=0):
        fd = os.open(self.volume / name, os.O_RDWR | os.O_CREAT | flags, 0o644)
        self.addCleanup(os.close, fd)
        return fd

    def test_fsync_of_a_file_fails_until_there_is_room(self):
        old = self.random.randbytes(300_000)
        fd = self.opened("file")
        os.pwrite(fd, old, 0)
        os.fsync(fd)
        new = self.random.randbytes(2 * MIB)
        os.pwrite(fd, new, 100_000)
        self.volume.take_room()
        self.refused(os.fsync, fd)
        self.refused(os.fdatasync, fd)
        self.assertIn("nothing can be made durable; make room", harness.status_of(self.volume.path, unhealthy=True))
        self.assertEqual(os.pread(fd, 3 * MIB, 0), old[:100_000] + new, "it is still there for its readers")
        self.made_good(os.fsync, fd)
        self.assertNotIn("make room", harness.status_of(self.volume.path, unhealthy=None))
        self.expect(self.volume / "file", old[:100_000] + new)

    def test_what_was_refused_and_never_made_good_is_as_it_was_synced_last(self):
        old = self.random.randbytes(300_000)
        fd = self.opened("file")
        os.pwrite(fd, old, 0)
        os.fsync(fd)
        os.pwrite(fd, self.random.randbytes(MIB), 0)
        self.volume.take_room()
        self.refused(os.fsync, fd)
        self.volume.cut()
        self.assertEqual(read_all(self.volume / "file"), old)
        self.volume.give_room()
        self.clean()
        self.assertEqual(read_all(self.volume / "file"), old)

    def test_msync_fails_until_there_is_room(self):
        fd = self.opened("file")
        os.ftruncate(fd, 2 * MIB)
        os.fsync(fd)
        data = self.random.randbytes(2 * MIB)
        with mmap.mmap(fd, 2 * MIB) as pages:
            pages[:] = data
            self.volume.take_room()
            self.refused(pages.flush)
            self.made_good(pages.flush)
        self.expect(self.volume / "file", data)

    def test_a_synchronous_write_fails_until_there_is_room(self):
        for name, flag in (("sync", os.O_SYNC), ("dsync", os.O_DSYNC)):
            with self.subTest(flag=name):
                fd = self.opened(name, flag)
                data = self.random.randbytes(MIB)
                os.pwrite(fd, data[:4096], 0)
                self.volume.take_room()
                self.refused(os.pwrite, fd, data, 0)
                self.made_good(os.pwrite, fd, data, 0)
                self.expect(self.volume / name, data)

    def image(self, name):
        make_image(self.volume / name, (SIDE, SIDE), codec=0, extent=(256, 256))
        data = self.random.randbytes(SIDE * SIDE)
        fd = self.opened(name)
        os.pwrite(fd, data, 0)
        os.fsync(fd)
        return data

    @staticmethod
    def write_and_sync(fd, data):
        """As a program does: a write may be short, and what is left then says why."""
        done = 0
        while done < len(data):
            done += os.pwrite(fd, data[done:], done)
        os.fsync(fd)

    def test_a_window_through_a_bound_descriptor(self):
        old = self.image("scan")
        fd = self.opened("scan")
        bind(fd, (0, 0), (SIDE // 2, SIDE))
        new = self.random.randbytes(SIDE * SIDE // 2)
        self.volume.take_room()  # the engine may write a window before a sync
        self.refused(self.write_and_sync, fd, new)
        self.made_good(self.write_and_sync, fd, new)
        self.expect(self.volume / "scan", new + old[len(new):])

    def test_a_window_through_a_virtual_file(self):
        old = self.image("scan")
        new = self.random.randbytes(SIDE * SIDE // 2)
        fd = os.open(f"{self.volume.path}/scan@/win/y0+{SIDE // 2},x0+{SIDE}.raw", os.O_WRONLY)
        try:
            self.volume.take_room()
            self.refused(self.write_and_sync, fd, new)
            self.made_good(self.write_and_sync, fd, new)
        finally:
            os.close(fd)
        self.expect(self.volume / "scan", new + old[len(new):])

    def test_no_commit_begins_before_there_is_room_for_it(self):
        """Names alone, which need no data blocks: what cannot be written is the tree."""
        fd = self.opened("file")
        os.pwrite(fd, b"old", 0)
        os.fsync(fd)
        for i in range(3000):
            os.close(os.open(self.volume / f"name{i}", os.O_CREAT))
        folder = os.open(self.volume.path, os.O_RDONLY)
        self.volume.take_room()
        self.refused(os.fsync, folder)
        os.mkdir(self.volume / "more")
        self.assertFalse(self.state()["read_only"])
        self.made_good(os.fsync, folder)
        os.close(folder)
        self.volume.cut()
        self.assertEqual(read_all(self.volume / "file"), b"old")
        self.assertEqual(sum(name.startswith("name") for name in os.listdir(self.volume.path)), 3000)
        self.assertTrue(os.path.isdir(self.volume / "more"))

    def test_an_unmount_is_refused_until_there_is_room_for_what_was_accepted(self):
        data = self.random.randbytes(40 * MIB)
        harness.write_all(self.volume / "acknowledged", data[:MIB])
        run(MDFS, "volume", "sync", self.volume.path)
        harness.write_all(self.volume / "large", data)
        self.volume.take_room()
        for _ in range(2):
            done = subprocess.run([MDFS, "umount", self.volume.path], text=True, capture_output=True, check=False)
            self.assertNotEqual(done.returncode, 0, done.stderr)
            self.assertTrue(os.path.ismount(self.volume.path), done.stderr)
            self.assertNotEqual(subprocess.run([MDFS, "volume", "sync", self.volume.path], capture_output=True,
                                               check=False).returncode, 0)
        self.volume.give_room()
        run("mount", "-o", "remount,size=200M", self.volume.floor)
        self.volume.unmount()  # what could not be written before has been made good
        self.volume.remount()
        self.assertEqual(read_all(self.volume / "large"), data)
        self.assertEqual(read_all(self.volume / "acknowledged"), data[:MIB])
        self.clean()


if __name__ == "__main__":
    harness.main()
