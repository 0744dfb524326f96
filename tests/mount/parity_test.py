"""Images with parity on a real mount: a lost disk loses nothing, and all takes 1.25 times the space."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import subprocess
import threading
import time
import unittest

import numpy

from harness import MDFS, MDFSCK, MKMDFS, make_image, run, write_all
from protected_volume import ProtectedVolume, read

EXTENT = 64
SIDE = 16 * EXTENT


def refused(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


class Parity(ProtectedVolume):
    disks = 6

    def image(self, name, codec=1):
        path = f"{self.volume.path}/{name}"
        make_image(path, [SIDE, SIDE], extent=(EXTENT, EXTENT), codec=codec)
        data = self.random.integers(0, 256, SIDE * SIDE, dtype="u1").tobytes()
        write_all(path, data)
        return path, data

    def protection(self, path):
        return json.loads(run(MDFS, "image", "info", "--json", path))["protection"]

    def rows(self, path):
        return json.loads(run(MDFS, "image", "layout", "--json", path))["extents"]

    def wait_until_grouped(self, path, least):
        for _ in range(200):
            state = self.protection(path)
            if state["grouped"] >= least and not any(row["former"] for row in self.rows(path)):
                return state
            time.sleep(0.1)
        self.fail(f"only {state} after 20 s")

    def check_with_each_disk_lost(self, images):
        for disk in range(self.disks):
            with self.subTest(disk=disk):
                self.lose(disk, "cache=64M,ro")
                for path, data in images.items():
                    self.assertEqual(read(path), data)
                found = json.loads(run(MDFS, "volume", "lost", "--json", self.volume.path))
                self.assertEqual(found["files"], [])
                self.bring_back(disk)

    def test_images_are_converted_and_lose_nothing_with_any_one_disk(self):
        images = dict([self.image("zstd"), self.image("raw", 0)])
        for path in images:
            run(MDFS, "volume", "sync", self.volume.path)
            once = os.stat(path).st_blocks
            shown = json.loads(run(MDFS, "image", "protect", "--json", path, "parity=1"))
            now = shown["paths"][0]
            self.assertEqual((now["parity"], now["width"], now["extents"], now["copied"]), (1, 4, 256, 256))
            self.assertGreater(now["grouped"], 240)
            rows = self.rows(path)
            parities = sum(row["parity"] for row in rows)
            self.assertLess(parities + sum(row["copy"] for row in rows), 256 / 4 * 1.3)
            self.assertLess(os.stat(path).st_blocks, 1.36 * once)
        self.check()
        self.check_with_each_disk_lost(images)
        for path, data in images.items():
            run(MDFS, "image", "protect", path, "copies=2")
            self.assertEqual((self.protection(path)["copied"], self.protection(path)["grouped"]), (256, 0))
            run(MDFS, "image", "protect", path, "none")
            self.assertEqual(self.protection(path)["copied"], 0)
            self.assertEqual(read(path), data)
        run(MDFS, "volume", "sync", self.volume.path)
        self.check()

    def test_what_is_written_gets_parities_when_the_volume_is_idle(self):
        os.mkdir(f"{self.volume.path}/safe")
        run(MDFS, "image", "protect", f"{self.volume.path}/safe", "parity=1")
        path, data = self.image("safe/picture", 0)
        run(MDFS, "volume", "sync", self.volume.path)
        self.assertEqual(self.protection(path)["copied"], 256)
        self.wait_until_grouped(path, 240)
        array = numpy.frombuffer(data, "u1").reshape(SIDE, SIDE).copy()
        array[100:300, 50:400] = self.random.integers(0, 256, (200, 350), dtype="u1")
        with open(path, "r+b") as file:
            for row in range(100, 300):
                os.pwrite(file.fileno(), array[row, 50:400].tobytes(), row * SIDE + 50)
            os.fsync(file.fileno())
        self.assertEqual(self.protection(path)["copied"], 256)
        self.wait_until_grouped(path, 240)
        run(MDFS, "volume", "sync", self.volume.path)
        self.check()
        self.check_with_each_disk_lost({path: array.tobytes()})
        note = f"{self.volume.path}/safe/note"
        write_all(note, os.urandom(300_000))
        run(MDFS, "volume", "sync", self.volume.path)
        shown = json.loads(run(MDFS, "image", "protect", "--dry-run", "--json", note, "parity=1"))["paths"][0]
        self.assertEqual((shown["copied"], shown["grouped"], shown["changes"]), (3, 0, False))
        os.unlink(path)
        run(MDFS, "volume", "sync", self.volume.path)
        self.check()

    def test_a_lost_disk_is_rebuilt_under_writers_and_then_the_next_one_may_go(self):
        path, data = self.image("picture", 0)
        run(MDFS, "image", "protect", path, "parity=1")
        self.lose(5)
        self.assertEqual(read(path), data)
        plan = json.loads(run(MDFS, "window", "explain", "--json", path, f"y0+{SIDE},x0+{SIDE}"))
        self.assertEqual((plan["extents"], plan["holes"], plan["disks"][5]["bytes"]), (256, 0, 0))
        array = numpy.frombuffer(data, "u1").reshape(SIDE, SIDE).copy()
        stop = threading.Event()

        def write():
            choice = random.Random(1)
            with open(path, "r+b", buffering=0) as file:
                while not stop.is_set():
                    row = choice.randrange(SIDE)
                    array[row] = numpy.frombuffer(choice.randbytes(SIDE), "u1")
                    os.pwrite(file.fileno(), array[row].tobytes(), row * SIDE)
                    time.sleep(0.002)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            run(MDFS, "disk", "rebuild", self.volume.path)
        finally:
            stop.set()
            writer.join()
        run(MDFS, "volume", "sync", self.volume.path)
        rebuilt = json.loads(run(MDFS, "disk", "rebuild", "--json", self.volume.path))
        self.assertEqual(rebuilt["no_room"], 0)
        self.assertEqual(self.protection(path)["copied"], 256)
        self.assertNotIn(5, {row["disk"] for row in self.rows(path)})
        run(MDFS, "disk", "remove", self.volume.path, "5")
        self.assertEqual(read(path), array.tobytes())
        self.volume.disks.pop()
        self.check()
        for disk in range(5):
            self.lose(disk, "cache=64M,ro")
            self.assertEqual(read(path), array.tobytes())
            self.bring_back(disk)

    def test_a_flipped_bit_of_a_member_or_a_parity_is_repaired(self):
        path, data = self.image("picture", 0)
        run(MDFS, "image", "protect", path, "parity=1")
        for by_scrub in (False, True):
            for parity in (False, True):
                row = next(one for one in self.rows(path) if one["parity"] == parity and not one["copy"])
                self.volume.unmount()
                with open(self.volume.disks[row["disk"]], "r+b") as disk:
                    disk.seek(row["block"] * 4096 + 77)
                    old = disk.read(1)
                    disk.seek(row["block"] * 4096 + 77)
                    disk.write(bytes([old[0] ^ 4]))
                if by_scrub:
                    self.volume.mount("cache=64M", self.volume.disks)
                    run(MDFS, "scrub", "start", "--wait", self.volume.path)
                else:
                    done = subprocess.run([MDFSCK, "-p", "--data", *self.volume.disks], capture_output=True, text=True,
                                          check=False)
                    self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                    self.assertIn("703", done.stdout)
                    self.volume.mount("cache=64M", self.volume.disks)
                self.check()
                self.assertEqual(read(path), data)

    def test_disks_are_drained_and_balanced_and_pieces_stay_apart(self):
        path, data = self.image("picture", 0)
        run(MDFS, "image", "protect", path, "parity=1")
        new = f"{self.volume.folder}/new"
        with open(new, "wb") as file:
            file.truncate(64 << 20)
        run(MDFS, "disk", "add", "--balance", self.volume.path, new)
        self.volume.disks.append(new)
        self.assertEqual(self.protection(path)["copied"], 256)
        run(MDFS, "disk", "remove", self.volume.path, "0")
        self.assertEqual(self.protection(path)["copied"], 256)
        self.assertNotIn(0, {row["disk"] for row in self.rows(path)})
        self.assertEqual(read(path), data)
        self.volume.unmount()
        self.volume.disks.pop(0)
        self.volume.mount("cache=64M", self.volume.disks)
        run(MDFS, "defrag", "start", "--wait", self.volume.path)
        self.assertEqual(self.protection(path)["copied"], 256)
        self.check()
        self.assertEqual(read(path), data)

    def test_two_lost_disks_take_only_what_had_pieces_on_both(self):
        path, data = self.image("picture", 0)
        run(MDFS, "image", "protect", path, "parity=1")
        self.volume.unmount()
        away = f"{self.volume.folder}/away"
        os.makedirs(away)
        for disk in (1, 4):
            os.rename(self.volume.disks[disk], f"{away}/disk{disk}")
        left = [disk for disk in self.volume.disks if os.path.exists(disk)]
        self.volume.mount("cache=64M,ro", left)
        lost = self.protection(path)["lost"]
        wrong = 0
        with open(path, "rb", buffering=0) as file:
            for number in range(256):
                y, x = number // 16 * EXTENT, number % 16 * EXTENT
                try:
                    rows = [os.pread(file.fileno(), EXTENT, (y + i) * SIDE + x) for i in range(EXTENT)]
                    for i, row in enumerate(rows):
                        self.assertEqual(row, data[(y + i) * SIDE + x:(y + i) * SIDE + x + EXTENT])
                except OSError:
                    wrong += 1
        self.assertEqual(wrong, lost)
        self.assertGreater(lost, 0)
        self.volume.unmount()
        for disk in (1, 4):
            os.rename(f"{away}/disk{disk}", self.volume.disks[disk])
        self.volume.mount("cache=64M", self.volume.disks)
        self.assertEqual(read(path), data)

    def test_a_rebuild_continues_an_interrupted_one_without_its_budget(self):
        path, data = self.image("picture", 0)
        run(MDFS, "image", "protect", path, "parity=1")
        self.lose(5)
        slow = subprocess.Popen([MDFS, "disk", "rebuild", "--budget", "4K", self.volume.path], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        time.sleep(1)
        slow.terminate()
        slow.communicate()
        run(MDFS, "disk", "rebuild", self.volume.path)  # 256 KiB take a minute at that rate
        self.assertEqual(self.protection(path)["copied"], 256)
        self.assertEqual(read(path), data)

    def test_the_commands_say_what_they_need(self):
        path, _ = self.image("picture")
        status, text = refused(MDFS, "image", "protect", path, "parity=1,width=8")
        self.assertEqual(status, 1, text)
        self.assertIn("needs a volume of 9 disks or more", text)
        for word in ("parity=2", "parity=1,width=3", "parity", "width=4"):
            status, text = refused(MDFS, "image", "protect", path, word)
            self.assertEqual((status, "must be copies=2, parity=1" in text), (2, True), text)
        shown = json.loads(run(MDFS, "image", "protect", "--dry-run", "--json", path, "parity=1,width=2"))
        self.assertTrue(shown["paths"][0]["changes"])
        self.assertEqual(self.protection(path)["parity"], 0)
        self.assertIn("by a parity", run(MDFS, "image", "protect", path, "parity=1,width=2"))
        self.assertEqual(self.protection(path)["width"], 2)


class FromTheBeginning(ProtectedVolume):
    disks = 3
    make = ("--parity", "1")

    def test_a_volume_of_three_disks_has_pairs(self):
        path = f"{self.volume.path}/picture"
        make_image(path, [SIDE, SIDE], extent=(EXTENT, EXTENT), codec=0)
        data = self.random.integers(0, 256, SIDE * SIDE, dtype="u1").tobytes()
        write_all(path, data)
        run(MDFS, "volume", "sync", self.volume.path)
        run(MDFS, "disk", "rebuild", self.volume.path)
        state = json.loads(run(MDFS, "image", "info", "--json", path))["protection"]
        self.assertEqual((state["width"], state["copied"], state["grouped"] > 200), (2, 256, True))
        self.check()
        for disk in range(3):
            self.lose(disk, "cache=64M,ro")
            self.assertEqual(read(path), data)
            self.bring_back(disk)

    def test_mkmdfs_says_what_it_needs(self):
        disk = f"{self.volume.folder}/x"
        for words, said in ((["--parity", "1", disk, disk + "1"], "needs 3 disks"),
                            (["--parity", "1", "--width", "3", disk, disk + "1", disk + "2"], "must be 2, 4 or 8"),
                            (["--width", "2", disk, disk + "1", disk + "2"], "--width is of --parity"),
                            (["--parity", "1", "--copies", "2", disk, disk + "1", disk + "2"], "excludes"),
                            (["--parity", "2", disk], "--parity")):
            status, text = refused(MKMDFS, "--size", "64M", "--sparse", *words)
            self.assertEqual((status, said in text), (2, True), text)
            self.assertFalse(os.path.exists(disk))


if __name__ == "__main__":
    unittest.main()
