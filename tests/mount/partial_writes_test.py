"""Writes to a part of an extent of which the rest cannot be read: they are not stored, all others are."""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import unittest

from harness import MDFS, Mounted, main, make_image, read_all, run, write_all

EXTENT, SIDE = 64, 256


class PartOfUnreadable(unittest.TestCase):
    """An image on three disks, of which one is missing."""

    def setUp(self):
        self.volume = Mounted(disks=3, size="64M")
        self.addCleanup(self.volume.remove)
        self.image = self.volume / "image"
        make_image(self.image, [SIDE, SIDE], extent=(EXTENT, EXTENT), codec=0)
        self.data = bytearray(os.urandom(SIDE * SIDE))
        write_all(self.image, self.data)
        self.volume.unmount()
        away = f"{self.volume.folder}/away"
        os.mkdir(away)
        os.rename(self.volume.disks[1], f"{away}/disk1")
        self.mount_without()

    def mount_without(self):
        self.volume.mount(disks=[self.volume.disks[0], self.volume.disks[2]])

    def fails(self, status, *words):
        done = subprocess.run([MDFS, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def write_a_byte_to_each_extent(self):
        with open(self.image, "r+b", buffering=0) as file:
            for y in range(0, SIDE, EXTENT):
                for x in range(0, SIDE, EXTENT):
                    self.data[y * SIDE + x] ^= 255
                    os.pwrite(file.fileno(), self.data[y * SIDE + x:y * SIDE + x + 1], y * SIDE + x)

    def expect_readable_extents(self):
        readable = 0
        with open(self.image, "rb", buffering=0) as file:
            for y in range(0, SIDE, EXTENT):
                for x in range(0, SIDE, EXTENT):
                    try:
                        row = os.pread(file.fileno(), EXTENT, y * SIDE + x)
                    except OSError:
                        continue
                    readable += 1
                    self.assertEqual(row, self.data[y * SIDE + x:y * SIDE + x + EXTENT])
        self.assertIn(readable, (10, 11))  # of 16; the others lie on the missing disk

    def test_the_other_extents_are_stored_and_umount_says_how_to_go_on(self):
        self.write_a_byte_to_each_extent()
        write_all(self.volume / "other", b"kept")
        with self.assertRaises(OSError), open(self.image, "rb") as file:
            os.fsync(file.fileno())
        self.fails(3, "volume", "sync", self.volume.path)
        self.assertIn("--force", self.fails(1, "umount", self.volume.path))
        self.assertTrue(os.path.ismount(self.volume.path))
        self.assertIn("are lost", self.fails(3, "umount", "--force", self.volume.path))
        self.assertFalse(os.path.ismount(self.volume.path))
        self.mount_without()
        self.assertEqual(read_all(self.volume / "other"), b"kept")
        self.expect_readable_extents()

    def test_an_extent_that_is_written_whole_is_stored_again(self):
        self.write_a_byte_to_each_extent()
        self.fails(3, "volume", "sync", self.volume.path)
        write_all(self.image, self.data)
        subprocess.run([MDFS, "volume", "sync", self.volume.path], check=False)  # may tell what failed before
        run(MDFS, "volume", "sync", self.volume.path)
        self.volume.unmount()
        self.mount_without()
        self.assertEqual(read_all(self.image), self.data)


if __name__ == "__main__":
    main()
