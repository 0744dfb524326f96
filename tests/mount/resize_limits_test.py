"""Sizes of disks at their limits: what was asked for, what fits, and devices that are not what they were."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

from harness import MDFS, MDFSCK, Mounted, fill_filesystem, read_all, run, write_all

KIB, MIB = 1 << 10, 1 << 20


class Limits(unittest.TestCase):
    def volume(self, disks=1, size="16M", make=(), options="cache=64M"):
        volume = Mounted(disks=disks, size=size, make=make, options=options)
        self.addCleanup(volume.remove)
        return volume

    def call(self, *arguments):
        return subprocess.run([MDFS, *arguments], capture_output=True, text=True, check=False)

    def resize(self, volume, *arguments):
        return self.call("disk", "resize", volume.path, "0", *arguments)

    def size(self, volume):
        told = json.loads(run(MDFS, "disk", "list", "--json", volume.path))
        return told["disks"][0]["blocks"] * told["block_size"]

    def start(self, volume, *arguments):
        """A resize that takes long; it is under way."""
        process = subprocess.Popen([MDFS, "disk", "resize", "--budget", "100K", volume.path, "0", *arguments],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        while "being shrunk" not in run(MDFS, "disk", "list", volume.path):
            self.assertIsNone(process.poll())
        return process

    def fill(self, volume, count, bytes_each):
        source = random.Random(count)
        contents = {f"f{i}": source.randbytes(bytes_each) for i in range(count)}
        for name, data in contents.items():
            write_all(volume / name, data)
        run(MDFS, "volume", "sync", volume.path)
        return contents

    def look(self, volume, contents):
        for name, data in contents.items():
            self.assertEqual(read_all(volume / name), data, name)

    def test_a_disk_is_never_left_larger_than_it_was_asked_to_be(self):
        for more in (1, 100, 128, 200, 256, 300):
            with self.subTest(f"{more} KiB larger before"):
                volume = self.volume()
                contents = self.fill(volume, 3, 700_000)
                os.truncate(volume.disks[0], 18 * MIB)
                self.resize(volume, str(16 * MIB + 512 * KIB + more * KIB))
                self.assertEqual(self.resize(volume, str(16 * MIB + 512 * KIB)).returncode, 0)
                self.assertLessEqual(self.size(volume), 16 * MIB + 512 * KIB)
                volume.unmount()
                os.truncate(volume.disks[0], 16 * MIB + 512 * KIB)
                volume.mount()
                self.look(volume, contents)
                volume.unmount()

    def test_what_the_dry_run_says_fits_does_fit(self):
        for number in range(4):
            volume = self.volume(size="64M", make=("--block-size", ("32K", "16K")[number % 2]))
            contents = self.fill(volume, 1, 6_800_000 + 130_000 * number)
            for size in range(11 * MIB, 7 * MIB, -256 * KIB):
                told, done = (self.resize(volume, *options, str(size)) for options in (["--dry-run"], []))
                self.assertEqual((told.returncode, told.stderr), (done.returncode, done.stderr), size)
                if done.returncode != 0:
                    self.assertIn("no space elsewhere", done.stderr)
                    break
            else:
                self.fail("more was stored than the disk has")
            self.look(volume, contents)
            volume.unmount()
            run(MDFSCK, "-n", "--data", *volume.disks)

    def test_who_takes_the_room_meanwhile_is_what_the_message_says(self):
        volume = self.volume()
        contents = self.fill(volume, 11, 1_000_000)
        process = self.start(volume, "--json", "14M")
        with open(volume / "more", "wb", buffering=0) as more:
            try:
                while True:
                    more.write(os.urandom(1 << 18))
                    os.fsync(more.fileno())
            except OSError:
                pass
        output, said = process.communicate()
        told = json.loads(output)
        if process.returncode == 0:  # there was room all the same
            self.assertEqual((told["state"], told["bytes"]), ("done", 14 * MIB))
        else:
            self.assertEqual((process.returncode, told["state"], told["bytes"]), (1, "failed", 16 * MIB))
            self.assertRegex(said, r"no space left.*keeps its size.*delete files")
        self.assertEqual((told["bytes_before"], told["bytes_asked"]), (16 * MIB, 14 * MIB))
        self.assertEqual(self.size(volume), told["bytes"])
        self.look(volume, contents)

    def test_while_it_goes_on_it_is_shown_and_asked_about_by_its_name(self):
        volume = self.volume(size="32M")
        contents = self.fill(volume, 20, 1_000_000)
        first = self.start(volume, "26M")
        for command in (("disk", "list"), ("volume", "status")):
            told = json.loads(run(MDFS, *command, "--json", volume.path))["resizing"]
            self.assertEqual((told["state"], told["disk"]), ("running", 0))
        self.assertRegex(self.call("disk", "remove", volume.path, "0").stderr, "being shrunk.*resize --cancel")
        self.assertIn("already", self.resize(volume, "--dry-run", "26M").stderr)
        for wrong in (["--dry-run"], ["26M"], ["--budget", "1M"]):
            refused = self.resize(volume, "--cancel", *wrong)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("--cancel excludes", refused.stderr)
        # A budget of a second command replaces that of the first.
        self.assertEqual(self.resize(volume, "--budget", "900M", "26M").returncode, 0)
        self.assertEqual((first.wait(), self.size(volume)), (0, 26 * MIB))
        self.assertIsNone(json.loads(run(MDFS, "disk", "list", "--json", volume.path))["resizing"])
        self.look(volume, contents)

    def test_a_copy_from_before_a_growth_is_read_as_a_stale_disk(self):
        volume = self.volume(disks=3, size="8M")
        contents = self.fill(volume, 6, 700_000)
        volume.unmount()
        old = volume.disks[0] + ".old"
        shutil.copyfile(volume.disks[0], old)
        volume.mount()
        os.truncate(volume.disks[0], 16 * MIB)
        self.assertEqual(self.resize(volume, "max").returncode, 0)
        volume.unmount()
        os.replace(old, volume.disks[0])
        volume.mount(disks=volume.disks)
        self.assertEqual(json.loads(run(MDFS, "disk", "list", "--json", volume.path))["disks"][0]["state"], "stale")
        self.look(volume, contents)
        run(MDFS, "disk", "remove", volume.path, "0")
        self.look(volume, contents)
        volume.unmount()
        run(MDFSCK, "-n", "--data", *volume.disks[1:])
        volume.mount(disks=volume.disks[1:2])

    def test_a_device_that_was_cut_is_named_with_the_size_that_it_needs(self):
        volume = self.volume()
        self.fill(volume, 3, 700_000)
        os.truncate(volume.disks[0], 12 * MIB)
        for size in ("max", "12M", "8M"):
            self.assertRegex(self.resize(volume, "--dry-run", size).stderr, "has 12 MiB, less than disk 0.*16 MiB")
        status = self.call("volume", "status", volume.path)
        self.assertEqual(status.returncode, 4)
        self.assertRegex(status.stdout, r"error: disk 0 .* was truncated while in use: 12 MiB are left of 16 MiB")
        unmounted = self.call("umount", volume.path)
        self.assertEqual(unmounted.returncode, 3)
        self.assertRegex(unmounted.stderr, "disk0 was truncated while in use: 12 MiB are left of 16 MiB")
        mounted = self.call("mount", *volume.disks, volume.path)
        self.assertEqual(mounted.returncode, 3)
        self.assertRegex(mounted.stderr, r"disk0 is smaller than its label says, which is 16 MiB")
        os.truncate(volume.disks[0], 16 * MIB)
        volume.mount()

    def test_a_growth_without_room_for_its_labels_changes_nothing(self):
        folder = tempfile.mkdtemp(prefix="mdfs-test-")
        run("mount", "-t", "tmpfs", "-o", "size=20M", "none", folder)
        self.addCleanup(lambda: (run("umount", "-l", folder), os.rmdir(folder)))
        volume = self.volume()
        volume.unmount()
        disk = os.path.join(folder, "disk")
        subprocess.run(["cp", "--sparse=always", volume.disks[0], disk], check=True)
        volume.disks = [disk]
        volume.mount()
        contents = self.fill(volume, 3, 700_000)
        os.truncate(disk, 64 * MIB)
        fill_filesystem(os.path.join(folder, "full"))
        grown = self.resize(volume, "max")
        self.assertEqual(grown.returncode, 1)
        self.assertRegex(grown.stderr, "keeps its 16 MiB.*sparse file needs space")
        self.assertEqual(self.size(volume), 16 * MIB)
        os.remove(os.path.join(folder, "full"))
        self.call("umount", volume.path)  # which fails if any commit had no room meanwhile
        volume.mount()
        self.assertEqual(self.size(volume), 16 * MIB)
        self.look(volume, contents)
        volume.unmount()
        run(MDFSCK, "-n", "--data", disk)


if __name__ == "__main__":
    unittest.main(verbosity=2)
