"""Sequences about bytes: positions, sizes, holes, fallocate, mappings, locks, copies."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import fcntl
import mmap
import os
import signal
import struct

from names import seen
from trace import As, fallocate, get, libc, put

KEEP, PUNCH, NO_HIDE, COLLAPSE, ZERO, INSERT, UNSHARE = 1, 2, 4, 8, 16, 32, 64
MAX = (1 << 63) - 1


def size_and_sum(t, name):
    data = get(name)
    t.note(f"{name} now",
           f"{len(data)} bytes, sum {sum(data)}, position sum {sum(i * b for i, b in enumerate(data)) % 999983}")


def positions(t):
    put("f", bytes(range(256)) * 40)
    fd = t.open("f", os.O_RDWR)
    for offset, whence in ((0, 0), (5, 0), (-1, 0), (MAX, 0), (1 << 62, 0), (1 << 44, 0), (0, 1), (-3, 1), (-MAX, 1),
                           (0, 2), (-1, 2), (-10241, 2),
                           (5, 2), (MAX, 2), (0, 5), (0, 99), (-1, 99)):
        os.lseek(fd, 7, 0)
        t(f"lseek {offset} {whence}", os.lseek, fd, offset, whence)
        t(f"read at {offset} {whence}", os.read, fd, 5)
    os.lseek(fd, 0, 0)
    for offset in (0, 10239, 10240, 10241, 1 << 40, MAX - 4, MAX, -1):
        t(f"pread {offset}", os.pread, fd, 5, offset)
        t(f"preadv {offset}", lambda offset=offset: os.preadv(fd, [bytearray(3), bytearray(3)], offset))
    t("pread of nothing", os.pread, fd, 0, 0)
    for offset in (-1, -MAX - 1, MAX - 3, MAX, MAX - 1):
        t(f"pwrite {offset}", os.pwrite, fd, b"12345", offset)
    t("pwrite of nothing at the largest offset", os.pwrite, fd, b"", MAX)
    t("pwrite of nothing beyond the end", os.pwrite, fd, b"", 1 << 30)
    t("size", os.fstat, fd)
    only_read, only_write = t.open("f", os.O_RDONLY), t.open("f", os.O_WRONLY)
    path = t.open("f", os.O_PATH)
    for label, one in (("rdonly", only_read), ("wronly", only_write), ("path", path)):
        t(f"read {label}", os.read, one, 3)
        t(f"write {label}", os.write, one, b"xyz")
        t(f"ftruncate {label}", os.ftruncate, one, 10000)
        t(f"fallocate {label}", fallocate, one, 0, 0, 10)
        t(f"fsync {label}", os.fsync, one)
        t(f"lseek {label}", os.lseek, one, 0, 1)
        t(f"fchmod {label}", os.fchmod, one, 0o600)
        t(f"fstat {label}", os.fstat, one)
        t(f"hole {label}", os.lseek, one, 0, os.SEEK_HOLE)
    appending = t.open("f", os.O_RDWR | os.O_APPEND)
    t("append", os.write, appending, b"end")
    t("position after it", os.lseek, appending, 0, 1)
    t("pwrite of an appending one", os.pwrite, appending, b"AB", 0)
    t("size", os.fstat, appending)
    t("punch of an appending one", fallocate, appending, KEEP | PUNCH, 0, 100)
    t("a bad buffer for read", libc, "read", fd, 0, 100)
    t("a bad buffer for write", libc, "pwrite", fd, 0, 100, 0)
    size_and_sum(t, "f")


def truncate_sizes(t):
    put("f", b"x" * 5000)
    for size in (0, 1, 4095, 4096, 4097, 2048, 2049, 131072, 131073, 100, 1 << 20, (1 << 20) + 1, 1 << 32,
                 (1 << 32) + 5, 1 << 41, 5000, -1,
                 -MAX - 1, 3):
        t(f"truncate {size}", os.truncate, "f", size)
        t.stat("f")
        fd = os.open("f", os.O_RDWR)
        t(f"ftruncate {size}", os.ftruncate, fd, size)
        t("last bytes", os.pread, fd, 20, max(0, size - 10))
        t("write at the end", os.pwrite, fd, b"ends", max(0, min(size, 1 << 41)))
        t("last bytes", os.pread, fd, 20, max(0, size - 10))
        os.close(fd)
    put("zeros", b"a" * 10000)
    for cut, grow in ((5000, 10000), (4096, 9000), (1, 4097), (0, 200000), (150000, 170000), (131072, 131073)):
        os.truncate("zeros", cut)
        os.truncate("zeros", grow)
        size_and_sum(t, "zeros")
        with open("zeros", "ab") as file:
            file.write(b"tail")
        size_and_sum(t, "zeros")
    t("truncate of nothing", os.truncate, "absent", 0)
    with As():
        t("truncate by a stranger", os.truncate, "f", 0)
        t("truncate beyond the largest by a stranger", os.truncate, "f", MAX)


def allocation(t):
    for mode in (COLLAPSE, INSERT):
        put("shift", b"d" * 12000)
        fd = os.open("shift", os.O_RDWR)
        for offset, length in ((0, 1), (4096, 4096), (10, 20), (20480, 4096)):
            t(f"shift {mode} {offset} {length}", fallocate, fd, mode, offset, length)
        os.close(fd)
        t.note(f"shift {mode} size", str(os.stat("shift").st_size))
    modes = (0, KEEP, PUNCH, KEEP | PUNCH, ZERO, ZERO | KEEP, NO_HIDE, COLLAPSE | KEEP, INSERT | KEEP, ZERO | PUNCH,
             ZERO | PUNCH | KEEP, COLLAPSE | INSERT, UNSHARE | PUNCH, 128, 1 << 20)
    ranges = ((0, 0), (0, 1), (0, 5000), (4096, 4096), (10, 20), (9000, 5000), (20000, 100), (100000, 60000), (-1, 10),
              (0, -1), (10, MAX), (MAX, 1), (MAX - 10, 5))
    for mode in modes:
        for offset, length in ranges:
            huge = offset + length > 1 << 40
            if huge and (mode in (0, KEEP) or mode >= 128):
                continue  # how large a file may be, and which of two complaints comes first
            put("f", b"d" * 12000)
            fd = os.open("f", os.O_RDWR)
            t(f"fallocate {mode} {offset} {length}", fallocate, fd, mode, offset, length)
            os.close(fd)
            t.stat("f")
            if not huge:
                size_and_sum(t, "f")
            os.unlink("f")
    put("f", b"x" * 300000)
    fd = os.open("f", os.O_RDWR)
    for offset, length in ((1, 1), (4095, 2), (4096, 4096), (130000, 5000), (131072, 131072), (299999, 1),
                           (299999, 100), (0, 300000)):
        t(f"punch {offset} {length}", fallocate, fd, KEEP | PUNCH, offset, length)
        size_and_sum(t, "f")
        t("write again", os.pwrite, fd, b"yz", offset)
        size_and_sum(t, "f")
    t("posix_fallocate", os.posix_fallocate, fd, 0, 400000)
    size_and_sum(t, "f")
    for end in ("rdonly", "path"):
        other = os.open("f", os.O_RDONLY if end == "rdonly" else os.O_PATH)
        t(f"punch {end}", fallocate, other, KEEP | PUNCH, 0, 10)


def holes(t):
    fd = t.open("f", os.O_RDWR | os.O_CREAT)
    t("data of an empty file", os.lseek, fd, 0, os.SEEK_DATA)
    t("hole of an empty file", os.lseek, fd, 0, os.SEEK_HOLE)
    os.ftruncate(fd, 1 << 20)
    t("data of a hole", os.lseek, fd, 0, os.SEEK_DATA)
    t("hole of a hole", os.lseek, fd, 0, os.SEEK_HOLE)
    for place in (0, 262144, 655360):
        os.pwrite(fd, b"x" * 4096, place)
    os.fsync(fd)
    for offset in (0, 1, 4095, 4096, 4097, 100000, 262143, 262144, 266239, 266240, 655360, 659456, 1048575, 1048576,
                   1 << 30, -1):
        t(f"data from {offset}", os.lseek, fd, offset, os.SEEK_DATA)
        t(f"hole from {offset}", os.lseek, fd, offset, os.SEEK_HOLE)
    fallocate(fd, KEEP | PUNCH, 262144, 4096)
    os.fsync(fd)
    t("data after a punch", os.lseek, fd, 4096, os.SEEK_DATA)
    put("full", b"x" * 10000)
    fd = t.open("full", os.O_RDONLY)
    t("hole of a full file", os.lseek, fd, 0, os.SEEK_HOLE)
    t("data at its end", os.lseek, fd, 9999, os.SEEK_DATA)
    t("position", os.lseek, fd, 0, 1)


def large_offsets(t):
    fd = t.open("f", os.O_RDWR | os.O_CREAT)
    for offset in (1 << 31, (1 << 32) - 2, 1 << 32, 1 << 40, (1 << 43) + 12345):
        t(f"pwrite {offset}", os.pwrite, fd, b"far away", offset)
        t("size", os.fstat, fd)
        t("read back", os.pread, fd, 20, offset - 4)
    t("between", os.pread, fd, 8, 1 << 41)
    t("ftruncate down", os.ftruncate, fd, 1 << 35)
    t("size", os.fstat, fd)
    t("ftruncate to the largest", os.ftruncate, fd, MAX)
    t("size", os.fstat, fd)
    t("write at the largest", os.pwrite, fd, b"x", MAX)
    t("size limit", in_child, lambda: limited(fd))


def limited(fd):
    """What RLIMIT_FSIZE does: a signal, or EFBIG where it is ignored."""
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    os.ftruncate(fd, 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    lines = []
    for call in (lambda: os.pwrite(fd, b"x" * 100, 950), lambda: os.pwrite(fd, b"x", 1000),
                 lambda: os.ftruncate(fd, 1001),
                 lambda: fallocate(fd, 0, 0, 1001)):
        try:
            lines.append(str(call()))
        except OSError as error:
            lines.append(errno.errorcode[error.errno])
    return " ".join(lines)


def in_child(call):
    """What a call in a child says, or the signal that ended it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(call())
        except OSError as error:
            text = errno.errorcode[error.errno]
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if code == 0 else signal.Signals(-code).name


