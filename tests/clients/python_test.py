"""The Python package beside dask, xarray and napari's plugin engine, on a mounted volume: all samples as in NumPy.

Runs in the environment of requirements.txt, with the package installed by pip.
"""
# SPDX-License-Identifier: Apache-2.0
import doctest
import gc
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import dask  # noqa: E402
import dask.array as da  # noqa: E402
import harness  # noqa: E402
import xarray as xr  # noqa: E402
from napari.components import ViewerModel  # noqa: E402
from npe2 import PluginManager, PluginManifest  # noqa: E402

import mdfs  # noqa: E402
import mdfs.napari  # noqa: E402
import mdfs.xarray  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def noise(shape, dtype="u2", seed=0):
    return np.random.default_rng(seed).integers(0, 250, shape).astype(dtype)


class DaskTest(harness.MountTest):
    disks, size, options = 4, "192M", "cache=16M"  # less than the images

    @classmethod
    def tearDownClass(cls):
        gc.collect()  # images in cycles of dask's objects
        super().tearDownClass()

    def test_chunks_are_whole_extents(self):
        array = noise((70, 300, 410))
        mdfs.imwrite(self.at("image"), array, extent=(8, 32, 64))
        with dask.config.set({"array.chunk-size": "1MiB"}):
            for lazy in (mdfs.open(self.at("image")).to_dask(), da.from_array(mdfs.open(self.at("image")))):
                self.assertGreater(lazy.npartitions, 4)
                for sides, whole in zip(lazy.chunks, (8, 32, 64)):
                    self.assertTrue(all(side % whole == 0 for side in sides[:-1]), lazy.chunks)
                np.testing.assert_array_equal(lazy.compute(), array)

    def test_computations_on_an_image_larger_than_the_cache_equal_numpy(self):
        array = noise((48, 1024, 1024))
        mdfs.imwrite(self.at("image"), array, codec="raw")
        self.assertGreater(array.nbytes, 64 << 20)
        lazy = mdfs.open(self.at("image")).to_dask(chunks=(16, 256, 512))
        for scheduler in ("threads", "synchronous"):
            with dask.config.set(scheduler=scheduler):
                total, most, part, profile = dask.compute(lazy.astype("f8").mean(axis=0)[5:50, ::9], lazy.max(axis=2),
                                                          lazy[[1, 40, 3], 7, ::-3], (lazy + 1).sum(axis=(1, 2)))
            np.testing.assert_array_equal(total, array.astype("f8").mean(axis=0)[5:50, ::9])
            np.testing.assert_array_equal(most, array.max(axis=2))
            np.testing.assert_array_equal(part, array[[1, 40, 3], 7, ::-3])
            np.testing.assert_array_equal(profile, (array + 1).sum(axis=(1, 2)))

    def test_threads_store_chunks_that_share_extents(self):
        array = noise((20, 300, 200, 3), "u1")
        image = mdfs.create(self.at("image"), array.shape, "u1", "zyxc", extent=(4, 64, 64))
        for lock in (False, True):
            image[...] = 0
            da.store(da.from_array(array, chunks=(3, 50, 70, 3)), image, lock=lock)
            np.testing.assert_array_equal(image[...], array)
        regions = [(slice(2, 12), slice(10, 60), slice(0, 70), slice(None))]
        da.store([da.from_array(array[:10, :50, :70], chunks=(7, 20, 30, 3))], [image], regions=regions, lock=False)
        np.testing.assert_array_equal(image[2:12, 10:60, :70], array[:10, :50, :70])
        with self.assertRaises((ValueError, TypeError)):
            da.store(da.zeros((2, 2), chunks=1), mdfs.open(self.at("image")))

    def test_processes_compute_and_store(self):
        array = noise((12, 100, 90))
        mdfs.imwrite(self.at("image"), array)
        target = mdfs.create(self.at("target"), array.shape, "u2", extent=(4, 32, 32))
        with dask.config.set(scheduler="processes", num_workers=2):
            lazy = mdfs.open(self.at("image")).to_dask(chunks=(5, 40, 90))
            np.testing.assert_array_equal((lazy * 2).compute(), array * 2)
            da.store(lazy, target, lock=False)
        np.testing.assert_array_equal(target[...], array)

    def test_the_name_of_an_array_follows_the_samples(self):
        mdfs.imwrite(self.at("image"), noise((30, 30)))
        image = mdfs.open(self.at("image"), "r+")
        before = image.to_dask().name
        self.assertEqual(image.to_dask().name, before)
        image[0, 0] = 255
        self.assertNotEqual(image.to_dask().name, before)


