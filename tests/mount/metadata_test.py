"""What image files say beside their samples: it is stored with the image, shown, and written back."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

import harness
from harness import MDFS, read_all, run, write_all


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def icc_profile(size):
    """A display profile for RGB with one tag, of so many bytes."""
    tags = struct.pack(">I4sII", 1, b"desc", 144, size - 144)
    head = struct.pack(">I4sI4s4s4s12s4s4sIIIQI3I", size, b"test", 0x02400000, b"mntr", b"RGB ", b"XYZ ", bytes(12),
                       b"acsp", b"none", 0, 0, 0, 0, 0, 0xF6D6, 0x10000, 0xD32D)
    text = bytes((i * 7) & 0xFF for i in range(size - 152))
    return head.ljust(128, b"\0") + tags + b"desc" + bytes(4) + text


def exif_block():
    """Little-endian EXIF with a maker, an orientation and an f-number."""
    maker = b"Camera Works\0"
    base = 8 + 2 + 3 * 12 + 4
    sub = base + len(maker) + 1
    entries = [struct.pack("<HHII", 0x010F, 2, len(maker), base), struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0),
               struct.pack("<HHII", 0x8769, 4, 1, sub)]
    first = struct.pack("<2sHIH", b"II", 42, 8, len(entries)) + b"".join(entries) + bytes(4) + maker + b"\0"
    f_number = struct.pack("<HHHIII", 1, 0x829D, 5, 1, sub + 2 + 12 + 4, 0) + struct.pack("<II", 28, 10)
    return first + f_number


def exif_of_a_camera():
    """Big-endian EXIF with fields that few programs know: notes of the maker, and a number of 8 bytes."""
    notes = bytes(range(200))
    fields = [(0x829A, 12, 1, struct.pack(">d", 0.004)), (0x8827, 3, 1, None), (0x927C, 7, len(notes), notes)]
    place = 8 + 2 + 12 + 4 + 2 + 12 * len(fields) + 4
    entries, values = b"", b""
    for tag, kind, count, value in fields:
        at = struct.pack(">HH", 400, 0) if value is None else struct.pack(">I", place + len(values))
        entries += struct.pack(">HHI", tag, kind, count) + at
        values += value or b""
    return struct.pack(">2sHIHHHII", b"MM", 42, 8, 1, 0x8769, 4, 1, 26) + bytes(4) + \
        struct.pack(">H", len(fields)) + entries + bytes(4) + values


PIXELS = bytes((x * 5 + y * 3 + c) & 0xFF for y in range(20) for x in range(30) for c in range(3))


def png_file(icc=b"", exif=b""):
    rows = b"".join(b"\0" + PIXELS[y * 90:y * 90 + 90] for y in range(20))
    chunks = [chunk(b"IHDR", struct.pack(">IIBBBBB", 30, 20, 8, 2, 0, 0, 0))]
    if icc:
        chunks.append(chunk(b"iCCP", b"test\0\0" + zlib.compress(icc)))
    if exif:
        chunks.append(chunk(b"eXIf", exif))
    return b"\x89PNG\r\n\x1a\n" + b"".join([*chunks, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")])


class Metadata(harness.MountTest):
    def meta(self, name):
        return json.loads(run(MDFS, "image", "info", "--meta", "--json", self.at(name)))["meta"]

    def bring(self, name, data, ending):
        source = os.path.join(self.outside, f"{name}.{ending}")
        write_all(source, data)
        run(MDFS, "image", "import", "--quiet", source, self.at(name))

    def send(self, name, file):
        target = os.path.join(self.outside, file)
        result = subprocess.run([MDFS, "image", "export", "--force", self.at(name), target], capture_output=True,
                                text=True, check=True)
        return target, result.stderr

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.outside = folder.name

    def test_a_profile_and_exif_go_through_the_image_to_each_format_that_has_a_place(self):
        icc = icc_profile(3000)
        self.bring("photo", png_file(icc, exif_block()), "png")
        self.assertEqual(os.getxattr(self.at("photo"), "user.mdfs.meta.icc"), icc)
        fields = self.meta("photo")["fields"]
        self.assertEqual((fields["Make"], fields["Orientation"][0]), ("Camera Works", "6"))
        self.assertIn("2.8", fields["FNumber"])
        for ending, exif in (("png", False), ("tif", True), ("jpg", True)):
            with self.subTest(ending=ending):
                target, warnings = self.send("photo", f"photo.{ending}")
                self.assertEqual("EXIF" in warnings, not exif)
                again = f"again-{ending}"
                run(MDFS, "image", "import", "--quiet", target, self.at(again))
                self.assertEqual(os.getxattr(self.at(again), "user.mdfs.meta.icc"), icc)
                found = self.meta(again)["fields"]
                for field in ("Make", "Orientation", "FNumber") if exif else ():
                    self.assertEqual(found[field], fields[field])
                if ending != "jpg":
                    self.assertEqual(read_all(self.at(again)), PIXELS)

    def test_exif_is_kept_byte_for_byte_and_exported_with_all_of_its_fields(self):
        exif = exif_of_a_camera()
        self.bring("plain", png_file(), "png")
        jpeg = read_all(self.send("plain", "plain.jpg")[0])
        segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 8) + b"Exif\0\0" + exif
        for name, source in (("jpg", jpeg[:2] + segment + jpeg[2:]), ("png", png_file(exif=exif))):
            with self.subTest(name):
                self.bring(name, source, name)
                self.assertEqual(os.getxattr(self.at(name), "user.mdfs.meta.exif"), exif)
                self.assertIn(bytes(range(200)), read_all(self.at(f"{name}@/{name}.tif")))
                for ending in "jpg", "tif":
                    target, said = self.send(name, f"{name}-again.{ending}")
                    self.assertEqual(said, "")
                    self.bring(f"{name}-{ending}", read_all(target), ending)
                    again = os.getxattr(self.at(f"{name}-{ending}"), "user.mdfs.meta.exif")
                    if ending == "jpg":
                        self.assertEqual(again, exif)
                        self.assertEqual(read_all(target).count(b"Exif\0\0"), 1)
                    for value in bytes(range(200)), struct.pack("<d" if ending == "tif" else ">d", 0.004):
                        self.assertEqual(again.count(value), 1)
                    self.assertIn("400", self.meta(f"{name}-{ending}")["fields"].values())

    def test_a_format_without_a_place_is_named_with_what_it_leaves_out(self):
        self.bring("photo", png_file(icc_profile(3000), exif_block()), "png")
        for ending in ("npy", "bmp", "ppm"):
            _, warnings = self.send("photo", f"photo.{ending}")
            self.assertIn("warning: ICC profile", warnings)
            self.assertIn("warning: EXIF", warnings)

    def test_a_profile_that_png_refuses_is_left_out_with_a_warning(self):
        whole = icc_profile(3000)
        wrong = {"size": struct.pack(">I", 2999) + whole[4:], "signature": whole[:36] + b"none" + whole[40:],
                 "space": whole[:16] + b"GRAY" + whole[20:], "tag": whole[:140] + b"\xff" + whole[141:],
                 "short": b"no profile"}
        for name, icc in wrong.items():
            with self.subTest(name):
                self.bring(name, png_file(), "png")
                os.setxattr(self.at(name), "user.mdfs.meta.icc", icc)
                target, said = self.send(name, f"{name}.png")
                self.assertEqual(said.splitlines(), [f"mdfs: {target}: warning: ICC profile of the image is left out, "
                                                     "it is not a valid one of such samples"])
                self.bring("again", read_all(target), "png")
                self.assertEqual(read_all(self.at("again")), PIXELS)
                os.unlink(self.at("again"))
        self.bring("good", png_file(whole), "png")
        self.assertEqual(self.send("good", "good.png")[1], "")

    def test_a_profile_beyond_the_size_of_an_attribute_survives(self):
        icc = icc_profile(200_000)
        self.bring("wide", png_file(icc), "png")
        self.assertEqual(self.meta("wide")["blocks"], {"icc": 200_000})
        parts = [os.getxattr(self.at("wide"), f"user.mdfs.meta.icc{part}") for part in ("", ".1", ".2", ".3")]
        self.assertEqual(b"".join(parts), icc)
        target, _ = self.send("wide", "wide.tif")
        run(MDFS, "image", "import", "--quiet", target, self.at("again"))
        self.assertEqual(self.meta("again")["blocks"]["icc"], 200_000)

    def test_an_image_without_metadata_says_so(self):
        self.bring("plain", png_file(), "png")
        self.assertFalse([name for name in os.listxattr(self.at("plain")) if name.startswith("user.mdfs.meta")])
        self.assertIn("no metadata", run(MDFS, "image", "info", "--meta", self.at("plain")))

    @unittest.skipUnless(shutil.which("gdal_translate"), "GDAL is not installed")
    def test_gdal_finds_the_place_of_a_map_in_the_exported_file(self):
        write_all(os.path.join(self.outside, "plain.png"), png_file())
        source = os.path.join(self.outside, "map.tif")
        run("gdal_translate", "-q", "-a_srs", "EPSG:32633", "-a_ullr", "500000", "5000000", "500600", "4999600",
            "-a_nodata", "7", os.path.join(self.outside, "plain.png"), source)
        run(MDFS, "image", "import", "--quiet", source, self.at("map"))
        self.assertIn("geotiff", self.meta("map")["blocks"])
        target, warnings = self.send("map", "again.tif")
        self.assertEqual(warnings, "")
        found, expected = (json.loads(run("gdalinfo", "-json", path)) for path in (target, source))
        for fact in ("coordinateSystem", "geoTransform", "size"):
            self.assertEqual(found[fact], expected[fact])
        self.assertEqual([band["noDataValue"] for band in found["bands"]], [7, 7, 7])
        run(MDFS, "image", "import", "--quiet", target, self.at("again"))
        self.assertEqual(os.getxattr(self.at("again"), "user.mdfs.meta.geotiff"),
                         os.getxattr(self.at("map"), "user.mdfs.meta.geotiff"))
        self.assertEqual(read_all(self.at("again")), PIXELS)
        self.assertIn("geotiff", self.send("map", "map.png")[1])

    @unittest.skipUnless(shutil.which("oiiotool"), "oiiotool is not installed")
    def test_windows_channels_and_time_code_of_exr_come_back(self):
        source = os.path.join(self.outside, "shot.exr")
        run("oiiotool", "--create", "32x24", "3", "--chnames", "diffuse.R,diffuse.G,diffuse.B", "-d", "half",
            "--origin", "+10+20", "--fullsize", "100x80+0+0", "--attrib:type=timecode", "smpte:TimeCode", "01:02:03:04",
            "-o", source)
        run(MDFS, "image", "import", "--quiet", source, self.at("shot"))
        header = json.loads(os.getxattr(self.at("shot"), "user.mdfs.meta.header"))
        self.assertEqual((header["data"], header["display"]), ([10, 20, 32, 24], [0, 0, 100, 80]))
        target, warnings = self.send("shot", "again.exr")
        self.assertEqual(warnings, "")
        text = run("oiiotool", "--info", "-v", target)
        for line in ("diffuse.R, diffuse.G, diffuse.B", "x=10, y=20", "100 x 80", "01:02:03:04"):
            self.assertIn(line, text)

    @unittest.skipUnless(shutil.which("oiiotool"), "oiiotool is not installed")
    def test_a_sequence_keeps_its_first_number_and_the_bits_of_its_samples(self):
        for frame in (1001, 1002):
            run("oiiotool", "--create", "32x24", "3", "-d", "uint10", "--attrib:type=timecode", "smpte:TimeCode",
                f"01:02:03:{frame - 1000:02}", "-o", os.path.join(self.outside, f"shot.{frame}.dpx"))
        run(MDFS, "image", "import", "--quiet", os.path.join(self.outside, "shot.%04d.dpx"), self.at("shot"))
        self.assertEqual(os.getxattr(self.at("shot"), "user.mdfs.meta.first_frame"), b"1001")
        self.assertEqual(os.getxattr(self.at("shot"), "user.mdfs.meta.bits"), b"10")
        _, warnings = self.send("shot", "again.%04d.dpx")
        self.assertEqual(warnings, "")
        texts = [run("oiiotool", "--info", "-v", os.path.join(self.outside, f"again.{frame}.dpx"))
                 for frame in (1001, 1002)]
        self.assertIn("01:02:03:01", texts[0])
        self.assertNotIn("01:02:03:01", texts[1])

    @unittest.skipUnless(shutil.which("oiiotool"), "oiiotool is not installed")
    def test_film_of_10_and_12_bits_is_exported_with_as_many_bits_and_the_same_samples(self):
        for bits in (10, 12):
            shot, source = f"film{bits}", os.path.join(self.outside, f"film{bits}.dpx")
            run("oiiotool", "--pattern", "fill:topleft=0,0.1,1:topright=1,0.2,0:bottomleft=0.5,1,0.3", "301x40", "3",
                "-d", f"uint{bits}", "-o", source)
            run(MDFS, "image", "import", "--quiet", source, self.at(shot))
            target, warnings = self.send(shot, f"again{bits}.dpx")
            self.assertEqual(warnings, "")
            self.assertEqual(os.path.getsize(target), os.path.getsize(source))
            self.assertIn(f"uint{bits}", run("oiiotool", "--info", "-v", target))
            run(MDFS, "image", "import", "--quiet", target, self.at(f"back{bits}"))
            self.assertEqual(read_all(self.at(f"back{bits}")), read_all(self.at(shot)))

            # A sample that was changed since is not cut.
            with open(self.at(shot), "r+b") as file:
                file.seek(301 * 3 * 2 * 7)
                file.write(b"\x01\x00")
            refused = subprocess.run([MDFS, "image", "export", self.at(shot), os.path.join(self.outside, "cut.dpx")],
                                     capture_output=True, text=True, check=False)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("row 7 has a sample of 1", refused.stderr)
            self.assertIn("--bits 16", refused.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.outside, "cut.dpx")))
            whole = os.path.join(self.outside, f"whole{bits}.dpx")
            run(MDFS, "image", "export", "--bits", "16", self.at(shot), whole)
            run(MDFS, "image", "import", "--quiet", whole, self.at(f"whole{bits}"))
            self.assertEqual(read_all(self.at(f"whole{bits}")), read_all(self.at(shot)))

    def test_a_number_of_bits_that_no_file_of_the_kind_holds_is_refused(self):
        self.bring("photo", png_file(), "png")
        for bits, target in (("10", "photo.dpx"), ("12", "photo.png"), ("16", "photo.raw"), ("11", "photo.dpx")):
            refused = subprocess.run([MDFS, "image", "export", "--bits", bits, self.at("photo"),
                                      os.path.join(self.outside, target)], capture_output=True, text=True, check=False)
            self.assertEqual(refused.returncode, 2, (bits, target))
            self.assertIn("--bits", refused.stderr)

    def test_a_copy_by_cp_keeps_the_metadata(self):
        self.bring("photo", png_file(icc_profile(3000)), "png")
        run("cp", "-a", self.at("photo"), self.at("copy"))
        self.assertEqual(os.getxattr(self.at("copy"), "user.mdfs.meta.icc"),
                         os.getxattr(self.at("photo"), "user.mdfs.meta.icc"))


if __name__ == "__main__":
    harness.main()
