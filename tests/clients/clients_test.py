"""The Zarr view and the headers of images in the clients that users have, every sample compared with NumPy.

usage: clients_test.py PYTHON TUTORIAL.md
PYTHON has the packages of requirements.txt. Blocks of the language `python` of the tutorial run as well.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "mount"), str(HERE.parent / "support")]
import harness  # noqa: E402  the path comes first
from harness import make_image, run, write_all  # noqa: E402
from zarr_reader import in_array_order  # noqa: E402

PYTHON, TUTORIAL = (sys.argv.pop(1), sys.argv.pop(1)) if len(sys.argv) > 2 else ("python3", "")
# Of each: axes, shape, channels, type, extent. OME-NGFF has no place for the last two.
IMAGES = [("yx", (300, 500), 3, "u8", (128, 128)), ("zyx", (20, 70, 90), 1, "u16", (8, 32, 32)),
          ("tyx", (5, 70, 90), 4, "f32", (2, 32, 64)), ("yx", (70, 90), 1, "i64", (32, 32)),
          ("zyx", (9, 30, 40), 2, "f16", (4, 16, 16)), ("tzyx", (3, 5, 20, 30), 1, "u16", (1, 2, 16, 16)),
          ("tczyx", (3, 2, 5, 20, 30), 1, "u16", (1, 1, 2, 16, 16)), ("x", (5000,), 1, "u32", (1024,)),
          ("t", (5000,), 2, "u8", (1024,))]


# Write the whole array again and again, each time with one value.
BESIDE = {
    "zarr": """
import sys, zarr
array = zarr.open(sys.argv[1], mode="r+")
for value in range(20):
    array[...] = value
""",
    "tensorstore": """
import sys, numpy, tensorstore
array = tensorstore.open({"driver": "zarr3", "kvstore": f"file://{sys.argv[1]}/"}, open=True, write=True).result()
for value in range(20):
    array.write(numpy.full((256, 256), value, "u1")).result()
