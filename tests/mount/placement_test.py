"""Claims about where on the disks of a mounted volume extents are stored, and how that is shown."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import time
import unittest
import xml.etree.ElementTree

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


SVG = "{http://www.w3.org/2000/svg}"


def drawn(path, by, of):
    """Sums of an attribute of the drawing's rectangles, by another."""
    sums = {}
    for rect in xml.etree.ElementTree.parse(path).getroot().iter(SVG + "rect"):
        if rect.get(by) is not None and rect.get(of) is not None:
            sums[int(rect.get(by))] = sums.get(int(rect.get(by)), 0) + int(rect.get(of))
    return sums


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.volume = Mounted(disks=3, size="128M")
        cls.addClassCleanup(cls.volume.remove)

    def svg(self):
        return os.path.join(self.volume.folder, "picture.svg")

    def test_a_layout_is_drawn_whole_as_well_formed_xml(self):
        path = store(self.volume, "plane & <simple>", shape=(1500, 1700))
        for image, options in ((path, ()), (store(self.volume, "deep", shape=(70, 300, 200)), ())):
            run(MDFS, "image", "layout", "--force", "--svg", self.svg(), image, *options)
            expected = {}
            for extent in as_json("image", "layout", image)["extents"]:
                expected[extent["disk"]] = expected.get(extent["disk"], 0) + 1
            self.assertEqual(drawn(self.svg(), "data-strip", "data-extents"), expected)
            self.assertLessEqual(sum(drawn(self.svg(), "data-disk", "data-extents").values()), sum(expected.values()))
        run(MDFS, "image", "layout", "--force", "--svg", self.svg(), path)
        expected = [extent["disk"] for extent in as_json("image", "layout", path)["extents"]]
        self.assertEqual(drawn(self.svg(), "data-disk", "data-extents"),
                         {disk: expected.count(disk) for disk in set(expected)})

    def test_the_map_draws_every_zone_and_agrees_with_the_status(self):
        store(self.volume, "mapped")
        run(MDFS, "volume", "sync", self.volume.path)
        run(MDFS, "volume", "map", "--force", "--svg", self.svg(), self.volume.path)
        told = as_json("volume", "map", self.volume.path)
        zones = [zone for disk in told["disks"] for zone in disk["zones"]]
        root = xml.etree.ElementTree.parse(self.svg()).getroot()
        cells = [rect for rect in root.iter(SVG + "rect") if rect.get("data-zones")]
        self.assertEqual(sum(int(cell.get("data-zones")) for cell in cells), len(zones))
        self.assertEqual(sum(int(cell.get("data-used")) for cell in cells), sum(used for _, used in zones))
        lines = run(MDFS, "volume", "map", self.volume.path).splitlines()
        self.assertEqual([len(line.split(": ")[1]) for line in lines],
                         [len(disk["zones"]) for disk in told["disks"]])
        status = as_json("volume", "status", self.volume.path)
        for disk, shown in zip(told["disks"], status["disks"]):
            self.assertEqual(sum(blocks for blocks, _ in disk["zones"]), shown["data_blocks"])


class UnequalDisks(unittest.TestCase):
    def test_a_full_disk_is_told_and_its_extents_go_to_others(self):
        volume = Mounted(disks=1, size="32M")
        self.addCleanup(volume.remove)
        volume.unmount()
        disks = [os.path.join(volume.folder, f"unequal{i}") for i in range(3)]
        for disk, size in zip(disks, (32, 256, 256)):
            with open(disk, "wb") as file:
                file.truncate(size << 20)
        run(os.environ.get("MKMDFS", "mkmdfs"), "--policy", "scatter", *disks)
        log = os.path.join(volume.folder, "log")
        with open(log, "wb") as file:
            daemon = subprocess.Popen([MDFS, "mount", "-o", "foreground,cache=64M", disks[1], volume.path], stderr=file)
        try:
            deadline = time.time() + 20
            while not os.path.ismount(volume.path) and time.time() < deadline:
                time.sleep(0.02)
            for i in range(40):
                store(volume, f"image{i}", shape=(2048, 2048), seed=i)
            run(MDFS, "volume", "sync", volume.path)
            status = as_json("volume", "status", volume.path)
            fullest = max(range(3), key=lambda disk: status["disks"][disk]["occupation"])
            self.assertEqual(fullest, 0)
            self.assertGreater(status["disks"][0]["occupation"], 0.9)
            self.assertGreater(status["disks"][0]["fallback_runs"], 0)
            self.assertGreater(status["imbalance"], 1.2)
            self.assertEqual(len([line for line in status["warnings"] if line.startswith("disk 0 is")]), 1)
            self.assertIn("warning: disk 0 is", run(MDFS, "volume", "status", volume.path))
            numpy.testing.assert_array_equal(
                numpy.load(volume / "image39@/win/y0+2048.npy"),
                numpy.random.default_rng(39).integers(0, 256, (2048, 2048), numpy.uint8))
        finally:
            run(MDFS, "umount", volume.path)
            daemon.wait(30)
        with open(log, encoding="utf-8") as file:
            lines = [line for line in file if "disk 0 " in line]
        self.assertEqual(len([line for line in lines if "is full: its new extents go to other" in line]), 1, lines)
        told = [line.split(" is ")[1].split(" %")[0] for line in lines if "% full" in line]
        self.assertTrue(1 <= len(told) <= 3 and len(set(told)) == len(told), lines)
        run(MDFSCK, "--data", disks[0])


if __name__ == "__main__":
    main()