def mappings(t):
    put("f", b"m" * 5000)
    os.chmod("f", 0o644)
    fd = os.open("f", os.O_RDWR)
    only_read = os.open("f", os.O_RDONLY)
    only_write = os.open("f", os.O_WRONLY)
    for label, one in (("rdwr", fd), ("rdonly", only_read), ("wronly", only_write)):
        for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
            for protection in (mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_READ | mmap.PROT_WRITE):
                def attempt(one=one, flags=flags, protection=protection):
                    mmap.mmap(one, 4096, flags, protection).close()
                t(f"mmap {label} flags {flags} prot {protection}", attempt)

    def touch(offset, write=False):
        address = LIBC_MMAP(None, 16384, 3, mmap.MAP_SHARED, fd, 0)
        byte = ctypes.c_ubyte.from_address(address + offset)
        if write:
            byte.value = 90
        return byte.value

    for offset in (0, 4999, 5000, 8191, 8192, 16383):
        t(f"load from {offset}", in_child, lambda: touch(offset))
        t(f"store to {offset}", in_child, lambda: touch(offset, True))
    size_and_sum(t, "f")
    shared = mmap.mmap(fd, 5000)
    shared[0:4] = b"ABCD"
    t("read sees a store", os.pread, fd, 6, 0)
    os.pwrite(fd, b"wxyz", 100)
    t.note("a mapping sees a write", shared[98:106].hex())
    shared.flush()
    os.ftruncate(fd, 100)
    os.ftruncate(fd, 5000)
    t.note("after shrinking and growing", shared[96:106].hex())
    fallocate(fd, KEEP | PUNCH, 0, 4)
    t.note("after a punch", shared[0:6].hex())
    shared[50:54] = b"last"
    shared.close()
    os.close(fd)
    size_and_sum(t, "f")
    t("mmap of a directory", lambda: LIBC_MMAP(None, 4096, 1, 1, os.open(".", os.O_RDONLY), 0) and None)


