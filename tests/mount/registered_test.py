"""Window writers that the kernel reports no close of. usage: registered_test.py WRITER"""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
import time

import harness
from harness import make_image, read_all

WRITER = os.path.abspath(sys.argv.pop(1))


class Registered(harness.MountTest):
    def write(self, name, data):
        subprocess.run([WRITER, self.at(name), str(len(data))], input=data, check=True)

    def becomes(self, path, expected):
        """The kernel tells of the last reference after the program has ended."""
        end = time.monotonic() + 20
        while read_all(path) != expected and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(read_all(path), expected)

    def test_a_whole_window_is_stored_when_the_last_reference_goes(self):
        make_image(self.at("a"), (60, 70))
        for byte in (b"\1", b"\2"):
            self.write("a@/win/all.raw", byte * 4200)
            self.becomes(self.at("a"), byte * 4200)
        self.write("a@/win/y10+5.raw", b"\3" * 350)
        self.becomes(self.at("a"), b"\2" * 700 + b"\3" * 350 + b"\2" * 3150)

    def test_a_part_of_a_window_is_given_up_and_changes_nothing(self):
        make_image(self.at("b"), (60, 70))
        self.write("b@/win/all.raw", b"\1" * 4200)
        self.becomes(self.at("b"), b"\1" * 4200)
        self.write("b@/win/all.raw", b"\2" * 4199)
        time.sleep(0.5)
        self.assertEqual(read_all(self.at("b")), b"\1" * 4200)
        self.write("b@/win/all.raw", b"\3" * 4200)
        self.becomes(self.at("b"), b"\3" * 4200)


if __name__ == "__main__":
    harness.main()