class XarrayTest(harness.MountTest):
    def setUp(self):
        super().setUp()
        self.array = noise((9, 40, 50, 3), "u1")
        mdfs.imwrite(self.at("image"), self.array, "zyxc", extent=(4, 16, 16),
                     spacing={"z": (2, "um"), "x": (0.25, "um")})
        with mdfs.open(self.at("image"), "r+") as image:
            image.attrs = {"stain": "DAPI"}

    def test_an_image_opens_with_its_coordinates(self):
        for options in ({"engine": "mdfs"}, {}):
            with xr.open_dataset(self.at("image"), **options) as data:
                image = data["image"]
                self.assertEqual((image.dims, image.shape, image.dtype), (("z", "y", "x", "c"), (9, 40, 50, 3), "u1"))
                self.assertEqual((sorted(data.coords), image.attrs["stain"]), (["x", "z"], "DAPI"))
                self.assertEqual(data.x.attrs["units"], "um")
                np.testing.assert_allclose(data.z, np.arange(9) * 2.0)
                np.testing.assert_array_equal(image.sel(z=6, x=slice(1, 5.1)), self.array[3, :, 4:21])
        with xr.open_dataarray(self.at("image"), engine="mdfs") as image:
            np.testing.assert_array_equal(image, self.array)
        self.assertEqual(list(xr.open_dataset(self.at("image"), engine="mdfs", name="s", drop_variables="x").coords),
                         ["z"])
        with self.assertRaises(FileNotFoundError):
            xr.open_dataset(self.at("none"), engine="mdfs")

    def test_what_is_selected_is_what_numpy_selects(self):
        rng = np.random.default_rng(3)
        with xr.open_dataarray(self.at("image"), engine="mdfs") as image:
            memory = xr.DataArray(self.array, dims=image.dims)
            for _ in range(200):
                wanted = {}
                for dim, length in zip(image.dims, image.shape):
                    kind = rng.integers(0, 5)
                    if kind == 0:
                        wanted[dim] = int(rng.integers(-length, length))
                    elif kind == 1:
                        wanted[dim] = slice(*sorted(rng.integers(0, length + 1, 2).tolist()), int(rng.integers(1, 4)))
                    elif kind == 2:
                        wanted[dim] = rng.integers(-length, length, 4).tolist()
                np.testing.assert_array_equal(image.isel(wanted), memory.isel(wanted), str(wanted))
            points = xr.DataArray([1, 5, 2], dims="p")
            np.testing.assert_array_equal(image.isel(z=points, x=points), memory.isel(z=points, x=points))

    def test_a_level_lies_amid_the_samples_that_it_is_made_of(self):
        with mdfs.open(self.at("image"), "r+") as image:
            image.set_levels(1, "nearest")
            for reduce, first in (("nearest", 0), ("mean", 0.375)):
                image.set_levels(1, reduce)
                with xr.open_dataarray(self.at("image"), engine="mdfs", level=2) as level:
                    self.assertEqual(level.shape, (9, 10, 13, 3))
                    np.testing.assert_allclose(level.x, first + np.arange(13))
                    np.testing.assert_allclose(level.z, np.arange(9) * 2.0)
                    np.testing.assert_array_equal(level, image.level(2)[...])
                    np.testing.assert_array_equal(image.level(2).to_dask()[3, 1:5].compute(), level[3, 1:5])

    def test_nothing_is_read_before_it_is_needed_and_chunks_are_whole_extents(self):
        with xr.open_dataset(self.at("image"), engine="mdfs", chunks="auto") as data:
            self.assertIsNotNone(data["image"].chunks)
            np.testing.assert_array_equal(data["image"].mean("z"), self.array.mean(0))
        with xr.open_dataset(self.at("image"), engine="mdfs", chunks={"z": 4, "y": 16}) as data:
            np.testing.assert_array_equal(data["image"].max(), self.array.max())

    def test_arrays_are_stored_with_their_coordinates(self):
        array = xr.DataArray(self.array.astype("f4"), dims=("time", "lat", "lon", "channel"),
                             coords={"time": ("time", np.arange(9) * 0.5 + 3, {"units": "seconds"}),
                                     "lat": ("lat", np.sort(np.random.default_rng(1).random(40))),
                                     "channel": ["red", "green", "blue"]},
                             attrs={"title": "a film", "level": np.float32(2)})
        for number, stored in enumerate((array, array.chunk({"time": 4, "lat": 30}),
                                         array.transpose("channel", "time", "lat", "lon"))):
            path = self.at(f"stored{number}")
            stored.mdfs.to_mdfs(path, extent=(2, 16, 16))
            self.assertEqual((mdfs.open(path).axes, mdfs.open(path).spacing["t"]), ("tyxc", (0.5, "s")))
            with xr.open_dataarray(path, engine="mdfs") as back:
                np.testing.assert_array_equal(back, array)
                np.testing.assert_allclose(back.t, array.time)
                np.testing.assert_array_equal(back.y, array.lat)
                self.assertEqual((back.c.values.tolist(), back.attrs),
                                 (["red", "green", "blue"], {"title": "a film", "level": 2.0}))

    def test_arrays_that_do_not_fit_are_refused_and_leave_nothing(self):
        for error, words, array, options in (
                (ValueError, "'place'.*axes=", xr.DataArray(np.zeros((2, 2)), dims=("place", "x")), {}),
                (ValueError, "2 letters", xr.DataArray(np.zeros((2, 2)), dims=("place", "x")), {"axes": "x"}),
                (ValueError, "'x' stands for more", xr.DataArray(np.zeros((2, 2)), dims=("lon", "x")), {}),
                (TypeError, "complex", xr.DataArray(np.zeros((2, 2), "c8"), dims=("y", "x")), {}),
                (TypeError, "'a'", xr.DataArray(np.zeros((2, 2)), dims=("y", "x"), attrs={"a": object()}), {}),
                (ValueError, "no image has shape", xr.DataArray(np.zeros((2,) * 6), dims=tuple("rstzyx")), {})):
            with self.subTest(words=words), self.assertRaisesRegex(error, words):
                array.mdfs.to_mdfs(self.at("refused"), **options)
            self.assertFalse(os.path.exists(self.at("refused")))
        with self.assertRaises(FileExistsError):
            xr.DataArray(np.zeros((2, 2)), dims=("y", "x")).mdfs.to_mdfs(self.at("image"))
        self.assertEqual(mdfs.open(self.at("image")).shape, (9, 40, 50, 3))


