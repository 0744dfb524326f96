"""Disks that are told which blocks are free: mdfs volume trim, fstrim(8), the mount option discard."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import json
import os
import random
import shutil
import struct
import subprocess
import time
import unittest

import harness
from harness import MDFS, MDFSCK, Mounted, read_all, run, write_all

MIB = 1 << 20
FITRIM = 3 << 30 | 24 << 16 | ord("X") << 8 | 121


def stored(path):
    """What a file takes on its filesystem."""
    os.sync()
    return os.stat(path).st_blocks * 512


def fitrim(path, start=0, length=(1 << 64) - 1, minimum=0):
    fd = os.open(path, os.O_RDONLY)
    try:
        return struct.unpack("=QQQ", fcntl.ioctl(fd, FITRIM, struct.pack("=QQQ", start, length, minimum)))[1]
    finally:
        os.close(fd)


class Trim(unittest.TestCase):
    disks = 3

    def setUp(self):
        self.loops = []
        self.volume = Mounted(disks=self.disks)
        self.data = random.Random(5).randbytes(24 * MIB)

    def tearDown(self):
        if os.path.ismount(self.volume.path):
            self.volume.unmount()
        for loop in self.loops:
            subprocess.run(["losetup", "-d", loop], check=False)
        self.volume.remove()

    def stored(self):
        return sum(stored(disk) for disk in self.volume.disks)

    def trim(self, *options):
        return json.loads(run(MDFS, "volume", "trim", "--json", *options, self.volume.path))

    def fill_and_delete(self):
        """Every second file stays."""
        for i in range(12):
            write_all(self.volume / f"file{i}", self.data[i * 2 * MIB:(i + 1) * 2 * MIB])
        run(MDFS, "volume", "sync", self.volume.path)
        full = self.stored()
        for i in range(0, 12, 2):
            os.remove(self.volume / f"file{i}")
        return full

    def look(self):
        for i in range(1, 12, 2):
            self.assertEqual(read_all(self.volume / f"file{i}"), self.data[i * 2 * MIB:(i + 1) * 2 * MIB])

    def check_clean(self):
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", self.volume.disks[0])
        self.volume.mount()
        self.look()

    def test_files_of_disks_become_smaller(self):
        full = self.fill_and_delete()
        told = self.trim()
        self.assertLess(self.stored(), full - 11 * MIB)
        self.assertEqual([disk["state"] for disk in told["disks"]], ["trimmed"] * 3)
        self.assertEqual(told["discarded_bytes"], sum(disk["discarded_bytes"] for disk in told["disks"]))
        self.assertGreater(told["discarded_bytes"], 11 * MIB)
        self.assertRegex(run(MDFS, "volume", "trim", self.volume.path), r"(disk \d /.*: .* bytes\) trimmed\n){3}")
        self.look()
        self.check_clean()

    def test_only_long_runs_are_trimmed_where_that_is_wanted(self):
        self.fill_and_delete()
        every = self.trim()["discarded_bytes"]
        long_ones = self.trim("--minimum", "16M")["discarded_bytes"]
        self.assertLess(long_ones, every)
        self.assertEqual(self.trim("--minimum", "1T")["discarded_bytes"], 0)
        done = subprocess.run([MDFS, "volume", "trim", "--minimum", "x", self.volume.path], capture_output=True,
                              text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--minimum", done.stderr)

    @unittest.skipUnless(shutil.which("fstrim"), "fstrim is not installed")
    def test_fstrim_works(self):
        full = self.fill_and_delete()
        said = run("fstrim", "-v", self.volume.path)
        self.assertRegex(said, r"bytes\) trimmed")
        self.assertLess(self.stored(), full - 11 * MIB)
        self.look()

    def test_a_range_is_of_the_disks_one_behind_another(self):
        self.fill_and_delete()
        # The kernel releases files some time after they are closed, and with them the preallocation behind them.
        self.volume.unmount()
        self.volume.mount()
        size = os.stat(self.volume.disks[0]).st_size
        whole = fitrim(self.volume.path)
        parts = [fitrim(self.volume.path, i * size, size) for i in range(3)]
        self.assertTrue(all(0 < part < size for part in parts))
        self.assertLess(abs(whole - sum(parts)), MIB)
        self.assertLess(fitrim(self.volume.path, 0, size // 2), parts[0])
        for arguments in ((3 * size, size), (0, 100)):
            with self.assertRaises(OSError) as caught:
                fitrim(self.volume.path, *arguments)
            self.assertEqual(caught.exception.errno, errno.EINVAL)

    def test_who_may(self):
        script = (f"import fcntl, os; fcntl.ioctl(os.open({self.volume.path!r}, os.O_RDONLY), {FITRIM}, "
                  "bytes(8) + bytes([255] * 8) + bytes(8))")
        done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", script],
                              capture_output=True, text=True, check=False)
        self.assertIn("Operation not permitted", done.stderr)
        run(MDFS, "mount", "-o", "remount,ro", self.volume.path)
        self.volume.unmount()
        self.volume.mount("ro,cache=64M")
        with self.assertRaises(OSError) as caught:
            fitrim(self.volume.path)
        self.assertEqual(caught.exception.errno, errno.EROFS)

    def test_files_are_written_and_deleted_meanwhile(self):
        self.fill_and_delete()
        end = time.monotonic() + 3
        trims = 0
        with subprocess.Popen(["sh", "-c", f"while [ -e {self.volume.path}/file1 ]; do {MDFS} volume trim --json "
                               f"{self.volume.path} > /dev/null || exit 1; done"]) as trimming:
            for i in range(10000):
                if time.monotonic() > end:
                    break
                write_all(self.volume / f"new{i % 7}", self.data[i * 4096:i * 4096 + MIB])
                self.assertEqual(read_all(self.volume / f"new{i % 7}"), self.data[i * 4096:i * 4096 + MIB])
                trims += 1
            self.assertIsNone(trimming.poll())
            self.look()
            os.rename(self.volume / "file1", self.volume / "file1.away")
            trimming.wait()
            os.rename(self.volume / "file1.away", self.volume / "file1")
        self.assertGreater(trims, 5)
        self.check_clean()

    def test_a_mount_with_discard_trims_by_itself_and_remount_changes_that(self):
        self.volume.unmount()
        self.volume.mount("cache=64M,commit=1,discard")
        full = self.fill_and_delete()
        self.wait_until(lambda: self.stored() < full - 8 * MIB)
        self.look()
        run(MDFS, "mount", "-o", "remount,nodiscard", self.volume.path)
        write_all(self.volume / "large", self.data[:12 * MIB])
        run(MDFS, "volume", "sync", self.volume.path)
        full = self.stored()
        os.remove(self.volume / "large")
        for i in range(6):
            write_all(self.volume / "small", b"x" * i)
            run(MDFS, "volume", "sync", self.volume.path)
        time.sleep(1)
        self.assertGreater(self.stored(), full - 4 * MIB)
        run(MDFS, "mount", "-o", "remount,discard", self.volume.path)
        write_all(self.volume / "large", self.data[:12 * MIB])
        run(MDFS, "volume", "sync", self.volume.path)
        full = self.stored()
        os.remove(self.volume / "large")
        self.wait_until(lambda: self.stored() < full - 4 * MIB)
        self.check_clean()

    def wait_until(self, condition):
        for i in range(100):
            if condition():
                return
            write_all(self.volume / "tick", b"x" * i)  # commits go on
            run(MDFS, "volume", "sync", self.volume.path)
            time.sleep(0.1)
        self.fail("it did not happen within 10 s")

    def test_block_devices(self):
        self.volume.unmount()
        for disk in self.volume.disks:
            self.loops.append(run("losetup", "-f", "--show", "--direct-io=on", disk).strip())
        self.volume.mount(disks=self.loops)
        full = self.fill_and_delete()
        self.trim()
        self.assertLess(self.stored(), full - 11 * MIB)
        self.look()

    def test_while_a_disk_is_missing_that_would_become_stale_nothing_is_trimmed(self):
        self.fill_and_delete()
        self.volume.unmount()
        away = f"{self.volume.folder}/away"
        os.mkdir(away)
        os.rename(self.volume.disks[2], f"{away}/disk2")
        self.volume.mount()
        done = subprocess.run([MDFS, "volume", "trim", self.volume.path], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("missing", done.stderr)
        with self.assertRaises(OSError):
            fitrim(self.volume.path)
        self.volume.unmount()
        os.rename(f"{away}/disk2", self.volume.disks[2])
        self.volume.mount()
        self.assertNotIn("stale", harness.status_of(self.volume.path))
        self.trim()


if __name__ == "__main__":
    harness.main()