""",
}


class Clients(harness.MountTest):
    def see(self, client, path):
        """What the client reads, and what it says."""
        output = os.path.join(self.volume.folder, "seen.npy")
        done = subprocess.run([PYTHON, HERE / "read_zarr.py", client, f"{path}@/ome.zarr", output],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(output), json.loads(done.stdout)

    def images(self, codecs=(0, 1)):
        """Images with noise, the last third of each a hole; the path, the array that it must be, and its axes."""
        rng = np.random.default_rng(1)
        for codec in codecs:
            for number, (axes, shape, channels, element, extent) in enumerate(IMAGES):
                path = self.at(f"image{number}codec{codec}")
                make_image(path, shape, element=element, channels=channels, codec=codec, extent=extent, axes=axes)
                samples = np.zeros([*shape, *([channels] if channels > 1 else [])], harness.NUMPY[element])
                part = samples[:len(samples) * 2 // 3]
                part[...] = rng.integers(0, 100, part.shape)
                fd = os.open(path, os.O_WRONLY)
                os.pwrite(fd, part.tobytes(), 0)
                os.close(fd)
                yield path, *in_array_order(samples, axes, channels)

    def check(self, client, path, expected):
        seen, said = self.see(client, path)
        self.assertEqual(seen.shape, expected.shape)
        self.assertEqual(seen.dtype, expected.dtype)
        np.testing.assert_array_equal(seen, expected)
        return said

    def test_zarr_python(self):
        for path, expected, names in self.images():
            with self.subTest(path=path, names=names):
                said = self.check("zarr", path, expected)
                self.assertEqual(said["dimensions"], names)
                folder = f"{path}@/ome.zarr/0/c"
                self.assertEqual(said["stored"], sum(len(files) for _, _, files in os.walk(folder)))

    def test_tensorstore(self):
        for path, expected, names in self.images():
            with self.subTest(path=path, names=names):
                self.assertEqual(self.check("tensorstore", path, expected)["dimensions"], names)

    def test_dask(self):
        for path, expected, names in self.images(codecs=(1,)):
            with self.subTest(path=path, names=names):
                self.check("dask", path, expected)

    def written(self, client, path, shape, dtype):
        """What the client has written into the image."""
        file = os.path.join(self.volume.folder, "written.npy")
        np.save(file, np.random.default_rng(len(client)).integers(1, 100, shape).astype(dtype))
        done = subprocess.run([PYTHON, HERE / "write_zarr.py", client, f"{path}@/ome.zarr", file],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{client} {path}: {done.stderr}")
        return np.load(file)

    def test_what_clients_write_is_what_they_and_others_read(self):
        for client in ("zarr", "zarr-group", "zarrs", "dask", "tensorstore"):
            for path, before, names in self.images():
                with self.subTest(client=client, path=path, names=names):
                    expected = self.written(client, path, before.shape, before.dtype)
                    info = json.loads((pathlib.Path(f"{path}@") / "info.json").read_text())
                    channels = info["channels"]
                    plain = np.frombuffer(pathlib.Path(path).read_bytes(), harness.NUMPY[info["type"]]).reshape(
                        info["shape"] + ([channels] if channels > 1 else []))
                    np.testing.assert_array_equal(in_array_order(plain, info["axes"], channels)[0], expected)
                    for reader in ("zarr", "tensorstore"):
                        self.check(reader, path, expected)
                    first = "/".join("0" * expected.ndim)
                    self.assertFalse(os.path.exists(f"{path}@/ome.zarr/0/c/{first}"))
                os.unlink(path)

    def test_a_reader_beside_a_client_that_writes_sees_whole_chunks(self):
        path = self.at("scan")
        make_image(path, (256, 256), extent=(64, 64))
        for client in ("zarr", "tensorstore"):
            writer = subprocess.Popen([PYTHON, "-c", BESIDE[client], f"{path}@/ome.zarr/0"], stdout=subprocess.PIPE)
            ended = False
            while not ended:
                ended = writer.poll() is not None  # then once more
                seen = np.frombuffer(pathlib.Path(path).read_bytes(), "u1").reshape(4, 64, 4, 64)
                for i, j in np.ndindex(4, 4):
                    self.assertEqual(len(np.unique(seen[i, :, j, :])), 1, (i, j))
            writer.communicate()
            self.assertEqual(writer.returncode, 0)
            self.assertEqual(np.unique(seen).tolist(), [19])

    def test_ome_zarr_py(self):
        for path, expected, names in self.images(codecs=(1,)):
            if set(names) & set("yx") != set("yx"):
                continue
            with self.subTest(path=path, names=names):
                said = self.check("ome-zarr", path, expected)
                self.assertEqual([axis["name"] for axis in said["axes"]], names)

    def test_ome_zarr_py_sees_spacing_and_units(self):
        run(harness.MDFS, "image", "create", self.at("stack"), "--shape", "5x40x50", "--spacing", "2um,0.5um,0.25um")
        write_all(self.at("stack@/win/all.raw"), bytes(5 * 40 * 50))
        said = self.see("ome-zarr", self.at("stack"))[1]
        self.assertEqual(said["scale"], [2.0, 0.5, 0.25])
        self.assertEqual({axis["unit"] for axis in said["axes"]}, {"micrometer"})

    def through_header(self, client, path):
        output = os.path.join(self.volume.folder, "seen.npy")
        done = subprocess.run([PYTHON, HERE / "read_header.py", client, path, output], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, f"{client} {path}: {done.stderr}")
        return np.load(output), json.loads(done.stdout)

    def test_headers_lead_to_the_plain_samples(self):
        read = 0
        for path, _, _ in self.images(codecs=(1,)):
            image, name = pathlib.Path(path), os.path.basename(path)
            info = json.loads((pathlib.Path(f"{path}@") / "info.json").read_text())
            channels = [info["channels"]] if info["channels"] > 1 else []
            plain = np.frombuffer(image.read_bytes(), harness.NUMPY[info["type"]]).reshape(info["shape"] + channels)
            lines, samples = ([1] + info["shape"])[-2:]
            bands = np.moveaxis(plain.reshape(-1, lines, samples, info["channels"]), -1, 1).reshape(-1, lines, samples)
            mirror = f"{self.volume.path}/.mdfs/img/{os.path.basename(self.dir)}/{name}"
            for folder in (f"{path}@", mirror):
                for suffix, client, expected in (("nhdr", "pynrrd", plain), ("nhdr", "simpleitk", plain),
                                                 ("mhd", "simpleitk", plain), ("hdr", "gdal", bands),
                                                 ("vrt", "gdal", bands)):
                    header = f"{folder}/{name}.{suffix}"
                    if not os.path.exists(header) or (client == "simpleitk" and len(info["shape"]) < 2):
                        continue
                    with self.subTest(header=header, client=client):
                        # GDAL opens the samples of ENVI, and finds the header beside them.
                        seen, _ = self.through_header(client, f"{folder}/{name}.raw" if suffix == "hdr" else header)
                        if (suffix, client) == ("nhdr", "simpleitk") and "c" in info["axes"]:  # ITK makes components
                            expected = np.moveaxis(plain, info["axes"].index("c"), -1)
                        np.testing.assert_array_equal(seen, expected)
                        read += 1
        self.assertGreater(read, 30)

    def test_programs_read_every_sample_of_the_tiff(self):
        # libvips has neither 64-bit integers nor half floats, GDAL no half floats of their own type.
        lacks = {"vips": {"i64", "u64", "f16"}}
        output, read = os.path.join(self.volume.folder, "seen.npy"), 0
        for path, _, _ in self.images(codecs=(1,)):
            name = os.path.basename(path)
            plain = np.load(f"{path}@/{name}.npy")
            element = json.loads((pathlib.Path(f"{path}@") / "info.json").read_text())["type"]
            for client in ("tifffile", "gdal", "vips"):
                if element in lacks.get(client, ()):
                    continue
                with self.subTest(path=path, client=client):
                    done = subprocess.run([PYTHON, HERE / "read_tiff.py", client, f"{path}@/{name}.tif", output],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    # The steps along all axes but two are pages.
                    np.testing.assert_array_equal(np.load(output).reshape(plain.shape), plain)
                    read += 1
        self.assertGreater(read, 15)

    def test_a_tiff_with_levels_is_cloud_optimized(self):
        picture = np.random.default_rng(4).integers(0, 255, (900, 1300, 3), dtype="u1")
        source = os.path.join(self.volume.folder, "picture.npy")
        np.save(source, picture)
        run(harness.MDFS, "image", "import", "--axes", "yxc", "--levels", "2", source, self.at("picture"))
        program = """
