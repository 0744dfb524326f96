"""Git, cp, tar, rsync and SQLite on a mount, with trees and loads that are not small."""
# SPDX-License-Identifier: Apache-2.0
import os
import random
import sqlite3
import stat
import subprocess
import threading
import time

from torture import LONGER, TortureTest, check, is_dead, main, read_all, run, write_all

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "gc.auto=0",
       "-c", "safe.directory=*", "-c", "commit.gpgsign=false"]


def make_tree(top, seed, files):
    """Text and noise, links of both kinds, modes, nanoseconds, a hole, an attribute, names that are no ASCII."""
    rng = random.Random(seed)
    folders = [top] + [f"{top}/d{i % 7}/{'deep/' * (i % 5)}e{i}" for i in range(max(3, files // 20))]
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    paths = []
    for i in range(files):
        path = f"{rng.choice(folders)}/f{i}" + rng.choice(("", ".txt", " with space", "-ä", "\n", "\udcff"))
        size = rng.choice((0, 1, 100, 2048, 2049, 4096, 10_000, 131_072, 200_001))
        data = rng.randbytes(size) if i % 2 else (b"a line of %d\n" % i * (size // 8 + 1))[:size]
        write_all(path, data)
        os.chmod(path, rng.choice((0o644, 0o755, 0o600, 0o4711, 0o444)))
        os.utime(path, ns=(rng.randrange(2**60), rng.randrange(2**60)))
        paths.append(path)
    for i, path in enumerate(rng.sample(paths, files // 10)):
        os.link(path, f"{rng.choice(folders)}/hard{i}")
        os.symlink(os.path.relpath(path, top), f"{rng.choice(folders)}/soft{i}")
    with open(f"{top}/sparse", "wb") as file:
        file.seek(5 << 20)
        file.write(b"end")
    os.mkfifo(f"{top}/fifo")
    os.setxattr(paths[0], "user.note", b"kept")


def shape(top, with_time=True):
    """All that a copy must keep: bytes, kind, mode, owner, time, links among the files."""
    found, first_name = {}, {}
    for folder, directories, files in os.walk(top):
        directories.sort()
        for name in sorted(directories + files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            relative = os.path.relpath(path, top)
            content = None
            if stat.S_ISREG(status.st_mode):
                content = read_all(path)
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            same_as = first_name.setdefault((status.st_dev, status.st_ino), relative)
            time_ns = status.st_mtime_ns if with_time and stat.S_ISREG(status.st_mode) else None
            found[relative] = (status.st_mode, status.st_uid, status.st_gid, time_ns, hash(content), same_as)
    return found


class Tools(TortureTest):
    def test_git_clones_commits_collects_and_checks(self):
        self.need("git")
        source = self.outside("source")
        os.mkdir(source)
        git = [*GIT, "-C", source]
        run(*git, "init", "-q")
        rng = random.Random(3)
        for turn in range(6 * LONGER):
            for i in range(40):
                write_all(f"{source}/{rng.randrange(120)}.txt",
                          b"%d\n" % rng.randrange(10**6) * rng.randrange(2000))
            write_all(f"{source}/noise", rng.randbytes(300_000))
            run(*git, "add", "-A")
            run(*git, "commit", "-qm", str(turn))
            run(*git, "tag", f"t{turn}")
        clone = self.at("clone")
        run(*GIT, "clone", "-q", "--no-local", source, clone)
        git = [*GIT, "-C", clone]
        for turn in range(3 * LONGER):
            run(*git, "checkout", "-q", "-b", f"b{turn}", f"t{turn}")
            write_all(f"{clone}/more{turn}", rng.randbytes(50_000))
            run(*git, "add", "-A")
            run(*git, "commit", "-qm", f"more {turn}")
            run(*git, "repack", "-q", "-a", "-d" if turn % 2 else "-A")
        run(*git, "checkout", "-q", "main")
        run(*git, "worktree", "add", "-q", self.at("tree"), "b1")
        run(*git, "gc", "-q", "--aggressive", "--prune=now")
        run(*git, "fsck", "--strict", "--full")
        self.assertEqual(run(*git, "status", "--porcelain"), "")
        self.assertEqual(run(*git, "rev-parse", "HEAD"), run(*GIT, "-C", source, "rev-parse", "HEAD"))
        self.assertEqual(read_all(f"{clone}/noise"), read_all(f"{source}/noise"))
        run(*GIT, "clone", "-q", clone, self.at("linked"))  # with hard links to the packs
        run(*GIT, "-C", self.at("linked"), "fsck", "--strict", "--full")

    def test_cp_tar_and_rsync_keep_everything(self):
        self.need("rsync")
        source = self.outside("tree")
        os.mkdir(source)
        make_tree(source, 7, 300 * LONGER)
        wanted = shape(source)
        run("cp", "-a", source, self.at("cp"))
        self.assertEqual(shape(self.at("cp")), wanted)
        run("cp", "-a", self.at("cp"), self.at("again"))  # from MDFS to MDFS
        self.assertEqual(shape(self.at("again")), wanted)
        run("tar", "--xattrs", "-C", source, "-cf", self.at("tar"), ".")
        os.mkdir(self.at("untar"))
        run("tar", "--xattrs", "-C", self.at("untar"), "-xpf", self.at("tar"))
        self.assertEqual(shape(self.at("untar")), wanted)
        run("tar", "-C", self.at("untar"), "--compare", "-f", self.at("tar"))
        run("rsync", "-aHX", f"{source}/", self.at("rsync"))
        self.assertEqual(shape(self.at("rsync")), wanted)
        self.assertEqual(run("rsync", "-aHXi", f"{source}/", self.at("rsync")), "", "the second run has work to do")
        self.assertEqual(run("rsync", "-aHXic", f"{source}/", self.at("rsync")), "", "the bytes differ")
        write_all(f"{source}/sparse", b"changed")
        os.unlink(f"{source}/fifo")
        run("rsync", "-aHX", "--delete", "--inplace", f"{source}/", self.at("rsync"))
        self.assertEqual(shape(self.at("rsync")), shape(source))
        run("rsync", "-aHX", self.at("cp") + "/", self.outside("back"))
        self.assertEqual(shape(self.outside("back")), wanted)
        for name in ("cp", "again"):
            run("rm", "-r", self.at(name))
            self.assertFalse(os.path.exists(self.at(name)))

    def test_a_database_keeps_its_sums_under_many_writers(self):
        for mode in ("wal", "delete", "truncate"):
            with self.subTest(journal=mode):
                self.load_database(self.at(mode), mode, 2 * LONGER)

    def load_database(self, path, mode, seconds):
        """Money moves between accounts; the sum stays."""
        setup = sqlite3.connect(path)
        setup.execute(f"pragma journal_mode={mode}")
        setup.execute("create table account(id integer primary key, amount integer, note blob)")
        setup.executemany("insert into account values(?, 1000, ?)", ((i, os.urandom(200)) for i in range(500)))
        setup.commit()
        end, failures, moves = time.time() + seconds, [], [0] * 4

        def writer(number):
            rng = random.Random(number)
            try:
                connection = sqlite3.connect(path, timeout=60, isolation_level=None)
                while time.time() < end:
                    one, two, sum_of = rng.randrange(500), rng.randrange(500), rng.randrange(100)
                    connection.execute("begin immediate")
                    connection.execute("update account set amount = amount - ? where id = ?", (sum_of, one))
                    connection.execute("update account set amount = amount + ?, note = ? where id = ?",
                                       (sum_of, rng.randbytes(rng.randrange(3000)), two))
                    connection.execute("rollback" if rng.random() < 0.1 else "commit")
                    moves[number] += 1
                connection.close()
            except sqlite3.Error as error:
                failures.append(str(error))

        threads = [threading.Thread(target=writer, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            total = setup.execute("select sum(amount) from account").fetchone()[0]
            self.assertEqual(total, 500_000, "a reader sees half a transaction")
            time.sleep(0.05)
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertGreater(min(moves), 0, moves)
        self.assertEqual(setup.execute("pragma integrity_check").fetchone()[0], "ok")
        setup.execute("vacuum")
        self.assertEqual(setup.execute("pragma integrity_check").fetchone()[0], "ok")
        setup.close()

    def test_a_database_survives_its_daemon(self):
        """What was committed is there after kill -9; what was not is gone, and nothing is half."""
        path = self.at("db")
        setup = sqlite3.connect(path)
        setup.execute("pragma journal_mode=wal")
        setup.execute("create table t(i integer primary key, data blob)")
        setup.commit()
        setup.close()
        for turn in range(2 * LONGER):
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("pragma synchronous=full")
            last = connection.execute("select coalesce(max(i), 0) from t").fetchone()[0]
            killer = threading.Timer(0.5 + 0.3 * turn, lambda: os.kill(self.volume.daemon(), 9))
            killer.start()
            try:
                while True:
                    connection.execute("insert into t values(?, ?)", (last + 1, os.urandom(2000)))
                    last += 1
            except sqlite3.Error:
                pass
            killer.join()
            connection.close()
            end = time.time() + 10
            while not is_dead(self.volume.path):
                self.assertLess(time.time(), end)
                time.sleep(0.01)
            self.volume.mount()
            connection = sqlite3.connect(path)
            self.assertEqual(connection.execute("pragma integrity_check").fetchone()[0], "ok")
            count, highest = connection.execute("select count(*), max(i) from t").fetchone()
            self.assertEqual(count, highest)
            self.assertGreaterEqual(highest, last, "a committed row is gone")
            self.assertGreater(last, 0)
            connection.close()

    def test_the_check_sees_a_damaged_volume(self):
        """What stands behind every test here: bytes changed on a disk are found."""
        write_all(self.at("file"), os.urandom(5_000_000))
        self.volume.unmount()
        copies = []
        for disk in self.volume.disks:
            data = bytearray(read_all(disk))
            for at in range(1 << 20, len(data) - (1 << 20), 4096):
                if any(data[at:at + 64]):
                    data[at] ^= 0xFF
            os.mkdir(disk + ".copy")
            copies.append(os.path.join(disk + ".copy", "disk"))
            write_all(copies[-1], data)
        self.assertIn("mdfsck: exit", check(copies))
        self.volume.mount()


if __name__ == "__main__":
    main()
