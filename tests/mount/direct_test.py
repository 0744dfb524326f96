"""What the kernel caches of a file that is written past its cache: pages, and the mode."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import itertools
import mmap
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import harness
from full_mappings_test import MappingTest
from harness import NOBODY, as_user, make_image, write_all

LIBC = ctypes.CDLL(None, use_errno=True)
IO_SETUP, IO_DESTROY, IO_GETEVENTS, IO_SUBMIT = 206, 207, 208, 209  # of x86-64
IOCB_PWRITE = 1
BYTES = 64 << 10


class AsyncWriter:
    """Asynchronous direct writes of one file, one at a time (io_submit(2))."""

    def __init__(self, fd):
        self.fd = fd
        self.context = ctypes.c_ulong()
        if LIBC.syscall(IO_SETUP, 4, ctypes.byref(self.context)) != 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        self.memory = mmap.mmap(-1, BYTES)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def write(self, value):
        self.memory[:] = bytes([value]) * BYTES
        # data, key, flags, opcode, priority, fd, buffer, bytes, offset, reserved, flags, eventfd
        request = ctypes.create_string_buffer(
            struct.pack("=QIIHhIQQqQII", 0, 0, 0, IOCB_PWRITE, 0, self.fd, self.address, BYTES, 0, 0, 0, 0))
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(request))
        if LIBC.syscall(IO_SUBMIT, self.context, ctypes.c_long(1), pointers) != 1:
            raise OSError(ctypes.get_errno(), "io_submit")
        event = ctypes.create_string_buffer(32)
        if LIBC.syscall(IO_GETEVENTS, self.context, ctypes.c_long(1), ctypes.c_long(1), event, None) != 1:
            raise OSError(ctypes.get_errno(), "io_getevents")
        result = struct.unpack("=QQqq", event.raw)[2]
        if result != BYTES:
            raise OSError(-result, "aio")

    def close(self):
        LIBC.syscall(IO_DESTROY, self.context)


class Direct(harness.MountTest):
    options = "cache=64M,allow_other"

    def test_buffered_readers_see_an_asynchronous_direct_write_when_it_has_ended(self):
        write_all(self.at("file"), bytes(BYTES))
        done = threading.Event()

        def read():
            fd = os.open(self.at("file"), os.O_RDONLY)
            while not done.is_set():
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.pread(fd, BYTES, 0)
            os.close(fd)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        old = 0
        try:
            plain = os.open(self.at("file"), os.O_RDONLY)
            direct = os.open(self.at("file"), os.O_RDWR | os.O_DIRECT)
            writer = AsyncWriter(direct)
            for i in range(2000):
                value = i % 250 + 1
                writer.write(value)
                old += os.pread(plain, BYTES, 0) != bytes([value]) * BYTES
            writer.close()
            os.close(direct)
            os.close(plain)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        self.assertEqual(old, 0)

    @unittest.skipUnless(shutil.which("fio"), "needs fio")
    def test_more_asynchronous_direct_writes_than_the_kernel_sends_end_beside_readers(self):
        # The pages that the writes make the kernel drop are those that the readers fill.
        write_all(self.at("file"), bytes(32 * BYTES))
        read = "import os, sys; fd = os.open(sys.argv[1], os.O_RDONLY)\nwhile True:" \
               " os.pread(fd, 1 << 21, 0); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)"
        look = "import mmap, sys; pages = mmap.mmap(open(sys.argv[1], 'rb').fileno(), 0, prot=mmap.PROT_READ)\n" \
               "while True: sum(pages[::4096])"
        readers = [subprocess.Popen([sys.executable, "-c", program, self.at("file")])
                   for program in (read, read, read, look)]
        try:
            for engine in "libaio", "io_uring":
                subprocess.run(["fio", "--name=writes", f"--filename={self.at('file')}", f"--ioengine={engine}",
                                "--direct=1", "--rw=write", "--bs=64k", "--size=2M", "--iodepth=64", "--time_based",
                                "--runtime=3", "--overwrite=1"], check=True, timeout=120, capture_output=True)
        finally:
            for reader in readers:
                reader.kill()
            for reader in readers:
                reader.wait()

    def changes(self, name):
        """Every way to change the bytes or the size of a file or image."""
        def opened(change, flags=os.O_RDWR):
            def work():
                fd = os.open(self.at(name), flags)
                try:
                    change(fd)
                finally:
                    os.close(fd)
            return work

        def fallocate(mode):
            def change(fd):
                if LIBC.fallocate(fd, mode, ctypes.c_long(0), ctypes.c_long(8192)) != 0:
                    raise OSError(ctypes.get_errno(), "fallocate")
            return change

        def copy(fd):
            source = os.open(self.at("source"), os.O_RDONLY)
            os.copy_file_range(source, fd, 4096, 0, 0)
            os.close(source)

        def write_window(fd):
            harness.bind(fd, (0, 0), (8, 8))
            os.pwrite(fd, bytes(64), 0)

        def store(fd):
            with mmap.mmap(fd, 4096) as memory:
                memory[0] = 1
                memory.flush()

        yield "write", opened(lambda fd: os.pwrite(fd, b"x", 0))
        yield "append", opened(lambda fd: os.write(fd, b"x" * 64), os.O_WRONLY | os.O_APPEND)
        yield "direct write", opened(lambda fd: os.pwritev(fd, [mmap.mmap(-1, 4096)], 0), os.O_WRONLY | os.O_DIRECT)
        yield "ftruncate", opened(lambda fd: os.ftruncate(fd, 2048))
        yield "truncate", lambda: os.truncate(self.at(name), 1024)
        yield "O_TRUNC", opened(lambda fd: None, os.O_WRONLY | os.O_TRUNC)
        yield "fallocate", opened(fallocate(0))
        yield "punch", opened(fallocate(3))
        yield "zero range", opened(fallocate(16))
        yield "copy_file_range", opened(copy)
        yield "mapping", opened(store)
        if name == "image":
            yield "window", opened(write_window)

    def test_a_change_takes_set_uid_and_set_gid_as_on_ext4_before_it_is_answered(self):
        write_all(self.at("source"), bytes(4096))
        write_all(self.at("file"), bytes(4096))
        make_image(self.at("image"), (64, 64))
        for name in ("file", "image"):
            os.chown(self.at(name), 4243, 4242)
            for what, work in self.changes(name):
                for mode in (0o6666, 0o6676, 0o6766, 0o6777, 0o2666, 0o4666):
                    for who, groups in (("stranger", []), ("member", [4242]), ("root", None)):
                        os.truncate(self.at(name), 4096)
                        os.chmod(self.at(name), mode)
                        self.assertEqual(stat.S_IMODE(os.stat(self.at(name)).st_mode), mode)
                        if groups is None:
                            work()
                        else:
                            self.assertEqual(as_user(work, groups=groups), 0, (name, what))
                        expected = mode
                        if who != "root" and what != "mapping":  # as on ext4, a store leaves them
                            expected &= ~0o4000
                            if mode & 0o010 or who == "stranger":
                                expected &= ~0o2000
                        with self.subTest(name=name, what=what, mode=oct(mode), who=who):
                            self.assertEqual(oct(stat.S_IMODE(os.stat(self.at(name)).st_mode)), oct(expected))

    def test_a_change_takes_the_capabilities_of_a_file_whoever_makes_it(self):
        capability = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)  # cap_net_bind_service=ep
        write_all(self.at("source"), bytes(4096))
        write_all(self.at("file"), bytes(4096))
        make_image(self.at("image"), (64, 64))
        for name in ("file", "image"):
            changes = [*self.changes(name), ("chown", lambda name=name: os.chown(self.at(name), 4244, 4242))]
            for what, work in changes:
                if what == "mapping":
                    continue
                os.truncate(self.at(name), 4096)
                os.setxattr(self.at(name), "security.capability", capability)
                work()
                with self.subTest(name=name, what=what):
                    self.assertNotIn("security.capability", os.listxattr(self.at(name)))

    def test_a_new_owner_takes_set_uid_and_set_gid(self):
        write_all(self.at("file"), b"x")
        for mode, left in ((0o6755, 0o755), (0o6745, 0o2745)):
            os.chmod(self.at("file"), mode)
            os.chown(self.at("file"), 4243, 4242)
            self.assertEqual(stat.S_IMODE(os.stat(self.at("file")).st_mode), left)

    def owners(self, name):
        """A line for each chown of a file: what it was, the caller's groups, the new owner, and the outcome."""
        modes = [kind | rest for kind in (0o6000, 0o4000, 0o2000, 0) for rest in (0o745, 0o755, 0o767)]
        befores = [(owner, group) for owner in (NOBODY, 0) for group in (NOBODY, 4242, 0)]
        callers = ([], [4242], None)  # None: root
        afters = ((NOBODY, NOBODY), (-1, NOBODY), (-1, 4242), (-1, -1), (NOBODY, -1), (0, 0))
        write_all(name, b"x")
        for mode, before, groups, after in itertools.product(modes, befores, callers, afters):
            if groups is not None and before[0] != NOBODY and after == (-1, -1):
                continue  # FUSE sends the same request for a write, so MDFS cannot refuse it
            os.chown(name, *before)
            os.chmod(name, mode)

            def change(after=after):
                os.chown(name, *after)
            error = change() if groups is None else as_user(change, groups=groups)
            now = os.stat(name)
            yield (f"{mode:o} {before} by {groups} to {after}: error {error or 0}, "
                   f"{stat.S_IMODE(now.st_mode):o} {now.st_uid}:{now.st_gid}")

    def test_a_chown_takes_set_uid_and_set_gid_as_on_ext4(self):
        other = tempfile.mkdtemp(prefix="mdfs-test-ext4-")
        self.addCleanup(shutil.rmtree, other)
        os.chmod(other, 0o755)
        store, place = os.path.join(other, "store"), os.path.join(other, "mnt")
        os.mkdir(place)
        with open(store, "wb") as file:
            file.truncate(16 << 20)
        if shutil.which("mkfs.ext4") is None:
            self.skipTest("mkfs.ext4 is not installed")
        harness.run("mkfs.ext4", "-q", "-F", store)
        if subprocess.run(["mount", "-o", "loop", store, place], check=False).returncode != 0:
            self.skipTest("no loop device can be made here")
        self.addCleanup(harness.run, "umount", place)
        expected = list(self.owners(os.path.join(place, "file")))
        self.assertIn("2745 (65534, 0) by [] to (-1, 65534): error 0, 745 65534:65534", expected)
        self.assertEqual(list(self.owners(self.at("file"))), expected)
        print(f"compared: {len(expected)} calls of chown", flush=True)

    def test_an_access_list_set_by_another_group_takes_set_gid(self):
        def entry(tag, permissions):
            return struct.pack("<HHI", tag, permissions, 2**32 - 1)
        acl = struct.pack("<I", 2) + entry(1, 7) + entry(4, 7) + entry(32, 5)
        for groups, stays in (([], False), ([4242], True)):
            write_all(self.at("file"), b"x")
            os.chown(self.at("file"), NOBODY, 4242)
            os.chmod(self.at("file"), 0o2777)
            def set_list():
                os.setxattr(self.at("file"), "system.posix_acl_access", acl)
            self.assertEqual(as_user(set_list, groups=groups), 0)
            self.assertEqual(bool(os.stat(self.at("file")).st_mode & stat.S_ISGID), stays)


class FullVolume(MappingTest):
    def test_an_asynchronous_direct_write_that_finds_too_little_room_says_so(self):
        failed = []
        for room in (0, 20_000, 50_000, 4 << 20):
            with self.subTest(room=room):
                with open(self.volume / "file", "wb") as made:
                    made.truncate(BYTES)
                self.leave(room)
                file = os.open(self.volume / "file", os.O_RDWR | os.O_DIRECT)
                writer = AsyncWriter(file)
                failed += self.errors_of([lambda writer=writer: writer.write(7)])
                writer.close()
                os.close(file)
                os.unlink(self.volume / "file")
                os.unlink(self.volume / "ballast")
                subprocess.run([harness.MDFS, "volume", "sync", self.volume.path], check=True, capture_output=True)
        self.assertEqual(failed, [errno.ENOSPC] * 3)


if __name__ == "__main__":
    harness.main()
