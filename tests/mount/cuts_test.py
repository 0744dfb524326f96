"""Windows over the edge and oblique cuts, against NumPy."""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import random
import subprocess
import threading

import harness
from harness import MDFS, make_image, read_all, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of cuts need numpy")
    raise SystemExit(harness.SKIP)

RNG = np.random.default_rng(11)


def text(number):
    return np.format_float_positional(number, trim="-")


def spec_of(origin, u, v, size, near=False):
    numbers = [text(number) for number in (*origin, *u, *v)] + [str(number) for number in size]
    return "cut," + ",".join(numbers) + (",near" if near else "")


def cut_of(volume, origin, u, v, size, near=False):
    """The cut as the manual defines it, of an array with axes z, y, x."""
    width, height = size
    columns, rows = np.arange(width, dtype="f8")[None, :], np.arange(height, dtype="f8")[:, None]
    # Along z, y, x, as the array has its axes.
    at = [(o + rows * b) + columns * a for o, a, b in zip(origin, u, v)][::-1]
    inside = np.ones((height, width), bool)
    low, high, fraction = [], [], []
    for position, length in zip(at, volume.shape):
        inside &= (position >= 0) & (position <= length - 1)
        floor = np.floor(position + 0.5 if near else position)
        part = np.zeros_like(position) if near else position - floor
        low.append(np.clip(floor, 0, length - 1).astype(int))
        high.append(np.clip(floor + (part > 0), 0, length - 1).astype(int))
        fraction.append(part)
    exact = volume[tuple(low)]
    values = {}
    for corner in range(8):  # bit i: high along x, y, z
        index = tuple((high if corner >> (2 - axis) & 1 else low)[axis] for axis in range(3))
        values[corner] = volume[index].astype("f8")
    for axis in range(3):  # x, then y, then z
        part = fraction[2 - axis]
        values = {i // 2: np.where(part > 0, values[i] * (1 - part) + values[i + 1] * part, values[i])
                  for i in range(0, len(values), 2)}
    made = values[0]
    if np.issubdtype(volume.dtype, np.integer):
        limits = np.iinfo(volume.dtype)
        made = np.clip(np.rint(made), limits.min, limits.max)
    on_samples = np.logical_and.reduce([part == 0 for part in fraction])
    made = np.where(on_samples, exact, made.astype(volume.dtype))
    return np.where(inside, made, np.zeros((), volume.dtype)).astype(volume.dtype)


