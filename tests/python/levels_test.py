"""Claims about resolution levels in the Python package: a level behaves as the reduction of the array by NumPy."""
# SPDX-License-Identifier: Apache-2.0
import errno
import multiprocessing
import os
import pathlib
import pickle
import random
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import harness  # noqa: E402
from selection_test import some_index  # noqa: E402

import mdfs  # noqa: E402

TYPES = ["u1", "u2", "i2", "i4", "f4", "f8"]
# Axes, the shape, and the axes that are halved between the image and level 1.
KINDS = [("yx", (rows, columns), (0, 1)) for rows, columns in ((1, 1), (1, 37), (53, 1), (64, 64), (91, 130))]
KINDS += [("zyx", (5, 33, 47), (1, 2)), ("tyx", (4, 20, 9), (1, 2)), ("yxc", (41, 60, 3), (0, 1)), ("x", (101,), (0,)),
          ("tczyx", (2, 2, 3, 20, 31), (3, 4))]


def noise(shape, dtype, seed=0):
    """Samples whose sums are exact in every type."""
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def halved(array, axes, reduce):
    """One level above."""
    count = np.ones(array.shape)
    wide = array.astype("f8")
    for axis in axes:
        first = np.arange(0, array.shape[axis], 2)
        if reduce == "nearest":
            wide = np.take(wide, first, axis)
        elif reduce == "max":
            wide = np.maximum.reduceat(wide, first, axis)
        else:
            wide, count = np.add.reduceat(wide, first, axis), np.add.reduceat(count, first, axis)
    mean = wide / count if reduce == "mean" else wide
    return (np.rint(mean) if array.dtype.kind in "iu" else mean).astype(array.dtype)


def sum_of(image):
    """In another process."""
    return int(image[...].sum(dtype=np.int64)), int(image.read(..., level=2).sum(dtype=np.int64))


