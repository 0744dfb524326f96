"""Images with second copies on a real mount: a lost disk loses nothing, whichever it is."""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import subprocess
import threading
import unittest

import numpy

from harness import MDFS, MDFSCK, Mounted, make_image, run, write_all
from protected_volume import ProtectedVolume, read

EXTENT = 64
SIDE = 10 * EXTENT


class Protect(ProtectedVolume):
    def image(self, name, codec=1):
        path = f"{self.volume.path}/{name}"
        make_image(path, [SIDE, SIDE], extent=(EXTENT, EXTENT), codec=codec)
        data = self.random.integers(0, 256, SIDE * SIDE, dtype="u1").tobytes()
        write_all(path, data)
        return path, data

    def protection(self, path):
        return json.loads(run(MDFS, "image", "info", "--json", path))["protection"]

    def test_a_protected_image_loses_nothing_with_any_one_disk(self):
        os.mkdir(f"{self.volume.path}/safe")
        run(MDFS, "image", "protect", f"{self.volume.path}/safe", "copies=2")
        images = dict([self.image("safe/zstd"), self.image("safe/raw", 0)])
        plain, _ = self.image("plain")
        run(MDFS, "volume", "sync", self.volume.path)
        for path in images:
            state = self.protection(path)
            self.assertEqual((state["copies"], state["extents"], state["copied"]), (2, 100, 100))
        self.assertEqual(self.protection(plain)["copies"], 1)
        self.check()
        for disk in range(3):
            with self.subTest(disk=disk):
                self.lose(disk, "cache=64M,ro")
                for path, data in images.items():
                    self.assertEqual(read(path), data)
                found = json.loads(subprocess.run([MDFS, "volume", "lost", "--json", self.volume.path],
                                                  capture_output=True, text=True, check=False).stdout)
                names = [name for file in found["files"] for name in file["paths"]]
                self.assertEqual(len(names), 1)
                self.assertTrue(names[0].endswith("plain"), names)
                self.bring_back(disk)

    def test_a_lost_disk_is_rebuilt_and_then_the_next_one_may_go(self):
        path, data = self.image("picture")
        run(MDFS, "volume", "sync", self.volume.path)
        shown = json.loads(run(MDFS, "image", "protect", "--json", path, "copies=2"))
        self.assertEqual((shown["operation"]["made"], shown["paths"][0]["copied"]), (100, 100))
        self.lose(2)
        self.assertEqual(read(path), data)
        self.assertLess(self.protection(path)["copied"], 100)
        plan = json.loads(run(MDFS, "window", "explain", "--json", path, "y0+640,x0+640"))
        self.assertEqual((plan["extents"], plan["holes"]), (100, 0))
        self.assertEqual([disk["bytes"] > 0 for disk in plan["disks"]], [True, True, False])
        data = data[:1000] + bytes(5000) + data[6000:]
        with open(path, "r+b") as file:  # writes go on with two disks
            file.seek(1000)
            file.write(bytes(5000))
        rebuilt = json.loads(run(MDFS, "disk", "rebuild", "--json", self.volume.path))
        self.assertGreater(rebuilt["repaired"] + rebuilt["made"], 0)
        self.assertEqual(rebuilt["no_room"], 0)
        self.assertEqual(sum(disk["written_bytes"] for disk in rebuilt["disks"]), rebuilt["written_bytes"])
        self.assertEqual(self.protection(path)["copied"], 100)
        layout = json.loads(run(MDFS, "image", "layout", "--json", path))
        self.assertEqual({row["disk"] for row in layout["extents"]}, {0, 1})
        self.assertEqual(sum(row["copy"] for row in layout["extents"]), 100)
        self.assertEqual(read(path), data)
        run(MDFS, "disk", "remove", self.volume.path, "2")
        self.assertEqual(read(path), data)

    def test_the_pieces_of_a_lost_disk_come_on_all_others_alike(self):
        more = [f"{self.volume.folder}/more{number}" for number in range(3)]
        for path in more:
            with open(path, "wb") as file:
                file.truncate(64 << 20)
        run(MDFS, "disk", "add", self.volume.path, *more)
        self.volume.disks += more
        path, data = self.image("picture", 0)
        run(MDFS, "image", "protect", path, "copies=2")
        self.lose(5)
        run(MDFS, "disk", "rebuild", self.volume.path)
        rows = json.loads(run(MDFS, "image", "layout", "--json", path))["extents"]
        pieces = [sum(row["disk"] == disk for row in rows) for disk in range(6)]
        self.assertEqual((sum(pieces), pieces[5]), (200, 0))
        self.assertLess(max(pieces[:5]), 1.3 * min(pieces[:5]))
        self.assertEqual(read(path), data)

    def test_an_image_is_converted_under_writers_and_back(self):
        path, data = self.image("picture", 0)
        array = numpy.frombuffer(data, "u1").reshape(SIDE, SIDE).copy()
        stop = threading.Event()

        def write():
            random = numpy.random.default_rng(1)
            with open(path, "r+b", buffering=0) as file:
                while not stop.is_set():
                    row = int(random.integers(0, SIDE))
                    array[row] = random.integers(0, 256, SIDE, dtype="u1")
                    os.pwrite(file.fileno(), array[row].tobytes(), row * SIDE)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for setting in ("copies=2", "none", "copies=2"):
                run(MDFS, "image", "protect", path, setting)
        finally:
            stop.set()
            writer.join()
        run(MDFS, "volume", "sync", self.volume.path)
        self.assertEqual(read(path), array.tobytes())
        state = self.protection(path)
        self.assertEqual(state["copied"], state["extents"])
        self.check()
        self.assertEqual(read(path), array.tobytes())
        run(MDFS, "image", "protect", path, "none")
        state = self.protection(path)
        self.assertEqual((state["copies"], state["copied"]), (1, 0))
        run(MDFS, "volume", "sync", self.volume.path)
        self.check()
        self.assertEqual(read(path), array.tobytes())

    def test_a_flipped_bit_is_repaired_by_mdfsck_and_by_the_scrub(self):
        path, data = self.image("picture", 0)
        run(MDFS, "image", "protect", path, "copies=2")
        rows = json.loads(run(MDFS, "image", "layout", "--json", path))["extents"]
        for by_scrub in (False, True):
            for copy in (False, True):
                row = next(one for one in rows if one["copy"] == copy)
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
                rows = json.loads(run(MDFS, "image", "layout", "--json", path))["extents"]

    def test_appended_frames_of_a_protected_image_have_copies_at_the_sync(self):
        path = f"{self.volume.path}/movie"
        make_image(path, [0, 256, 256], extent=(8, 64, 64), codec=1)
        run(MDFS, "image", "protect", path, "copies=2")
        data = b""
        with open(path, "r+b") as file:
            for _ in range(11):
                frame = self.random.integers(0, 256, 256 * 256, dtype="u1").tobytes()
                file.write(frame)
                file.flush()
                os.fsync(file.fileno())
                data += frame
        state = self.protection(path)
        self.assertEqual((state["copied"], state["in_strips"]), (state["extents"], False))
        self.lose(1)
        self.assertEqual(read(path), data)

    def test_an_image_is_converted_that_comes_when_the_work_for_another_one_ends(self):
        empty = f"{self.volume.path}/empty"
        run(MDFS, "image", "create", "--shape", "10x10", empty)
        for number in range(20):
            path, _ = self.image(f"image{number}", 0)
            run(MDFS, "volume", "sync", self.volume.path)
            run(MDFS, "image", "protect", empty, path, "copies=2")
            self.assertEqual(self.protection(path)["copied"], 100)
            run(MDFS, "image", "protect", empty, path, "none")
            self.assertEqual(self.protection(path)["copied"], 0)

    def test_links_are_not_followed_and_pipes_not_waited_for(self):
        path, _ = self.image("outside")
        folder = f"{self.volume.path}/folder"
        os.mkdir(folder)
        os.symlink("../outside", f"{folder}/link")
        os.symlink("/etc", f"{folder}/etc")
        os.mkfifo(f"{folder}/pipe")
        run(MDFS, "image", "protect", "--recursive", folder, "copies=2")
        self.assertEqual(self.protection(path)["copies"], 1)
        done = subprocess.run([MDFS, "image", "protect", f"{folder}/pipe", "copies=2"], capture_output=True, text=True,
                              check=False, timeout=20)
        self.assertEqual(done.returncode, 1)

    def test_the_exit_status_says_that_copies_have_no_room(self):
        path, data = self.image("picture", 0)
        with self.assertRaises(OSError), open(f"{self.volume.path}/fill", "wb", buffering=0) as file:
            while True:
                file.write(os.urandom(1 << 20))
        run(MDFS, "volume", "sync", self.volume.path)
        for words in (["image", "protect", path, "copies=2"], ["disk", "rebuild", self.volume.path]):
            done = subprocess.run([MDFS, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("have no second copy", done.stderr)
        os.unlink(f"{self.volume.path}/fill")
        run(MDFS, "volume", "sync", self.volume.path)
        run(MDFS, "disk", "rebuild", self.volume.path)
        self.assertEqual(self.protection(path)["copied"], 100)
        self.assertEqual(read(path), data)

    def test_the_last_disk_but_one_stays_as_long_as_images_have_copies(self):
        run(MDFS, "disk", "remove", self.volume.path, "2")
        path, data = self.image("picture")
        run(MDFS, "image", "protect", path, "copies=2")
        done = subprocess.run([MDFS, "disk", "remove", self.volume.path, "1"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("copies (mdfs image protect) need two disks", done.stderr)
        disks = json.loads(run(MDFS, "disk", "list", "--json", self.volume.path))["disks"]
        self.assertEqual({disk["state"] for disk in disks}, {"healthy"})  # it was refused before it began
        done = subprocess.run([MDFS, "disk", "remove", "--dry-run", self.volume.path, "1"], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, "need two disks" in done.stderr), (1, True), done.stdout + done.stderr)
        run(MDFS, "image", "protect", path, "none")
        run(MDFS, "disk", "remove", self.volume.path, "1")
        self.assertEqual(read(path), data)

    def test_df_of_a_protected_directory_says_what_can_be_stored_twice(self):
        larger = f"{self.volume.folder}/larger"
        with open(larger, "wb") as file:
            file.truncate(512 << 20)
        run(MDFS, "disk", "add", self.volume.path, larger)
        safe = f"{self.volume.path}/safe"
        os.mkdir(safe)
        run(MDFS, "image", "protect", safe, "copies=2")
        one, two = os.statvfs(self.volume.path), os.statvfs(safe)
        self.assertLess(two.f_bavail, 0.4 * one.f_bavail)  # the larger disk alone has more than the others
        self.assertEqual(two.f_bfree, one.f_bfree)
        stored, number = 0, 0
        while True:
            path = f"{safe}/{number}"
            run(MDFS, "image", "create", "--shape", "1024x1024", "--extent", "64x64", "--codec", "raw", path)
            try:
                with open(path, "r+b") as file:
                    file.write(self.random.integers(0, 256, 1 << 20, dtype="u1").tobytes())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)
                break
            stored += 1 << 20
            number += 1
        for i in range(number - 1):  # the blocks of the last one may have been taken by nodes of the tree
            self.assertEqual(self.protection(f"{safe}/{i}")["copied"], 256)
        promised = two.f_bavail * two.f_frsize
        self.assertGreater(stored, 0.9 * promised)
        self.assertLess(stored, 1.01 * promised)
        self.assertLess(os.statvfs(safe).f_bavail * two.f_frsize, 2 << 20)
        self.assertGreater(os.statvfs(self.volume.path).f_bavail * one.f_frsize, 300 << 20)

    def test_the_commands_say_what_they_need(self):
        path, _ = self.image("picture")
        shown = json.loads(run(MDFS, "image", "protect", "--dry-run", "--json", path, "copies=2"))
        self.assertTrue(shown["paths"][0]["changes"])
        self.assertEqual(self.protection(path)["copies"], 1)
        for words in ([path], [path, "copies=3"]):
            done = subprocess.run([MDFS, "image", "protect", *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
        # A wrong name among right ones changes nothing.
        done = subprocess.run([MDFS, "image", "protect", path, f"{self.volume.path}/absent", "copies=2"],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("absent", done.stderr)
        self.assertEqual(self.protection(path)["copies"], 1)
        alone = f"{self.volume.path}/alone"  # on one disk by its placement, with copies elsewhere
        run(MDFS, "image", "create", "--shape", "640x640", "--extent", "64x64", "--disks", "1", alone)
        run(MDFS, "image", "protect", alone, "copies=2")
        write_all(alone, self.random.integers(0, 256, SIDE * SIDE, dtype="u1").tobytes())
        run(MDFS, "volume", "sync", self.volume.path)
        self.assertEqual(self.protection(alone)["copied"], 100)
        folder = f"{self.volume.path}/folder"
        os.makedirs(f"{folder}/below")
        self.image("folder/below/one")
        run(MDFS, "image", "protect", "--recursive", folder, "copies=2")
        self.assertEqual(self.protection(f"{folder}/below/one")["copied"], 100)
        later, _ = self.image("folder/below/later")
        run(MDFS, "volume", "sync", self.volume.path)
        self.assertEqual(self.protection(later)["copied"], 100)


class OnOneDisk(unittest.TestCase):
    def test_copies_are_refused_and_a_dry_run_says_so(self):
        volume = Mounted(disks=1, size="64M")
        self.addCleanup(volume.remove)
        path = f"{volume.path}/file"
        write_all(path, bytes(10_000))
        for words in (["--dry-run"], []):
            done = subprocess.run([MDFS, "image", "protect", *words, path, "copies=2"], capture_output=True, text=True,
                                  check=False)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn("second copies need a volume of two disks or more", done.stderr)


if __name__ == "__main__":
    unittest.main()
