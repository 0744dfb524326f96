"""The Zarr view of images, read by a small reader of its own, against NumPy."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import json
import mmap
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import harness
from harness import MDFS, make_image, read_all, run, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of the Zarr view need numpy")
    raise SystemExit(harness.SKIP)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from zarr_reader import ZarrArray, in_array_order, load_json  # noqa: E402  the path comes first

FALLOC_PUNCH = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
LIBC = ctypes.CDLL(None, use_errno=True)


def punch(path, offset, length):
    fd = os.open(path, os.O_RDWR)
    try:
        if LIBC.fallocate(fd, FALLOC_PUNCH, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
            raise OSError(ctypes.get_errno(), "fallocate")
    finally:
        os.close(fd)


class Model:
    """An image on the mount, and the array that it must be."""

    def __init__(self, path, rng):
        self.path = path
        self.rng = rng
        self.random = random.Random(int(rng.integers(1 << 30)))
        rank = self.random.randint(1, 5)
        self.axes = self.random.choice({1: ["x", "t"], 2: ["yx", "ty"], 3: ["zyx", "tyx"], 4: ["tzyx", "czyx"],
                                        5: ["tczyx", "abzyx"]}[rank])
        self.element = self.random.choice(list(harness.NUMPY))
        self.channels = 1 if "c" in self.axes else self.random.choice([1, 1, 2, 3, 4])
        sides = {1: (1, 9000), 2: (1, 90), 3: (1, 24), 4: (1, 9), 5: (1, 6)}[rank]
        shape = [self.random.randint(*sides) for _ in range(rank)]
        extent = [self.random.randint(1, max(1, side)) if rank > 1 else self.random.randint(64, 4096)
                  for side in shape]
        while np.prod(extent) * self.channels * np.dtype(harness.NUMPY[self.element]).itemsize < 64:
            extent[0] *= 2  # the smallest extents; along other axes, what lies behind the image is cut
        self.codec = self.random.choice([0, 1])
        make_image(path, shape, element=self.element, channels=self.channels, codec=self.codec, extent=extent,
                   axes=self.axes)
        self.extent = extent
        self.samples = np.zeros([*shape, *([self.channels] if self.channels > 1 else [])],
                                harness.NUMPY[self.element])

    def describe(self):
        return (f"{self.axes} {self.samples.shape} of {self.extent}, {self.element}, codec {self.codec}")

    def noise(self, count):
        data = self.rng.integers(0, 256, count * self.samples.itemsize, dtype="u1")
        if self.samples.dtype.kind == "f":  # NaN would not compare
            return self.rng.integers(-99, 99, count).astype(self.samples.dtype)
        return data.view(self.samples.dtype)

    def slab_bytes(self):
        return self.samples.nbytes // max(1, len(self.samples)) if len(self.samples) else \
            int(np.prod(self.samples.shape[1:], dtype=int)) * self.samples.itemsize

    # ---- each changes the image and the array alike
    def write_some(self):
        flat = self.samples.reshape(-1)
        if not flat.size:
            return
        start = self.random.randrange(flat.size)
        count = self.random.randint(1, min(flat.size - start, 3000))
        data = self.noise(count)
        fd = os.open(self.path, os.O_WRONLY)
        os.pwrite(fd, data.tobytes(), start * flat.itemsize)
        os.close(fd)
        flat[start:start + count] = data

    def write_window(self):
        shape = self.samples.shape[:len(self.axes)]
        if 0 in shape:
            return
        start = [self.random.randrange(side) for side in shape]
        length = [self.random.randint(1, side - at) for side, at in zip(shape, start)]
        where = tuple(slice(at, at + n) for at, n in zip(start, length))
        data = self.noise(self.samples[where].size).reshape(self.samples[where].shape)
        spec = ",".join(f"{axis}{at}+{n}" for axis, at, n in zip(self.axes, start, length))
        write_all(f"{self.path}@/win/{spec}.raw", data.tobytes())
        self.samples[where] = data

    def append(self):
        count = self.random.randint(1, 5)
        data = self.noise(count * self.slab_bytes() // self.samples.itemsize)
        data = data.reshape((count, *self.samples.shape[1:]))
        with open(self.path, "ab") as file:
            for slab in data:
                file.write(slab.tobytes())
                file.flush()
                if self.random.random() < 0.7:
                    os.fsync(file.fileno())  # into strips
        self.samples = np.concatenate([self.samples, data])

    def truncate(self):
        count = self.random.randint(0, len(self.samples) + 2)
        os.truncate(self.path, count * self.slab_bytes())
        more = np.zeros((max(0, count - len(self.samples)), *self.samples.shape[1:]), self.samples.dtype)
        self.samples = np.concatenate([self.samples[:count], more])

    def punch(self):
        if not self.samples.nbytes:
            return
        start = self.random.randrange(self.samples.nbytes)
        length = self.random.randint(1, self.samples.nbytes)
        punch(self.path, start, length)
        self.samples.reshape(-1).view("u1")[start:start + length] = 0

    def sync(self):
        run(harness.MDFS, "volume", "sync", os.path.dirname(os.path.dirname(self.path)))

    def change(self):
        self.random.choice([self.write_some, self.write_some, self.write_window, self.append, self.append,
                            self.truncate, self.punch, self.sync])()


class Zarr(harness.MountTest):
    options = "cache=64M"

    def filled(self, name, shape, element="u8", channels=1, **options):
        make_image(self.at(name), shape, element=element, channels=channels, **options)
        data = np.random.default_rng(5).integers(0, 200, [*shape, *([channels] if channels > 1 else [])])
        data = data.astype(harness.NUMPY[element])
        write_all(self.at(name), data.tobytes())
        return data

    def check(self, path, samples, axes):
        array = ZarrArray(f"{path}@/ome.zarr/0")
        channels = samples.shape[-1] if samples.ndim > len(axes) else 1
        expected, names = in_array_order(samples, axes, channels)
        self.assertEqual(array.names, names)
        self.assertEqual(array.shape, expected.shape)
        np.testing.assert_array_equal(array.read(), expected)
        for tries in (1, 2):  # a dirty extent of zeros becomes a hole when it is written back
            listed = array.listed()
            there = [key for key in array.keys() if os.path.exists(array.file_of(key))]
            if listed == there:
                break
            self.assertLess(tries, 2, (listed, there))
        return array, listed

    def test_any_image_is_the_array_that_numpy_has_whatever_changes_it(self):
        seed = int(os.environ.get("MDFS_SEED", time.time_ns() % (1 << 30)))
        print(f"MDFS_SEED={seed}", flush=True)
        rng = np.random.default_rng(seed)
        for number in range(14):
            model = Model(self.at(f"image{number}"), rng)
            done = []
            for _ in range(6):
                with self.subTest(seed=seed, number=number, image=model.describe(), done=done):
                    self.check(model.path, model.samples, model.axes)
                model.change()
                done.append(len(model.samples))
            os.unlink(model.path)

    def test_what_is_on_the_disks_reads_as_what_was_dirty(self):
        rng = np.random.default_rng(11)
        models = [Model(self.at(f"image{number}"), rng) for number in range(12)]
        for model in models:
            for _ in range(4):
                model.change()
        self.volume.unmount()
        self.volume.mount(self.options)
        for model in models:
            with self.subTest(image=model.describe()):
                self.check(model.path, model.samples, model.axes)

    def test_the_group_names_axes_spacing_and_units(self):
        run(harness.MDFS, "image", "create", self.at("stack"), "--shape", "5x40x50", "--type", "u16",
            "--spacing", "2um,0.5um,0.25um")
        group = load_json(self.at("stack@/ome.zarr/zarr.json"))
        self.assertEqual((group["zarr_format"], group["node_type"]), (3, "group"))
        scales = group["attributes"]["ome"]["multiscales"][0]
        self.assertEqual(scales["axes"], [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"])
        self.assertEqual(scales["datasets"], [{"path": "0", "coordinateTransformations": [
            {"type": "scale", "scale": [2.0, 0.5, 0.25]}]}])
        self.assertEqual(sorted(os.listdir(self.at("stack@/ome.zarr"))), ["0", "zarr.json"])
        self.assertEqual(sorted(os.listdir(self.at("stack@/ome.zarr/0"))), ["c", "zarr.json"])
        self.assertIn("ome.zarr", os.listdir(self.at("stack@")))

    def test_an_open_chunk_that_becomes_a_hole_keeps_its_samples_and_its_size(self):
        make_image(self.at("image"), (64, 64), codec=0, extent=(32, 32))
        chunk = self.at("image@/ome.zarr/0/c/0/0")
        for make_hole in (lambda: os.unlink(chunk),
                          lambda: write_all(self.at("image@/win/y0+32,x0+32.raw"), bytes(32 * 32))):
            write_all(self.at("image@/win/y0+32,x0+32.raw"), bytes([7]) * 32 * 32)
            first, second = os.open(chunk, os.O_RDONLY), os.open(chunk, os.O_RDONLY)
            self.assertEqual(os.pread(first, 10, 0), bytes([7]) * 10)
            make_hole()
            os.close(second)
            self.assertEqual(os.fstat(first).st_size, 32 * 32)
            self.assertEqual(os.lseek(first, 0, os.SEEK_END), 32 * 32)
            self.assertEqual(os.pread(first, 2000, 10), bytes([7]) * (32 * 32 - 10))
            os.close(first)
            run(MDFS, "volume", "sync", self.volume.path)
            self.assertErrno(errno.ENOENT, os.open, chunk, os.O_RDONLY)

    def test_holes_are_missing_keys(self):
        make_image(self.at("scan"), (64, 96), extent=(16, 16))
        array, listed = self.check(self.at("scan"), np.zeros((64, 96), "u1"), "yx")
        self.assertEqual(listed, [])
        write_all(self.at("scan@/win/y20,x40.raw"), b"\1")
        expected = np.zeros((64, 96), "u1")
        expected[20, 40] = 1
        self.assertEqual(self.check(self.at("scan"), expected, "yx")[1], [(1, 2)])
        self.assertEqual(os.stat(array.file_of((1, 2))).st_size, len(read_all(array.file_of((1, 2)))))
        punch(self.at("scan"), 0, 64 * 96)
        self.assertErrno(errno.ENOENT, os.stat, array.file_of((1, 2)))
        self.assertErrno(errno.ENOENT, open, array.file_of((1, 2)), "rb")
        self.assertEqual(self.check(self.at("scan"), np.zeros((64, 96), "u1"), "yx")[1], [])

    def test_names_that_are_no_keys_do_not_exist(self):
        self.filled("scan", (40, 70), extent=(16, 16))
        self.assertTrue(read_all(self.at("scan@/ome.zarr/0/c/2/4")))
        for name in ("1", "00", "0/c/3", "0/c/-1", "0/c/+1", "0/c/01", "0/c/2/5", "0/c/2/04", "0/c/2/ 4", "0/c/2/4 ",
                     "0/c/18446744073709551616/0", "0/c/2/18446744073709551615", "0/c/2/" + "9" * 200, "0/c/0x1",
                     "0/c/2.4", "0/.zarray", ".zgroup", ".zattrs", ".zmetadata", "labels", "labels/zarr.json",
                     "0/c/zarr.json", "zarr.json@", "0/C", "0/c/2/4@"):
            self.assertErrno(errno.ENOENT, os.stat, self.at("scan@/ome.zarr", name))
        self.assertErrno(errno.ENOTDIR, os.stat, self.at("scan@/ome.zarr/0/c/2/4/0"))
        self.assertErrno(errno.ENOTDIR, os.stat, self.at("scan@/ome.zarr/zarr.json/0"))

    def test_an_image_of_another_size_has_the_metadata_and_the_chunks_of_that(self):
        data = self.filled("film", (6, 20, 30), channels=3, axes="tyx", extent=(2, 8, 16))
        self.stored()
        array = ZarrArray(self.at("film@/ome.zarr/0"))
        held = array.file_of((2, 0, 0, 0))
        self.assertEqual(os.stat(held).st_size, len(read_all(held)))
        os.truncate(self.at("film"), 3 * 20 * 30 * 3)
        self.assertErrno(errno.ENOENT, os.stat, held)
        self.assertErrno(errno.ENOENT, os.listdir, self.at("film@/ome.zarr/0/c/2"))
        self.check(self.at("film"), data[:3], "tyx")
        os.truncate(self.at("film"), 0)
        self.assertEqual(ZarrArray(self.at("film@/ome.zarr/0")).shape, (0, 3, 20, 30))
        self.assertEqual(os.listdir(self.at("film@/ome.zarr/0/c")), [])

    def test_an_open_chunk_is_one_version(self):
        for codec in (0, 1):
            data = self.filled(f"scan{codec}", (3000, 3000), extent=(2048, 2048), codec=codec)
            path = self.at(f"scan{codec}")
            array = ZarrArray(f"{path}@/ome.zarr/0")
            with open(array.file_of((0, 0)), "rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                head = os.pread(file.fileno(), 1000, 0)
                write_all(f"{path}@/win/all.raw", bytes(data.size))
                rest = b""
                while len(head) + len(rest) < size:
                    rest += os.pread(file.fileno(), 1 << 20, len(head) + len(rest))
            np.testing.assert_array_equal(array.decoded(head + rest), data[:2048, :2048])
            self.check(path, np.zeros_like(data), "yx")

    def stored(self):
        """The bytes of all disks."""
        run(harness.MDFS, "volume", "sync", self.volume.path)
        return [read_all(disk) for disk in self.volume.disks]

    def test_a_chunk_is_the_frame_that_is_on_a_disk(self):
        data = self.filled("scan", (200, 300), "u16", extent=(64, 64))  # noise: each frame is another one
        array = ZarrArray(self.at("scan@/ome.zarr/0"))
        self.assertEqual(array.codecs[-1], {"name": "zstd", "configuration": {"level": 3, "checksum": False}})
        disks = self.stored()
        for key in array.keys():
            frame = array.stored(key)
            self.assertEqual(os.stat(array.file_of(key)).st_size, len(frame))
            self.assertEqual(sum(disk.count(frame) for disk in disks), 1, key)
        self.check(self.at("scan"), data, "yx")
        raw = self.filled("raw", (200, 300), "u16", extent=(64, 64), codec=0)
        array = self.check(self.at("raw"), raw, "yx")[0]
        self.assertEqual([codec["name"] for codec in array.codecs], ["bytes"])
        self.assertEqual(os.stat(array.file_of((3, 4))).st_size, 64 * 64 * 2)

    def test_a_dirty_chunk_has_one_size_until_its_frame_is_stored(self):
        data = self.filled("scan", (128, 128), extent=(64, 64))
        self.stored()
        array = ZarrArray(self.at("scan@/ome.zarr/0"))
        before = array.stored((0, 0))
        data[3, 5:50] = 9
        with open(self.at("scan"), "r+b") as file:
            file.seek(3 * 128 + 5)
            file.write(bytes([9]) * 45)
        size = os.stat(array.file_of((0, 0))).st_size
        self.assertEqual(size, 9 + 3 + 64 * 64)  # not compressed
        self.assertEqual(os.stat(array.file_of((0, 0))).st_blocks, -(-size // 512))
        self.stored()
        plain = read_all(array.file_of((0, 0)))
        self.assertEqual(len(plain), size)
        np.testing.assert_array_equal(array.decoded(plain), data[:64, :64])
        with open(array.file_of((0, 0)), "rb") as file:  # plain for all, as long as it is open
            time.sleep(6)
            np.testing.assert_array_equal(array.load((0, 0)), data[:64, :64])
            self.assertEqual(file.read(), plain)
        frame = array.stored((0, 0))
        self.assertNotIn(frame, (before, plain))
        np.testing.assert_array_equal(array.decoded(frame), data[:64, :64])
        self.check(self.at("scan"), data, "yx")

    def test_archives_taken_while_a_writer_goes_on_have_every_other_chunk(self):
        shape, rows = (640, 1024), 8  # of chunks that do not change while an archive is taken
        make_image(self.at("scan"), shape, extent=(64, 64))
        rng = np.random.default_rng(7)
        mirror = os.path.join(self.volume.path, ".mdfs/img", os.path.basename(self.dir), "scan/ome.zarr")
        done, failed = threading.Event(), []

        def go_on():  # the lower rows change, and all that is dirty is written back
            noise = np.random.default_rng(8)
            try:
                while not done.is_set():
                    write_all(self.at("scan@/win/y512+128.raw"), noise.integers(0, 200, 128 * 1024, "u1").tobytes())
                    done.wait(0.05)
                    run(MDFS, "volume", "sync", self.volume.path)
            except Exception as error:  # pylint: disable=broad-except
                failed.append(error)

        def by_tar(to):
            tar = subprocess.run(["tar", "-cf", f"{to}/a.tar", "-C", os.path.dirname(mirror), "ome.zarr"],
                                 capture_output=True, text=True, check=False)
            self.assertIn(tar.returncode, (0, 1), tar.stderr)  # 1: the image has changed
            run("tar", "-xf", f"{to}/a.tar", "-C", to)

        def by_tarfile(to):
            def unchanged(info):  # the module fails at a file that has become smaller since
                return None if info.name in ("ome.zarr/0/c/8", "ome.zarr/0/c/9") else info

            with tarfile.open(f"{to}/a.tar", "w") as archive:
                archive.add(mirror, "ome.zarr", filter=unchanged)
            run("tar", "-xf", f"{to}/a.tar", "-C", to)

        def by_copytree(to):
            shutil.copytree(mirror, f"{to}/ome.zarr")

        programs = {"tar": by_tar, "tarfile": by_tarfile, "copytree": by_copytree,
                    "cp": lambda to: run("cp", "-r", mirror, to), "cp -a": lambda to: run("cp", "-a", mirror, to)}
        if shutil.which("rsync"):
            programs["rsync"] = lambda to: run("rsync", "-r", mirror, to)
        writer = threading.Thread(target=go_on)
        plain = set()
        try:
            for number in range(3):
                if number == 2:  # all that was written by write(2) is dirty
                    done.set()
                    writer.join()
                for name, take in programs.items():
                    upper = rng.integers(0, 200, (512, 1024), "u1")
                    write_all(self.at("scan@/win/y0+512.raw"), upper.tobytes())
                    with open(self.at("scan"), "r+b") as file:  # dirty extents
                        upper[:, 500:1000] = number + 1
                        for y in range(512):
                            file.seek(y * 1024 + 500)
                            file.write(upper[y, 500:1000].tobytes())
                    if writer.ident is None:
                        writer.start()
                    with self.subTest(program=name, number=number), tempfile.TemporaryDirectory() as to:
                        take(to)
                        array = ZarrArray(f"{to}/ome.zarr/0")
                        for key in array.keys():
                            if key[0] < rows:
                                part = upper[key[0] * 64:key[0] * 64 + 64, key[1] * 64:key[1] * 64 + 64]
                                np.testing.assert_array_equal(array.load(key), part, str(key))
                                if os.stat(array.file_of(key)).st_size == 9 + 3 + 64 * 64:
                                    plain.add((name, number, key))
            self.assertEqual(failed, [])
            print(len(plain), "of", len(programs) * 3 * 128, "chunks were dirty", flush=True)
        finally:
            done.set()
            if writer.is_alive():
                writer.join()

    def test_readers_of_two_versions_have_both_whole(self):
        data = self.filled("scan", (1024, 1024), extent=(1024, 1024))
        array = ZarrArray(self.at("scan@/ome.zarr/0"))
        for value in (None, 7, None):  # a large frame, a small one, a large one
            with open(array.file_of((0, 0)), "rb", buffering=0) as old:
                size = os.fstat(old.fileno()).st_size
                first = old.read(20)
                new = np.full_like(data, value) if value else np.random.default_rng(1).integers(
                    0, 200, data.shape).astype("u1")
                write_all(self.at("scan@/win/all.raw"), new.tobytes())
                with open(array.file_of((0, 0)), "rb", buffering=0) as other:
                    self.assertGreaterEqual(os.fstat(old.fileno()).st_size, size)
                    np.testing.assert_array_equal(array.decoded(other.readall()), new)
                    self.stored()  # the blocks of the old frame would be free after some commits
                    rest = old.readall()
                np.testing.assert_array_equal(array.decoded(first + rest), data)
                data = new

    def test_chunks_of_extents_in_strips_are_frames(self):
        make_image(self.at("film"), (0, 40, 50), axes="tyx", extent=(8, 20, 50))
        frames = np.random.default_rng(2).integers(0, 200, (20, 40, 50)).astype("u1")
        array_path = self.at("film@/ome.zarr/0")
        with open(self.at("film"), "ab") as file:
            for number, frame in enumerate(frames):
                file.write(frame.tobytes())
                file.flush()
                os.fsync(file.fileno())
                np.testing.assert_array_equal(ZarrArray(array_path).read(), frames[:number + 1])

    def test_a_large_chunk_is_read_in_any_pieces(self):
        data = self.filled("scan", (4096, 4096), extent=(4096, 4096))
        array = ZarrArray(self.at("scan@/ome.zarr/0"))
        whole = read_all(array.file_of((0, 0)))
        np.testing.assert_array_equal(array.decoded(whole), data)
        rng = random.Random(4)
        with open(array.file_of((0, 0)), "rb", buffering=0) as file:
            for _ in range(200):
                at, count = rng.randrange(len(whole) + 100), rng.randint(1, 3 << 20)
                self.assertEqual(os.pread(file.fileno(), count, at), whole[at:at + count])
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_END), len(whole))
        with open(array.file_of((0, 0)), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            self.assertEqual(mapped[:], whole)

    def test_a_damaged_frame_is_an_error(self):
        volume = harness.Mounted(disks=1)
        self.addCleanup(volume.remove)
        path = f"{volume.path}/scan"
        make_image(path, (64, 64), extent=(64, 64))
        write_all(path, np.random.default_rng(3).integers(0, 200, (64, 64)).astype("u1").tobytes())
        run(harness.MDFS, "volume", "sync", volume.path)
        frame = read_all(f"{path}@/ome.zarr/0/c/0/0")
        volume.unmount()
        stored = read_all(volume.disks[0])
        at = stored.index(frame)
        with open(volume.disks[0], "r+b") as disk:
            disk.seek(at + len(frame) // 2)
            disk.write(bytes([stored[at + len(frame) // 2] ^ 1]))
        volume.mount()
        self.assertErrno(errno.EIO, read_all, f"{path}@/ome.zarr/0/c/0/0")
        volume.unmount()

    def test_metadata_and_names_are_read_only(self):
        self.filled("scan", (40, 70), extent=(16, 16))
        self.stored()
        chunk = self.at("scan@/ome.zarr/0/c/2/4")
        before = read_all(chunk)
        for path in (self.at("scan@/ome.zarr/zarr.json"), self.at("scan@/ome.zarr/0/zarr.json")):
            self.assertErrno(errno.EACCES, open, path, "r+b")
            self.assertErrno(errno.EPERM, os.unlink, path)
        for path in (chunk, self.at("scan@/ome.zarr/zarr.json"), self.at("scan@/ome.zarr/0/zarr.json")):
            self.assertErrno(errno.EPERM, os.rename, path, path + "1")
            self.assertErrno(errno.EINVAL, os.truncate, path, 0)
            self.assertErrno(errno.EPERM, os.chmod, path, 0o666)
        self.assertErrno(errno.EPERM, os.mkdir, self.at("scan@/ome.zarr/1"))
        self.assertErrno(errno.EPERM, os.rmdir, self.at("scan@/ome.zarr/0/c/2"))
        self.assertEqual(read_all(chunk), before)

    def test_times_and_modes_are_those_of_the_image(self):
        self.filled("scan", (40, 70), extent=(16, 16))
        os.chmod(self.at("scan"), 0o640)
        os.utime(self.at("scan"), (1e9, 1e9))
        for name, mode in (("ome.zarr", 0o40550), ("ome.zarr/zarr.json", 0o100440), ("ome.zarr/0", 0o40550),
                           ("ome.zarr/0/zarr.json", 0o100440), ("ome.zarr/0/c", 0o40750),
                           ("ome.zarr/0/c/1", 0o40750), ("ome.zarr/0/c/1/1", 0o100640)):
            found = os.stat(self.at("scan@", name))
            self.assertEqual((oct(found.st_mode), found.st_mtime), (oct(mode), 1e9), name)

    def test_a_copy_of_the_directory_is_an_ordinary_array(self):
        data = self.filled("scan", (45, 70), "u16", channels=3, extent=(16, 16))
        punch(self.at("scan"), 0, 16 * 70 * 6)
        data[:16] = 0
        mirror = os.path.join(self.volume.path, ".mdfs/img", os.path.basename(self.dir), "scan/ome.zarr")
        with tempfile.TemporaryDirectory() as folder:
            run("cp", "-r", mirror, folder)
            array = ZarrArray(f"{folder}/ome.zarr/0")
            np.testing.assert_array_equal(array.read(), np.moveaxis(data, -1, 0))
            self.assertEqual(array.listed(), ZarrArray(self.at("scan@/ome.zarr/0")).listed())
            self.assertEqual(len(array.listed()), 2 * 5)
            shutil.rmtree(f"{folder}/ome.zarr")

    def test_a_list_of_many_chunks_is_complete(self):
        self.filled("row", (4, 40000), extent=(4, 16))
        names = os.listdir(self.at("row@/ome.zarr/0/c/0"))
        self.assertEqual(len(names), 2500)
        self.assertEqual(sorted(map(int, names)), list(range(2500)))
        punch(self.at("row"), 0, 160000)
        self.assertEqual(os.listdir(self.at("row@/ome.zarr/0/c/0")), [])

    def test_a_sparse_image_of_a_trillion_chunks_is_listed_at_once(self):
        side = 1 << 24
        make_image(self.at("huge"), (side, side), extent=(16, 16))
        for number in (0, 77777, side // 16 - 1):
            write_all(self.at(f"huge@/win/y33,x{number * 16}.raw"), b"\1")
        begun = time.monotonic()
        self.assertEqual(sorted(map(int, os.listdir(self.at("huge@/ome.zarr/0/c/2")))), [0, 77777, side // 16 - 1])
        self.assertEqual(os.listdir(self.at("huge@/ome.zarr/0/c/3")), [])
        with os.scandir(self.at("huge@/ome.zarr/0/c")) as entries:
            self.assertEqual([next(entries).name for _ in range(5)], list("01234"))
        self.assertLess(time.monotonic() - begun, 30)
        self.assertEqual(json.loads(read_all(self.at("huge@/ome.zarr/0/zarr.json")))["shape"], [side, side])
        self.assertErrno(errno.ENOENT, os.stat, self.at("huge@/ome.zarr/0/c/2/1"))
        self.assertTrue(os.path.exists(self.at("huge@/ome.zarr/0/c/2/77777")))


if __name__ == "__main__":
    harness.main()
