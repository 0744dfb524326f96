"""A disk is gone: which files have lost data, by their paths."""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import mmap
import os
import pathlib
import subprocess
import sys
import unittest

import numpy

import harness
from harness import MDFS, Mounted, make_image, read_all, run, write_all

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from zarr_reader import ZarrArray  # noqa: E402  the path comes first

EXTENT = 64


class Lost(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=3, size="64M")
        self.addCleanup(self.volume.remove)

    def fill(self):
        """Images of one extent and of many, files, a name with a space, two names of one file, a file in the tree."""
        top = self.volume.path
        os.makedirs(f"{top}/a/b c")
        paths = []
        for number in range(90):
            path = f"{top}/a/b c/small {number}"
            make_image(path, [EXTENT, EXTENT], extent=(EXTENT, EXTENT), codec=0)
            write_all(path, os.urandom(EXTENT * EXTENT))
            paths.append(path)
        make_image(f"{top}/large", [16 * EXTENT, 16 * EXTENT], extent=(EXTENT, EXTENT), codec=0)
        write_all(f"{top}/large", os.urandom((16 * EXTENT) ** 2))
        write_all(f"{top}/a/plain", os.urandom(1 << 20))
        os.link(f"{top}/a/plain", f"{top}/second name")
        write_all(f"{top}/tiny", b"tiny")
        run(MDFS, "volume", "sync", top)
        return [*paths, f"{top}/large", f"{top}/a/plain", f"{top}/tiny"]

    def lost(self, code):
        done = subprocess.run([MDFS, "volume", "lost", "--json", self.volume.path], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def lose_disk(self, number, options="cache=64M"):
        self.volume.unmount()
        os.makedirs(f"{self.volume.folder}/away", exist_ok=True)  # disks are looked for beside those that are named
        os.rename(self.volume.disks[number], f"{self.volume.folder}/away/disk")
        self.volume.mount(options, [disk for disk in self.volume.disks if os.path.exists(disk)])

    @staticmethod
    def reads(path):
        try:
            with open(path, "rb") as file:
                while file.read(1 << 16):
                    pass
            return True
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False

    def on_disk(self, path, disk):
        layout = json.loads(run(MDFS, "image", "layout", "--json", path))
        return sum(row["stored_bytes"] for row in layout["extents"] if row["disk"] == disk)

    def test_every_file_that_cannot_be_read_whole_is_named_and_no_other(self):
        paths = self.fill()
        whole = self.lost(0)
        self.assertEqual((whole["files"], whole["disks"]), ([], []))
        expected = self.on_disk(self.volume / "large", 1)
        for options in ("cache=64M", "cache=64M,ro"):
            with self.subTest(options=options):
                if options.endswith("ro"):
                    self.volume.unmount()
                    self.volume.mount(options, [self.volume.disks[0], self.volume.disks[2]])
                else:
                    self.lose_disk(1, options)
                found = self.lost(3)
                self.assertEqual([disk["number"] for disk in found["disks"]], [1])
                named = {path for file in found["files"] for path in file["paths"]}
                unreadable = {path for path in paths if not self.reads(path)}
                self.assertGreater(len(unreadable), 20)
                if f"{self.volume.path}/a/plain" in unreadable:
                    unreadable.add(f"{self.volume.path}/second name")
                self.assertEqual(named, unreadable)
                large = next(file for file in found["files"] if file["paths"] == [f"{self.volume.path}/large"])
                self.assertEqual((large["lost_bytes"], large["stored_bytes"]), (expected, (16 * EXTENT) ** 2))
                self.assertEqual(large["disks"], [1])
        text = subprocess.run([MDFS, "volume", "lost", self.volume.path], capture_output=True, text=True, check=False)
        self.assertEqual(text.returncode, 3)
        self.assertEqual(len(text.stdout.splitlines()), len(found["files"]) + 1)
        self.assertIn("disk 1 (", text.stdout)

    def test_lost_levels_are_named_by_their_image_and_are_built_again_without_the_disk(self):
        top = self.volume.path
        means = {}
        for number in range(12):
            path = f"{top}/image {number}"
            run(MDFS, "image", "create", "--shape", f"{2 * EXTENT}x{EXTENT}", "--extent", f"{2 * EXTENT}x{EXTENT}",
                "--type", "u8", "--codec", "raw", "--levels", "1", path)
            write_all(path, os.urandom(2 * EXTENT * EXTENT))
            means[path] = harness.read_all(f"{path}@/win/l1.raw")
        run(MDFS, "volume", "sync", top)
        self.lose_disk(2)
        files = self.lost(3)["files"]
        paths = [path for file in files for path in file["paths"]]
        self.assertEqual(len(paths), len(files), files)
        levels = [path for path in paths if path.endswith(" (level 1)")]
        self.assertTrue(levels and len(levels) < len(paths), paths)
        for path in set(paths) - set(levels):
            os.unlink(path)
        kept = [image for path in levels if os.path.exists(image := path.removesuffix(" (level 1)"))]
        self.assertTrue(kept)
        for image in kept:  # computed
            self.assertEqual(harness.read_all(f"{image}@/win/l1.raw"), means[image])
        run(MDFS, "disk", "remove", top, "2")
        self.lost(0)
        for image in kept:
            self.assertEqual(harness.read_all(f"{image}@/win/l1.raw"), means[image])
            self.assertEqual(json.loads(run(MDFS, "image", "levels", "--json", image))["levels"][0]["built"], 1)

    def leveled(self, codec, protected):
        """The path of an image of 8 x 8 extents with a stored level of 4 x 4, and the samples of both."""
        path = f"{self.volume.path}/{codec}"
        run(MDFS, "image", "create", "--shape", f"{8 * EXTENT}x{8 * EXTENT}", "--extent", f"{EXTENT}x{EXTENT}",
            "--type", "u8", "--codec", codec, "--levels", "1", path)
        if protected:
            run(MDFS, "image", "protect", path, "copies=2")
        samples = numpy.random.default_rng(24).integers(1, 200, (8 * EXTENT, 8 * EXTENT), numpy.uint8)
        write_all(path, samples.tobytes())
        level = numpy.frombuffer(read_all(f"{path}@/win/l1.raw"), numpy.uint8).reshape(4 * EXTENT, 4 * EXTENT)
        run(MDFS, "volume", "sync", self.volume.path)
        return path, samples, level

    def views_of_level(self, path, has_known_sizes=True):
        """What each view with samples of the level reads as. The chunks of ome.zarr are as large as stat says, after
        they are open or, with known sizes, always."""
        found = {}
        chunks = ZarrArray(f"{path}@/ome.zarr/1")
        for key in chunks.keys():
            size = os.stat(chunks.file_of(key)).st_size
            with open(chunks.file_of(key), "rb") as file:
                data = file.read()
                self.assertEqual(len(data), size if has_known_sizes else os.fstat(file.fileno()).st_size)
            found[key] = chunks.decoded(data).tobytes()
        for name in ("win/l1.raw", "win/l1,y64+64.png", "win/l2.raw", f"{os.path.basename(path)}.tif",
                     "dz_files/8/0_0.jpg", "iiif/full/256,256/0/default.jpg"):
            found[name] = read_all(f"{path}@/{name}")
        return found

    def test_every_view_computes_what_a_level_of_a_whole_image_has_on_the_missing_disk(self):
        images = [self.leveled(codec, True) for codec in ("zstd", "raw")]
        expected = {path: self.views_of_level(path) for path, _, _ in images}
        self.lose_disk(1)
        for options in ("cache=64M", "cache=64M,ro", "cache=64M,errors=zero,ro"):
            self.volume.unmount()
            self.volume.mount(options, [self.volume.disks[0], self.volume.disks[2]])
            listed = [name for file in self.lost(0)["files"] for name in file["paths"]]
            for path, samples, _ in images:
                with self.subTest(options=options, path=path):
                    self.assertIn(f"{path} (level 1)", listed)
                    self.assertEqual(read_all(path), samples.tobytes())
                    found = self.views_of_level(path)
                    self.assertEqual([name for name in expected[path] if found[name] != expected[path][name]], [])

    def test_a_list_of_lost_levels_alone_is_no_loss(self):
        path, _, _ = self.leveled("zstd", True)
        self.lose_disk(1)
        for words in ((), ("--json",)):
            done = subprocess.run([MDFS, "volume", "lost", *words, self.volume.path], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"{path} (level 1)", done.stdout)
        self.assertEqual([file["level"] for file in json.loads(done.stdout)["files"]], [1])
        text = run(MDFS, "volume", "lost", self.volume.path).splitlines()
        self.assertEqual(text[-1], "no file is lost: MDFS computes the listed levels from their images")

    def test_a_list_of_levels_and_files_counts_the_files(self):
        make_image(f"{self.volume.path}/plain (level 1)", [8 * EXTENT, 8 * EXTENT], extent=(EXTENT, EXTENT))
        write_all(f"{self.volume.path}/plain (level 1)", os.urandom((8 * EXTENT) ** 2))
        self.leveled("zstd", True)
        self.lose_disk(1)
        files = self.lost(3)["files"]
        self.assertEqual(sorted((file["level"] or 0, *file["paths"]) for file in files),
                         [(0, f"{self.volume.path}/plain (level 1)"), (1, f"{self.volume.path}/zstd (level 1)")])
        self.assertIn(" 1 file cannot be read completely", self.error_of("volume", "lost", self.volume.path)[1])

    def test_with_errors_zero_a_level_has_zeros_where_the_image_has(self):
        for codec in ("zstd", "raw"):
            path, samples, level = self.leveled(codec, False)
            layout = json.loads(run(MDFS, "image", "layout", "--json", path))
            lost = numpy.zeros(samples.shape, bool)
            for y, x in [row["index"] for row in layout["extents"] if row["disk"] == 1]:
                lost[y * EXTENT:(y + 1) * EXTENT, x * EXTENT:(x + 1) * EXTENT] = True
            self.lose_disk(1, "cache=64M,errors=zero,ro")
            chunks = ZarrArray(f"{path}@/ome.zarr/1")
            for name, read in (("win", numpy.frombuffer(read_all(f"{path}@/win/l1.raw"), numpy.uint8)),
                               ("zarr", chunks.read())):
                with self.subTest(codec=codec, view=name):
                    read = read.reshape(level.shape)
                    numpy.testing.assert_array_equal(read[~lost[::2, ::2]], level[~lost[::2, ::2]])
                    self.assertTrue(((read == level) | (read == 0)).all())
                    self.assertTrue((read == 0).any())
            self.volume.unmount()
            os.rename(f"{self.volume.folder}/away/disk", self.volume.disks[1])
            self.volume.mount()

    def test_every_view_of_a_level_with_damaged_extents_reads_as_it_was(self):
        paths = [self.leveled(codec, True)[0] for codec in ("zstd", "raw")]
        expected = {path: self.views_of_level(path) for path in paths}
        stored = [read_all(f"{path}@/ome.zarr/1/c/{key}") for path in paths for key in ("0/0", "1/2", "3/3")]
        self.volume.unmount()
        damaged = 0
        for disk in self.volume.disks:
            with open(disk, "r+b") as file, mmap.mmap(file.fileno(), 0) as blocks:
                for chunk in stored:
                    at = blocks.find(chunk[:200])
                    if at >= 0:
                        blocks[at + 100] ^= 1
                        damaged += 1
        self.assertEqual(damaged, len(stored))
        for options in ("cache=64M,ro", "cache=64M", "cache=64M,ro"):  # the second one repairs
            self.volume.mount(options)
            for path in paths:
                with self.subTest(options=options, path=path):
                    found = self.views_of_level(path, has_known_sizes=False)
                    self.assertEqual([name for name in expected[path] if found[name] != expected[path][name]], [])
            self.volume.unmount()
        self.volume.mount()
        for path in paths:
            self.assertEqual(read_all(f"{path}@/ome.zarr/1/c/0/0"), stored[3 * paths.index(path)])

    def test_a_scrub_counts_what_is_not_there(self):
        self.fill()
        self.lose_disk(1)
        pieces = len(self.lost(3)["files"])
        done = subprocess.run([MDFS, "scrub", "start", "--wait", "--json", self.volume.path], capture_output=True,
                              text=True, check=False)
        told = json.loads(done.stdout)
        self.assertGreaterEqual(told["items_failed"], pieces)
        self.assertEqual(len({error["inode"] for error in told["errors"]}), min(64, pieces))

    def salvage(self, code, *words):
        done = subprocess.run([MDFS, "image", "salvage", "--json", *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def test_salvage_copies_all_extents_that_can_be_read_and_fills_the_others(self):
        top = self.volume.path
        samples = numpy.random.default_rng(1).integers(0, 60000, (900, 700, 3), numpy.uint16)
        make_image(f"{top}/scan", [900, 700], element="u16", channels=3, extent=(100, 100), codec=0)
        write_all(f"{top}/scan", samples.tobytes())
        run(MDFS, "volume", "sync", top)
        whole = self.salvage(0, f"{top}/scan", f"{top}/copy")
        self.assertEqual(whole["filled"], [])
        with open(f"{top}/copy", "rb") as file:
            self.assertEqual(file.read(), samples.tobytes())
        os.unlink(f"{top}/copy")
        layout = json.loads(run(MDFS, "image", "layout", "--json", f"{top}/scan"))
        expected = samples.copy()
        lost = [row["index"] for row in layout["extents"] if row["disk"] == 1]
        for y, x in lost:
            expected[y * 100:y * 100 + 100, x * 100:x * 100 + 100] = 65535
        self.lose_disk(1)
        outside = f"{self.volume.folder}/copy.npy"
        for target in (outside, f"{top}/copy"):
            told = self.salvage(3, "--fill", "65535", f"{top}/scan", target)
            self.assertEqual(sorted(told["filled"]), sorted(f"y{y * 100}+100,x{x * 100}+100" for y, x in lost))
            self.assertEqual(told["filled_bytes"], len(lost) * 100 * 100 * 6)
        numpy.testing.assert_array_equal(numpy.load(outside), expected)
        with open(f"{top}/copy", "rb") as file:
            self.assertEqual(file.read(), expected.tobytes())
        for words in (("--fill", "65536"), ("--fill", "-1"), ("--fill", "x")):
            refused = subprocess.run([MDFS, "image", "salvage", *words, f"{top}/scan", f"{top}/other"],
                                     capture_output=True, check=False)
            self.assertEqual(refused.returncode, 2)
        there = subprocess.run([MDFS, "image", "salvage", f"{top}/scan", f"{top}/copy"], capture_output=True,
                               check=False)
        self.assertEqual(there.returncode, 1)
        self.assertFalse(os.path.exists(f"{top}/other"))

    def error_of(self, *words):
        done = subprocess.run([MDFS, *words], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.returncode, done.stderr

    def test_with_errors_zero_what_lies_on_the_missing_disk_reads_as_zeros_and_all_else_as_it_was(self):
        top = self.volume.path
        images = {}
        for name, codec in (("raw", 0), ("packed", 1)):
            samples = numpy.random.default_rng(2).integers(1, 60, (700, 900), numpy.uint8)
            make_image(f"{top}/{name}", [700, 900], extent=(100, 100), codec=codec)
            write_all(f"{top}/{name}", samples.tobytes())
            run(MDFS, "volume", "sync", top)
            layout = json.loads(run(MDFS, "image", "layout", "--json", f"{top}/{name}"))
            for y, x in [row["index"] for row in layout["extents"] if row["disk"] == 1]:
                samples[y * 100:y * 100 + 100, x * 100:x * 100 + 100] = 0
            images[name] = samples
        # Some of its rows lie in strips, which are newer than what lies under them.
        with open(f"{top}/raw", "r+b") as file:
            for row in range(0, 700, 7):
                file.seek(row * 900)
                file.write(b"\xff" * 900)
                os.fsync(file.fileno())
        content = os.urandom(1 << 20)
        write_all(f"{top}/plain", content)
        write_all(f"{top}/tiny", b"tiny")
        run(MDFS, "volume", "sync", top)
        self.volume.unmount()
        self.volume.mount()
        with open(f"{top}/raw", "rb") as file:
            stripped = numpy.frombuffer(file.read(), numpy.uint8).reshape(700, 900)
        self.lose_disk(1, "cache=64M,errors=zero,ro")
        for _ in range(2):
            with open(f"{top}/packed", "rb") as file:
                numpy.testing.assert_array_equal(
                    numpy.frombuffer(file.read(), numpy.uint8).reshape(700, 900), images["packed"])
            with open(f"{top}/raw", "rb") as file:
                found = numpy.frombuffer(file.read(), numpy.uint8).reshape(700, 900)
            self.assertTrue(((found == stripped) | (found == 0)).all())
            self.assertTrue((found[images["raw"] != 0] != 0).any())
            self.assertTrue((found == 0).any())
        with open(f"{top}/plain", "rb") as file:
            read = file.read()
        self.assertEqual(len(read), len(content))
        blocks = [(read[at:at + 4096], content[at:at + 4096]) for at in range(0, len(content), 4096)]
        self.assertTrue(all(have in (wanted, bytes(4096)) for have, wanted in blocks))
        with open(f"{top}/tiny", "rb") as file:
            self.assertEqual(file.read(), b"tiny")
        self.assertEqual(len(self.lost(3)["files"]), 2 + (read != content))
        window = run(MDFS, "window", "read", f"{top}/packed", "y0+100", "-o", f"{self.volume.folder}/w.npy")
        numpy.testing.assert_array_equal(numpy.load(f"{self.volume.folder}/w.npy"), images["packed"][:100], window)

    def test_errors_zero_is_for_reading_alone_and_hides_nothing_from_salvage(self):
        paths = self.fill()
        self.lose_disk(1)
        self.volume.unmount()
        places = [disk for disk in self.volume.disks if os.path.exists(disk)]
        code, said = self.error_of("mount", "-o", "errors=zero", *places, self.volume.path)
        self.assertEqual(code, 2)
        self.assertIn("errors=zero", said)
        self.assertIn("ro", said)
        code, said = self.error_of("mount", "-o", "ro,errors=none", *places, self.volume.path)
        self.assertEqual(code, 2)
        self.assertIn("eio", said)
        self.volume.mount("ro,errors=zero", places)
        self.assertIn("zeros", harness.status_of(self.volume.path, unhealthy=True))
        code, said = self.error_of("image", "salvage", f"{self.volume.path}/large", f"{self.volume.folder}/large.npy")
        self.assertIn("errors=zero", said)
        self.assertFalse(os.path.exists(f"{self.volume.folder}/large.npy"))
        self.assertTrue(all(self.reads(path) for path in paths))
        code, said = self.error_of("mount", "-o", "remount,rw", self.volume.path)
        self.assertFalse(os.access(f"{self.volume.path}/new", os.W_OK))
        self.volume.unmount()
        self.volume.mount("ro,errors=zero,errors=eio", places)
        self.assertFalse(all(self.reads(path) for path in paths))

    def test_who_cannot_read_an_image_is_told_which_disk_is_missing(self):
        self.fill()
        uuid = json.loads(run(MDFS, "volume", "status", "--json", self.volume.path))["disks"][1]["uuid"]
        self.lose_disk(1)
        for words in (("window", "read", f"{self.volume.path}/large", "y0+1024", "-o", f"{self.volume.folder}/w.npy"),
                      ("image", "export", f"{self.volume.path}/large", f"{self.volume.folder}/e.npy")):
            with self.subTest(words=words):
                code, said = self.error_of(*words)
                self.assertEqual(code, 3)
                self.assertIn(f"disk 1 ({uuid}) is missing", said)
                self.assertIn("salvage", said)


if __name__ == "__main__":
    harness.main()
