"""Runs the C program of libmdfs on a mounted volume, in both ways that images can be cached."""
# SPDX-License-Identifier: Apache-2.0
import sys

import harness

PROGRAM = sys.argv.pop()


class Library(harness.MountTest):
    def test_the_c_program(self):
        self.assertEqual(harness.run(PROGRAM, self.dir), "libmdfs works\n")


class LibraryWithCachedImages(Library):
    options = "cache=64M,cached_images"


if __name__ == "__main__":
    harness.main()