class GuideTest(harness.MountTest):
    def test_all_examples_of_the_guide_do_what_they_show(self):
        os.chdir(self.dir)
        self.addCleanup(os.chdir, "/")
        parts = re.split(r"^```python(?: extras)?$", (ROOT / "doc" / "PYTHON.md").read_text(), flags=re.MULTILINE)[1:]
        text = "\n".join(part.split("```")[0] for part in parts)
        test = doctest.DocTestParser().get_doctest(text, {}, "guide", None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test)
        self.assertEqual(runner.summarize().failed, 0)
        self.assertGreater(len(test.examples), 30)


class SourcesTest(unittest.TestCase):
    def test_the_package_has_types_throughout_and_its_form(self):
        folder = ROOT / "python"
        with tempfile.TemporaryDirectory() as cache:
            for words in (["mypy", "--cache-dir", cache, "mdfs"], ["ruff", "check", "--no-cache", "."]):
                done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class NapariTest(harness.MountTest):
    def test_the_plugin_engine_finds_a_valid_manifest(self):
        manifest = PluginManifest.from_distribution("mdfs")
        self.assertEqual([reader.command for reader in manifest.contributions.readers], ["mdfs.read"])
        manager = PluginManager()
        manager.register(manifest)
        self.assertEqual([reader.command for reader in manager.iter_compatible_readers("scan")], ["mdfs.read"])
        self.assertIs(manifest.contributions.commands[0].python_name is not None, True)
        for command in manifest.contributions.commands:
            self.assertTrue(callable(getattr(mdfs.napari, command.python_name.split(":")[1])))

    def layers(self, name, array, axes, **options):
        mdfs.imwrite(self.at(name), array, axes, **options)
        return mdfs.napari.get_reader(self.at(name))(self.at(name))

    def test_images_are_layers_with_scale_and_channels(self):
        (data, meta, kind), = self.layers("stack", noise((5, 20, 30)), "zyx", spacing={"z": (2, "um"), "x": (.5, "um")})
        self.assertEqual((kind, meta["name"], meta["scale"]), ("image", "stack", [2.0, 1.0, 0.5]))
        self.assertEqual((meta["axis_labels"], meta["units"]),
                         (["z", "y", "x"], ["micrometer", "pixel", "micrometer"]))
        np.testing.assert_array_equal(np.asarray(data[2]), noise((5, 20, 30))[2])
        (data, meta, _), = self.layers("colours", noise((20, 30, 3), "u1"), "yxc")
        self.assertEqual((meta["rgb"], "channel_axis" in meta), (True, False))
        array = noise((4, 20, 30, 2))
        for number, (data, meta, _) in enumerate(self.layers("stains", array, "zyxc")):
            self.assertEqual((meta["name"], meta["blending"]), (f"stains {number}", "additive"))
            for index in (2, np.s_[:, 3:9], np.s_[1, ..., 4], np.s_[:, [1, 5], 2], np.s_[..., ::-2], Ellipsis):
                np.testing.assert_array_equal(data[index], array[..., number][index])
            np.testing.assert_array_equal(np.asarray(data), array[..., number])

    def test_napari_shows_a_place_and_stores_layers(self):
        array = noise((5, 64, 80, 2))
        mdfs.imwrite(self.at("image"), array, "zyxc", spacing={"z": (2, "um"), "x": (.5, "um")})
        mdfs.imwrite(self.at("colours"), noise((64, 80, 3), "u1"), "yxc")
        PluginManager.instance().discover()
        model = ViewerModel()
        first, second = model.open(self.at("image"), plugin="mdfs")
        self.assertEqual((first.name, first.scale.tolist()), ("image 0", [2, 1, 0.5]))
        self.assertEqual(str(first.units[0]), "micrometer")
        model.dims.set_point(0, 3 * 2)
        np.testing.assert_array_equal(second._slice.image.view, array[3, ..., 1])
        second.save(self.at("stored"), plugin="mdfs")
        stored = mdfs.open(self.at("stored"))
        self.assertEqual((stored.axes, stored.spacing), ("zyx", {"z": (2.0, "um"), "x": (0.5, "um")}))
        np.testing.assert_array_equal(stored[...], array[..., 1])
        colours, = model.open(self.at("colours"), plugin="mdfs")
        self.assertTrue(colours.rgb)
        for layer in model.layers:  # napari keeps them
            getattr(layer.data, "image", layer.data).close()

    def test_stored_levels_are_scales_of_a_layer(self):
        array = noise((128, 200))
        for axes, samples, name in (("yx", array, "plain"), ("yxc", np.stack([array, array], -1), "stains")):
            layers = self.layers(name, samples, axes, levels=2)
            for number, (data, meta, _) in enumerate(layers):
                self.assertEqual([scale.shape for scale in data], [(128, 200), (64, 100), (32, 50)])
                self.assertIs(meta["multiscale"], True)
                level = mdfs.open(self.at(name)).level(2)[...]
                np.testing.assert_array_equal(np.asarray(data[2]), level if axes == "yx" else level[..., number])
        PluginManager.instance().discover()
        layer, = ViewerModel().open(self.at("plain"), plugin="mdfs")
        self.assertTrue(layer.multiscale)
        self.assertEqual(layer.downsample_factors.tolist(), [[1, 1], [2, 2], [4, 4]])
        for scale in layer.data:  # napari keeps them
            scale.close()

    def test_other_files_are_left_to_other_readers(self):
        harness.write_all(self.at("plain"), b"abc")
        for path in (self.at("plain"), self.at("none"), [], [self.at("plain")], self.dir):
            self.assertIsNone(mdfs.napari.get_reader(path))

    def test_layers_are_stored_as_images(self):
        array = noise((5, 20, 30))
        meta = {"name": "a", "scale": [2, 1, 0.5], "axis_labels": ("t", "y", "x"), "units": ("second", "pixel", "um")}
        for number, (data, more) in enumerate(((array, {}), (da.from_array(array, chunks=7), {}),
                                               ([array, array[:, ::2, ::2]], {"multiscale": True}))):
            path = self.at(f"stored{number}")
            self.assertEqual(mdfs.napari.write_image(path, data, {**meta, **more}), [path])
            image = mdfs.open(path)
            self.assertEqual((image.axes, image.spacing), ("tyx", {"t": (2.0, "s"), "x": (0.5, "um")}))
            np.testing.assert_array_equal(image[...], array)
        mdfs.napari.write_image(self.at("rgb"), array[..., None].repeat(3, -1).astype("u1"), {"rgb": True})
        self.assertEqual(mdfs.open(self.at("rgb")).axes, "zyxc")
        with self.assertRaises(FileExistsError):
            mdfs.napari.write_image(self.at("rgb"), array, {})
        with self.assertRaisesRegex(ValueError, "6 axes"):
            mdfs.napari.write_image(self.at("six"), np.zeros((2,) * 6), {})
        self.assertFalse(os.path.exists(self.at("six")))


if __name__ == "__main__":
    harness.main()
