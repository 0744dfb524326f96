#!/usr/bin/env python3
"""Tests that throttled disks are of the asked speed and always go away. Needs root; skipped without.

usage: throttled_disks_test.py
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import throttled_disks

SCRIPT = pathlib.Path(__file__).parent / "throttled_disks.py"
DISK_BYTES = 8 << 20


class ThrottledDisksTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def start(self, *command):
        return subprocess.Popen([sys.executable, SCRIPT, "--count", "1", "--size", str(DISK_BYTES), "--scratch",
                                 self.scratch.name, "--", *command], stdout=subprocess.PIPE, text=True)

    def assert_gone(self, device):
        held = subprocess.run(["losetup", "--noheadings", "--output", "BACK-FILE", device], capture_output=True,
                              text=True, check=False).stdout
        self.assertNotIn(self.scratch.name, held)
        self.assertEqual(os.listdir(self.scratch.name), [])

    def test_the_exit_status_is_that_of_the_command_and_the_disk_is_gone(self):
        process = self.start("sh", "-c", 'echo "$0"; exit 7', "{}")
        device = process.communicate()[0].strip()
        self.assertEqual(process.returncode, 7)
        self.assertTrue(device.startswith("/dev/loop"), device)
        self.assert_gone(device)

    def test_the_disk_is_gone_after_sigterm(self):
        process = self.start("sh", "-c", 'echo "$0"; exec sleep 60', "{}")
        device = process.stdout.readline().strip()
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assert_gone(device)

    def test_reads_take_as_long_as_the_rate_says_and_no_longer_without_it(self):
        with throttled_disks.ThrottledDisks(1, DISK_BYTES, self.scratch.name) as disks:
            disks.throttle(8_000_000, 0)
            slow = self.seconds_to_read(disks.paths[0])
            disks.unthrottle()
            fast = self.seconds_to_read(disks.paths[0])
        self.assertGreater(slow, 0.8)
        self.assertLess(fast, slow)

    def test_a_lost_disk_comes_back_with_its_content_behind_the_others(self):
        with throttled_disks.ThrottledDisks(2, DISK_BYTES, self.scratch.name) as disks:
            first, second = disks.paths
            before = throttled_disks.written_bytes(first)
            subprocess.run(["dd", "if=/dev/urandom", f"of={first}", "bs=64k", "count=1", "oflag=direct",
                            "status=none"], check=True)
            self.assertEqual(throttled_disks.written_bytes(first) - before, 64 << 10)
            content = pathlib.Path(first).read_bytes()
            disks.lose(0)
            self.assertEqual(disks.paths, [second])
            disks.throttle(8_000_000, 0)
            disks.bring_back()
            self.assertEqual(disks.paths[0], second)
            self.assertEqual(pathlib.Path(disks.paths[1]).read_bytes(), content)
            disks.throttle(8_000_000, 0)
        self.assert_gone(first)

    @staticmethod
    def seconds_to_read(device):
        start = time.monotonic()
        subprocess.run(["dd", f"if={device}", "of=/dev/null", "bs=64k", "iflag=direct", "status=none"], check=True)
        return time.monotonic() - start


if __name__ == "__main__":
    try:
        with throttled_disks.ThrottledDisks(1, DISK_BYTES):
            pass
    except throttled_disks.Unavailable as error:
        print(f"SKIPPED: {error}")
        sys.exit(throttled_disks.SKIPPED)
    unittest.main()
