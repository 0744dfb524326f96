"""Runs sequences of system calls in a directory and writes down what each call answered."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import json
import os
import stat

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
USER, GROUP, OTHER_USER = 12345, 23456, 12346


def libc(name, *arguments):
    """Calls a function of the C library; numbers are passed as 64 bits."""
    passed = [ctypes.c_long(a) if isinstance(a, int) else a.encode() if isinstance(a, str) else a for a in arguments]
    function = getattr(LIBC, name)
    function.restype = ctypes.c_long
    result = function(*passed)
    if ctypes.c_int(result).value == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def renameat2(old, new, flags):
    return libc("renameat2", AT_FDCWD, old, AT_FDCWD, new, flags)


def fallocate(fd, mode, offset, length):
    return libc("fallocate", fd, mode, offset, length)


def show(value):
    """What is compared: no numbers that depend on the filesystem, such as inodes, times and blocks."""
    if isinstance(value, os.stat_result):
        size = value.st_size if not stat.S_ISDIR(value.st_mode) else "-"
        return f"{stat.filemode(value.st_mode)} links {value.st_nlink} {value.st_uid}:{value.st_gid} size {size}"
    if isinstance(value, bytes) and len(value) > 40:
        return f"{len(value)} bytes, sum {sum(value)}"
    if isinstance(value, (list, tuple, set)):
        return str(sorted(map(str, value)))
    return str(value)


class Trace:
    """The calls of one sequence and their answers. Names are relative: the sequence runs in its own directory."""

    def __init__(self):
        self.lines = []

    def note(self, label, answer):
        self.lines.append((label, answer))

    def __call__(self, label, call, *arguments, **options):
        """Makes the call; notes its value or its errno; returns the value, or None after an error."""
        try:
            value = call(*arguments, **options)
        except OSError as error:
            self.note(label, errno.errorcode.get(error.errno, str(error.errno)))
            return None
        self.note(label, show(value))
        return value

    def open(self, path, flags, mode=0o644):
        """An open that is noted as "fd" when it succeeds."""
        try:
            fd = os.open(path, flags, mode)
        except OSError as error:
            self.note(f"open {path[:30]} {flag_names(flags)}", errno.errorcode.get(error.errno, str(error.errno)))
            return None
        self.note(f"open {path[:30]} {flag_names(flags)}", "fd")
        return fd

    def opens(self, path, flags, mode=0o644):
        fd = self.open(path, flags, mode)
        if fd is not None:
            os.close(fd)

    def stat(self, path):
        return self(f"lstat {path[:30]}", os.lstat, path)


def flag_names(flags):
    names = ["rdonly", "wronly", "rdwr", "accmode3"][flags & 3:(flags & 3) + 1]
    for name in ("CREAT", "EXCL", "TRUNC", "APPEND", "DIRECTORY", "NOFOLLOW", "PATH", "NOATIME", "DIRECT", "SYNC"):
        bits = getattr(os, "O_" + name)
        if flags & bits == bits:
            names.append(name.lower())
    if flags & os.O_TMPFILE == os.O_TMPFILE:
        names.append("tmpfile")
    return "+".join(names)


class As:
    """Within it the calls are those of another user."""

    def __init__(self, user=USER, group=GROUP, groups=()):
        self.ids = (user, group, list(groups))

    def __enter__(self):
        user, group, groups = self.ids
        os.setgroups(groups)
        os.setegid(group)
        os.seteuid(user)

    def __exit__(self, *_):
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([])


def put(path, data=b""):
    with open(path, "wb") as file:
        file.write(data)


def get(path):
    with open(path, "rb") as file:
        return file.read()


def run_in(directory, sequence):
    """Runs it in a child whose working directory is a new one; returns its lines of (label, answer)."""
    os.mkdir(directory)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        trace = Trace()
        try:
            os.close(reader)
            os.chdir(directory)
            os.umask(0o022)
            os.setgroups([])
            sequence(trace)
        except BaseException as problem:  # the other filesystem's lines end elsewhere, or the same way
            trace.note("ended by", f"{type(problem).__name__}: {problem}")
        with os.fdopen(writer, "w") as pipe:
            json.dump(trace.lines, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [tuple(line) for line in json.loads(text)] if text else [("killed", str(status))]
