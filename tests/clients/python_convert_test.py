"""Conversions into images and back on real files of the field's libraries, and on damaged copies of them.

Runs in the environment of requirements.txt, with the package installed by pip.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import glob
import io
import os
import pathlib
import signal
import subprocess
import sys
import termios
import unittest
import unittest.mock

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import h5py  # noqa: E402
import harness  # noqa: E402
import nibabel  # noqa: E402
import nrrd  # noqa: E402
import pydicom.data  # noqa: E402
import SimpleITK  # noqa: E402
import tifffile  # noqa: E402
import zarr  # noqa: E402

import mdfs  # noqa: E402
from mdfs._convert import command, copying  # noqa: E402

UM = "\u00b5m"


def noise(shape, dtype="u2", seed=0):
    kind = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if kind.kind == "f":
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(0, 250 if kind != np.dtype("i1") else 120, shape).astype(kind)


class ConvertTest(harness.MountTest):
    disks, size = 4, "192M"

    def setUp(self):
        super().setUp()
        self.outside = os.path.join(self.volume.folder, self.id().rsplit(".", 1)[-1])
        os.mkdir(self.outside)
        self.count = 0

    def out(self, name):
        return os.path.join(self.outside, name)

    def converted(self, source, **options):
        self.count += 1
        target = self.at(f"converted{self.count}")
        mdfs.convert(source, target, **options)
        return mdfs.open(target)

    def refuses(self, error, words, source, **options):
        """The conversion fails with these words, and leaves nothing."""
        before = sorted(os.listdir(self.dir))
        with self.assertRaisesRegex(error, words):
            mdfs.convert(source, options.pop("target", self.at("refused")), **options)
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def damaged(self, source, refused, cuts=(0.3, 0.9)):
        """Copies of a file that were cut short are refused whole."""
        data = harness.read_all(source)
        for part in cuts:
            path = self.out("damaged-" + os.path.basename(source))
            harness.write_all(path, data[:int(len(data) * part)])
            with self.subTest(source=source, part=part):
                self.refuses(refused, "damaged-", path)


class TiffTest(ConvertTest):
    def test_ome_tiff_keeps_axes_spacing_and_channels(self):
        array = noise((2, 3, 5, 70, 90))
        path = self.out("a.ome.tif")
        tifffile.imwrite(path, array, ome=True, compression="zlib", tile=(32, 48), metadata={
            "axes": "TCZYX", "PhysicalSizeX": 0.25, "PhysicalSizeXUnit": UM, "PhysicalSizeY": 0.5,
            "PhysicalSizeYUnit": UM, "PhysicalSizeZ": 2, "PhysicalSizeZUnit": UM, "TimeIncrement": 3,
            "TimeIncrementUnit": "s", "Channel": {"Name": ["DAPI", "GFP", "RFP"]}})
        image = self.converted(path)
        np.testing.assert_array_equal(image[...], np.moveaxis(array, 1, -1))
        self.assertEqual((image.axes, image.spacing["t"], image.spacing["z"]), ("tzyxc", (3.0, "s"), (2.0, "um")))
        image = self.converted(path, select="t=1")
        np.testing.assert_array_equal(image[...], np.moveaxis(array[1], 0, -1))
        self.assertEqual((image.axes, image.spacing["x"], image.spacing["z"]), ("zyxc", (0.25, "um"), (2.0, "um")))
        self.assertEqual(image.attrs["channel_names"], ["DAPI", "GFP", "RFP"])
        self.assertIn("ome_xml", image.attrs)
        image = self.converted(path, select={"c": slice(1, 3), "z": 4})
        np.testing.assert_array_equal(image[...], np.moveaxis(array[:, 1:, 4], 1, -1))
        self.assertEqual((image.axes, image.spacing["t"]), ("tyxc", (3.0, "s")))
        self.assertEqual(image.attrs["channel_names"], ["GFP", "RFP"])
        self.damaged(path, ValueError)

    def test_stacks_of_imagej_and_plain_pages(self):
        array = noise((4, 60, 50))
        tifffile.imwrite(self.out("ij.tif"), array, imagej=True, resolution=(4, 2),
                         metadata={"axes": "ZYX", "spacing": 1.5, "unit": "um"})
        image = self.converted(self.out("ij.tif"))
        np.testing.assert_array_equal(image[...], array)
        self.assertEqual((image.axes, image.spacing), ("zyx", {"z": (1.5, "um"), "y": (0.5, "um"), "x": (0.25, "um")}))
        tifffile.imwrite(self.out("pages.tif"), array.astype(">f4"), photometric="minisblack", bigtiff=True,
                         rowsperstrip=7, compression="deflate", byteorder=">", metadata=None)
        image = self.converted(self.out("pages.tif"))
        np.testing.assert_array_equal(image[...], array.astype("f4"))
        self.assertEqual(image.dtype, np.dtype("f4"))
        tifffile.imwrite(self.out("one.tif"), array, photometric="minisblack", truncate=True)
        np.testing.assert_array_equal(self.converted(self.out("one.tif"))[...], array)
        for name in ("ij.tif", "pages.tif", "one.tif"):
            self.damaged(self.out(name), ValueError)

    def test_colours_planes_and_series(self):
        colours = noise((40, 30, 3), "u1")
        for name, array, options in (("chunky.tif", colours, {"planarconfig": "contig"}),
                                     ("planar.tif", np.moveaxis(colours, -1, 0), {"planarconfig": "separate"})):
            tifffile.imwrite(self.out(name), array, photometric="rgb", **options)
            np.testing.assert_array_equal(self.converted(self.out(name))[...], colours)
        with tifffile.TiffWriter(self.out("series.tif")) as writer:
            writer.write(noise((20, 30)), photometric="minisblack")
            writer.write(noise((5, 7), "f4"), photometric="minisblack")
        self.refuses(ValueError, "2 series.*dataset", self.out("series.tif"))
        np.testing.assert_array_equal(self.converted(self.out("series.tif"), dataset="1")[...], noise((5, 7), "f4"))
        self.refuses(IndexError, "series 0 to 1", self.out("series.tif"), dataset="2")

    def test_a_file_of_which_tifffile_warns_is_converted_if_asked(self):
        array = noise((6, 50, 40))
        tifffile.imwrite(self.out("a.tif"), array, photometric="minisblack", metadata=None, bigtiff=True)
        with tifffile.TiffFile(self.out("a.tif")) as file:
            last = file.pages[-1]
            end = last.offset + 8 + 20 * len(last.tags)
        data = bytearray(harness.read_all(self.out("a.tif")))
        data[end:end + 8] = (len(data) + 1000).to_bytes(8, "little")  # the place of another page
        harness.write_all(self.out("b.tif"), data)
        self.refuses(ValueError, "b.tif: damaged.*--allow-warnings", self.out("b.tif"))
        np.testing.assert_array_equal(self.converted(self.out("b.tif"), allow_warnings=True)[...], array)

    def test_a_missing_page_and_a_damaged_strip_are_refused(self):
        path = self.out("a.tif")
        tifffile.imwrite(path, noise((6, 50, 40)), photometric="minisblack", compression="zlib", metadata=None)
        with tifffile.TiffFile(path) as file:
            offset = file.pages[3].dataoffsets[0]
        data = bytearray(harness.read_all(path))
        data[offset + 20:offset + 400] = bytes(380)
        harness.write_all(self.out("b.tif"), data)
        self.refuses(ValueError, "b.tif: damaged", self.out("b.tif"))


class ChunkedTest(ConvertTest):
    def test_zarr_of_both_versions(self):
        array = noise((7, 60, 50), "i2")
        for version in (2, 3):
            path = self.out(f"v{version}.zarr")
            zarr.create_array(path, data=array, chunks=(2, 16, 32), zarr_format=version)
            np.testing.assert_array_equal(self.converted(path)[...], array)
            group = zarr.open_group(self.out(f"g{version}.zarr"), mode="w", zarr_format=version)
            group.create_array("a/b", data=array, chunks=(2, 16, 32))
            np.testing.assert_array_equal(self.converted(self.out(f"g{version}.zarr"))[...], array)
            group.create_array("c", data=noise((3, 4), "f8"), chunks=(2, 2))
            self.refuses(ValueError, "2 arrays.*a/b \\(7x60x50\\)", self.out(f"g{version}.zarr"))
            self.refuses(ValueError, "dataset 'd'.*a/b", self.out(f"g{version}.zarr"), dataset="d")
            np.testing.assert_array_equal(self.converted(self.out(f"g{version}.zarr"), dataset="c")[...],
                                          noise((3, 4), "f8"))
        chunk = self.out("v3.zarr/c/1/0/0")
        harness.write_all(chunk, harness.read_all(chunk)[:30])
        self.refuses(ValueError, "v3.zarr: damaged, samples at z=", self.out("v3.zarr"))

    def test_ome_zarr_has_axes_and_units(self):
        array = noise((2, 5, 30, 40))
        group = zarr.open_group(self.out("a.ome.zarr"), mode="w", zarr_format=3)
        group.create_array("s0", data=array, chunks=(1, 2, 16, 16))
        group.create_array("s1", data=array[:, :, ::2, ::2], chunks=(1, 2, 16, 16))
        scales = [{"path": f"s{k}", "coordinateTransformations": [{"type": "scale", "scale": [1, 2, .5 * 2**k, .5]}]}
                  for k in range(2)]
        axes = [{"name": "c", "type": "channel"}] + [{"name": a, "type": "space", "unit": "micrometer"} for a in "zyx"]
        group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": scales}],
                              "omero": {"channels": [{"label": "a"}, {"label": "b"}]}}
        image = self.converted(self.out("a.ome.zarr"))
        np.testing.assert_array_equal(image[...], np.moveaxis(array, 0, -1))
        self.assertEqual((image.axes, image.spacing), ("zyxc", {"z": (2.0, "um"), "y": (0.5, "um"), "x": (0.5, "um")}))
        self.assertEqual(image.attrs["channel_names"], ["a", "b"])

    def test_hdf5(self):
        array = noise((9, 40, 50), "f4")
        with h5py.File(self.out("a.h5"), "w") as file:
            data = file.create_dataset("volumes/raw", data=array, chunks=(2, 16, 16), compression="gzip")
            data.attrs["element_size_um"] = [2.0, 0.5, 0.25]
        image = self.converted(self.out("a.h5"))
        np.testing.assert_array_equal(image[...], array)
        self.assertEqual(image.spacing["x"], (0.25, "um"))
        self.damaged(self.out("a.h5"), ValueError)
        with h5py.File(self.out("a.h5"), "a") as file:
            file.create_dataset("mask", data=array > 0)
        self.refuses(ValueError, "mask \\(9x40x50\\), volumes/raw", self.out("a.h5"))
        np.testing.assert_array_equal(self.converted(self.out("a.h5"), dataset="mask")[...], array > 0)


class MedicalTest(ConvertTest):
    def test_nifti_that_nibabel_ships(self):
        folder = os.path.join(os.path.dirname(nibabel.__file__), "tests", "data")
        done = 0
        for path in sorted(glob.glob(f"{folder}/*.nii*")):
            stored = nibabel.load(path)
            if ".dconn" in path or len(stored.shape) > 4 or stored.get_data_dtype().kind not in "iuf":
                continue
            whole = np.asarray(stored.dataobj.get_unscaled()).T
            options = {"select": "t=0"} if whole.ndim == 4 and whole.shape[0] > 1 else {}
            with self.subTest(path=os.path.basename(path)):
                image = self.converted(path, **options)
                np.testing.assert_array_equal(image[...].reshape(whole[0].shape if options else whole.shape),
                                              whole[0] if options else whole)
                self.assertIn("affine", image.attrs["nifti"])
                self.damaged(path, ValueError, cuts=(0.5, 0.95))
                done += 1
        self.assertGreater(done, 2)

    def test_nifti_keeps_stored_samples_spacing_and_scale(self):
        array = noise((50, 40, 9), "i2")
        for name in ("a.nii", "a.nii.gz"):
            stored = nibabel.Nifti1Image(array, np.diag([0.5, 1, 2, 1]))
            stored.header.set_xyzt_units("mm", "sec")
            stored.header.set_slope_inter(2, 1)
            nibabel.save(stored, self.out(name))
            image = self.converted(self.out(name))
            np.testing.assert_array_equal(image[...], nibabel.load(self.out(name)).dataobj.get_unscaled().T)
            self.assertEqual((image.axes, image.spacing["x"]), ("zyx", (0.5, "mm")))
            self.damaged(self.out(name), ValueError)
        data = bytearray(harness.read_all(self.out("a.nii.gz")))
        data[-6] ^= 1  # in the checksum
        harness.write_all(self.out("b.nii.gz"), data)
        self.refuses(ValueError, "b.nii.gz: damaged", self.out("b.nii.gz"))

    def test_nrrd_and_metaimage(self):
        array = noise((9, 40, 50), "i2")
        for encoding in ("raw", "gzip"):
            for name in (f"{encoding}.nrrd", f"{encoding}.nhdr"):
                nrrd.write(self.out(name), array, {"encoding": encoding, "spacings": [2, 1, 0.5],
                                                   "units": ["mm", "mm", "mm"]}, index_order="C")
                image = self.converted(self.out(name))
                np.testing.assert_array_equal(image[...], nrrd.read(self.out(name), index_order="C")[0])
                self.assertEqual(len(image.spacing), 3)
                if name.endswith("nrrd"):
                    self.damaged(self.out(name), ValueError)
        colours = noise((20, 30, 3), "u1")
        nrrd.write(self.out("colours.nrrd"), colours, {"kinds": ["RGB-color", "domain", "domain"]}, index_order="C")
        image = self.converted(self.out("colours.nrrd"))
        self.assertEqual(image.axes, "yxc")
        np.testing.assert_array_equal(image[...], colours)
        stored = SimpleITK.GetImageFromArray(array)
        stored.SetSpacing((0.25, 0.5, 2))
        for name, compressed in (("a.mha", False), ("a.mhd", False), ("b.mha", True), ("b.mhd", True)):
            SimpleITK.WriteImage(stored, self.out(name), compressed)
            image = self.converted(self.out(name))
            np.testing.assert_array_equal(image[...], array)
            self.assertEqual(image.spacing, {"z": (2.0, "mm"), "y": (0.5, "mm"), "x": (0.25, "mm")})
            if name.endswith("mha"):
                self.damaged(self.out(name), ValueError, cuts=(0.1, 0.5, 0.95))
        data = bytearray(harness.read_all(self.out("b.mha")))
        for place in (len(data) // 2, len(data) - 2):
            harness.write_all(self.out("c.mha"), data[:place] + bytes([data[place] ^ 4]) + data[place + 1:])
            self.refuses(ValueError, "c.mha: damaged", self.out("c.mha"))
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(colours, isVector=True), self.out("colours.mha"))
        self.assertEqual(self.converted(self.out("colours.mha")).axes, "yxc")
        np.testing.assert_array_equal(self.converted(self.out("colours.mha"))[...], colours)

    def test_dicom_files_that_pydicom_ships(self):
        for name in ("CT_small.dcm", "MR_small.dcm", "examples_rgb_color.dcm"):
            path = pydicom.data.get_testdata_file(name)
            if path is None:
                continue
            with self.subTest(name=name):
                image = self.converted(path)
                np.testing.assert_array_equal(image[...], pydicom.dcmread(path).pixel_array)
                self.assertIn("Modality", image.attrs["dicom"])
                self.damaged(path, ValueError, cuts=(0.5, 0.9))

    def series(self, folder, places, uid="1.2.3"):
        base = pydicom.dcmread(pydicom.data.get_testdata_file("CT_small.dcm"))
        os.makedirs(folder, exist_ok=True)
        wanted = {}
        for number, place in enumerate(places):
            base.SeriesInstanceUID, base.InstanceNumber = uid, number + 1
            base.ImagePositionPatient, base.ImageOrientationPatient = [0, 0, place], [1, 0, 0, 0, 1, 0]
            samples = noise((128, 128), "i2", number)
            base.PixelData = samples.tobytes()
            wanted[place] = samples
            base.save_as(f"{folder}/{(number * 7) % 101:03}.dcm")
        return np.stack([wanted[place] for place in sorted(wanted)])

    def test_a_series_of_dicom_is_sorted_by_place_and_complete(self):
        array = self.series(self.out("series"), [10 - 2.5 * n for n in range(8)])
        image = self.converted(self.out("series"))
        np.testing.assert_array_equal(image[...], array)
        self.assertEqual((image.axes, image.spacing["z"]), ("zyx", (2.5, "mm")))
        self.series(self.out("gap"), [0, 1, 2, 4, 5])
        self.refuses(ValueError, "this slice is 2 behind.*missing", self.out("gap"))
        self.series(self.out("series"), [0, 1], "9.9")
        self.refuses(ValueError, "2 series.*9.9", self.out("series"))
        os.mkdir(self.out("empty"))
        self.refuses(ValueError, "empty: a folder without", self.out("empty"))


class BackTest(ConvertTest):
    def test_images_go_out_and_come_back_the_same(self):
        spacing = {"z": (2, "um"), "y": (0.5, "um"), "x": (0.25, "um")}
        for number, (shape, axes, kind, attrs) in enumerate((
                ((300, 420), "yx", "u1", {}), ((6, 70, 90), "zyx", "u2", {}), ((5, 270, 300, 3), "zyxc", "u1", {}),
                ((4, 70, 90, 2), "zyxc", "f4", {"channel_names": ["a", "b"]}), ((5, 40, 50), "tyx", "i2", {}),
                ((3, 20, 20), "zyx", "i8", {}), ((3, 20, 20), "zyx", "f2", {}))):
            array, path = noise(shape, kind, number), self.at(f"image{number}")
            mdfs.imwrite(path, array, axes, spacing={a: found for a, found in spacing.items() if a in axes})
            with mdfs.open(path, "r+") as image:
                image.attrs = attrs
                wanted = image.spacing
            for suffix in (".ome.zarr", ".ome.tif", ".h5"):
                target = self.out(f"{number}{suffix}")
                with self.subTest(axes=axes, kind=kind, suffix=suffix):
                    if suffix == ".ome.tif" and kind in ("i8", "f2"):
                        with self.assertRaisesRegex(ValueError, "OME-TIFF has no samples of"):
                            mdfs.convert(path, target)
                        continue
                    mdfs.convert(path, target)
                    back = self.converted(target)
                    np.testing.assert_array_equal(back[...], array)
                    self.assertEqual((back.axes, back.dtype, back.spacing), (axes, array.dtype, wanted))
                    self.assertEqual(back.attrs.get("channel_names"), attrs.get("channel_names"))
                    self.assertEqual([name for name in os.listdir(self.outside) if name.startswith(".")], [])
        with tifffile.TiffFile(self.out("1.ome.tif")) as file:
            self.assertEqual(file.series[0].axes, "ZYX")
        np.testing.assert_array_equal(zarr.open_group(self.out("2.ome.zarr"))["0"][...],
                                      np.moveaxis(noise((5, 270, 300, 3), "u1", 2), -1, 0))

    def test_what_cannot_go_out_is_refused(self):
        mdfs.imwrite(self.at("image"), noise((20, 30)))
        mdfs.imwrite(self.at("line"), noise((30,)))
        for error, words, source, name, options in (
                (ValueError, "ending names the format.*ome.tif", "image", "a.png", {}),
                (ValueError, "axes of this image are 'x'", "line", "a.ome.zarr", {}),
                (ValueError, "resume is for", "image", "a.h5", {"resume": True}),
                (ValueError, "codec, extent, levels and reduce are for", "image", "a.h5", {"codec": "raw"})):
            with self.subTest(words=words), self.assertRaisesRegex(error, words):
                mdfs.convert(self.at(source), self.out(name), **options)
        harness.write_all(self.out("a.h5"), b"mine")
        with self.assertRaises(FileExistsError):
            mdfs.convert(self.at("image"), self.out("a.h5"))
        self.assertEqual(os.listdir(self.outside), ["a.h5"])
        mdfs.convert(self.at("image"), self.out("a.h5"), overwrite=True)
        self.assertTrue(h5py.is_hdf5(self.out("a.h5")))

    def test_a_target_that_differs_is_found_by_the_checksum(self):
        tifffile.imwrite(self.out("a.tif"), noise((50, 60)), photometric="minisblack")
        broken = unittest.mock.patch.object(mdfs.Image, "__setitem__", lambda *rest: None)
        with broken:
            self.refuses(OSError, "differ from those", self.out("a.tif"))
        with broken:
            mdfs.convert(self.out("a.tif"), self.at("unseen"), verify=False)


class MistakesTest(ConvertTest):
    def test_mistakes_are_named_with_what_is_allowed(self):
        path = self.out("a.npz.tif")
        tifffile.imwrite(path, noise((4, 5, 60, 50)), photometric="minisblack", metadata={"axes": "TZYX"}, ome=True)
        mdfs.imwrite(self.at("taken"), noise((4, 4)))
        harness.write_all(self.out("text"), b"hello")
        np.save(self.out("a.npy"), noise((3, 3)))
        with h5py.File(self.out("complex.h5"), "w") as file:
            file["a"] = np.zeros((3, 3), "c8")
        for error, words, source, options in (
                (FileNotFoundError, "none", self.out("none"), {}),
                (IndexError, "t=4: axis t has the places 0 to 3", path, {"select": "t=4"}),
                (IndexError, "z=3:9.*0 to 4", path, {"select": "z=3:9"}),
                (ValueError, "'q'.*t=4, z=5, y=60, x=50", path, {"select": {"q": 1}}),
                (TypeError, "1.5", path, {"select": {"t": 1.5}}),
                (ValueError, "no step", path, {"select": {"t": slice(0, 4, 2)}}),
                (ValueError, "must be AXIS=PLACE", path, {"select": "t"}),
                (ValueError, "AXIS", path, {"select": "t=-1"}),
                (ValueError, "twice", path, {"select": "t=1,t=2"}),
                (ValueError, "axes 'zyx': 4 different", path, {"axes": "zyx"}),
                (ValueError, "codec 'lzma'", path, {"codec": "lzma", "select": "t=0"}),
                (ValueError, "extent", path, {"extent": (0, 4, 4), "select": "t=0"}),
                (FileExistsError, "overwrite", path, {"target": self.at("taken")}),
                (IsADirectoryError, "", path, {"target": self.dir}), (ValueError, "end in @", path, {"target": "a@"}),
                (OSError, "", path, {"target": self.out("not-on-a-mount"), "select": "t=0"}),
                (ValueError, "text: not a format.*OME-TIFF", self.out("text"), {}),
                (ValueError, "mdfs image import.*NPY", self.out("a.npy"), {}),
                (ValueError, "no array of numbers", self.out("complex.h5"), {})):
            with self.subTest(words=words):
                self.refuses(error, words, source, **options)

    def test_missing_packages_are_named(self):
        tifffile.imwrite(self.out("a.tif"), noise((50, 60)))
        with unittest.mock.patch.dict(sys.modules, {"tifffile": None}):
            self.refuses(ImportError, r"tifffile.*mdfs\[io\]", self.out("a.tif"))

    def test_attributes_without_room_are_left_out_with_a_warning(self):
        with h5py.File(self.out("a.h5"), "w") as file:
            data = file.create_dataset("a", data=noise((30, 30)))
            data.attrs["short"] = 1
        big = {"long": "x" * 70000, "short": 1}
        from mdfs._convert.attributes import fitting
        with self.assertWarnsRegex(UserWarning, "'long' of 70002 bytes is not kept"):
            self.assertEqual(fitting(big), {"short": 1})
        self.assertEqual(self.converted(self.out("a.h5")).attrs["hdf5"]["short"], 1)


class CommandTest(ConvertTest):
    def run_command(self, *words):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            try:
                status = command.main([str(word) for word in words])
            except SystemExit as end:
                status = end.code
        return status, errors.getvalue()

    def test_the_command_converts_and_says_why_not(self):
        array = noise((3, 4, 50, 60))
        path = self.out("a.tif")
        tifffile.imwrite(path, array, photometric="minisblack", metadata={"axes": "TZYX"}, ome=True)
        done = self.run_command(path, self.at("a"), "--select", "t=2", "--extent", "2,16,16", "--codec", "raw")
        self.assertEqual(done, (0, ""))
        np.testing.assert_array_equal(mdfs.imread(self.at("a")), array[2])
        self.assertEqual(mdfs.open(self.at("a")).chunks, (2, 16, 16))
        status, said = self.run_command(path, self.at("a"), "--select", "t=2")
        self.assertEqual((status, "overwrite" in said), (1, True))
        self.assertEqual(self.run_command(path, self.at("b"), "--select", "t")[0], 2)
        self.assertEqual(self.run_command(path, self.at("b"), "--extent", "2,x")[0], 2)
        self.assertEqual(self.run_command(path, self.at("b"), "--select", "t=9")[0], 1)
        done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "mdfs-convert"), "--help"],
                              capture_output=True, text=True, check=True)
        self.assertIn("OME-Zarr", done.stdout)


    def test_a_terminal_shows_a_bar_and_files_show_none(self):
        path = self.out("a.tif")
        tifffile.imwrite(path, noise((30, 512, 512)), photometric="minisblack")
        words = [sys.executable, "-m", "mdfs._convert.command", path]
        ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        subprocess.run([*words, self.at("a")], stderr=theirs, check=True)
        self.assertIn(b"100%", os.read(ours, 1 << 16))
        subprocess.run([*words, self.at("b"), "--quiet"], stderr=theirs, check=True)
        os.set_blocking(ours, False)
        with self.assertRaises(BlockingIOError):
            os.read(ours, 1)
        os.close(theirs)
        os.close(ours)
        done = subprocess.run([*words, self.at("c")], capture_output=True, check=True)
        self.assertEqual((done.stdout, done.stderr), (b"", b""))


class MemoryTest(ConvertTest):
    """Sources with holes: what is measured is the memory of the process that converts.

    The environment variable MDFS_CONVERT_GIB sets their size."""
    options = "cache=64M"
    SHAPE = (256 * int(os.environ.get("MDFS_CONVERT_GIB", "1")), 2048, 1024)
    CODE = """
