#!/usr/bin/env python3
"""What the volume layer wrote, read by mdfsck and by the decoder that shares no code with it.

Usage: workload_test.py SOURCE_ROOT WORKLOAD MDFSCK [FIRST_SEED SEEDS STEPS]
SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT, WORKLOAD, MDFSCK = sys.argv[1:4]
FIRST_SEED, SEEDS, STEPS = (int(word) for word in sys.argv[4:7] or ("1", "6", "120"))
DECODER = os.path.join(ROOT, "tests/format/decoder/mdfs_decode.py")


def run(*words):
    return subprocess.run(words, capture_output=True, check=False)


class WorkloadTest(unittest.TestCase):
    def check(self, folder, seed):
        made = run(WORKLOAD, folder, str(seed), str(STEPS))
        self.assertEqual(made.returncode, 0, made.stderr.decode())
        disks = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("disk"))
        checked = run(MDFSCK, "-n", "--data", *disks)
        self.assertEqual(checked.returncode, 0, checked.stdout.decode())
        verified = run(sys.executable, DECODER, "verify", *disks)
        self.assertEqual(verified.returncode, 0, verified.stderr.decode())
        self.assertIn(b"scrub: done", verified.stdout)
        expected = os.path.join(folder, "expected")
        listing = run(sys.executable, DECODER, "ls", *disks).stdout.decode()
        names = [line.split(" ", 2)[2] for line in listing.splitlines()]
        self.assertEqual(sorted(names), sorted(["/"] + ["/" + name for name in os.listdir(expected)]))
        for name in os.listdir(expected):
            with open(os.path.join(expected, name), "rb") as file:
                self.assertEqual(run(sys.executable, DECODER, "cat", "/" + name, *disks).stdout, file.read(), name)

    def test_random_work_checks_clean_and_is_decoded_byte_for_byte(self):
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                self.check(folder, seed)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
