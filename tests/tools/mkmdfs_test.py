"""Claims about mkmdfs from outside: what it makes, what it refuses, and that a refusal changes nothing."""
# SPDX-License-Identifier: Apache-2.0
import fcntl
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

MKMDFS = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20


class Mkmdfs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mdfs-mkmdfs-", dir="/var/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, *arguments):
        return subprocess.run([MKMDFS, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)

    def state(self):
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(self.folder.iterdir())}

    def refused(self, words, *arguments):
        """One line with these words, a failing exit code, and nothing changed."""
        before = self.state()
        result = self.run_it(*arguments)
        self.assertNotEqual(result.returncode, 0, arguments)
        self.assertLess(result.returncode, 64, result.stderr)
        self.assertEqual(result.stdout, "")
        first = result.stderr.splitlines()[0]
        self.assertTrue(first.startswith("mkmdfs: "), first)
        self.assertIn(words, first)
        self.assertEqual(self.state(), before, arguments)

    def test_files_are_made_allocated_and_told_about_as_json(self):
        result = self.run_it("--size", "8M", "--label", "scans", "--json", "a", "b", "c")
        self.assertEqual(result.returncode, 0, result.stderr)
        told = json.loads(result.stdout)
        self.assertEqual(told["output_version"], 1)
        self.assertEqual(told["label"], "scans")
        self.assertEqual(told["block_size"], 4096)
        self.assertEqual([disk["path"] for disk in told["disks"]], ["a", "b", "c"])
        self.assertEqual(len({disk["uuid"] for disk in told["disks"]}), 3)
        for disk in told["disks"]:
            self.assertEqual(disk["blocks"], 8 * MIB // 4096)
            self.assertLess(disk["free_blocks"], disk["blocks"])
            status = os.stat(self.folder / disk["path"])
            self.assertEqual(status.st_size, 8 * MIB)
            self.assertGreaterEqual(status.st_blocks * 512, 8 * MIB)

    def test_weights_are_given_or_follow_from_capacity_and_files_weigh_alike(self):
        def weights(*arguments):
            result = self.run_it("--force", "--json", *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            return [disk["weight"] for disk in json.loads(result.stdout)["disks"]]
        for name, mib in (("a", 8), ("b", 16)):
            self.assertEqual(self.run_it("--size", f"{mib}M", name).returncode, 0)
        self.assertEqual(weights("a", "b"), [1, 1])
        self.assertEqual(weights("--weights", "equal", "a", "b"), [1, 1])
        self.assertEqual(weights("--weights", "by-capacity", "a", "b"), [1, 2])
        self.assertEqual(weights("--weights", "3,2", "a", "b"), [3, 2])
        self.assertIn("--weights", self.run_it("--force", "a", "b").stdout)

    def test_a_measurement_says_what_it_measured(self):
        self.assertEqual(self.run_it("--size", "8M", "a", "b").returncode, 0)
        result = self.run_it("--force", "--weights", "measure", "a", "b")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"measured: reads of 4 MiB .*\n  a: [0-9.]+ MB/s over [0-9]+ reads")

    def test_sparse_files_take_little_room(self):
        self.assertEqual(self.run_it("--size", "1G", "--sparse", "a").returncode, 0)
        self.assertEqual(os.stat(self.folder / "a").st_size, 1024 * MIB)
        self.assertLess(os.stat(self.folder / "a").st_blocks * 512, 4 * MIB)

    def test_the_smallest_disk_is_4_mib(self):
        self.assertEqual(self.run_it("--size", "4M", "a").returncode, 0)
        self.refused("at least", "--size", "4194303", "b")

    def test_what_a_disk_holds_is_kept_without_force(self):
        self.assertEqual(self.run_it("--size", "4M", "a").returncode, 0)
        self.refused("MDFS", "a")
        self.assertEqual(self.run_it("--force", "a").returncode, 0)
        (self.folder / "ext4").write_bytes(bytes(8 * MIB))
        subprocess.run(["mke2fs", "-q", "-t", "ext4", self.folder / "ext4"], check=True)
        self.refused("ext4", "ext4")
        self.assertEqual(self.run_it("--force", "ext4").returncode, 0)
        told = subprocess.run(["blkid", "-p", "-o", "value", "-s", "TYPE", self.folder / "ext4"], capture_output=True,
                              text=True).stdout.strip()
        self.assertNotEqual(told, "ext4")

    def test_a_file_with_data_is_kept_without_force(self):
        (self.folder / "array.npy").write_bytes(b"\x93NUMPY" + bytes(5 * MIB))
        with open(self.folder / "late", "wb") as file:
            file.seek(9 * MIB - 1)
            file.write(b"x")
        for name in ("array.npy", "late"):
            self.refused(f"{name}: holds data; give --force to overwrite it", name)
        (self.folder / "zeros").write_bytes(bytes(5 * MIB))
        with open(self.folder / "hole", "wb") as file:
            file.truncate(1 << 40)
        self.assertEqual(self.run_it("zeros", "hole").returncode, 0)
        self.assertEqual(self.run_it("--force", "array.npy", "late").returncode, 0)

    def test_a_disk_in_use_is_refused_even_with_force(self):
        self.assertEqual(self.run_it("--size", "4M", "a").returncode, 0)
        with open(self.folder / "a", "rb+") as held:
            # A lock of the open file description, as MDFS takes it: closing another descriptor does not drop it.
            fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhllhh", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0, 0))
            self.refused("in use", "--force", "a")
            self.refused("in use", "--force", "--size", "4M", "a")

    def test_nonsense_is_refused_and_leaves_no_file(self):
        self.assertEqual(self.run_it("--size", "4M", "there").returncode, 0)
        self.refused("twice", "--size", "4M", "x", "x")
        self.refused("twice", "--size", "4M", "x", "./x")
        self.refused("twice", "--force", "there", "./there")
        self.refused("not found", "missing")
        self.refused("--size", "--size", "4Q", "x")
        self.refused("--size", "--size", "-4M", "x")
        self.refused("below 16E", "--size", "99999999999T", "x")
        self.refused("--block-size", "--size", "4M", "--block-size", "5000", "x")
        self.refused("--block-size", "--size", "4M", "--block-size", "128K", "x")
        self.refused("--zone-size", "--size", "4M", "--zone-size", "3000", "x")
        self.refused("--zone-size", "--size", "4M", "--zone-size", "2G", "x")
        self.refused("--label", "--size", "4M", "--label", "n" * 64, "x")
        for weights in ("1", "1,1,1", "0,1", "-1,1", "a,b", "257,1", ""):
            self.refused("--weights", "--weights", weights, "--size", "4M", "x", "y")
        self.refused("--sparse", "--sparse", "there")
        self.refused("already exists", "--size", "4M", "new", "there")
        self.refused("directory", ".")
        self.refused("block device", "/dev/null")
        self.refused("1 to 64", "--size", "4M", *[f"d{i}" for i in range(65)])
        self.refused("DISK")
        self.refused("--nonsense", "--nonsense", "x")

    def test_a_size_that_cannot_be_is_named_with_its_range(self):
        self.refused("--size 1M: x: a size of 1048576 bytes; a disk must have at least 4194304", "--size", "1M", "x")
        self.refused("--size 256: x: a size of 256 bytes; a disk must have at least", "--size", "256", "x")
        self.refused("--size 9000000T: x: a size of", "--size", "9000000T", "x")
        self.refused("--size 4000000T: x: ", "--sparse", "--size", "4000000T", "x")
        (self.folder / "text").write_bytes(b"x" * 1221)
        self.refused("text: a size of 1221 bytes; a disk must have at least 4194304", "text")

    def test_a_later_failure_takes_the_new_files_away_again(self):
        self.refused("x", "--size", "4M", "first", "no/such/folder/x")


if __name__ == "__main__":
    unittest.main()
