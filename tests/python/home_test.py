"""Claims about what the Python package offers without other packages: the state of the volume, attributes, crops."""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import pickle
import subprocess
import sys
import unittest
from unittest import mock

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import harness  # noqa: E402

import mdfs  # noqa: E402
from mdfs import _chunks  # noqa: E402
from mdfs.torch import Crops  # noqa: E402


class VolumeTest(harness.MountTest):
    def test_the_status_is_that_of_the_command(self):
        mdfs.imwrite(self.at("image"), np.ones((300, 300), "u2"))
        for path in (self.volume.path, self.dir, self.at("image")):
            status = mdfs.volume(path).status()
            self.assertEqual((len(status["disks"]), status["errors"]), (self.disks, []))
            self.assertGreater(status["available_blocks"] * status["block_size"], 1 << 20)
        again = pickle.loads(pickle.dumps(mdfs.volume(self.dir)))
        self.assertEqual(again.status()["uuid"], status["uuid"])
        self.assertIn(self.dir, repr(again))

    def test_errors_of_the_status_name_what_is_wrong(self):
        with self.assertRaisesRegex(FileNotFoundError, "none"):
            mdfs.volume(self.at("none"))
        with self.assertRaisesRegex(OSError, "MDFS"):
            mdfs.volume("/").status()
        with mock.patch.dict(os.environ, {"MDFS": "/no/such/program"}):
            with self.assertRaisesRegex(FileNotFoundError, "name it in MDFS.*such/program"):
                mdfs.volume(self.dir).status()

    def test_the_status_of_a_volume_with_an_error_is_an_answer_too(self):
        volume = harness.Mounted(disks=3)
        try:
            volume.unmount()
            os.unlink(volume.disks[2])
            harness.run(harness.MDFS, "mount", "-o", "cache=64M,degraded", volume.disks[0], volume.path)
            self.assertTrue(mdfs.volume(volume.path).status()["errors"])
        finally:
            volume.remove()


class LargeTest(harness.MountTest):
    size, options = "128M", "cache=32M"

    def test_a_whole_image_larger_than_the_cache_is_decoded_once(self):
        array = np.random.default_rng(1).integers(0, 200, (64, 512, 1024)).astype("u2")
        image = mdfs.create(self.at("image"), array.shape, "u2", extent=(64, 64, 16))
        for top in range(0, 512, 64):
            image[:, top:top + 64] = array[:, top:top + 64]
        image.sync()
        for read in (lambda: np.asarray(image), lambda: mdfs.imread(self.at("image"))):
            before = mdfs.volume(self.dir).status()["cache"]["misses"]
            np.testing.assert_array_equal(read(), array)
            misses = mdfs.volume(self.dir).status()["cache"]["misses"] - before
            self.assertLess(misses, 4 * 8 * 64, "in the order of the samples there are some 37 for each extent")


class AttributesTest(harness.MountTest):
    def test_attributes_stay_with_an_image(self):
        image = mdfs.create(self.at("image"), (4, 4), "u1")
        self.assertEqual(dict(image.attrs), {})
        kept = {"stain": "h\u00e4matoxylin", "places": [1, 2.5, None], "camera": {"gain": 2}}
        image.attrs = kept
        self.assertEqual(dict(mdfs.open(self.at("image")).attrs), kept)
        image.attrs = {}
        self.assertEqual(dict(image.attrs), {})

    def test_attributes_that_cannot_be_stored_are_named(self):
        image = mdfs.create(self.at("image"), (4, 4), "u1")
        image.attrs = {"kept": 1}
        for error, words, attributes in ((TypeError, "'a'", {"a": object()}), (TypeError, "'a'", {"a": float("nan")}),
                                         (TypeError, "3", {3: 1}), (ValueError, "65536", {"a": "x" * 70000})):
            with self.assertRaisesRegex(error, words):
                image.attrs = attributes
        with self.assertRaises(TypeError):
            image.attrs["a"] = 1
        with self.assertRaisesRegex(ValueError, "r\\+"):
            mdfs.open(self.at("image")).attrs = {"a": 1}
        self.assertEqual(dict(image.attrs), {"kept": 1})


class ChunksTest(unittest.TestCase):
    def test_boxes_are_of_whole_steps_and_cover_all_once(self):
        rng = np.random.default_rng(1)
        for _ in range(300):
            rank = int(rng.integers(1, 5))
            shape, step = rng.integers(1, 40, rank).tolist(), rng.integers(1, 12, rank).tolist()
            most = int(rng.integers(1, 5000))
            box = _chunks.grown(shape, step, most)
            for length, side, whole in zip(shape, box, step):
                self.assertTrue(side == length or side % whole == 0, (shape, step, most, box))
            self.assertLessEqual(np.prod(box), max(most, np.prod(np.minimum(shape, step))))
            seen = np.zeros(shape, int)
            for number in range(_chunks.cells(shape, box)):
                seen[_chunks.cell(shape, box, number)] += 1
            self.assertTrue((seen == 1).all())


