"""Seeded sequences of calls, made in step on two directories; every answer must be the same."""
# SPDX-License-Identifier: Apache-2.0
import errno
import os
import random
import stat

from trace import fallocate, get, renameat2, show

NAMES = ("a", "b", "c", "d", "e")
KEEP, PUNCH, ZERO = 1, 2, 16


class Walk:
    """One sequence. Every choice comes from the seed, so that both sides make the same calls."""

    def __init__(self, seed, tops):
        self.rng = random.Random(seed)
        self.tops = tops
        self.open = []  # pairs of descriptors
        self.log = []

    def path(self):
        depth = self.rng.choice((1, 1, 1, 2, 2, 3))
        return "/".join(self.rng.choice(NAMES) for _ in range(depth))

    def both(self, label, call):
        """call(top) on each side; the answers, which must be equal, and the values."""
        answers, values = [], []
        for index, top in enumerate(self.tops):
            try:
                value = call(top, index)
                answers.append(show(value))
            except OSError as error:
                value = None
                answers.append(errno.errorcode.get(error.errno, str(error.errno)))
            values.append(value)
        self.log.append(f"{label}: {answers[0]}")
        if answers[0] != answers[1]:
            raise AssertionError("\n".join(self.log[-25:]) + f"\n{label}: {answers[0]} here, {answers[1]} there")
        return values

    def step(self):
        kinds = {"open": 12, "close": 6, "mkdir": 6, "rmdir": 3, "unlink": 5, "rename": 9, "link": 4, "symlink": 3,
                 "stat": 4,
                 "list": 3, "pwrite": 14, "pread": 10, "ftruncate": 4, "truncate": 3, "fallocate": 4, "append": 4,
                 "chmod": 2,
                 "fsync": 1, "xattr": 4, "seek": 4, "copy": 3, "whole": 3, "utime": 2, "readlink": 2}
        kind = self.rng.choices(list(kinds), kinds.values())[0]
        getattr(self, "do_" + kind)()

    def do_open(self):
        if len(self.open) > 8:
            return self.do_close()
        flags = self.rng.choice((os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR))
        for extra in (os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_NOFOLLOW, os.O_DIRECTORY):
            if self.rng.random() < 0.25:
                flags |= extra
        path, pair = self.path(), [None, None]

        def call(top, index):
            pair[index] = os.open(f"{top}/{path}", flags, 0o644)
            return "fd"
        self.both(f"open {path} {flags:o}", call)
        if None not in pair:
            self.open.append(pair)
        return None

    def pair(self):
        return self.rng.randrange(len(self.open)) if self.open else None

    def do_close(self):
        number = self.pair()
        if number is not None:
            for fd in self.open.pop(number):
                os.close(fd)
            self.log.append(f"close {number}")

    def with_fd(self, label, call):
        number = self.pair()
        if number is not None:
            self.both(f"{label} on {number}", lambda _, index: call(self.open[number][index]))

    def do_mkdir(self):
        path = self.path()
        self.both(f"mkdir {path}", lambda top, _: os.mkdir(f"{top}/{path}"))

    def do_rmdir(self):
        path = self.path()
        self.both(f"rmdir {path}", lambda top, _: os.rmdir(f"{top}/{path}"))

    def do_unlink(self):
        path = self.path()
        self.both(f"unlink {path}", lambda top, _: os.unlink(f"{top}/{path}"))

    def do_rename(self):
        old, new, flags = self.path(), self.path(), self.rng.choice((0, 0, 0, 1, 2))
        self.both(f"rename {old} {new} {flags}", lambda top, _: renameat2(f"{top}/{old}", f"{top}/{new}", flags))

    def do_link(self):
        old, new = self.path(), self.path()
        self.both(f"link {old} {new}", lambda top, _: os.link(f"{top}/{old}", f"{top}/{new}", follow_symlinks=False))

    def do_symlink(self):
        target, new = self.path(), self.path()
        self.both(f"symlink {target} {new}", lambda top, _: os.symlink(target, f"{top}/{new}"))

    def do_readlink(self):
        path = self.path()
        self.both(f"readlink {path}", lambda top, _: os.readlink(f"{top}/{path}"))

    def do_stat(self):
        path = self.path()
        self.both(f"stat {path}", lambda top, _: os.stat(f"{top}/{path}"))

    def do_list(self):
        path = self.path()
        self.both(f"list {path}", lambda top, _: os.listdir(f"{top}/{path}"))

    def do_whole(self):
        path = self.path()
        self.both(f"read {path}", lambda top, _: hash(get(f"{top}/{path}")))

    def do_chmod(self):
        path, mode = self.path(), self.rng.choice((0o600, 0o755, 0o444, 0o1711, 0o6755, 0o2644))
        self.both(f"chmod {path}", lambda top, _: os.chmod(f"{top}/{path}", mode))

    def do_utime(self):
        path, times = self.path(), (self.rng.randrange(10**9), self.rng.randrange(10**9))
        self.both(f"utime {path}", lambda top, _: os.utime(f"{top}/{path}", times))
        self.both(f"times {path}", lambda top, _: os.stat(f"{top}/{path}").st_mtime_ns > 10**18)

    def offset(self):
        return self.rng.choice((0, 1, 2047, 2048, 4095, 4096, 5000, 131071, 131072, self.rng.randrange(400_000)))

    def length(self):
        return self.rng.choice((0, 1, 100, 2048, 4096, 4097, 20_000, 131_072, 200_000))

    def do_pwrite(self):
        data, offset = self.rng.randbytes(self.length()), self.offset()
        self.with_fd(f"pwrite {len(data)} at {offset}", lambda fd: os.pwrite(fd, data, offset))

    def do_append(self):
        data = self.rng.randbytes(self.length())
        self.with_fd(f"write {len(data)} at the end", lambda fd: (os.lseek(fd, 0, 2), os.write(fd, data)))

    def do_pread(self):
        length, offset = self.length(), self.offset()
        self.with_fd(f"pread {length} at {offset}", lambda fd: hash(os.pread(fd, length, offset)))

    def do_ftruncate(self):
        size = self.offset()
        self.with_fd(f"ftruncate {size}", lambda fd: os.ftruncate(fd, size))

    def do_truncate(self):
        path, size = self.path(), self.offset()
        self.both(f"truncate {path} {size}", lambda top, _: os.truncate(f"{top}/{path}", size))

    def do_fallocate(self):
        mode, offset, length = self.rng.choice((0, KEEP, KEEP | PUNCH, ZERO,
                                                   ZERO | KEEP)), self.offset(), self.length()
        self.with_fd(f"fallocate {mode} {offset} {length}", lambda fd: fallocate(fd, mode, offset, length))

    def do_fsync(self):
        self.with_fd("fsync", os.fsync)

    def do_seek(self):
        offset = self.offset()
        # Of directories the answer depends on how large one calls itself.
        self.with_fd(f"hole from {offset}", lambda fd: stat.S_ISDIR(os.fstat(fd).st_mode) or
                     os.lseek(fd, offset, os.SEEK_HOLE) >= offset)

    def do_copy(self):
        length, at, to = self.length(), self.offset(), self.offset()
        one, two = self.pair(), self.pair()
        if one is not None:
            self.both(f"copy {length} {one}:{at} {two}:{to}",
                      lambda _, index: os.copy_file_range(self.open[one][index], self.open[two][index], length, at, to))

    def do_xattr(self):
        path, name = self.path(), "user." + self.rng.choice("xyz")
        value = self.rng.randbytes(self.rng.choice((0, 3, 300, 9000, 65536)))
        flags = self.rng.choice((0, 0, 1, 2))
        self.both(f"setxattr {path} {name} {flags}", lambda top, _: os.setxattr(f"{top}/{path}", name, value, flags))
        path, name = self.path(), "user." + self.rng.choice("xyz")
        self.both(f"getxattr {path} {name}", lambda top, _: os.getxattr(f"{top}/{path}", name))
        self.both(f"listxattr {path}", lambda top, _: os.listxattr(f"{top}/{path}"))
        if self.rng.random() < 0.3:
            self.both(f"removexattr {path} {name}", lambda top, _: os.removexattr(f"{top}/{path}", name))

    def compare_trees(self):
        while self.open:
            self.do_close()
        shapes = []
        for top in self.tops:
            shape = []
            for folder, directories, files in os.walk(top):
                for name in directories + files:
                    path = os.path.join(folder, name)
                    content = get(path) if os.path.isfile(path) and not os.path.islink(path) else b""
                    shape.append((os.path.relpath(path, top), show(os.lstat(path)), hash(content)))
            shapes.append(sorted(shape))
        if shapes[0] != shapes[1]:
            different = set(shapes[0]) ^ set(shapes[1])
            raise AssertionError("\n".join(self.log[-25:]) + f"\nthe trees differ: {sorted(different)[:10]}")


def walk(seed, tops, steps):
    for top in tops:
        os.mkdir(top)
    one = Walk(seed, tops)
    try:
        for _ in range(steps):
            one.step()
        one.compare_trees()
    finally:
        while one.open:
            one.do_close()
    return one.log
