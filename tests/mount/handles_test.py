"""Handles of files outlast what the kernel keeps of them; names that are too long, or lead through symbolic links."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import os
import struct
import subprocess

import harness
from harness import make_image, read_all, write_all

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100


def name_to_handle(path):
    buffer = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    if LIBC.name_to_handle_at(AT_FDCWD, path.encode(), buffer, ctypes.byref(mount), 0) != 0:
        raise OSError(ctypes.get_errno(), "name_to_handle_at")
    return bytes(buffer.raw)


def open_by_handle(volume, handle, flags=os.O_RDONLY):
    at = os.open(volume, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fd = LIBC.open_by_handle_at(at, ctypes.create_string_buffer(handle), flags)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "open_by_handle_at")
        return fd
    finally:
        os.close(at)


def forget_all():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("2")


class Handles(harness.MountTest):
    def opened(self, handle):
        fd = open_by_handle(self.volume.path, handle)
        try:
            return os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd).st_ino, os.pread(fd, 100, 0)
        finally:
            os.close(fd)

    def test_a_handle_opens_its_file_after_the_kernel_has_forgotten_it(self):
        os.makedirs(self.at("a", "b"))
        path = self.at("a", "b", "file")
        write_all(path, b"bytes")
        number, handle, folder = os.stat(path).st_ino, name_to_handle(path), name_to_handle(self.at("a", "b"))
        forget_all()
        self.assertEqual(self.opened(handle)[1:], (number, b"bytes"))
        forget_all()
        fd = open_by_handle(self.volume.path, folder, os.O_RDONLY | os.O_DIRECTORY)
        self.assertEqual(os.listdir(fd), ["file"])
        self.assertEqual(os.readlink(f"/proc/self/fd/{fd}"), self.at("a", "b"), "its way to the root is found")
        os.close(fd)

    def test_a_handle_outlasts_the_mount_and_follows_renames(self):
        write_all(self.at("file"), b"bytes")
        handle = name_to_handle(self.at("file"))
        os.rename(self.at("file"), self.at("other"))
        self.volume.unmount()
        self.volume.mount(self.options)
        self.assertEqual(self.opened(handle)[2], b"bytes")

    def test_the_handle_of_a_file_that_is_gone_is_stale(self):
        write_all(self.at("file"), b"bytes")
        handle = name_to_handle(self.at("file"))
        os.unlink(self.at("file"))
        forget_all()
        self.assertErrno(errno.ESTALE, self.opened, handle)
        write_all(self.at("file"), b"another")
        self.assertErrno(errno.ESTALE, self.opened, handle)


class Names(harness.MountTest):
    def test_names_of_more_than_255_bytes_are_too_long_for_every_call(self):
        write_all(self.at("file"), b"x")
        os.mkdir(self.at("dir"))
        make_image(self.at("image"), (8, 8))
        for name in ("n" * 256, "n" * 255 + "@", "n" * 600, "n" * 300 + "@"):
            long = self.at(name)
            calls = (
                (os.stat, long), (os.lstat, long), (os.mkdir, long), (os.unlink, long), (os.rmdir, long),
                (os.symlink, "x", long), (os.link, self.at("file"), long), (os.rename, self.at("file"), long),
                (os.rename, long, self.at("file")), (os.mkfifo, long), (os.open, long, os.O_CREAT | os.O_WRONLY),
                (os.open, long, os.O_RDONLY), (os.stat, self.at("image@", name)),
                (os.stat, self.at("image@/win", name)),
                (os.stat, self.volume / f".mdfs/img/{name}"))
            for call, *arguments in calls:
                with self.subTest(call=call.__name__, name=f"{len(name)} {name[-1]}"):
                    self.assertErrno(errno.ENAMETOOLONG, call, *arguments)
        write_all(self.at("n" * 255), b"x")
        self.assertEqual(sorted(os.listdir(self.dir)), ["dir", "file", "image", "n" * 255])

    def test_reserved_names_are_invalid_for_every_call(self):
        write_all(self.at("file"), b"x")
        os.mkdir(self.at("dir"))
        taken = self.at("file@")
        for call, *arguments in ((os.rename, self.at("file"), taken), (os.mkdir, taken), (os.symlink, "x", taken),
                                 (os.link, self.at("file"), taken), (os.rename, self.at("dir"), taken),
                                 (os.open, taken, os.O_CREAT | os.O_WRONLY), (os.mkfifo, taken)):
            with self.subTest(call=call.__name__):
                # mv(1) words EINVAL as a move of a directory into itself.
                number = errno.EPERM if call is os.rename else errno.EINVAL
                self.assertErrno(number, call, *arguments)
        moved = subprocess.run(["mv", self.at("file"), taken], env={**os.environ, "LC_ALL": "C"},
                               capture_output=True, text=True, check=False)
        self.assertIn("Operation not permitted", moved.stderr)

    def test_the_views_of_an_image_are_found_through_symbolic_links(self):
        os.mkdir(self.at("data"))
        make_image(self.at("data", "scan"), (8, 16), codec=0)
        write_all(self.at("plain"), b"x")
        with open(self.at("data", "scan"), "r+b") as file:
            file.write(bytes(range(128)))
        expected = read_all(self.at("data", "scan@", "win", "y0+2,x0+4.raw"))
        self.assertEqual(len(expected), 8)
        os.symlink("data/scan", self.at("relative"))
        os.symlink(self.at("data", "scan"), self.at("absolute"))
        os.symlink("relative", self.at("chain"))
        os.symlink("plain", self.at("other"))
        os.symlink("nowhere", self.at("dangling"))
        for name in ("relative", "absolute", "chain"):
            self.assertEqual(read_all(self.at(name + "@", "win", "y0+2,x0+4.raw")), expected, name)
            self.assertEqual(os.stat(self.at(name + "@")).st_ino, os.stat(self.at("data", "scan@")).st_ino)
            self.assertTrue(os.path.islink(self.at(name + "@")))
        for name in ("other", "dangling"):
            self.assertErrno(errno.ENOENT, os.stat, self.at(name + "@"))
        os.unlink(self.at("relative"))
        self.assertErrno(errno.ENOENT, os.lstat, self.at("relative@"))
        os.symlink("plain", self.at("relative"))
        self.assertErrno(errno.ENOENT, os.stat, self.at("relative@"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["absolute", "chain", "dangling", "data", "other", "plain",
                                                       "relative"])


if __name__ == "__main__":
    harness.main()
