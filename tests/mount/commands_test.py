"""Claims about `mdfs image`, `mdfs window` and `mdfs volume` on a mounted volume: what they do, print and refuse."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pty
import signal
import struct
import subprocess

import numpy

from harness import MDFS, MountTest, main, run


def mdfs(*words, data=None):
    done = subprocess.run([MDFS, *map(str, words)], input=data, capture_output=True)
    if done.returncode != 0:
        raise AssertionError(f"mdfs {words}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def as_json(*words):
    told = json.loads(mdfs(*words, "--json"))
    assert told["output_version"] == 1
    return told


def fields(value):
    """The names of all fields, at any depth."""
    if isinstance(value, list):
        return set().union(*map(fields, value))
    return set(value).union(*map(fields, value.values())) if isinstance(value, dict) else set()


def random_array(shape, dtype, seed=1):
    values = numpy.random.default_rng(seed).integers(0, 256, (*shape, numpy.dtype(dtype).itemsize), numpy.uint8)
    # Small numbers: nothing that is not a number, and something for zstd to do.
    return (values[..., 0] % 100).astype(dtype)


class Commands(MountTest):
    def test_import_of_every_type_and_rank_is_what_numpy_saved(self):
        for index, (shape, dtype) in enumerate([((1000,), "<f8"), ((300, 200), "|u1"), ((70, 80, 3), "<u2"),
                                                ((40, 50, 60), "<f4"), ((9, 50, 60, 4), "|i1"), ((33, 65), ">u4"),
                                                ((64, 64), "<f2"), ((30, 31), "<i8"), ((30, 31), "|b1")]):
            with self.subTest(shape=shape, dtype=dtype):
                array = random_array(shape, dtype, index)
                numpy.save(self.at("a.npy"), array)
                path = self.at(f"image{index}")
                mdfs("image", "import", self.at("a.npy"), path)
                little = array.astype(numpy.uint8) if dtype == "|b1" else array.astype(array.dtype.newbyteorder("<"))
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), little.tobytes())
                mdfs("image", "export", path, self.at("b.npy"), "--force")
                self.assertTrue(numpy.array_equal(numpy.load(self.at("b.npy")), little))

    def test_import_prints_what_was_chosen(self):
        numpy.save(self.at("a.npy"), numpy.zeros((100, 200, 3), numpy.uint8))
        told = as_json("image", "import", self.at("a.npy"), self.at("a"))
        self.assertEqual((told["axes"], told["shape"], told["channels"], told["type"], told["codec"]),
                         ("yx", [100, 200], 3, "u8", "zstd"))
        self.assertEqual(told["size_bytes"], 60000)
        self.assertLess(told["stored_bytes"], 60000)
        noise = numpy.random.default_rng(1).integers(0, 256, (300, 300), numpy.uint8)
        numpy.save(self.at("noise.npy"), noise)
        self.assertEqual(as_json("image", "import", self.at("noise.npy"), self.at("noise"))["codec"], "raw")

    def test_import_options_are_those_of_the_image(self):
        numpy.save(self.at("a.npy"), numpy.zeros((6, 100, 200), numpy.uint16))
        mdfs("image", "import", self.at("a.npy"), self.at("a"), "--axes", "tyx", "--spacing", "0.04s,0.2,0.2um",
             "--extent", "2x50x64", "--codec", "zstd:7", "--disks", "2")
        info = as_json("image", "info", self.at("a"))
        self.assertEqual((info["axes"], info["extent"], info["codec"], info["codec_level"], info["disks"]),
                         ("tyx", [2, 50, 64], "zstd", 7, 2))
        self.assertEqual((info["spacing"], info["unit"]), ([0.04, 0.2, 0.2], ["s", "um", "um"]))

    def test_spacing_becomes_the_resolution_of_pictures_and_comes_back(self):
        mdfs("image", "create", self.at("a"), "--shape", "3x20x30", "--spacing", "2,0.5,0.2um")
        try:
            mdfs("window", "read", self.at("a"), "z1", "-o", self.at("a.png"))
        except AssertionError as error:
            if "built without OpenImageIO" in str(error):
                self.skipTest("built without OpenImageIO")
            raise
        with open(self.at("a.png"), "rb") as file:
            png = file.read()
        self.assertEqual(struct.unpack_from(">IIB", png, png.index(b"pHYs") + 4), (5_000_000, 2_000_000, 1))
        told = mdfs("image", "export", self.at("a"), self.at("a.tif")).decode()
        self.assertEqual(told, f"{self.at('a.tif')}: axes zyx, shape 3x20x30, u8, 1.76 KiB of samples\n")
        with open(self.at("a.tif"), "rb") as file:
            tiff = file.read()
        first = struct.unpack_from("<I", tiff, 4)[0]
        tags = {}
        for i in range(struct.unpack_from("<H", tiff, first)[0]):
            tag, kind, count, value = struct.unpack_from("<HHII", tiff, first + 2 + 12 * i)
            tags[tag] = value if kind != 5 else struct.unpack_from("<II", tiff, value)
        self.assertEqual(tags[296] & 0xffff, 3, "per centimetre")
        self.assertAlmostEqual(tags[282][0] / tags[282][1], 50_000, delta=1)
        self.assertAlmostEqual(tags[283][0] / tags[283][1], 20_000, delta=1)

        for name, spacing, unit, text in [("a.tif", [0, 0.5, 0.2], ["", "um", "um"], "unknown, 0.5um, 0.2um"),
                                          ("a.png", [0.5, 0.2], ["um", "um"], "0.5um, 0.2um")]:
            told = mdfs("image", "import", self.at(name), self.at(f"of-{name}")).decode()
            self.assertIn(f" disks, spacing {text}, ", told)
            info = as_json("image", "info", self.at(f"of-{name}"))
            self.assertEqual((info["spacing"], info["unit"]), (spacing, unit))
            told = as_json("image", "import", self.at(name), self.at("b"), "--force")
            self.assertEqual((told["spacing"], told["unit"]), (spacing, unit))
        as_json("image", "import", self.at("a.png"), self.at("b"), "--force", "--spacing", "3mm,2mm")
        self.assertEqual(as_json("image", "info", self.at("b"))["spacing"], [3, 2])

    def test_raw_samples_and_sequences_are_imported_and_exported(self):
        array = random_array((5, 20, 30, 3), "<u2")
        with open(self.at("a.bin"), "wb") as file:
            file.write(array.tobytes())
        mdfs("image", "import", self.at("a.bin"), self.at("a"), "--shape", "5x20x30", "--channels", "3",
             "--type", "u16", "--axes", "tyxc")
        mdfs("image", "export", self.at("a"), self.at("frame.%03d.ppm"))
        self.assertEqual(sorted(n for n in os.listdir(self.dir) if n.startswith("frame.")),
                         [f"frame.{i:03}.ppm" for i in range(5)])
        told = as_json("image", "import", self.at("frame.%03d.ppm"), self.at("b"), "--frames", "1-3")
        self.assertEqual((told["axes"], told["shape"], told["channels"]), ("tyx", [3, 20, 30], 3))
        with open(self.at("b"), "rb") as file:
            self.assertEqual(file.read(), array[1:4].tobytes())
        self.assertEqual(mdfs("image", "export", self.at("a"), "-"), array.tobytes())

    def test_the_policy_of_an_image_is_kept_and_shown(self):
        self.assertEqual(as_json("volume", "status", self.dir)["policy"], "scatter")
        mdfs("image", "create", self.at("d"), "--shape", "100x100")
        self.assertEqual(as_json("image", "info", self.at("d"))["policy"], "default")
        for policy in ("scatter", "first", "near"):
            mdfs("image", "create", self.at(policy), "--shape", "100x100", "--policy", policy)
            self.assertEqual(as_json("image", "info", self.at(policy))["policy"], policy)
            with open(self.at(policy) + "@/info.json", encoding="utf-8") as file:
                self.assertEqual(json.load(file)["policy"], policy)
        done = subprocess.run([MDFS, "image", "create", self.at("bad"), "--shape", "9x9", "--policy", "last"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertIn("scatter, first or near", done.stderr)

    def test_created_images_are_zeros_and_take_no_room(self):
        mdfs("image", "create", self.at("a"), "--shape", "1000x1000x1000", "--type", "f32")
        info = as_json("image", "info", self.at("a"))
        self.assertEqual((info["size_bytes"], info["stored_bytes"], info["axes"]), (4 * 10**9, 0, "zyx"))
        self.assertEqual(as_json("image", "layout", self.at("a"))["extents"], [])
        self.assertEqual(mdfs("window", "read", self.at("a"), "z500,y7+2,x990+10"), bytes(80))

    def test_random_windows_are_read_and_written_as_numpy_says(self):
        shape = (60, 70, 80)
        array = random_array(shape, "<u2")
        numpy.save(self.at("a.npy"), array)
        mdfs("image", "import", self.at("a.npy"), self.at("a"), "--extent", "16x16x16")
        generator = numpy.random.default_rng(7)
        for _ in range(12):
            box = []
            for length in shape:
                start = int(generator.integers(0, length))
                box.append((start, int(generator.integers(1, length - start + 1))))
            where = tuple(slice(start, start + length) for start, length in box)
            spec = ",".join(f"{axis}{start}+{length}" for axis, (start, length) in zip("zyx", box))
            mdfs("window", "read", self.at("a"), spec, "-o", self.at("w.npy"), "--force")
            self.assertTrue(numpy.array_equal(numpy.load(self.at("w.npy")), array[where]), spec)
            array[where] = generator.integers(0, 65536, array[where].shape, numpy.uint16)
            if generator.integers(0, 2):
                mdfs("window", "write", self.at("a"), spec, "-", data=array[where].tobytes())
            else:
                numpy.save(self.at("n.npy"), array[where])
                mdfs("window", "write", self.at("a"), spec, self.at("n.npy"))
        with open(self.at("a"), "rb") as file:
            self.assertEqual(file.read(), array.tobytes())

    def test_layout_names_every_extent_once_and_adds_up(self):
        numpy.save(self.at("a.npy"), random_array((500, 700), "|u1"))
        mdfs("image", "import", self.at("a.npy"), self.at("a"), "--extent", "64x64", "--codec", "raw")
        layout = as_json("image", "layout", self.at("a"))
        self.assertEqual(sorted(tuple(extent["index"]) for extent in layout["extents"]),
                         [(row, column) for row in range(8) for column in range(11)])
        self.assertEqual(layout["block_size"], 4096)
        self.assertEqual({extent["stored_bytes"] for extent in layout["extents"]}, {64 * 64})
        for disk, stored in enumerate(layout["disks"]):
            self.assertEqual(stored, sum(e["stored_bytes"] for e in layout["extents"] if e["disk"] == disk))
        self.assertEqual(len({(e["disk"], e["block"]) for e in layout["extents"]}), 88)

    def test_layout_says_how_typical_windows_lie(self):
        numpy.save(self.at("a.npy"), random_array((640, 640), "|u1"))
        mdfs("image", "import", self.at("a.npy"), self.at("a"), "--extent", "64x64", "--codec", "raw")
        found = as_json("image", "layout", self.at("a"))["fragmentation"]
        self.assertEqual((found["extents"], found["misplaced"], found["scattered"]), (100, 0, 0))
        self.assertGreater(found["windows"], 100)
        self.assertAlmostEqual(found["factor"], found["runs_per_disk"] / found["fresh_runs_per_disk"], delta=0.001)
        self.assertLess(found["factor"], 1.2)
        self.assertGreaterEqual(found["runs_on_busiest"], found["runs_per_disk"])
        self.assertEqual(found["read_per_needed"], 1)
        whole = as_json("volume", "status", self.dir)["fragmentation"]
        self.assertGreaterEqual(whole["images"], 1)
        self.assertTrue(whole["complete"])
        self.assertGreaterEqual(whole["worst_factor"], found["factor"] - 0.001)
        self.assertIn("fragmentation", mdfs("image", "layout", self.at("a")).decode())

    def test_explain_counts_what_a_window_touches(self):
        numpy.save(self.at("a.npy"), random_array((512, 512), "|u1"))
        mdfs("image", "import", self.at("a.npy"), self.at("a"), "--extent", "64x64", "--codec", "raw")
        plan = as_json("window", "explain", self.at("a"), "y0+256,x0+256")
        self.assertEqual((plan["window"], plan["axes"], plan["shape"], plan["bytes"]),
                         ("y0+256,x0+256", "yx", [256, 256], 65536))
        self.assertEqual((plan["extents"], plan["holes"]), (16, 0))
        self.assertEqual(sum(disk["bytes"] for disk in plan["disks"]), 65536)
        self.assertEqual({disk["bytes"] for disk in plan["disks"]}, {16384})
        floor = as_json("window", "explain", self.at("a"), "y0+256,x0+256", "--rate", "16.384", "--iops", "1e9")
        self.assertAlmostEqual(floor["floor_ms"], 1.0)

    def test_status_tells_disks_and_space(self):
        status = as_json("volume", "status", self.dir)
        self.assertEqual(len(status["disks"]), 4)
        self.assertEqual({disk["state"] for disk in status["disks"]}, {"healthy"})
        self.assertLessEqual(status["available_blocks"], status["total_blocks"])
        self.assertGreater(status["cache"]["budget_bytes"], 0)
        self.assertFalse(status["read_only"])
        mdfs("volume", "sync", self.volume.path)

    def test_what_is_not_there_or_no_image_is_a_failure_and_not_a_wrong_use(self):
        with open(self.at("plain"), "wb") as file:
            file.write(b"words")
        mdfs("image", "create", self.at("a"), "--shape", "8x8")
        for words, code, command in (
                ("not found", 1, ("image", "info", self.at("none"))),
                ("not an image", 1, ("image", "info", self.at("plain"))),
                ("not an image", 1, ("window", "read", self.at("a@/info.json"), "y1")),
                ("is a directory", 1, ("image", "info", self.at("a@"))),
                ("not on a mounted", 1, ("image", "info", "/etc/passwd")),
                ("out of range", 2, ("window", "read", self.at("a"), "y8")),
                ("--frames '-1-3'", 2, ("image", "import", self.at("f%d.pgm"), self.at("f"), "--frames=-1-3"))):
            done = subprocess.run([MDFS, *command], capture_output=True, text=True)
            self.assertEqual((done.returncode, words in done.stderr), (code, True), (command, done.stderr))

    def test_a_terminal_shows_how_far_it_is(self):
        mdfs("image", "create", self.at("a"), "--shape", "3000x100000")
        mdfs("image", "create", self.at("b"), "--shape", "400x100000", "--codec", "raw")
        # A pipe that is not emptied, or not filled, for a second keeps the first piece.
        half = "head -c 20000000 /dev/zero"
        for bar, command in [("reading", f"{MDFS} window read {self.at('a')} all | (sleep 1; cat > /dev/null)"),
                             ("writing", f"({half}; sleep 1; {half}) | {MDFS} window write {self.at('b')} all -")]:
            told = []
            pty.spawn(["sh", "-c", command], lambda fd, told=told: told.append(os.read(fd, 1000)) or told[-1])
            self.assertIn(f"{bar} [", b"".join(told).decode())

    def test_samples_that_end_early_or_late_leave_the_window_as_it_was(self):
        # More than goes to the daemon at once.
        size = 300 * 100000
        data = bytes(range(250)) * (size // 250)
        mdfs("image", "create", self.at("a"), "--shape", "300x100000", "--codec", "raw")
        for wrong, words in [(data[:-1], "1 more bytes were expected"),
                             (data + b"x", f"more than the window's {size}")]:
            done = subprocess.run([MDFS, "window", "write", self.at("a"), "all", "-"], input=wrong, capture_output=True)
            self.assertEqual((done.returncode, words in done.stderr.decode()), (3, True), done.stderr)
            self.assertEqual(mdfs("window", "read", self.at("a"), "all"), bytes(size))
        mdfs("window", "write", self.at("a"), "all", "-", data=data)
        self.assertEqual(mdfs("window", "read", self.at("a"), "all"), data)

    def test_every_field_of_json_is_in_the_manual(self):
        numpy.save(self.at("a.npy"), random_array((100, 200), "|u1"))
        told = [as_json("image", "import", self.at("a.npy"), self.at("a"), "--codec", "zstd"),
                as_json("image", "info", self.at("a")), as_json("image", "layout", self.at("a")),
                as_json("window", "explain", self.at("a"), "y0+9", "--rate", "100", "--iops", "100"),
                as_json("volume", "status", self.dir)]
        with open(self.at("a@/info.json"), encoding="utf-8") as file:
            told.append(json.load(file))
        with open(os.path.join(os.path.dirname(__file__), "../../man/mdfs.1.scd"), encoding="utf-8") as file:
            manual = file.read().replace("\\", "")
        for field in sorted(set().union(*map(fields, told))):
            self.assertIn(f"_{field}_", manual)

    def test_usage_bad_data_and_other_failures_have_exit_codes_of_their_own(self):
        with open(self.at("cut.npy"), "wb") as file:
            file.write(b"\x93NUMPY\1\0")
        for code, command in ((2, ("image", "import", "--type", "u9", self.at("cut.npy"), self.at("new"))),
                              (2, ("image",)),
                              (3, ("image", "import", self.at("cut.npy"), self.at("new"))),
                              (1, ("image", "info", self.at("absent")))):
            done = subprocess.run([MDFS, *command], capture_output=True, check=False)
            self.assertEqual(done.returncode, code, (command, done.stderr))

    def refused(self, words, *command, data=None):
        before = sorted(os.listdir(self.dir))
        done = subprocess.run([MDFS, *map(str, command)], input=data, capture_output=True)
        line = done.stderr.decode().splitlines()
        self.assertIn(done.returncode, (1, 2, 3), command)
        self.assertTrue(line and line[0].startswith("mdfs: "), line)
        self.assertIn(words, line[0])
        self.assertLessEqual(len(line), 2, line)
        self.assertEqual(sorted(os.listdir(self.dir)), before, command)

    def test_nonsense_is_one_clear_line_and_changes_nothing(self):
        numpy.save(self.at("a.npy"), numpy.zeros((10, 20), numpy.uint8))
        mdfs("image", "import", self.at("a.npy"), self.at("a"))
        with open(self.at("cut.npy"), "wb") as file, open(self.at("a.npy"), "rb") as whole:
            file.write(whole.read()[:-1])
        a, new = self.at("a"), self.at("new")
        self.refused("truncated", "image", "import", self.at("cut.npy"), new)
        self.refused("already exists", "image", "import", self.at("a.npy"), a)
        self.refused("axes", "image", "import", self.at("a.npy"), new, "--axes", "zyx")
        self.refused("twice", "image", "import", self.at("a.npy"), new, "--axes", "yy")
        self.refused("the axis c excludes interleaved channels", "image", "create", new, "--shape", "7x8x9", "--axes",
                     "cyx", "--channels", "3")
        self.refused("codec", "image", "import", self.at("a.npy"), new, "--codec", "lzma")
        self.refused("codec", "image", "import", self.at("a.npy"), new, "--codec", "zstd:20")
        self.refused("extent", "image", "import", self.at("a.npy"), new, "--extent", "0x8")
        self.refused("extent", "image", "import", self.at("a.npy"), new, "--extent", "8x8x8")
        self.refused("", "image", "import", self.at("a.npy"), new, "--disks", "65")
        self.refused("none.npy", "image", "import", self.at("none.npy"), new)
        self.refused("not on", "image", "import", self.at("a.npy"), "/tmp/mdfs-test-new")
        self.refused("shape", "image", "create", new, "--shape", "10x0")
        self.refused("extents of 1x1, 1 bytes: must have 64 to 16777216 bytes", "image", "create", new, "--shape",
                     "100x100", "--extent", "1x1")
        self.refused("", "image", "create", new, "--shape", "9223372036854775808x2")
        self.refused("on 5 disks; the volume has 4", "image", "create", new, "--shape", "8x8", "--disks", "5")
        self.refused("--row-offset 4: must be less than the number of disks, 4", "image", "create", new, "--shape",
                     "8x8", "--row-offset", "4")
        self.refused("--plane-offset 9: must be less than the number of disks, 2", "image", "create", new, "--shape",
                     "8x8x8", "--disks", "2", "--plane-offset", "9")
        self.refused("--extent 2x2: extents of 2x2, 4 bytes", "image", "create", new, "--shape", "100x100", "--extent",
                     "2x2")
        self.refused(f"{a}: --window z99: ", "image", "layout", a, "--window", "z99", "--svg", self.at("a.svg"))
        self.refused("its disks are 0, 1, 2, 3", "disk", "remove", self.volume.path, "9")
        no = self.at("no")
        self.refused(f"not found: {no}/n: its directory {no}/", "image", "create", f"{no}/n", "--shape", "8x8")
        self.refused("end in @", "image", "create", new + "@", "--shape", "8x8")
        self.refused("end in @", "image", "import", self.at("a.npy"), new + "@")
        self.refused("more than 5 axes", "image", "create", new, "--shape", "1x2x3x4x5x6")
        self.refused("type", "image", "create", new, "--shape", "8x8", "--type", "u7")
        self.refused("channels", "image", "create", new, "--shape", "8x8", "--channels", "65536")
        self.refused("not an image", "image", "info", self.at("a.npy"))
        self.refused("not on", "image", "info", "/etc/passwd")
        self.refused("not found", "image", "info", new)
        self.refused("already exists", "image", "export", a, self.at("a.npy"))
        self.refused("jpg", "image", "create", self.at("no") + "/x.jpg", "--shape", "8x8")
        for spec in ("z1", "y10", "y0+11", "y-1", "y0+0", "y18446744073709551615+2", "x5,x6", "", "c1", "l9", "rubbish",
                     "1,2,3", "y5+18446744073709551615"):
            self.refused("", "window", "read", a, spec)
            self.refused("", "window", "explain", a, spec)
        many = self.at("many")
        mdfs("image", "create", many, "--shape", "4096x8192", "--extent", "8x8")
        self.refused(f"{many}: a window of more than 262144 extents", "window", "explain", many, "all")
        self.refused("more than", "window", "write", a, "y0,x0", "-", data=bytes(2))
        self.refused("truncated", "window", "write", a, "y0,x0+2", "-", data=bytes(1))
        self.refused("the window is", "window", "write", a, "y0+2,x0+2", self.at("a.npy"))
        self.refused("not on", "volume", "status", "/tmp")
        self.refused("no command 'nonsense'; there are create, import", "image", "nonsense")
        self.refused("a command is missing", "image")
        self.refused("no option '--verion'", "--verion")
        self.refused("no option '--all'", "image", "--all")
        self.refused("is a directory", "image", "info", self.dir)
        self.refused("not on a mounted MDFS volume", "umount", "/tmp")

    def test_commands_that_change_something_say_what_they_did(self):
        a = self.at("a")
        self.assertEqual(mdfs("image", "create", a, "--shape", "10x20", "--extent", "8x8").decode(),
                         f"{a}: axes yx, shape 10x20, 1 channel, u8, extents of 8x8, zstd:3, 4 disks\n")
        told = mdfs("window", "write", a, "y2+3,x5", "-", data=bytes(3)).decode()
        self.assertTrue(told.startswith(f"{a}: window ") and told.endswith(" replaced, 3 bytes\n"), told)
        self.refused(f"{a}: 9+5", "window", "read", a, "y9+5")

    def test_a_failed_import_leaves_no_file(self):
        self.refused("", "image", "import", "/dev/null", self.at("new"))
        # The first frame is good, the second is not: the failure comes in the middle of the copy.
        for name, size in (("f0.pgm", 64), ("f1.pgm", 65)):
            with open(self.at(name), "wb") as file:
                file.write(b"P5\n%d 64\n255\n" % size + bytes(64 * size))
        self.refused("f1.pgm", "image", "import", self.at("f%d.pgm"), self.at("new"))

    def test_formats_that_change_samples_are_refused(self):
        for name, shape, dtype in (("rgb", (21, 30, 3), "|u1"), ("grey", (21, 30), "<u2"), ("two", (21, 30, 2), "|u1")):
            numpy.save(self.at("a.npy"), random_array(shape, dtype))
            mdfs("image", "import", self.at("a.npy"), self.at(name))
        try:
            mdfs("image", "export", self.at("rgb"), self.at("a.png"))
        except AssertionError as error:
            if "built without OpenImageIO" in str(error):
                self.skipTest("built without OpenImageIO")
            raise
        for ending in ("gif", "webp", "heic", "ico", "hdr", "rla"):
            self.refused("not supported", "image", "export", self.at("rgb"), self.at("b." + ending))
        self.refused("dpx cannot hold 2 channels", "image", "export", self.at("two"), self.at("b.dpx"))
        for image, endings in (("rgb", ("bmp", "dpx", "sgi", "tga", "tif")), ("grey", ("dpx", "sgi", "tif", "png"))):
            with open(self.at(image), "rb") as file:
                samples = file.read()
            for ending in endings:
                mdfs("image", "export", self.at(image), self.at("c." + ending), "--force")
                mdfs("image", "import", self.at("c." + ending), self.at("back"), "--force")
                with open(self.at("back"), "rb") as file:
                    self.assertEqual(file.read(), samples, ending)

    def test_messages_name_what_the_user_named(self):
        numpy.save(self.at("a.npy"), numpy.zeros((8, 8), numpy.uint8))
        mdfs("image", "import", self.at("a.npy"), self.at("a"))
        os.mkdir(self.at("d"))
        self.refused(f"not found: {self.at('no/a.npy')}", "image", "export", self.at("a"), self.at("no/a.npy"))
        self.refused("is a directory", "image", "import", self.at("a.npy"), self.at("d"))
        self.refused("is a directory", "image", "import", self.at("a.npy"), self.at("d"), "--force")
        self.refused(f"to copy it, import {self.at('a@/a.npy')}", "image", "import", self.at("a"), self.at("b"))
        mdfs("image", "import", self.at("a@/a.npy"), self.at("b"))
        self.refused("SIZE 1K: disk 0 must have at least", "disk", "resize", self.dir, "0", "1K")
        self.refused("SIZE '99999999999999999999G': must be below", "disk", "resize", self.dir, "0",
                     "99999999999999999999G")

    def test_a_unit_without_a_known_meaning_is_kept_and_named(self):
        cases = [("1,1un", "un", ["un", "un"]), ("1parsec,2um", "parsec", ["parsec", "um"]), ("1,1", None, ["", ""]),
                 ("2s,0.5um", None, ["s", "um"])]
        for i, (spacing, noted, unit) in enumerate(cases):
            done = subprocess.run([MDFS, "image", "create", self.at(f"u{i}"), "--shape", "5x5", "--spacing", spacing],
                                  capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr.count("\n"), 0 if noted is None else 1, done.stderr)
            if noted is not None:
                self.assertRegex(done.stderr, f"--spacing: the unit {noted} is stored as it is; .* m, cm, mm, um, ")
            self.assertEqual(as_json("image", "info", self.at(f"u{i}"))["unit"], unit)

    def test_what_is_interrupted_leaves_no_file(self):
        mdfs("image", "create", self.at("zeros"), "--shape", "40000x40000")
        with open(self.at("large.npy"), "wb") as file:
            numpy.lib.format.write_array_header_1_0(
                file, {"descr": "|u1", "fortran_order": False, "shape": (40000, 40000)})
            file.truncate(file.tell() + 40000**2)
        before = sorted(os.listdir(self.dir))
        for number in (signal.SIGINT, signal.SIGTERM):
            for command in (("import", self.at("large.npy"), self.at("a")),
                            ("export", self.at("zeros"), self.at("a.raw"))):
                with subprocess.Popen([MDFS, "image", *command], stderr=subprocess.DEVNULL) as process:
                    while not any(name.startswith(".part-") for name in os.listdir(self.dir)):
                        self.assertIsNone(process.poll())
                    process.send_signal(number)
                self.assertEqual(process.returncode, -number)
                self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_pictures_pass_through_lossless_formats(self):
        array = random_array((90, 110, 3), "|u1")
        numpy.save(self.at("a.npy"), array)
        mdfs("image", "import", self.at("a.npy"), self.at("a"))
        try:
            mdfs("image", "export", self.at("a"), self.at("a.png"))
        except AssertionError as error:
            if "built without OpenImageIO" in str(error):
                self.skipTest("built without OpenImageIO")
            raise
        mdfs("image", "import", self.at("a.png"), self.at("b"))
        with open(self.at("b"), "rb") as file:
            self.assertEqual(file.read(), array.tobytes())
        run(MDFS, "window", "read", self.at("a"), "y5+20,x7+30", "-o", self.at("w.tif"))
        mdfs("image", "import", self.at("w.tif"), self.at("w"))
        with open(self.at("w"), "rb") as file:
            self.assertEqual(file.read(), array[5:25, 7:37].tobytes())


if __name__ == "__main__":
    main()
