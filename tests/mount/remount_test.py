"""The helper of mount(8): its options, the type that a mount is listed with, and remounts."""
# SPDX-License-Identifier: Apache-2.0
import errno
import os
import subprocess
import unittest

import harness
from harness import MDFS, Mounted, read_all, run, write_all


class Remount(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=1)
        self.helper = os.path.join(self.volume.folder, "mount.fuse.mdfs")
        os.symlink(MDFS, self.helper)

    def tearDown(self):
        self.volume.unmount()
        self.volume.remove()

    def mount(self, *options):
        run(self.helper, self.volume.disks[0], self.volume.path, *options)

    def listed(self):
        with open("/proc/self/mounts", encoding="utf8") as mounts:
            for line in mounts:
                words = line.split()
                if words[1] == self.volume.path:
                    return words[2], words[3].split(",")
        return None, []

    def test_what_mount_passes_is_taken(self):
        self.volume.unmount()
        options = "rw,nodiratime,lazytime,nofail,_netdev,x-systemd.automount,nosuid,user,comment=a"
        self.mount("-o", options, "-t", "fuse.mdfs")
        kind, options = self.listed()
        self.assertEqual(kind, "fuse.mdfs")
        self.assertIn("nosuid", options)
        write_all(self.volume / "file", b"x")

    def test_read_only_and_back(self):
        write_all(self.volume / "file", b"before")
        before = self.listed()[1]
        self.mount("-o", "remount,ro")
        self.assertIn("ro", self.listed()[1])
        self.assertEqual(read_all(self.volume / "file"), b"before")
        with self.assertRaises(OSError) as caught:
            write_all(self.volume / "file", b"x")
        self.assertEqual(caught.exception.errno, errno.EROFS)
        # As mount(8) repeats what the kernel shows.
        self.mount("-o", ",".join(self.listed()[1]) + ",x-foo,remount,rw")
        self.assertEqual(sorted(self.listed()[1]), sorted(before))
        write_all(self.volume / "file", b"after")
        run(MDFS, "mount", "-o", "remount,noexec", self.volume.path)
        self.assertIn("noexec", self.listed()[1])
        self.assertEqual(read_all(self.volume / "file"), b"after")

    def test_read_only_leaves_everything_on_the_disks(self):
        write_all(self.volume / "file", b"synced")
        self.mount("-o", "remount,ro")
        copy = os.path.join(self.volume.folder, "copy")
        run("cp", "--sparse=always", self.volume.disks[0], copy)
        self.volume.unmount()
        os.rename(copy, self.volume.disks[0])
        self.volume.mount()
        self.assertEqual(read_all(self.volume / "file"), b"synced")

    def test_a_file_open_for_writing_refuses_it(self):
        with open(self.volume / "file", "wb"):
            done = subprocess.run([self.helper, self.volume.disks[0], self.volume.path, "-o", "remount,ro"],
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 32, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertNotIn("ro", self.listed()[1])

    def test_a_volume_that_was_mounted_read_only_stays_so(self):
        self.volume.unmount()
        self.volume.mount("cache=64M,ro")
        done = subprocess.run([self.helper, self.volume.disks[0], self.volume.path, "-o", "remount,rw"],
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 32)
        self.assertIn("unmount", done.stderr)


if __name__ == "__main__":
    harness.main()
