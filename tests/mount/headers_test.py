"""Headers of other formats that describe the plain samples of an image."""
# SPDX-License-Identifier: Apache-2.0
import errno
import os

import harness
from harness import make_image, read_all, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of headers need numpy")
    raise SystemExit(harness.SKIP)


class Headers(harness.MountTest):
    def test_headers_describe_the_plain_samples_beside_them(self):
        data = np.arange(9 * 20 * 30, dtype="<u2").reshape(9, 20, 30)
        make_image(self.at("scan"), data.shape, element="u16")
        write_all(self.at("scan"), data.tobytes())
        self.assertEqual(read_all(self.at("scan@/scan.raw")), data.tobytes())
        text = read_all(self.at("scan@/scan.nhdr")).decode()
        self.assertEqual(len(text), os.stat(self.at("scan@/scan.nhdr")).st_size)
        self.assertIn("sizes: 30 20 9\n", text)
        self.assertIn("data file: scan.raw\n", text)
        mapped = np.memmap(self.at("scan@/scan.raw"), "<u2", "r", shape=(9, 20, 30))
        np.testing.assert_array_equal(mapped, data)
        with open(self.at("scan"), "ab") as file:  # one plane more
            file.write(data[0].tobytes())
        self.assertIn("sizes: 30 20 10\n", read_all(self.at("scan@/scan.nhdr")).decode())
        self.assertEqual(os.stat(self.at("scan@/scan.raw")).st_size, 10 * 1200)
        for flags in (os.O_WRONLY, os.O_RDWR):
            self.assertErrno(errno.EACCES, os.open, self.at("scan@/scan.nhdr"), flags)
            self.assertErrno(errno.EACCES, os.open, self.at("scan@/scan.raw"), flags)
        os.rename(self.at("scan"), self.at("moved"))
        self.assertErrno(errno.ENOENT, os.stat, self.at("moved@/scan.nhdr"))
        self.assertIn(b"data file: moved.raw\n", read_all(self.at("moved@/moved.nhdr")))
        make_image(self.at("half"), (5, 6), element="f16")
        self.assertErrno(errno.ENOENT, os.stat, self.at("half@/half.nhdr"))
        self.assertEqual(sorted(os.listdir(self.at("half@"))),
                         ["half.npy", "half.raw", "half.tif", "info.json", "ome.zarr", "win"])
        make_image(self.at("50%d"), (5, 6))
        self.assertErrno(errno.ENOENT, os.stat, self.at("50%d@/50%d.mhd"))
        self.assertTrue(os.path.exists(self.at("50%d@/50%d.vrt")))


if __name__ == "__main__":
    harness.main()