LIBC_MMAP = ctypes.CDLL(None, use_errno=True).mmap
LIBC_MMAP.restype = ctypes.c_void_p
LIBC_MMAP.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def locks(t):
    put("f", b"x" * 100)
    one, two = os.open("f", os.O_RDWR), os.open("f", os.O_RDWR)
    only_read, only_write = os.open("f", os.O_RDONLY), os.open("f", os.O_WRONLY)
    for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        t(f"flock {kind}", fcntl.flock, one, kind | fcntl.LOCK_NB)
        for other in (fcntl.LOCK_SH, fcntl.LOCK_EX):
            t(f"flock {other} against it", fcntl.flock, two, other | fcntl.LOCK_NB)
            fcntl.flock(two, fcntl.LOCK_UN)
        t(f"flock in a child against {kind}", in_child,
          lambda: fcntl.flock(os.open("f", os.O_RDONLY), 2 | fcntl.LOCK_NB))
        fcntl.flock(one, fcntl.LOCK_UN)
    t("flock of nonsense", libc, "flock", one, 77)
    for label, command in (("posix", fcntl.F_SETLK), ("ofd", 37)):
        def lock(fd, kind, start, length, whence=0, command=command):
            return fcntl.fcntl(fd, command, struct.pack("hhqqhh", kind, whence, start, length, 0, 0)) and None
        read, write, drop = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
        t(f"{label} write", lock, one, write, 10, 10)
        for start, length in ((0, 10), (0, 11), (19, 1), (20, 1), (0, 0), (15, -3), (25, -6), (-1, 5), (5, -10)):
            t(f"{label} {start} {length} in a child", in_child,
              lambda: lock(os.open("f", os.O_RDWR), write, start, length))
            t(f"{label} {start} {length} elsewhere", lock, two, read, start, length)
            lock(two, drop, 0, 0)
        t(f"{label} downgrade", lock, one, read, 0, 0)
        t(f"{label} shared in a child", in_child, lambda: lock(os.open("f", os.O_RDWR), read, 0, 0))
        t(f"{label} read of a write-only one", lock, only_write, read, 0, 1)
        t(f"{label} write of a read-only one", lock, only_read, write, 0, 1)
        t(f"{label} of a strange kind", lock, one, 9, 0, 1)
        t(f"{label} of a strange whence", lock, one, read, 0, 1, 9)
        t(f"{label} of the end", lock, one, write, 1 << 62, 1 << 61)
        t(f"{label} beyond the end", lock, one, write, MAX, 2)
        lock(one, drop, 0, 0)
        t(f"{label} all is free again", in_child, lambda: lock(os.open("f", os.O_RDWR), write, 0, 0))
    fcntl.lockf(one, fcntl.LOCK_EX, 5)
    found = fcntl.fcntl(two, fcntl.F_GETLK, struct.pack("hhqqhh", fcntl.F_WRLCK, 0, 0, 0, 0, 0))
    t.note("own lock is not in the way", str(struct.unpack("hhqqhh", found)[0]))
    os.close(two)
    t("any close drops posix locks", in_child, lambda: fcntl.lockf(os.open("f", os.O_RDWR),
                                                                   fcntl.LOCK_EX | fcntl.LOCK_NB))
    t("lock of a directory", fcntl.flock, os.open(".", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


def copies(t):
    put("a", bytes(range(256)) * 1000)
    put("b", b"target")
    source, target = os.open("a", os.O_RDONLY), os.open("b", os.O_RDWR)

    def copy(length, from_offset, to_offset, source=source, target=target, flags=0):
        ends = (ctypes.c_long(from_offset), ctypes.c_long(to_offset))
        return libc("copy_file_range", source, ctypes.byref(ends[0]), target, ctypes.byref(ends[1]), length, flags)

    for length, from_offset, to_offset in ((0, 0, 0), (10, 0, 0), (100000, 5, 3), (300000, 1000, 0), (10, 256000, 0),
                                           (10, 300000, 0), (10, -1, 0),
                                           (10, 0, -1), (10, 0, MAX), (10, MAX, 0), (5000, 4096, 400000)):
        t(f"copy {length} from {from_offset} to {to_offset}", copy, length, from_offset, to_offset)
        size_and_sum(t, "b")
    same = os.open("b", os.O_RDWR)
    for length, from_offset, to_offset in ((100, 0, 1000), (100, 0, 50), (100, 50, 0), (100, 0, 0),
                                           (5000, 400000, 405000)):
        t(f"copy in itself {length} {from_offset} {to_offset}", copy, length, from_offset, to_offset, same, target)
        size_and_sum(t, "b")
    t("copy with flags", copy, 10, 0, 0, source, target, 1)
    t("copy from a write-only one", copy, 10, 0, 0, os.open("a", os.O_WRONLY), target)
    t("copy to a read-only one", copy, 10, 0, 0, source, source)
    t("copy to an appending one", copy, 10, 0, 0, source, os.open("b", os.O_RDWR | os.O_APPEND))
    t("copy of a directory", copy, 10, 0, 0, os.open(".", os.O_RDONLY), target)
    pipe = os.pipe()
    t("copy to a pipe", copy, 10, 0, 0, source, pipe[1])
    t("sendfile", os.sendfile, target, source, 0, 1000)
    t("splice out", os.splice, source, pipe[1], 100, offset_src=10)
    t("from the pipe", os.read, pipe[0], 200)
    t("vmsplice", os.write, pipe[1], b"into")
    t("splice in", os.splice, pipe[0], target, 4, offset_dst=2)
    size_and_sum(t, "b")


def advice_and_syncing(t):
    put("f", b"x" * 10000)
    fd = os.open("f", os.O_RDWR)
    for advice in range(7):
        t(f"fadvise {advice}", os.posix_fadvise, fd, 0, 100, advice)
    t("fadvise of a negative length", os.posix_fadvise, fd, 0, -1, 0)
    for flags in (1, 2, 4, 7, 8):
        t(f"sync_file_range {flags}", libc, "sync_file_range", fd, 0, 100, flags)
    t("readahead", libc, "readahead", fd, 0, 100)
    t("fsync", os.fsync, fd)
    t("fdatasync", os.fdatasync, fd)
    t("syncfs", libc, "syncfs", fd)
    t("fsync of a link's end", os.fsync, os.open("f", os.O_RDONLY))
    found = os.statvfs(".")
    t.note("statvfs",
           f"{found.f_namemax} {found.f_bsize} {found.f_bavail <= found.f_bfree <= found.f_blocks}")
    t("pathconf names", os.pathconf, ".", "PC_NAME_MAX")
    t("pathconf paths", os.pathconf, ".", "PC_PATH_MAX")
    t("pathconf sync", os.fpathconf, fd, "PC_PIPE_BUF")
    with open("v", "wb", buffering=0) as file:
        t("writev", os.writev, file.fileno(), [b"a", b"", b"bc" * 5000, b"d"])
        t("pwritev", os.pwritev, file.fileno(), [b"XY", b"Z"], 3)
        t("pwritev with RWF_APPEND", os.pwritev, file.fileno(), [b"tail"], 0, 0x10)
        t("pwritev with RWF_DSYNC", os.pwritev, file.fileno(), [b"tail"], 0, os.RWF_DSYNC)
        t("pwritev with a strange flag", os.pwritev, file.fileno(), [b"tail"], 0, 1 << 20)
    size_and_sum(t, "v")
    t("set append by fcntl", fcntl.fcntl, fd, fcntl.F_SETFL, os.O_APPEND)
    os.lseek(fd, 0, 0)
    t("which then appends", os.write, fd, b"!")
    size_and_sum(t, "f")
    seen(t)


def direct(t):
    put("f", bytes(range(256)) * 64)
    fd = t.open("f", os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 8192)
    for offset, length, shift in ((0, 4096, 0), (4096, 8192, 0), (12288, 8192, 0), (16384, 4096, 0), (0, 4096, 1),
                                  (1, 4096, 0), (0, 100, 0)):
        view = memoryview(page)[shift:shift + length]
        count = t(f"read {length} at {offset} into +{shift}", os.preadv, fd, [view], offset)
        t.note(f"bytes {length} at {offset} into +{shift}", hex(sum(view[:count or 0])))
        view[:] = bytes([length % 251]) * length
        t(f"write {length} at {offset} from +{shift}", os.pwritev, fd, [view], offset)
        view.release()


def file_flags(t):
    put("f")
    fd = os.open("f", os.O_RDWR)
    t("get flags", lambda: fcntl.ioctl(fd, 0x80086601, bytes(8)) and None)
    t("set immutable", lambda: fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x10)) and None)
    t("no longer", lambda: fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0)) and None)
    t("an ioctl of nobody", lambda: fcntl.ioctl(fd, 0x5401, bytes(60)) and None)
    t("FIEMAP", lambda: fcntl.ioctl(fd, 0xC020660B, bytes(32)) and None)
    t("lease", fcntl.fcntl, fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    t("watch", fcntl.fcntl, os.open(".", os.O_RDONLY), fcntl.F_NOTIFY, 0x4)


SEQUENCES = [direct, file_flags, positions, truncate_sizes, allocation, holes, large_offsets, mappings, locks, copies,
             advice_and_syncing]
