"""Ordinary files with second copies on a real mount: a lost disk loses nothing, whichever it is."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import ctypes
import errno
import json
import os
import subprocess
import threading
import time
import unittest

import numpy

from harness import MDFS, MDFSCK, MKMDFS, make_image, run, status_of, wait_until, write_all
from protected_volume import ProtectedVolume, read

CELL = 128 << 10
SIZES = (0, 1, 2048, 2049, 4096, CELL - 1, CELL, CELL + 1, 700_000)
PUNCH_HOLE, KEEP_SIZE = 2, 1


def punch(path, offset, length):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "r+b") as file:
        if libc.fallocate(file.fileno(), PUNCH_HOLE | KEEP_SIZE, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
            raise OSError(ctypes.get_errno(), path)


@contextlib.contextmanager
def again_and_again(work):
    """Calls work(0), work(1), .. in a thread of its own, until the block ends."""
    stop = threading.Event()

    def all_of_it():
        number = 0
        while not stop.is_set():
            work(number)
            number += 1

    thread = threading.Thread(target=all_of_it)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class FilesWithCopies(ProtectedVolume):
    def protection(self, path):
        return json.loads(run(MDFS, "image", "protect", "--dry-run", "--json", path, "copies=2"))["paths"][0]

    def write(self, name, length):
        path = f"{self.volume.path}/{name}"
        data = self.random.bytes(length)
        write_all(path, data)
        return path, data

    def state_of_disk(self, number):
        return json.loads(status_of(self.volume.path, "--json", unhealthy=None))["disks"][number]["state"]

    def lost_names(self):
        done = subprocess.run([MDFS, "volume", "lost", "--json", self.volume.path], capture_output=True, text=True,
                              check=False)
        return [name for file in json.loads(done.stdout)["files"] for name in file["paths"]]

    def places_of(self, block):
        """Where the disks have these bytes, as (disk, offset)."""
        found = []
        for number, path in enumerate(self.volume.disks):
            content = read(path)
            at = content.find(block)
            while at >= 0:
                found.append((number, at))
                at = content.find(block, at + 1)
        return found


class OfTheWholeVolume(FilesWithCopies):
    make = ("--copies", "2")

    def test_no_file_loses_anything_with_any_one_disk(self):
        os.makedirs(f"{self.volume.path}/notes/deep")
        files = dict(self.write(f"notes/deep/{size}", size) for size in SIZES)
        sparse = f"{self.volume.path}/sparse"
        with open(sparse, "wb") as file:
            for offset in (0, 3 * CELL + 5000, 900_000):
                file.seek(offset)
                file.write(b"island" * 1000)
            file.truncate(2_000_000)
        files[sparse] = read(sparse)
        image = f"{self.volume.path}/image"
        make_image(image, [300, 300], extent=(64, 64), codec=1)
        files[image] = self.random.bytes(90_000)
        write_all(image, files[image])
        run(MDFS, "volume", "sync", self.volume.path)
        for path in files:
            state = self.protection(path)
            self.assertEqual((state["copies"], state["copied"]), (2, state["extents"]), path)
        self.check()
        for disk in range(3):
            with self.subTest(disk=disk):
                self.lose(disk, "cache=64M,ro")
                for path, data in files.items():
                    self.assertEqual(read(path), data, path)
                self.assertEqual(self.lost_names(), [])
                self.bring_back(disk)
        status = os.stat(f"{self.volume.path}/notes/deep/700000")
        self.assertGreater(status.st_blocks * 512, 2 * 700_000)

    def test_files_change_with_a_disk_lost_and_lose_nothing_with_the_next_one(self):
        path, data = self.write("file", 900_000)
        data = bytearray(data)
        run(MDFS, "volume", "sync", self.volume.path)
        for lost in (0, 2):
            self.lose(lost)
            for _ in range(30):
                offset, length = int(self.random.integers(0, 850_000)), int(self.random.integers(1, 60_000))
                if self.random.integers(0, 5) == 0:
                    punch(path, offset, length)
                    data[offset:offset + length] = bytes(min(length, len(data) - offset))
                else:
                    some = self.random.bytes(length)
                    with open(path, "r+b") as file:
                        file.seek(offset)
                        file.write(some)
                    data[offset:offset + length] = some
            self.assertEqual(read(path), bytes(data))
            run(MDFS, "disk", "rebuild", self.volume.path)
            state = self.protection(path)
            self.assertEqual(state["copied"], state["extents"])
            run(MDFS, "disk", "remove", self.volume.path, str(lost))
            fresh = f"{self.volume.folder}/fresh{lost}"
            with open(fresh, "wb") as file:
                file.truncate(64 << 20)
            run(MDFS, "disk", "add", self.volume.path, fresh)
            self.volume.disks[lost] = fresh
            self.assertEqual(read(path), bytes(data))
        self.check()

    def test_a_disk_that_dies_under_writers_stops_none_of_them(self):
        image = f"{self.volume.path}/image"
        make_image(image, [640, 640], extent=(64, 64), codec=0)
        contents, failures = {}, []
        stop = threading.Event()

        def write_on(path, size, seed):
            random = numpy.random.default_rng(seed)
            content = bytearray(random.bytes(size))
            write_all(path, bytes(content))
            while not stop.is_set():
                offset, length = int(random.integers(0, size - 20_000)), int(random.integers(1, 20_000))
                some = random.bytes(length)
                try:
                    with open(path, "r+b") as file:
                        file.seek(offset)
                        file.write(some)
                        file.flush()
                        os.fsync(file.fileno())
                except OSError as error:
                    failures.append(error)
                    break
                content[offset:offset + length] = some
            contents[path] = bytes(content)

        writers = [threading.Thread(target=write_on, args=(f"{self.volume.path}/file{number}", 400_000, number))
                   for number in range(3)] + [threading.Thread(target=write_on, args=(image, 640 * 640, 9))]
        for writer in writers:
            writer.start()
        wait_until(lambda: os.path.exists(f"{self.volume.path}/file2"))
        time.sleep(1)
        os.truncate(self.volume.disks[1], 1 << 20)
        wait_until(lambda: self.state_of_disk(1) == "failed")
        time.sleep(1)
        stop.set()
        for writer in writers:
            writer.join()
        self.assertEqual(failures, [])
        for path, content in contents.items():
            self.assertEqual(read(path), content, path)
        done = subprocess.run([MDFS, "umount", self.volume.path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)  # that disk is lost
        self.assertIn("was truncated while in use", done.stderr)
        self.volume.mount("cache=64M", [self.volume.disks[0], self.volume.disks[2]])
        for path, content in contents.items():
            self.assertEqual(read(path), content, path)
        run(MDFS, "disk", "rebuild", self.volume.path)
        for path in contents:
            state = self.protection(path)
            self.assertEqual(state["copied"], state["extents"])

    def test_a_full_volume_has_both_copies_of_what_it_acknowledged(self):
        promised = os.statvfs(self.volume.path).f_bavail * 4096
        stored = []
        while True:
            path = f"{self.volume.path}/{len(stored)}"
            data = self.random.bytes(1 << 20)
            try:
                with open(path, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)
                break
            stored.append((path, data))
        self.assertGreater(len(stored) << 20, 0.9 * promised)
        self.assertLess(len(stored) << 20, 1.01 * promised)
        os.unlink(path)
        for disk in range(3):
            self.lose(disk, "cache=64M,ro")
            for path, data in stored[:-1]:  # the blocks of the last one may have been taken by nodes of the tree
                self.assertEqual(read(path), data, path)
            self.bring_back(disk)

    def test_a_bad_block_of_either_copy_is_repaired_by_the_scrub_and_by_mdfsck(self):
        path, data = self.write("file", 3 * CELL)
        run(MDFS, "volume", "sync", self.volume.path)
        block = data[CELL + 8192:CELL + 12288]
        for by_scrub in (True, False):
            for which in (0, 1):
                with self.subTest(by_scrub=by_scrub, which=which):
                    self.volume.unmount()
                    places = self.places_of(block)
                    self.assertGreaterEqual(len({disk for disk, _ in places}), 2, places)
                    disk, at = places[which]
                    with open(self.volume.disks[disk], "r+b") as file:
                        file.seek(at + 77)
                        file.write(bytes([block[77] ^ 4]))
                    if by_scrub:
                        self.volume.mount("cache=64M", self.volume.disks)
                        run(MDFS, "scrub", "start", "--wait", self.volume.path)
                    else:
                        subprocess.run([MDFSCK, "-p", "--data", *self.volume.disks], capture_output=True, check=False)
                        self.volume.mount("cache=64M", self.volume.disks)
                    self.check()
                    self.assertEqual(read(path), data)

    def frames(self, name, count):
        path = f"{self.volume.path}/{name}"
        make_image(path, [0, 64, 64], extent=(16, 64, 64), codec=0)
        frames = [self.random.bytes(4096) for _ in range(count)]
        for frame in frames:
            self.append(path, frame)
        return path, frames

    def append(self, path, frame, sync=True):
        with open(path, "ab", buffering=0) as file:
            file.write(frame)
            if sync:
                os.fsync(file.fileno())

    def test_a_bad_block_of_an_appended_frame_is_repaired_also_before_the_next_frame_is_synced(self):
        for by_scrub in (True, False):
            with self.subTest(by_scrub=by_scrub):
                path, frames = self.frames(f"movie{by_scrub}", 5)
                self.volume.unmount()
                disk, at = self.places_of(frames[2])[0]
                with open(self.volume.disks[disk], "r+b") as file:
                    file.seek(at + 77)
                    file.write(bytes([frames[2][77] ^ 4]))
                if by_scrub:
                    self.volume.mount("cache=64M", self.volume.disks)
                    frames.append(self.random.bytes(4096))
                    self.append(path, frames[-1], sync=False)
                    run(MDFS, "scrub", "start", "--wait", self.volume.path)
                else:
                    done = subprocess.run([MDFSCK, "-p", "--data", *self.volume.disks], capture_output=True, text=True,
                                          check=False)
                    self.assertEqual(done.returncode, 1, done.stdout)
                    self.volume.mount("cache=64M", self.volume.disks)
                self.check()
                self.assertEqual(read(path), b"".join(frames))

    def test_a_rebuild_is_complete_while_a_frame_is_not_synced_yet(self):
        path, frames = self.frames("movie", 6)
        self.lose(1)
        frames.append(self.random.bytes(4096))
        self.append(path, frames[-1], sync=False)
        run(MDFS, "disk", "rebuild", self.volume.path)
        self.assertFalse(self.protection(path)["in_strips"])
        run(MDFS, "disk", "remove", self.volume.path, "1")
        self.assertEqual(read(path), b"".join(frames))
        self.volume.unmount()
        os.rename(self.volume.disks[2], f"{self.volume.folder}/away/disk2")
        self.volume.mount("cache=64M,ro", [self.volume.disks[0]])
        self.assertEqual(read(path), b"".join(frames))

    def test_a_removed_file_gives_back_both_copies(self):
        run(MDFS, "volume", "sync", self.volume.path)
        before = os.statvfs(self.volume.path).f_bfree
        for size in SIZES:
            self.write(f"gone{size}", size)
        run(MDFS, "volume", "sync", self.volume.path)
        for size in SIZES:
            os.unlink(f"{self.volume.path}/gone{size}")
        for _ in range(3):
            run(MDFS, "volume", "sync", self.volume.path)
        self.assertAlmostEqual(os.statvfs(self.volume.path).f_bfree, before, delta=40)
        self.check()


class OfOneDirectory(FilesWithCopies):
    def test_a_directory_is_protected_under_a_writer_and_unprotected_again(self):
        folder = f"{self.volume.path}/folder"
        os.makedirs(f"{folder}/below")
        files = dict(self.write(f"folder/below/{size}", size) for size in SIZES)
        plain, _ = self.write("plain", 700_000)
        busy, content = self.write("folder/busy", 2_000_000)
        content = bytearray(content)

        def write(number):
            offset = number * 7919 % 1_900_000
            with open(busy, "r+b") as file:
                file.seek(offset)
                file.write(b"w" * 10_000)
            content[offset:offset + 10_000] = b"w" * 10_000

        with again_and_again(write):
            for setting in ("copies=2", "none", "copies=2"):
                run(MDFS, "image", "protect", "--recursive", folder, setting)
        run(MDFS, "image", "protect", busy, "copies=2")
        for path in (*files, busy):
            state = self.protection(path)
            self.assertEqual((state["copies"], state["copied"]), (2, state["extents"]), path)
        later, _ = self.write("folder/later", 400_000)
        run(MDFS, "volume", "sync", self.volume.path)
        self.assertEqual(self.protection(later)["copied"], 4)
        self.check()
        files[busy] = bytes(content)
        for disk in range(3):
            self.lose(disk, "cache=64M,ro")
            for path, data in files.items():
                self.assertEqual(read(path), data, path)
            self.assertEqual([os.path.basename(name) for name in self.lost_names()], [os.path.basename(plain)])
            self.bring_back(disk)
        run(MDFS, "image", "protect", "--recursive", folder, "none")
        self.assertEqual(self.protection(busy)["copied"], 0)
        self.check()
        for path, data in files.items():
            self.assertEqual(read(path), data, path)

    def test_files_that_go_meanwhile_end_no_recursion(self):
        folder = f"{self.volume.path}/folder"
        os.mkdir(folder)
        for number in range(100):
            self.write(f"folder/stays{number}", 5000)

        def come_and_go(number):
            path = f"{folder}/goes{number % 7}"
            write_all(path, b"x" * 3000)
            os.unlink(path)

        with again_and_again(come_and_go):
            for setting in ("copies=2", "none", "copies=2"):
                run(MDFS, "image", "protect", "--recursive", folder, setting)
        for number in range(100):
            self.assertEqual(self.protection(f"{folder}/stays{number}")["copied"], 1)

    def test_a_protected_file_moves_off_a_disk_that_is_removed(self):
        path, data = self.write("file", 900_000)
        disk = f"{self.volume.folder}/more"
        with open(disk, "wb") as file:
            file.truncate(64 << 20)
        run(MDFS, "image", "protect", path, "copies=2")
        run(MDFS, "disk", "add", self.volume.path, disk)
        run(MDFS, "disk", "remove", self.volume.path, "0")
        state = self.protection(path)
        self.assertEqual((state["copied"], state["extents"]), (7, 7))
        self.assertEqual(read(path), data)

    def test_the_commands_say_what_they_did(self):
        path, _ = self.write("file", 300_000)
        small, _ = self.write("small", 100)
        self.assertEqual(run(MDFS, "image", "protect", path, small, "copies=2").splitlines(),
                         [f"{path}: copies 2, 3 of 3 cells have both (296 KiB of 296 KiB)", f"{small}: copies 2"])
        self.assertEqual(run(MDFS, "image", "protect", self.volume.path, "copies=2"),
                         f"{self.volume.path}: copies 2, of new files\n")
        for words, message in ((["--copies", "2", "one"], "two disks or more"), (["--copies", "3", "one", "two"],
                                                                                 "must be a whole number")):
            done = subprocess.run([MKMDFS, "--size", "64M", *words], capture_output=True, text=True, check=False,
                                  cwd=self.volume.folder)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
