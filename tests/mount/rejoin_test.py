"""Disks that come and go between mounts, whichever of them is named: the newest state, or a refusal.

MDFS_TEST_SEEDS=A-B picks the seeds.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from harness import MDFS, MKMDFS, run

FIRST, LAST = (int(number) for number in os.environ.get("MDFS_TEST_SEEDS", "1-14").split("-"))
STEPS = 6


class Rejoin(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mdfs-test-")
        os.chmod(self.folder, 0o755)
        self.addCleanup(shutil.rmtree, self.folder)
        self.mnt = f"{self.folder}/mnt"
        os.mkdir(self.mnt)
        self.addCleanup(subprocess.run, ["umount", "-l", self.mnt], stderr=subprocess.DEVNULL, check=False)

    def make(self, count):
        for name in os.listdir(self.folder):
            if name != "mnt":
                shutil.rmtree(f"{self.folder}/{name}") if name == "away" else os.unlink(f"{self.folder}/{name}")
        os.mkdir(f"{self.folder}/away")
        self.disks = [f"disk{number}" for number in range(count)]
        run(MKMDFS, "--size", "16M", "--sparse", *(f"{self.folder}/{disk}" for disk in self.disks))
        self.parents = {0: None}  # of versions of the volume
        self.content = {0: b"version 0"}
        self.version = dict.fromkeys(self.disks, 0)
        run(MDFS, "mount", f"{self.folder}/disk0", self.mnt)
        self.write(self.content[0], 3)
        run(MDFS, "umount", self.mnt)

    def put(self, present):
        for disk in self.disks:
            here, away = f"{self.folder}/{disk}", f"{self.folder}/away/{disk}"
            source, target = (away, here) if disk in present else (here, away)
            if os.path.exists(source):
                os.rename(source, target)

    def write(self, content, commits):
        for number in range(commits):
            with open(f"{self.mnt}/report", "wb") as file:
                file.write(content if number == commits - 1 else b"on the way")
            run(MDFS, "volume", "sync", self.mnt)
            time.sleep(0.015)  # the commit is finalized

    def is_behind(self, version, newest):
        while newest is not None and newest != version:
            newest = self.parents[newest]
        return newest is not None

    def newest_of(self, present):
        """The version that all the others are behind; None where they were written apart."""
        tops = [version for version in {self.version[disk] for disk in present}
                if all(self.is_behind(self.version[disk], version) for disk in present)]
        return tops[0] if tops else None

    def step(self, dice):
        parts = dice.random() < 0.5  # else all come back
        present = dice.sample(self.disks, dice.randint(1, len(self.disks)) if parts else len(self.disks))
        self.put(present)
        newest = self.newest_of(present)
        options = dice.choice(["rw", "degraded"])
        named = dice.choice([f"{self.folder}/{dice.choice(present)}"] * 3 + [self.folder])
        what = f"{sorted(present)} of {self.version}, {named} named, {options}"
        done = subprocess.run([MDFS, "mount", "-o", options, named, self.mnt], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            # Of five disks three have a copy of a node.
            if len(self.disks) > 3 and len(present) < 3 and "no good copy" in done.stderr:
                return
            self.assertIsNone(newest, f"{what}: {done.stderr}")
            return
        with open(f"{self.mnt}/report", "rb") as file:
            self.assertEqual(file.read(), self.content.get(newest, b"a refusal"), what)
        current = [disk for disk in present if self.version[disk] == newest]
        can_write = len(current) * 2 > len(self.disks) or options == "degraded"
        if can_write and dice.random() < 0.8:
            version = len(self.parents)
            self.parents[version] = newest
            self.content[version] = f"version {version}".encode()
            self.write(self.content[version], dice.choice([1, 4, 9, 9]))
            for disk in current:
                self.version[disk] = version
        elif not can_write:
            self.assertRaises(OSError, open, f"{self.mnt}/new", "wb")
        run(MDFS, "umount", self.mnt)

    def test_whichever_disk_is_named_the_newest_state_of_those_that_are_there_is_mounted_or_a_fork_refused(self):
        for seed in range(FIRST, LAST + 1):
            with self.subTest(seed=seed):
                dice = random.Random(seed)
                self.make(dice.choice([2, 3, 3, 5]))
                for _ in range(STEPS):
                    self.step(dice)

    def states(self):
        return [disk["state"] for disk in json.loads(harness.status_of(self.mnt, "--json", unhealthy=None))["disks"]]

    def test_a_disk_that_was_away_without_a_write_is_what_it_was_whatever_was_to_repair(self):
        self.make(3)
        first = f"{self.folder}/disk0"
        run(MDFS, "mount", first, self.mnt)
        for number in range(30):
            harness.write_all(f"{self.mnt}/file{number}", os.urandom(500_000))
        left = os.open(f"{self.mnt}/left", os.O_RDWR | os.O_CREAT)
        os.write(left, os.urandom(100_000))
        run(MDFS, "volume", "sync", self.mnt)
        os.unlink(f"{self.mnt}/left")
        run(MDFS, "scrub", "start", "--budget", "64K", self.mnt)
        run(MDFS, "volume", "sync", self.mnt)
        # What was left has no name, and is not freed: the daemon is killed.
        pids = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and self.mnt.encode() in
                read_or_nothing(f"/proc/{pid}/cmdline").split(b"\0")]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):  # its daemon may be gone already
            os.close(left)
        subprocess.run(["umount", "-l", self.mnt], check=False)
        with open(f"{self.folder}/disk1", "r+b") as disk:
            blocks = disk.read()
            for block in range(600, len(blocks) // 4096 - 70):
                if any(blocks[block * 4096:block * 4096 + 64]):
                    disk.seek(block * 4096 + 100)
                    disk.write(b"damage")
        for away in ({"disk2"}, set()):
            self.put([disk for disk in self.disks if disk not in away])
            run(MDFS, "mount", "-o", "commit=1", first, self.mnt)
            self.assertNotIn("stale", self.states())
            self.assertEqual("missing" in self.states(), bool(away))
            failed = 0
            for name in sorted(os.listdir(self.mnt)):
                try:
                    harness.read_all(f"{self.mnt}/{name}")
                except OSError:
                    failed += 1
            self.assertGreater(failed, 0)
            said = run(MDFS, "scrub", "status", self.mnt)
            self.assertIn("a disk is missing" if away else "running", said)
            os.sync()
            time.sleep(2.5)
            run(MDFS, "umount", self.mnt)


def read_or_nothing(path):
    try:
        return harness.read_all(path)
    except OSError:
        return b""


if __name__ == "__main__":
    harness.main()
