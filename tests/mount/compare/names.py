"""Sequences about names: open flags, rename, link, unlink, directories, symbolic links, lengths, special files."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import socket
import stat

from trace import AT_FDCWD, As, fallocate, get, libc, put, renameat2

NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
KINDS = ("file", "dir", "full", "link", "dangling", "fifo", "absent")


def make(kind, name):
    """An entry of the kind; "absent" makes none."""
    if kind == "file":
        put(name, b"data of " + name.encode())
    elif kind in ("dir", "full"):
        os.mkdir(name)
        if kind == "full":
            put(name + "/inside", b"inside")
    elif kind == "link":
        put(name + ".target", b"target")
        os.symlink(name + ".target", name)
    elif kind == "dangling":
        os.symlink("nowhere", name)
    elif kind == "fifo":
        os.mkfifo(name)


def seen(t):
    """The whole tree below the working directory."""
    for path, directories, files in sorted(os.walk(".")):
        for name in sorted(directories + files):
            t.stat(os.path.join(path, name))


def open_flags(t):
    base = [os.O_RDONLY, os.O_WRONLY, os.O_RDWR]
    extra = [0, os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_DIRECTORY, os.O_NOFOLLOW,
             os.O_CREAT | os.O_NOFOLLOW, os.O_CREAT | os.O_DIRECTORY, os.O_DIRECTORY | os.O_NOFOLLOW, os.O_PATH,
             os.O_CREAT | os.O_TRUNC, os.O_NOATIME, os.O_SYNC]
    for kind in KINDS:
        if kind == "fifo":
            continue  # would wait for the other end
        for access in base:
            for flags in extra:
                name = f"{kind}{access}{flags}"
                make(kind, name)
                t.opens(name, access | flags)
    make("fifo", "fifo")
    t.opens("fifo", os.O_RDONLY | os.O_NONBLOCK)
    t.opens("fifo", os.O_WRONLY | os.O_NONBLOCK)
    t.opens("fifo", os.O_RDONLY | os.O_DIRECTORY)
    t.opens("fifo", os.O_CREAT | os.O_EXCL | os.O_RDWR)
    seen(t)


def temporary_files(t):
    t.opens(".", os.O_TMPFILE | os.O_RDWR)
    t.opens(".", os.O_TMPFILE | os.O_RDONLY)
    t.opens("absent", os.O_TMPFILE | os.O_RDWR)


def rename_matrix(t):
    for flags in (0, NOREPLACE, EXCHANGE, NOREPLACE | EXCHANGE, NOREPLACE | WHITEOUT | EXCHANGE, 8):
        for old in KINDS:
            for new in KINDS:
                top = f"{flags}{old}{new}"
                os.mkdir(top)
                make(old, top + "/old")
                make(new, top + "/new")
                t(f"rename {old} to {new} flags {flags}", renameat2, top + "/old", top + "/new", flags)
    seen(t)


def rename_across_directories(t):
    for flags in (0, NOREPLACE, EXCHANGE):
        for old in KINDS:
            for new in KINDS:
                top = f"{flags}{old}{new}"
                os.makedirs(top + "/a")
                os.makedirs(top + "/b")
                make(old, top + "/a/old")
                make(new, top + "/b/new")
                t(f"move {old} over {new} flags {flags}", renameat2, top + "/a/old", top + "/b/new", flags)
    seen(t)


def rename_into_itself(t):
    os.makedirs("a/b/c")
    put("file")
    for flags in (0, NOREPLACE, EXCHANGE):
        for old, new in (("a", "a/x"), ("a", "a/b"), ("a", "a/b/c"), ("a/b", "a/b/c/d"), ("a/b/c", "a"),
                         ("a/b/c", "a/b"),
                         ("a", "a"), ("file", "file"), ("file", "./file"), ("a/.", "z"), ("a/..", "z"), ("a", "z/."),
                         (".", "z"), ("..", "z"), ("a", "."), ("a", ".."), ("a/b/.", "a/b"), ("file", "file/x"),
                         ("file/", "z"), ("file", "z/"), ("a/", "z/"), ("z/", "a/"), ("a", ""), ("", "a"),
                         ("file", "absent/x"), ("absent/x", "file"), ("a/b/..", "q")):
            t(f"rename {old} {new} {flags}", renameat2, old, new, flags)
        seen(t)
    put("other")
    os.link("other", "same")
    t("rename of two names of one file", os.rename, "other", "same")
    t("exchange of two names of one file", renameat2, "other", "same", EXCHANGE)
    t("no-replace of two names of one file", renameat2, "other", "same", NOREPLACE)
    seen(t)


def links(t):
    for kind in KINDS:
        make(kind, kind)
        t(f"link {kind}", os.link, kind, kind + ".2", follow_symlinks=False)
        t(f"link {kind}, following", os.link, kind, kind + ".3", follow_symlinks=True)
        t(f"link {kind} over itself", os.link, kind, kind)
    t("link over a directory", os.link, "file", "dir")
    t("link into a file", os.link, "file", "file/x")
    t("link into nothing", os.link, "file", "absent/x")
    t("link with a slash", os.link, "file", "new/")
    t("link of a file with a slash", os.link, "file/", "new")
    t("link to ..", os.link, "file", "..")
    t("link to .", os.link, "file", "dir/.")
    fd = os.open("file", os.O_RDWR)
    os.unlink("file")
    os.unlink("file.2")
    os.unlink("file.3")
    t("link of an unlinked open file", libc, "linkat", fd, "", AT_FDCWD, "revived", 0x1000)
    t("links of an unlinked open file", os.fstat, fd)
    seen(t)


def removal(t):
    for kind in KINDS:
        make(kind, kind)
        t(f"rmdir {kind}", os.rmdir, kind)
        make(kind, kind + ".u")
        t(f"unlink {kind}", os.unlink, kind + ".u")
        make(kind, kind + ".s")
        t(f"unlink {kind}/", os.unlink, kind + ".s/")
        t(f"rmdir {kind}/", os.rmdir, kind + ".s/")
    os.mkdir("d")
    for name in ("d/.", "d/..", ".", "..", "", "/", "d//"):
        t(f"rmdir {name!r}", os.rmdir, name)
        t(f"unlink {name!r}", os.unlink, name)
    seen(t)


def directories(t):
    for kind in KINDS:
        make(kind, kind)
        t(f"mkdir {kind}", os.mkdir, kind)
        t(f"mkdir {kind}/x", os.mkdir, kind + "/x")
        t(f"mkdir {kind}/", os.mkdir, kind + "/")
        t(f"mknod {kind}", os.mknod, kind, stat.S_IFREG | 0o600)
        t(f"symlink {kind}", os.symlink, "x", kind)
        t(f"symlink {kind}/", os.symlink, "x", kind + "/")
        t(f"list {kind}", os.listdir, kind)
        t(f"chdir {kind}", os.chdir, kind)
        os.chdir(os.path.dirname(os.getcwd()) if os.path.basename(os.getcwd()) == kind else ".")
        t(f"stat {kind}/.", os.stat, kind + "/.")
        t(f"stat {kind}/..", os.stat, kind + "/..")
        t(f"readlink {kind}", os.readlink, kind)
        t(f"truncate {kind}", os.truncate, kind, 3)
    for mode in (0, 0o777, 0o1777, 0o2777, 0o4777, 0o7777):
        t(f"mkdir with mode {mode:o}", os.mkdir, f"mode{mode}", mode)
    t("mkdir .", os.mkdir, ".")
    t("mkdir ..", os.mkdir, "..")
    t("mkdir empty", os.mkdir, "")
    seen(t)


def read_and_write_directories(t):
    os.mkdir("d")
    fd = t.open("d", os.O_RDONLY)
    t("read", os.read, fd, 10)
    t("pread", os.pread, fd, 10, 0)
    t("write", os.write, fd, b"x")
    t("ftruncate", os.ftruncate, fd, 0)
    t("fallocate", fallocate, fd, 0, 0, 10)
    t("fsync", os.fsync, fd)
    t("fdatasync", os.fdatasync, fd)
    t("lseek end of nothing", os.lseek, fd, -1, os.SEEK_SET)
    t("fchmod", os.fchmod, fd, 0o700)
    os.rmdir("d")
    t("fstat of a removed directory", os.fstat, fd)
    t("list of a removed directory", os.listdir, fd)
    t("create in a removed directory", os.open, "x", os.O_CREAT | os.O_RDWR, dir_fd=fd)
    t("mkdir in a removed directory", os.mkdir, "x", dir_fd=fd)
    t("symlink in a removed directory", os.symlink, "x", "x", dir_fd=fd)
    t("mknod in a removed directory", os.mknod, "x", stat.S_IFIFO | 0o600, dir_fd=fd)
    put("file")
    t("link into a removed directory", os.link, "file", "x", dst_dir_fd=fd)
    t("rename into a removed directory", os.rename, "file", "x", dst_dir_fd=fd)
    t("stat .. of a removed directory", os.stat, "..", dir_fd=fd)


def loops(t):
    os.symlink("b", "a")
    os.symlink("a", "b")
    os.symlink("self", "self")
    for name in ("a", "self", "a/x"):
        t(f"stat {name}", os.stat, name)
        t(f"unlinked stat {name}", os.lstat, name)
        t.opens(name, os.O_RDONLY)
        t.opens(name, os.O_RDWR | os.O_CREAT)
        t.opens(name, os.O_RDONLY | os.O_NOFOLLOW)
        t.opens(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        t(f"mkdir {name}", os.mkdir, name)
        t(f"chmod {name}", os.chmod, name, 0o600)
        t(f"truncate {name}", os.truncate, name, 0)
    put("end", b"reached")
    os.symlink("end", "chain0")
    for i in range(1, 45):
        os.symlink(f"chain{i - 1}", f"chain{i}")
    for i in (0, 38, 39, 40, 44):
        t(f"a chain of {i + 1}", get, f"chain{i}")
    os.mkdir("d")
    os.symlink("d", "to-d")
    os.symlink("new", "to-new")
    os.symlink("../end", "d/up")
    t("create through a link", put, "to-new", b"x")
    t("mkdir through a dangling link", os.mkdir, "to-new2/")
    t("list through a link", os.listdir, "to-d")
    t("rmdir of a link to a directory", os.rmdir, "to-d")
    t("rmdir of a link to a directory with a slash", os.rmdir, "to-d/")
    t("read through .. in a link", get, "to-d/up")
    t("rename of a link to a directory with a slash", os.rename, "to-d/", "moved")
    seen(t)


def lengths(t):
    for length in (1, 254, 255, 256, 300):
        name = "n" * length
        t(f"create {length}", put, name)
        t(f"stat {length}", os.stat, name)
        t(f"mkdir {length}", os.mkdir, "d" * length)
        t(f"symlink {length}", os.symlink, "x", "s" * length)
        t(f"rename {length}", os.rename, name, "r" * length)
        t(f"link {length}", os.link, "r" * length, "l" * length)
        t(f"unlink {length}", os.unlink, "r" * length)
        t(f"rmdir {length}", os.rmdir, "d" * length)
        t(f"long umlauts {length}", put, "ä" * (length // 2))
    for length in (1, 59, 60, 1000, 4094, 4095, 4096, 5000):
        t(f"symlink to {length}", os.symlink, "t" * length, f"sym{length}")
        t(f"readlink {length}", os.readlink, f"sym{length}")
        t.stat(f"sym{length}")
    t("symlink to nothing", os.symlink, "", "sym")
    t("path of 4095", os.stat, "./" * 2047 + ".")
    t("path of 4096", os.stat, "./" * 2047 + "..")
    for name in ("with space", "new\nline", "tab\t", "\x01\x7f", "\udcff\udcfe", "-", "~", "a:b", "a\\b", "*", "?"):
        t(f"create {name!r}", put, name, b"x")
        t(f"read {name!r}", get, name)
    t("list", os.listdir, ".")


def special_files(t):
    for kind in ("S_IFIFO", "S_IFSOCK", "S_IFCHR", "S_IFBLK", "S_IFREG"):
        for device in (0, os.makedev(1, 3), os.makedev(300, 70000)):
            name = f"{kind}{device}"
            t(f"mknod {kind} {device}", os.mknod, name, getattr(stat, kind) | 0o640, device)
            found = t.stat(name)
            t.note("device number", str(found.st_rdev if found else None))
            if kind != "S_IFIFO":
                t.opens(name, os.O_RDONLY | os.O_NONBLOCK)
            t(f"truncate {kind}", os.truncate, name, 1)
            t(f"xattr of {kind}", os.setxattr, name, "user.a", b"x")
            t(f"trusted xattr of {kind}", os.setxattr, name, "trusted.a", b"x")
            t(f"chmod {kind}", os.chmod, name, 0o600)
    t("mknod of a directory", os.mknod, "dir", stat.S_IFDIR | 0o700)
    t("mknod of a link", os.mknod, "link", stat.S_IFLNK | 0o700)
    t("mknod of no kind", os.mknod, "none", 0o600)
    t("mknod of a strange kind", os.mknod, "strange", 0o030000 | 0o600)
    with As():
        t("device by a user", os.mknod, "theirs", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.chmod(".", 0o777)
    with As():
        t("device by a user", os.mknod, "theirs", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        t("fifo by a user", os.mknod, "fifo", stat.S_IFIFO | 0o600)
    with contextlib.ExitStack() as ends:
        listener, client, other = (ends.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(3))
        t("bind", listener.bind, "socket")
        t("bind again", other.bind, "socket")
        listener.listen()
        t("connect", client.connect, "socket")
        listener.close()
        t("connect to a closed one", other.connect, "socket")
        t("connect to a file that is no socket", other.connect, "none")
    reader = t.open("fifo", os.O_RDONLY | os.O_NONBLOCK)
    writer = t.open("fifo", os.O_WRONLY | os.O_NONBLOCK)
    t("write to a fifo", os.write, writer, b"through")
    t("read from a fifo", os.read, reader, 100)
    t("seek in a fifo", os.lseek, reader, 0, 0)
    seen(t)


def link_counts(t):
    os.mkdir("d")
    put("f")
    for i in range(20):
        os.mkdir(f"d/{i}")
        os.link("f", f"f{i}")
    t.stat("d")
    t.stat("f")
    for i in range(0, 20, 2):
        os.rmdir(f"d/{i}")
        os.unlink(f"f{i}")
    t.stat("d")
    t.stat("f")
    os.rename("d/1", "moved")
    t.stat("d")
    t.stat(".")
    os.mkdir("empty")
    t("directory over an empty one", os.rename, "moved", "empty")
    t.stat(".")
    fd = os.open("f", os.O_RDONLY)
    for i in range(1, 20, 2):
        os.unlink(f"f{i}")
    t("links of an open file", os.fstat, fd)
    os.unlink("f")
    t("links of an unlinked file", os.fstat, fd)


def reading_while_removing(t):
    for i in range(1500):
        put(f"file{i:04}")
    seen_names = []
    with os.scandir(".") as entries:
        for number, entry in enumerate(entries):
            seen_names.append(entry.name)
            os.unlink(entry.name)
            if number == 700:
                put("added")
    t.note("each once", str(len(set(seen_names) - {"added"})))
    t.note("none twice", str(len(seen_names) == len(set(seen_names))))
    t("left", lambda: set(os.listdir(".")) - {"added"})
    os.mkdir("d")
    for i in range(300):
        put(f"d/{i}")
    with os.scandir("d") as entries:
        for entry in entries:
            os.rename(f"d/{entry.name}",
                      f"d/moved-{entry.name}" if not entry.name.startswith("moved") else f"d/{entry.name}")
    t.note("after renaming in it", str(len(os.listdir("d"))))
    fd = os.open("d", os.O_RDONLY)
    for number in range(300):
        name = f"d/moved-{number}" if os.path.exists(f"d/moved-{number}") else f"d/{number}"
        os.unlink(name)
    t("rmdir after that", os.rmdir, "d")
    t("list of what was removed", os.listdir, fd)


def unlink_open(t):
    fd = t.open("f", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"bytes")
    os.unlink("f")
    t("fstat", os.fstat, fd)
    t("read", os.pread, fd, 10, 0)
    t("write", os.pwrite, fd, b"more", 3)
    t("truncate", os.ftruncate, fd, 6)
    t("chmod", os.fchmod, fd, 0o600)
    t("xattr", os.setxattr, fd, "user.a", b"x")
    t("read again", os.pread, fd, 10, 0)
    t("fsync", os.fsync, fd)
    t("fallocate", fallocate, fd, 0, 0, 100)
    t("again under the same name", put, "f", b"new")
    t("the old one", os.pread, fd, 10, 0)
    t("the new one", get, "f")
    t("open through /proc", lambda: os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR)))
    second = t.open("g", os.O_RDWR | os.O_CREAT)
    os.write(second, b"replaced")
    put("h", b"winner")
    os.rename("h", "g")
    t("replaced file", os.pread, second, 100, 0)
    t("links of the replaced file", os.fstat, second)


def reserved(t):
    put("f")
    for name in ("scan@", "@", ".mdfs", "a@b", "@a"):
        t(f"create {name}", put, name)
        t(f"mkdir {name}", os.mkdir, name)
        t(f"symlink {name}", os.symlink, "x", name)
        t(f"link {name}", os.link, "f", name)
        t(f"rename {name}", os.rename, "f", name)
        put("f")


SEQUENCES = [reserved, open_flags, temporary_files, rename_matrix, rename_across_directories, rename_into_itself,
             links, removal,
             directories, read_and_write_directories, loops, lengths, special_files, link_counts,
             reading_while_removing,
             unlink_open]
