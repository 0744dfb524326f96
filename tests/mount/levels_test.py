"""Windows of resolution levels by virtual paths, against NumPy."""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import pathlib
import struct
import subprocess
import sys
import time

import harness
from harness import make_image, MDFS, read_all, run, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of levels need numpy")
    raise SystemExit(harness.SKIP)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from zarr_reader import ZarrArray  # noqa: E402  the path comes first

RNG = np.random.default_rng(7)


def corners(data):
    """The four samples below each sample; at an edge the last row or column stands for two."""
    edges = [(0, n % 2) for n in data.shape]
    whole = np.pad(data, edges, mode="edge")
    return np.stack([whole[y::2, x::2] for y in (0, 1) for x in (0, 1)])


REDUCTIONS = {
    "mean": lambda data: np.rint(corners(data).astype("f8").mean(axis=0)).astype(data.dtype),
    "nearest": lambda data: data[::2, ::2],
    "max": lambda data: corners(data).max(axis=0),
}


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

    def levels(self, name):
        return json.loads(run(MDFS, "image", "levels", "--json", self.at(name)))["levels"]

    def test_stored_levels_follow_every_write(self):
        for reduction, reduce in REDUCTIONS.items():
            run(MDFS, "image", "create", "--shape", "301x455", "--extent", "32x32", "--type", "u16", "--levels", "auto",
                      "--reduce", reduction, self.at(reduction))
            data = RNG.integers(0, 65536, size=(301, 455), dtype="u2")
            write_all(self.at(reduction), data.tobytes())
            for step in range(4):
                level = data
                for n in range(1, 5):
                    level = reduce(level)
                    self.same(self.at(f"{reduction}@/win/l{n}.npy"), level)
                    self.same(self.at(f"{reduction}@/win/l{n},y1+2,x3+5.npy"), level[1:3, 3:8])
                self.assertEqual([one["built"] for one in self.levels(reduction)],
                                 [one["extents"] for one in self.levels(reduction)])
                y, x = 40 * step, 90 * step
                window = RNG.integers(0, 65536, size=(31, 17), dtype="u2")
                np.save(self.at(f"{reduction}@/win/y{y}+31,x{x}+17.npy"), window)
                data[y:y + 31, x:x + 17] = window
            os.truncate(self.at(reduction), 455 * 2 * 100)
            self.same(self.at(f"{reduction}@/win/l1.npy"), reduce(data[:100]))
            run(MDFS, "image", "levels", "--set", "none", self.at(reduction))
            self.assertEqual(self.levels(reduction), [])

    def test_wrong_numbers_of_levels_are_refused_and_nothing_is_made(self):
        data = self.image("scan", (301, 455))
        np.save(self.at("source"), data)
        create = [MDFS, "image", "create", "--type", "u8"]
        levels = [MDFS, "image", "levels"]
        few = "the image has fewer than 30 levels"
        for words, command in ((f"{self.at('new')}: {few}", [*create, "--shape", "301x455", "--levels", "30", "new"]),
                               ("too small for a level", [*create, "--shape", "1x1", "--levels", "1", "new"]),
                               ("must be auto, none", [*create, "--shape", "301x455", "--levels", "", "new"]),
                               ("must be mean, nearest", [*create, "--shape", "9x9", "--levels", "1", "--reduce", "",
                                                          "new"]),
                               (f"{self.at('new')}: {few}", [MDFS, "image", "import", "--levels", "30", "source.npy",
                                                             "new"]),
                               (f"{self.at('scan')}: {few}", [*levels, "--set", "30", "scan"]),
                               ("must be auto, none", [*levels, "--set", "", "scan"]),
                               ("--set stores some", [*levels, "--reduce", "max", "scan"]),
                               ("--set stores some", [*levels, "--set", "none", "--reduce", "max", "scan"]),
                               ("--reduce requires --levels", [*create, "--shape", "9x9", "--levels", "none",
                                                               "--reduce", "max", "new"]),
                               ("must be mean, nearest", [*levels, "--reduce", "", "scan"])):
            with self.subTest(command=command):
                command[-1] = self.at(command[-1])
                command = [self.at(word) if word == "source.npy" else word for word in command]
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(words, result.stderr)
                self.assertFalse(os.path.exists(self.at("new")))
                self.assertEqual(self.levels("scan"), [])

    def test_a_small_image_keeps_the_reduction_that_it_was_given(self):
        labels = np.array([[3, 1, 1, 1]] + 3 * [[1, 1, 1, 1]], "u1")
        run(MDFS, "image", "create", "--shape", "4x4", "--type", "u8", "--levels", "auto", "--reduce", "nearest",
            self.at("labels"))
        write_all(self.at("labels"), labels.tobytes())
        self.same(f"{self.at('labels')}@/win/l1.npy", labels[::2, ::2])
        self.assertEqual([level["reduction"] for level in self.levels("labels")], ["nearest"])
        run(MDFS, "image", "create", "--shape", "4x4", "--type", "u8", "--levels", "auto", self.at("picture"))
        self.assertEqual(self.levels("picture"), [])

    def test_an_idle_volume_builds_levels(self):
        data = self.image("scan", (301, 455))
        run(MDFS, "image", "levels", "--set", "3", self.at("scan"))
        end = time.monotonic() + 120
        while any(one["built"] < one["extents"] for one in self.levels("scan")):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)
        self.same(self.at("scan@/win/l1.npy"), self.halved(data))

    def test_levels_are_arrays_of_the_zarr_group(self):
        data = self.image("scan", (301, 455))
        run(MDFS, "image", "levels", "--set", "3", self.at("scan"))
        group = json.loads(read_all(self.at("scan@/ome.zarr/zarr.json")))
        datasets = group["attributes"]["ome"]["multiscales"][0]["datasets"]
        self.assertEqual([one["path"] for one in datasets], ["0", "1", "2", "3"])
        self.assertEqual(datasets[2]["coordinateTransformations"],
                         [{"type": "scale", "scale": [4.0, 4.0]}, {"type": "translation", "translation": [1.5, 1.5]}])
        self.assertEqual(sorted(os.listdir(self.at("scan@/ome.zarr"))), ["0", "1", "2", "3", "zarr.json"])
        level = data
        for n in range(1, 4):
            level = self.halved(level)
            array = ZarrArray(self.at(f"scan@/ome.zarr/{n}"))
            self.assertEqual(array.shape, level.shape)
            np.testing.assert_array_equal(array.read(), level)
            self.assertEqual(array.listed(), sorted(array.keys()))
            for key in array.keys():  # stored by now
                self.assertEqual(os.stat(array.file_of(key)).st_size, len(read_all(array.file_of(key))))
        self.assertErrno(errno.ENOENT, os.stat, self.at("scan@/ome.zarr/4"))

    def test_a_level_is_only_read(self):
        self.image("scan", (40, 40))
        self.assertErrno(errno.EACCES, open, self.at("scan@/win/l1.raw"), "r+b")
        self.assertErrno(errno.ENOENT, os.stat, self.at("scan@/win/l7.raw"))
        self.assertErrno(errno.ENOENT, os.stat, self.at("scan@/win/l1,x20.raw"))
        self.assertEqual(os.stat(self.at("scan@/win/l6.raw")).st_mode & 0o777, 0o444)

    def test_a_read_only_volume_computes_what_is_not_built(self):
        volume = harness.Mounted()
        self.addCleanup(volume.remove)
        path = f"{volume.path}/scan"
        make_image(path, (301, 455))
        data = RNG.integers(0, 256, (301, 455), "u1")
        write_all(path, data.tobytes())
        volume.unmount()
        volume.mount()
        run(MDFS, "image", "levels", "--set", "2", path)
        volume.unmount()
        volume.mount("ro")
        level = self.halved(data)
        self.same(f"{path}@/win/l1.npy", level)
        np.testing.assert_array_equal(ZarrArray(f"{path}@/ome.zarr/1").read(), level)
        self.assertEqual(len(os.listdir(f"{path}@/dz_files")), 10)


if __name__ == "__main__":
    harness.main()