class LevelsTest(harness.MountTest):
    size = "128M"

    def stored(self, array, axes=None, name="image", **options):
        mdfs.imwrite(self.at(name), array, axes, **options)
        return mdfs.open(self.at(name), "r+")

    def test_every_index_of_a_level_selects_what_numpy_does(self):
        rng = random.Random(2)
        for number, (axes, shape, along) in enumerate(KINDS):
            for levels, reduce in ((None, None), (1, "mean"), (1, "nearest"), (1, "max")):
                array = noise(shape, TYPES[(number + len(str(reduce))) % len(TYPES)], number)
                if np.prod(shape) == 1 and levels:
                    continue  # too small for a level
                image = self.stored(array, axes, f"{number}{reduce}", levels=levels, reduce=reduce)
                wanted = array
                for level in range(1, 3 if max(np.array(shape)[list(along)]) > 2 else 1):
                    wanted = halved(wanted, along, reduce or "mean")
                    of = image.level(level)
                    with self.subTest(axes=axes, shape=shape, reduce=reduce, level=level, dtype=array.dtype):
                        self.assertEqual((of.shape, of.dtype, of.axes), (wanted.shape, array.dtype, image.axes))
                        np.testing.assert_array_equal(np.asarray(of), wanted)
                        np.testing.assert_array_equal(image.read(..., level=level), wanted)
                        indices = [some_index(rng, wanted.shape) for _ in range(8)]
                        for index, found in zip(indices, image.read_many(indices, level=level)):
                            np.testing.assert_array_equal(found, wanted[index])
                            np.testing.assert_array_equal(of[index], wanted[index])
                            out = np.zeros(wanted[index].shape, wanted.dtype)
                            self.assertIs(image.read(index, out=out, level=level), out)
                            np.testing.assert_array_equal(out, wanted[index])
                        again = np.zeros_like(wanted)
                        for place, samples in of.blocks():
                            again[place] = samples
                        np.testing.assert_array_equal(again, wanted)

    def test_a_level_has_the_facts_of_its_image(self):
        array = noise((5, 60, 81, 2), "u2")
        image = self.stored(array, "zyxc", spacing={"z": (2, "um"), "y": (.5, "um"), "x": (.5, "um")}, levels=3)
        image.attrs = {"stain": "DAPI"}
        self.assertEqual(image.levels, ((5, 60, 81, 2), (5, 30, 41, 2), (5, 15, 21, 2), (3, 8, 11, 2)))
        self.assertEqual(image.reduction, "mean")
        for number, shape in enumerate(image.levels):
            level = image.level(number)
            self.assertEqual((level.shape, level.mode, level.levels), (shape, "r", image.levels))
            self.assertEqual(level.spacing, {"z": (4. if number == 3 else 2., "um"), "y": (.5 * 2 ** number, "um"),
                                             "x": (.5 * 2 ** number, "um")})
            self.assertEqual((dict(level.attrs), level.generation, level.codec, level.chunks),
                             ({"stain": "DAPI"}, image.generation, image.codec, image.chunks))
        self.assertIn(" level 2: ", repr(image.level(2)))
        self.assertNotIn(" level ", repr(image))
        self.assertEqual(len({level.__dask_tokenize__() for level in map(image.level, range(4))}), 4)
        np.testing.assert_array_equal(image.level(2).level(0)[...], array)
        self.assertEqual(image.level(1).plan(np.s_[0:5])["extents"], image.plan("l1")["extents"])

    def test_windows_of_text_name_levels(self):
        image = self.stored(noise((90, 131), "u1"), levels=2)
        for spec in ("l1", "l2,y3", "l1,y3+2,x7", "l2,y3+1,x5+6", "l3,5,6,2,3", "l0,y7"):
            wanted = np.load(f"{image.path}@/win/{spec}.npy")
            np.testing.assert_array_equal(image.read(spec), wanted)
            np.testing.assert_array_equal(image.read_many(["y1", spec])[1], wanted)
            np.testing.assert_array_equal(image.level(1).read(spec), wanted)
        np.testing.assert_array_equal(image.read("y3,x1+4", level=2), image.read("l2,y3,x1+4"))
        np.testing.assert_array_equal(image.level(2).read("y22"), image.read("l2,y22"))
        np.testing.assert_array_equal(image.level(2).read("all"), image.read("l2"))
        for wrong, level in (("l2,y23", None), ("l9", None), ("l", None), ("l1,l2", None), ("y23", 2), ("l1", 1)):
            with self.subTest(wrong=wrong), self.assertRaises(ValueError):
                image.read(wrong, level=level)

    def test_a_cut_is_an_oblique_plane_of_an_image_or_a_level(self):
        data = noise((20, 30, 40), "f4")
        image = self.stored(data, "zyx", levels=1)
        np.testing.assert_array_equal(image.cut((0, 0, 7), (1, 0, 0), (0, 1, 0), (40, 30)), data[7])
        np.testing.assert_array_equal(image.cut((5, 0, 0), (0, 0, 1), (0, 1, 0), (20, 30), near=True), data[:, :, 5].T)
        np.testing.assert_array_equal(image.level(1).cut((0, 0, 7), (1, 0, 0), (0, 1, 0), (20, 15)),
                                      image.read("l1,z7"))
        turned = image.cut((0, 0, 0), (np.cos(np.pi / 2), 0, np.sin(np.pi / 2)), (0, 1 / 3, 0), (20, 3))
        np.testing.assert_array_equal(turned[0], data[:, 0, 0])
        for wrong in ((0, 0), (0, 0, np.nan)):
            with self.assertRaises(ValueError):
                image.cut(wrong, (1, 0, 0), (0, 1, 0), (4, 3))
        with self.assertRaisesRegex(ValueError, "no cut of this image: .*'?t3'?"):
            image.cut((0, 0, 0), (1, 0, 0), (0, 1, 0), (4, 3), at="t3")
        with self.assertRaisesRegex(ValueError, "a width and a height of 1 or more"):
            image.cut((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 3))
        colours = self.stored(noise((2, 4, 5, 6, 3), "u1"), "tzyxc", name="film")
        np.testing.assert_array_equal(colours.cut((0, 0, 2), (1, 0, 0), (0, 1, 0), (6, 5), at="t1,c2"),
                                      colours[1, 2, :, :, 2])

    def test_levels_are_only_read(self):
        image = self.stored(noise((20, 20), "u1"), levels=1)
        before, level = image[...], image.level(1)
        for change in (lambda: level.__setitem__(0, 1), lambda: level.append(np.zeros((1, 10), "u1")),
                       lambda: image.write("l1,y0", 1), lambda: setattr(level, "attrs", {}), level.set_levels,
                       lambda: mdfs.Image(image.path, "r+", 1)):
            with self.assertRaisesRegex(ValueError, "only read"):
                change()
        np.testing.assert_array_equal(image[...], before)

    def test_levels_are_stored_as_asked_or_nothing_is_made(self):
        image = self.stored(noise((400, 300), "u1"), extent=(64, 64), levels="auto", reduce="max")
        self.assertEqual((image.levels, image.reduction), (((400, 300), (200, 150), (100, 75), (50, 38)), "max"))
        image.set_levels(1)
        self.assertEqual((len(image.levels), image.reduction), (2, "max"))
        image.set_levels(2, "nearest")
        np.testing.assert_array_equal(image.level(2)[...], image[::4, ::4])
        image.set_levels(None)
        self.assertEqual(image.levels, ((400, 300),))
        for options in ({"levels": 30}, {"levels": -1}, {"levels": 63}, {"levels": "all"}, {"reduce": "mean"},
                        {"levels": 1, "reduce": "median"}):
            with self.subTest(options=options), self.assertRaises(ValueError):
                mdfs.create(self.at("new"), (400, 300), "u1", **options)
            self.assertFalse(os.path.exists(self.at("new")))
        with self.assertRaises(ValueError):
            image.set_levels(30)
        with self.assertRaises(TypeError):
            image.set_levels(1.5)

    def test_what_is_not_there_is_refused(self):
        image = self.stored(noise((20, 20), "u1"))
        for number in (6, -1, 1 << 40):
            with self.assertRaisesRegex(IndexError, f"level {number}"):
                image.level(number)
            with self.assertRaises(IndexError):
                image.read(..., level=number)
        with self.assertRaises(IndexError):
            image.read(np.s_[10], level=1)
        image.read(..., level=1)
        image.close()
        with self.assertRaises(ValueError):
            image.read(..., level=1)
        large = mdfs.create(self.at("large"), (20000, 20000), "u1")
        with self.assertRaises(OSError) as caught:
            large.read(..., level=1)
        self.assertEqual(caught.exception.errno, errno.EFBIG)
        self.assertEqual(int(large.level(1)[:100, :100].max()), 0)

    def test_levels_follow_what_is_written_and_appended(self):
        image = mdfs.create(self.at("film"), (0, 40, 30), "u1", axes="tyx", levels=2)
        other = image.level(1)
        for count in range(1, 5):
            image.append(np.full((40, 30), count, "u1"))
            self.assertEqual(image.levels, ((count, 40, 30), (count, 20, 15), (count, 10, 8)))
            self.assertEqual(image.read(np.s_[-1], level=2).tolist(), [[count] * 8] * 10)
        self.assertEqual(other.shape, (0, 20, 15))
        other.refresh()
        self.assertEqual(other.shape, (4, 20, 15))
        image[2] = 99
        self.assertEqual(set(other[2].ravel().tolist()), {99})
        with open(image.path, "ab") as file:
            file.write(b"part of a frame")
        other.refresh()
        self.assertEqual(other.shape, (4, 20, 15))

    def test_levels_go_to_other_processes(self):
        array = noise((200, 200), "u1")
        image = self.stored(array, levels=2)
        one = halved(array, (0, 1), "mean")
        wanted = int(one.sum(dtype=np.int64)), int(halved(one, (0, 1), "mean").sum(dtype=np.int64))
        level = image.level(1)
        self.assertEqual(sum_of(level), wanted)
        again = pickle.loads(pickle.dumps(level))
        self.assertEqual((again.shape, again.mode, sum_of(again)), ((100, 100), "r", wanted))
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(sum_of, [level] * 4), [wanted] * 4)
        child = os.fork()
        if child == 0:
            os._exit(0 if sum_of(level) == wanted else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


if __name__ == "__main__":
    harness.main()
