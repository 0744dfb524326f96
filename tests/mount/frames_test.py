"""Sequences of frames, and windows as TIFF and DPX, by other programs."""
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import struct
import subprocess
import unittest

import harness
from harness import make_image, read_all, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of frames need numpy")
    raise SystemExit(harness.SKIP)

RNG = np.random.default_rng(13)


class Frames(harness.MountTest):
    def image(self, name, shape, element="u8", channels=1, **options):
        full = [*shape, *([channels] if channels > 1 else [])]
        data = RNG.integers(0, 250, full).astype(harness.NUMPY[element])
        make_image(self.at(name), shape, element=element, channels=channels, **options)
        write_all(self.at(name), data.tobytes())
        return data

    def decoded(self, *source, pixel):
        done = subprocess.run(["ffmpeg", "-v", "error", *source, "-f", "rawvideo", "-pix_fmt", pixel, "-"],
                              capture_output=True, check=True)
        return done.stdout

    def by_oiio(self, path, element):
        copy = os.path.join(self.volume.folder, "copy.tif")
        kind = {"u1": "uint8", "u2": "uint16", "f4": "float"}[np.dtype(element).str[1:]]
        subprocess.run(["oiiotool", "--wildcardoff", path, "-d", kind, "--compression", "none", "-o", copy], check=True,
                       capture_output=True)
        subprocess.run(["gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BIP", copy, copy + ".bin"],
                       check=True, capture_output=True)
        return np.frombuffer(read_all(copy + ".bin"), element)

    def test_frames_are_listed_with_their_exact_names(self):
        self.image("film", (12, 20, 32), channels=3, axes="tyx")
        self.image("deep", (3, 20, 32), "u16")
        self.image("float", (3, 20, 32), "f32")
        self.image("double", (3, 20, 32), "f64")
        self.image("flat", (20, 32))
        self.assertEqual(sorted(os.listdir(self.at("film@/frames"))),
                         sorted(f"film.{n:04}.{suffix}" for n in range(12) for suffix in ("png", "dpx")))
        self.assertEqual(os.listdir(self.at("deep@/frames")), [f"deep.{n:04}.png" for n in range(3)])
        self.assertEqual(os.listdir(self.at("float@/frames")), [f"float.{n:04}.exr" for n in range(3)])
        for name in ("double", "flat"):
            self.assertNotIn("frames", os.listdir(self.at(f"{name}@")))
            self.assertFalse(os.path.exists(self.at(f"{name}@/frames")))
        self.assertIn("frames", os.listdir(self.at("film@")))
        self.assertEqual(os.stat(self.at("film@/frames/film.0003.png")).st_ino,
                         os.stat(self.at("film@/win/t3.png")).st_ino)
        for name in ("film.0012.png", "film.3.png", "film.0003.exr", "deep.0003.png"):
            self.assertFalse(os.path.exists(self.at(f"film@/frames/{name}")), name)

    def test_a_player_shows_the_sequence(self):
        data = self.image("film", (5, 20, 32), channels=3, axes="tyx")
        for suffix in ("png", "dpx"):
            shown = self.decoded("-f", "image2", "-i", self.at(f"film@/frames/film.%04d.{suffix}"), pixel="rgb24")
            self.assertEqual(shown, data.tobytes(), suffix)
        os.truncate(self.at("film"), 2 * 20 * 32 * 3)
        self.assertEqual(len(os.listdir(self.at("film@/frames"))), 4)

    def test_dpx_has_8_and_16_bits(self):
        for element, pixel in (("u8", "rgb24"), ("u16", "rgb48le")):
            data = self.image(element, (20, 32), element, 3)
            path = self.at(f"{element}@/win/y3+9,x4+8.dpx")
            self.assertEqual(os.stat(path).st_size, 2048 + 9 * 8 * 3 * data.itemsize)
            self.assertEqual(self.decoded("-f", "dpx_pipe", "-i", path, pixel=pixel), data[3:12, 4:12].tobytes())
        self.assertFalse(os.path.exists(self.at("u8@/win/x4+7.dpx")))

    @unittest.skipUnless(shutil.which("oiiotool") and shutil.which("gdal_translate"), "needs oiiotool and gdal")
    def test_openimageio_reads_dpx(self):
        for element in ("u8", "u16"):
            data = self.image(element, (20, 32), element, 3)
            shown = self.by_oiio(self.at(f"{element}@/win/y3+9,x4+8.dpx"), data.dtype)
            np.testing.assert_array_equal(shown.reshape(9, 8, 3), data[3:12, 4:12])

    @unittest.skipUnless(shutil.which("oiiotool") and shutil.which("gdal_translate"), "needs oiiotool and gdal")
    def test_openimageio_reads_exr(self):
        for element in ("f16", "f32"):
            for channels in (1, 3, 4):
                name = f"{element}-{channels}"
                data = self.image(name, (20, 32), element, channels)
                path = self.at(f"{name}@/win/y3+9,x4+7.exr")
                self.assertEqual(len(read_all(path)), os.stat(path).st_size)
                shown = self.by_oiio(path, "f4")
                np.testing.assert_array_equal(shown.reshape(data[3:12, 4:11].shape), data[3:12, 4:11])

    def test_ffmpeg_plays_frames_of_exr(self):
        data = self.image("film", (4, 20, 32), "f32", 3, axes="tyx")
        shown = self.decoded("-f", "image2", "-i", self.at("film@/frames/film.%04d.exr"), pixel="gbrpf32le")
        planes = np.frombuffer(shown, "f4").reshape(4, 3, 20, 32)
        np.testing.assert_array_equal(np.moveaxis(planes[:, (2, 0, 1)], 1, -1), data)

    def test_a_tiff_window_is_exact_for_all_types(self):
        for element in ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"):
            data = self.image(element, (5, 20, 30), element, 2)
            for spec, box in (("z3", data[3]), ("z1+2,y3+4", data[1:3, 3:7]), ("x4,c1", data[:, :, 4, 1])):
                path = self.at(f"{element}@/win/{spec}.tif")
                file = read_all(path)
                self.assertEqual(len(file), os.stat(path).st_size)
                self.assertEqual(file[:4], b"II\x2b\0")
                self.assertEqual(file[-box.nbytes:], box.tobytes())
                count = struct.unpack_from("<Q", file, 16)[0]
                values = {tag: value for tag, _, _, value in struct.iter_unpack("<HHQQ", file[24:24 + 20 * count])}
                self.assertEqual((values[257], values[256]), box.shape if "c1" in spec else box.shape[-3:-1])

    @unittest.skipUnless(shutil.which("gdal_translate"), "needs gdal_translate")
    def test_gdal_reads_tiff_windows(self):
        copy = os.path.join(self.volume.folder, "copy.bin")
        for element, channels in (("u8", 3), ("u16", 1), ("f32", 1), ("i32", 2), ("f64", 1)):
            data = self.image(f"{element}{channels}", (20, 1000), element, channels)
            padded = np.concatenate([np.zeros_like(data[:2]), data[:7]])
            for spec, box in (("y3+9", data[3:12]), ("y-2+9,clip", padded)):
                subprocess.run(["gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BIP",
                                self.at(f"{element}{channels}@/win/{spec}.tif"), copy], check=True, capture_output=True)
                self.assertEqual(read_all(copy), box.tobytes())

    def test_levels_and_cuts_are_tiff_windows(self):
        self.image("scan", (8, 20, 30), "u16")
        for spec in ("l1,z2", "cut,0,1,2,0.9,0,0.1,0,0.8,0,20,15"):
            self.assertEqual(read_all(self.at(f"scan@/win/{spec}.tif"))[4096:],
                             read_all(self.at(f"scan@/win/{spec}.raw")))


if __name__ == "__main__":
    harness.main()
