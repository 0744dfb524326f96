"""Claims about the Python package, on a mounted volume: an image behaves as the NumPy array with the same samples."""
# SPDX-License-Identifier: Apache-2.0
import asyncio
import concurrent.futures
import copy
import doctest
import errno
import multiprocessing
import os
import pathlib
import pickle
import random
import signal
import sys
import threading
import unittest
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import harness  # noqa: E402
from selection_test import some_index  # noqa: E402

import mdfs  # noqa: E402

GUIDE = pathlib.Path(__file__).parents[2] / "doc" / "PYTHON.md"
TYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def noise(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)


def sum_of(path_or_image):
    """In another process."""
    image = mdfs.open(path_or_image) if isinstance(path_or_image, str) else path_or_image
    return int(image[...].sum(dtype=np.int64))


class ImagesTest(harness.MountTest):
    size = "128M"

    def stored(self, array, axes=None, name="image", **options):
        mdfs.imwrite(self.at(name), array, axes, **options)
        return mdfs.open(self.at(name), "r+")

    def test_every_type_comes_back_with_its_facts(self):
        for kind in TYPES:
            array = noise((37, 53), kind)
            image = self.stored(array, name=kind)
            with self.subTest(kind=kind):
                self.assertEqual((image.shape, image.dtype, image.ndim, image.size, image.nbytes, len(image)),
                                 (array.shape, array.dtype, 2, array.size, array.nbytes, 37))
                np.testing.assert_array_equal(np.asarray(image), array)
                np.testing.assert_array_equal(mdfs.imread(self.at(kind)), array)

    def test_any_index_reads_what_numpy_selects(self):
        rng = random.Random(1)
        for number, (shape, axes, extent) in enumerate([((90, 70), "yx", (16, 32)), ((40, 30, 3), "yxc", (16, 16)),
                                                        ((20, 33, 41), "zyx", (4, 16, 16)), ((301,), "x", (64,)),
                                                        ((6, 31, 29, 4), "tyxc", (2, 16, 16)),
                                                        ((5, 9, 17, 19), "tzyx", (1, 4, 8, 8)),
                                                        ((3, 2, 7, 13, 15), "tczyx", (1, 1, 4, 8, 8)),
                                                        ((2, 3, 4, 9, 11, 3), "stzyxc", (1, 2, 2, 8, 8))]):
            array = noise(shape, "u2", number)
            image = self.stored(array, axes, f"{number}", extent=extent)
            for _ in range(250):
                index = some_index(rng, shape)
                with self.subTest(axes=axes, index=index):
                    got, wanted = image[index], array[index]
                    np.testing.assert_array_equal(got, wanted)
                    self.assertEqual(got.dtype, wanted.dtype)
                    self.assertEqual(type(got), type(wanted))
                    out = np.zeros(wanted.shape, wanted.dtype)
                    self.assertIs(image.read(index, out=out), out)
                    np.testing.assert_array_equal(out, wanted)

    def test_any_assignment_stores_what_numpy_does(self):
        rng = random.Random(2)
        for number, (shape, axes, extent) in enumerate([((50, 40), "yx", (16, 16)), ((30, 20, 3), "yxc", (16, 16)),
                                                        ((9, 21, 17), "zyx", (4, 16, 16)),
                                                        ((3, 5, 9, 11), "tzyx", (1, 2, 8, 8)),
                                                        ((3, 2, 4, 9, 11), "tczyx", (2, 1, 2, 8, 8))]):
            array = noise(shape, "i2", number)
            image = self.stored(array, axes, f"{number}", extent=extent, codec="raw" if number == 0 else "zstd")
            for turn in range(120):
                index = some_index(rng, shape)
                selected = array[index]
                value = rng.choice([7, noise(selected.shape, "i2", turn), noise(selected.shape, "i1", turn),
                                    noise(selected.shape[-1:], "i2", turn)])
                with self.subTest(axes=axes, index=index):
                    array[index] = value
                    image[index] = value
                    np.testing.assert_array_equal(image[...], array)
            image.sync()
            np.testing.assert_array_equal(mdfs.imread(self.at(f"{number}")), array)

    def test_samples_that_could_change_are_refused_and_nothing_is_written(self):
        array = noise((20, 20), "u1")
        image = self.stored(array)
        for value, error in ((300, OverflowError), (-1, OverflowError), (1.5, TypeError), ([1.5], TypeError),
                             (np.ones((20, 20), "u2"), TypeError), (np.float32(1), TypeError), ("a", TypeError),
                             (1j, TypeError), (None, TypeError), (np.ones((21, 20), "u1"), ValueError)):
            with self.subTest(value=value), self.assertRaises(error):
                image[...] = value
        np.testing.assert_array_equal(image[...], array)
        reader = mdfs.open(self.at("image"))
        with self.assertRaises(ValueError):
            reader[0] = 1
        with self.assertRaises(ValueError):
            reader.append(array[:1])

    def test_a_window_has_the_shape_of_its_npy_file(self):
        images = (("volume", (9, 40, 50), "zyx"), ("colours", (40, 50, 3), "yxc"), ("line", (70,), "x"),
                  ("cells", (3, 2, 4, 20, 30), "tczyx"))
        for name, shape, axes in images:
            mdfs.imwrite(self.at(name), noise(shape, "u2"), axes=axes)
            image = mdfs.open(self.at(name))
            for spec in ("all", "x3", "x3+1", "y5", "y5,x3", "z2,y1+4,x9", "t1+2,c0,z3", "c1", "c1,y3", "c1,y3,x4",
                         "3,4,5,6"):
                if set(spec) & set("xyzct") <= set(image.axes) and not (spec[0].isdigit() and len(shape) == 1):
                    with self.subTest(name=name, spec=spec):
                        wanted = np.load(self.at(f"{name}@/win/{spec}.npy"))
                        for got in (image.read(spec), image.read_many([spec, spec])[1]):
                            self.assertEqual(np.shape(got), wanted.shape)
                            np.testing.assert_array_equal(got, wanted)
                        out = np.zeros(wanted.shape, "u2")
                        np.testing.assert_array_equal(image.read(spec, out=out), wanted)

    def test_an_array_is_assigned_if_numpy_calls_the_cast_safe(self):
        kinds = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
        for to in kinds:
            image = mdfs.create(self.at(f"of {to}"), (3, 4), to)
            for kind in kinds + ["?", "c8", "U1", "O"]:
                value = np.ones((3, 4), kind)
                with self.subTest(kind=kind, to=to):
                    for given in (value, value[0, 0]) if kind not in ("O", "U1") else (value,):
                        image[...] = 0
                        if np.can_cast(value.dtype, to, "safe"):
                            image[...] = given
                            np.testing.assert_array_equal(image[...], np.ones((3, 4)))
                        else:
                            with self.assertRaises(TypeError):
                                image[...] = given
                            np.testing.assert_array_equal(image[...], np.zeros((3, 4)))

    def test_numbers_of_python_must_be_in_the_range_of_the_type(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for to, most in (("u1", 255), ("i8", 2 ** 63 - 1), ("u8", 2 ** 64 - 1), ("f2", 65504.0), ("f4", 3.0e38)):
                image = mdfs.create(self.at(f"of {to}"), (2, 2), to)
                image[...] = most
                self.assertEqual(image[1, 1], np.dtype(to).type(most))
                image[0] = [most, 0]
                for value in (most * 2, [0, most * 2], [-1, most * 2], 2 ** 200):
                    with self.subTest(to=to, value=value), self.assertRaises(OverflowError):
                        image[...] = value
                self.assertEqual(image[1, 1], np.dtype(to).type(most))
            image = mdfs.create(self.at("reals"), (2, 2), "f4")
            image[...] = [[float("inf"), float("-inf")], [float("nan"), 0.1]]
            np.testing.assert_array_equal(image[...], np.array([[np.inf, -np.inf], [np.nan, 0.1]], "f4"))

    def test_an_image_larger_than_the_cache_is_decoded_about_once(self):
        def misses():
            lines = harness.run(harness.MDFS, "volume", "metrics", small.path).splitlines()
            return int(next(line.split()[-1] for line in lines if line.startswith("mdfs_cache_misses_total")))

        small = harness.Mounted(disks=2, size="128M", options="cache=16M")
        self.addCleanup(small.remove)
        array = np.repeat(noise((64, 1024, 128), "u1"), 8, axis=2)
        with mdfs.create(os.path.join(small.path, "image"), array.shape, "u1", extent=(32, 64, 64)) as image:
            image[...] = array
            image.sync()
            for out in None, np.zeros((64, 1024, 1032), "u1")[..., :1024]:
                before = misses()
                np.testing.assert_array_equal(image.read(out=out), array)
                self.assertLess(misses() - before, 512 * 1.5)  # 512 extents; by the order of samples 17 times as many

    def test_out_may_be_strided_and_must_fit(self):
        array = noise((40, 30, 3), "u2")
        image = self.stored(array, "yxc")
        whole = np.zeros((20, 60, 6), "u2")
        for out in (whole[:10, :20, :3], whole[::2, ::3, :3], whole[::-2, :20, ::2], np.zeros((3, 20, 10), "u2").T):
            self.assertIs(image.read(np.s_[5:15, 4:24], out=out), out)
            np.testing.assert_array_equal(out, array[5:15, 4:24])
        image.read(np.s_[:, 3, 1], out=whole.reshape(-1)[:120:3])
        np.testing.assert_array_equal(whole.reshape(-1)[:120:3], array[:, 3, 1])
        frozen = np.zeros((40, 30, 3), "u2")
        frozen.flags.writeable = False
        for out in (np.zeros((40, 30, 4), "u2"), np.zeros((40, 30, 3), "i2"), frozen):
            with self.assertRaises(ValueError):
                image.read(out=out)

    def test_an_array_in_memory_of_the_daemon_is_filled_as_any_other(self):
        array = noise((300, 400, 3), "u2")
        with self.stored(array, "yxc", codec="raw") as image:
            out = image.empty((120, 400, 3))
            self.assertEqual((out.shape, out.dtype, out.flags.writeable), ((120, 400, 3), array.dtype, True))
            for first in range(0, 180, 20):
                self.assertIs(image.read((slice(first, first + 120),), out=out), out)
                np.testing.assert_array_equal(out, array[first:first + 120])
                out += 1
            part, kept = image.empty((5, 60, 50, 3)), out[::2].copy()
            image.read_many([np.s_[10 * n:10 * n + 60, 7:57] for n in range(5)], out=part)
            for number, found in enumerate(part):
                np.testing.assert_array_equal(found, array[10 * number:10 * number + 60, 7:57])
            last = out[::2]
            del out
            for shape in ((3,), (0, 4), ()):
                self.assertEqual(image.empty(shape).shape, shape)
            with self.assertRaises(MemoryError):
                image.empty((1 << 62, 1 << 62))
            self.assertRaises(ValueError, image.empty, (-1, 4))
            self.assertRaises(OSError, image.empty, 1 << 60)
        np.testing.assert_array_equal(last, kept)

    def test_windows_are_named_as_on_the_mount(self):
        array = noise((9, 40, 50), "u1")
        image = self.stored(array)
        np.testing.assert_array_equal(image.read("z3,y5+10,x7+20"), array[3, 5:15, 7:27])
        np.testing.assert_array_equal(image.read("z3+1,y5+10,x7+20"), array[3:4, 5:15, 7:27])
        image.write("z3,y0+2,x0+2", np.array([[1, 2], [3, 4]], "u1"))
        np.testing.assert_array_equal(image[3, :2, :2], [[1, 2], [3, 4]])
        for spec in ("q3", "z9", "y5+100", ""):
            with self.subTest(spec=spec), self.assertRaises(ValueError):
                image.read(spec)

    def test_many_windows_are_read_at_once(self):
        array = noise((300, 400), "u2")
        image = self.stored(array, extent=(32, 32))
        rng = random.Random(3)
        boxes = [np.s_[y:y + 64, x:x + 64] for y, x in ((rng.randrange(236), rng.randrange(336)) for _ in range(100))]
        for box, got in zip(boxes, image.read_many(boxes)):
            np.testing.assert_array_equal(got, array[box])
        out = np.zeros((100, 64, 64), "u2")
        image.read_many(boxes, out=out)
        np.testing.assert_array_equal(out, [array[box] for box in boxes])
        self.assertEqual(image.read_many([]), [])
        with self.assertRaises(ValueError):
            image.read_many(boxes[:2], out=[out[0]])

        async def awaited():
            return await asyncio.gather(*[image.aread(box) for box in boxes[:10]])
        for box, got in zip(boxes, asyncio.run(awaited())):
            np.testing.assert_array_equal(got, array[box])

    def test_blocks_are_the_extents_and_all_of_the_image(self):
        array = noise((70, 50, 3), "u1")
        image = self.stored(array, "yxc", extent=(32, 16))
        self.assertEqual(image.chunks, (32, 16, 3))
        back, count = np.zeros_like(array), 0
        for place, samples in image.blocks():
            back[place] = samples
            count += 1
        self.assertEqual(count, 3 * 4)
        np.testing.assert_array_equal(back, array)

    def test_frames_are_appended(self):
        image = mdfs.create(self.at("film"), (0, 20, 30), "u2", axes="tyx")
        frames = noise((5, 20, 30), "u2")
        image.append(frames[0])
        image.append(frames[1:])
        self.assertEqual(image.shape, (5, 20, 30))
        np.testing.assert_array_equal(image[...], frames)
        for wrong in (frames[:, :19], frames[0, 0], frames.astype("u4")):
            with self.assertRaises((ValueError, TypeError)):
                image.append(wrong)
        other = mdfs.open(self.at("film"))
        image.append(frames[0])
        self.assertEqual(len(other), 5)
        other.refresh()
        self.assertEqual(len(other), 6)

    def test_a_part_of_a_frame_neither_counts_nor_shifts_what_follows(self):
        film = mdfs.create(self.at("film"), (0, 10, 10), "u1", axes="tyx")
        film.append(np.full((2, 10, 10), 1, "u1"))
        os.truncate(self.at("film"), 150)
        self.assertEqual(mdfs.open(self.at("film")).shape, (1, 10, 10))
        film.append(np.full((1, 10, 10), 7, "u1"))
        self.assertEqual([int(frame.mean()) for frame in mdfs.imread(self.at("film"))], [1, 7])

    def test_an_append_that_fails_adds_nothing(self):
        volume = harness.Mounted(disks=2, size="16M")
        self.addCleanup(volume.remove)
        film = mdfs.create(volume / "film", (0, 1500, 1500), "u1", axes="tyx", codec="raw")
        with open(volume / "other", "wb") as other:
            other.write(bytes(range(256)) * (6 << 12))
        frames = [noise((1, 1500, 1500), "u1", seed) for seed in range(20)]
        stored = 0
        with self.assertRaises(OSError):
            for frame in frames:
                film.append(frame)
                stored += 1
        self.assertGreater(stored, 1)
        self.assertEqual(mdfs.open(volume / "film").shape[0], stored)
        os.unlink(volume / "other")
        harness.run(harness.MDFS, "volume", "sync", volume.path)
        film.append(frames[stored])
        np.testing.assert_array_equal(mdfs.imread(volume / "film"), np.concatenate(frames[:stored + 1]))
        film.close()
        volume.unmount()

    def test_readers_see_whole_frames_while_others_append(self):
        mdfs.create(self.at("film"), (0, 1500, 1500), "u1", axes="tyx", codec="raw").close()

        def append(value):
            film = mdfs.open(self.at("film"), "r+")
            for _ in range(4):
                film.append(np.full((1500, 1500), value, "u1"))
        threads = [threading.Thread(target=append, args=(value,)) for value in (3, 5, 9)]
        for thread in threads:
            thread.start()
        film, seen = mdfs.open(self.at("film")), 0
        while seen < 12:
            alive = any(thread.is_alive() for thread in threads)
            film.refresh()
            self.assertTrue(alive or len(film) == 12)
            for frame in range(seen, len(film)):
                self.assertEqual(len(np.unique(film[frame])), 1)
            seen = len(film)
        os.unlink(self.at("film"))

    def test_a_codec_unknown_to_the_library_is_shown_by_its_number(self):
        with self.stored(noise((8, 8), "u1"), codec="zstd:7") as image:
            self.assertEqual(image.codec, "zstd:7")
            image._geometry.codec = 9  # pylint: disable=protected-access
            self.assertEqual(image.codec, "codec 9")

    def test_the_error_of_a_wrong_codec_names_those_of_the_library(self):
        with self.assertRaisesRegex(ValueError, r"codec 'lz4': must be raw or zstd\[:LEVEL\]"):
            mdfs.create(self.at("image"), (4, 4), "u1", codec="lz4")

    def test_an_image_is_made_as_asked_or_not_at_all(self):
        image = mdfs.create(self.at("a"), (4, 100, 200, 3), "f4", axes="zyxc", extent=(2, 50, 60), codec="zstd:7",
                            spacing={"z": (2, "um"), "x": (0.25, "um")})
        self.assertEqual((image.shape, image.axes, image.channels, image.chunks, image.codec),
                         ((4, 100, 200, 3), "zyxc", 3, (2, 50, 60, 3), "zstd:7"))
        self.assertEqual(image.spacing, {"z": (2.0, "um"), "x": (0.25, "um")})
        self.assertIn("zyxc 4x100x200x3 float32", repr(image))
        for error, arguments, options in (
                (TypeError, ((4, 4), "c8"), {}), (TypeError, ((4, 4), "bool"), {}),
                (ValueError, ((4, 4), "u1", "zyx"), {}),
                (ValueError, ((), "u1"), {}), (ValueError, ((4, -4), "u1"), {}),
                (ValueError, ((4, 4), "u1"), {"codec": "lzma"}), (ValueError, ((4, 4), "u1"), {"codec": "zstd:20"}),
                (ValueError, ((4, 4), "u1"), {"extent": (4,)}), (ValueError, ((4, 4), "u1"), {"extent": (0, 4)}),
                (ValueError, ((4, 4), "u1"), {"spacing": {"z": (1, "um")}}),
                (ValueError, ((4, 4), "u1"), {"spacing": {"x": (-1, "um")}}),
                (OSError, ((4, 0), "u1"), {}), (OSError, ((4, 4), "u1", "yy"), {})):
            with self.subTest(arguments=arguments, options=options), self.assertRaises(error):
                mdfs.create(self.at("b"), *arguments, **options)
            self.assertFalse(os.path.exists(self.at("b")))
        with self.assertRaises(FileExistsError):
            mdfs.create(self.at("a"), (4, 4), "u1")
        with self.assertRaises(ValueError):
            mdfs.open(self.at("a"), "w")

    def test_lengths_are_whole_numbers_that_fit(self):
        for shape in ((2**64 + 5, 7), (2**70, 2), (-1, 2)):
            self.assertRaises(ValueError, mdfs.create, self.at("k"), shape, "u1")
        for shape in ((3.5, 3), ("5", "6")):
            self.assertRaises(TypeError, mdfs.create, self.at("k"), shape, "u1")
        self.assertRaises(TypeError, mdfs.create, self.at("k"), (30, 30), "u1", extent=(16.5, 16))
        self.assertFalse(os.path.exists(self.at("k")))

    def test_errors_are_those_of_files(self):
        with self.assertRaises(FileNotFoundError):
            mdfs.open(self.at("none"))
        with self.assertRaises(IsADirectoryError):
            mdfs.open(self.dir)
        harness.write_all(self.at("plain"), b"abc")
        with self.assertRaises(OSError) as caught:
            mdfs.open(self.at("plain"))
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        self.assertIn("plain", str(caught.exception))
        with self.assertRaises(OSError) as caught:
            mdfs.open(__file__)
        self.assertEqual(caught.exception.errno, errno.ENOTTY)
        image = self.stored(noise((4, 4), "u1"))
        image.close()
        image.close()
        with self.assertRaises(ValueError):
            image[0]  # pylint: disable=pointless-statement

    def test_errors_of_the_volume_are_no_wrong_windows(self):
        mdfs.imwrite(self.at("gone"), np.zeros((3, 4), "u1"))
        image = mdfs.open(self.at("gone"))
        for window in ("y9", "q1", "", "y99999999999999999999"):
            self.assertRaises(ValueError, image.read, window)
        self.assertRaises(TypeError, image.read, np.s_[0:2], out=[1])
        image.sync()
        os.kill(self.volume.daemon(), signal.SIGKILL)
        try:
            self.assertRaises(OSError, image.read, "all")
            self.assertRaises(OSError, image.read, np.s_[0])
        finally:
            image.close()
            self.volume.unmount()
            self.volume.mount()

    def test_an_image_is_closed_while_others_read_it(self):
        mdfs.imwrite(self.at("shared"), np.arange(512 * 600, dtype="u4").reshape(512, 600))
        for _ in range(60):
            image = mdfs.open(self.at("shared"))
            seen = []

            def read():
                try:
                    for at in range(30):
                        seen.append(int(image[at, 3]) - (600 * at + 3))
                except ValueError as error:
                    seen.append("closed" in str(error))
            threads = [threading.Thread(target=read) for _ in range(4)]
            for thread in threads:
                thread.start()
            image.close()
            for thread in threads:
                thread.join()
            self.assertTrue(all(value in (0, True) for value in seen), seen)
            self.assertRaises(ValueError, image.read)

    def test_no_null_byte_ends_a_name(self):
        mdfs.imwrite(self.at("q"), np.zeros((3, 4), "u1"))
        for call in (lambda: mdfs.open(self.at("q\0x")), lambda: mdfs.create(self.at("r\0x"), (3, 3), "u1"),
                     lambda: mdfs.open(self.at("q")).read("y0\0+1")):
            self.assertRaises(ValueError, call)
        self.assertFalse(os.path.exists(self.at("r")))

    def test_a_plan_says_what_a_read_asks_of_the_disks(self):
        image = self.stored(noise((512, 512), "u1"), extent=(64, 64), codec="raw")
        plan = image.plan(np.s_[0:256, 0:256])
        self.assertEqual((plan["extents"], plan["holes"], len(plan["disks"])), (16, 0, 4))
        with self.assertRaises(IndexError):
            image.plan(np.s_[::200])

    def test_a_layout_says_where_each_extent_lies(self):
        image = self.stored(noise((1000, 1000), "u1"), extent=(64, 64), codec="raw")
        layout = image.layout()
        self.assertEqual({tuple(index) for index in layout["index"].tolist()}, set(np.ndindex(16, 16)))
        self.assertEqual((set(layout["kind"]), set(layout["nbytes"])), ({"extent"}, {64 * 64}))
        self.assertEqual(sorted(set(layout["disk"].tolist())), [0, 1, 2, 3])
        self.assertEqual(len({(row["disk"], row["offset"]) for row in layout}), 256)
        self.assertTrue((layout["offset"] % 4096 == 0).all())
        self.assertEqual(len(mdfs.create(self.at("empty"), (30, 30), "u1").layout()), 0)
        with self.assertRaises(ValueError):
            image.level(1).layout()

    def test_images_go_to_other_processes_and_threads(self):
        array = noise((200, 200), "u1")
        image = self.stored(array)
        wanted = int(array.sum(dtype=np.int64))
        again = pickle.loads(pickle.dumps(image))
        self.assertEqual((again.path, again.mode), (image.path, "r+"))
        self.assertEqual(sum_of(copy.copy(image)), wanted)
        image.read_many([Ellipsis, 0])  # there are threads before the fork
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(sum_of, [image, self.at("image")] * 4), [wanted] * 8)
        child = os.fork()
        if child == 0:
            os._exit(0 if sum_of(image) == wanted and int(image.read_many([0, 1])[1][3]) == array[1, 3] else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(set(pool.map(lambda _: sum_of(image), range(40))), {wanted})

    def taken(self, how):
        """An open image whose path leads to another image or to none, and its former samples."""
        array = noise((24, 40, 50), "u2")
        image = self.stored(array, "zyx", name=how, levels=1)
        image.attrs = {"who": "old"}
        wanted = image.read("l1"), image.cut((0, 0, 3), (1, 0, 0), (0, 1, 0), (50, 40))
        if how == "renamed":
            mdfs.imwrite(self.at("new"), np.full((24, 40, 50), 7, "u2"), levels=1)
            os.rename(self.at("new"), self.at(how))
        else:
            os.unlink(self.at(how))
        if how == "replaced":
            mdfs.imwrite(self.at(how), np.full((5, 6), 7, "u2"), levels=1)
        return image, array, wanted

    def test_an_open_image_stays_the_same_when_its_path_goes_to_another(self):
        for how in ("renamed", "unlinked", "replaced"):
            with self.subTest(how):
                image, array, (level, _) = self.taken(how)
                np.testing.assert_array_equal(image[...], array)
                np.testing.assert_array_equal(image.read(..., level=1), level)
                np.testing.assert_array_equal(image.read("l1"), level)
                np.testing.assert_array_equal(image.level(1)[...], level)
                np.testing.assert_array_equal(image.read_many(["l1", "l1,z3"])[1], level[3])
                with self.assertRaises(OSError) as caught:
                    image.cut((0, 0, 3), (1, 0, 0), (0, 1, 0), (50, 40))
                self.assertEqual(caught.exception.errno, errno.ESTALE)
                self.assertEqual(dict(image.attrs), {"who": "old"})
                image.attrs = {"who": "still old"}
                self.assertEqual(dict(image.attrs), {"who": "still old"})
                image.append(np.full((2, 40, 50), 9, "u2"))
                self.assertEqual((image.shape, int(image[25, 3, 4])), ((26, 40, 50), 9))
                if how != "unlinked":
                    with mdfs.open(self.at(how)) as other:
                        self.assertEqual((dict(other.attrs), int(other[...].max())), ({}, 7))
                        self.assertNotEqual(len(other), 26)

    def test_a_renamed_image_is_cut_by_its_new_path(self):
        data = noise((4, 10, 12), "u1")
        image = self.stored(data, "zyx")
        os.rename(self.at("image"), self.at("moved"))
        mdfs.imwrite(self.at("image"), np.zeros((4, 10, 12), "u1"), axes="zyx")
        np.testing.assert_array_equal(image.cut((0, 0, 3), (1, 0, 0), (0, 1, 0), (12, 10)), data[3])
        os.unlink(self.at("moved"))
        with self.assertRaises(OSError) as caught:
            image.cut((0, 0, 3), (1, 0, 0), (0, 1, 0), (12, 10))
        self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ESTALE, self.at("image")))

    def test_a_level_and_its_image_are_closed_apart(self):
        image = self.stored(noise((40, 50), "u1"))
        first, second = image.level(1), image.level(1)
        first.close()
        self.assertRaises(ValueError, first.read)
        image.close()
        self.assertRaises(ValueError, image.read)
        self.assertRaises(ValueError, image.level, 1)
        self.assertEqual(second[...].shape, (20, 25))
        self.assertEqual(second.level(0).shape, (40, 50))
        second.close()
        second.close()
        self.volume.unmount()  # nothing is open
        self.volume.mount()

    def test_the_generation_is_part_of_what_dask_compares(self):
        image = self.stored(noise((20, 20), "u1"))
        before = image.__dask_tokenize__()
        self.assertEqual(image.__dask_tokenize__(), before)
        image[0] = 1
        image.sync()
        self.assertNotEqual(image.__dask_tokenize__(), before)

    def test_the_guide_does_what_it_shows(self):
        os.chdir(self.dir)
        self.addCleanup(os.chdir, "/")
        text = "\n".join(part.split("```")[0] for part in GUIDE.read_text().split("```python\n")[1:])
        test = doctest.DocTestParser().get_doctest(text, {}, GUIDE.name, str(GUIDE), 0)
        self.assertGreater(len(test.examples), 10)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test)
        self.assertEqual(runner.summarize().failed, 0)


if __name__ == "__main__":
    harness.main()
