"""Disks that join and leave a mounted volume: nothing is lost, and mdfsck finds the volume clean."""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import os
import random
import subprocess
import threading
import time
import unittest

import harness
from harness import MDFS, MDFSCK, MKMDFS, Mounted, run

MIB = 1 << 20


def refused(words, *command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert result.returncode != 0, (command, result.stdout)
    assert words in result.stderr, result.stderr


class DisksTest(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(2, "32M")
        self.addCleanup(self.volume.remove)
        self.random = random.Random(1)
        self.expected = {}

    def new_disk(self, name, mib=32):
        path = os.path.join(self.volume.folder, name)
        with open(path, "wb") as file:
            file.truncate(mib * MIB)
        return path

    def disks(self):
        return json.loads(run(MDFS, "disk", "list", "--json", self.volume.path))["disks"]

    def store(self, name, size):
        data = self.random.randbytes(size)
        harness.write_all(self.volume / name, data)
        self.expected[name] = hashlib.sha256(data).hexdigest()

    def store_image(self, name, side=1024):
        data = self.random.randbytes(side * side)
        harness.make_image(self.volume / name, (side, side), codec=0, extent=(64, 64))
        harness.write_all(self.volume / name, data)
        self.expected[name] = hashlib.sha256(data).hexdigest()

    def look(self):
        for name, digest in self.expected.items():
            self.assertEqual(hashlib.sha256(harness.read_all(self.volume / name)).hexdigest(), digest, name)

    def stored_on(self, name):
        layout = json.loads(run(MDFS, "image", "layout", "--json", self.volume / name))
        return layout["disks"]

    def misplaced(self, name):
        layout = json.loads(run(MDFS, "image", "layout", "--json", self.volume / name))
        return layout["fragmentation"]["misplaced"]

    def check_clean(self, disk):
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", disk)

    def test_disks_are_added_while_the_volume_is_used(self):
        self.store("before", 3 * MIB)
        self.store_image("image")
        before = os.statvfs(self.volume.path).f_blocks
        added = [self.new_disk("disk2"), self.new_disk("disk3", 48)]
        run(MDFS, "disk", "add", self.volume.path, *added)
        self.assertGreater(os.statvfs(self.volume.path).f_blocks, 2 * before)
        listed = self.disks()
        self.assertEqual([disk["number"] for disk in listed], [0, 1, 2, 3])
        self.assertEqual([disk["path"] for disk in listed[2:]], added)
        self.assertEqual([disk["state"] for disk in listed], ["healthy"] * 4)
        self.store("after", 8 * MIB)
        self.store_image("new")
        parts = self.stored_on("new")
        self.assertEqual(len(parts), 4)
        self.assertLess(max(parts), 1.2 * min(parts), "a new image uses all disks alike")
        self.look()
        self.volume.unmount()
        self.volume.mount(disks=[self.volume.disks[1]])  # one disk is enough to find the others
        self.assertEqual(len(self.disks()), 4)
        self.look()
        self.check_clean(added[1])

    def test_calibration_writes_to_no_disk_that_is_in_use(self):
        """It puts back what it has read: a commit in between would be lost."""
        for command in ([], ["--write"]):
            done = subprocess.run([harness.MDFS_SIM, "calibrate", "--reads", "4", "--sizes", "4K,8K", *command,
                                   self.volume.disks[0]], capture_output=True, text=True, check=False)
            if command:
                self.assertEqual((done.returncode, "in use" in done.stderr), (1, True), done.stderr)
            else:
                self.assertNotIn("in use", done.stderr)

    def test_weights_count_for_what_is_stored_afterwards(self):
        run(MDFS, "disk", "weight", self.volume.path, os.path.relpath(self.volume.disks[1]), 3)
        self.assertEqual([disk["weight"] for disk in self.disks()], [1, 3])
        run(MDFS, "disk", "add", "--weight", 4, self.volume.path, self.new_disk("disk2"))
        self.store_image("image")
        first, second, third = self.stored_on("image")
        self.assertTrue(2.5 < second / first < 3.5 and 3.4 < third / first < 4.6, (first, second, third))
        self.volume.unmount()
        self.volume.mount()
        self.assertEqual([disk["weight"] for disk in self.disks()], [1, 3, 4])
        self.look()
        self.check_clean(self.volume.disks[0])

    def test_a_dry_run_and_a_refusal_change_nothing(self):
        disk, held = self.new_disk("disk2"), self.new_disk("ext4", 8)
        array = self.new_disk("array.npy", 5)
        with open(array, "r+b") as file:
            file.write(b"\x93NUMPY")
        subprocess.run(["mke2fs", "-q", "-t", "ext4", held], check=True)
        other = os.path.join(self.volume.folder, "other")
        os.mkdir(other)
        foreign = os.path.join(other, "foreign")
        run(MKMDFS, "--size", "8M", foreign)
        content = [harness.read_all(path) for path in (disk, held, foreign, array)]
        self.assertIn("would add", run(MDFS, "disk", "add", "--dry-run", self.volume.path, disk))
        refused("ext4", MDFS, "disk", "add", self.volume.path, disk, held)
        refused("MDFS volume", MDFS, "disk", "add", self.volume.path, foreign)
        refused("array.npy: holds data; give --force", MDFS, "disk", "add", self.volume.path, disk, array)
        refused("is disk 0 of this volume", MDFS, "disk", "add", self.volume.path, self.volume.disks[0])
        refused("is disk 1 of this volume", MDFS, "disk", "add", self.volume.path,
                os.path.relpath(self.volume.disks[1]))
        refused("given twice", MDFS, "disk", "add", self.volume.path, disk, os.path.relpath(disk))
        harness.write_all(self.volume / "itself", bytes(8 * MIB))
        refused("on the volume itself", MDFS, "disk", "add", self.volume.path, self.volume / "itself")
        refused("on the volume itself", MDFS, "disk", "replace", self.volume.path, 0, self.volume / "itself")
        refused("at least", MDFS, "disk", "add", self.volume.path, self.new_disk("tiny", 1))
        refused("not found", MDFS, "disk", "add", self.volume.path, "/nonexistent/disk")
        refused("twice", MDFS, "disk", "add", self.volume.path, disk, disk)
        refused("already", MDFS, "disk", "replace", self.volume.path, 0, self.volume.disks[1])
        refused("cannot replace itself", MDFS, "disk", "replace", self.volume.path, 0, self.volume.disks[0])
        refused("no such disk", MDFS, "disk", "weight", self.volume.path, 7, 1)
        refused("WEIGHT", MDFS, "disk", "weight", self.volume.path, 0, 0)
        self.assertEqual([harness.read_all(path) for path in (disk, held, foreign, array)], content)
        self.assertEqual(len(self.disks()), 2)
        run(MDFS, "disk", "add", "--force", self.volume.path, held)
        self.assertEqual(len(self.disks()), 3)

    def test_disks_are_made_when_they_are_added_and_a_refusal_leaves_none_behind(self):
        self.store("file", 3 * MIB)
        new, second = (os.path.join(self.volume.folder, name) for name in ("new", "second"))
        add = (MDFS, "disk", "add", "--size", "24M")
        self.assertIn(f"would add {new}: 24 MiB", run(*add, "--dry-run", self.volume.path, new))
        refused("not found", *add, self.volume.path, new, "/nonexistent/disk")
        refused("given twice", *add, self.volume.path, new, os.path.relpath(new))
        refused("on the volume itself", *add, self.volume.path, new, self.volume / "itself")
        refused("at least", MDFS, "disk", "add", "--size", "100K", self.volume.path, new)
        refused("--size '8Q'", MDFS, "disk", "add", "--size", "8Q", self.volume.path, new)
        refused("--sparse requires --size", MDFS, "disk", "add", "--sparse", self.volume.path, new)
        refused("leave out --size, or give --force", *add, self.volume.path, new, self.new_disk("there"))
        refused("cannot be used with a device", *add, self.volume.path, new, "/dev/null")
        for path in (new, second, self.volume / "itself"):
            self.assertFalse(os.path.exists(path), path)
        self.assertEqual(len(self.disks()), 2)
        run(*add, self.volume.path, new)
        status = os.stat(new)
        self.assertEqual((status.st_size, status.st_blocks * 512 >= 24 * MIB), (24 * MIB, True))
        run(MDFS, "disk", "replace", "--size", "48M", "--sparse", self.volume.path, new, second)
        self.assertLess(os.stat(second).st_blocks * 512, 24 * MIB)
        self.assertEqual([disk["path"] for disk in self.disks()], [*self.volume.disks, second])
        run(MDFS, "disk", "add", "--force", *add[3:], self.volume.path, new)  # the one that was replaced
        self.look()
        self.check_clean(second)

    def test_two_disks_come_one_leaves_and_every_byte_is_there(self):
        for i in range(6):
            self.store(f"file{i}", 2 * MIB)
        self.store_image("image", 2048)
        added = [self.new_disk("disk2"), self.new_disk("disk3")]
        run(MDFS, "disk", "add", self.volume.path, *added)
        for i in range(6):
            self.store(f"later{i}", 2 * MIB)
        os.remove(self.volume / "file3")
        del self.expected["file3"]
        self.assertIn("would move", run(MDFS, "disk", "remove", "--dry-run", self.volume.path, 0))
        self.assertIn("was removed from the volume", run(MDFS, "disk", "remove", self.volume.path, 0))
        self.assertEqual([disk["number"] for disk in self.disks()], [1, 2, 3])
        stats = json.loads(run(MDFS, "disk", "stats", "--json", self.volume.path))
        self.assertEqual([disk["number"] for disk in stats["disks"]], [1, 2, 3])
        zones = json.loads(run(MDFS, "volume", "map", "--json", self.volume.path))
        self.assertEqual([disk["number"] for disk in zones["disks"]], [1, 2, 3])
        self.look()
        self.store("last", MIB)
        self.store_image("last-image")
        self.assertEqual(self.stored_on("last-image")[0], 0)
        os.remove(self.volume.disks[0])
        self.volume.unmount()
        self.volume.mount(disks=[added[0]])
        self.look()
        self.check_clean(added[0])

    def test_a_disk_is_replaced_by_a_larger_one(self):
        self.store_image("image", 2048)
        self.store("file", 5 * MIB)
        new = self.new_disk("new", 64)
        self.assertIn("would add", run(MDFS, "disk", "replace", "--dry-run", self.volume.path, 1, new))
        self.assertEqual(len(self.disks()), 2)
        run(MDFS, "disk", "replace", self.volume.path, self.volume.disks[1], new)
        self.assertIn("already", run(MDFS, "disk", "replace", self.volume.path, self.volume.disks[1], new))
        self.assertEqual([disk["path"] for disk in self.disks()], [self.volume.disks[0], new])
        self.look()
        self.volume.unmount()
        refused("holds no", MDFS, "mount", self.volume.disks[1], self.volume.path)
        self.volume.mount()
        self.look()
        self.check_clean(new)

    def test_commands_that_show_the_volume_succeed_while_disks_come_and_go(self):
        self.store("file", 3 * MIB)
        wrong, stop = [], threading.Event()
        def show(*command):
            while not stop.is_set():
                done = subprocess.run([MDFS, *command, self.volume.path], capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    wrong.append((command, done.returncode, done.stderr))
        commands = (("volume", "status"), ("volume", "map"), ("volume", "metrics"), ("disk", "list"))
        threads = [threading.Thread(target=show, args=command) for command in commands]
        for thread in threads:
            thread.start()
        try:
            for turn in range(12):
                disk = self.new_disk(f"guest{turn}", 200)
                run(MDFS, "disk", "add", self.volume.path, disk)
                self.store(f"file{turn}", MIB)
                run(MDFS, "disk", "remove", self.volume.path, disk)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        self.look()

    def test_a_disk_whose_contents_do_not_fit_elsewhere_stays(self):
        for i in range(10):
            self.store(f"file{i}", 4 * MIB)
        refused("too little space", MDFS, "disk", "remove", self.volume.path, 0)
        refused("too little space", MDFS, "disk", "remove", "--dry-run", self.volume.path, 0)
        self.assertEqual([disk["state"] for disk in self.disks()], ["healthy", "healthy"])
        run(MDFS, "disk", "remove", "--cancel", self.volume.path, 0)
        self.look()
        self.check_clean(self.volume.disks[0])

    def test_what_stays_on_a_lost_disk_is_named_once(self):
        run(MDFS, "disk", "add", self.volume.path, self.new_disk("disk2"))
        for i in range(6):
            self.store(f"file{i}", MIB)
        self.volume.unmount()
        os.remove(os.path.join(self.volume.folder, "disk2"))
        self.volume.mount(disks=self.volume.disks)
        result = subprocess.run([MDFS, "disk", "remove", self.volume.path, "2"], capture_output=True, text=True,
                                check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("input/output error"), 1, result.stderr)
        self.assertRegex(result.stderr, "pieces of files stay on disk 2")
        inodes = result.stderr.partition("inodes ")[2].split()
        self.assertGreater(len(inodes), 1)
        self.assertEqual(len(inodes), len(set(inodes)), result.stderr)

    def test_a_drain_resumes_after_a_kill(self):
        for i in range(8):
            self.store(f"file{i}", 2 * MIB)
        run(MDFS, "disk", "add", self.volume.path, self.new_disk("disk2"))
        run(MDFS, "volume", "sync", self.volume.path)
        removing = subprocess.Popen([MDFS, "disk", "remove", "--budget", "2M", self.volume.path, "0"],
                                    stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        harness.wait_until(lambda: self.disks()[0]["state"] == "draining", removing)
        time.sleep(0.5)
        os.kill(self.volume.daemon(), 9)
        removing.wait()
        subprocess.run(["umount", "-l", self.volume.path], check=True)
        self.volume.mount()
        self.look()
        deadline = time.monotonic() + 60
        while len(self.disks()) == 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual([disk["number"] for disk in self.disks()], [1, 2])
        self.look()
        self.check_clean(self.volume.disks[1])

    def test_a_replacement_goes_on_after_a_kill(self):
        for i in range(6):
            self.store(f"file{i}", 2 * MIB)
        self.store_image("image")
        run(MDFS, "volume", "sync", self.volume.path)
        new = self.new_disk("new", 64)
        command = [MDFS, "disk", "replace", "--budget", "1M", self.volume.path, "0", new]
        replacing = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        harness.wait_until(lambda: self.disks()[0]["state"] == "draining", replacing)
        time.sleep(0.5)
        os.kill(self.volume.daemon(), 9)
        replacing.wait()
        subprocess.run(["umount", "-l", self.volume.path], check=True)
        self.volume.mount()
        self.look()
        listed = json.loads(run(MDFS, "disk", "list", "--json", self.volume.path))
        if len(listed["disks"]) == 3:
            self.assertEqual(listed["drain"]["state"], "running")
            run(MDFS, "scrub", "start", "--wait", self.volume.path)  # reads the disk that leaves, too
            run(*command[:3], "--budget", "1G", self.volume.path, "0", new)  # hurries, and waits for what is under way
        self.assertEqual([disk["path"] for disk in self.disks()], [self.volume.disks[1], new])
        self.assertIsNone(json.loads(run(MDFS, "volume", "status", "--json", self.volume.path))["drain"])
        self.look()
        self.check_clean(new)

    def test_an_added_disk_takes_its_share_of_what_is_stored(self):
        for i in range(4):
            self.store(f"file{i}", 4 * MIB)
        self.store_image("image", 2048)
        harness.make_image(self.volume / "one-disk", (512, 512), codec=0, extent=(64, 64), disks=1)
        harness.write_all(self.volume / "one-disk", self.random.randbytes(512 * 512))
        new = [self.new_disk("disk2", 48), self.new_disk("disk3", 48)]
        run(MDFS, "disk", "add", self.volume.path, *new)
        before = self.stored_on("image")
        self.assertEqual(before[2:], [0, 0])
        planned = json.loads(run(MDFS, "disk", "balance", "--dry-run", "--json", self.volume.path, *new))
        self.assertEqual(self.stored_on("image"), before)
        moved = json.loads(run(MDFS, "disk", "balance", "--json", self.volume.path, "2", new[1]))
        self.assertEqual((moved["state"], moved["no_room"]), ("done", 0))
        self.assertAlmostEqual(moved["moved_bytes"] / planned["moved_bytes"], 1, delta=0.02)
        misplaced = self.misplaced("image")
        after = self.stored_on("image")
        self.assertLess(max(after), 1.2 * min(after), "the image uses all disks alike")
        self.assertLess(moved["moved_bytes"], 1.15 * (16 + 4) / 2 * MIB, "and no more has moved than that takes")
        self.assertEqual(len([part for part in self.stored_on("one-disk") if part]), 1)
        self.assertIn("0 bytes moved", run(MDFS, "disk", "balance", self.volume.path, "2", "3"))
        self.volume.unmount()
        self.volume.mount()
        self.assertEqual(self.misplaced("image"), misplaced, "what was open before goes by the new tables, too")
        self.assertIn("every disk has its share", run(MDFS, "disk", "balance", self.volume.path))
        refused("no such disk", MDFS, "disk", "balance", self.volume.path, "9")
        refused("none is running", MDFS, "disk", "balance", "--cancel", self.volume.path)
        self.look()
        run(MDFS, "disk", "remove", self.volume.path, "0")
        after = self.stored_on("image")
        self.assertLess(max(after[1:]), 1.35 * min(after[1:]), "what lay on it is spread over all others")
        self.look()
        self.check_clean(new[0])

    def test_balancing_says_when_defragmentation_would_help_and_then_it_does(self):
        hint = "mdfs defrag start"
        self.store("file", 4 * MIB)
        self.assertNotIn(hint, run(MDFS, "disk", "add", "--balance", self.volume.path, self.new_disk("disk2")))
        self.store_image("image", 2048)
        said = run(MDFS, "disk", "add", "--balance", self.volume.path, self.new_disk("disk3"))
        self.assertIn(hint, said)

        def runs():
            return json.loads(run(MDFS, "image", "layout", "--json", self.volume / "image"))["fragmentation"]["factor"]
        self.assertGreater(runs(), 1.1)
        run(MDFS, "defrag", "start", "--wait", self.volume.path)
        self.assertLess(runs(), 1.1)
        self.look()

    def test_balancing_gives_a_disk_its_share_by_weight_and_no_more(self):
        self.store_image("image", 4096)
        run(MDFS, "disk", "add", "--balance", self.volume.path, self.new_disk("disk2"))
        whole = sum(self.stored_on("image"))
        again = json.loads(run(MDFS, "disk", "balance", "--json", self.volume.path, "0"))
        self.assertLess(again["moved_bytes"], whole / 20, "it has its share already")
        parts = self.stored_on("image")
        self.assertLess(max(parts), 1.2 * min(parts))
        run(MDFS, "disk", "weight", self.volume.path, "0", "3")
        run(MDFS, "disk", "balance", self.volume.path, "0")
        parts = self.stored_on("image")
        self.assertAlmostEqual(parts[0] / whole, 3 / 5, delta=0.05)
        self.assertAlmostEqual(parts[1] / whole, 1 / 5, delta=0.07)
        self.look()
        self.check_clean(self.volume.disks[0])

    def test_a_disk_is_released_at_once_after_what_lay_on_the_others_was_deleted(self):
        free = os.statvfs(self.volume.path).f_bfree
        harness.write_all(self.volume / "big", self.random.randbytes(50 * MIB))
        run(MDFS, "volume", "sync", self.volume.path)
        os.unlink(self.volume / "big")
        harness.wait_until(lambda: os.statvfs(self.volume.path).f_bfree >= free - MIB // 4096)
        run(MDFS, "disk", "remove", self.volume.path, "1")
        self.assertEqual(len(self.disks()), 1)
        self.look()

    def test_a_disk_that_was_away_is_read_drained_and_added_again(self):
        self.store_image("image")
        self.store("file", 3 * MIB)
        run(MDFS, "disk", "add", self.volume.path, self.new_disk("disk2"))
        run(MDFS, "disk", "balance", self.volume.path, "2")
        away = self.volume.folder + "/away"
        os.mkdir(away)
        for change in (False, True):
            self.volume.unmount()
            os.rename(self.volume.disks[1], away + "/disk1")
            self.volume.mount(disks=[self.volume.disks[0]])
            os.listdir(self.volume.path)
            if change:
                self.assertIn("no data can move", run(MDFS, "disk", "remove", "--dry-run", self.volume.path, "1"))
                scrub = subprocess.run([MDFS, "scrub", "start", "--wait", self.volume.path], capture_output=True,
                                       text=True, check=False)
                self.assertEqual(scrub.returncode, 3)  # what lies on the disk cannot be read
                self.assertIn("disk 1: missing", scrub.stdout)
                self.store("later", MIB)
            self.volume.unmount()
            os.rename(away + "/disk1", self.volume.disks[1])
            self.volume.mount(disks=[self.volume.disks[0]])
            state = "stale" if change else "healthy"
            self.assertEqual([disk["state"] for disk in self.disks()], ["healthy", state, "healthy"])
            self.look()
        self.assertIn("is stale", run(MDFS, "disk", "remove", "--dry-run", self.volume.path, "1"))
        self.assertNotIn("0 bytes moved", run(MDFS, "disk", "remove", self.volume.path, "1"))
        self.look()
        refused("give --force", MDFS, "disk", "add", self.volume.path, self.volume.disks[1])
        run(MDFS, "disk", "add", "--force", "--balance", self.volume.path, self.volume.disks[1])
        self.assertEqual([disk["state"] for disk in self.disks()], ["healthy"] * 3)
        self.look()
        self.check_clean(self.volume.disks[0])

    def test_disks_that_were_added_one_by_one_take_their_share_together(self):
        self.store_image("image", 2048)
        self.store("file", 4 * MIB)
        run(MDFS, "disk", "add", self.volume.path, self.new_disk("disk2"))
        run(MDFS, "disk", "add", self.volume.path, self.new_disk("disk3"))
        alone = run(MDFS, "disk", "balance", self.volume.path, "3")
        self.assertIn("give no DISK", alone, "a disk that cannot take its share alone is not a success")
        self.assertEqual(self.stored_on("image")[2:], [0, 0])
        moved = json.loads(run(MDFS, "disk", "balance", "--json", self.volume.path))
        self.assertGreater(moved["moved_bytes"], 0)
        parts = self.stored_on("image")
        self.assertLess(max(parts), 1.2 * min(parts), "all with too little have taken their share")
        self.look()
        self.check_clean(self.volume.disks[0])

    def test_adding_with_balancing_counts_disks_that_were_added_without(self):
        self.store_image("image", 2048)
        run(MDFS, "disk", "add", self.volume.path, self.new_disk("disk2"))
        said = run(MDFS, "disk", "add", "--balance", self.volume.path, self.new_disk("disk3"))
        self.assertNotIn("\n0 bytes moved", said)
        parts = self.stored_on("image")
        self.assertLess(max(parts), 1.2 * min(parts))
        self.look()
        self.check_clean(self.volume.disks[0])

    def test_no_disk_is_replaced_while_another_one_is_drained(self):
        self.store_image("image", 2048)
        run(MDFS, "volume", "sync", self.volume.path)  # what has no place on a disk yet would get it on the other one
        draining = subprocess.Popen([MDFS, "disk", "remove", "--budget", "64K", self.volume.path, "1"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(draining.communicate)
        self.addCleanup(draining.kill)
        drain = lambda: json.loads(run(MDFS, "disk", "list", "--json", self.volume.path))["drain"]
        harness.wait_until(lambda: (drain() or {}).get("state") == "running", draining)
        new = self.new_disk("new", 64)
        for disk in (0, 1):
            refused("is being drained; nothing was changed", MDFS, "disk", "replace", self.volume.path, disk, new)
            refused("is being drained", MDFS, "disk", "replace", "--dry-run", self.volume.path, disk, new)
        self.assertEqual([disk["number"] for disk in self.disks()], [0, 1])
        with open(new, "rb") as file:
            self.assertFalse(any(file.read()), "nothing was written to the new disk")
        run(MDFS, "disk", "remove", "--cancel", self.volume.path, "1")
        self.look()

    def test_a_balancing_goes_on_after_a_kill(self):
        self.store_image("image", 4096)
        run(MDFS, "volume", "sync", self.volume.path)
        balancing = subprocess.Popen([MDFS, "disk", "add", "--balance", self.volume.path, self.new_disk("disk2")],
                                     stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        harness.wait_until(lambda: len(self.disks()) == 3)
        os.kill(self.volume.daemon(), 9)
        balancing.wait()
        subprocess.run(["umount", "-l", self.volume.path], check=True)
        self.volume.mount()
        self.look()
        if len(self.disks()) == 2:
            run(MDFS, "disk", "add", self.volume.path, self.new_disk("disk2"))
        run(MDFS, "disk", "balance", self.volume.path, "2")
        self.look()
        parts = self.stored_on("image")
        self.assertLess(max(parts), 1.2 * min(parts))
        self.check_clean(self.volume.disks[0])

    def test_a_killed_daemon_leaves_the_disk_in_or_out(self):
        self.store("before", 4 * MIB)
        run(MDFS, "volume", "sync", self.volume.path)
        disk = self.new_disk("disk2", 512)
        adding = subprocess.Popen([MDFS, "disk", "add", self.volume.path, disk], stderr=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL)
        try:
            adding.wait(self.random.uniform(0.005, 0.05))
        except subprocess.TimeoutExpired:
            pass
        os.kill(self.volume.daemon(), 9)
        adding.wait()
        subprocess.run(["umount", "-l", self.volume.path], check=True)
        with open(disk, "rb") as label:
            labelled = label.read(8) == b"MDFSLABL"
        # The new disk leads to the volume, also if it has not joined.
        self.volume.mount(disks=[disk] if labelled else None)
        count = len(self.disks())
        self.assertIn(count, (2, 3))
        self.look()
        if count == 2:  # with --force, since something may have been written there
            run(MDFS, "disk", "add", "--force", self.volume.path, disk)
        self.store("after", 4 * MIB)
        self.look()
        self.check_clean(self.volume.disks[0])


class SpreadTest(unittest.TestCase):
    def test_names_survive_the_loss_of_the_disk_that_was_alone(self):
        volume = Mounted(1, "32M")
        self.addCleanup(volume.remove)
        os.mkdir(volume / "a")
        for i in range(400):
            harness.write_all(volume / f"a/f{i}", f"file {i} {'x' * 50}".encode())
        run(MDFS, "volume", "sync", volume.path)
        new = []
        for name in ("new1", "new2"):
            new.append(os.path.join(volume.folder, name))
            with open(new[-1], "wb") as file:
                file.truncate(32 * MIB)
        run(MDFS, "disk", "add", volume.path, *new)
        for _ in range(600):
            if not json.loads(harness.status_of(volume.path, "--json"))["spreading_metadata"]:
                break
            time.sleep(0.1)
        else:
            self.fail("metadata are still being spread after a minute")
        volume.unmount()
        os.rename(volume.disks[0], volume.disks[0] + ".away")
        volume.mount(disks=new[:1])
        self.assertEqual(sorted(os.listdir(volume / "a")), sorted(f"f{i}" for i in range(400)))
        self.assertEqual(os.stat(volume / "a/f7").st_size, 57)


if __name__ == "__main__":
    harness.main()
