"""Disks that are truncated, deleted or moved while mounted: commits leave them out, and status says why."""
# SPDX-License-Identifier: Apache-2.0
import errno
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import MDFS, MDFSCK, Mounted, is_dead, main, read_all, run, status_of, wait_until

MIB = 1 << 20


def put(path, data):
    """True if fsync has acknowledged it."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.write(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EROFS):
            raise
        return False
    return True


class DiskCondition(unittest.TestCase):
    def setUp(self):
        self.acknowledged = {}

    def start(self, **options):
        self.volume = Mounted(3, "48M", "cache=64M,commit=600", **options)
        self.addCleanup(self.volume.remove)
        for number in range(3):
            self.assertTrue(self.put(f"before{number}"))
        return self.volume.disks[2]

    def put(self, name, size=1_500_000):
        data = os.urandom(size)
        done = put(self.volume / name, data)
        if done:
            self.acknowledged[name] = data
        return done

    def unmount(self):
        return subprocess.run([MDFS, "umount", self.volume.path], text=True, capture_output=True, check=False)

    def state(self):
        listed = json.loads(run(MDFS, "disk", "list", "--json", self.volume.path))
        return listed["disks"][2]["state"]

    def continues(self):
        """The disk is out, and what is acknowledged from now on lies on the others."""
        for number in range(3):
            self.assertTrue(self.put(f"after{number}", 10 ** (3 + number)))
        run(MDFS, "volume", "sync", self.volume.path)
        status = json.loads(status_of(self.volume.path, "--json", unhealthy=True))
        self.assertFalse(status["read_only"])
        self.assertGreater(status["disks"][2]["out_generation"], 0)
        self.assertLess(abs(status["disks"][2]["out_since_s"] - time.time()), 600)
        self.assertIsNone(status["disks"][1]["out_generation"])
        self.assertTrue(any(line.startswith("disk 2 (") and " is out: " in line for line in status["errors"]))
        self.assertIn('mdfs_disk_out{', run(MDFS, "volume", "metrics", self.volume.path))

    def those_after(self):
        for name, data in self.acknowledged.items():
            if name.startswith("after"):
                self.assertEqual(read_all(self.volume / name), data, name)

    def whole(self):
        for name, data in self.acknowledged.items():
            self.assertEqual(read_all(self.volume / name), data, name)

    def test_a_truncated_disk_fails_before_it_is_examined(self):
        disk = self.start()
        os.truncate(disk, 6 * MIB)
        self.assertTrue(self.put("after", 1000))
        self.assertEqual(os.path.getsize(disk), 6 * MIB, "a write has made it long again")
        status = status_of(self.volume.path, unhealthy=True)
        self.assertRegex(status, "error: disk 2 .*is out: it failed.*mdfs disk replace")
        self.assertRegex(status, "error: disk 2 .*has failed: it was truncated while in use: 6 MiB are left of 48 MiB")
        self.assertEqual(self.state(), "failed")
        self.continues()
        done = self.unmount()
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "mdfs: input/output error: .*6 MiB are left")
        self.assertEqual(done.stderr.count("input/output error"), 1, done.stderr)
        self.volume.mount()
        self.those_after()
        self.assertTrue(self.put("after the mount"))

    def test_a_disk_that_is_out_is_replaced_and_the_volume_is_healthy(self):
        disk = self.start()
        os.unlink(disk)
        self.assertTrue(self.put("after"))
        new = self.new_disk(0)
        run(MDFS, "disk", "replace", self.volume.path, "2", new)
        self.assertFalse(json.loads(status_of(self.volume.path, "--json"))["errors"])
        self.whole()
        self.assertEqual(self.unmount().returncode, 0)
        self.volume.mount(disks=[*self.volume.disks[:2], new])
        self.whole()
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", *self.volume.disks[:2], new)

    def test_a_killed_daemon_leaves_the_disk_out_and_nothing_is_lost(self):
        disk = self.start()
        for number in range(4):
            if number == 2:
                os.truncate(disk, 6 * MIB)
            self.assertTrue(self.put(f"after{number}"))
        os.kill(self.volume.daemon(), signal.SIGKILL)
        wait_until(lambda: is_dead(self.volume.path))
        for attached in (True, False):
            if not attached:
                os.rename(disk, disk + ".away")
                self.addCleanup(lambda: os.path.exists(disk + ".away") and os.unlink(disk + ".away"))
            self.volume.mount()
            for number in range(2, 4):
                name = f"after{number}"
                self.assertEqual(read_all(self.volume / name), self.acknowledged[name], name)
            status = json.loads(status_of(self.volume.path, "--json", unhealthy=True))
            self.assertFalse(status["read_only"])
            self.assertTrue(any(" is out: " in line for line in status["errors"]), status["errors"])
            self.assertTrue(self.put(f"after{len(self.acknowledged)}"))
            self.volume.unmount()

    def test_the_checker_names_a_disk_that_is_out_and_its_removal_ends_the_state(self):
        disk = self.start()
        os.unlink(disk)
        self.assertTrue(self.put("after"))
        copy = re.search(r"copy it with: (cp .*)\n", status_of(self.volume.path, unhealthy=True))
        run("bash", "-c", copy.group(1))
        self.unmount()
        self.assertIn("disk-out", run(MDFSCK, "-n", "--data", *self.volume.disks))
        self.volume.mount()
        self.assertEqual(self.state(), "out")
        self.whole()
        run(MDFS, "disk", "remove", self.volume.path, "2")
        self.assertFalse(json.loads(status_of(self.volume.path, "--json"))["errors"])
        self.assertTrue(self.put("later"))
        self.volume.unmount()
        self.assertNotIn("disk-out", run(MDFSCK, "-n", "--data", *self.volume.disks[:2]))
        self.volume.mount(disks=self.volume.disks[:2])
        self.whole()

    def test_unflushed_data_on_the_disk_fail_the_fsync_and_the_next_mount_is_writable(self):
        disk = self.start()
        with open(self.volume / "before0", "r+b") as file:  # takes the place of acknowledged data
            file.write(os.urandom(1_500_000))
        with open(self.volume / "large", "wb") as file:  # more than the cache holds back
            for _ in range(90):
                file.write(os.urandom(MIB))
        os.unlink(disk)
        self.assertFalse(self.put("after", 1000))
        status = json.loads(status_of(self.volume.path, "--json", unhealthy=True))
        self.assertTrue(status["read_only"])
        self.assertGreater(status["disks"][2]["out_generation"], 0)
        self.assertTrue(any("mount again" in line for line in status["errors"]), status["errors"])
        copy = re.search(r"copy it with: (cp .*)\n", status_of(self.volume.path, unhealthy=True))
        run("bash", "-c", copy.group(1))
        self.assertNotEqual(self.unmount().returncode, 0)
        self.volume.mount()
        self.assertEqual(self.state(), "out")
        self.whole()
        self.assertTrue(self.put("later"))

    def test_a_disk_that_is_long_again_has_failed_all_the_same(self):
        disk = self.start()
        os.truncate(disk, 6 * MIB)
        self.assertRegex(status_of(self.volume.path, unhealthy=True), "6 MiB are left of 48 MiB")
        os.truncate(disk, 48 * MIB)
        self.assertRegex(status_of(self.volume.path, unhealthy=True), "6 MiB are left of 48 MiB")
        self.continues()

    def test_the_unmount_of_an_idle_volume_reports_it(self):
        disk = self.start()
        run(MDFS, "volume", "sync", self.volume.path)
        os.truncate(disk, 6 * MIB)
        done = self.unmount()
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "was truncated while in use: 6 MiB are left of 48 MiB")

    def rescue(self, delete, **options):
        disk = self.start(**options)
        delete(disk)
        self.assertTrue(self.put("after", 1000))
        status = status_of(self.volume.path, unhealthy=True)
        self.assertRegex(status, "error: disk 2 .*is out: ")
        self.assertRegex(status, "error: disk 2 .*was deleted while in use.*Before that")
        self.assertEqual(self.state(), "deleted")
        self.continues()
        self.whole()
        command = re.search(r"error: disk 2: copy it with: (cp --sparse=always /proc/\d+/fd/\d+ \S.*)\n", status)
        self.assertTrue(command, status)
        run("bash", "-c", command.group(1))
        self.assertTrue(os.path.exists(disk))
        done = self.unmount()
        self.assertRegex(done.stderr, "was deleted while in use")
        self.volume.mount()
        self.whole()
        self.assertEqual(self.state(), "out")
        self.assertTrue(self.put("later"))
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", *self.volume.disks)

    def test_the_contents_of_a_deleted_disk_can_be_copied_back_whole(self):
        self.rescue(os.unlink)

    def test_a_disk_whose_name_means_something_to_a_shell_is_copied_back_to_that_name(self):
        self.rescue(os.unlink, below="it's $(touch bad) `x`\n; a \"disk\"" + "/long" * 20)
        self.assertFalse(os.path.exists("bad"))

    def test_a_disk_replaced_by_another_file_is_rescued_in_the_same_way(self):
        def replace(disk):
            shutil.copyfile(disk, disk + ".new")
            os.replace(disk + ".new", disk)
        self.rescue(replace)

    def test_no_operation_claims_what_no_commit_has_made_durable(self):
        """A disk is deleted while an operation runs: obeying the claim that another disk has left would lose data."""
        for number, (words, claim) in enumerate(((["disk", "remove"], "was removed"),
                                                 (["disk", "resize"], "not used any more"),
                                                 (["disk", "replace"], "has replaced"),
                                                 (["disk", "balance"], "done"))):
            with self.subTest(operation=words[1]):
                self.acknowledged = {}
                self.volume = Mounted(3, "96M", "cache=64M,commit=600")
                self.addCleanup(self.volume.remove)
                self.assertTrue(self.put("before", 120 * MIB))  # at least 16 MiB of them lie above 24 MiB of a disk
                more = ["24M"] if words[1] == "resize" else []
                if words[1] == "replace":
                    more = [self.new_disk(number)]
                disk = ["0"]
                if words[1] == "balance":
                    run(MDFS, "disk", "add", self.volume.path, self.new_disk(number))
                    disk = []
                work = subprocess.Popen([MDFS, *words, "--budget", "8M", self.volume.path, *disk, *more], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(1.5)
                self.assertIsNone(work.poll(), "it takes longer than that")
                os.unlink(self.volume.disks[1])
                out, error = work.communicate()
                self.assertIn(work.returncode, (0, 1, 3), out + error)
                done = work.returncode == 0
                self.assertTrue(done or claim not in out, out + error)
                copy = re.search(r"copy it with: (cp .*)\n", status_of(self.volume.path, unhealthy=True))
                run("bash", "-c", copy.group(1))
                self.unmount()
                left = done and words[1] in ("remove", "replace")
                self.volume.mount(disks=self.volume.disks[1 if left else 0:] + self.more())
                self.whole()
                self.volume.remove()

    def more(self):
        return sorted(glob.glob(os.path.join(self.volume.folder, "more*")))

    def new_disk(self, number):
        path = os.path.join(self.volume.folder, f"more{number}")
        with open(path, "wb") as file:
            file.truncate(96 * MIB)
        return path

    def test_status_notices_a_deleted_disk_before_a_commit_does(self):
        disk = self.start()
        os.unlink(disk)
        status = json.loads(status_of(self.volume.path, "--json", unhealthy=True))
        self.assertEqual(status["disks"][2]["state"], "deleted")
        self.assertTrue(any("was deleted while in use" in line for line in status["errors"]), status["errors"])
        self.continues()

    def test_a_moved_disk_works_on_and_is_a_warning(self):
        disk = self.start()
        os.link(disk, disk + ".link")
        self.assertNotIn("moved", status_of(self.volume.path))
        os.rename(disk, disk + ".moved")
        self.addCleanup(lambda: [os.unlink(name) for name in glob.glob(disk + ".*")])
        self.assertRegex(status_of(self.volume.path), r"warning: disk 2 .*was moved: nothing is at its path any more")
        self.assertTrue(self.put("after"))
        shutil.copyfile(disk + ".moved", disk)
        self.assertRegex(status_of(self.volume.path), r"warning: disk 2 .*was moved: another file is at its path")
        self.assertEqual(self.state(), "healthy")
        self.assertTrue(self.put("after2"))
        os.replace(disk + ".moved", disk)
        self.assertNotIn("moved", status_of(self.volume.path))
        self.assertEqual(self.unmount().returncode, 0)
        self.volume.mount()
        self.whole()

    def test_a_loop_device_that_shrank_fails(self):
        files = [os.path.join(tempfile.mkdtemp(prefix="mdfs-test-loop-"), "file")]
        self.addCleanup(shutil.rmtree, os.path.dirname(files[0]))
        with open(files[0], "wb") as file:
            file.truncate(48 * MIB)
        loop = subprocess.run(["losetup", "--find", "--show", files[0]], text=True, capture_output=True, check=False)
        if loop.returncode != 0:
            self.skipTest("no loop device can be made here")
        loop = loop.stdout.strip()
        self.addCleanup(run, "losetup", "--detach", loop)
        self.volume = Mounted(1, "48M", "cache=64M,commit=600")
        self.addCleanup(self.volume.remove)
        run(MDFS, "disk", "add", "--force", self.volume.path, loop)
        self.assertTrue(self.put("before"))
        time.sleep(0.5)  # the last writes of the commit make the file below the device long again
        os.truncate(files[0], 24 * MIB)
        run("losetup", "--set-capacity", loop)
        self.assertTrue(self.put("after", 1000))
        self.assertRegex(status_of(self.volume.path, unhealthy=True), "disk 1 .*24 MiB are left of 48 MiB")


class LongPaths(unittest.TestCase):
    """What failed and why is shown whatever the length of the disk's path."""

    def test_the_operation_and_the_cause_are_shown(self):
        for length in (10, 95, 250):
            with self.subTest(length=length):
                volume = Mounted(1, "64M", "cache=64M,commit=600",
                                 below=os.path.join("\u00e9" * (length // 2), "\u20ac" * (length // 3)))
                self.addCleanup(volume.remove)
                os.unlink(volume.disks[0])
                os.mkdir(volume / "folder")  # no data, which would fail before the commit
                subprocess.run([MDFS, "volume", "sync", volume.path], stderr=subprocess.DEVNULL, check=False)
                status = status_of(volume.path, unhealthy=True)
                self.assertRegex(status, r"error: read-only: the commit of generation \d+ failed: .*was deleted while "
                                         r"in use: unsynced data are lost")
                self.assertNotIn("\ufffd", status)
                self.assertNotIn("\\x", status)
                done = subprocess.run([MDFS, "umount", volume.path], text=True, capture_output=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("input/output error"), 1, done.stderr)
                self.assertRegex(done.stderr, "was deleted while in use")


if __name__ == "__main__":
    main()
