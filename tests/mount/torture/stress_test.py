"""stress-ng's filesystem stressors, one after another, checking what they do."""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys
import tempfile

from torture import LONGER, TortureTest, main

# Those of `--class filesystem` that work in a directory, and the memory and io ones that use files there. Left out:
# binderfs, bind-mount, procfs, ioprio, eventfd (no files of ours); verity, chattr, inode-flags, file-ioctl and fiemap
# (ioctls that no FUSE filesystem has); getdent (a system call that new kernels are built without).
NAMES = ("access", "chdir", "chmod", "chown", "dentry", "dir", "dirdeep", "dirmany", "filename", "fstat",
         "handle", "inotify", "dnotify", "link", "mknod", "open", "rename", "symlink", "touch", "unlink", "utime",
         "xattr")
BYTES = ("copy-file", "fallocate", "fpunch", "fsize", "hdd", "io", "iomix", "mmap", "msync", "mmapmany", "readahead",
         "seek", "sendfile", "splice", "sync-file")
# One round of xattr is thousands of attributes on one file.
FIXED_WORK = {"xattr": ["--xattr-ops", "1", "--timeout", "60s"]}
LOCKS = ("fcntl", "flock", "lease", "locka", "lockf", "lockofd", "dup")


OWN_MOUNTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "own_mounts.py")


class Stress(TortureTest):
    size = "1G"

    def alone(self, *command):
        """The command, in a mount namespace that has no foreign filesystems."""
        return ["unshare", "--mount", "--propagation", "private", sys.executable, OWN_MOUNTS, self.dir, *command]

    def run_all(self, stressors):
        self.need("stress-ng")
        known = subprocess.run(["stress-ng", "--stressors"], capture_output=True, text=True, check=True).stdout.split()
        ran = 0
        for stressor in stressors:
            if stressor not in known:
                continue  # this version has none
            with self.subTest(stressor=stressor):
                done = subprocess.run(
                    self.alone(
                        "stress-ng", f"--{stressor}", "2", "--timeout", f"{LONGER}s", "--verify", "--metrics",
                        "--no-rand-seed", "--temp-path", self.dir, "--hdd-bytes", "16m", "--fallocate-bytes", "16m",
                        "--seek-size", "4m", "--readahead-bytes", "8m", "--iomix-bytes", "16m", "--sync-file-bytes",
                        "8m", *FIXED_WORK.get(stressor, [])), capture_output=True, text=True, cwd=self.volume.folder,
                    timeout=100 + 5 * LONGER, check=False)
                said = done.stdout + done.stderr
                self.assertEqual(done.returncode, 0, said)
                self.assertNotRegex(said, r"(?i)\bfail(ed|ure|:)\b", stressor)
                did = re.search(rf"\] {stressor} +(\d+) ", said)
                self.assertTrue(did and int(did.group(1)) > 0, f"{stressor} did nothing: {said}")
                self.assertEqual(os.listdir(self.dir), [], f"{stressor} left something behind")
                ran += 1
        self.assertGreater(ran, len(stressors) // 2)

    def test_the_stressors_see_no_foreign_mount(self):
        foreign = tempfile.mkdtemp(prefix="mdfs foreign ")
        self.addCleanup(os.rmdir, foreign)
        subprocess.run(["mount", "-t", "tmpfs", "none", foreign], check=True)
        self.addCleanup(subprocess.run, ["umount", foreign], check=True)
        written = foreign.replace(" ", "\\040")
        seen = subprocess.run(self.alone("cat", "/proc/self/mounts"), capture_output=True, text=True, check=True).stdout
        self.assertNotIn(written, seen)
        self.assertIn(self.volume.path, seen, "the volume is there")
        with open("/proc/self/mounts", encoding="utf-8") as file:
            self.assertIn(written, file.read(), "and nothing has changed outside")

    def test_names(self):
        self.run_all(NAMES)

    def test_bytes(self):
        self.run_all(BYTES)

    def test_locks(self):
        self.run_all(LOCKS)


if __name__ == "__main__":
    main()