import sys
import numpy
import rio_cogeo
import tifffile
path = sys.argv[1]
valid, errors, warnings = rio_cogeo.cog_validate(path, quiet=True)
assert valid and not errors and not warnings, (errors, warnings)
with tifffile.TiffFile(path) as file:
    assert len(file.series) == 1 and len(file.series[0].levels) == 3, file.series
    numpy.save(sys.argv[2], file.series[0].levels[1].asarray())
"""
        seen = os.path.join(self.volume.folder, "seen.npy")
        done = subprocess.run([PYTHON, "-c", program, self.at("picture@/picture.tif"), seen],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_array_equal(np.load(seen), np.load(self.at("picture@/win/l1.npy")))

    def test_the_pages_of_a_tiff_are_steps_along_named_axes(self):
        samples = np.random.default_rng(5).integers(0, 60000, (3, 2, 5, 60, 80), dtype="u2")
        source = os.path.join(self.volume.folder, "samples.npy")
        np.save(source, samples)
        run(harness.MDFS, "image", "import", "--axes", "tczyx", "--spacing", "500ms,1,2um,0.5um,0.25um", source,
            self.at("cells"))
        program = """
import sys
import numpy
import tifffile
with tifffile.TiffFile(sys.argv[1]) as file:
    assert file.is_ome and file.series[0].axes == "TCZYX", file.series
    assert 'PhysicalSizeX="0.25"' in file.ome_metadata
    numpy.save(sys.argv[2], file.series[0].asarray())
