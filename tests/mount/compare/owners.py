"""Sequences about owners and attributes: permissions, sticky and setgid directories, ACLs, xattrs, times."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import stat
import struct

from names import EXCHANGE, seen
from trace import AT_FDCWD, GROUP, OTHER_USER, USER, As, fallocate, get, libc, put, renameat2

UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2


def acl(*entries):
    """(tag, permissions, id) as the kernel takes them: 1 owner, 2 user, 4 group owner, 8 group, 16 mask, 32 others."""
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, permissions,
                    who if who is not None else 0xFFFFFFFF) for tag, permissions, who in entries)


def permissions(t):
    for mode in (0o000, 0o200, 0o400, 0o600, 0o100, 0o060, 0o040, 0o006, 0o004, 0o777, 0o644):
        for owner, group in ((USER, 0), (0, GROUP), (0, 0)):
            name = f"f{mode:o}.{owner}.{group}"
            put(name, b"x")
            os.chown(name, owner, group)
            os.chmod(name, mode)
            os.mkdir("d" + name)
            put("d" + name + "/inside", b"x")
            os.chown("d" + name, owner, group)
            os.chmod("d" + name, mode | (mode & 0o444) >> 2 if mode == 0o644 else mode)
            with As():
                for access in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_NOATIME,
                               os.O_WRONLY | os.O_TRUNC):
                    t.opens(name, access)
                for mask in (os.R_OK, os.W_OK, os.X_OK):
                    t(f"access {name} {mask}", os.access, name, mask, effective_ids=True)
                t(f"chmod {name}", os.chmod, name, mode)
                t(f"chown {name} to the same", os.chown, name, owner, group)
                t(f"chown {name} to another", os.chown, name, OTHER_USER, -1)
                t(f"chgrp {name} to one's own", os.chown, name, -1, GROUP)
                t(f"truncate {name}", os.truncate, name, 0)
                t(f"utime now {name}", os.utime, name)
                t(f"utime then {name}", os.utime, name, (1, 2))
                t(f"get xattr {name}", os.getxattr, name, "user.a")
                t(f"set xattr {name}", os.setxattr, name, "user.a", b"x")
                t(f"list d{name}", os.listdir, "d" + name)
                t(f"stat in d{name}", os.stat, f"d{name}/inside")
                t(f"create in d{name}", put, f"d{name}/new")
                t(f"unlink in d{name}", os.unlink, f"d{name}/inside")
                t(f"rmdir d{name}", os.rmdir, "d" + name)
    seen(t)


def sticky(t):
    os.mkdir("s")
    os.chmod("s", 0o1777)
    os.mkdir("open")
    os.chmod("open", 0o777)
    for top in ("s", "open"):
        for owner, name in ((0, "roots"), (USER, "mine"), (OTHER_USER, "others")):
            put(f"{top}/{name}", b"x")
            os.chown(f"{top}/{name}", owner, 0)
            os.mkdir(f"{top}/d{name}")
            os.chown(f"{top}/d{name}", owner, 0)
        with As():
            for name in ("roots", "mine", "others"):
                t(f"rename {top}/{name}", os.rename, f"{top}/{name}", f"{top}/{name}2")
                t(f"back {top}/{name}", os.rename, f"{top}/{name}2", f"{top}/{name}")
                put(f"{top}/over", b"o")
                t(f"over {top}/{name}", os.rename, f"{top}/over", f"{top}/{name}")
                t(f"exchange {top}/{name}", renameat2, f"{top}/{name}", f"{top}/droots", EXCHANGE)
                t(f"link {top}/{name}", os.link, f"{top}/{name}", f"{top}/{name}.link")
                t(f"unlink {top}/{name}", os.unlink, f"{top}/{name}")
                t(f"rmdir {top}/d{name}", os.rmdir, f"{top}/d{name}")
    seen(t)


def set_group_directories(t):
    os.mkdir("g")
    os.chown("g", 0, 777)
    os.chmod("g", 0o2777)
    for groups in ((), (777,)):
        with As(groups=groups):
            top = f"g/{len(groups)}"
            t(f"mkdir {top}", os.mkdir, top, 0o755)
            t.stat(top)
            for mode in (0o644, 0o2755, 0o2745, 0o4755, 0o6777):
                t.opens(f"{top}f{mode:o}", os.O_CREAT | os.O_RDWR, mode)
                t.stat(f"{top}f{mode:o}")
                t(f"mknod {mode:o}", os.mknod, f"{top}n{mode:o}", stat.S_IFIFO | mode)
                t.stat(f"{top}n{mode:o}")
                t(f"chmod {mode:o}", os.chmod, f"{top}f{mode:o}", mode)
                t.stat(f"{top}f{mode:o}")
            t("symlink", os.symlink, "x", top + "l")
            t.stat(top + "l")
            t("mkdir in it", os.mkdir, top + "/sub")
            t("chmod of a directory", os.chmod, top, 0o2755)
            t.stat(top)
    seen(t)


def privileges_are_lost(t):
    def fresh(name, mode, owner=USER, group=GROUP):
        put(name, b"0123456789")
        os.chown(name, owner, group)
        os.chmod(name, mode)

    for mode in (0o4755, 0o2755, 0o6755, 0o2745, 0o6777, 0o1755):
        for user in (0, USER):
            who = f"{mode:o} by {user}"

            def change(what, call, mode=mode, user=user, who=who):
                name = f"{what}{mode:o}{user}"
                fresh(name, mode)
                os.chmod(name, mode)
                if user:
                    with As():
                        t(f"{what} {who}", call, name)
                else:
                    t(f"{what} {who}", call, name)
                t.stat(name)

            def with_file(name, call):
                fd = os.open(name, os.O_RDWR)
                try:
                    return call(fd)
                finally:
                    os.close(fd)

            change("write", lambda name: with_file(name, lambda fd: os.pwrite(fd, b"x", 0)))
            change("append", lambda name: with_file(name, lambda fd: os.pwrite(fd, b"x", 100)))
            change("write nothing", lambda name: with_file(name, lambda fd: os.pwrite(fd, b"", 0)))
            change("truncate", lambda name: os.truncate(name, 3))
            change("truncate to the same", lambda name: os.truncate(name, 10))
            change("ftruncate", lambda name: with_file(name, lambda fd: os.ftruncate(fd, 3)))
            change("open and truncate", lambda name: os.close(os.open(name, os.O_WRONLY | os.O_TRUNC)))
            change("punch", lambda name: with_file(name, lambda fd: fallocate(fd, 3, 0, 4)))
            change("fallocate", lambda name: with_file(name, lambda fd: fallocate(fd, 0, 0, 100)))
            change("chown to the same", lambda name: os.chown(name, USER, GROUP))
            change("chown of nothing", lambda name: os.chown(name, -1, -1))
            change("chgrp", lambda name: os.chown(name, -1, GROUP))
            change("read", get)
            change("chmod", lambda name: os.chmod(name, 0o2755))
            change("utime", os.utime)
            change("link", lambda name: os.link(name, name + ".link"))
    os.mkdir("d")
    os.chmod("d", 0o7777)
    t("chown of a directory", os.chown, "d", USER, GROUP)
    t.stat("d")
    capability = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
    put("cap", b"x")
    t("a capability", os.setxattr, "cap", "security.capability", capability)
    t("it is there", os.listxattr, "cap")
    with open("cap", "ab") as file:
        file.write(b"y")
    t("gone after a write", os.listxattr, "cap")
    os.setxattr("cap", "security.capability", capability)
    os.chown("cap", USER, -1)
    t("gone after chown", os.listxattr, "cap")


def owners_and_modes(t):
    put("f")
    os.mkdir("d")
    os.symlink("f", "l")
    os.symlink("absent", "dangling")
    for name in ("f", "d", "l", "dangling", "absent", "f/x"):
        t(f"chmod {name}", os.chmod, name, 0o640)
        t(f"chown {name}", os.chown, name, 1, 2)
        t(f"lchown {name}", os.lchown, name, 3, 4)
        t(f"fchmodat no follow {name}", libc, "fchmodat", AT_FDCWD, name, 0o600, 0x100)
        t(f"utime {name}", os.utime, name, (1, 2))
        t(f"lutime {name}", os.utime, name, (3, 4), follow_symlinks=False)
    for mode in (0o10644, 0o177777, 0o7777, 0):
        t(f"chmod to {mode:o}", os.chmod, "f", mode)
        t.stat("f")
    t("chown to the largest", os.chown, "f", 0xFFFFFFFE, 0xFFFFFFFE)
    seen(t)
    os.chown("f", USER, GROUP)
    with As(groups=(777,)):
        t("chgrp to a group of one's own", os.chown, "f", -1, 777)
        t("chgrp to a strange group", os.chown, "f", -1, 778)
        t("setgid for a group of one's own", os.chmod, "f", 0o2755)
        t.stat("f")
    with As():
        t("setgid for a strange group", os.chmod, "f", 0o2755)
    t.stat("f")


def access_lists(t):
    put("f")
    os.mkdir("d")
    os.symlink("f", "l")
    good = acl((1, 6, None), (2, 4, USER), (4, 4, None), (16, 6, None), (32, 0, None))
    lists = {"good": good, "minimal": acl((1, 6, None), (4, 4, None), (32, 0, None)), "empty": struct.pack("<I", 2),
             "no bytes": b"", "version": struct.pack("<I", 1) + good[4:], "cut": good[:-3], "no mask":
             acl((1, 6, None), (2, 4, USER), (4, 4, None), (32, 0, None)), "two owners":
             acl((1, 6, None), (1, 6, None), (4, 4, None), (32, 0, None)), "no others": acl((1, 6, None), (4, 4, None)),
             "strange tag": acl((1, 6, None), (64, 6, None), (4, 4, None), (32, 0, None)), "strange bits":
             acl((1, 9, None), (4, 4, None), (32, 0, None)), "order":
             acl((4, 4, None), (1, 6, None), (32, 0, None)), "user without id":
             acl((1, 6, None), (2, 4, None), (4, 4, None), (16, 6, None), (32, 0, None)), "same user twice":
             acl((1, 6, None), (2, 4, USER), (2, 6, USER), (4, 4, None), (16, 6, None),
                 (32, 0, None)), "users unsorted":
             acl((1, 6, None), (2, 4, OTHER_USER), (2, 6, USER), (4, 4, None), (16, 6, None), (32, 0, None))}
    for name in ("f", "d", "l"):
        for kind in ("access", "default"):
            attribute = f"system.posix_acl_{kind}"
            for title, value in lists.items():
                t(f"{kind} list {title} of {name}", os.setxattr, name, attribute, value, follow_symlinks=False)
                t("read back", os.getxattr, name, attribute, follow_symlinks=False)
                t.stat(name)
            t(f"remove {kind} of {name}", os.removexattr, name, attribute, follow_symlinks=False)
            t(f"remove {kind} of {name} again", os.removexattr, name, attribute, follow_symlinks=False)
    os.setxattr("f", "system.posix_acl_access", good)
    t("listed", os.listxattr, "f")
    for mode in (0o600, 0o660, 0o777, 0o000):
        t(f"chmod {mode:o} with a list", os.chmod, "f", mode)
        t.stat("f")
        t("the list", os.getxattr, "f", "system.posix_acl_access")
        with As():
            t.opens("f", os.O_RDONLY)
            t.opens("f", os.O_RDWR)
            t("set by a stranger", os.setxattr, "f", "system.posix_acl_access", good)
    os.setxattr("d", "system.posix_acl_default", acl((1, 7, None), (2, 7, USER), (4, 5, None), (16, 7, None),
                                                     (32, 0, None)))
    for mask in (0o022, 0o077, 0):
        os.umask(mask)
        for mode in (0o666, 0o600, 0o777, 0o2775):
            name = f"d/f{mask}{mode}"
            t.opens(name, os.O_CREAT | os.O_RDWR, mode)
            t.stat(name)
            t("inherited", os.getxattr, name, "system.posix_acl_access")
            t("a directory", os.mkdir, name + "d", mode)
            t.stat(name + "d")
            t("its list", os.getxattr, name + "d", "system.posix_acl_access")
            t("its default", os.getxattr, name + "d", "system.posix_acl_default")
            t("a fifo", os.mkfifo, name + "p", mode)
            t.stat(name + "p")
            t("a link", os.symlink, "x", name + "l")
            t.stat(name + "l")


def attributes(t):
    put("f")
    os.mkdir("d")
    os.symlink("f", "l")
    names = ["user.a", "user.", "user", "trusted.a", "security.a", "system.a", "os2.x", "nonsense", "",
             "user." + "n" * 250,
             "user." + "n" * 251, "user.ä", "btrfs.x"]
    for target in ("f", "d", "l"):
        for name in names:
            label = name[:12] + str(len(name)) + " of " + target
            t(f"set {label}", os.setxattr, target, name, b"value", follow_symlinks=False)
            t(f"get {label}", os.getxattr, target, name, follow_symlinks=False)
        t("list " + target, os.listxattr, target, follow_symlinks=False)
        for name in names:
            t(f"remove {name[:12]} of {target}", os.removexattr, target, name, follow_symlinks=False)
            t(f"remove {name[:12]} of {target} again", os.removexattr, target, name, follow_symlinks=False)
    for flags in (0, os.XATTR_CREATE, os.XATTR_REPLACE, 3, 4):
        t(f"absent, flags {flags}", os.setxattr, "f", f"user.flags{flags}", b"x", flags)
        t(f"set, flags {flags}", os.setxattr, "f", "user.there", b"x")
        t(f"there, flags {flags}", os.setxattr, "f", "user.there", b"y" * flags, flags)
        t("value", os.getxattr, "f", "user.there")
    for size in (0, 1, 100, 1000, 3000):
        t(f"value of {size}", os.setxattr, "d", "user.size", b"v" * size)
        t("and back", os.getxattr, "d", "user.size")
    for size in (4096, 4097, 10240, 10241, 65535, 65536, 5000, 65536, 0):
        t(f"value of {size}", os.setxattr, "d", "user.size", b"w" * size)
        t("and back", os.getxattr, "d", "user.size")
    t("value of 65537", os.setxattr, "d", "user.huge", b"v" * 65537)
    buffer = ctypes.create_string_buffer(1000)
    for room in (0, 1, 2, 3, 999):
        t(f"list into {room}", libc, "listxattr", "f", buffer, room)
        t(f"get into {room}", libc, "getxattr", "f", "user.there", buffer, room)
    with As():
        for name in ("user.a", "trusted.a", "security.a"):
            t(f"set {name} by a stranger", os.setxattr, "f", name, b"x")
            t(f"get {name} by a stranger", os.getxattr, "f", name)
        t("list by a stranger", os.listxattr, "f")
    os.setxattr("f", "trusted.secret", b"x")
    with As():
        t("list by a stranger", os.listxattr, "f")
        t("trusted by a stranger", os.getxattr, "f", "trusted.secret")
    t("of what is not there", os.getxattr, "absent", "user.a")
    t("of a link to nothing", os.getxattr, "l/x", "user.a")
    os.mkdir("sticky")
    os.chmod("sticky", 0o1777)
    with As():
        t("user attribute of a sticky directory", os.setxattr, "sticky", "user.a", b"x")


def times(t):
    put("f", b"x")
    os.symlink("f", "l")
    os.mkdir("d")

    def shown(name):
        found = os.lstat(name)
        t.note(f"times of {name}", f"{found.st_atime_ns} {found.st_mtime_ns}")

    for atime, mtime in ((0, 0), (1, 1), (-1, -1), (1 - (1 << 31), (1 << 31) - 2), (1 << 31, 1 << 32),
                         (10**9, 3 * 10**9),
                         (123456789, 987654321)):
        for nanoseconds in (0, 1, 999_999_999):
            for name in ("f", "l", "d"):
                t(f"utime {name} {atime} {mtime} {nanoseconds}", os.utime, name, ns=(
                    atime * 10**9 + nanoseconds, mtime * 10**9 + nanoseconds), follow_symlinks=False)
                shown(name)
    for a in (UTIME_NOW, UTIME_OMIT, 5, 10**9, -1):
        for m in (UTIME_NOW, UTIME_OMIT, 6, 10**9, -1):
            os.utime("f", (100, 200))
            pair = (ctypes.c_long * 4)(1, a, 2, m)
            t(f"utimensat {a} {m}", libc, "utimensat", AT_FDCWD, "f", pair, 0)
            found = os.stat("f")
            t.note("which", " ".join("now" if time > 10**18 else str(time) for time in (found.st_atime_ns,
                                                                                        found.st_mtime_ns)))
    t("utimensat with strange flags", libc, "utimensat", AT_FDCWD, "f", (ctypes.c_long * 4)(1, 2, 3, 4), 0x4000)
    os.chmod("f", 0o666)
    with As():
        for a, m in ((UTIME_NOW, UTIME_NOW), (UTIME_NOW, UTIME_OMIT), (UTIME_OMIT, UTIME_OMIT), (1, 2)):
            t(f"by a stranger who may write {a} {m}", libc, "utimensat", AT_FDCWD, "f",
              (ctypes.c_long * 4)(1, a, 2, m), 0)

    def changes(label, call, *watched):
        for name in watched:
            os.utime(name, (1000, 1000), follow_symlinks=False)
        before = [os.lstat(name) for name in watched]
        wait_for_clock()
        try:
            call()
        except OSError as error:
            t.note(label, os.strerror(error.errno))
        for name, was in zip(watched, before):
            try:
                now = os.lstat(name)
            except FileNotFoundError:
                t.note(f"{label}: {name}", "gone")
                continue
            t.note(f"{label}: {name}", " ".join(which for which, new, old in (
                ("mtime", now.st_mtime_ns, was.st_mtime_ns), ("ctime", now.st_ctime_ns,
                                                              was.st_ctime_ns)) if new != old))

    put("d/x", b"x")
    os.mkdir("e")
    changes("create", lambda: put("d/new"), "d", ".")
    changes("open to read", lambda: get("d/x"), "d", "d/x")
    changes("write", lambda: os.close(write_to("d/x", b"y")), "d", "d/x")
    changes("write nothing", lambda: os.close(write_to("d/x", b"")), "d/x")
    changes("truncate", lambda: os.truncate("d/x", 0), "d", "d/x")
    changes("truncate to the same", lambda: os.truncate("d/x", 0), "d/x")
    changes("open with O_TRUNC", lambda: put("d/x"), "d/x")
    changes("chmod", lambda: os.chmod("d/x", 0o600), "d", "d/x")
    changes("chown", lambda: os.chown("d/x", 1, 1), "d", "d/x")
    changes("link", lambda: os.link("d/x", "e/y"), "d", "e", "d/x")
    changes("unlink", lambda: os.unlink("e/y"), "e", "d/x")
    changes("rename", lambda: os.rename("d/x", "e/x"), "d", "e")
    changes("rename in place", lambda: os.rename("e/x", "e/z"), "e")
    changes("mkdir", lambda: os.mkdir("e/sub"), "e", ".")
    changes("mkdir in it", lambda: os.mkdir("e/sub/sub"), "e", "e/sub")
    changes("rmdir", lambda: os.rmdir("e/sub/sub"), "e", "e/sub")
    changes("failed create", lambda: os.mkdir("e/sub"), "e", "e/sub")
    changes("failed unlink", lambda: os.unlink("e/none"), "e")
    changes("symlink", lambda: os.symlink("z", "e/s"), "e")
    changes("setxattr", lambda: os.setxattr("e/z", "user.a", b"x"), "e", "e/z")
    changes("removexattr", lambda: os.removexattr("e/z", "user.a"), "e/z")
    changes("readlink", lambda: os.readlink("e/s"), "e/s")
    changes("fallocate", lambda: allocate("e/z", 0, 0, 5000), "e/z")
    changes("fallocate within", lambda: allocate("e/z", 0, 0, 100), "e/z")
    changes("fallocate keeping the size", lambda: allocate("e/z", 1, 0, 50000), "e/z")
    changes("punch", lambda: allocate("e/z", 3, 0, 4096), "e/z")
    changes("fsync", lambda: sync("e/z"), "e/z")


def wait_for_clock():
    """The kernel's coarse clock, which stamps files, steps every few milliseconds."""
    import time
    time.sleep(0.012)


def write_to(path, data):
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, data)
    return fd


def allocate(path, mode, offset, length):
    fd = os.open(path, os.O_RDWR)
    try:
        fallocate(fd, mode, offset, length)
    finally:
        os.close(fd)


def sync(path):
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.close(fd)


SEQUENCES = [permissions, sticky, set_group_directories, privileges_are_lost, owners_and_modes, access_lists,
             attributes,
             times]