class CropsTest(harness.MountTest):
    def images(self):
        """Two images, and the arrays that they are."""
        arrays = [np.arange(20 * 30 * 40, dtype="u4").reshape(20, 30, 40),
                  np.arange(9 * 50 * 25, dtype="u4").reshape(9, 50, 25) + 100000]
        for number, array in enumerate(arrays):
            mdfs.imwrite(self.at(f"image{number}"), array, extent=(4, 16, 16))
        return [self.at("image0"), self.at("image1")], arrays

    def test_crops_are_windows_of_the_images_in_the_order_of_the_seed(self):
        paths, arrays = self.images()
        crops = Crops(paths, size=(4, 8, 16), n=100, seed=7)
        self.assertEqual(len(crops), 100)
        found = list(crops)
        self.assertEqual(len(found), 100)
        for crop, (image, place) in zip(found, crops.windows()):
            np.testing.assert_array_equal(crop, arrays[image][place])
        again = list(pickle.loads(pickle.dumps(Crops(paths, size=(4, 8, 16), n=100, seed=7, prefetch=3))))
        np.testing.assert_array_equal(found, again)
        self.assertFalse(np.array_equal(found, list(Crops(paths, (4, 8, 16), 100, seed=8))))
        crops.set_epoch(1)
        self.assertFalse(np.array_equal(found, list(crops)))

    def test_workers_share_the_crops_of_one_process(self):
        paths, _ = self.images()
        crops, parts = Crops(paths, (2, 8, 8), 50), []
        whole = list(crops)
        for number in range(3):
            with mock.patch("mdfs.torch.get_worker_info", lambda n=number: mock.Mock(id=n, num_workers=3)):
                parts.append(list(crops))
        np.testing.assert_array_equal(whole, [parts[place % 3][place // 3] for place in range(50)])

    def test_weights_choose_the_images_and_transforms_the_results(self):
        paths, _ = self.images()
        self.assertEqual({image for image, _ in Crops(paths, (2, 8, 8), 200, weights=[0, 3]).windows()}, {1})
        shares = [image for image, _ in Crops(paths, (2, 8, 8), 4000).windows()]
        places = [19 * 23 * 33, 8 * 43 * 18]
        self.assertAlmostEqual(np.mean(shares), places[1] / sum(places), delta=0.05)
        self.assertEqual(list(Crops(paths, (1, 1, 1), 3, transform=lambda crop: crop.shape)), [(1, 1, 1)] * 3)
        self.assertEqual(list(Crops(paths, (1, 1, 1), 0)), [])

    def test_crops_have_all_channels(self):
        array = np.arange(30 * 40 * 3, dtype="u2").reshape(30, 40, 3)
        mdfs.imwrite(self.at("colours"), array, "yxc")
        crops = Crops([mdfs.open(self.at("colours"))], (5, 6), 20)
        for crop, (_, place) in zip(crops, crops.windows()):
            np.testing.assert_array_equal(crop, array[place])

    def test_a_reader_that_stops_early_leaves_nothing_behind(self):
        crops = iter(Crops(self.images()[0], (2, 8, 8), 1000))
        next(crops)
        crops.close()

    def test_wrong_crops_are_refused_with_what_is_allowed(self):
        paths, _ = self.images()
        mdfs.imwrite(self.at("other"), np.zeros((20, 30, 40), "u1"))
        for error, words, arguments, options in (
                (ValueError, "3 lengths.*'zyx'", (paths, (4, 4), 5), {}),
                (ValueError, "10 along z, must be from 1 to 9.*image1", (paths, (10, 4, 4), 5), {}),
                (ValueError, "0 along y", (paths, (1, 0, 4), 5), {}), (ValueError, "empty", ([], (1, 1, 1), 5), {}),
                (TypeError, "sequence", (paths[0], (1, 1, 1), 5), {}), (TypeError, "", (paths, (1.5, 1, 1), 5), {}),
                (ValueError, "n is -1", (paths, (1, 1, 1), -1), {}),
                (ValueError, "prefetch is 0: must be 1", (paths, (1, 1, 1), 5), {"prefetch": 0}),
                (ValueError, "3 weights for 2", (paths, (1, 1, 1), 5), {"weights": [1, 2, 3]}),
                (ValueError, "not all zero", (paths, (1, 1, 1), 5), {"weights": [0, 0]}),
                (ValueError, "dtype uint8", ([paths[0], self.at("other")], (1, 1, 1), 5), {}),
                (FileNotFoundError, "none", ([self.at("none")], (1, 1, 1), 5), {})):
            with self.subTest(words=words), self.assertRaisesRegex(error, words):
                Crops(*arguments, **options)


class MissingPackagesTest(harness.MountTest):
    def test_what_needs_another_package_names_it(self):
        mdfs.imwrite(self.at("image"), np.zeros((4, 4), "u1"))
        with mock.patch.dict(sys.modules, {"dask": None, "dask.array": None}):
            with self.assertRaisesRegex(ImportError, r"mdfs\[dask\]"):
                mdfs.open(self.at("image")).to_dask()

    def test_the_package_itself_imports_numpy_alone(self):
        code = "import sys, mdfs; print(sorted({name.split('.')[0] for name in sys.modules} & " \
               "{'dask', 'xarray', 'torch', 'zarr', 'h5py', 'tifffile', 'tqdm', 'napari'}))"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                        check=True).stdout.strip(), "[]")


if __name__ == "__main__":
    harness.main()
