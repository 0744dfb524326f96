"""Nonsense to ioctls and virtual paths: the right errno, nothing changed, and the daemon goes on."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import os
import struct
import time

import harness
from bad_input_test import digest
from harness import (APPLY, BIND, GEOMETRY, GET_GEOMETRY, LAYOUT, LAYOUT_BYTES, PLAN, PLAN_BYTES, SET_GEOMETRY, SYNC,
                     UNBIND,
                     VOLUME, WINDOW, ioc, main, make_image, write_all)

NUMBERS = {4: (0, 1, 2, 5, 2 ** 16, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1),
           8: (0, 1, 2, 2 ** 31, 2 ** 32, 2 ** 62, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1),
           2: (0, 1, 2 ** 15, 2 ** 16 - 1), 1: (0, 1, 4, 127, 128, 255)}
REFUSED = (errno.EINVAL, errno.ERANGE, errno.EFBIG, errno.EOVERFLOW, errno.EOPNOTSUPP)


def fields(layout):
    """Offset and size of every number of a structure; texts byte by byte."""
    at = 0
    for size in layout:
        yield at, size
        at += size


WINDOW_FIELDS = list(fields([4, 4] + [8] * 10 + [4, 4, 8] + [4, 4] + [8] * 3))
GEOMETRY_FIELDS = list(fields([4, 1, 1, 2, 1,
                               1] + [1] * 6 + [8] * 5 + [4] * 5 + [4] + [1] * 8 + [8] * 5 + [1] * 40 + [4, 4] +
                              [8] * 4 + [8] * 8))


class Calls(harness.MountTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        v = cls.volume
        make_image(v / "scan", (20, 30), channels=3)
        write_all(v / "scan", bytes(range(200)) * 9)
        make_image(v / "stack", (5, 40, 50), element="u16")
        make_image(v / "sparse", (2 ** 20, 2 ** 20, 2 ** 20), extent=(1, 8, 8))
        write_all(v / "plain", b"not an image")
        write_all(v / "empty", b"")
        os.mkdir(v / "folder")
        os.mkfifo(v / "pipe")
        os.mkdir(v / "scratch")  # not looked at

    def setUp(self):
        self.before = digest(self.volume.path, "scratch")

    def tearDown(self):
        self.assertEqual(digest(self.volume.path, "scratch"), self.before, "something changed")
        with open(self.volume / "scan@/win/y1.raw", "rb") as file:
            self.assertEqual(len(file.read()), 90)

    def tried(self, fd, command, data):
        """The errno of a call, 0 for success; no call takes long."""
        begin = time.monotonic()
        try:
            fcntl.ioctl(fd, command, bytearray(data))
            result = 0
        except OSError as error:
            result = error.errno
        self.assertLess(time.monotonic() - begin, 5, hex(command))
        return result

    def test_every_field_of_a_window(self):
        good = harness.window((5, 10), (7, 8))
        fd = os.open(self.volume / "scan", os.O_RDWR)
        for offset, size in WINDOW_FIELDS:
            for value in NUMBERS[size]:
                data = bytearray(good)
                data[offset:offset + size] = value.to_bytes(size, "little")
                window = WINDOW.unpack(data)
                start, length, channel, level = window[2:7], window[7:12], window[12], window[15]
                fits = level <= 5 and all(s + n <= -(-side // 2 ** level)
                                          for s, n, side in zip(start, length, (20, 30)))
                wrong_form = (window[0] != WINDOW.size or window[1] != 2 or any(start[2:] + length[2:]) or
                              channel < -1 or window[13] or any(window[16:]) or (0 in length[:2]))
                expected = (errno.EINVAL,) if wrong_form else (0,) if fits and channel < 3 else (errno.ERANGE,)
                if wrong_form and not fits:
                    expected += (errno.ERANGE,)
                for name, command, call in (("bind", BIND, data), ("read", ioc(3, 10, WINDOW.size + 2000),
                                                                   data + bytes(2000)),
                                            ("plan", PLAN, data + bytes(PLAN_BYTES - WINDOW.size))):
                    with self.subTest(call=name, offset=offset, value=value):
                        self.assertIn(self.tried(fd, command, call), expected)
        os.close(fd)

    def test_every_field_of_a_geometry(self):
        good = harness.geometry((20, 30), channels=3, extent=(8, 8), axes="yx")
        legal = set()
        for offset, size in GEOMETRY_FIELDS:
            for value in NUMBERS[size]:
                data = bytearray(good)
                data[offset:offset + size] = value.to_bytes(size, "little")
                if data == good or (88 <= offset < 128 and value == 2 ** 63):  # a spacing of -0.0 is none
                    continue
                path = self.volume / "scratch/made"
                fd = os.open(path, os.O_RDWR | os.O_CREAT)
                with self.subTest(offset=offset, value=value):
                    result = self.tried(fd, SET_GEOMETRY, data)
                    self.assertIn(result, (0, *REFUSED))
                    if result == 0:
                        legal.add(offset)
                        self.assertEqual(self.tried(fd, GET_GEOMETRY, bytes(GEOMETRY.size)), 0)
                        self.assertLessEqual(os.fstat(fd).st_size, 2 ** 62)
                    else:
                        self.assertEqual(os.fstat(fd).st_size, 0)
                        self.assertEqual(self.tried(fd, GET_GEOMETRY, bytes(GEOMETRY.size)), errno.EINVAL)
                os.close(fd)
                os.unlink(path)
        # What is reserved, an answer, or beyond the rank admits nothing but zero.
        never = [0, 4, *range(11, 16), 32, 40, 48, 64, 68, 72, 104, 112, 120, *range(144, 168), *range(176, 272)]
        self.assertEqual(legal & set(never), set())

    def test_commands_of_the_wrong_size_and_direction_are_not_known(self):
        fd = os.open(self.volume / "scan", os.O_RDWR)
        sizes = {1: GEOMETRY.size, 2: GEOMETRY.size, 3: WINDOW.size, 6: PLAN_BYTES, 7: LAYOUT_BYTES,
                 8: VOLUME & 0x3fff0000 >> 16}
        known = {SET_GEOMETRY, GET_GEOMETRY, BIND, UNBIND, APPLY, PLAN, LAYOUT, VOLUME, SYNC}
        for number in [*range(0, 34), 127, 255]:
            right = sizes.get(number, 0)
            for direction in range(4):
                for size in {0, 1, right - 1, right, right + 1, 8, 16383} - {-1}:
                    command = ioc(direction, number, size)
                    # A window and room behind it is the one command of any size; a machine is asked of by number 32.
                    if command in known or number in (10, 32):
                        continue
                    with self.subTest(hex(command)):
                        self.assertEqual(self.tried(fd, command, bytes(16384)), errno.ENOTTY)
        for size in (0, 1, WINDOW.size - 1, WINDOW.size):
            self.assertEqual(self.tried(fd, ioc(3, 10, size), bytes(16384)), errno.ENOTTY)
        for direction in range(3):
            self.assertEqual(self.tried(fd, ioc(direction, 10, WINDOW.size + 8), bytes(16384)), errno.ENOTTY)
        os.close(fd)

    def test_commands_on_files_that_are_none_for_them(self):
        v = self.volume
        window, geometry = harness.window((5, 10), (7, 8)), harness.geometry((4, 4))
        calls = {"set": (SET_GEOMETRY, geometry), "get": (GET_GEOMETRY, bytes(GEOMETRY.size)), "bind": (BIND, window),
                 "apply": (APPLY, b""), "plan": (PLAN, window + bytes(PLAN_BYTES - WINDOW.size)),
                 "layout": (LAYOUT, bytes(LAYOUT_BYTES)), "read": (ioc(3, 10, WINDOW.size + 500), window + bytes(500))}
        for name, flags in (("plain", os.O_RDWR), ("plain", os.O_RDONLY), ("folder", os.O_RDONLY), ("", os.O_RDONLY),
                            ("scan@", os.O_RDONLY), ("scan@/win", os.O_RDONLY), ("scan@/info.json", os.O_RDONLY),
                            ("scan@/win/y1.raw", os.O_RDWR), ("scan@/scan.npy", os.O_RDONLY), (".mdfs/img",
                                                                                               os.O_RDONLY),
                            ("pipe", os.O_RDWR), ("scan", os.O_PATH), ("scan", os.O_WRONLY), ("scan", os.O_RDONLY)):
            fd = os.open(v / name, flags)
            for call, (command, data) in calls.items():
                with self.subTest(name, call=call, flags=flags):
                    result = self.tried(fd, command, data)
                    if flags & os.O_PATH:
                        self.assertEqual(result, errno.EBADF)
                    elif name == "plain" and call == "set" and flags == os.O_RDONLY:
                        self.assertEqual(result, errno.EACCES)
                    elif name == "plain":
                        self.assertEqual(result, errno.EINVAL)
                    elif name == "scan":
                        expected = {"set": errno.EACCES if flags == os.O_RDONLY else errno.EINVAL,
                                    "read": errno.EACCES if flags == os.O_WRONLY else 0, "apply": 0}
                        self.assertIn(result, (expected.get(call, 0), errno.EEXIST if call == "set" else 0))
                    else:
                        self.assertIn(result, (errno.ENOTTY, errno.EINVAL))
            os.close(fd)

    def test_windows_of_an_enormous_image_are_answered_at_once_or_refused(self):
        fd = os.open(self.volume / "sparse", os.O_RDWR)
        for start, length in (((0, 0, 0), (2 ** 20, 2 ** 20, 2 ** 20)), ((2 ** 20 - 1,) * 3, (1, 1, 1)),
                              ((0, 0, 0), (1, 2 ** 20, 2 ** 20)), ((0, 0, 0), (2 ** 20, 1, 2 ** 10)),
                              ((5, 5, 5), (2 ** 10, 2 ** 10, 2 ** 4))):
            window = harness.window(start, length)
            with self.subTest(length=length):
                self.assertIn(self.tried(fd, PLAN, window + bytes(PLAN_BYTES - WINDOW.size)), (0, errno.EFBIG))
                self.assertIn(self.tried(fd, BIND, window), (0, errno.EFBIG))
                self.assertIn(self.tried(fd, ioc(3, 10, WINDOW.size + 2000), window + bytes(2000)), (0, errno.EFBIG))
        self.assertEqual(self.tried(fd, LAYOUT, bytes(LAYOUT_BYTES)), 0)
        os.close(fd)

    def test_cursors_of_a_layout(self):
        fd = os.open(self.volume / "scan", os.O_RDONLY)
        for page in (0, 1, 200, 2 ** 31, 2 ** 63, 2 ** 64 - 1):  # beyond the last one there is nothing
            for row, result in ((0, 0), (1, 0), (33407, 0), (33408, errno.EINVAL), (2 ** 32 - 1, errno.EINVAL)):
                call = struct.pack("<QIIII", page, 0, 0, 0, row)
                self.assertEqual(self.tried(fd, LAYOUT, call + bytes(LAYOUT_BYTES - len(call))), result, (page, row))
        os.close(fd)

    def test_virtual_paths(self):
        v = self.volume
        names = ["y", "y+", "y5+", "+5", "-1", "y-1", "y0-5", "y0+0", "y20", "y0+21", "y19+2", "z1", "c3", "c0+1",
                 "l40", "l", "l1,l1", "l1+2", "y1,y2",
                 "y1,,x1", ",y1", "y1,", "y1, x1", "Y1", "1", "1,2", "1,2,3", "0,0,0,5", "0,0,31,5", "1,2,3,4,5",
                 "y0x1", "y1.5",
                 "y\n1", "y\x1b1", "%n%s", "y18446744073709551616", "y1+18446744073709551615", "y9223372036854775808",
                 "y4294967296", "y1\xff", "\udcff\udcfe", "y1;x1", "y1+1+1", "y 1", "t1", "y1,x1,c0,l0,y1"]
        endings = (".raw", ".npy", ".pgm", ".ppm", ".png", "", ".", ".txt", ".raw.raw", ".RAW", ".npy@",
                   "\0"[:0] + ".raw ")
        for name in names:
            for ending in endings:
                for call in (os.stat, lambda path: os.close(os.open(path, os.O_RDWR)), lambda path: write_all(path,
                                                                                                              b"x")):
                    path = os.fsencode(v / f"scan@/win/") + (name + ending).encode(errors="surrogateescape")
                    with self.subTest(path):
                        self.assertErrnoIn((errno.ENOENT, errno.EPERM, errno.EACCES), call, path)
        for path in ("scan@/win/" + "y" * 255, "scan@/win/" + "9" * 255 + ".raw", "scan@/win/y1/x1.raw",
                     "scan@/win/y1.raw/x",
                     "scan@/stack.npy", "stack@/scan.npy", "stack@/win/../../../scan@@/info.json", "scan@@/win/y1.raw",
                     "scan@/scan@/info.json", "folder@/win/y1.raw", "empty@/info.json", "pipe@", "@", "@@", "folder/@",
                     ".mdfs/img/none", ".mdfs/img/plain/info.json", ".mdfs/img/scan/win/y20.raw", ".mdfs/img/scan@",
                     ".mdfs/img/.mdfs", ".mdfs/none", ".mdfs@", ".mdfs/img@"):
            with self.subTest(path):
                longest = max(map(len, path.split("/")))
                wanted = (errno.ENOENT, errno.ENOTDIR) if longest <= 255 else (errno.ENAMETOOLONG,)
                self.assertErrnoIn(wanted, os.stat, v / path)
        for path in ("scan@/win/" + "y" * 256, "scan@/win/" + "y1," * 1300 + "x1.raw"):
            self.assertErrno(errno.ENAMETOOLONG, os.stat, v / path)

    def assertErrnoIn(self, numbers, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        self.assertIn(caught.exception.errno, numbers)

    def test_what_is_written_to_virtual_files(self):
        v = self.volume
        header = open(v / "scan@/win/y1.npy", "rb").read(128)
        for name, data in (("y1.raw", b"x"), ("y1.raw", b"x" * 89), ("y1.raw", b"x" * 91), ("y1.npy", b"x" * 200),
                           ("y1.npy", header), ("y1.npy", header + b"x" * 89), ("y1.npy", header + b"x" * 91),
                           ("y1.npy", header.replace(b"|u1", b"<u2") + b"x" * 90), ("y1.npy", b"x" * 128 + b"y" * 90),
                           ("y1.npy", header.replace(b"30,", b"31,") + b"x" * 90)):
            with self.subTest(name=name, size=len(data)):
                fd = os.open(v / ("scan@/win/" + name), os.O_WRONLY | os.O_TRUNC)
                failed = 0
                try:
                    os.write(fd, data)
                except OSError as error:
                    failed = error.errno
                try:
                    os.close(fd)
                except OSError as error:
                    failed = error.errno
                self.assertIn(failed, REFUSED)
        fd = os.open(v / "scan@/win/y1.raw", os.O_RDWR)
        for offset in (90, 91, 2 ** 31, 2 ** 62):
            self.assertErrnoIn((errno.EFBIG, errno.EINVAL, errno.ENOSPC), os.pwrite, fd, b"x", offset)
            self.assertEqual(os.pread(fd, 10, offset), b"")
        for size in (1, 89, 91, 2 ** 40):
            self.assertErrnoIn((errno.EINVAL, errno.EPERM, errno.EFBIG), os.ftruncate, fd, size)
        os.close(fd)

    def test_bound_descriptors_are_no_wider_than_their_window(self):
        fd = os.open(self.volume / "scan", os.O_RDWR)
        harness.bind(fd, (1, 2), (3, 4))
        for offset in (36, 37, 2 ** 31, 2 ** 62):
            self.assertEqual(os.pread(fd, 10, offset), b"")
            self.assertErrnoIn((errno.EFBIG, errno.EINVAL, errno.ENOSPC), os.pwrite, fd, b"x", offset)
        self.assertEqual(os.pwrite(fd, b"x" * 10, 30), 6)
        os.close(fd)


if __name__ == "__main__":
    main()
