"""Deep Zoom by virtual paths, against NumPy."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as xml

import harness
from harness import MDFS, make_image, read_all, run, write_all

try:
    import numpy as np
    from PIL import Image
except ImportError:
    print("SKIPPED: the tests of Deep Zoom need numpy and Pillow")
    raise SystemExit(harness.SKIP)

RNG = np.random.default_rng(11)
NAMESPACE = "{http://schemas.microsoft.com/deepzoom/2008}"


def pixels(path):
    with Image.open(path) as picture:
        return np.asarray(picture)


def mean(plane):
    """Of 2 x 2 samples, of fewer at the edge, halves to even."""
    rows, columns = (-(-n // 2) for n in plane.shape)
    total, count = np.zeros((rows, columns)), np.zeros((rows, columns))
    for y in range(2):
        for x in range(2):
            part = plane[y::2, x::2]
            total[:part.shape[0], :part.shape[1]] += part
            count[:part.shape[0], :part.shape[1]] += 1
    return np.rint(total / count).astype(plane.dtype)


class Zoom(harness.MountTest):
    def image(self, name, shape, element="u8", **options):
        make_image(self.at(name), shape, element=element, **options)
        data = RNG.integers(0, 256, size=int(np.prod(shape)) * np.dtype(harness.NUMPY[element]).itemsize,
                            dtype="u1").view(harness.NUMPY[element]).reshape(shape)
        write_all(self.at(name), data.tobytes())
        return data

    def tiles(self, directory, suffix):
        """The levels of a Deep Zoom, put together from their tiles: coarsest first."""
        size = xml.parse(f"{directory}/dz.dzi").getroot().find(f"{NAMESPACE}Size").attrib
        levels = sorted(os.listdir(f"{directory}/dz_files"), key=int)
        self.assertEqual(levels, [str(n) for n in range(len(levels))])
        whole = []
        for level in levels:
            rows = {}
            for name in os.listdir(f"{directory}/dz_files/{level}"):
                self.assertTrue(name.endswith(suffix), name)
                column, row = map(int, name[:-len(suffix)].split("_"))
                rows.setdefault(row, {})[column] = pixels(f"{directory}/dz_files/{level}/{name}")
            whole.append(np.concatenate([np.concatenate([parts[n] for n in sorted(parts)], axis=1)
                                         for _, parts in sorted(rows.items())], axis=0))
        self.assertEqual(whole[-1].shape[:2], (int(size["Height"]), int(size["Width"])))
        return whole

    def test_the_tiles_of_every_level_are_the_windows_of_that_level(self):
        data = self.image("deep", (300, 530), "u16")
        levels = self.tiles(self.at("deep@"), ".png")
        np.testing.assert_array_equal(levels[-1], data)
        for n, level in enumerate(reversed(levels)):
            np.testing.assert_array_equal(level, np.load(self.at(f"deep@/win/l{n}.npy")))
        self.assertEqual(levels[0].shape, (1, 1))

    def test_an_image_may_be_called_as_a_view_is(self):
        for name in ("dz", "ome", "iiif", "win", "frames", "info"):
            run(MDFS, "image", "create", "--shape", "300x400", "--type", "u8", self.at(name))
            view = self.at(name) + "@"
            for entry in os.listdir(view):
                os.stat(os.path.join(view, entry))
            for entry in ("dz.dzi", "dz_files", "ome.zarr", "iiif", f"{name}.npy", f"{name}.raw", f"{name}.tif"):
                self.assertTrue(os.path.exists(os.path.join(view, entry)), (name, entry))

    def test_coarse_levels_of_a_large_image_are_listed_if_they_can_be_read(self):
        path = self.at("large")
        harness.run(harness.MDFS, "image", "create", "--shape", "100000x100000", "--type", "u8", "--levels", "auto",
                    path)
        data = RNG.integers(0, 256, (64, 64), "u1")
        np.save(f"{path}@/win/y99936+64,x99936+64.npy", data)
        levels = sorted(os.listdir(f"{path}@/dz_files"), key=int)
        self.assertEqual(levels, [str(n) for n in range(18)])
        self.assertEqual(json.loads(read_all(f"{path}@/info.json"))["coarsest_level"], 17)
        for level in levels[:10]:
            side = -(-100000 >> 17 - int(level))
            self.assertEqual(pixels(f"{path}@/dz_files/{level}/0_0.jpg").shape[0], min(256, side))
        for reduced in range(1, 5):
            data = np.rint(data.reshape(len(data) // 2, 2, -1, 2).astype("f8").mean(axis=(1, 3))).astype("u1")
            corner = np.load(f"{path}@/win/l{reduced}.npy", mmap_mode="r") if reduced > 3 else np.load(
                f"{path}@/win/l{reduced},y{99936 >> reduced}+{64 >> reduced},x{99936 >> reduced}+{64 >> reduced}.npy")
            np.testing.assert_array_equal(corner[-len(data):, -len(data):], data)
        info = json.loads(read_all(f"{path}@/iiif/info.json"))
        self.assertEqual(info["sizes"][0], {"width": 1563, "height": 1563})
        self.assertEqual(pixels(f"{path}@/iiif/full/1563,1563/0/default.jpg").shape, (1563, 1563))

        harness.run(harness.MDFS, "image", "levels", "--set", "none", path)
        self.assertEqual(sorted(os.listdir(f"{path}@/dz_files"), key=int), [str(n) for n in range(11, 18)])
        self.assertFalse(os.path.exists(f"{path}@/dz_files/10"))
        self.assertEqual(json.loads(read_all(f"{path}@/info.json"))["coarsest_level"], 6)
        self.assertEqual(json.loads(read_all(f"{path}@/iiif/info.json"))["sizes"], [])
        self.assertFalse(os.path.exists(f"{path}@/iiif/full/782,782"))
        self.assertEqual(pixels(f"{path}@/dz_files/11/0_0.jpg").shape, (256, 256))

    def test_tiles_follow_the_image_and_its_permissions(self):
        data = self.image("scan", (70, 90))
        before = pixels(self.at("scan@/dz_files/7/0_0.jpg"))
        write_all(self.at("scan"), bytes(data.size))
        after = pixels(self.at("scan@/dz_files/7/0_0.jpg"))
        self.assertGreater(before.max(), 100)
        self.assertEqual(after.max(), 0)
        os.truncate(self.at("scan"), 40 * 90)
        self.assertEqual(pixels(self.at("scan@/dz_files/7/0_0.jpg")).shape, (40, 90))
        os.chmod(self.at("scan"), 0o600)
        for path in ("dz.dzi", "dz_files/7/0_0.jpg"):
            self.assertEqual(os.stat(self.at(f"scan@/{path}")).st_mode & 0o777, 0o400)
            with self.assertRaises(PermissionError):
                open(self.at(f"scan@/{path}"), "wb")

    def test_planes_of_a_volume_are_pictures(self):
        data = self.image("stack", (3, 200, 270), "u16")
        self.assertEqual(os.listdir(self.at("stack@/plane")), ["z", "y", "x"])
        self.assertEqual(os.listdir(self.at("stack@/plane/z")), ["0", "1", "2"])
        self.assertNotIn("dz.dzi", os.listdir(self.at("stack@")))
        for plane in range(3):
            np.testing.assert_array_equal(self.tiles(self.at(f"stack@/plane/z/{plane}"), ".png")[-1], data[plane])
        self.assertEqual(sorted(os.listdir(self.at("stack@/plane/z/2"))), ["dz.dzi", "dz_files", "iiif", "win"])
        for name in ("plane/w", "plane/z/3", "plane/y/200", "plane/z/0/win/z1.npy", "dz.dzi",
                     "plane/z/0/dz_files/10"):
            self.assertFalse(os.path.exists(self.at(f"stack@/{name}")), name)

    def test_planes_across_a_volume_are_pictures_with_levels_of_their_own(self):
        data = self.image("stack", (70, 90, 300), "u16", extent=(16, 16, 32))
        for axis, letter in enumerate("zyx"):
            self.assertEqual(len(os.listdir(self.at(f"stack@/plane/{letter}"))), data.shape[axis])
            plane = data.take(33, axis)
            folder = self.at(f"stack@/plane/{letter}/33")
            levels = self.tiles(folder, ".png")
            for n, level in enumerate(reversed(levels)):
                np.testing.assert_array_equal(level, plane)
                np.testing.assert_array_equal(np.load(f"{folder}/win/l{n}.npy"), plane)
                plane = mean(plane)
            info = json.loads(read_all(f"{folder}/iiif/info.json"))
            self.assertEqual(info["id"], f"/stack@/plane/{letter}/33/iiif")
            width, height = -(-levels[-1].shape[1] // 2), -(-levels[-1].shape[0] // 2)
            np.testing.assert_array_equal(pixels(f"{folder}/iiif/full/{width},{height}/0/default.png"), levels[-2])

    def test_a_window_of_a_plane_is_the_window_of_the_volume(self):
        data = self.image("stack", (7, 9, 30), "u16")
        for plane, window in (("z/3", "z3"), ("y/3", "y3"), ("x/3", "x3")):
            folder = self.at(f"stack@/plane/{plane}/win")
            self.assertEqual(os.stat(f"{folder}/all.npy").st_ino, os.stat(self.at(f"stack@/win/{window}.npy")).st_ino)
        np.save(self.at("stack@/plane/y/3/win/z2+3,x4.npy"), np.array([1, 2, 3], "u2"))
        data[2:5, 3, 4] = 1, 2, 3
        np.testing.assert_array_equal(np.load(self.at("stack@/win/all.npy")), data)
        np.testing.assert_array_equal(np.load(self.at("stack@/plane/x/4/win/z-1+3,y8+3,clip.npy")),
                                      np.pad(data[:2, 8:, 4], ((1, 0), (0, 2))))
        before = np.load(self.at("stack@/plane/y/3/win/l1.npy"))
        np.testing.assert_array_equal(before, mean(data[:, 3]))
        write_all(self.at("stack"), bytes(data.nbytes))
        self.assertEqual(np.load(self.at("stack@/plane/y/3/win/l1.npy")).max(), 0)
        os.truncate(self.at("stack"), 2 * 9 * 30 * 2)
        self.assertEqual(np.load(self.at("stack@/plane/y/3/win/all.npy")).shape, (2, 30))
        self.assertFalse(os.path.exists(self.at("stack@/plane/z/3")))

    def test_planes_of_other_axes_exist_where_a_plane_of_space_is_left(self):
        self.image("film", (3, 20, 30), axes="tyx")
        self.image("rows", (20, 3, 30), axes="ywx")
        self.image("deep", (2, 3, 20, 30), axes="tzyx")
        self.assertEqual(os.listdir(self.at("film@/plane")), ["t"])
        self.assertIn("w", os.listdir(self.at("rows@/plane")))
        self.assertFalse(os.path.exists(self.at("film@/plane/y")))
        self.assertFalse(os.path.exists(self.at("deep@/plane")))

    def test_pictures_of_8_bits_show_samples_through_the_range_of_the_image(self):
        data = self.image("deep", (60, 80), "u16")
        path = self.at("deep")
        self.assertFalse(os.path.exists(f"{path}@/win/all.jpg"))
        said = harness.run(harness.MDFS, "image", "display", path, "--range", "1000,50000")
        self.assertEqual(said, f"{path}: 1000 is black, 50000 is white\n")
        expected = np.clip((data.astype("f8") - 1000) / 49000, 0, 1) * 255
        error = np.abs(pixels(f"{path}@/win/all.jpg").astype("f8") - expected)
        self.assertLess(error.mean(), 8, "JPEG is not exact")
        np.testing.assert_array_equal(pixels(f"{path}@/win/all.png"), data)
        self.assertEqual(os.listdir(f"{path}@/dz_files/7"), ["0_0.jpg"])
        real = self.image("real", (30, 40), "f32")
        real = RNG.random(real.shape, dtype="f4")
        write_all(self.at("real"), real.tobytes())
        harness.run(harness.MDFS, "image", "display", self.at("real"), "--range", "0,1")
        np.testing.assert_array_equal(pixels(self.at("real@/win/all.png")),
                                      np.floor(real.astype("f8") * 255 + .5).astype("u1"))
        harness.run(harness.MDFS, "image", "display", path, "--range", "none")
        self.assertFalse(os.path.exists(f"{path}@/win/all.jpg"))

    def test_the_automatic_range_is_that_of_most_samples(self):
        make_image(self.at("scan"), (300, 400), element="u16")
        data = RNG.integers(100, 4000, (300, 400), "u2")
        data[0, 0], data[0, 1] = 0, 65535
        write_all(self.at("scan"), data.tobytes())
        harness.run(harness.MDFS, "image", "display", self.at("scan"), "--range", "auto")
        said = json.loads(harness.run(harness.MDFS, "image", "display", self.at("scan"), "--json"))
        self.assertTrue(100 <= said["black"] <= 110 and 3990 <= said["white"] <= 4000, said)

    def test_a_wrong_range_is_an_error_that_says_what_is_right(self):
        self.image("scan", (30, 40), "u16")
        for range_, path, status in (("", "scan", 2), ("5", "scan", 2), ("1,1", "scan", 2), ("nan,2", "scan", 2),
                                     ("1,2", "missing", 1)):
            done = subprocess.run([harness.MDFS, "image", "display", self.at(path), "--range", range_],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("two finite numbers" if status == 2 else "missing", done.stderr)
        write_all(self.at("plain"), b"x")
        self.assertNotEqual(subprocess.run([harness.MDFS, "image", "display", self.at("plain"), "--range", "1,2"],
                                           capture_output=True, check=False).returncode, 0)
        self.assertEqual(os.listxattr(self.at("plain")), [])

    def test_a_copy_is_a_deep_zoom_of_ordinary_files(self):
        self.image("scan", (300, 300))
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["cp", "-r", self.at("scan@/dz.dzi"), self.at("scan@/dz_files"), directory], check=True)
            for copied, own in zip(self.tiles(directory, ".jpg"), self.tiles(self.at("scan@"), ".jpg")):
                np.testing.assert_array_equal(copied, own)
            shutil.rmtree(f"{directory}/dz_files")

    def test_iiif_requests_are_windows_of_levels(self):
        data = self.image("deep", (300, 530), "u16")
        info = json.loads(read_all(self.at("deep@/iiif/info.json")))
        self.assertEqual((info["id"], info["width"], info["height"]), ("/deep@/iiif", 530, 300))
        self.assertEqual(os.listdir(self.at("deep@/iiif")), ["info.json"])
        np.testing.assert_array_equal(pixels(self.at("deep@/iiif/10,20,30,40/max/0/default.png")), data[20:60, 10:40])
        for size in info["sizes"]:
            picture = pixels(self.at(f"deep@/iiif/full/{size['width']},{size['height']}/0/default.png"))
            self.assertEqual(picture.shape, (size["height"], size["width"]))
        np.testing.assert_array_equal(picture, np.load(self.at(f"deep@/win/l{len(info['sizes']) - 1}.npy")))
        for path in ("1,0,256,256/128,128", "full/100,100", "full/max/90"):
            self.assertFalse(os.path.exists(self.at(f"deep@/iiif/{path}")))
        self.image("stack", (3, 40, 50))
        self.assertFalse(os.path.exists(self.at("stack@/iiif")))
        info = json.loads(read_all(self.at("stack@/plane/z/2/iiif/info.json")))
        self.assertEqual(info["id"], "/stack@/plane/z/2/iiif")
        self.assertEqual(pixels(self.at("stack@/plane/z/2/iiif/full/25,20/0/default.jpg")).shape, (20, 25))

    def test_images_that_are_no_pictures_have_no_deep_zoom(self):
        for name, shape, element in (("line", (300,), "u8"), ("real", (30, 40), "f32")):
            self.image(name, shape, element)
            self.assertFalse({"dz.dzi", "dz_files", "iiif", "plane"} & set(os.listdir(self.at(f"{name}@"))))
            for path in ("dz.dzi", "dz_files", "iiif", "plane"):
                self.assertFalse(os.path.lexists(self.at(f"{name}@/{path}")))

    def test_every_listed_name_of_a_long_image_can_be_opened(self):
        for length in range(249, 256):
            self.image("n" * length, (30, 40))
            view = os.path.join(self.volume.path, ".mdfs/img", os.path.relpath(self.at("n" * length), self.volume.path))
            for name in os.listdir(view):
                self.assertTrue(os.path.exists(f"{view}/{name}"), name)

    def test_tiles_that_do_not_exist_are_not_found(self):
        self.image("scan", (300, 300))
        for path in ("8/0_0.png", "9/2_0.jpg", "9/00_0.jpg", "10", "09", "9/0_0.jpg/x", "9/.jpg"):
            with self.assertRaises((FileNotFoundError, NotADirectoryError), msg=path):
                os.stat(self.at(f"scan@/dz_files/{path}"))


if __name__ == "__main__":
    harness.main()
