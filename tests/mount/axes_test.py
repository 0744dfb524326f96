"""Images of four and five axes, by every way of reading and writing, against NumPy."""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import pathlib
import random
import subprocess
import sys

import harness
from harness import MDFS, make_image, read_all, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of axes need numpy")
    raise SystemExit(harness.SKIP)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from zarr_reader import ZarrArray  # noqa: E402  the path comes first

RNG = np.random.default_rng(5)
SHAPES = {"tczyx": (3, 2, 5, 20, 30), "tzyx": (4, 7, 33, 18), "tcyx": (6, 3, 40, 50), "stzyx": (2, 3, 4, 17, 19)}


def noise(shape, element="u16"):
    return RNG.integers(0, 250, shape).astype(harness.NUMPY[element])


class Axes(harness.MountTest):
    def stored(self, name, axes, element="u16", *options):
        """Imports an NPY array; returns it."""
        data = noise(SHAPES[axes], element)
        source = os.path.join(self.volume.folder, "source.npy")
        np.save(source, data)
        harness.run(MDFS, "image", "import", "--quiet", "--axes", axes, *options, source, self.at(name))
        return data

    def same(self, path, expected):
        found = np.load(path)
        self.assertEqual(found.dtype, expected.dtype)
        np.testing.assert_array_equal(found, expected)

    def test_arrays_of_many_axes_come_back_as_they_went_in(self):
        for axes in SHAPES:
            for codec in ("raw", "zstd"):
                name = axes + codec
                data = self.stored(name, axes, "u16", "--codec", codec)
                self.assertEqual(read_all(self.at(name)), data.tobytes())
                self.same(self.at(f"{name}@/{name}.npy"), data)
                back = os.path.join(self.volume.folder, "back.npy")
                harness.run(MDFS, "image", "export", "--force", self.at(name), back)
                self.same(back, data)
                info = json.loads(read_all(self.at(f"{name}@/info.json")))
                self.assertEqual((info["axes"], tuple(info["shape"])), (axes, data.shape))

    def test_windows_of_many_axes_are_numpy_slices(self):
        draw = random.Random(3)
        for axes in SHAPES:
            data = self.stored(axes, axes, "u8", "--extent", "x".join(str(1 + n // 3) for n in SHAPES[axes]))
            for _ in range(60):
                items, index = [], []
                for letter, length in zip(axes, data.shape):
                    start = draw.randrange(length)
                    count = draw.randint(1, length - start)
                    kind = draw.randrange(3)
                    index.append(slice(None) if kind == 0 else start if kind == 1 else slice(start, start + count))
                    items += [] if kind == 0 else [f"{letter}{start}" if kind == 1 else f"{letter}{start}+{count}"]
                spec = ",".join(items) or "all"
                with self.subTest(axes=axes, spec=spec):
                    self.same(self.at(f"{axes}@/win/{spec}.npy"), data[tuple(index)])
                    part = np.array(data[tuple(index)])
                    part[...] = noise(part.shape, "u8")
                    data[tuple(index)] = part
                    write_all(self.at(f"{axes}@/win/{spec}.raw"), part.tobytes())
            self.assertEqual(read_all(self.at(axes)), data.tobytes())

    def test_the_slowest_axis_grows_and_shrinks(self):
        make_image(self.at("growing"), (0, 2, 3, 20, 30), element="u16", axes="tczyx")
        data = noise((9, 2, 3, 20, 30))
        for step in data:
            with open(self.at("growing"), "ab") as file:
                file.write(step.tobytes())
        self.same(self.at("growing@/win/all.npy"), data)
        os.truncate(self.at("growing"), 4 * data[0].nbytes)
        self.same(self.at("growing@/win/t1+3,z2.npy"), data[1:4, :, 2])
        os.truncate(self.at("growing"), 6 * data[0].nbytes)
        self.same(self.at("growing@/win/all.npy"), np.concatenate([data[:4], 0 * data[:2]]))

    def test_chunks_of_zarr_are_extents_of_all_axes(self):
        data = self.stored("cells", "tczyx", "u16", "--extent", "1x1x2x16x16")
        group = json.loads(read_all(self.at("cells@/ome.zarr/zarr.json")))
        axes = group["attributes"]["ome"]["multiscales"][0]["axes"]
        self.assertEqual([axis["name"] for axis in axes], list("tczyx"))
        self.assertEqual([axis["type"] for axis in axes], ["time", "channel", "space", "space", "space"])
        array = ZarrArray(self.at("cells@/ome.zarr/0"))
        self.assertEqual(array.shape, data.shape)
        chunk = array.load((2, 1, 1, 0, 1))
        np.testing.assert_array_equal(chunk[..., :14], data[2:3, 1:2, 2:4, :16, 16:30])

    def test_axes_of_other_orders_are_plain_zarr(self):
        make_image(self.at("odd"), (3, 4, 5, 6), axes="zaby")
        group = json.loads(read_all(self.at("odd@/ome.zarr/zarr.json")))
        self.assertNotIn("ome", group["attributes"])

    def test_levels_halve_the_volume_and_never_the_slow_axes(self):
        data = self.stored("levels", "tczyx", "u8", "--extent", "2x1x2x16x16")
        for stored in False, True:
            if stored:
                harness.run(MDFS, "image", "levels", "--set", "1", self.at("levels"))
            found = np.load(self.at("levels@/win/l1.npy"))
            self.assertEqual(found.shape, (3, 2, 5, 10, 15))
            blocks = data.reshape(3, 2, 5, 10, 2, 15, 2).astype("f8").mean(axis=(4, 6))
            np.testing.assert_array_equal(found, np.rint(blocks).astype("u1"))
            self.same(self.at("levels@/win/l1,t1+2,c1,y3+4.npy"), found[1:3, 1, :, 3:7])

    def test_views_that_show_fewer_axes_are_not_there(self):
        self.stored("cells", "tczyx", "u8")
        for name in ("dz.dzi", "dz_files", "iiif", "plane"):
            with self.assertRaises(FileNotFoundError):
                os.stat(self.at(f"cells@/{name}"))
        for spec in ("all.png", "t1,z2.png", "t1,c1.pgm"):
            with self.assertRaises(OSError):
                read_all(self.at(f"cells@/win/{spec}"))

    def test_an_axis_c_and_interleaved_channels_exclude_each_other(self):
        refused = subprocess.run([MDFS, "image", "create", self.at("both"), "--shape", "2x3x8x8", "--axes", "tcyx",
                                  "--channels", "3"], capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("interleaved", refused.stderr)
        harness.run(MDFS, "image", "create", self.at("axis"), "--shape", "2x3x8x8", "--axes", "tcyx")
        self.assertEqual(np.load(self.at("axis@/win/c1.npy")).shape, (2, 8, 8))

    def test_a_range_of_display_is_measured_over_all_axes(self):
        for axes in "tzyx", "tczyx":
            data = self.stored(axes, axes)
            harness.run(MDFS, "image", "display", self.at(axes), "--range", "auto")
            said = json.loads(harness.run(MDFS, "image", "display", self.at(axes), "--json"))
            self.assertTrue(data.min() <= said["black"] < said["white"] <= data.max(), said)
            self.assertEqual(said["output_version"], 1)

    def test_a_range_of_display_that_is_none_is_refused(self):
        self.stored("cells", "tzyx")
        for value in (b"zzz", b"", b"1", b"5,5", b"0,inf", b"0 1"):
            self.assertErrno(errno.EINVAL, os.setxattr, self.at("cells"), "user.mdfs.display", value)
        os.setxattr(self.at("cells"), "user.mdfs.display", b"0,255")
        self.assertEqual(os.getxattr(self.at("cells"), "user.mdfs.display"), b"0,255")

    def test_the_layout_names_every_axis(self):
        self.stored("cells", "tczyx", "u8", "--extent", "1x1x2x16x16")
        layout = json.loads(harness.run(MDFS, "image", "layout", "--json", self.at("cells")))
        self.assertEqual(len(layout["extents"]), 3 * 2 * 3 * 2 * 2)
        self.assertEqual({len(extent["index"]) for extent in layout["extents"]}, {5})
        picture = os.path.join(self.volume.folder, "layout.svg")
        harness.run(MDFS, "image", "layout", "--svg", picture, self.at("cells"))
        self.assertIn(b"t=0, c=0, z=", read_all(picture))


if __name__ == "__main__":
    harness.main()
