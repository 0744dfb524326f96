"""Windows of several MiB are read in one version beside writers: bound, by path, by libmdfs and by the command."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import os
import subprocess
import threading

import harness
from harness import MDFS, bind, make_image, write_all

SHAPE = (24, 600, 500)  # 7.2 MB: eight requests of the kernel
START, LENGTH = (1, 50, 20), (22, 500, 460)
SPEC = "z1+22,y50+500,x20+460"
BYTES = 22 * 500 * 460


class Versions(harness.MountTest):
    size = "128M"

    def setUp(self):
        super().setUp()
        self.mixed, self.whole, self.stale, self.errors = [], 0, 0, []
        self.lock = threading.Lock()
        self.done = threading.Event()

    def make(self, name, codec):
        make_image(self.at(name), SHAPE, codec=codec, extent=(8, 64, 64))
        write_all(self.at(name), b"\1" * (SHAPE[0] * SHAPE[1] * SHAPE[2]))
        return self.at(name)

    def note(self, data, what):
        """Each write fills the window with one value: two values are two versions."""
        values = set(data[i] for i in range(0, len(data), 37))
        with self.lock:
            if len(data) != BYTES or len(values) != 1:
                self.mixed.append(f"{what}: {len(data)} bytes of {sorted(values)}")
            else:
                self.whole += 1

    def beside_writers(self, path, readers, rounds=40):
        """Runs each reader again and again until the writer has written so often."""
        def loop(reader):
            while not self.done.is_set():
                try:
                    reader()
                except OSError as error:
                    with self.lock:
                        if error.errno == errno.ESTALE:
                            self.stale += 1
                        else:
                            self.errors.append(str(error))

        threads = [threading.Thread(target=loop, args=(reader,)) for reader in readers]
        for thread in threads:
            thread.start()
        try:
            fd = os.open(path, os.O_RDWR)
            bind(fd, START, LENGTH)
            for i in range(rounds):
                data = bytes([i % 250 + 2]) * BYTES
                done = 0
                while done < BYTES:
                    done += os.pwrite(fd, data[done:], done)
                if i % 4 == 0:
                    os.fsync(fd)
            os.close(fd)
        finally:
            self.done.set()
            for thread in threads:
                thread.join()
        self.assertEqual(self.mixed, [])
        self.assertEqual(self.errors, [])
        self.assertGreater(self.whole, 0)
        print(f"{self.whole} reads of one version, {self.stale} given up", flush=True)

    def test_a_bound_read_is_of_one_version(self):
        for codec in (0, 1):
            self.done.clear()
            path = self.make(f"scan{codec}", codec)

            def read(size=BYTES, path=path):
                fd = os.open(path, os.O_RDONLY)
                try:
                    bind(fd, START, LENGTH)
                    parts, at = [], 0
                    while at < BYTES:
                        parts.append(os.pread(fd, min(size, BYTES - at), at))
                        at += len(parts[-1])
                    self.note(b"".join(parts), "bound")
                finally:
                    os.close(fd)

            self.beside_writers(path, [read, lambda: read(300_001)])

    def test_an_open_window_file_is_of_one_version(self):
        for codec in (0, 1):
            self.done.clear()
            path = self.make(f"scan{codec}", codec)

            def read(path=path):
                fd = os.open(f"{path}@/win/{SPEC}.raw", os.O_RDONLY)
                try:
                    parts = []
                    while part := os.read(fd, 2 << 20):
                        parts.append(part)
                    self.note(b"".join(parts), "path")
                finally:
                    os.close(fd)

            def read_npy(path=path):
                fd = os.open(f"{path}@/win/{SPEC}.npy", os.O_RDONLY)
                try:
                    parts = []
                    while part := os.read(fd, 700_000):
                        parts.append(part)
                    self.note(b"".join(parts)[-BYTES:], "npy")
                finally:
                    os.close(fd)

            self.beside_writers(path, [read, read_npy])

    def test_a_call_of_libmdfs_and_the_command_read_one_version(self):
        library = ctypes.CDLL(os.environ["LIBMDFS"], use_errno=True)
        library.mdfs_read_window.restype = ctypes.c_ssize_t
        path = self.make("scan", 1)
        image = ctypes.c_void_p()
        self.assertEqual(library.mdfs_open(path.encode(), os.O_RDONLY, ctypes.byref(image)), 0)

        def read():
            buffer = ctypes.create_string_buffer(BYTES)
            got = library.mdfs_read_window(image, harness.window(START, LENGTH), buffer, ctypes.c_size_t(BYTES), None)
            if got < 0:
                raise OSError(-got, os.strerror(-got))
            self.note(buffer.raw, "libmdfs")

        def command():
            done = subprocess.run([MDFS, "window", "read", path, SPEC], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False)
            if done.returncode == 0:
                self.note(done.stdout, "mdfs window read")
            elif b"out of date" in done.stderr:
                raise OSError(errno.ESTALE, "given up")
            else:
                raise OSError(errno.EIO, done.stderr.decode())

        self.beside_writers(path, [read, command])
        library.mdfs_close(image)

    def test_a_version_lasts_until_the_last_byte_or_a_new_beginning(self):
        path = self.make("scan", 1)
        fd = os.open(path, os.O_RDWR)
        writer = os.open(path, os.O_RDWR)

        def fill(value):
            bind(writer, START, LENGTH)
            self.assertEqual(os.pwrite(writer, bytes([value]) * BYTES, 0), BYTES)

        bind(fd, START, LENGTH)
        self.assertEqual(os.pread(fd, 10, 0), b"\1" * 10)
        fill(2)
        self.assertEqual(os.pread(fd, 10, BYTES - 10), b"\1" * 10)
        self.assertEqual(os.pread(fd, 10, 0), b"\2" * 10, "the first byte again")
        fill(3)
        self.assertEqual(os.pread(fd, BYTES, 10), b"\2" * (BYTES - 10))
        self.assertEqual(os.pread(fd, 10, 20), b"\3" * 10, "all had been read")
        fill(4)
        bind(fd, START, LENGTH)
        self.assertEqual(os.pread(fd, 10, 20), b"\4" * 10, "bound again")
        plain = os.open(path, os.O_RDWR)
        os.pwrite(plain, b"\5" * (SHAPE[0] * SHAPE[1] * SHAPE[2]), 0)
        self.assertEqual(os.pread(fd, 3 << 20, 100), b"\4" * (3 << 20), "after a plain write")
        os.ftruncate(plain, 5 * SHAPE[1] * SHAPE[2])
        self.assertErrno(errno.ESTALE, os.pread, fd, 10, 5000)
        for one in (fd, writer, plain):
            os.close(one)


if __name__ == "__main__":
    harness.main()
