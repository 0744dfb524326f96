"""Room for a lost disk on a real mount: writes end before it, and the rebuild starts by itself."""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import subprocess
import unittest

from harness import MDFS, MKMDFS, run, status_of, wait_until, write_all
from protected_volume import ProtectedVolume, read

MIB = 1 << 20


class Spare(ProtectedVolume):
    make = ("--copies", "2", "--spare", "1")

    def spare(self, *words):
        return json.loads(run(MDFS, "volume", "spare", "--json", self.volume.path, *words))

    def fill(self):
        """Files until nothing more fits, by their paths."""
        files = {}
        while True:
            path = f"{self.volume.path}/f{len(files)}"
            data = self.random.bytes(MIB)
            try:
                write_all(path, data)
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)
                os.unlink(path)
                run(MDFS, "volume", "sync", self.volume.path)
                return files
            files[path] = data

    def with_one_copy(self, files):
        answer = json.loads(run(MDFS, "image", "protect", "--dry-run", "--json", *files, "copies=2"))
        return [one["path"] for one in answer["paths"] if one["copied"] != one["extents"]]

    def test_writes_end_before_the_room_for_a_lost_disk_and_df_says_so(self):
        kept = self.spare()
        disk = os.path.getsize(self.volume.disks[0])
        self.assertEqual(kept["spare_disks"], 1)
        self.assertGreater(kept["spare_bytes"], disk * 0.9)
        before = os.statvfs(self.volume.path)
        files = self.fill()
        stored = sum(map(len, files.values()))
        self.assertLess(stored, (3 - 1) * disk / 2)
        self.assertGreater(stored, (3 - 1) * disk / 2 * 0.9)
        self.assertGreater(stored, before.f_bavail * before.f_frsize * 0.9)
        self.assertEqual(self.spare()["spare_lacking_bytes"], 0)
        self.assertEqual(self.spare("0")["spare_bytes"], 0)
        write_all(f"{self.volume.path}/more", self.random.bytes(8 * MIB))
        run(MDFS, "volume", "sync", self.volume.path)
        again = self.spare("1")
        self.assertGreater(again["spare_lacking_bytes"], 0)
        self.assertIn("more must be free for the rebuild of 1 lost disk", status_of(self.volume.path, unhealthy=True))
        self.volume.unmount()
        self.volume.mount("cache=64M", self.volume.disks)
        self.assertEqual(self.spare(), again)

    def test_a_full_volume_is_rebuilt_by_itself_when_a_disk_has_been_lost_for_a_while(self):
        files = self.fill()
        self.lose(1, "cache=64M,commit=1,rebuild=2")
        wait_until(lambda: not self.with_one_copy(files), seconds=120)
        self.assertEqual(self.spare()["spare_disks_left"], 0)
        for path, data in files.items():
            self.assertEqual(read(path), data)
        self.volume.unmount()
        os.rename(self.volume.disks[2], f"{self.volume.folder}/away/disk2")
        self.volume.mount("cache=64M,degraded", [self.volume.disks[0]])
        for path, data in files.items():
            self.assertEqual(read(path), data)

    def test_nothing_starts_by_itself_without_spare_room_or_with_rebuild_never(self):
        files = self.fill()
        self.lose(1, "cache=64M,commit=1,rebuild=never")
        self.assertNotEqual(self.with_one_copy(files), [])
        self.bring_back(1)
        self.spare("0")
        self.lose(1, "cache=64M,commit=1,rebuild=1")
        with self.assertRaises(AssertionError):
            wait_until(lambda: not self.with_one_copy(files), seconds=5)

    def test_what_cannot_be_kept_is_refused_with_the_range(self):
        def refused(*words):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            return done.stderr

        self.assertIn("must be 0 to 1, the 3 disks", refused(MDFS, "volume", "spare", self.volume.path, "2"))
        self.assertIn("must be", refused(MDFS, "volume", "spare", self.volume.path, "63"))
        self.assertIn("at most the number of disks less two (0)",
                      refused(MKMDFS, "--size", "64M", "--spare", "1", f"{self.volume.folder}/a",
                              f"{self.volume.folder}/b"))
        self.assertFalse(os.path.exists(f"{self.volume.folder}/a"))
        self.assertIn("rebuild=0: must be 1 to 604800 seconds, or never",
                      refused(MDFS, "mount", "-o", "rebuild=0", self.volume.disks[0], self.volume.path))


if __name__ == "__main__":
    unittest.main()
