"""Windows of resolution levels by virtual paths, against NumPy."""
# SPDX-License-Identifier: Apache-2.0
import errno
import os
import struct

import harness
from harness import make_image, read_all, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of levels need numpy")
    raise SystemExit(harness.SKIP)

RNG = np.random.default_rng(7)


class Levels(harness.MountTest):
    def image(self, name, shape, element="u8"):
        """An image with random samples in it; returns the array."""
        make_image(self.at(name), shape, element=element)
        size = int(np.prod(shape)) * np.dtype(harness.NUMPY[element]).itemsize
        data = RNG.integers(0, 256, size=size, dtype="u1").view(harness.NUMPY[element]).reshape(shape)
        write_all(self.at(name), data.tobytes())
        return data

    def same(self, path, expected):
        found = np.load(path)
        self.assertEqual(found.dtype, expected.dtype)
        np.testing.assert_array_equal(found, expected)

    @staticmethod
    def halved(data):
        """The mean of 2 x 2 samples, of fewer at the end of an axis, rounded half to even."""
        total = data.astype("f8")
        count = np.ones(data.shape)
        for axis in (data.ndim - 2, data.ndim - 1):
            first = np.arange(0, data.shape[axis], 2)
            total = np.add.reduceat(total, first, axis=axis)
            count = np.add.reduceat(count, first, axis=axis)
        mean = total / count
        return (np.rint(mean) if data.dtype.kind in "iu" else mean).astype(data.dtype)

    def test_a_level_is_the_mean_of_the_present_level_below(self):
        for element, shape in (("u8", (301, 455)), ("i16", (7, 90, 131)), ("f32", (200, 63))):
            data = self.image(element, shape, element)
            if element == "f32":
                data = RNG.random(shape, dtype="f4")
            for level_one in (data, data[..., ::-1].copy()):
                write_all(self.at(element), level_one.tobytes())
                level = level_one
                for n in range(1, 5):
                    level = self.halved(level)
                    name = self.at(f"{element}@/win/l{n}.npy")
                    self.same(name, level)
                    self.assertEqual(os.stat(name).st_size, level.nbytes + 128)
                    self.same(self.at(f"{element}@/win/l{n},y1+2,x2+1.npy"), level[..., 1:3, 2:3])
        with open(self.at("u8@/win/y0+2,x0+2.raw"), "wb") as file:
            file.write(bytes([4, 5, 6, 7]))
        self.assertEqual(read_all(self.at("u8@/win/l1,y0,x0.raw")), bytes([6]))
        os.truncate(self.at("u8"), 455)
        self.assertEqual(np.load(self.at("u8@/win/l1.npy")).shape, (1, 228))
        self.assertEqual(struct.unpack(">II", read_all(self.at("u8@/win/l2.png"))[16:24]), (114, 1))

    def test_a_level_is_only_read(self):
        self.image("scan", (40, 40))
        self.assertErrno(errno.EACCES, open, self.at("scan@/win/l1.raw"), "r+b")
        self.assertErrno(errno.ENOENT, os.stat, self.at("scan@/win/l7.raw"))
        self.assertErrno(errno.ENOENT, os.stat, self.at("scan@/win/l1,x20.raw"))
        self.assertEqual(os.stat(self.at("scan@/win/l6.raw")).st_mode & 0o777, 0o444)


if __name__ == "__main__":
    harness.main()