"""
        seen = os.path.join(self.volume.folder, "seen.npy")
        done = subprocess.run([PYTHON, "-c", program, self.at("cells@/cells.tif"), seen],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_array_equal(np.load(seen), samples)

    def test_the_pages_of_a_tiff_have_their_levels(self):
        samples = np.random.default_rng(6).integers(0, 60000, (3, 4, 300, 420), dtype="u2")
        source = os.path.join(self.volume.folder, "samples.npy")
        np.save(source, samples)
        run(harness.MDFS, "image", "import", "--axes", "czyx", "--spacing", "1,2um,0.5um,0.5um", "--levels", "2",
            "--extent", "1x1x64x64", source, self.at("cells"))
        program = """
import sys
import numpy
import pyvips
import tifffile
path = sys.argv[1]
with tifffile.TiffFile(path) as file:
    assert file.is_ome and len(file.series) == 1, file.series
    levels = file.series[0].levels
    assert [level.axes for level in levels] == ["CZYX"] * 3, levels
    numpy.savez(sys.argv[2], *[level.asarray() for level in levels],
                vips=pyvips.Image.new_from_file(path, page=7, subifd=1).numpy())
"""
        seen = os.path.join(self.volume.folder, "seen.npz")
        done = subprocess.run([PYTHON, "-c", program, self.at("cells@/cells.tif"), seen],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(seen) as arrays:
            np.testing.assert_array_equal(arrays["arr_0"], samples)
            for level in 1, 2:
                np.testing.assert_array_equal(arrays[f"arr_{level}"], np.load(self.at(f"cells@/win/l{level}.npy")))
            np.testing.assert_array_equal(arrays["vips"], arrays["arr_2"][1, 3])

    def test_the_exif_of_a_photograph_is_in_its_tiff(self):
        source = os.path.join(self.volume.folder, "photo.jpg")
        program = """
import sys
import PIL.Image
exif = PIL.Image.Exif()
exif[271] = "Maker of cameras"
exif.get_ifd(0x8769)[33434] = 1 / 250
exif.get_ifd(0x8769)[34855] = 400
exif.get_ifd(0x8825)[2] = (47.0, 30.0, 15.5)
PIL.Image.linear_gradient("L").convert("RGB").save(sys.argv[1], exif=exif)
"""
        subprocess.run([PYTHON, "-c", program, source], check=True)
        run(harness.MDFS, "image", "import", source, self.at("photo"))
        program = """
import sys
import PIL.Image
import rasterio
import tifffile
with tifffile.TiffFile(sys.argv[1]) as file:
    tags = file.pages[0].tags
    exif, gps = tags["ExifTag"].value, tags["GPSTag"].value
    assert tags["Make"].value == "Maker of cameras", tags
    assert exif["ISOSpeedRatings"] == 400 and exif["ExposureTime"] in (0.004, (1, 250)), exif
    assert gps["GPSLatitude"][:4] == (47, 1, 30, 1), gps
with rasterio.open(sys.argv[1]) as source:
    assert source.read().shape == (3, 256, 256)
"""
        done = subprocess.run([PYTHON, "-c", program, self.at("photo@/photo.tif")], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_headers_carry_the_spacing(self):
        run(harness.MDFS, "image", "create", self.at("stack"), "--shape", "5x40x50", "--spacing", "2um,0.5um,0.25um")
        self.assertEqual(self.through_header("pynrrd", self.at("stack@/stack.nhdr"))[1], [2, 0.5, 0.25])
        self.assertEqual(self.through_header("simpleitk", self.at("stack@/stack.mhd"))[1], [0.002, 0.0005, 0.00025])

    def test_dirty_and_appended_samples(self):
        rng = np.random.default_rng(2)
        for codec in (0, 1):
            make_image(self.at(f"film{codec}"), (0, 64, 96), element="u16", codec=codec, axes="tyx",
                       extent=(16, 32, 32))
            film = rng.integers(0, 4000, (21, 64, 96), dtype="u2")
            with open(self.at(f"film{codec}"), "ab") as file:
                for number, frame in enumerate(film):
                    file.write(frame.tobytes())
                    file.flush()
                    if number < 18:
                        os.fsync(file.fileno())
                for client in ("zarr", "tensorstore"):
                    with self.subTest(client=client, codec=codec):
                        self.check(client, self.at(f"film{codec}"), film)

    def serve(self):
        """Serves the volume, and returns the address of its root."""
        server = subprocess.Popen([harness.MDFS, "serve", self.volume.path, "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        return server.stdout.readline().strip()

    def test_the_iiif_validator_finds_the_picture_that_it_knows(self):
        source = os.path.join(self.volume.folder, "squares.npy")
        program = """
