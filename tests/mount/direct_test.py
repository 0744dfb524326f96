"""What the kernel caches of a file that is written past its cache: pages, and the mode."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import mmap
import os
import stat
import struct
import threading

import harness
from harness import make_image, write_all

LIBC = ctypes.CDLL(None, use_errno=True)
IO_SETUP, IO_DESTROY, IO_GETEVENTS, IO_SUBMIT = 206, 207, 208, 209  # of x86-64
IOCB_PWRITE = 1
BYTES = 64 << 10
NOBODY = 65534


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

    def test_a_direct_write_takes_set_uid_before_it_is_answered(self):
        write_all(self.at("program"), b"x" * 4096)
        make_image(self.at("image"), (64, 64))
        for name, flags in (("program", os.O_WRONLY | os.O_DIRECT), ("image", os.O_WRONLY)):
            for _ in range(3):
                os.chmod(self.at(name), 0o4755)
                self.assertTrue(os.stat(self.at(name)).st_mode & stat.S_ISUID)
                fd = os.open(self.at(name), flags)
                memory = mmap.mmap(-1, 4096)
                os.pwritev(fd, [memory], 0)
                self.assertFalse(os.stat(self.at(name)).st_mode & stat.S_ISUID, name)
                os.close(fd)

    def test_an_access_list_set_by_another_group_takes_set_gid(self):
        def entry(tag, permissions):
            return struct.pack("<HHI", tag, permissions, 2**32 - 1)
        acl = struct.pack("<I", 2) + entry(1, 7) + entry(4, 7) + entry(32, 5)
        for groups, stays in (([], False), ([4242], True)):
            write_all(self.at("file"), b"x")
            os.chown(self.at("file"), NOBODY, 4242)
            os.chmod(self.at("file"), 0o2777)
            child = os.fork()
            if child == 0:
                try:
                    os.setgroups(groups)
                    os.setgid(NOBODY)
                    os.setuid(NOBODY)
                    os.setxattr(self.at("file"), "system.posix_acl_access", acl)
                    os._exit(0)
                except OSError as error:
                    os._exit(error.errno)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assertEqual(bool(os.stat(self.at("file")).st_mode & stat.S_ISGID), stays)


if __name__ == "__main__":
    harness.main()
