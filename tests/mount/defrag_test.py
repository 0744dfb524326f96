"""Claims about `mdfs defrag` on a mounted volume: what it moves, says and refuses, and that no bytes change."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import subprocess
import unittest

import numpy

from harness import MDFS, MDFSCK, Mounted, main, run

EXTENT, GRID = 64, 24
SIDE = EXTENT * GRID


def as_json(*words):
    return json.loads(run(MDFS, *words, "--json"))


def factor(path):
    return as_json("image", "layout", path)["fragmentation"]["factor"]


class Defrag(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=3, size="64M")
        self.addCleanup(self.volume.remove)

    def scattered(self, name, seed=1):
        """An image whose rows of extents have been written in parts, anyhow; its path and what it holds."""
        path = self.volume / name
        run(MDFS, "image", "create", "--shape", f"{SIDE}x{SIDE}", "--extent", f"{EXTENT}x{EXTENT}", "--codec", "raw",
            path)
        array = numpy.random.default_rng(seed).integers(0, 256, (SIDE, SIDE), numpy.uint8)
        parts = [(y, x) for y in range(0, SIDE, EXTENT) for x in range(0, SIDE, 4 * EXTENT)]
        random.Random(seed).shuffle(parts)
        for y, x in parts:
            window = numpy.ascontiguousarray(array[y:y + EXTENT, x:x + 4 * EXTENT])
            with open(f"{path}@/win/y{y}+{EXTENT},x{x}+{4 * EXTENT}.raw", "wb") as file:
                file.write(window.tobytes())
        return path, array

    def expect(self, path, array):
        with open(path, "rb") as file:
            self.assertEqual(file.read(), array.tobytes())

    def test_what_lies_in_many_pieces_is_laid_as_a_fresh_copy(self):
        path, array = self.scattered("scan")
        before = factor(path)
        self.assertGreater(before, 1.2)
        counted = as_json("defrag", "start", self.volume.path, "--dry-run", "--wait")
        self.assertEqual((counted["state"], factor(path)), ("done", before))
        self.assertGreater(counted["moved_bytes"], SIDE * SIDE / 2)
        told = as_json("defrag", "start", self.volume.path, "--wait")
        self.assertEqual((told["state"], told["items_failed"], told["items_done"]), ("done", 0, 1))
        for each in (counted, told):
            self.assertGreater(each["items_changed"], 0)
            self.assertEqual(sum(disk["changed"] for disk in each["disks"]), each["items_changed"])
        self.assertLess(factor(path), 1.06)
        self.assertLess(told["factor_after"], told["factor_before"])
        self.assertIn("moved", run(MDFS, "defrag", "status", self.volume.path))
        self.expect(path, array)
        again = as_json("defrag", "start", path, "--wait")
        self.assertEqual(again["moved_bytes"], 0)
        self.volume.unmount()
        run(MDFSCK, "--data", self.volume.disks[0])
        self.volume.mount()
        self.expect(path, array)

    def test_windows_are_read_and_written_meanwhile(self):
        path, array = self.scattered("scan", 2)
        run(MDFS, "defrag", "start", "--budget", "4M", self.volume.path)
        rng = random.Random(3)
        while as_json("defrag", "status", self.volume.path)["state"] == "running":
            y, x = rng.randrange(SIDE - 200), rng.randrange(SIDE - 200)
            name = f"{path}@/win/y{y}+200,x{x}+200.raw"
            if rng.random() < 0.5:
                array[y:y + 200, x:x + 200] = rng.randrange(256)
                with open(name, "wb") as file:
                    file.write(numpy.ascontiguousarray(array[y:y + 200, x:x + 200]).tobytes())
            else:
                with open(name, "rb") as file:
                    self.assertEqual(file.read(), array[y:y + 200, x:x + 200].tobytes())
        self.expect(path, array)

    def test_it_is_stopped_and_goes_on_also_after_a_mount(self):
        path, array = self.scattered("scan", 4)
        other, other_array = self.scattered("other", 5)
        run(MDFS, "defrag", "start", "--budget", "1M", self.volume.path)
        self.assertEqual(as_json("defrag", "cancel", self.volume.path)["state"], "cancelled")
        self.assertEqual(as_json("defrag", "resume", self.volume.path)["state"], "running")
        self.volume.unmount()
        self.volume.mount()
        self.assertEqual(as_json("defrag", "status", self.volume.path)["state"], "running")
        run(MDFS, "defrag", "resume", "--budget", "1G", "--wait", self.volume.path)
        self.assertLess(max(factor(path), factor(other)), 1.06)
        self.expect(path, array)
        self.expect(other, other_array)

    def test_what_makes_no_sense_is_refused_in_a_line(self):
        os.mkdir(self.volume / "folder")
        os.mkfifo(self.volume / "fifo")
        for code, words, command in ((1, "none has ever run", ("status", self.volume.path)),
                                     (1, "none is running", ("cancel", self.volume.path)),
                                     (1, "", ("resume", self.volume.path)), (2, "", ("start",)),
                                     (2, "", ("start", "--threshold", "0.5", self.volume.path)),
                                     (2, "", ("start", "--budget", "none", self.volume.path)),
                                     (1, "", ("start", self.volume / "none")), (1, "", ("start", "/tmp"))):
            done = subprocess.run([MDFS, "defrag", *map(str, command)], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr.count("\n"), words in done.stderr), (code, 1, True),
                             (command, done.stderr))

    def test_every_field_of_json_is_in_the_manual(self):
        told = as_json("defrag", "start", self.volume.path, "--wait")
        with open(os.path.join(os.path.dirname(__file__), "../../man/mdfs.1.scd"), encoding="utf-8") as file:
            manual = file.read().replace("\\", "")
        for field in told:
            self.assertIn(f"_{field}_", manual)


if __name__ == "__main__":
    main()
