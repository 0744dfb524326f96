"""Claims about where on the disks of a mounted volume extents are stored, and how that is shown."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import unittest

import numpy

from harness import MDFS, MDFSCK, Mounted, main, run


def as_json(*words):
    return json.loads(run(MDFS, *words, "--json"))


def store(volume, name, *options, shape=(2048, 2048), seed=1):
    """An image of noise, stored raw; returns its path."""
    source = os.path.join(volume.folder, "source.npy")
    numpy.save(source, numpy.random.default_rng(seed).integers(0, 256, shape, numpy.uint8))
    run(MDFS, "image", "import", source, volume / name, "--codec", "raw", "--quiet", *options)
    return volume / name


def places(path):
    """Where its extents lie, as parts of the size of a disk of 256 MiB."""
    return [extent["block"] / 65536 for extent in as_json("image", "layout", path)["extents"]]


class Policies(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=2, size="256M", make=("--policy", "first"))
        self.addCleanup(self.volume.remove)

    def test_policies_of_volume_mount_and_image_say_where_groups_begin(self):
        volume = self.volume
        self.assertEqual(as_json("volume", "status", volume.path)["policy"], "first")
        own = [store(volume, f"first{i}") for i in range(3)]
        self.assertLess(max(max(places(path)) for path in own), 0.2)
        scattered = [store(volume, f"scatter{i}", "--policy", "scatter") for i in range(6)]
        self.assertGreater(max(max(places(path)) for path in scattered), 0.4)
        volume.unmount()
        volume.mount("cache=64M,policy=near")
        self.assertEqual(as_json("volume", "status", volume.path)["policy"], "near")
        after = store(volume, "near", "--policy", "scatter")
        last = max(places(after))
        near = places(store(volume, "near1"))
        self.assertTrue(any(last < place < last + 0.1 for place in near) or max(near) < 0.1, (last, near))
        self.assertEqual(as_json("image", "info", after)["policy"], "scatter")
        volume.unmount()
        volume.mount()
        self.assertEqual(as_json("volume", "status", volume.path)["policy"], "first")
        self.assertEqual(as_json("image", "info", own[0])["policy"], "default")
        self.assertEqual(as_json("image", "info", after)["policy"], "scatter")
        volume.unmount()
        run(MDFSCK, "--data", volume.disks[0])

    def test_policies_that_are_not_known_are_refused(self):
        for words in (["mkmdfs", "--policy", "last"], ["mount", "-o", "policy=last"]):
            program = [os.environ.get("MKMDFS", "mkmdfs")] if words[0] == "mkmdfs" else [MDFS, "mount"]
            done = subprocess.run([*program, *words[1:], os.path.join(self.volume.folder, "new"), self.volume.path],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn("scatter, first or near", done.stderr)


if __name__ == "__main__":
    main()