class Cuts(harness.MountTest):
    def image(self, name, shape, element="u16", channels=1, holes=True, **options):
        """An image of noise, of which a part is a hole."""
        make_image(self.at(name), shape, element=element, channels=channels, **options)
        data = np.zeros(shape + ((channels,) if channels > 1 else ()), harness.NUMPY[element])
        filled = RNG.integers(-120 if data.dtype.kind != "u" else 0, 120, size=data.shape).astype(data.dtype)
        half = shape[0] // 2 if holes else shape[0]
        data[:half] = filled[:half]
        write_all(self.at(f"{name}@/win/z0+{half}.raw"), data[:half].tobytes())
        return data

    def same(self, path, expected):
        found = np.load(path)
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        np.testing.assert_array_equal(found, expected)
        self.assertEqual(os.stat(path).st_size, 128 + expected.nbytes)

    # ---- clip

    def padded(self, data, start, length):
        made = np.zeros(tuple(length) + data.shape[len(start):], data.dtype)
        inside = tuple(slice(max(0, s), min(n, s + size)) for s, size, n in zip(start, length, data.shape))
        target = tuple(slice(i.start - s, i.stop - s) for i, s in zip(inside, start))
        made[target] = data[inside]
        return made

    def test_a_clipped_window_is_the_window_with_zeros_around_it(self):
        random.seed(5)
        for element, channels in (("u8", 1), ("u16", 3), ("f32", 1), ("i64", 1)):
            data = self.image(element, (20, 30, 40), element, channels, extent=(8, 8, 16))
            for _ in range(25):
                start = [random.randrange(-9, n) for n in (20, 30, 40)]
                length = [random.randint(max(1, 1 - s), n + 12) for s, n in zip(start, (20, 30, 40))]
                spec = ",".join(f"{axis}{s}+{n}" for axis, s, n in zip("zyx", start, length))
                self.same(self.at(f"{element}@/win/{spec},clip.npy"), self.padded(data, start, length))

    def test_a_clipped_window_is_read_in_pieces_of_any_size(self):
        data = self.image("scan", (20, 30, 40), extent=(8, 8, 16))
        expected = self.padded(data, (-3, -4, -5), (30, 40, 50)).tobytes()
        with open(self.at("scan@/win/z-3+30,y-4+40,x-5+50,clip.raw"), "rb", buffering=0) as file:
            for offset, size in ((0, 1), (7777, 33), (len(expected) - 5, 50), (50000, 12345)):
                self.assertEqual(os.pread(file.fileno(), size, offset), expected[offset:offset + size])

    def test_spellings_of_one_clipped_window_are_one_inode(self):
        self.image("scan", (20, 30, 40))
        number = os.stat(self.at("scan@/win/y-4+40,clip.raw")).st_ino
        self.assertEqual(os.stat(self.at("scan@/win/clip,z0+20,y-4+40.raw")).st_ino, number)
        self.assertEqual(os.stat(self.at("scan@/win/y4+10,clip.raw")).st_ino,
                         os.stat(self.at("scan@/win/y4+10.raw")).st_ino)

    def test_a_clipped_window_follows_writes_and_is_not_written(self):
        data = self.image("scan", (20, 30, 40))
        name = self.at("scan@/win/z18+4,y28+4,clip.npy")
        self.same(name, self.padded(data, (18, 28, 0), (4, 4, 40)))
        data[18:, 28:] = 7
        np.save(self.at("scan@/win/z18+2,y28+2.npy"), data[18:, 28:])
        self.same(name, self.padded(data, (18, 28, 0), (4, 4, 40)))
        self.assertErrno(errno.EACCES, open, name, "r+b")

    def test_pictures_and_levels_are_clipped(self):
        make_image(self.at("flat"), (16, 32))
        data = RNG.integers(0, 256, size=(16, 32), dtype="u1")
        write_all(self.at("flat"), data.tobytes())
        self.assertEqual(read_all(self.at("flat@/win/y-2+8,x30+5,clip.pgm")),
                         b"P5\n5 8\n255\n" + self.padded(data, (-2, 30), (8, 5)).tobytes())
        self.assertEqual(read_all(self.at("flat@/win/y-2+8,x30+5,clip.png"))[:8], b"\x89PNG\r\n\x1a\n")
        level = np.load(self.at("flat@/win/l1.npy"))
        self.same(self.at("flat@/win/l1,y-2+8,x10+12,clip.npy"), self.padded(level, (-2, 10), (8, 12)))

    def test_a_window_without_a_sample_inside_does_not_exist(self):
        self.image("scan", (20, 30, 40))
        for spec in ("y-4+4,clip", "y30+5,clip", "y-4,clip", "y-4+8", "y0+0,clip", "clip,clip", "y--1+4,clip",
                     "y0+4611686018427387904,clip"):
            self.assertErrno(errno.ENOENT, os.stat, self.at(f"scan@/win/{spec}.raw"))
        explained = subprocess.run([MDFS, "window", "explain", self.at("scan"), "y30+5,clip"], capture_output=True,
                                   text=True, check=False)
        self.assertNotEqual(explained.returncode, 0)
        self.assertIn("no sample of the window is inside along axis y", explained.stderr)
        size = os.stat(self.at("scan@/win/y0+1099511627776,clip.raw")).st_size
        self.assertEqual(size, 20 * 40 * 2 << 40)

    # ---- cuts

    def cut(self, name, *cut):
        return self.at(f"{name}@/win/{spec_of(*cut)}.npy")

    def any_cut(self, shape):
        size = (random.randint(1, 40), random.randint(1, 40))
        middle = [n / 2 for n in shape[::-1]]
        direction = [[round(random.uniform(-1.5, 1.5), 6) for _ in range(3)] for _ in range(2)]
        origin = [round(m - (a * size[0] + b * size[1]) / 2 + random.uniform(-9, 9), 4)
                  for m, a, b in zip(middle, *direction)]
        return origin, *direction, size, random.random() < 0.3

    def test_random_cuts_agree_with_numpy(self):
        random.seed(6)
        for element in ("u8", "u16", "i32", "f32", "f64", "f16", "u64"):
            data = self.image(element, (20, 30, 40), element, extent=(8, 8, 16), codec=random.randint(0, 1))
            for _ in range(25):
                cut = self.any_cut(data.shape)
                self.same(self.cut(element, *cut), cut_of(data, *cut))

    def test_cuts_agree_with_scipy(self):
        try:
            from scipy import ndimage
        except ImportError:
            self.skipTest("scipy is missing")
        random.seed(7)
        data = self.image("scan", (20, 30, 40), "f64")
        for _ in range(25):
            origin, u, v, (width, height), near = cut = self.any_cut(data.shape)
            columns, rows = np.meshgrid(np.arange(width), np.arange(height))
            places = [(o + rows * b) + columns * a for o, a, b in zip(origin, u, v)][::-1]
            expected = ndimage.map_coordinates(data, places, order=0 if near else 1, mode="constant", cval=0)
            np.testing.assert_allclose(np.load(self.cut("scan", *cut)), expected, atol=1e-9)

    def test_a_cut_along_the_axes_is_the_plane(self):
        data = self.image("scan", (20, 30, 40), "f32", holes=False)
        self.same(self.cut("scan", (0, 0, 7), (1, 0, 0), (0, 1, 0), (40, 30)), data[7])
        self.same(self.cut("scan", (3, 29, 0), (0, -1, 0), (0, 0, 1), (30, 20)), data[:, ::-1, 3])
        self.same(self.cut("scan", (500, 0, 0), (1, 0, 0), (0, 1, 0), (4, 3)), np.zeros((3, 4), "f4"))

    def test_other_axes_and_channels_are_chosen(self):
        data = RNG.integers(0, 256, size=(3, 10, 12, 14, 3), dtype="u1")
        make_image(self.at("film"), (3, 10, 12, 14), channels=3, axes="tzyx", extent=(1, 8, 8, 8))
        write_all(self.at("film"), data.tobytes())
        cut = ((0, 1, 2), (1, 0, 0.25), (0, 0.5, 0), (9, 7))
        spec = spec_of(*cut)
        expected = np.stack([cut_of(data[2, ..., c], *cut) for c in range(3)], axis=-1)
        self.same(self.at(f"film@/win/{spec},t2.npy"), expected)
        self.same(self.at(f"film@/win/{spec},t2,c1.npy"), expected[..., 1])
        self.assertEqual(read_all(self.at(f"film@/win/{spec},c1,t2.pgm")),
                         b"P5\n9 7\n255\n" + expected[..., 1].tobytes())
        self.assertEqual(read_all(self.at(f"film@/win/{spec},t2.png"))[:8], b"\x89PNG\r\n\x1a\n")
        self.assertErrno(errno.ENOENT, os.stat, self.at(f"film@/win/{spec}.npy"))

    def test_a_cut_through_a_level_is_in_samples_of_the_level(self):
        self.image("scan", (20, 30, 40), "f32", holes=False)
        level = np.load(self.at("scan@/win/l1.npy"))
        cut = ((0, 1, 2), (0.9, 0, 0.25), (0, 0.5, 0.3), (19, 17))
        self.same(self.at(f"scan@/win/{spec_of(*cut)},l1.npy"), cut_of(level, *cut))

    def test_spellings_of_one_cut_are_one_inode(self):
        self.image("scan", (20, 30, 40))
        first, second = (self.at(f"scan@/win/cut,{numbers}.npy")
                         for numbers in ("1.5,0,0,1,0,0,0,1,0,4,3", "01.50,-0,0.0,1,0,0,0,1,0,4,3,l0"))
        self.assertEqual(os.stat(first).st_ino, os.stat(second).st_ino)
        self.assertErrno(errno.EACCES, open, first, "r+b")

    def test_malformed_cuts_do_not_exist_and_explain_says_why(self):
        self.image("scan", (20, 30, 40))
        for numbers, reason in (("nan,0,0,1,0,0,0,1,0,4,3", "decimal"), ("inf,0,0,1,0,0,0,1,0,4,3", "decimal"),
                                ("0x1p3,0,0,1,0,0,0,1,0,4,3", "decimal"), ("1e3,0,0,1,0,0,0,1,0,4,3", "decimal"),
                                ("0.123456789012345678,0,0,1,0,0,0,1,0,4,3", "digits"),
                                ("0,0,0,1,0,0,0,1,0,0,3", "width"), ("0,0,0,1,0,0,0,1,0,4", "items"),
                                ("0,0,0,1,0,0,0,1,0,4,3,far", "near"), ("0,0,0,1,0,0,0,1,0,4,3,l9", "level")):
            self.assertErrno(errno.ENOENT, os.stat, self.at(f"scan@/win/cut,{numbers}.npy"))
            done = subprocess.run([MDFS, "window", "explain", self.at("scan"), f"cut,{numbers}"], capture_output=True,
                                  text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(reason, done.stderr)

    def test_a_cut_over_the_limit_is_too_big(self):
        self.image("scan", (20, 30, 40), "u8")
        name = self.at("scan@/win/cut,0,0,0,1,0,0,0,1,0,16385,16384.raw")
        self.assertEqual(os.stat(name).st_size, 16385 * 16384)
        self.assertErrno(errno.EFBIG, open, name)

    def test_an_open_cut_keeps_its_version(self):
        data = self.image("scan", (20, 30, 40), holes=False)
        cut = ((0, 0, 0), (0.9, 0, 0.25), (0, 0.9, 0.2), (40, 30))
        with open(self.cut("scan", *cut), "rb") as file:
            write_all(self.at("scan"), bytes(data.nbytes))
            np.testing.assert_array_equal(np.load(file), cut_of(data, *cut))
        self.same(self.cut("scan", *cut), cut_of(np.zeros_like(data), *cut))

    def test_a_cut_shows_one_state_while_programs_write(self):
        self.image("scan", (24, 30, 40), "u8", holes=False, extent=(8, 8, 16))
        states = [np.full((24, 30, 40), value, "u1") for value in (1, 2)]
        np.save(self.at("scan@/win/all.npy"), states[0])
        done = threading.Event()

        def write():
            while not done.is_set():
                for state in states[::-1]:
                    np.save(self.at("scan@/win/all.npy"), state)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            seen = [np.load(self.cut("scan", (0, 0, 0), (0.9, 0, 0.5), (0, 0.9, 0), (40, 30)))[:, :40]
                    for _ in range(40)]
        finally:
            done.set()
            writer.join()
        for cut in seen:
            self.assertEqual(len(np.unique(cut)), 1)

    def test_the_command_reads_cuts_and_clipped_windows(self):
        data = self.image("scan", (20, 30, 40), "f32")
        cut = ((-1.5, 1, 2), (0.9, 0, 0.25), (0, 0.5, 0.3), (19, 17), True)
        out = os.path.join(self.volume.folder, "cut.npy")
        harness.run(MDFS, "window", "cut", self.at("scan"), "--origin=-1.5,1,2", "-u", "0.9,0,0.25", "-v", "0,0.5,0.3",
                    "--size", "19,17", "--near", "-o", out, "--force")
        np.testing.assert_array_equal(np.load(out), cut_of(data, *cut))
        harness.run(MDFS, "window", "read", self.at("scan"), "z-2+5,clip", "-o", out, "--force")
        np.testing.assert_array_equal(np.load(out), self.padded(data, (-2, 0, 0), (5, 30, 40)))

    def test_explain_counts_the_extents_that_a_cut_meets(self):
        self.image("scan", (64, 64, 64), "u8", holes=False, extent=(8, 8, 8))
        spec = spec_of((0, 0, 0), (0.7071, 0, 0.7071), (0, 1, 0), (90, 64))
        plan = json.loads(harness.run(MDFS, "window", "explain", "--json", self.at("scan"), spec))
        self.assertEqual(plan["shape"], [64, 90])
        self.assertEqual(plan["extents_around"], 8 ** 3)
        self.assertEqual(plan["extents"], 8 * (8 + 7 * 2))  # two more where the plane passes between four
        self.assertEqual(plan["holes"], 0)


if __name__ == "__main__":
    harness.main()
