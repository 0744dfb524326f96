"""Sources on a disk that answers errors are not imported."""
# SPDX-License-Identifier: Apache-2.0
import mmap
import os
import subprocess
import unittest

import numpy

from harness import MDFS, Mounted, main, read_all, run, write_all


class Unreadable(unittest.TestCase):
    """Sources on a disk that answers errors."""

    def test_a_picture_of_which_a_block_cannot_be_read_is_not_imported(self):
        volume = Mounted(disks=1)
        self.addCleanup(volume.remove)
        samples = numpy.random.default_rng(1).random((200, 300, 3), dtype=numpy.float32)
        picture = volume / "picture.pfm"
        write_all(picture, b"PF\n300 200\n-1.0\n" + samples.tobytes())
        run(MDFS, "image", "import", picture, volume / "whole")
        volume.unmount()
        with open(volume.disks[0], "r+b") as disk:
            with mmap.mmap(disk.fileno(), 0) as block:
                at = block.find(b"PF\n300 200")
                self.assertGreater(at, 0)
                block[at + 100000] ^= 1
        volume.mount()
        with self.assertRaises(OSError):
            read_all(picture)
        refused = subprocess.run([MDFS, "image", "import", picture, volume / "part"], capture_output=True, text=True,
                                 check=False)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("picture.pfm", refused.stderr)
        self.assertFalse(os.path.exists(volume / "part"))
        volume.unmount()


if __name__ == "__main__":
    main()
