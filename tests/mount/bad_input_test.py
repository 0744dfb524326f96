"""Nonsense to every command: exit code not 0, one clear line that names what is wrong, and nothing changed."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import struct
import tempfile
import unittest
import zlib

import numpy

from harness import MDFS, MDFS_SIM, MountTest, main, make_image, run, write_all
from refusing import Refusing, digest

HUGE = 2 ** 64 - 1
PNG_CHECKSUM = struct.pack(">I", zlib.crc32(b"IHDR" + bytes(13)))


def npy(descr="'<u2'", order="False", shape="(3, 4)", data=24, version=1, length=None):
    """An NPY file; `length` is what its header claims to be long."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", size) + text + bytes(data)


def tiff(pages=4, rows=8, columns=16, bits=8, photometric=1):
    """A TIFF stack, each directory before the samples of its page."""
    data, room = b"II*\0" + struct.pack("<I", 8), 2 + 9 * 12 + 4
    size = rows * columns * bits // 8
    for page in range(pages):
        at = len(data) + room
        fields = [(256, columns), (257, rows), (258, bits), (259, 1), (262, photometric), (273, at), (277, 1),
                  (278, rows), (279, size)]
        follows = at + size if page + 1 < pages else 0
        data += struct.pack("<H", 9) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in fields)
        data += struct.pack("<I", follows) + bytes([page + 1]) * size
    return data


def bad_files(folder):
    """Files that are no images; by name, with what the refusal says of each."""
    files = {
        "empty.npy": (b"", "empty.npy"),
        "magic.npy": (b"\x93NUMPY", "truncated"),
        "version.npy": (npy(version=4), "version 4"),
        "header.npy": (npy(length=60000), "truncated"),
        "long.npy": (npy(version=2, length=2 ** 32 - 1), "at most"),
        "garbage.npy": (b"\x93NUMPY\x01\x00\x10\x00" + b"\xff" * 16, "dictionary"),
        "complex.npy": (npy("'<c8'"), "<c8"),
        "object.npy": (npy("'|O'"), r"\|O"),
        "text.npy": (npy("'<U4'"), "<U4"),
        "struct.npy": (npy("[('a', '<u2')]"), "structured"),
        "fortran.npy": (npy(order="True"), "Fortran"),
        "order.npy": (npy(order="Maybe"), "fortran_order"),
        "scalar.npy": (npy(shape="()", data=2), "single number"),
        "rank.npy": (npy(shape="(1, 1, 1, 1, 1, 1, 1)", data=2), "dimensions"),
        "rank6.npy": (npy(shape="(2, 2, 2, 2, 2, 9)", data=576), "axes"),
        "negative.npy": (npy(shape="(-3, 4)"), "shape"),
        "2e63.npy": (npy(shape=f"({2 ** 63}, 1)"), "2e63.npy"),
        "2e64.npy": (npy(shape=f"({2 ** 64}, 1)"), "shape"),
        "product.npy": (npy(shape=f"({2 ** 33}, {2 ** 33})"), "product.npy"),
        "short.npy": (npy(data=23), "truncated"),
        "more.npy": (npy(data=25), "more"),
        "zero.npy": (npy(shape="(4, 0)", data=0), "zero.npy"),
        "zeros.npy": (npy(shape="(0, 0)", data=0), "zeros.npy"),
        "field.npy": (b"\x93NUMPY\x01\x00\x0b\x00{'what': 1}\n", "what"),
        "empty.pgm": (b"", "empty.pgm"),
        "letters.pgm": (b"P5", "letters.pgm"),
        "width.pgm": (b"P5\nx 3\n255\n", "width"),
        "zero.pgm": (b"P5\n0 3\n255\n", "width"),
        "large.pgm": (b"P5\n99999999999999999999 3\n255\n", "width"),
        "maximum.pgm": (b"P5\n3 3\n65536\n" + bytes(9), "maximum"),
        "nomaximum.pgm": (b"P5\n3 3\n", "maximum"),
        "short.pgm": (b"P5\n3 3\n255\n" + bytes(8), "truncated"),
        "more.pgm": (b"P5\n3 3\n255\n" + bytes(10), "more"),
        "ascii.pgm": (b"P2\n1 1\n255\n7\n", "P2"),
        "bits.pbm": (b"P4\n8 1\n\xff", "P4"),
        "huge.ppm": (b"P6\n2147483648 2147483648\n65535\n", "huge.ppm"),
        "garbage.tif": (b"II*\0" + b"\xff" * 64, "garbage.tif"),
        "short.tif": (b"II*\0\x08\0\0\0", "short.tif"),
        "stack.tif": (tiff()[:-1], "page 3: .*truncated"),
        "less.tif": (tiff()[:600], "page 2: .*truncated"),
        "strip.tif": (tiff(pages=1)[:200], "truncated"),
        "depth.tif": (tiff(bits=12, photometric=3), "depth.tif: page 0: .*BitsPerSample 12; allowed are 1 to 8 and 16"),
        "colours.tif": (tiff(photometric=3), "colours.tif: page 0: .*without ColorMap; it must have 768 values"),
        "half.png": (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + bytes(13) + PNG_CHECKSUM, "truncated"),
        "half.jpg": (b"\xff\xd8\xff\xda\0\x04headsamples", "truncated"),
        "half.gif": (b"GIF89a" + bytes(7) + b"," + bytes(9) + b"\x02\x04abcd", "truncated"),
        "garbage.png": (b"\x89PNG\r\n\x1a\n" + b"\xff" * 30, "garbage.png"),
        "garbage.jpg": (b"\xff\xd8\xff\xe0" + bytes(30), "garbage.jpg"),
        "garbage.exr": (b"\x76\x2f\x31\x01" + b"\xff" * 30, "garbage.exr"),
        "garbage.dpx": (b"SDPX" + b"\xff" * 2044, "garbage.dpx"),
        "nothing.bin": (b"", "nothing.bin"),
        "text.txt": (b"what is this\n", "text.txt"),
    }
    for name, (data, _) in files.items():
        write_all(os.path.join(folder, name), data)
    return {name: says for name, (_, says) in files.items()}


