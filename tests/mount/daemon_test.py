"""Mounting, unmounting, the end of the daemon in all its ways, and what it costs in memory."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import json
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from harness import MDFS, Mounted, bind, fill_filesystem, is_dead, make_image, read_all, run, status_of
from harness import wait_until, write_all


MDFSCK = os.environ.get("MDFSCK", "mdfsck")


def fails(*words):
    """The one line that a command says when it refuses."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0, words
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def rss_kib(process, field="VmHWM"):
    for line in read_all(f"/proc/{process}/status").decode().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise AssertionError(field)


class Daemon(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted()

    def tearDown(self):
        self.volume.remove()

    def test_umount_returns_when_the_disks_hold_everything(self):
        data = os.urandom(20_000_000)
        write_all(self.volume / "file", data)
        daemon = self.volume.daemon()
        self.volume.unmount()
        wait_until(lambda: not os.path.exists(f"/proc/{daemon}"), seconds=2)
        copies = []
        for disk in self.volume.disks:
            copies.append(disk + ".copy")
            shutil.copyfile(disk, copies[-1])
        for disk in self.volume.disks:
            os.rename(disk + ".copy", disk)
        self.volume.mount(disks=[self.volume.folder])
        self.assertEqual(read_all(self.volume / "file"), data)
        self.volume.unmount()

    def test_sync_puts_everything_on_the_disks(self):
        data = os.urandom(3_000_000)
        write_all(self.volume / "file", data)
        run(MDFS, "volume", "sync", self.volume.path)
        os.kill(self.volume.daemon(), signal.SIGKILL)
        wait_until(lambda: is_dead(self.volume.path))
        self.volume.mount()
        self.assertEqual(read_all(self.volume / "file"), data)
        self.volume.unmount()

    def test_nothing_waits_for_the_disks_longer_than_commit_says(self):
        self.volume.unmount()
        self.volume.mount("cache=64M,commit=1")
        make_image(self.volume / "scan", (100, 100))
        data = os.urandom(300_000)
        time.sleep(0.7)  # no whole number of intervals
        with open(self.volume / "file", "wb") as file, open(self.volume / "scan", "r+b") as scan:
            file.write(data)
            file.flush()
            scan.write(b"s" * 5000)
            scan.flush()
            time.sleep(2)
            os.kill(self.volume.daemon(), signal.SIGKILL)
        wait_until(lambda: is_dead(self.volume.path))
        self.volume.mount()
        self.assertEqual(read_all(self.volume / "file"), data)
        self.assertEqual(read_all(self.volume / "scan"), b"s" * 5000 + bytes(5000))
        self.volume.unmount()

    def test_what_was_fsynced_survives_a_killed_daemon(self):
        for turn in range(3):
            data = os.urandom(1_000_000)
            os.makedirs(self.volume / "d", exist_ok=True)
            with open(self.volume / f"d/file{turn}", "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            make_image(self.volume / f"scan{turn}", (100, 100))
            with open(self.volume / f"scan{turn}@/win/y10+20.raw", "wb") as file:
                file.write(b"w" * 2000)
                file.flush()
                os.fsync(file.fileno())
            os.kill(self.volume.daemon(), signal.SIGKILL)
            wait_until(lambda: is_dead(self.volume.path))
            self.assertIn("died", subprocess.run([MDFS, "mount", self.volume.disks[1], self.volume.path],
                                                 capture_output=True, text=True, check=True).stderr)
            self.assertEqual(read_all(self.volume / f"d/file{turn}"), data)
            self.assertEqual(read_all(self.volume / f"scan{turn}@/win/y10+20.raw"), b"w" * 2000)
        self.volume.unmount()

    def test_what_was_written_with_o_sync_survives_a_killed_daemon(self):
        """The kernel asks for a sync after writes through its page cache only."""
        make_image(self.volume / "scan", (100, 100))
        run(MDFS, "volume", "sync", self.volume.path)
        ways = [os.O_DSYNC, os.O_SYNC, os.O_DSYNC | os.O_DIRECT, os.O_SYNC | os.O_DIRECT]
        page = mmap.mmap(-1, 8192)
        for turn, flags in enumerate(ways):
            page[:] = bytes([65 + turn]) * 8192
            row = bytes([97 + turn]) * 100
            fd = os.open(self.volume / "file", os.O_RDWR | os.O_CREAT | flags)
            os.pwrite(fd, page, 8192 * turn)
            scan = os.open(self.volume / "scan", os.O_RDWR | flags & ~os.O_DIRECT)
            os.pwrite(scan, row, 200 * turn)
            bind(scan, (2 * turn + 1, 0), (1, 100))
            os.pwrite(scan, row, 0)
            path = os.open(self.volume / f"scan@/win/y{50 + turn}+1.raw", os.O_WRONLY | flags & ~os.O_DIRECT)
            os.write(path, row)
            os.close(path)
            os.kill(self.volume.daemon(), signal.SIGKILL)
            wait_until(lambda: is_dead(self.volume.path))
            os.close(fd)
            os.close(scan)
            subprocess.run([MDFS, "mount", self.volume.disks[1], self.volume.path], capture_output=True, check=True)
            self.assertEqual(read_all(self.volume / "file")[8192 * turn:], bytes(page), flags)
            self.assertEqual(read_all(self.volume / "scan")[200 * turn:200 * (turn + 1)], row + row, flags)
            self.assertEqual(read_all(self.volume / f"scan@/win/y{50 + turn}+1.raw"), row, flags)
        self.volume.unmount()

    def test_a_mount_waits_for_the_locks_of_a_daemon_that_died(self):
        """The kernel keeps them until it has taken the daemon's requests down; here another program keeps one."""
        write_all(self.volume / "file", b"kept")
        self.volume.unmount()
        with open(self.volume.disks[2], "r+b") as held:
            fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqhh", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0, 0))
            release = threading.Timer(1, held.close)
            release.start()
            start = time.monotonic()
            self.volume.mount()
            release.join()
            self.assertGreater(time.monotonic() - start, 0.5, "the lock was of no effect")
        self.assertEqual(read_all(self.volume / "file"), b"kept")
        self.volume.unmount()

    def test_a_check_waits_for_the_locks_of_a_daemon_that_died(self):
        self.volume.unmount()
        with open(self.volume.disks[2], "r+b") as held:
            fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqhh", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0, 0))
            self.assertIn("in use", fails(MDFSCK, self.volume.disks[0]))
            release = threading.Timer(0.3, held.close)
            release.start()
            run(MDFSCK, self.volume.disks[0])
            release.join()

    def test_signals_end_the_daemon_cleanly(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            data = os.urandom(500_000)
            write_all(self.volume / "file", data)
            daemon = self.volume.daemon()
            os.kill(daemon, number)
            wait_until(lambda: not os.path.exists(f"/proc/{daemon}"))
            self.assertFalse(os.path.ismount(self.volume.path))
            self.volume.mount()
            self.assertEqual(read_all(self.volume / "file"), data)
        held = open(self.volume / "file", "rb")
        daemon = self.volume.daemon()
        os.kill(daemon, signal.SIGTERM)
        wait_until(lambda: not os.path.exists(f"/proc/{daemon}"))
        self.assertFalse(os.path.ismount(self.volume.path), "an open file does not keep it")
        held.close()
        self.volume.mount()
        self.volume.unmount()

    def test_plain_umount_commits_too(self):
        data = os.urandom(5_000_000)
        write_all(self.volume / "file", data)
        daemon = self.volume.daemon()
        run("umount", self.volume.path)
        wait_until(lambda: not os.path.exists(f"/proc/{daemon}"))
        self.volume.mount()
        self.assertEqual(read_all(self.volume / "file"), data)
        self.volume.unmount()

    def test_a_mount_right_after_umount_waits_for_what_is_still_written(self):
        """umount(8) does not wait for the daemon."""
        for turn in range(3):
            data = os.urandom(20_000_000)
            write_all(self.volume / f"file{turn}", data)
            subprocess.run(["umount", self.volume.path], check=True)
            run(MDFS, "mount", self.volume.disks[0], self.volume.path)
            self.assertEqual(read_all(self.volume / f"file{turn}"), data)
        self.volume.unmount()

    def test_open_files_keep_it_mounted(self):
        with open(self.volume / "file", "wb"):
            self.assertIn("open there", fails(MDFS, "umount", self.volume.path))
        self.volume.unmount()

    def test_umount_of_one_of_two_places_says_where_the_volume_stays_mounted(self):
        write_all(self.volume / "file", b"data")
        other = os.path.join(self.volume.folder, "other")
        os.mkdir(other)
        subprocess.run(["mount", "--bind", self.volume.path, other], check=True)
        self.assertIn(f"stays mounted at {other}", fails(MDFS, "umount", self.volume.path))
        self.assertFalse(os.path.ismount(self.volume.path))
        self.assertEqual(read_all(os.path.join(other, "file")), b"data")
        run(MDFS, "umount", other)
        self.volume.mount()
        self.assertEqual(read_all(self.volume / "file"), b"data")
        self.volume.unmount()

    def test_umount_names_the_namespace_in_which_the_volume_stays_mounted(self):
        write_all(self.volume / "file", b"data")
        ready = os.path.join(self.volume.folder, "ready")
        container = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                                      'touch "$0"; read line; cat "$1"', ready, self.volume / "file"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_until(lambda: os.path.exists(ready))
        with subprocess.Popen([MDFS, "umount", self.volume.path], stderr=subprocess.PIPE, text=True) as umount:
            told = umount.stderr.readline()
            self.assertRegex(told, f"stays mounted at {self.volume.path} in the mount namespace of process [0-9]+ ")
            self.assertFalse(os.path.ismount(self.volume.path))
            self.assertIsNone(umount.poll())
            self.assertEqual(container.communicate(b"now\n")[0], b"data")
        self.assertEqual(umount.returncode, 0)
        self.volume.mount()
        self.assertEqual(read_all(self.volume / "file"), b"data")
        self.volume.unmount()

    def test_a_standby_mounts_the_volume_when_its_daemon_has_died(self):
        self.assertIn("not together with ro", fails(MDFS, "mount", "-o", "standby,ro", *self.volume.disks, "/mnt"))
        with open(self.volume / "file", "wb", buffering=0) as file:
            file.write(b"synced")
            os.fsync(file.fileno())
        other = os.path.join(self.volume.folder, "other")
        os.mkdir(other)
        with subprocess.Popen([MDFS, "mount", "-o", "standby", *self.volume.disks, other], stderr=subprocess.PIPE,
                              text=True) as standby:
            self.assertIn("standing by: ", standby.stderr.readline())
            self.assertIsNone(standby.poll())
            os.kill(self.volume.daemon(), signal.SIGKILL)
            said = standby.communicate(timeout=60)[1]
        self.assertEqual(standby.returncode, 0, said)
        self.assertEqual(read_all(os.path.join(other, "file")), b"synced")
        run(MDFS, "umount", other)
        self.volume.unmount()

    def test_umount_waits_a_moment_for_programs_that_are_ending(self):
        held = open(self.volume / "file", "wb")
        closing = threading.Timer(0.3, held.close)
        closing.start()
        self.volume.unmount()
        self.assertTrue(held.closed, "unmounted while a file was open")
        closing.join()

    def test_refusals_are_one_line_and_change_nothing(self):
        path, disk = self.volume.path, self.volume.disks[0]
        elsewhere = os.path.join(self.volume.folder, "elsewhere")
        os.mkdir(elsewhere)
        self.assertIn("in use", fails(MDFS, "mount", disk, elsewhere))
        self.volume.unmount()
        for words in (("-o", "bogus", disk, path), ("-o", "cache=1", disk, path), (disk, disk, path),
                      (disk, path + "/nowhere"), ("/dev/null", path), ("/nowhere", path), (path, path), (disk, disk)):
            fails(MDFS, "mount", *words)
            self.assertFalse(os.path.ismount(path), words)
        shutil.copyfile(disk, disk + ".copy")
        self.assertIn("copies of one disk", fails(MDFS, "mount", self.volume.folder, path))
        self.volume.mount(disks=[disk])
        fails(MDFS, "umount", elsewhere)
        fails(MDFS, "volume", "sync", "/proc")
        self.volume.unmount()
        fails(MDFS, "umount", path)

    def test_a_read_only_mount_writes_nothing(self):
        write_all(self.volume / "file", b"x")
        self.volume.unmount()
        before = [read_all(disk) for disk in self.volume.disks]
        self.volume.mount("ro")
        self.assertEqual(read_all(self.volume / "file"), b"x")
        for call in (lambda: write_all(self.volume / "file", b"y"), lambda: os.mkdir(self.volume / "d")):
            with self.assertRaises(OSError) as caught:
                call()
            self.assertEqual(caught.exception.errno, errno.EROFS)
        self.volume.unmount()
        self.assertEqual([read_all(disk) for disk in self.volume.disks], before)

    def test_a_stale_disk_is_reported_when_mounting(self):
        stale = self.volume.disks[2]
        self.volume.unmount()
        old = os.path.join(self.volume.folder, "old")
        os.mkdir(old)
        shutil.copy(stale, old)
        self.volume.mount()
        write_all(self.volume / "file", b"newer")
        self.volume.unmount()
        os.replace(os.path.join(old, "disk2"), stale)
        for options in ("cache=64M", "ro"):
            said = subprocess.run([MDFS, "mount", "-o", options, self.volume.disks[0], self.volume.path],
                                  capture_output=True, text=True, check=True).stderr
            self.assertEqual(said, f"mdfs: disk 2 ({stale}) is stale: the volume was written without it; "
                                   "it counts as missing and is only read\n")
            self.volume.unmount()

    def test_a_mount_at_once_after_the_daemon_was_killed_replaces_the_dead_one(self):
        for _ in range(5):
            write_all(self.volume / "file", b"kept")
            run(MDFS, "volume", "sync", self.volume.path)
            os.stat(self.volume.path)  # the kernel goes on answering this for a while
            os.kill(self.volume.daemon(), signal.SIGKILL)
            self.volume.mount()
            with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
                self.assertEqual([line.split()[4] for line in mounts].count(self.volume.path), 1)
            self.assertEqual(os.listdir(self.volume.path), ["file"])
        self.volume.unmount()

    def test_a_dead_mount_says_what_to_do(self):
        os.kill(self.volume.daemon(), signal.SIGKILL)
        wait_until(lambda: is_dead(self.volume.path))
        for command in (("volume", "status"), ("volume", "sync"), ("image", "info")):
            self.assertIn("daemon of this mount has died", fails(MDFS, *command, self.volume.path))

    def test_a_missing_disk_is_reported(self):
        write_all(self.volume / "file", b"x")
        self.volume.unmount()
        os.rename(self.volume.disks[3], self.volume.disks[3] + ".away")
        os.mkdir(self.volume.folder + "/away")
        os.rename(self.volume.disks[3] + ".away", self.volume.folder + "/away/disk")
        said = subprocess.run([MDFS, "mount", self.volume.disks[0], self.volume.path], capture_output=True, text=True,
                              check=True).stderr
        self.assertIn("was not found", said)
        self.assertIn("file", os.listdir(self.volume.path))
        self.volume.unmount()

    def test_status_names_what_is_wrong_and_what_to_do(self):
        self.volume.unmount()
        os.unlink(self.volume.disks[2])
        self.volume.mount("cache=64M")
        status = json.loads(status_of(self.volume.path, "--json", unhealthy=True))
        self.assertEqual([disk["state"] for disk in status["disks"]], ["healthy", "healthy", "missing", "healthy"])
        self.assertEqual(len(status["errors"]), 1)
        self.assertRegex(status["errors"][0], "^disk 2.* is missing.*mount again")
        self.assertRegex(status_of(self.volume.path, unhealthy=True), r"(?m)^  error: disk 2")
        metrics = run(MDFS, "volume", "metrics", self.volume.path)
        self.assertRegex(metrics, r'(?m)^mdfs_disk_healthy{[^}]*disk="2"[^}]*} 0$')
        self.assertRegex(metrics, r"(?m)^mdfs_volume_errors{[^}]*} 1$")
        write_all(self.volume / "written", b"without the disk")
        self.volume.unmount()
        os.unlink(self.volume.disks[3])
        self.volume.mount("cache=64M")
        status = json.loads(status_of(self.volume.path, "--json", unhealthy=True))
        self.assertTrue(status["read_only"])
        self.assertRegex(status["errors"][0], "2 of 4 disks.*majority.*degraded")
        self.assertEqual(read_all(self.volume / "written"), b"without the disk")
        self.volume.unmount()

    def small_disks(self, options, behind_loops=False):
        """A mounted volume whose disks have promised more room than there is below them, and a file that takes it. A
        loop device does not tell the daemon that there is less."""
        folder = tempfile.mkdtemp(prefix="mdfs-test-")
        self.addCleanup(os.rmdir, folder)
        run("mount", "-t", "tmpfs", "-o", "size=24M", "tmpfs", folder)
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        disks = [os.path.join(folder, f"disk{i}") for i in range(2)]
        run(harness.MKMDFS, "--size", "64M", "--sparse", *disks)
        if behind_loops:
            disks = [run("losetup", "--find", "--show", disk).strip() for disk in disks]
            for disk in disks:
                self.addCleanup(run, "losetup", "--detach", disk)
        path = os.path.join(folder, "mnt")
        os.mkdir(path)
        run(MDFS, "mount", "-o", options, *disks, path)
        self.addCleanup(subprocess.run, ["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)
        return disks, path, os.path.join(folder, "weight")

    def test_a_volume_that_turned_read_only_is_unmounted_and_the_loss_is_told(self):
        disks, path, weight = self.small_disks("cache=64M,commit=60", behind_loops=True)
        write_all(path + "/before", b"b" * 5000)
        run(MDFS, "volume", "sync", path)
        fill_filesystem(weight)
        for i in range(2000):
            try:
                os.mkdir(f"{path}/d{i}")  # nodes of the tree, beyond those that the disks have room for
            except OSError:
                break
        fails(MDFS, "volume", "sync", path)
        self.assertRegex(status_of(path, unhealthy=True), "error: read-only: .*unsynced data are lost")
        done = subprocess.run([MDFS, "umount", path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "unsynced data are lost: the commit of generation")
        self.assertFalse(os.path.ismount(path))
        os.unlink(weight)
        run(MDFS, "mount", *disks, path)
        self.assertEqual(read_all(path + "/before"), b"b" * 5000)
        run(MDFS, "umount", path)
        run(MDFSCK, "-n", "--data", *disks)

    def test_files_that_cannot_be_written_for_a_while_are_kept(self):
        """More of them than stay open without a user; the writer hears nothing, and nothing is lost."""
        disks, path, weight = self.small_disks("cache=64M,commit=60")
        names = [f"{path}/f{i}" for i in range(1500)]
        for name in names[:200]:
            write_all(name, name.encode() * 50)
        fill_filesystem(weight)
        for name in names[200:]:
            write_all(name, name.encode() * 50)
        os.unlink(weight)
        subprocess.run([MDFS, "volume", "sync", path], stderr=subprocess.DEVNULL, check=False)  # tells what went wrong
        run(MDFS, "volume", "sync", path)
        run(MDFS, "umount", path)
        run(MDFSCK, "-n", "--data", *disks)
        run(MDFS, "mount", *disks, path)
        self.assertEqual([name for name in names if read_all(name) != name.encode() * 50], [])
        run(MDFS, "umount", path)

    def test_the_foreground_stays(self):
        self.volume.unmount()
        process = subprocess.Popen([MDFS, "mount", "-o", "foreground", self.volume.disks[0], self.volume.path])
        wait_until(lambda: os.path.ismount(self.volume.path))
        write_all(self.volume / "file", b"x")
        self.assertIsNone(process.poll())
        self.volume.unmount()
        self.assertEqual(process.wait(10), 0)

    def test_a_limit_on_file_sizes_ends_no_program(self):
        """By default the first write beyond it ends the writer by a signal. The daemon raises the limit if it may."""
        self.volume.unmount()
        size = os.path.getsize(self.volume.disks[0])

        def limited(*words, hard=resource.RLIM_INFINITY):
            limit = (size // 2, hard)
            return subprocess.run(words, capture_output=True, text=True, check=False,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))

        done = limited(MDFS, "mount", self.volume.disks[0], self.volume.path, hard=size // 2)
        if done.returncode == 0:  # with CAP_SYS_RESOURCE
            self.volume.unmount()
        else:
            self.assertIn("limit on file sizes", done.stderr)
        self.assertEqual(limited(MDFS, "mount", self.volume.disks[0], self.volume.path).returncode, 0)
        data = os.urandom(1 << 20)
        write_all(self.volume / "file", data)
        run(MDFS, "volume", "sync", self.volume.path)  # writes the labels at the ends of the disks
        self.volume.unmount()
        for done in (limited(harness.MKMDFS, "--force", *self.volume.disks), limited(MDFSCK, "-p", *self.volume.disks)):
            self.assertGreater(done.returncode, 0, done)
            self.assertIn("limit on file sizes", done.stderr)
        new = os.path.join(self.volume.folder, "new")
        self.assertIn("exceed the largest file", limited(harness.MKMDFS, "--size", str(size), new).stderr)
        self.assertFalse(os.path.exists(new))
        self.volume.mount()
        self.assertEqual(read_all(self.volume / "file"), data)

    def test_a_copy_of_a_mounted_volume_is_refused(self):
        copies = []
        os.mkdir(self.volume.folder + "/copy")
        os.mkdir(self.volume.folder + "/copy/mnt")
        for disk in self.volume.disks:
            copies.append(os.path.join(self.volume.folder, "copy", os.path.basename(disk)))
            shutil.copyfile(disk, copies[-1])
        self.assertIn("mounted already", fails(MDFS, "mount", copies[0], self.volume.folder + "/copy/mnt"))
        self.volume.unmount()

    def test_a_mount_beside_a_daemon_that_is_stopped_is_refused(self):
        os.mkdir(self.volume.folder + "/other")
        daemon = self.volume.daemon()
        os.kill(daemon, signal.SIGSTOP)
        try:
            said = fails(MDFS, "mount", *self.volume.disks, self.volume.folder + "/other")
        finally:
            os.kill(daemon, signal.SIGCONT)
        self.assertIn("is mounted already, and its daemon does not answer", said)
        self.volume.unmount()

    def test_the_kernel_reads_a_megabyte_ahead(self):
        device = os.stat(self.volume.path).st_dev
        limit = f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"
        with open(limit, encoding="ascii") as file:
            self.assertEqual(file.read(), "1024\n")

    def test_a_user_mounts_without_privileges(self):
        """Where fusermount3 is set-uid root, as Debian installs it."""
        fusermount = shutil.which("fusermount3")
        if not fusermount or not os.stat(fusermount).st_mode & 0o4000:
            self.skipTest("fusermount3 is not set-uid")
        os.chown(self.volume.path, 65534, 65534)  # the volume's root directory
        self.volume.unmount()
        for path in (self.volume.folder, self.volume.path, *self.volume.disks):
            os.chown(path, 65534, 65534)
        user = {"user": 65534, "group": 65534, "extra_groups": [], "env": {"PATH": os.environ["PATH"]}}
        run(MDFS, "mount", self.volume.disks[0], self.volume.path, **user)
        run("sh", "-c", f"echo theirs > {self.volume.path}/file", **user)
        self.assertEqual(run("cat", self.volume / "file", **user), "theirs\n")
        run(MDFS, "umount", self.volume.path, **user)
        wait_until(lambda: subprocess.run([MDFS, "mount", self.volume.disks[0], self.volume.path],
                                               capture_output=True, check=False).returncode == 0)
        self.assertEqual(read_all(self.volume / "file"), b"theirs\n")
        self.assertEqual(os.stat(self.volume / "file").st_uid, 65534)
        self.volume.unmount()

    def test_the_daemon_carries_no_library_for_pictures(self):
        libraries = read_all(f"/proc/{self.volume.daemon()}/maps")
        self.assertIn(b"libfuse3", libraries)
        self.assertNotIn(b"OpenImageIO", libraries, "it takes 120 MiB and 0.2 s of every start")

    @unittest.skipIf(os.environ.get("MDFS_SANITIZED"), "ThreadSanitizer's own thread keeps what it began with")
    def test_no_thread_of_the_daemon_has_a_capability(self):
        daemon = self.volume.daemon()
        for thread in os.listdir(f"/proc/{daemon}/task"):
            status = read_all(f"/proc/{daemon}/task/{thread}/status")
            self.assertIn(b"CapPrm:\t0000000000000000", status)
            self.assertIn(b"NoNewPrivs:\t1", status)


@unittest.skipIf(os.environ.get("MDFS_SANITIZED"), "a sanitizer's memory is not ours")
class Memory(unittest.TestCase):
    def test_sixty_four_clients_stay_within_the_cache_and_64_mib_beside_their_requests(self):
        volume = Mounted(size="512M", options="cache=64M")
        try:
            make_image(volume / "scan", (4096, 4096), channels=3)
            stop = time.time() + 8
            failures = []

            def client(number):
                rng = random.Random(number)
                fd = os.open(volume / "scan", os.O_RDWR)
                try:
                    while time.time() < stop:
                        height, width = rng.choice([(64, 64), (512, 512), (1024, 1024)])
                        start = (rng.randrange(4096 - height), rng.randrange(4096 - width))
                        if number % 4 == 0:
                            size = bind(fd, start, (height, width))
                            os.pwrite(fd, bytes([number]) * size, 0)
                        elif number % 4 == 1:
                            write_all(volume / f"file{number}", rng.randbytes(rng.randrange(2_000_000)))
                        elif number % 4 == 2:
                            read_all(volume / f"scan@/win/y{start[0]}+{height},x{start[1]}+{width}.npy")
                        else:
                            size = bind(fd, start, (height, width))
                            if len(os.pread(fd, size, 0)) != size:
                                failures.append("short")
                except OSError as error:
                    failures.append(error)
                finally:
                    os.close(fd)

            threads = [threading.Thread(target=client, args=(number,)) for number in range(64)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            peak = rss_kib(volume.daemon()) / 1024
            print(f"peak resident memory {peak:.0f} MiB", flush=True)
            self.assertLessEqual(peak, 64 + 64 + 80)  # 40 requests at a time, with payload and answer
            volume.unmount()
        finally:
            volume.remove()


if __name__ == "__main__":
    harness.main(with_users=True)
