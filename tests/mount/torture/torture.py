"""What the torture tests share: a volume of their own, a check of it after every test, and how long to go on.

MDFS_TORTURE=N makes every test N times as long; the default fits into the ordinary test run.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import Mounted, bind, is_dead, main, make_image, read_all, run, write_all  # noqa: E402, F401

MDFSCK = os.environ.get("MDFSCK", "mdfsck")
LONGER = max(1, int(os.environ.get("MDFS_TORTURE", "1")))


def check(disks):
    """What mdfsck says against a volume; nothing if it is clean."""
    done = subprocess.run([MDFSCK, "-n", "--data", *disks], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"mdfsck: exit {done.returncode}: {done.stdout}{done.stderr}"


def tried(what):
    """Says what a test has tried, at its end: `./dev prove` collects these lines."""
    print(f"tried: {what}", flush=True)


class TortureTest(unittest.TestCase):
    """A new volume for each test; afterwards it is unmounted and must check clean, data and all."""
    disks = 3
    size = "256M"
    options = "cache=64M"

    def setUp(self):
        self.volume = Mounted(self.disks, self.size, self.options)
        self.addCleanup(self.volume.remove)
        self.dir = self.volume / "work"
        os.mkdir(self.dir)

    def tearDown(self):
        self.volume.unmount()
        self.assertEqual(check(self.volume.disks), "")

    def at(self, *parts):
        return os.path.join(self.dir, *parts)

    def outside(self, name):
        """A path beside the mount, on the machine's own filesystem."""
        return os.path.join(self.volume.folder, name)

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")
