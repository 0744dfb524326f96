"""Claims about `mdfs scrub` on a mounted volume: what it finds, repairs and prints, and who may ask for it."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import threading
import unittest

from harness import MDFS, MDFSCK, Mounted, main, read_all, run, write_all


def scrub(verb, *words, fails=False):
    done = subprocess.run([MDFS, "scrub", verb, *map(str, words)], capture_output=True, text=True)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"mdfs scrub {verb} {words}: exit {done.returncode}: {done.stderr}{done.stdout}")
    return done


def as_json(verb, *words, fails=False):
    told = json.loads(scrub(verb, "--json", *words, fails=fails).stdout)
    assert told["output_version"] == 1 and told["operation"] == "scrub"
    return told


def spoil(path, offset):
    with open(path, "r+b") as disk:
        disk.seek(offset)
        byte = disk.read(1)[0]
        disk.seek(offset)
        disk.write(bytes([byte ^ 0x40]))
        os.fsync(disk.fileno())


class ScrubTest(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=3, size="32M", options="cache=16M,allow_other")
        self.addCleanup(self.volume.remove)
        self.file = self.volume / "file"
        os.mkdir(self.volume / "deep")
        write_all(self.volume / "deep/other", os.urandom(3_000_000))
        write_all(self.file, os.urandom(5_000_000))
        run(MDFS, "volume", "sync", self.volume.path)

    def data_block(self):
        """A place where bytes of the file lie: disk and offset."""
        sample = read_all(self.file)[4096 * 100:4096 * 101]
        for number, disk in enumerate(self.volume.disks):
            at = read_all(disk).find(sample)
            if at >= 0:
                return number, at
        raise AssertionError("not on the disks")

    def test_a_healthy_volume_is_read_as_a_whole(self):
        self.assertIn("none has ever run", scrub("status", self.volume.path, fails=True).stderr)
        told = as_json("start", "--wait", self.volume.path)
        self.assertEqual((told["state"], told["items_failed"], told["items_changed"]), ("done", 0, 0))
        self.assertGreater(told["bytes_done"], 8_000_000)
        self.assertEqual(told["bytes_done"], told["bytes_total"])
        self.assertEqual(len(told["disks"]), 3)
        self.assertEqual(as_json("status", self.file), told)
        text = scrub("status", self.volume.path).stdout
        for words in ("scrub: done", "0 rewritten, 0 damaged", "disk 2: "):
            self.assertIn(words, text)
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", *self.volume.disks)
        self.volume.mount()
        self.assertEqual(as_json("status", self.volume.path)["state"], "done")

    def test_a_bad_label_is_written_anew(self):
        spoil(self.volume.disks[1], 131072 + 20)
        told = as_json("start", "--wait", self.volume.path)
        self.assertEqual((told["items_changed"], told["items_failed"]), (1, 0))
        self.assertEqual([disk["changed"] for disk in told["disks"]], [0, 1, 0])
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", *self.volume.disks)
        self.volume.mount()

    def test_damaged_data_are_named_and_stay_an_error(self):
        number, at = self.data_block()
        spoil(self.volume.disks[number], at + 77)
        failed = scrub("start", "--wait", "--json", self.volume.path, fails=True)
        self.assertIn("1 damaged", failed.stderr)
        told = json.loads(failed.stdout)
        self.assertEqual((told["state"], told["items_failed"], len(told["errors"])), ("done", 1, 1))
        error = told["errors"][0]
        self.assertEqual((error["what"], error["disk"]), ("damaged", number))
        self.assertEqual((error["path"], error["inode"]), (self.file, os.stat(self.file).st_ino))
        self.assertLessEqual(error["offset"], 4096 * 100)
        self.assertIn(f"({self.file}): data do not match", scrub("status", self.volume.path).stdout)
        self.volume.unmount()
        self.volume.mount()
        with self.assertRaises(OSError) as caught:
            read_all(self.file)
        self.assertEqual(caught.exception.errno, 5)

    def test_errors_of_a_disk_are_known_after_a_mount_until_they_are_set_to_zero(self):
        def stats(*words):
            return json.loads(run(MDFS, "disk", "stats", "--json", *words, self.volume.path))["disks"]
        self.assertEqual([disk["checksum_errors"] for disk in stats()], [0, 0, 0])
        self.assertTrue(all(disk["writes"] > 0 and disk["flushes"] > 0 for disk in stats()))
        self.assertGreater(sum(disk["written_bytes"] for disk in stats()), 8_000_000)
        number, at = self.data_block()
        spoil(self.volume.disks[number], at)
        scrub("start", "--wait", self.volume.path, fails=True)
        expected = [1 if i == number else 0 for i in range(3)]
        self.assertEqual([disk["checksum_errors"] for disk in stats()], expected)
        self.volume.unmount()
        self.volume.mount(options="cache=16M,allow_other")
        self.assertEqual([disk["checksum_errors"] for disk in stats()], expected)
        self.assertIn("checksums 1;", run(MDFS, "disk", "stats", self.volume.path))
        nobody = subprocess.run([MDFS, "disk", "stats", "--reset", self.volume.path], user=65534, group=65534,
                                capture_output=True, text=True)
        self.assertIn("owner of the mount", nobody.stderr)
        self.assertEqual([disk["checksum_errors"] for disk in stats("--reset")], [0, 0, 0])
        self.volume.unmount()
        self.volume.mount()
        self.assertEqual([disk["checksum_errors"] for disk in stats()], [0, 0, 0])

    def test_it_is_cancelled_resumed_and_goes_on_after_a_mount(self):
        told = as_json("start", "--budget", "200K", self.volume.path)
        self.assertEqual((told["state"], told["budget_bytes_s"]), ("running", 200 << 10))
        self.assertIn("already running", scrub("start", self.volume.path, fails=True).stderr)
        self.assertEqual(as_json("cancel", self.volume.path)["state"], "cancelled")
        self.assertIn("none is running", scrub("cancel", self.volume.path, fails=True).stderr)
        self.volume.unmount()
        self.volume.mount()
        self.assertEqual(as_json("status", self.volume.path)["state"], "cancelled")
        self.assertEqual(as_json("resume", self.volume.path)["state"], "running")
        self.volume.unmount()
        self.volume.mount()
        self.assertEqual(as_json("status", self.volume.path)["state"], "running")
        told = as_json("resume", "--budget", "1G", "--wait", self.volume.path)
        self.assertEqual((told["state"], told["items_failed"]), ("done", 0))
        self.assertIn("there is none to resume", scrub("resume", self.volume.path, fails=True).stderr)

    def test_others_may_look_and_not_touch(self):
        as_json("start", "--wait", self.volume.path)
        nobody = {"user": 65534, "group": 65534, "capture_output": True, "text": True}
        self.assertEqual(subprocess.run([MDFS, "scrub", "status", self.volume.path], **nobody).returncode, 0)
        for verb in ("start", "cancel", "resume"):
            done = subprocess.run([MDFS, "scrub", verb, self.volume.path], **nobody)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("owner of the mount", done.stderr)

    def test_files_written_meanwhile_are_no_damage(self):
        ended = threading.Event()

        def write():
            while not ended.is_set():
                write_all(self.volume / "deep/w", os.urandom(700_000))
                os.unlink(self.volume / "deep/w")
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(5):
                told = as_json("start", "--wait", self.volume.path)
                self.assertEqual((told["state"], told["items_failed"], told["items_changed"]), ("done", 0, 0))
        finally:
            ended.set()
            writer.join()

    def test_a_mount_for_reading_repairs_nothing(self):
        self.volume.unmount()
        spoil(self.volume.disks[0], 131072 + 20)
        before = read_all(self.volume.disks[0])
        self.volume.mount(options="ro")
        told = json.loads(scrub("start", "--wait", "--json", self.volume.path, fails=True).stdout)
        self.assertEqual((told["state"], told["items_failed"], told["items_changed"]), ("done", 1, 0))
        self.assertEqual(told["errors"][0]["what"], "label")
        self.volume.unmount()
        self.assertEqual(read_all(self.volume.disks[0]), before)
        self.volume.mount()


if __name__ == "__main__":
    main()
