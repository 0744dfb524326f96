"""Disks of a mounted volume that are given another size: mdfs disk resize."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import signal
import subprocess
import threading
import unittest

import numpy as np

from harness import MDFS, MDFSCK, Mounted, is_dead, read_all, run, wait_until, write_all

MIB = 1 << 20


class Resize(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=2, size="64M")
        self.random = random.Random(7)

    def tearDown(self):
        if os.path.ismount(self.volume.path):
            self.volume.unmount()
        self.volume.remove()

    def resize(self, disk, size, *options):
        return run(MDFS, "disk", "resize", *options, self.volume.path, str(disk), *([size] if size else []))

    def refused(self, *arguments):
        done = subprocess.run([MDFS, "disk", "resize", *arguments], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr

    def sizes(self):
        told = json.loads(run(MDFS, "disk", "list", "--json", self.volume.path))
        return [disk["blocks"] * told["block_size"] for disk in told["disks"]]

    def fill(self, names, mib):
        contents = {}
        for name in names:
            contents[name] = self.random.randbytes(mib * MIB)
            write_all(self.volume / name, contents[name])
        run(MDFS, "volume", "sync", self.volume.path)
        return contents

    def look(self, contents):
        for name, data in contents.items():
            self.assertEqual(read_all(self.volume / name), data, name)

    def check_clean(self, contents):
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", *self.volume.disks)
        self.volume.mount()
        self.look(contents)

    def test_a_disk_grows_with_its_file(self):
        contents = self.fill(["a", "b"], 20)
        room = os.statvfs(self.volume.path).f_bavail
        for disk in self.volume.disks:
            os.truncate(disk, 512 * MIB)
        self.assertRegex(self.resize(0, "max"), r"disk 0 \(.*\) has 512 MiB.*before 64 MiB")
        self.resize(1, "512M")
        self.assertEqual(self.sizes(), [512 * MIB] * 2)
        self.assertGreater(os.statvfs(self.volume.path).f_bavail, room + (440 * 2 * MIB) // 4096)
        contents |= self.fill(["c", "d"], 200)
        self.look(contents)
        self.check_clean(contents)
        self.assertEqual(self.sizes(), [512 * MIB] * 2)
        self.assertIn("already", self.resize(0, "max"))

    def test_a_disk_shrinks_and_the_end_of_its_file_can_go(self):
        for disk in self.volume.disks:
            os.truncate(disk, 400 * MIB)
        self.resize(0, "max")
        self.resize(1, "max")
        contents = self.fill([f"f{i}" for i in range(12)], 20)
        for i in range(0, 12, 2):
            os.remove(self.volume / f"f{i}")
            del contents[f"f{i}"]
        # Somebody writes meanwhile.
        stop, written = threading.Event(), {}

        def write():
            number = 0
            while not stop.is_set():
                name = f"w{number % 5}"
                written[name] = random.Random(number).randbytes(300_000)
                write_all(self.volume / name, written[name])
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        said = json.loads(self.resize(1, "160M", "--json"))
        self.assertEqual((said["state"], said["disk"], said["bytes"]), ("done", 1, 160 * MIB))
        self.resize(0, "160M")
        stop.set()
        writer.join()
        contents |= written
        self.assertEqual(self.sizes(), [160 * MIB] * 2)
        self.look(contents)
        self.volume.unmount()
        for disk in self.volume.disks:
            os.truncate(disk, 160 * MIB)
        run(MDFSCK, "-n", "--data", *self.volume.disks)
        self.volume.mount()
        self.look(contents)

    def test_what_has_no_room_on_the_rest_of_the_disk_goes_to_others(self):
        for number, disk in enumerate(self.volume.disks):
            os.truncate(disk, 256 * MIB)
            self.resize(number, "max")
        contents = self.fill([f"f{i}" for i in range(8)], 20)
        image = np.random.default_rng(1).integers(0, 999, (40, 700, 700), dtype=np.uint16)
        np.save(os.path.join(self.volume.folder, "image.npy"), image)
        run(MDFS, "image", "import", os.path.join(self.volume.folder, "image.npy"), self.volume / "image")
        contents["image"] = image.tobytes()
        self.resize(1, "48M")
        self.assertEqual(self.sizes(), [256 * MIB, 48 * MIB])
        self.look(contents)
        self.check_clean(contents)

    def test_sizes_that_cannot_be_are_refused_by_name(self):
        contents = self.fill(["a"], 10)
        path = self.volume.path
        self.assertIn("make it larger first", self.refused(path, "0", "128M"))
        self.assertIn("--grow-to", self.refused(path, "0", "4G"))
        self.assertIn("at least", self.refused(path, "0", "1M"))
        self.assertIn("SIZE", self.refused(path, "0", "many"))
        self.assertIn("SIZE", self.refused(path, "0"))
        self.assertIn("no such disk", self.refused(path, "7", "max"))
        self.assertIn("not being changed", self.refused("--cancel", path, "0"))
        self.assertEqual(self.sizes(), [64 * MIB] * 2)
        self.look(contents)

    def test_what_has_no_room_stays_and_a_dry_run_changes_nothing(self):
        contents = self.fill([f"f{i}" for i in range(7)], 12)
        told = self.resize(1, "48M", "--dry-run")
        self.assertRegex(told, r"would have 48 MiB.*now 64 MiB")
        self.assertIn("no space elsewhere", self.refused(self.volume.path, "1", "16M"))
        self.assertEqual(self.sizes(), [64 * MIB] * 2)
        self.look(contents)
        self.check_clean(contents)

    def test_it_goes_on_after_a_kill_and_can_be_cancelled(self):
        for disk in self.volume.disks:
            os.truncate(disk, 256 * MIB)
        self.resize(0, "max")
        contents = self.fill([f"f{i}" for i in range(10)], 16)
        for i in range(5):
            os.remove(self.volume / f"f{i}")
            del contents[f"f{i}"]
        waiting = subprocess.Popen([MDFS, "disk", "resize", "--budget", "2M", self.volume.path, "0", "80M"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: "being shrunk" in run(MDFS, "disk", "list", self.volume.path))
        os.kill(self.volume.daemon(), signal.SIGKILL)
        waiting.wait()
        wait_until(lambda: is_dead(self.volume.path))
        self.volume.mount()
        self.assertIn("being shrunk", run(MDFS, "disk", "list", self.volume.path))
        self.assertEqual(self.sizes()[0], 256 * MIB)
        self.assertIn("keeps its size", self.resize(0, None, "--cancel"))
        self.look(contents)
        self.resize(0, "80M")
        self.assertEqual(self.sizes()[0], 80 * MIB)
        self.check_clean(contents)


if __name__ == "__main__":
    unittest.main(verbosity=2)
