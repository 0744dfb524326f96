"""Windows of resolution levels by numbers: by ioctl, by libmdfs, and by the channel, as the files of their names."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import fcntl
import json
import os
import random
import subprocess
import threading
import time

import numpy
import harness
from channel_test import Image, in_child, ask_for_token, LIBRARY, maps, NOBODY, Raw
from harness import make_image, MDFS, PLAN_BYTES, read_all, run, WINDOW, write_all

LARGEST_NOW = 16383 - WINDOW.size  # MDFS_IOC_READ_MAX
LIBRARY.mdfs_write_window.restype = ctypes.c_ssize_t
LIBRARY.mdfs_write_window.argtypes = LIBRARY.mdfs_read_window.argtypes
SHAPES = (((301, 455), 1, "u16", "yx"), ((1, 97), 1, "u8", "yx"), ((97, 1), 3, "u8", "yx"),
          ((7, 90, 131), 2, "f32", "zyx"), ((64, 64), 1, "i8", "yx"), ((513,), 1, "u8", "x"),
          ((2, 3, 4, 30, 41), 1, "u16", "stzyx"))


def shape_of(shape, axes, level):
    """The lengths of a level: the axes of the plane are halved, rounded up."""
    for _ in range(level):
        shape = [-(-length // 2) if axis in "yx" else length for axis, length in zip(axes, shape)]
    return tuple(shape)


def plan_of(fd, start, length, level):
    """The counts of extents, holes and cached ones."""
    call = bytearray(harness.window(start, length, level=level)) + bytearray(PLAN_BYTES - WINDOW.size)
    fcntl.ioctl(fd, harness.PLAN, call)
    return [int.from_bytes(call[at:at + 8], "little") for at in range(WINDOW.size, WINDOW.size + 24, 8)]


class LevelWindows(harness.MountTest):
    size = "128M"
    options = "cache=64M,allow_other"

    def image(self, name, shape, channels=1, element="u8", levels=0, **options):
        path = self.at(name)
        make_image(path, shape, channels=channels, element=element, **options)
        size = int(numpy.prod(shape)) * channels * numpy.dtype(harness.NUMPY[element]).itemsize
        data = numpy.random.default_rng(3).integers(0, 120, size, "u1")
        if element == "f32":
            data = numpy.random.default_rng(3).random(size // 4, "f4")
        write_all(path, data.tobytes())
        if levels:
            run(MDFS, "image", "levels", "--set", levels, path)
        return path

    def opened(self, path):
        image = Image(path)
        self.addCleanup(image.close)
        return image

    def descriptor(self, path, flags=os.O_RDONLY):
        fd = os.open(path, flags)
        self.addCleanup(os.close, fd)
        return fd

    def test_every_window_of_a_level_is_that_of_its_file(self):
        rng = random.Random(5)
        for number, (shape, channels, element, axes) in enumerate(SHAPES):
            for stored in (0, 2):
                path = self.image(f"{number}.{stored}", shape, channels, element, stored, axes=axes)
                fd, kind = self.descriptor(path), numpy.dtype(harness.NUMPY[element])
                image = self.opened(path)
                for level in [1, 2, 3, 6] * 5:
                    lengths = shape_of(shape, axes, level)
                    start = [rng.randrange(n) for n in lengths]
                    length = [rng.randint(1, n - at) for n, at in zip(lengths, start)]
                    channel = rng.choice([-1, channels - 1])
                    items = [f"l{level}"] + [f"{axis}{at}+{n}" for axis, at, n in zip(axes, start, length)]
                    items += [f"c{channel}"] if channel >= 0 else []
                    with self.subTest(path=path, window=",".join(items)):
                        wanted = read_all(f"{path}@/win/{','.join(items)}.raw")
                        self.assertEqual(harness.bind(fd, start, length, channel, level), len(wanted))
                        self.assertEqual(os.pread(fd, len(wanted) + 1, 0), wanted)
                        found = image.read(start, length, channel, kind, channels, level)
                        self.assertEqual(found.tobytes(), wanted)
                        if len(wanted) <= LARGEST_NOW:
                            self.assertEqual(harness.read_now(fd, start, length, LARGEST_NOW, channel, level), wanted)

    def test_the_channel_and_the_kernel_give_the_same_samples_and_errors(self):
        before = maps()
        for levels in (0, 3):
            path = self.image(f"scan{levels}", (301, 455), 3, levels=levels)
            image = self.opened(path)
            first = [image.read((0, 0), (151, 228), level=1) for _ in range(8)]
            self.assertEqual(maps(), before + 1, "no channel")
            os.environ["MDFS_CHANNEL"] = "off"
            self.addCleanup(os.environ.pop, "MDFS_CHANNEL", None)
            other = self.opened(path)
            for samples in first + [other.read((0, 0), (151, 228), level=1) for _ in range(8)]:
                self.assertEqual(samples.tobytes(), read_all(f"{path}@/win/l1.raw"))
            self.assertEqual(maps(), before + 1)
            for one in (image, other):
                self.assertErrno(errno.ERANGE, one.read, (0, 0), (1, 1), -1, numpy.uint8, 3, 10)
                self.assertErrno(errno.ERANGE, one.read, (0, 0), (152, 1), -1, numpy.uint8, 3, 1)
                self.assertErrno(errno.ERANGE, one.read, (0, 0), (1, 1), 3, numpy.uint8, 3, 1)
            del os.environ["MDFS_CHANNEL"]

    def test_a_level_that_is_not_there_is_refused_in_every_way(self):
        path = self.image("scan", (40, 40), levels=2)
        fd = self.descriptor(path)
        for start, length, level in (((0, 0), (1, 1), 7), ((0, 0), (1, 1), 0xffffffff), ((20, 0), (1, 1), 1),
                                     ((0, 0), (11, 1), 2)):
            for call in (lambda *window: harness.bind(fd, *window[:2], -1, window[2]),
                         lambda *window: harness.read_now(fd, *window[:2], 100, -1, window[2]),
                         lambda *window: plan_of(fd, *window)):
                self.assertErrno(errno.ERANGE, call, start, length, level)
        self.assertErrno(errno.ENOENT, os.stat, f"{path}@/win/l7.raw")
        self.assertErrno(errno.EFBIG, harness.read_now, fd, (0, 0), (20, 20), 399, -1, 1)
        raw = bytearray(harness.window((0, 0), (1, 1), level=1))
        raw[WINDOW.size - 28] = 1  # reserved0
        self.assertErrno(errno.EINVAL, fcntl.ioctl, fd, harness.BIND, bytes(raw))

    def test_what_is_too_large_to_compute_is_refused_until_it_is_stored(self):
        path = self.at("large")
        make_image(path, (20000, 20000))
        fd, image = self.descriptor(path), self.opened(path)
        self.assertErrno(errno.EFBIG, harness.bind, fd, (0, 0), (10000, 10000), -1, 1)
        self.assertErrno(errno.EFBIG, image.read, (0, 0), (10000, 10000), -1, numpy.uint8, 1, 1)
        self.assertErrno(errno.EFBIG, open, f"{path}@/win/l1.raw")
        said = subprocess.run([MDFS, "window", "read", path, "l1"], capture_output=True, text=True, check=False)
        self.assertIn("store the levels of the image", said.stderr)
        run(MDFS, "image", "levels", "--set", 1, path)
        self.assertEqual(int(image.read((0, 0), (10000, 10000), channels=1, level=1).max()), 0)

    def test_a_window_of_a_level_is_only_read(self):
        path = self.image("scan", (64, 64), levels=1)
        before = read_all(path)
        fd = self.descriptor(path, os.O_RDWR)
        harness.bind(fd, (0, 0), (32, 32), level=1)
        self.assertErrno(errno.EINVAL, os.pwrite, fd, b"x" * 1024, 0)
        fcntl.ioctl(fd, harness.APPLY)
        self.assertEqual(os.pread(fd, 2000, 0), read_all(f"{path}@/win/l1.raw"))
        fcntl.ioctl(fd, harness.UNBIND)
        self.assertEqual(os.pread(fd, 5000, 0), before)
        harness.bind(fd, (0, 0), (32, 32), level=1)
        harness.bind(fd, (0, 0), (32, 32))
        self.assertEqual(os.pread(fd, 32, 32), before[64:96])
        handle = ctypes.c_void_p()
        self.assertEqual(LIBRARY.mdfs_open(os.fsencode(path), os.O_RDWR, ctypes.byref(handle)), 0)
        window = harness.window((0, 0), (32, 32), level=1)
        self.assertEqual(LIBRARY.mdfs_write_window(handle, window, bytes(1024), 1024, None), -errno.EINVAL)
        self.assertIn(b"only read", LIBRARY.mdfs_last_error())
        LIBRARY.mdfs_close(handle)
        only_written = self.descriptor(path, os.O_WRONLY)
        self.assertErrno(errno.EACCES, harness.bind, only_written, (0, 0), (32, 32), -1, 1)
        self.assertErrno(errno.EACCES, harness.read_now, only_written, (0, 0), (2, 2), 100, -1, 1)
        self.assertEqual(read_all(path), before)

    def test_a_read_of_a_level_beside_a_writer_never_mixes(self):
        for levels in (0, 2):
            path = self.image(f"flicker{levels}", (200, 300), levels=levels, extent=(64, 64))
            write_all(path, bytes([1]) * (200 * 300))
            done, mixed, reads = threading.Event(), [], [0]

            def work(image, level):
                fd = os.open(path, os.O_RDONLY)
                lengths = shape_of((200, 300), "yx", level)
                try:
                    while not done.is_set():
                        harness.bind(fd, (0, 0), lengths, level=level)
                        for found in (os.pread(fd, 1 << 20, 0), image.read((0, 0), lengths, channels=1, level=level)):
                            reads[0] += 1
                            if len(set(bytes(found))) != 1:
                                mixed.append(set(bytes(found)))
                except OSError as problem:
                    mixed.append(problem)
                os.close(fd)
            threads = [threading.Thread(target=work, args=(self.opened(path), level)) for level in (1, 2, 3)]
            for thread in threads:
                thread.start()
            for value in range(2, 42):
                write_all(f"{path}@/win/all.raw", bytes([value]) * (200 * 300))
            done.set()
            for thread in threads:
                thread.join()
            self.assertEqual(mixed, [])
            self.assertGreater(reads[0], 5)

    def test_levels_grow_and_shrink_with_the_image(self):
        path = self.at("film")
        make_image(path, (0, 50, 70), axes="tyx")
        fd, image = self.descriptor(path), self.opened(path)
        run(MDFS, "image", "levels", "--set", 2, path)
        for count in range(1, 6):
            with open(path, "ab") as file:
                file.write(bytes([40 * count]) * 3500)
            self.assertErrno(errno.ERANGE, harness.bind, fd, (count, 0, 0), (1, 25, 35), -1, 1)
            harness.bind(fd, (count - 1, 0, 0), (1, 25, 35), -1, 1)
            self.assertEqual(set(os.pread(fd, 1000, 0)), {40 * count})
            self.assertEqual(set(image.read((count - 1, 0, 0), (1, 13, 18), channels=1, level=2).ravel()), {40 * count})
        os.truncate(path, 3500)
        self.assertErrno(errno.ERANGE, image.read, (1, 0, 0), (1, 13, 18), -1, numpy.uint8, 1, 2)

    def test_a_plan_counts_the_extents_of_a_stored_level_or_of_what_it_is_made_of(self):
        path = self.image("scan", (512, 512), extent=(64, 64))
        fd = self.descriptor(path)
        os.fsync(fd)
        self.assertEqual(plan_of(fd, (0, 0), (128, 128), 1)[:2], [16, 0])
        self.assertEqual(plan_of(fd, (0, 0), (16, 16), 3)[:2], [4, 0])
        run(MDFS, "image", "levels", "--set", 1, path)
        harness.bind(fd, (0, 0), (256, 256), level=1)
        self.assertEqual(plan_of(fd, (0, 0), (256, 256), 1), [16, 0, 16])
        self.assertEqual(plan_of(fd, (0, 0), (32, 32), 2)[:2], [1, 0])
        said = json.loads(run(MDFS, "window", "explain", "--json", path, "l1,y0+64"))
        self.assertEqual((said["window"], said["shape"], said["extents"]), ("l1,y0+64", [64, 256], 4))

    def test_the_tool_reads_windows_of_levels(self):
        path = self.image("scan", (301, 455), element="u16", levels=1)
        for spec in ("l1", "l2,y3+10,x5", "l3,0,0,20,10"):
            run(MDFS, "window", "read", "--force", "-o", self.at("out.npy"), path, spec)
            numpy.testing.assert_array_equal(numpy.load(self.at("out.npy")), numpy.load(f"{path}@/win/{spec}.npy"))
        for spec in ("l9", "l10", "l1,y151"):
            done = subprocess.run([MDFS, "window", "read", path, spec], capture_output=True, check=False)
            self.assertEqual(done.returncode, 0 if spec == "l9" else 2, done.stderr)
        done = subprocess.run([MDFS, "window", "write", path, "l1", "-"], input=b"", capture_output=True, check=False)
        self.assertIn(b"levels are only read", done.stderr)

    def test_a_channel_gives_levels_only_while_its_image_is_open(self):
        path = self.image("scan", (64, 64), levels=1)
        fd = os.open(path, os.O_RDONLY)
        token, name = ask_for_token(fd)
        client = Raw(name)
        self.addCleanup(client.close)
        number = client.attach(token)
        self.assertEqual(client.ask(number, (0, 0), (32, 32), 1024, level=1), (0, read_all(f"{path}@/win/l1.raw")))
        self.assertEqual(client.ask(number, (0, 0), (1, 1), 1, level=7)[0], errno.ERANGE)
        self.assertEqual(client.ask(number, (0, 0), (32, 32), 1023, level=1)[0], errno.EINVAL)
        os.close(fd)
        end = time.monotonic() + 30
        while client.ask(number, (0, 0), (32, 32), 1024, level=1)[0] != errno.ENOENT:
            self.assertLess(time.monotonic(), end)

    def test_a_user_without_the_right_to_read_gets_no_level(self):
        path = self.image("scan", (64, 64), levels=1)
        os.chmod(self.dir, 0o755)
        os.chmod(path, 0o644)

        def work():
            image = Image(path)
            assert image.read((0, 0), (32, 32), channels=1, level=1).size == 1024
        self.assertEqual(in_child(work, NOBODY), 0)
        os.chmod(path, 0o600)
        self.assertEqual(in_child(work, NOBODY), 1)


if __name__ == "__main__":
    harness.main()