import sys
import numpy
from iiif_validator.validator import ValidationInfo
squares = numpy.swapaxes(numpy.array(ValidationInfo().colorInfo, "u1"), 0, 1)  # from columns of squares
numpy.save(sys.argv[1], squares.repeat(100, 0).repeat(100, 1))
"""
        subprocess.run([PYTHON, "-c", program, source], check=True)
        run(harness.MDFS, "image", "import", "--axes", "yxc", source, self.at("squares"))
        server = self.serve().removeprefix("http://").rstrip("/")
        validator = pathlib.Path(PYTHON).parent / "iiif-validate.py"
        done = subprocess.run([PYTHON, validator, "-s", server, "-p", os.path.relpath(self.at("squares@"),
                               self.volume.path), "-i", "iiif", "--version=3.0", "--level=0"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("(5 tests, 0 failures)", done.stderr)

    def browse(self, path):
        """What Chromium sees on the page of an image, and the pixels of its canvas."""
        chromium = shutil.which("chromium")
        if not chromium:
            self.skipTest("no Chromium")
        root = self.serve()
        picture = os.path.join(self.volume.folder, "seen.npy")
        page = f"{root}{os.path.relpath(path, self.volume.path)}@/"
        done = subprocess.run([PYTHON, HERE / "browse.py", chromium, page, picture], capture_output=True, text=True,
                              check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        self.assertEqual((seen["console"], seen["failed"]), ([], []))
        self.assertGreater(seen["first"], 0)
        self.assertGreater(len(seen["tiles"]), seen["first"], "zooming asks for other tiles")
        return seen, np.load(picture)

    def test_a_browser_zooms_into_an_image(self):
        rng = np.random.default_rng(3)
        path = self.at("photo")
        data = rng.integers(0, 256, (1500, 1900, 4), "u1")
        data[..., 3] = 255
        make_image(path, data.shape[:2], channels=4, axes="yx")
        write_all(path, data.tobytes())
        seen, pixels = self.browse(path)
        # OpenSeadragon draws a tile of 256 samples on 257 pixels, so that no line shows between tiles: its first half
        # is exact, and the second is one pixel off.
        for row in range(0, pixels.shape[0] - 128, 256):
            for column in range(0, pixels.shape[1] - 128, 256):
                part = slice(row, row + 128), slice(column, column + 128)
                np.testing.assert_array_equal(pixels[part], data[part])
        self.assertRegex(seen["path"], r"photo@/win/y0\+\d+,x0\+\d+\.npy$")
        self.assertIn("photo", seen["python"])
        self.assertTrue(os.path.exists(os.path.join(self.volume.path, seen["path"])))
        self.assertRegex(seen["length"], r"^[125]0* samples$")

    def test_a_browser_goes_through_the_planes_of_a_volume(self):
        path = self.at("stack")
        data = np.random.default_rng(4).integers(0, 256, (6, 700, 800), "u1")
        make_image(path, data.shape, axes="zyx")
        write_all(path, data.tobytes())
        seen, _ = self.browse(path)
        self.assertTrue(seen["slider"])
        self.assertTrue(all("/plane/z/5/" in url for url in seen["slider"]), seen["slider"])

    def test_the_lines_of_the_tutorial(self):
        if not TUTORIAL:
            self.skipTest("no tutorial")
        blocks = [part.split("```")[0] for part in pathlib.Path(TUTORIAL).read_text().split("```python\n")[1:]]
        self.assertTrue(blocks)
        folder = os.path.join(self.volume.folder, "work")
        os.mkdir(folder)
        os.symlink(self.dir, f"{folder}/mnt")
        make_image(self.at("stack"), (64, 256, 320), element="u16")
        write_all(self.at("stack@/win/all.raw"), np.arange(64 * 256 * 320, dtype="<u2").tobytes())
        for block in blocks:
            done = subprocess.run([PYTHON, "-c", block], cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, block + done.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        sys.exit("mounting needs root and /dev/fuse")
    unittest.main(verbosity=2)