class Commands(Refusing, MountTest):
    """Commands on a mounted volume that holds something of each kind."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.inputs = tempfile.mkdtemp(prefix="mdfs-test-bad-")
        cls.files = bad_files(cls.inputs)
        v = cls.volume
        make_image(v / "scan", (20, 30), channels=3)
        write_all(v / "scan", bytes(range(200)) * 9)
        make_image(v / "stack", (5, 40, 50), element="u16")
        make_image(v / "line", (1000,), element="f64")
        make_image(v / "sparse", (2 ** 20, 2 ** 20, 3))
        write_all(v / "plain", b"not an image")
        write_all(v / "empty", b"")
        os.mkdir(v / "folder")
        os.symlink("nowhere", v / "dangling")
        os.symlink("loop", v / "loop")
        os.mkfifo(v / "pipe")
        numpy.save(os.path.join(cls.inputs, "good.npy"), numpy.zeros((20, 30, 3), numpy.uint8))

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.inputs)

    def unchanged(self):
        return digest(self.volume.path), sorted(os.listdir(self.inputs)), sorted(os.listdir(self.volume.folder))

    @property
    def made(self):
        return self.volume / "new", self.source("out.npy")

    def source(self, name):
        return os.path.join(self.inputs, name)

    def test_files_that_are_no_images(self):
        for name, says in self.files.items():
            self.refused(says, MDFS, "image", "import", self.source(name), self.volume / "new")
            if name.endswith(("npy", "pgm")) and not name.startswith("nothing"):
                self.refused("", MDFS, "window", "write", self.volume / "scan", "y0+3,x0+3", self.source(name))
        for name in ("/dev/null", "/", self.inputs, self.source("none"), self.volume / "pipe", self.volume / "loop",
                     self.volume / "dangling", "", "x" * 300, "shot.%04d.dpx", "%d%d.dpx", "%0999999999d.dpx", "%n.dpx",
                     self.source("%s.npy")):
            self.refused("", MDFS, "image", "import", name, self.volume / "new")

    def test_options_of_image_create(self):
        new = self.volume / "new"
        shapes = ("", "x", "10x0", "0x0", "5x0x5", "-1x5", "1x2x3x4x5x6", "1e3x4", "10X20", "10x", "x10", "10x20x",
                  " 10x20", "9223372036854775808x2", "18446744073709551616x1", "4294967296x4294967296", "0x10x0",
                  "1" * 400,
                  "4611686018427387905", "10,20")
        for shape in shapes:
            self.refused("shape", MDFS, "image", "create", new, "--shape=" + shape)
        for option, says, values in (
                ("--channels", "channels", ("0", "-1", "65536", "4294967297", "18446744073709551617", "x", "1.5", "")),
                ("--type", "type", ("", "u7", "U8", "u128", "f8", "complex", "uint8", "u8 ", "\x1b[31m")),
                ("--axes", "axes|axis", ("", "y", "yxz", "yy", "yc", "cc", "yl", "YX", "y1", "é", "y x", "yx" * 100)),
                ("--spacing", "spacing", ("", "x", "1", "1,2,3", "-1,2", "nan,1", "inf,1", "1e999,1", "1,,2", "1um,2,3",
                                          "1,2verylongunit", ",")),
                ("--extent", "extent", ("", "0x8", "8", "8x8x8", "-1x8", "4097x4097", "99999999999999999999x1", "8x",
                                        "4294967296x4294967296")),
                ("--codec", "codec", ("", "lzma", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd:x", "raw:1", "ZSTD",
                                      "zstd:99999999999999999999")),
                ("--disks", "disks", ("0", "5", "65", "-1", "x", "4294967297", "18446744073709551617")),
                ("--row-offset", "row.offset", ("-1", "x", "4294967296", "99999999999999999999")),
                ("--plane-offset", "plane.offset", ("-1", "x", "4294967296", "99999999999999999999")),
        ):
            for value in values:
                self.refused(says, MDFS, "image", "create", new, "--shape", "64x64", f"{option}={value}")
        self.refused("shape", MDFS, "image", "create", new)
        self.refused("nonsense", MDFS, "image", "create", new, "--shape", "8x8", "--nonsense")
        self.refused("", MDFS, "image", "create", new, "--shape", "8x8", "--shape", "9x9")
        self.refused("plane", MDFS, "image", "create", new, "--shape", "8x8", "--plane-offset", "1")

    def test_places_where_no_image_can_be_made(self):
        v = self.volume
        for path in (v / "plain", v / "empty", v / "folder", v / "scan", v / "dangling", v / "pipe", v / "loop", v.path,
                     v / "none/new", v / "plain/new", v / "new@", v / ".mdfs", v / ".mdfs/img/new", v / "scan@/new",
                     v / "scan@/win/y1.raw", v / ("n" * 256), v / ("d/" * 3000), "", "/", "/tmp/mdfs-test-new",
                     "/proc/new"):
            self.refused("", MDFS, "image", "create", path, "--shape", "8x8")
            self.refused("", MDFS, "image", "import", self.source("good.npy"), path)

    @unittest.skipUnless(shutil.which("oiiotool"), "makes the picture")
    def test_a_picture_of_several_parts_becomes_one_axis_only_where_that_is_asked_for(self):
        parts, new = self.source("parts.exr"), self.volume / "new"
        run("oiiotool", "--pattern", "noise", "20x30", "3", "--dup", "--siappend", "-d", "half", "-o", parts)
        self.addCleanup(os.unlink, parts)
        self.refused("2 parts.*--flatten", MDFS, "image", "import", parts, new)
        self.refused("--flatten", MDFS, "image", "import", "shot.%04d.dpx", new, "--flatten")
        for words, shape in ((("--flatten",), [2, 30, 20]), (("--page", "1"), [30, 20])):
            told = json.loads(run(MDFS, "image", "import", "--json", "--quiet", *words, parts, new))
            self.assertEqual(told["shape"], shape)
            os.unlink(new)

    @unittest.skipUnless(shutil.which("maketx"), "makes the picture")
    def test_of_a_pyramid_the_largest_level_is_an_image(self):
        plain, pyramid, new = self.source("plain.tif"), self.source("pyramid.tif"), self.volume / "new"
        run("oiiotool", "--pattern", "noise", "64x64", "3", "-d", "uint8", "-o", plain)
        run("maketx", "--opaque-detect", plain, "-o", pyramid)
        self.addCleanup(os.unlink, plain)
        self.addCleanup(os.unlink, pyramid)
        self.refused("a pyramid of 7 levels; select the largest with --page 0", MDFS, "image", "import", pyramid, new)
        told = json.loads(run(MDFS, "image", "import", "--json", "--quiet", "--page", "0", pyramid, new))
        self.assertEqual(told["shape"], [64, 64])
        os.unlink(new)

    def test_options_of_image_import(self):
        new, good = self.volume / "new", self.source("good.npy")
        for says, words in (
                ("type", ("--shape", "20x30")), ("shape", ("--type", "u8")), ("", ("--channels", "3")),
                ("frames", ("--frames", "1-2")), ("frames", ("--frames", "2-1")), ("frames", ("--frames", "x")),
                ("frames", ("--frames", "0-18446744073709551615")), ("page", ("--page", "7")), ("page", ("--page",
                                                                                                         "-1")),
                ("page", ("--page", "99999999999999999999")), ("axes", ("--axes", "zyxc")), ("axes", ("--axes", "ylx")),
                ("codec", ("--codec", "gzip")), ("extent", ("--extent", "1x2x3")), ("spacing", ("--spacing", "1,2,3"))):
            self.refused(says, MDFS, "image", "import", good, new, *words)
        raw = self.source("text.txt")
        for says, words in (("", ("--shape", "3x4", "--type", "u8")), ("shape", ("--shape", "0x4", "--type", "u8")),
                            ("shape", ("--shape", "13x0", "--type", "u8")), ("type", ("--shape", "13", "--type", "u9")),
                            ("", ("--shape", "9223372036854775808x2", "--type", "f64")),
                            ("channels", ("--shape", "13", "--type", "u8", "--channels", "0")),
                            ("channels", ("--shape", "13", "--type", "u8", "--channels", "70000"))):
            self.refused(says, MDFS, "image", "import", raw, new, *words)

    def test_windows_that_do_not_exist(self):
        v = self.volume
        specs = ["", ",", "y", "y+", "y5+", "+5", "y-1", "y0-5", "y0+0", "y20", "y0+21", "y19+2", "z1", "q1", "c3",
                 "c-1",
                 "c0+1", "l99", "y1,y2", "y1,,x1", "y1 ,x1", "y 1", "Y1", "1", "1,2", "1,2,3", "0,0,0,5",
                 "0,0,31,5", "-1,0,5,5", "1,2,3,4,5", "y0x1", "y0x10+5", "y1.5", "y1e1", "y\n1", "y1\x1b[31m", "%n%s",
                 "../scan",
                 "y18446744073709551615", "y18446744073709551616", "y1+18446744073709551615", "x" * 5000,
                 "y" + "9" * 4000, ",".join(["y1"] * 1000), "y1+1,x1+1,c1,", "\u00fc1"]
        for spec in specs:
            for verb in ("read", "explain"):
                self.refused("", MDFS, "window", verb, v / "scan", "--", spec)
            self.refused("", MDFS, "window", "write", v / "scan", "--", spec, "-", data=b"x")
        for path in (v / "plain", v / "empty", v / "folder", v / "none", v / "dangling", v / "loop", v / "pipe",
                     v.path, "/tmp",
                     "/etc/passwd", "", v / "scan@/info.json", v / "scan@/win/y1.raw", v / "scan@"):
            for words in (("window", "read", path, "y1"), ("window", "explain", path, "y1"), ("image", "info", path),
                          ("image", "layout", path), ("image", "export", path, self.source("out.npy"))):
                self.refused("", MDFS, *words)
            self.refused("", MDFS, "window", "write", path, "y1", "-", data=b"x")

    def test_what_cannot_be_written_or_exported(self):
        v, scan = self.volume, self.volume / "scan"
        self.refused("", MDFS, "window", "write", scan, "y0,x0", "-", data=b"")
        self.refused("", MDFS, "window", "write", scan, "y0,x0", "-", data=bytes(4))
        self.refused("", MDFS, "window", "write", scan, "y0+20,x0+29", self.source("good.npy"))
        self.refused("", MDFS, "window", "write", v / "stack", "z0", self.source("good.npy"))
        self.refused("", MDFS, "window", "write", scan, "y0", self.source("none.npy"))
        for out in ("/", "/none/out.npy", self.source("out.xyz"), self.source("out"), "", self.source("good.npy"),
                    self.source("f%d.npy") + "%d", self.inputs, self.source("o" * 300 + ".npy"), "/proc/out.raw"):
            self.refused("", MDFS, "image", "export", scan, out)
            self.refused("", MDFS, "window", "read", scan, "y1", "-o", out)
        self.refused("", MDFS, "image", "export", scan, self.source("out.pgm"))
        self.refused("", MDFS, "image", "export", v / "stack", self.source("out.pgm"))
        self.refused("", MDFS, "image", "export", v / "line", self.source("out.ppm"))
        for option, value in (("--rate", "0"), ("--rate", "-1"), ("--rate", "nan"), ("--rate", "x"), ("--iops", "0"),
                              ("--iops", "-5"), ("--iops", "inf")):
            self.refused(option[2:], MDFS, "window", "explain", scan, "y1", f"{option}={value}")

    def test_commands_that_do_not_exist_and_places_that_are_no_mounts(self):
        for words in (("nonsense",), ("image",), ("image", "nonsense"), ("window",), ("volume", "x"), ("--nonsense",),
                      ("",),
                      ("image", "info"), ("image", "info", self.volume / "scan", "more"), ("volume", "status"),
                      ("volume", "status", "/tmp"), ("volume", "status", "/none"), ("volume", "sync", "/tmp"),
                      ("volume", "sync", ""), ("umount",), ("umount", "/tmp"), ("umount", "/none"), ("umount", ""),
                      ("umount", self.volume / "folder"), ("umount", self.volume / "plain"), ("mount",), ("mount", "x"),
                      ("volume", "status", "x" * 5000)):
            self.refused("", MDFS, *words)

    def test_an_axis_of_no_length_can_only_be_the_slowest(self):
        for shape, axes in (("0", "x"), ("0x5", "yx"), ("0x5x6", "zyx")):
            path = self.volume / "growing"
            run(MDFS, "image", "create", path, "--shape", shape)
            self.assertEqual(os.path.getsize(path), 0)
            slab = numpy.prod([int(n) for n in shape.split("x")[1:]], dtype=int)
            write_all(path, b"\7" * (2 * int(slab)))
            self.assertRegex(run(MDFS, "image", "info", path), f"shape +{shape.replace('0', '2', 1)}\n")
            os.unlink(path)
        for shape in ((0,), (0, 5), (0, 5, 6), (0, 5, 3)):
            array = numpy.zeros(shape, numpy.uint16)
            numpy.save(self.source("none.npy"), array)
            path = self.volume / "growing"
            run(MDFS, "image", "import", self.source("none.npy"), path)
            run(MDFS, "image", "export", path, self.source("back.npy"))
            self.assertEqual(numpy.load(self.source("back.npy")).shape, shape)
            self.refused("no rows|empty|outside|0", MDFS, "window", "read", path, f"{'zyx'[-min(len(shape), 2)]}0")
            for name in (path, self.source("none.npy"), self.source("back.npy")):
                os.unlink(name)


class Simulator(Refusing, MountTest):
    """mdfs-sim, without a mount."""

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="mdfs-test-bad-")
        self.addCleanup(shutil.rmtree, self.dir)

    def unchanged(self):
        return digest(self.dir)

    def test_traces_and_windows(self):
        for name, text in (("empty", b""), ("garbage", bytes(range(256))), ("time", b"-1 y1\n"), ("nan", b"nan y1\n"),
                           ("infinite", b"1e999 y1\n"), ("window", b"0 q1\n"), ("range",
                                                                                b"0 @18446744073709551615+2\n"),
                           ("image", b"image 1 axes=yx shape=0x0 extent=0x0 bytes=0 base=0\n0 y1 object=1\n"),
                           ("large", b"image 1 axes=yx shape=99999999999x99999999999 extent=1x1 bytes=65535 base=0\n"),
                           ("object", b"0 y1 object=7\n0 y1 object=99999999999999999999\n")):
            write_all(self.at(name), text)
            self.refused("", MDFS_SIM, "replay", "fixed-server", self.at(name))
        for words in (("nonsense",), ("window",), ("replay", "fixed-server", "/none"), ("replay", "none", "/none"),
                      ("calibrate", "/none"), ("machine", "none"), ("--nonsense",)):
            self.refused("", MDFS_SIM, *words)


if __name__ == "__main__":
    main()
