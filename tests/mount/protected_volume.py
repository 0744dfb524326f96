"""A mounted volume of three disks that are taken away and brought back."""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import unittest

import numpy

from harness import MDFSCK, Mounted


def read(path):
    with open(path, "rb") as file:
        return file.read()


class ProtectedVolume(unittest.TestCase):
    make = ()  # further options of mkmdfs
    disks = 3

    def setUp(self):
        self.volume = Mounted(disks=self.disks, size="64M", make=self.make)
        self.addCleanup(self.volume.remove)
        self.random = numpy.random.default_rng(24)

    def lose(self, number, options="cache=64M"):
        self.volume.unmount()
        away = f"{self.volume.folder}/away"
        os.makedirs(away, exist_ok=True)  # disks are looked for beside those that are named
        os.rename(self.volume.disks[number], f"{away}/disk{number}")
        self.volume.mount(options, [disk for disk in self.volume.disks if os.path.exists(disk)])

    def bring_back(self, number):
        self.volume.unmount()
        os.rename(f"{self.volume.folder}/away/disk{number}", self.volume.disks[number])
        self.volume.mount("cache=64M", [disk for disk in self.volume.disks if os.path.exists(disk)])

    def check(self):
        self.volume.unmount()
        done = subprocess.run([MDFSCK, "-n", "--data", "--json", *self.volume.disks], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.volume.mount("cache=64M", self.volume.disks)