import re, sys, mdfs
mdfs.convert(sys.argv[1], sys.argv[2])
print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""

    def measured(self, source, target):
        done = subprocess.run([sys.executable, "-c", self.CODE, source, target], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(f"{os.path.basename(source)} to {os.path.basename(target)}: {done.stdout.strip()} MiB", file=sys.stderr)
        self.assertLess(int(done.stdout), 512)

    def sources(self):
        rows = self.SHAPE
        size, sizes = 2 * rows[0] * rows[1] * rows[2], f"{rows[2]} {rows[1]} {rows[0]}"
        yield "a.tif"
        tifffile.memmap(self.out("a.tif"), shape=rows, dtype="u2", bigtiff=True, photometric="minisblack").flush()
        yield "a.zarr"
        zarr.create_array(self.out("a.zarr"), shape=rows, dtype="u2", chunks=(16, 256, 256))[5, 7] = 3
        yield "a.h5"
        with h5py.File(self.out("a.h5"), "w") as file:
            file.create_dataset("a", rows, "u2", chunks=(16, 256, 256), compression="gzip")[5, 7] = 3
        yield "a.nii"
        header = nibabel.Nifti1Header()
        header.set_data_shape(rows[::-1])
        header.set_data_dtype("u2")
        header["vox_offset"] = 352
        harness.write_all(self.out("a.nii"), header.binaryblock + bytes(4))
        os.truncate(self.out("a.nii"), 352 + size)
        yield "a.nhdr"
        harness.write_all(self.out("a.nhdr"), f"NRRD0004\ntype: uint16\ndimension: 3\nsizes: {sizes}\n"
                          "endian: little\nencoding: raw\ndata file: a.raw\n\n".encode())
        harness.write_all(self.out("a.raw"), b"")
        os.truncate(self.out("a.raw"), size)
        yield "a.mhd"
        harness.write_all(self.out("a.mhd"), f"ObjectType = Image\nNDims = 3\nDimSize = {sizes}\n"
                          "ElementType = MET_USHORT\nElementDataFile = a.raw\n".encode())

    def test_memory_is_below_half_a_gibibyte_for_sources_of_any_size(self):
        making = self.sources()
        name = next(making)
        while name is not None:
            following = next(making, None)  # makes the one before
            with self.subTest(name=name):
                self.measured(self.out(name), self.at("image"))
                if following is not None:
                    os.unlink(self.at("image"))
            name = following
        for suffix in (".ome.zarr", ".ome.tif", ".h5"):
            with self.subTest(suffix=suffix):
                self.measured(self.at("image"), self.out(f"back{suffix}"))


class KilledTest(ConvertTest):
    CODE = """
import sys, mdfs
from mdfs._convert import copying
copying.BOX_BYTES, copying.KEPT_EVERY = 1 << 20, 2
def progress(done, total):
    print(done, flush=True)
    if done >= total * 0.3:
        sys.stdin.readline()
mdfs.convert(sys.argv[1], sys.argv[2], progress=progress)
"""

    def test_a_killed_conversion_leaves_nothing_visible_and_is_resumed(self):
        array = noise((40, 512, 512))
        path, target = self.out("a.ome.zarr"), self.at("image")
        zarr.create_array(path, data=array, chunks=(4, 256, 256))
        with subprocess.Popen([sys.executable, "-c", self.CODE, path, target], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as child:
            for line in child.stdout:
                if int(line) >= array.size * 2 * 0.3:
                    break
            with self.assertRaisesRegex(BlockingIOError, "another conversion"):
                mdfs.convert(path, target)
            child.send_signal(signal.SIGKILL)
        self.assertEqual([name for name in os.listdir(self.dir) if not name.startswith(".")], [])
        self.assertEqual(len(os.listdir(self.dir)), 1)
        with self.assertRaisesRegex(ValueError, "other options"):
            mdfs.convert(path, target, resume=True, select="z=0")
        seen = []
        mdfs.convert(path, target, resume=True, progress=lambda done, total: seen.append(done / total))
        self.assertGreater(seen[0], 0.25, "what was done is not done again")
        np.testing.assert_array_equal(mdfs.imread(target), array)
        self.assertEqual(os.listdir(self.dir), ["image"])
        os.unlink(target)
        mdfs.convert(path, target)
        self.assertEqual(os.listdir(self.dir), ["image"])

    def test_a_later_conversion_replaces_what_a_killed_one_left(self):
        zarr.create_array(self.out("a.zarr"), data=noise((40, 512, 512)), chunks=(4, 256, 256))
        with subprocess.Popen([sys.executable, "-c", self.CODE, self.out("a.zarr"), self.at("image")],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            child.send_signal(signal.SIGKILL)
        zarr.create_array(self.out("b.zarr"), data=noise((30, 40)), chunks=(4, 40))
        mdfs.convert(self.out("b.zarr"), self.at("image"))
        self.assertEqual(os.listdir(self.dir), ["image"])
        self.assertEqual(mdfs.open(self.at("image")).shape, (30, 40))


if __name__ == "__main__":
    harness.main()
