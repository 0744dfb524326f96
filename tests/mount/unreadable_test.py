"""Sources on a disk that answers errors are not imported."""
# SPDX-License-Identifier: Apache-2.0
import mmap
import os
import struct
import subprocess
import unittest

import numpy

from harness import MDFS, Mounted, main, read_all, run, write_all


class Unreadable(unittest.TestCase):
    """Sources on a disk that answers errors."""

    def refuses_part_of(self, name, header, samples):
        volume = Mounted(disks=1)
        self.addCleanup(volume.remove)
        picture = volume / name
        write_all(picture, header + samples)
        run(MDFS, "image", "import", picture, volume / "whole")
        volume.unmount()
        with open(volume.disks[0], "r+b") as disk:
            with mmap.mmap(disk.fileno(), 0) as block:
                at = block.find(header)
                self.assertGreater(at, 0)
                block[at + 100000] ^= 1
        volume.mount()
        with self.assertRaises(OSError):
            read_all(picture)
        refused = subprocess.run([MDFS, "image", "import", picture, volume / "part"], capture_output=True, text=True,
                                 check=False)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn(name, refused.stderr)
        self.assertFalse(os.path.exists(volume / "part"))
        volume.unmount()

    def test_a_picture_of_which_a_block_cannot_be_read_is_not_imported(self):
        samples = numpy.random.default_rng(1).integers(0, 256, 300 * 200 * 6, dtype=numpy.uint8).tobytes()
        self.refuses_part_of("picture.ppm", b"P6\n300 200\n65535\n", samples)
        header = b"BM" + struct.pack("<IHHI", 54 + len(samples) // 2, 0, 0, 54)
        header += struct.pack("<IiiHHIIiiII", 40, 300, 200, 1, 24, 0, len(samples) // 2, 2835, 2835, 0, 0)
        self.refuses_part_of("picture.bmp", header, samples[:len(samples) // 2])

    def test_a_read_of_damaged_samples_names_the_extent_and_the_remedy(self):
        samples = numpy.random.default_rng(2).integers(1, 65536, (4, 256, 300), dtype=numpy.uint16)
        volume = Mounted(disks=1)
        self.addCleanup(volume.remove)
        numpy.save(volume / "a.npy", samples)
        run(MDFS, "image", "import", "--codec", "raw", "--extent", "1x64x100", volume / "a.npy", volume / "image")
        os.unlink(volume / "a.npy")
        volume.unmount()
        with open(volume.disks[0], "r+b") as disk:
            with mmap.mmap(disk.fileno(), 0) as block:
                wanted = samples[2, 64:128, 200:300].tobytes()
                at = block.find(wanted[:200])
                self.assertGreater(at, 0)
                while at >= 0:  # the deleted file may have the samples, too
                    block[at + 50] ^= 1
                    at = block.find(wanted[:200], at + 1)
        volume.mount()
        image, target = volume / "image", os.path.join(volume.folder, "copy.npy")
        for words, where in ((("image", "export", image, target), "z2+1,y64+64,x200+100"),
                             (("window", "read", image, "z2"), "z2,y64+64,x200+100"),
                             (("window", "read", image, "z1+3,x10+250"), "z2+1,y64+64,x200+60"),
                             (("window", "read", image, "z2,y70,x250+10"), "z2,y70,x250+10")):
            with self.subTest(words):
                refused = subprocess.run([MDFS, *words], capture_output=True, check=False)
                said = refused.stderr.decode()
                self.assertEqual(refused.returncode, 3, said)
                self.assertIn(f"mdfs: input/output error: {image}: the extent at {where} cannot be read; ", said)
                self.assertIn("mdfs image salvage", said)
        good = subprocess.run([MDFS, "window", "read", volume / "image", "z3"], capture_output=True, check=True)
        self.assertEqual(good.stdout, samples[3].tobytes())
        volume.unmount()


if __name__ == "__main__":
    main()
