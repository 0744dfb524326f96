#!/usr/bin/env python3
"""The decoder written from doc/FORMAT.md, and mdfsck, on a real volume.

Usage: decoder_test.py SOURCE_ROOT MAKE_VOLUME MDFSCK
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT, MAKE_VOLUME, MDFSCK = sys.argv[1:4]
DECODER = os.path.join(ROOT, "tests/format/decoder/mdfs_decode.py")
BLOCK = 4096


def value_of(size, seed):
    """As in the fixture that made the volume."""
    return bytes((seed * 31 + i * 7 + (seed >> 8)) & 255 for i in range(size))


def movie_sample(t, y, x):
    """Likewise."""
    value = (t * 1000 + y) * 1000 + x
    if y // 32 == 5:
        value = value * 0x9e3779b97f4a7c15 & (2**64 - 1)
        value = ((value ^ value >> 29) * 0xbf58476d1ce4e5b9 & (2**64 - 1)) >> 40
    return value & 0xffff


class DecoderTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        subprocess.run([MAKE_VOLUME, self.folder.name], check=True)
        self.disks = [os.path.join(self.folder.name, f"disk{i}") for i in range(3)]

    def decode(self, *words, disks=None):
        command = [sys.executable, DECODER, *words, *(disks or self.disks)]
        return subprocess.run(command, capture_output=True, check=False)

    def mdfsck(self, *words):
        return subprocess.run([MDFSCK, *words, *self.disks], capture_output=True, check=False)

    def flip(self, disk, offset):
        with open(self.disks[disk], "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x40]))

    def test_lists_every_object_with_its_mode_and_size(self):
        result = self.decode("ls")
        self.assertEqual(result.stderr, b"")
        lines = result.stdout.decode().splitlines()
        self.assertEqual(len(lines), 8 + 400)
        for line in ("040755 0 /", "100644 200 /inline", f"100644 {3 * BLOCK - 100} /cells", "120777 6 /link",
                     "100644 16384 /image", "100644 600000 /movie", "040755 0 /dir", "040755 0 /dir/deep",
                     "100600 0 /f399"):
            self.assertIn(line, lines)

    def test_extracts_files_links_and_images_byte_for_byte(self):
        self.assertEqual(self.decode("cat", "/inline").stdout, value_of(200, 1))
        self.assertEqual(self.decode("cat", "/link").stdout, b"inline")
        cells = b"".join(value_of(BLOCK, 3 + i) for i in range(3))
        stored = self.decode("cat", "/cells")
        self.assertEqual(stored.stdout, cells[:3 * BLOCK - 100], stored.stderr)

    def test_puts_extents_where_they_belong(self):
        image = self.decode("cat", "/image").stdout
        self.assertEqual(len(image), 128 * 128)
        for place, (row, column) in {0: (0, 0), 1: (0, 64), 8: (64, 0), 9: (64, 64)}.items():
            extent = b"".join(image[(row + y) * 128 + column:][:64] for y in range(64))
            self.assertEqual(extent, value_of(BLOCK, 100 + place), place)

    def test_decodes_compressed_extents_of_three_axes_and_scattered_ones(self):
        movie = self.decode("cat", "/movie")
        self.assertEqual(len(movie.stdout), 5 * 300 * 200 * 2, movie.stderr)
        expected = bytearray(len(movie.stdout))
        for z, y, x in ((0, 0, 0), (0, 0, 1), (1, 5, 3), (2, 9, 6)):
            # Of the second there is only a first step, in a strip.
            for t in range(z * 2, 1 if x == 1 else min(5, z * 2 + 2)):
                for row in range(y * 32, min(300, y * 32 + 32)):
                    for column in range(x * 32, min(200, x * 32 + 32)):
                        at = ((t * 300 + row) * 200 + column) * 2
                        expected[at:at + 2] = movie_sample(t, row, column).to_bytes(2, "little")
        self.assertEqual(movie.stdout, bytes(expected))

    def test_finds_all_checksums_and_bitmaps_right(self):
        result = self.decode("verify")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"all checksums hold", result.stdout)

    def test_reads_with_one_disk_missing_what_lies_on_the_others(self):
        self.assertEqual(self.decode("cat", "/inline", disks=self.disks[:2]).stdout, value_of(200, 1))

    def find(self, disk, data):
        with open(self.disks[disk], "rb") as file:
            return file.read().index(data)

    def test_notices_a_damaged_byte_of_data(self):
        block = self.decode("cat", "/cells").stdout[:BLOCK]
        # The block, and then its copy as well.
        for disk, finding in ((1, (703, "piece-damaged")), (2, (701, "data-damaged"))):
            self.flip(disk, self.find(disk, block) + 100)
            self.assertIn(b"checksum", self.decode("cat", "/cells").stderr)
            self.assertEqual(self.mdfsck("-n").returncode, 0)
            report = json.loads(self.mdfsck("--data", "--json").stdout)
            self.assertEqual({(f["number"], f["name"]) for f in report["findings"]}, {finding})
            self.assertEqual(report["exit_code"], 4)

    def test_finds_the_copies_of_a_file_right_after_mdfsck_has_repaired_one(self):
        at = self.find(2, self.decode("cat", "/cells").stdout[BLOCK:2 * BLOCK]) + 100
        self.flip(2, at)
        self.assertIn(b"checksum", self.decode("verify").stderr)
        self.assertEqual(self.mdfsck("-p", "--data").returncode, 1)
        result = self.decode("verify")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_agrees_with_mdfsck_before_and_after_a_repair(self):
        self.assertEqual(self.mdfsck("--data").returncode, 0)
        for disk in range(3):
            self.flip(disk, 131072 + 20)
            self.flip(disk, 262144 + 5)
            self.flip(disk, 262144 + 4096 + 5)
        self.assertEqual(self.mdfsck("-n").returncode, 4)
        self.assertIn(b"checksum", self.decode("verify").stderr)
        repaired = self.mdfsck("-p")
        self.assertEqual(repaired.returncode, 1, repaired.stdout + repaired.stderr)
        self.assertEqual(self.mdfsck("-n", "--data").returncode, 0)
        result = self.decode("verify")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_mdfsck_reports_in_one_object_whose_fields_are_documented(self):
        report = json.loads(self.mdfsck("--json").stdout)
        with open(os.path.join(ROOT, "man/mdfsck.8.scd"), encoding="utf-8") as file:
            manual = file.read()
        self.assertEqual(report["output_version"], 1)
        self.assertEqual(report["objects"], 408)
        for field in report:
            self.assertIn(f"*{field}*", manual)

    def test_mdfsck_finds_the_other_disks_of_the_one_that_is_named(self):
        for name in (self.disks[1], self.folder.name):
            result = subprocess.run([MDFSCK, name], capture_output=True, check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        os.unlink(self.disks[2])
        result = subprocess.run([MDFSCK, self.disks[0]], capture_output=True, check=False)
        self.assertEqual(result.returncode, 4)
        self.assertIn(b"101 disk-missing", result.stdout)

    def test_mdfsck_keeps_the_exit_codes_of_fsck(self):
        self.assertEqual(self.mdfsck("-n", "-y").returncode, 16)
        self.assertEqual(self.mdfsck("-a", "-C0", "-T").returncode, 0)
        nothing = os.path.join(self.folder.name, "nothing")
        self.assertEqual(subprocess.run([MDFSCK, nothing], capture_output=True, check=False).returncode, 8)
        with open(nothing, "wb") as file:
            file.truncate(16 << 20)
        result = subprocess.run([MDFSCK, nothing], capture_output=True, check=False)
        self.assertEqual((result.returncode, result.stderr.count(b"\n")), (8, 1), result.stderr)

    def test_the_manual_lists_every_finding(self):
        with open(os.path.join(ROOT, "man/mdfsck.8.scd"), encoding="utf-8") as file:
            manual = file.read()
        with open(os.path.join(ROOT, "src/store/check/findings.h"), encoding="utf-8") as file:
            header = file.read()
        numbers = [line.split("= ")[1].rstrip(",") for line in header.splitlines() if line.startswith("  k") and
                   " = " in line and line.rstrip().endswith(",")]
        self.assertGreater(len(numbers), 40)
        for number in numbers:
            self.assertIn(f"*{number}*\n", manual)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
