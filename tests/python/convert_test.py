"""Claims about conversions that hold for every format, on a made-up one: no other package is needed."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import errno
import io
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import harness  # noqa: E402

import mdfs  # noqa: E402
from mdfs._convert import command, copying, formats, pending  # noqa: E402
from mdfs._convert.attributes import fitting, packed, plain, unpacked  # noqa: E402
from mdfs._convert.source import Picked, Source, choices, letters  # noqa: E402


class Numbers(Source):
    """The source of these tests: an NPY file, whose name ends in its axes."""

    def __init__(self, path):
        array = np.load(path, mmap_mode="r")
        super().__init__(path, "NPY", array.shape, array.dtype, path.rsplit(".", 1)[1], array.shape, {"x": (0.5, "um")},
                         {"channel_names": list("abcdefgh"[:array.shape[1]])} if path.endswith(".tczyx") else {})
        self.array, self.broken = array, os.path.exists(f"{path}.broken")

    def read(self, place):
        if self.broken and place[0].stop == self.shape[0]:
            raise RuntimeError("bad block")
        return self.array[place]

    def finish(self):
        if os.path.exists(f"{self.path}.bad-end"):
            raise EOFError("no end")


def stored(path, array):
    with open(path, "wb") as file:
        np.save(file, array)
    return path


opened = mock.patch.object(formats, "open_source", lambda path, dataset, allow: Numbers(path))


class PickedTest(unittest.TestCase):
    def source(self, array, axes):
        found = Source("a", "", array.shape, array.dtype, axes, array.shape)
        found.read = lambda place: array[place]
        return found

    def test_boxes_of_a_choice_are_what_numpy_selects(self):
        rng = random.Random(1)
        for _ in range(500):
            axes = "".join(rng.sample("tczyxq", rng.randrange(1, 7)))
            shape = tuple(rng.randrange(1, 6) for _ in axes)
            array = np.arange(math.prod(shape), dtype=rng.choice(["<u4", ">i8", "<f4"])).reshape(shape)
            chosen, index = {}, []
            for axis, length in zip(axes, shape):
                first = rng.randrange(length)
                choice = rng.choice([None, first, slice(first, rng.randrange(first, length) + 1)])
                if choice is not None:
                    chosen[axis] = choice
                index.append(slice(None) if choice is None else choice)
            wanted = array[tuple(index)]
            left = [axis for axis in axes if not isinstance(chosen.get(axis), int)]
            try:
                picked = Picked(self.source(array, axes), chosen)
            except ValueError:
                self.assertTrue(not left or left == ["c"], (axes, chosen))
                continue
            if "c" in left:
                wanted = np.moveaxis(wanted, left.index("c"), -1)
            whole = picked.read(tuple(slice(0, length) for length in picked.shape))
            self.assertEqual(whole.dtype.byteorder, "=")
            np.testing.assert_array_equal(whole.reshape(-1), wanted.reshape(-1))
            place = tuple(slice(rng.randrange(length), length) for length in picked.shape)
            np.testing.assert_array_equal(picked.read(place), whole[place])

    def test_five_axes_and_channels_are_an_image_and_six_axes_are_not(self):
        picked = Picked(self.source(np.zeros((2, 3, 2, 4, 5, 6)), "tsczyx"), {})
        self.assertEqual((picked.axes, picked.shape), ("tszyxc", (2, 3, 4, 5, 6, 2)))
        with self.assertRaisesRegex(ValueError, "at most 5"):
            Picked(self.source(np.zeros((2, 2, 2, 4, 5, 6)), "tsqzyx"), {})

    def test_axes_of_one_place_are_left_out_where_there_are_many(self):
        picked = Picked(self.source(np.zeros((1, 2, 1, 3, 4, 5)), "tqczyx"), {"q": 0})
        self.assertEqual((picked.axes, picked.shape), ("zyx", (3, 4, 5)))
        self.assertEqual(Picked(self.source(np.zeros((1, 4, 5)), "tyx"), {}).axes, "tyx")

    def test_choices_are_parsed_or_refused(self):
        self.assertEqual(choices("c=0,t=3, z=10:20"), {"c": 0, "t": 3, "z": slice(10, 20)})
        self.assertEqual(choices("z=:4,y=2:"), {"z": slice(None, 4), "y": slice(2, None)})
        for wrong in ("", "t", "t=", "t=a", "t=-1", "tt=1", "t=1=2", "t=1:2:3", "=1", "t=1,,z=2", "t=\u00b2"):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(ValueError, "AXIS=PLACE"):
                choices(wrong)

    def test_axes_have_a_letter_each(self):
        for names, wanted in ((["time", "channel", "z", "y", "x"], "tczyx"), (["", "", ""], "zyx"),
                              (["Y", "X", "S"], "yxc"), (["I", "Y", "X"], "zyx"), (["C", "Y", "X", "S"], "cyxz"),
                              (["Q", "Z", "Y", "X"], "tzyx"), (["a", "a", "a"], "ayx"), (["\u00b5", "1", ""], "zyx")):
            with self.subTest(names=names):
                self.assertEqual(letters(names), wanted)

    def test_boxes_of_a_copy_are_bounded(self):
        rng = np.random.default_rng(1)
        for _ in range(300):
            shape, chunks, extent = (rng.integers(1, most, 3).tolist() for most in (5000, 300, 100))
            box = copying.box_of(shape, chunks, extent, 2)
            self.assertLessEqual(math.prod(box) * 2, max(copying.BOX_BYTES, math.prod(chunks) * 2))


class AttributesTest(unittest.TestCase):
    def test_long_texts_come_back(self):
        for text in ("a", "\u00b5" * 100000):
            self.assertEqual(unpacked(packed(text)), text)
        self.assertLess(len(str(packed("<Plane/>" * 50000))), 10000)

    def test_values_of_other_libraries_become_plain(self):
        self.assertEqual(plain({"a": np.float32(2), 3: (np.arange(2), b"b"), "c": float("nan"), "d": None}),
                         {"a": 2.0, "3": [[0, 1], "b"], "c": "nan", "d": None})

    def test_what_has_no_room_is_named(self):
        with self.assertWarnsRegex(UserWarning, "'long' of 70002 bytes is not kept"):
            self.assertEqual(fitting({"long": "x" * 70000, "short": 1}), {"short": 1})


class PendingFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.target = folder.name, os.path.join(folder.name, "a.h5")

    def test_a_file_and_a_folder_get_their_names_at_the_end(self):
        with pending.PendingFile(self.target, False) as file:
            harness.write_all(file.part, b"abc")
            self.assertTrue(all(name.startswith(".part-") for name in os.listdir(self.folder)))
            file.finish()
        with pending.PendingFile(f"{self.folder}/b.zarr", False) as file:
            os.makedirs(f"{file.part}/c/0")
            harness.write_all(f"{file.part}/c/0/1", b"abc")
            file.finish()
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.h5", "b.zarr"])
        self.assertEqual(harness.read_all(f"{self.folder}/b.zarr/c/0/1"), b"abc")

    def test_what_fails_and_what_a_killed_program_left_is_removed(self):
        os.makedirs(os.path.join(pending.hidden_name(self.target), "a.h5", "deep"))
        harness.write_all(os.path.join(pending.hidden_name(self.target), "other"), b"abc")
        with self.assertRaisesRegex(ValueError, "bad"), pending.PendingFile(self.target, False) as file:
            self.assertEqual(os.listdir(os.path.dirname(file.part)), [])
            harness.write_all(file.part, b"abc")
            raise ValueError("bad")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_that_appears_meanwhile_is_not_replaced(self):
        with self.assertRaises(FileExistsError), pending.PendingFile(self.target, False) as file:
            harness.write_all(file.part, b"abc")
            harness.write_all(self.target, b"mine")
            file.finish()
        self.assertEqual((os.listdir(self.folder), harness.read_all(self.target)), (["a.h5"], b"mine"))

    def test_two_conversions_to_one_file_do_not_meet(self):
        with pending.PendingFile(self.target, False) as file:
            harness.write_all(file.part, b"abc")
            with self.assertRaisesRegex(BlockingIOError, "another conversion"), pending.PendingFile(self.target, False):
                pass
            self.assertEqual(harness.read_all(file.part), b"abc")

    def test_what_others_put_under_the_hidden_name_is_left_alone(self):
        os.mkdir(os.path.join(self.folder, "theirs"))
        harness.write_all(os.path.join(self.folder, "theirs", "a.h5"), b"theirs")
        os.symlink("theirs", pending.hidden_name(self.target))
        with self.assertRaises(PermissionError), pending.PendingFile(self.target, False):
            pass
        self.assertEqual(harness.read_all(os.path.join(self.folder, "theirs", "a.h5")), b"theirs")


@opened
class ConvertTest(harness.MountTest):
    def setUp(self):
        super().setUp()
        self.outside = os.path.join(self.volume.folder, self.id().rsplit(".", 1)[-1])
        os.mkdir(self.outside)

    def source(self, axes, shape, dtype=">u2"):
        array = np.random.default_rng(1).integers(0, 200, shape).astype(dtype)
        return stored(os.path.join(self.outside, f"source.{axes}"), array), array

    def refuses(self, error, words, *arguments, **options):
        with self.assertRaisesRegex(error, words):
            mdfs.convert(*arguments, **options)
        self.assertEqual(os.listdir(self.dir), [])

    def test_samples_axes_and_spacing_arrive(self):
        path, array = self.source("tczyx", (2, 3, 4, 50, 60))
        seen = []
        mdfs.convert(path, self.at("a"), select="t=1", progress=lambda done, total: seen.append((done, total)))
        image = mdfs.open(self.at("a"))
        np.testing.assert_array_equal(image[...], np.moveaxis(array[1], 0, -1))
        self.assertEqual((image.axes, image.spacing, image.attrs["channel_names"]),
                         ("zyxc", {"x": (0.5, "um")}, ["a", "b", "c"]))
        self.assertEqual(seen[-1], (2 * image.size, 2 * image.size))
        mdfs.convert(path, self.at("b"), select={"t": 0, "c": 2}, axes="tcqyx", codec="raw",
                     extent=(2, 16, 16), verify=False)
        np.testing.assert_array_equal(mdfs.imread(self.at("b")), array[0, 2])
        self.assertEqual((mdfs.open(self.at("b")).axes, mdfs.open(self.at("b")).codec), ("qyx", "raw"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["a", "b"])

    def test_levels_of_the_image_are_stored(self):
        path, array = self.source("yx", (300, 500))
        mdfs.convert(path, self.at("a"), levels="auto", extent=(64, 64), reduce="nearest")
        image = mdfs.open(self.at("a"))
        self.assertEqual((image.levels[1:], image.reduction), (((150, 250), (75, 125), (38, 63)), "nearest"))
        np.testing.assert_array_equal(image.level(2)[...], array[::4, ::4])
        self.assertEqual(command.main([path, self.at("b"), "--levels", "1", "--quiet"]), 0)
        self.assertEqual(len(mdfs.open(self.at("b")).levels), 2)
        os.unlink(self.at("a"))
        os.unlink(self.at("b"))
        self.refuses(ValueError, "/a: the image has fewer levels", path, self.at("a"), levels=30)
        self.refuses(ValueError, "store some", path, self.at("a"), reduce="max")
        self.refuses(ValueError, "must be one of mean, nearest, max", path, self.at("a"), levels=1, reduce="median")

    def test_damage_leaves_nothing(self):
        path, _ = self.source("zyx", (40, 500, 500))
        with mock.patch.object(copying, "BOX_BYTES", 1 << 20):
            harness.write_all(f"{path}.broken", b"")
            self.refuses(ValueError, "source.zyx: damaged, samples at z=.*bad block", path, self.at("a"))
            os.unlink(f"{path}.broken")
            harness.write_all(f"{path}.bad-end", b"")
            self.refuses(ValueError, "source.zyx: damaged: no end", path, self.at("a"))

    def test_a_target_with_other_samples_is_found_out(self):
        path, _ = self.source("yx", (50, 50))
        with mock.patch.object(mdfs.Image, "__setitem__", lambda *rest: None):
            self.refuses(OSError, "samples of the image differ from those of .*source.yx", path, self.at("a"))

    def test_a_write_that_fails_leaves_nothing(self):
        path, _ = self.source("yx", (50, 50))
        with mock.patch.object(mdfs.Image, "__setitem__", side_effect=OSError(errno.ENOSPC, "no space")):
            self.refuses(OSError, "no space", path, self.at("a"))

    def test_an_interrupted_conversion_is_continued(self):
        path, array = self.source("zyx", (40, 500, 500))

        def stop(done, total):
            if done > total * 0.3:
                raise KeyboardInterrupt
        with mock.patch.object(copying, "BOX_BYTES", 1 << 20), mock.patch.object(copying, "KEPT_EVERY", 1):
            with self.assertRaises(KeyboardInterrupt):
                mdfs.convert(path, self.at("a"), progress=stop)
            self.assertEqual([name[:6] for name in os.listdir(self.dir)], [".part-"])
            for options in ({"codec": "raw"}, {"select": "z=1"}):
                with self.assertRaisesRegex(ValueError, "another source or other options"):
                    mdfs.convert(path, self.at("a"), resume=True, **options)
            seen = []
            mdfs.convert(path, self.at("a"), resume=True, progress=lambda done, total: seen.append(done / total))
        self.assertGreater(seen[0], 0.3)
        np.testing.assert_array_equal(mdfs.imread(self.at("a")), array)
        self.assertEqual(os.listdir(self.dir), ["a"])

    def test_a_source_that_changed_is_not_continued(self):
        path, _ = self.source("yx", (500, 500))
        with self.assertRaises(KeyboardInterrupt):
            mdfs.convert(path, self.at("a"), progress=mock.Mock(side_effect=KeyboardInterrupt))
        os.utime(path, ns=(1, 1))
        with self.assertRaisesRegex(ValueError, "has changed"):
            mdfs.convert(path, self.at("a"), resume=True)
        mdfs.convert(path, self.at("a"))
        self.assertEqual(os.listdir(self.dir), ["a"])

    def test_existing_files_are_replaced_by_complete_ones_only(self):
        path, array = self.source("yx", (50, 50))
        harness.write_all(self.at("a"), b"mine")
        with self.assertRaisesRegex(FileExistsError, "overwrite"):
            mdfs.convert(path, self.at("a"))
        with mock.patch.object(mdfs.Image, "__setitem__", lambda *rest: None), self.assertRaises(OSError):
            mdfs.convert(path, self.at("a"), overwrite=True)
        self.assertEqual(harness.read_all(self.at("a")), b"mine")
        mdfs.convert(path, self.at("a"), overwrite=True)
        np.testing.assert_array_equal(mdfs.imread(self.at("a")), array)

    def test_a_target_that_appears_meanwhile_is_not_replaced(self):
        path, _ = self.source("yx", (50, 50))
        with self.assertRaises(FileExistsError):
            mdfs.convert(path, self.at("a"), progress=lambda done, total: harness.write_all(self.at("a"), b"mine"))
        self.assertEqual((os.listdir(self.dir), harness.read_all(self.at("a"))), (["a"], b"mine"))

    def test_a_file_of_another_user_under_the_hidden_name_is_left_alone(self):
        path, _ = self.source("yx", (50, 50))
        part = pending.hidden_name(self.at("a"))
        os.symlink(self.at("elsewhere"), part)
        with self.assertRaises(PermissionError):
            mdfs.convert(path, self.at("a"))
        os.unlink(part)
        harness.write_all(part, b"theirs")
        os.chown(part, 12345, 12345)
        with self.assertRaises(PermissionError):
            mdfs.convert(path, self.at("a"))
        self.assertEqual(harness.read_all(part), b"theirs")

    def test_mistakes_are_named_with_what_is_allowed(self):
        path, _ = self.source("tzyx", (3, 4, 50, 60))
        many, _ = self.source("rqtzyx", (2, 2, 3, 4, 5, 6))
        os.mkdir(self.at("folder"))
        for error, words, arguments, options in (
                (ValueError, "r=2, q=2, .*; an image has at most 5.*--select r=0", (many, self.at("a")), {}),
                (IndexError, "t=3: axis t has the places 0 to 2", (path, self.at("a")), {"select": "t=3"}),
                (IndexError, "z=2:9.*0 to 3", (path, self.at("a")), {"select": "z=2:9"}),
                (TypeError, "neither", (path, self.at("a")), {"select": {"t": 1.5}}),
                (TypeError, "neither", (path, self.at("a")), {"select": {"t": True}}),
                (ValueError, "'q'.*axes t=3", (path, self.at("a")), {"select": "q=0"}),
                (ValueError, "4 different lower-case", (path, self.at("a")), {"axes": "zyx"}),
                (ValueError, "single sample", (path, self.at("a")), {"select": "t=0,z=0,y=0,x=0"}),
                (ValueError, "end in @", (path, self.at("a@")), {}),
                (IsADirectoryError, "", (path, self.at("folder")), {}),
                (FileNotFoundError, "none", (os.path.join(self.outside, "none"), self.at("a")), {}),
                (FileNotFoundError, "", (path, self.at("none", "a")), {"select": "t=0"}),
                (OSError, "", (path, os.path.join(self.outside, "a")), {"select": "t=0"})):
            with self.subTest(words=words):
                with self.assertRaisesRegex(error, words):
                    mdfs.convert(*arguments, **options)
                self.assertEqual(os.listdir(self.dir), ["folder"])
                self.assertEqual(sorted(os.listdir(self.outside)), ["source.rqtzyx", "source.tzyx"])

    def test_the_command_says_what_is_wrong_in_one_line(self):
        path, array = self.source("yx", (50, 50))
        for words, status, said in (([path, self.at("a"), "--quiet"], 0, ""), ([path, self.at("a")], 1, "overwrite"),
                                    ([path, self.at("b"), "--select", "y"], 2, "AXIS"),
                                    ([path, self.at("b"), "--extent", "4,x"], 2, "lengths"), ([path], 2, "TARGET"),
                                    ([path, self.at("b"), "--levels", "-1"], 2, "auto or a number"),
                                    ([path, self.at("b"), "--reduce", "median"], 2, "nearest"),
                                    ([path, self.at("b"), "--select", "y=77"], 1, "0 to 49")):
            errors = io.StringIO()
            with self.subTest(words=words), contextlib.redirect_stderr(errors):
                try:
                    self.assertEqual(command.main([str(word) for word in words]), status)
                except SystemExit as end:
                    self.assertEqual(end.code, status)
                self.assertIn(said, errors.getvalue())
                if status == 1:
                    self.assertEqual(errors.getvalue().count("\n"), 1)
        np.testing.assert_array_equal(mdfs.imread(self.at("a")), array)


class FormatsTest(harness.MountTest):
    def test_files_of_no_known_format_are_refused_with_what_is_read(self):
        outside = os.path.join(self.volume.folder, "text")
        for data in (b"", b"hello", bytes(600)):
            harness.write_all(outside, data)
            with self.assertRaisesRegex(ValueError, "text: not a format that is read: OME-TIFF.*mdfs image import"):
                mdfs.convert(outside, self.at("a"))
        harness.write_all(outside, b"II*\0" + bytes(20))
        with mock.patch.dict(sys.modules, {"tifffile": None}):
            with self.assertRaisesRegex(ImportError, r"tifffile is missing; pip install 'mdfs\[io\]'"):
                mdfs.convert(outside, self.at("a"))

    def test_an_image_becomes_what_the_ending_says(self):
        mdfs.imwrite(self.at("image"), np.zeros((4, 4), "u1"))
        outside = os.path.join(self.volume.folder, "out")
        for words, target, options in (("ending names the format.*.ome.zarr", f"{outside}.png", {}),
                                       ("resume is for", f"{outside}.h5", {"resume": True}),
                                       ("codec, extent, levels and reduce", f"{outside}.h5", {"extent": (2, 2)})):
            with self.assertRaisesRegex(ValueError, words):
                mdfs.convert(self.at("image"), target, **options)
        with mock.patch.dict(sys.modules, {"h5py": None}), self.assertRaisesRegex(ImportError, "h5py"):
            mdfs.convert(self.at("image"), f"{outside}.h5")
        self.assertEqual([name for name in os.listdir(self.volume.folder) if "out" in name], [])


class KilledTest(harness.MountTest):
    CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import convert_test, mdfs
from mdfs._convert import copying
copying.BOX_BYTES = 1 << 20
def progress(done, total):
    print(done, flush=True)
    sys.stdin.readline()
with convert_test.opened:
    mdfs.convert(sys.argv[2], sys.argv[3], progress=progress)
"""

    def test_a_killed_conversion_leaves_nothing_visible_and_no_lock(self):
        array = np.random.default_rng(1).integers(0, 200, (40, 500, 500)).astype("u2")
        path = stored(os.path.join(self.volume.folder, "source.zyx"), array)
        with subprocess.Popen([sys.executable, "-c", self.CODE, os.path.dirname(os.path.abspath(__file__)), path,
                               self.at("a")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            self.assertTrue(child.stdout.readline())
            with opened, self.assertRaisesRegex(BlockingIOError, "another conversion into this image"):
                mdfs.convert(path, self.at("a"))
            child.send_signal(signal.SIGKILL)
        self.assertEqual([name for name in os.listdir(self.dir) if not name.startswith(".part-")], [])
        with opened:
            mdfs.convert(path, self.at("a"), resume=True)
        np.testing.assert_array_equal(mdfs.imread(self.at("a")), array)
        self.assertEqual(os.listdir(self.dir), ["a"])


if __name__ == "__main__":
    harness.main()
