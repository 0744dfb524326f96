"""Disks for metadata alone: names and maps lie there and data do not. Such a disk may be lost, replaced and added."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import subprocess
import unittest

from harness import MDFS, MDFSCK, MKMDFS, Mounted, read_all, run, write_all

MIB = 1 << 20
FILES = 200


class MetadataDisks(unittest.TestCase):
    def setUp(self):
        # The name of the further disk has to be known before the volume is made.
        self.volume = Mounted(2, "64M", make=["--label", "plain"])
        self.addCleanup(self.volume.remove)
        self.volume.unmount()
        self.fast = self.at("fast")
        run(MKMDFS, "--size", "64M", "--sparse", "--force", "--metadata", self.fast, *self.volume.disks)
        self.volume.mount()
        self.random = random.Random(3)
        self.expected = {}

    def at(self, name):
        return os.path.join(self.volume.folder, name)

    def new_disk(self, name):
        path = self.at(name)
        with open(path, "wb") as file:
            file.truncate(64 * MIB)
        return path

    def lose(self, disk):
        """Mounts look at all files beside a disk."""
        os.makedirs(self.at("away"), exist_ok=True)
        os.rename(disk, self.at(os.path.join("away", os.path.basename(disk))))

    def disks(self):
        return json.loads(run(MDFS, "disk", "list", "--json", self.volume.path))["disks"]

    def number_of(self, path):
        return next(disk["number"] for disk in self.disks() if disk["path"] == path)

    def store(self, names=FILES):
        folder = self.volume / "folder"
        os.makedirs(folder, exist_ok=True)
        for n in range(names):
            path = os.path.join(folder, f"name {len(self.expected)}")
            self.expected[path] = self.random.randbytes(self.random.randrange(1, 40_000))
            write_all(path, self.expected[path])
        image = self.volume / f"image {len(self.expected)}"
        run(MDFS, "image", "create", "--shape", "1024x1024", "--extent", "128x128", image)
        self.expected[image] = self.random.randbytes(MIB)
        with open(image, "r+b") as file:
            file.write(self.expected[image])
        run(MDFS, "volume", "sync", self.volume.path)
        return image

    def check(self):
        for path, data in self.expected.items():
            self.assertEqual(read_all(path), data, path)

    def check_clean(self, *disks):
        run(MDFSCK, "-n", "--data", *(disks or (*self.volume.disks, self.fast)))

    def reads(self):
        shown = json.loads(run(MDFS, "disk", "stats", "--json", self.volume.path))["disks"]
        return {disk["number"]: disk["reads"] for disk in shown}

    def test_names_and_maps_are_read_from_it_and_no_data_lie_there(self):
        image = self.store()
        fast = self.number_of(self.fast)
        places = json.loads(run(MDFS, "image", "layout", "--json", image))
        self.assertNotIn(fast, {extent["disk"] for extent in places["extents"]})
        self.assertIn("metadata alone", run(MDFS, "volume", "status", self.volume.path))
        self.volume.unmount()
        self.volume.mount()
        before = self.reads()
        for folder, _, names in os.walk(self.volume.path):
            for name in names:
                os.stat(os.path.join(folder, name))
        more = {number: reads - before[number] for number, reads in self.reads().items()}
        self.assertGreater(more[fast], 0)
        self.assertEqual(sum(more.values()), more[fast], "only the metadata disk is read")
        self.check()
        self.volume.unmount()
        self.check_clean()
        self.volume.mount()

    def test_it_may_be_lost_and_replaced(self):
        self.store()
        self.volume.unmount()
        self.lose(self.fast)
        self.volume.mount(disks=self.volume.disks)
        self.check()
        self.store(20)
        other = self.new_disk("other")
        lost = next(disk["number"] for disk in self.disks() if disk["state"] != "healthy")
        run(MDFS, "disk", "replace", self.volume.path, str(lost), other)
        self.assertEqual([disk["weight"] for disk in self.disks() if disk["path"] == other], [0])
        self.check()
        self.volume.unmount()
        self.check_clean(*self.volume.disks, other)
        self.volume.mount(disks=[*self.volume.disks, other])
        self.check()

    def test_one_joins_and_one_leaves(self):
        self.store()
        other = self.new_disk("other")
        self.assertIn("for metadata alone", run(MDFS, "disk", "add", "--metadata", self.volume.path, other))
        run(MDFS, "disk", "remove", self.volume.path, str(self.number_of(self.fast)))
        self.check()
        self.volume.unmount()
        self.check_clean(*self.volume.disks, other)
        self.volume.mount(disks=[*self.volume.disks, other])
        self.check()

    def test_the_option_may_be_given_several_times_before_and_after_the_disks_for_data(self):
        a, b, c, d = (self.at(name) for name in "abcd")
        for words, metadata in (([a, "--metadata", b, c, "--metadata", d], {b, d}),
                                (["--metadata", a, "--metadata", b, c, d], {a, b})):
            made = json.loads(run(MKMDFS, "--size", "64M", "--sparse", "--force", "--json", *words))
            self.assertEqual({disk["path"] for disk in made["disks"]}, {a, b, c, d})
            self.assertEqual({disk["path"] for disk in made["disks"] if disk["weight"] == 0}, metadata)

    def test_what_cannot_work_is_refused(self):
        fast = str(self.number_of(self.fast))
        for words, says in ((("disk", "weight", self.volume.path, fast, "2"), "metadata alone"),
                            (("disk", "resize", self.volume.path, fast, "100M"), "metadata alone"),
                            (("disk", "add", "--metadata", "--weight", "2", self.volume.path, "x"), "excludes")):
            if words[1] == "resize":
                os.truncate(self.fast, 128 * MIB)
            done = subprocess.run([MDFS, *words], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(says, done.stderr, words)
        for other in ("0", "1"):  # the last disk for data stays
            done = subprocess.run([MDFS, "disk", "remove", self.volume.path, other], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode == 0, other == "0", done.stderr)
        self.assertIn("the other disks have too little space, 0 bytes", done.stderr)
        for words, says in ((["--copies", "2", "--metadata", self.at("b"), self.at("a")], "two disks or more for data"),
                            (["--metadata", self.at("a"), self.at("a")], "given twice")):
            done = subprocess.run([MKMDFS, "--size", "64M", "--sparse", *words], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(says, done.stderr)

    def test_copies_and_a_lost_data_disk(self):
        run(MDFS, "image", "protect", self.volume.path, "copies=2")
        self.store()
        self.volume.unmount()
        self.lose(self.volume.disks[1])
        self.volume.mount("cache=64M", [self.fast, self.volume.disks[0]])
        self.check()
        self.store(10)
        self.check()


if __name__ == "__main__":
    unittest.main()
