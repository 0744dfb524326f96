"""NAME.tif: an image as a TIFF of tiles or strips, which other programs read."""
# SPDX-License-Identifier: Apache-2.0
import errno
import os
import shutil
import struct
import subprocess
import unittest

import harness
from harness import make_image, read_all, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of the TIFF view need numpy")
    raise SystemExit(harness.SKIP)


class Tiff(harness.MountTest):
    def image(self, name, shape, element="u8", channels=1, **options):
        full = [*shape, *([channels] if channels > 1 else [])]
        data = np.random.default_rng(1).integers(0, 100, full).astype(harness.NUMPY[element])
        make_image(self.at(name), shape, element=element, channels=channels, **options)
        write_all(self.at(name), data.tobytes())
        return data

    def by_gdal(self, path, page):
        copy = os.path.join(self.volume.folder, "copy.bin")
        subprocess.run(["gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BIP", f"GTIFF_DIR:{page}:{path}",
                        copy], check=True, capture_output=True)
        return read_all(copy)

    @unittest.skipUnless(shutil.which("gdal_translate"), "needs gdal_translate")
    def test_gdal_reads_every_page_of_tiles_and_of_strips(self):
        for name, extent in ("tiles", (2, 32, 64)), ("strips", (2, 30, 50)):
            for element, channels in ("u8", 3), ("u16", 1), ("f32", 4), ("i32", 1), ("u8", 6):
                path = f"{name}{element}{channels}"
                data = self.image(path, (3, 70, 150), element, channels, extent=extent)
                tif = self.at(f"{path}@/{path}.tif")
                self.assertEqual(len(read_all(tif)), os.stat(tif).st_size)
                for page in range(3):
                    with self.subTest(path=path, page=page):
                        self.assertEqual(self.by_gdal(tif, page + 1), data[page].tobytes())

    def test_any_piece_is_that_of_the_file(self):
        self.image("scan", (150, 200), "u16", extent=(32, 64))
        whole = read_all(self.at("scan@/scan.tif"))
        self.assertEqual(whole[:4], b"II\x2b\0")
        fd = os.open(self.at("scan@/scan.tif"), os.O_RDONLY | os.O_DIRECT)
        for offset in range(0, len(whole), 1777):
            self.assertEqual(os.pread(fd, 3000, offset), whole[offset:offset + 3000])
        os.close(fd)

    def test_the_file_follows_the_image(self):
        data = self.image("film", (2, 32, 48), extent=(1, 16, 16))
        tif = self.at("film@/film.tif")
        before = read_all(tif)
        with open(self.at("film"), "ab") as file:
            file.write(data[0].tobytes())
        write_all(self.at("film@/win/z0.raw"), data[1].tobytes())
        after = read_all(tif)
        self.assertEqual(len(after), os.stat(tif).st_size)
        self.assertEqual(len(after) - len(before), 32 * 48)  # a page fits the head, which is rounded up
        first, second = before[-2 * 32 * 48:-32 * 48], before[-32 * 48:]  # in the order of tiles
        self.assertEqual(after[-3 * 32 * 48:], second + second + first)
        self.assertEqual(struct.unpack_from("<Q", after, 8), (16,))
        os.truncate(self.at("film"), 0)
        self.assertErrno(errno.ENOENT, os.stat, tif)
        self.assertNotIn("film.tif", os.listdir(self.at("film@")))

    def test_the_file_is_read_only_and_has_the_rights_of_the_image(self):
        self.image("scan", (32, 32))
        for flags in (os.O_WRONLY, os.O_RDWR):
            self.assertErrno(errno.EACCES, os.open, self.at("scan@/scan.tif"), flags)
        os.chmod(self.at("scan"), 0o640)
        self.assertEqual(os.stat(self.at("scan@/scan.tif")).st_mode & 0o777, 0o440)


if __name__ == "__main__":
    harness.main()
