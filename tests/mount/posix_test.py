"""Ordinary files and directories on a mount, with the tools that people use."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import fcntl
import mmap
import os
import random
import shutil
import socket
import stat
import subprocess
import threading
import time

import harness
from harness import as_user, read_all, run, write_all

LIBC = ctypes.CDLL(None, use_errno=True)
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE = 1, 2


def renameat2(old, new, flags):
    if LIBC.renameat2(-100, old.encode(), -100, new.encode(), flags) != 0:
        raise OSError(ctypes.get_errno(), old)


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


class Posix(harness.MountTest):
    size = "256M"
    options = "cache=64M,allow_other"

    def tree(self, path, seed=1):
        """A small tree with all kinds of files."""
        rng = random.Random(seed)
        os.makedirs(path + "/deep/deeper")
        for name, size in (("empty", 0), ("one", 1), ("small", 1900), ("block", 4096), ("odd", 100_001),
                           ("deep/big", 3_000_000), ("deep/deeper/x", 131_072)):
            write_all(f"{path}/{name}", rng.randbytes(size))
        os.symlink("deep/big", path + "/link")
        os.link(path + "/odd", path + "/deep/hard")
        os.chmod(path + "/one", 0o751)
        os.utime(path + "/small", ns=(1_500_000_000_123_456_789, 1_400_000_000_987_654_321))

    def same_tree(self, a, b):
        run("diff", "-r", "--no-dereference", a, b)

    def test_files_of_every_size_come_back(self):
        rng = random.Random(2)
        for size in (0, 1, 2048, 2049, 4095, 4096, 131071, 131072, 131073, 1_000_003, 5_000_000):
            data = rng.randbytes(size)
            write_all(self.at("file"), data)
            self.assertEqual(os.stat(self.at("file")).st_size, size)
            self.assertEqual(read_all(self.at("file")), data)
            os.unlink(self.at("file"))

    def test_cp_tar_and_rsync_keep_a_tree(self):
        outside = os.path.join(self.volume.folder, "tree")
        self.tree(outside)
        run("cp", "-a", outside, self.at("cp"))
        self.same_tree(outside, self.at("cp"))
        run("rsync", "-aH", outside + "/", self.at("rsync"))
        self.same_tree(outside, self.at("rsync"))
        self.assertEqual(run("rsync", "-aHi", outside + "/", self.at("rsync")), "", "a second rsync has nothing to do")
        run("tar", "-C", outside, "-cf", self.at("tar"), ".")
        os.mkdir(self.at("untar"))
        run("tar", "-C", self.at("untar"), "-xf", self.at("tar"))
        self.same_tree(outside, self.at("untar"))
        found = os.stat(self.at("cp/small"))
        self.assertEqual(found.st_mtime_ns, 1_400_000_000_987_654_321)
        self.assertEqual(stat.S_IMODE(os.stat(self.at("cp/one")).st_mode), 0o751)
        self.assertEqual(os.stat(self.at("rsync/odd")).st_ino, os.stat(self.at("rsync/deep/hard")).st_ino)
        shutil.rmtree(self.at("cp"))
        self.assertErrno(errno.ENOENT, os.stat, self.at("cp"))

    def test_git_clones_and_collects(self):
        source = os.path.join(self.volume.folder, "repo")
        self.tree(source, 5)
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        run(*git, "-C", source, "init", "-q")
        run(*git, "-C", source, "add", ".")
        run(*git, "-C", source, "commit", "-qm", "one")
        run(*git, "clone", "-q", source, self.at("clone"))
        run(*git, "-C", self.at("clone"), "gc", "-q")
        run(*git, "-C", self.at("clone"), "fsck", "--strict")
        self.assertEqual(run(*git, "-C", self.at("clone"), "status", "--porcelain"), "")

    def test_a_database_works_in_it(self):
        if not shutil.which("sqlite3"):
            self.skipTest("sqlite3 is not installed")
        run("sqlite3", self.at("db"), "pragma journal_mode=wal; create table t(a, b);"
            "with recursive n(i) as (select 1 union all select i+1 from n where i < 5000)"
            "insert into t select i, randomblob(100) from n; update t set b = a where a % 3 = 0; vacuum;")
        self.assertEqual(run("sqlite3", self.at("db"), "pragma integrity_check; select count(*), sum(a) from t;"),
                         "ok\n5000|12502500\n")

    def test_random_writes_agree_with_another_filesystem(self):
        rng = random.Random(11)
        other = os.path.join(self.volume.folder, "other")
        paths = [self.at("file"), other]
        fds = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for path in paths]
        for step in range(400):
            kind = rng.choice(["write", "write", "write", "truncate", "punch", "read", "append", "seek"])
            offset, length = rng.randrange(700_000), rng.choice([1, 17, 4096, 9000, 140_000])
            data = rng.randbytes(length)
            results = []
            for path, fd in zip(paths, fds):
                if kind == "write":
                    results.append(os.pwrite(fd, data, offset))
                elif kind == "truncate":
                    results.append(os.ftruncate(fd, offset))
                elif kind == "punch":
                    results.append(fallocate(fd, FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE, offset, length))
                elif kind == "append":
                    with open(path, "ab", buffering=0) as file:
                        results.append(file.write(data))
                else:
                    results.append(os.pread(fd, length, offset))
            self.assertEqual(results[0], results[1], f"step {step}: {kind}")
            self.assertEqual(os.fstat(fds[0]).st_size, os.fstat(fds[1]).st_size)
        for fd in fds:
            os.close(fd)
        self.assertEqual(read_all(paths[0]), read_all(paths[1]))

    def test_o_direct_takes_any_alignment(self):
        fd = os.open(self.at("file"), os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        data = os.urandom(10_007)
        self.assertEqual(os.pwrite(fd, data, 3), len(data))
        self.assertEqual(os.pread(fd, 20_000, 0), b"\0" * 3 + data)
        os.close(fd)

    def test_mappings_shared_and_private(self):
        write_all(self.at("file"), b"a" * 10_000)
        with open(self.at("file"), "r+b") as file:
            shared = mmap.mmap(file.fileno(), 0)
            private = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            shared[5000:5003] = b"xyz"
            private[0:3] = b"ppp"
            shared.flush()
            self.assertEqual(read_all(self.at("file"))[4999:5004], b"axyza")
            self.assertEqual(read_all(self.at("file"))[:3], b"aaa")
            shared.close()
            private.close()

    def test_sparse_files_show_their_holes(self):
        fd = os.open(self.at("file"), os.O_RDWR | os.O_CREAT)
        os.pwrite(fd, b"x" * 4096, 1 << 20)
        os.ftruncate(fd, 4 << 20)
        os.fsync(fd)
        self.assertEqual(os.lseek(fd, 0, os.SEEK_DATA), 1 << 20)
        self.assertEqual(os.lseek(fd, 1 << 20, os.SEEK_HOLE), (1 << 20) + 4096)
        self.assertErrno(errno.ENXIO, os.lseek, fd, 2 << 20, os.SEEK_DATA)
        self.assertLess(os.fstat(fd).st_blocks * 512, 200_000)
        run("cp", "--sparse=always", self.at("file"), self.at("copy"))
        self.assertEqual(read_all(self.at("copy")), read_all(self.at("file")))
        os.close(fd)

    def test_names(self):
        write_all(self.at("a"), b"a")
        write_all(self.at("b"), b"b")
        self.assertErrno(errno.EEXIST, renameat2, self.at("a"), self.at("b"), RENAME_NOREPLACE)
        renameat2(self.at("a"), self.at("b"), RENAME_EXCHANGE)
        self.assertEqual((read_all(self.at("a")), read_all(self.at("b"))), (b"b", b"a"))
        os.rename(self.at("a"), self.at("b"))
        self.assertEqual((os.listdir(self.dir), read_all(self.at("b"))), (["b"], b"b"))
        self.assertErrno(errno.ENAMETOOLONG, write_all, self.at("n" * 256), b"")
        write_all(self.at("n" * 255), b"")
        os.mkdir(self.at("d"))
        self.assertErrno(errno.EISDIR, os.rename, self.at("b"), self.at("d"))
        self.assertErrno(errno.ENOTDIR, os.rename, self.at("d"), self.at("b"))
        self.assertErrno(errno.EINVAL, os.rename, self.at("d"), self.at("d/inside"))
        write_all(self.at("d/x"), b"")
        self.assertErrno(errno.ENOTEMPTY, os.rmdir, self.at("d"))
        os.link(self.at("b"), self.at("d/b"))
        self.assertEqual(os.stat(self.at("b")).st_nlink, 2)
        self.assertErrno(errno.EPERM, os.link, self.at("d"), self.at("e"))
        os.symlink("x" * 4000, self.at("long"))
        self.assertEqual(len(os.readlink(self.at("long"))), 4000)

    def test_unlinked_files_live_while_they_are_open(self):
        fd = os.open(self.at("file"), os.O_RDWR | os.O_CREAT)
        os.write(fd, b"still here")
        os.unlink(self.at("file"))
        self.assertEqual(os.fstat(fd).st_nlink, 0)
        self.assertEqual(os.pread(fd, 100, 0), b"still here")
        os.write(fd, b" and growing")
        self.assertEqual(os.pread(fd, 100, 0), b"still here and growing")
        os.close(fd)

    def test_special_files(self):
        os.mkfifo(self.at("fifo"))
        listener = socket.socket(socket.AF_UNIX)
        os.chdir(self.dir)
        listener.bind("socket")
        os.chdir("/")
        os.mknod(self.at("null"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.at("fifo")).st_mode))
        self.assertTrue(stat.S_ISSOCK(os.stat(self.at("socket")).st_mode))
        self.assertEqual(os.stat(self.at("null")).st_rdev, os.makedev(1, 3))
        self.assertErrno(errno.EACCES, os.open, self.at("null"), os.O_RDONLY)  # nodev
        listener.close()

    def test_extended_attributes(self):
        write_all(self.at("file"), b"")
        os.setxattr(self.at("file"), "user.a", b"value")
        os.setxattr(self.at("file"), "user.empty", b"")
        self.assertEqual(os.getxattr(self.at("file"), "user.a"), b"value")
        self.assertEqual(os.getxattr(self.at("file"), "user.empty"), b"")
        self.assertEqual(sorted(os.listxattr(self.at("file"))), ["user.a", "user.empty"])
        self.assertErrno(errno.EEXIST, os.setxattr, self.at("file"), "user.a", b"", os.XATTR_CREATE)
        self.assertErrno(errno.ENODATA, os.setxattr, self.at("file"), "user.b", b"", os.XATTR_REPLACE)
        os.removexattr(self.at("file"), "user.a")
        self.assertErrno(errno.ENODATA, os.getxattr, self.at("file"), "user.a")
        for size in (4096, 4097, 65536, 10241):
            value = os.urandom(size)
            os.setxattr(self.at("file"), "user.big", value)
            self.assertEqual(os.getxattr(self.at("file"), "user.big"), value)

    def test_access_lists(self):
        if not shutil.which("setfacl"):
            self.skipTest("setfacl is not installed")
        write_all(self.at("file"), b"secret")
        os.chmod(self.dir, 0o755)
        os.chmod(self.at("file"), 0o600)
        self.assertErrno(errno.EACCES, self.as_nobody, read_all, self.at("file"))
        run("setfacl", "-m", "u:65534:r", self.at("file"))
        self.as_nobody(read_all, self.at("file"))
        self.assertErrno(errno.EACCES, self.as_nobody, os.open, self.at("file"), os.O_WRONLY)
        os.mkdir(self.at("d"))
        run("setfacl", "-d", "-m", "u:65534:rwx", self.at("d"))
        write_all(self.at("d/inherits"), b"")
        self.assertIn("user:nobody:rw", run("getfacl", "-p", self.at("d/inherits")))

    def as_nobody(self, call, *arguments):
        """Runs it as another user, in a child; raises the OSError that it met."""
        number = as_user(call, *arguments)
        if number:
            raise OSError(number, os.strerror(number))

    def test_permissions_are_those_of_the_caller(self):
        os.chmod(self.dir, 0o777)
        self.as_nobody(write_all, self.at("theirs"), b"x")
        found = os.stat(self.at("theirs"))
        self.assertEqual((found.st_uid, found.st_gid), (65534, 65534))
        write_all(self.at("mine"), b"x")
        os.chmod(self.at("mine"), 0o600)
        self.assertErrno(errno.EACCES, self.as_nobody, read_all, self.at("mine"))
        self.assertErrno(errno.EPERM, self.as_nobody, os.chmod, self.at("mine"), 0o777)
        harness.make_image(self.at("scan"), (8, 8))
        os.chmod(self.at("scan"), 0o640)
        for view in ("scan@/win/y1.raw", "scan@/info.json", "scan@/scan.npy"):
            self.assertErrno(errno.EACCES, self.as_nobody, read_all, self.at(view))
        os.chmod(self.at("scan"), 0o644)
        self.as_nobody(read_all, self.at("scan@/win/y1.raw"))
        self.assertErrno(errno.EACCES, self.as_nobody, write_all, self.at("scan@/win/y1.raw"), b"12345678")
        os.chmod(self.at("scan"), 0o622)  # may write, but not read
        self.as_nobody(write_all, self.at("scan@/win/y1.raw"), b"12345678")
        self.assertEqual(read_all(self.at("scan"))[8:16], b"12345678")
        self.assertErrno(errno.EACCES, self.as_nobody, read_all, self.at("scan@/win/y1.raw"))
        self.assertErrno(errno.EACCES, self.as_nobody, read_all, self.at("scan@/info.json"))
        self.assertErrno(errno.EACCES, self.as_nobody, os.listdir, self.at("scan@"))
        os.chmod(self.dir, 0o2777)
        os.mkdir(self.at("sub"))
        self.assertTrue(os.stat(self.at("sub")).st_mode & stat.S_ISGID)

    def test_a_large_directory_stays_whole_while_entries_come_and_go(self):
        for i in range(3000):
            os.close(os.open(self.at(f"stays{i}"), os.O_CREAT))
        stop = threading.Event()

        def churn():
            i = 0
            while not stop.is_set():
                os.close(os.open(self.at(f"comes{i}"), os.O_CREAT))
                os.unlink(self.at(f"comes{i}"))
                i += 1

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            for _ in range(5):
                names = [name for name in os.listdir(self.dir) if name.startswith("stays")]
                self.assertEqual(len(names), 3000)
                self.assertEqual(len(set(names)), 3000)
        finally:
            stop.set()
            thread.join()

    def test_locks(self):
        with open(self.at("file"), "w") as one, open(self.at("file"), "w") as two:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.assertErrno(errno.EAGAIN, fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(one, fcntl.LOCK_UN)
            fcntl.lockf(one, fcntl.LOCK_EX | fcntl.LOCK_NB, 10)

    def test_times_follow_what_happens(self):
        write_all(self.at("file"), b"x")
        first = os.stat(self.at("file"))
        time.sleep(0.02)
        with open(self.at("file"), "ab") as file:
            file.write(b"y")
        second = os.stat(self.at("file"))
        self.assertGreater(second.st_mtime_ns, first.st_mtime_ns)
        time.sleep(0.02)
        os.chmod(self.at("file"), 0o600)
        third = os.stat(self.at("file"))
        self.assertEqual(third.st_mtime_ns, second.st_mtime_ns)
        self.assertGreater(third.st_ctime_ns, second.st_ctime_ns)

    def test_copy_file_range_and_statfs(self):
        data = os.urandom(3_000_000)
        write_all(self.at("a"), data)
        source, target = os.open(self.at("a"), os.O_RDONLY), os.open(self.at("b"), os.O_RDWR | os.O_CREAT)
        copied = 0
        while copied < len(data):
            count = os.copy_file_range(source, target, len(data) - copied)
            self.assertGreater(count, 0)
            copied += count
        os.close(source)
        os.close(target)
        self.assertEqual(read_all(self.at("b")), data)
        space = os.statvfs(self.dir)
        self.assertGreater(space.f_blocks * space.f_frsize, 100 << 20)
        self.assertLessEqual(space.f_bavail, space.f_bfree)
        self.assertLessEqual(space.f_bfree, space.f_blocks)
        self.assertEqual(space.f_namemax, 255)

    def test_many_clients_at_once(self):
        failures = []

        def work(number):
            rng = random.Random(number)
            try:
                for i in range(20):
                    data = rng.randbytes(rng.randrange(300_000))
                    write_all(self.at(f"f{number}.{i}"), data)
                    if read_all(self.at(f"f{number}.{i}")) != data:
                        failures.append((number, i))
                    if i % 5 == 0:
                        with open(self.at(f"f{number}.{i}"), "r+b") as file:
                            os.fsync(file.fileno())
                    if i % 2:
                        os.unlink(self.at(f"f{number}.{i}"))
            except OSError as error:
                failures.append((number, error))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    harness.main()
