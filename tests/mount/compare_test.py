"""The same calls on MDFS and on ext4 give the same answers, but for a short table of differences that are meant.

MDFS_TEST_SEEDS=A-B and MDFS_TEST_STEPS=N lengthen the random part.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import Mounted, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare"))

import data  # noqa: E402
import names  # noqa: E402
import owners  # noqa: E402
import random_calls  # noqa: E402
import trace  # noqa: E402

# (sequence, pattern of the label): where MDFS answers otherwise, and why. doc/DESIGN.md has the same table.
INTENDED = {
    ("reserved", r"(create|mkdir|symlink|link|rename) (scan)?@$"):
        "names ending in @ lead into views: taking them is EINVAL",
    ("temporary_files", r"open \. rdwr\+directory\+tmpfile"): "O_TMPFILE: libfuse 3.14 has no request for it",
    ("direct", r"(read|write|bytes) (4096 at [01]|100 at 0) (in|fr).*"): "O_DIRECT takes any alignment",
    ("file_flags", r"(get flags|set immutable|no longer)"): "there are no file flags",
    ("file_flags", r"FIEMAP"): "FUSE has no FIEMAP; images have MDFS_IOC_LAYOUT",
    ("positions", r"(lseek|read at) (17592186044416|4611686018427387904|9223372036854775807) 0"):
        "files have up to 2^62 bytes, where ext4 ends at 2^44",
    ("allocation", r"shift (8|32) "): "no collapsing and inserting: neither extents nor cells could be shifted",
}


class Ext4:
    """A new ext4 in a file, mounted with the options that a FUSE mount has."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mdfs-test-ext4-")
        os.chmod(self.folder, 0o755)
        self.path = os.path.join(self.folder, "mnt")
        os.mkdir(self.path)
        disk = os.path.join(self.folder, "disk")
        with open(disk, "wb") as file:
            file.truncate(512 << 20)
        run("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,ea_inode", disk)
        self.mounted = subprocess.run(["mount", "-o", "loop,nodev,nosuid", disk, self.path], capture_output=True,
                                      text=True, check=False)

    def remove(self):
        if os.path.ismount(self.path):
            run("umount", self.path)
        shutil.rmtree(self.folder)


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ext4 = Ext4()
        cls.addClassCleanup(cls.ext4.remove)
        if cls.ext4.mounted.returncode != 0:
            raise unittest.SkipTest(f"no ext4 to compare with: {cls.ext4.mounted.stderr.strip()}")
        cls.volume = Mounted(disks=3, size="256M", options="cache=64M,allow_other,noatime")
        cls.addClassCleanup(cls.volume.remove)
        cls.calls = 0

    @classmethod
    def tearDownClass(cls):
        print(f"{cls.calls} calls compared", flush=True)
        cls.volume.unmount()

    def compare(self, module):
        used = set()
        for sequence in module.SEQUENCES:
            name = sequence.__name__
            with self.subTest(sequence=name):
                ours = trace.run_in(self.volume / name, sequence)
                theirs = trace.run_in(os.path.join(self.ext4.path, name), sequence)
                type(self).calls += len(ours)
                wrong = [f"{label} {answer}" for label, answer in ours + theirs if label in ("ended by", "killed")]
                for mine, other in zip(ours, theirs):
                    if mine == other:
                        continue
                    key = next(((s, label) for s, label in INTENDED if s == name and re.match(label, mine[0])), None)
                    if key:
                        used.add(key)
                    else:
                        wrong.append(f"{mine[0]}: {mine[1]}; ext4: {other[1]}")
                if len(ours) != len(theirs):
                    wrong.append(f"{len(ours)} answers; ext4: {len(theirs)}: {ours[-1]} {theirs[-1]}")
                shutil.rmtree(self.volume / name)
                shutil.rmtree(os.path.join(self.ext4.path, name))
                if wrong:
                    self.fail(f"{len(wrong)} answers differ:\n" + "\n".join(wrong))
        unused = {key for key in INTENDED if key[0] in {s.__name__ for s in module.SEQUENCES}} - used
        self.assertEqual(unused, set(), "the table of meant differences names what is the same")

    def test_names(self):
        self.compare(names)

    def test_owners_and_attributes(self):
        self.compare(owners)

    def test_bytes(self):
        self.compare(data)

    def test_random_sequences(self):
        first, _, last = os.environ.get("MDFS_TEST_SEEDS", "1-6").partition("-")
        steps = int(os.environ.get("MDFS_TEST_STEPS", "600"))
        for seed in range(int(first), int(last or first) + 1):
            with self.subTest(seed=seed):
                tops = [self.volume / f"walk{seed}", os.path.join(self.ext4.path, f"walk{seed}")]
                type(self).calls += len(random_calls.walk(seed, tops, steps))
                for top in tops:
                    shutil.rmtree(top)

    def test_a_difference_is_seen(self):
        with self.assertRaisesRegex(AssertionError, "EEXIST"):
            os.mkdir(self.volume / "seen")
            random_calls.walk(1, [self.volume / "seen2", os.path.join(self.ext4.path, "seen2")], 0)
            walk = random_calls.Walk(1, [self.volume.path, self.ext4.path])
            walk.both("mkdir", lambda top, _: os.mkdir(top + "/seen"))


if __name__ == "__main__":
    harness.main()
