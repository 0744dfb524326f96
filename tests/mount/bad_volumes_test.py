"""Nonsense to mkmdfs, mdfsck and mount, and disks with nonsense on them: refused by name, and nothing changed."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

from harness import MDFS, MDFSCK, MDFS_SIM, MKMDFS, MountTest, main, run, write_all
from refusing import Refusing, digest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from crc32c import crc32c  # noqa: E402  the path comes first

AREA = 131072  # a label with its ring


class Volumes(Refusing, MountTest):
    """mkmdfs, mdfsck and mount: on disks that are not mounted."""
    disks = 3
    size = "4M"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_all(cls.volume / "file", b"x" * 10000)
        cls.volume.unmount()

    @classmethod
    def tearDownClass(cls):
        cls.volume.remove()

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="mdfs-test-bad-")
        self.addCleanup(shutil.rmtree, self.dir)
        for disk in self.volume.disks:
            shutil.copyfile(disk, self.at(os.path.basename(disk)))
        self.members = [self.at(os.path.basename(disk)) for disk in self.volume.disks]
        os.mkdir(self.at("mnt"))

    def unchanged(self):
        return digest(self.dir), os.path.ismount(self.at("mnt"))

    @property
    def made(self):
        return (self.at("new"),)

    def sealed(self, path, offset, data):
        """Changes the four labels of a disk; their checksums are right afterwards."""
        size = os.path.getsize(path)
        with open(path, "r+b") as disk:
            for place in (0, AREA, size - 2 * AREA, size - AREA):
                disk.seek(place)
                label = bytearray(disk.read(4096))
                label[offset:offset + len(data)] = data
                label[8:12] = bytes(4)
                label[8:12] = struct.pack("<I", crc32c(label))
                disk.seek(place)
                disk.write(label)

    def test_mount_options(self):
        for says, words in (
                ("bogus", "bogus"), ("cache", "cache"), ("cache", "cache="), ("cache", "cache=1"), ("cache",
                                                                                                    "cache=-1"),
                ("cache", "cache=x"), ("cache", "cache=99999999999999999999"), ("cache", "cache=64M,cache=1"),
                ("commit", "commit=0"), ("commit", "commit=3601"), ("commit", "commit=-5"), ("commit", "commit=1s"),
                ("commit", "commit=18446744073709551617"), ("ro", "ro=1"), ("degraded", "degraded=yes"),
                ("max_window", "max_window=0"), ("max_window", "max_window=99T"), ("staging", "staging="),
                ("staging", "staging=relative"), ("none", "staging=/none"), ("log", "log="), ("log", "log=loud"),
                ("model", "model="), ("none", "model=/none"), ("nosuchmachine", "model=nosuchmachine"), ("trace",
                                                                                                         "trace="),
                ("none", "trace=/none/trace"), ("/", "trace=/"), ("", "=5"), ("RO", "RO"), ("uid", "uid=0"),
                (r"\\x1b|'", "a\x1b[31mb"), ("x", "x" * 3000)):
            self.refused(says, MDFS, "mount", "-o", words, self.members[0], self.at("mnt"))

    def test_machines_that_are_none(self):
        for name, text, says in (("empty", b"", "empty"), ("garbage", bytes(range(256)) * 4, "garbage"),
                                 ("open", b"[", ":1:"), ("zeros", bytes(1000), "zeros"), ("json", b'{"name": "x"}',
                                                                                          ":1:"),
                                 ("typed", b"name = 5\n", "name"), ("unknown", b'name = "x"\nwhat = 1\n', ""),
                                 ("deep", b"a = " + b"[" * 100000, "deep"), ("deep2", b"a." * 500000 + b"b = 1",
                                                                             "parts"),
                                 ("twice", b'name = "x"\nname = "y"\n', "name"),
                                 ("date", b'name = 2020-13-45\n', "")):
            write_all(self.at(name), text)
            self.refused(says, MDFS, "mount", "-o", "model=" + self.at(name), self.members[0], self.at("mnt"))
            self.refused(says, MDFS_SIM, "machine", self.at(name))
        self.refused("", MDFS, "mount", "-o", "model=" + self.dir, self.members[0], self.at("mnt"))
        self.refused("", MDFS, "mount", "-o", "model=/dev/null", self.members[0], self.at("mnt"))

    def test_disks_that_are_none(self):
        write_all(self.at("zeros"), bytes(4 << 20))
        write_all(self.at("small"), bytes(1000))
        write_all(self.at("nothing"), b"")
        write_all(self.at("noise"), os.urandom(4 << 20))
        shutil.copyfile(self.members[0], self.at("cut"))
        os.truncate(self.at("cut"), 70000)
        with open(self.at("wiped"), "wb") as file, open(self.members[0], "rb") as disk:
            file.write(bytes(2 * AREA) + disk.read()[2 * AREA:-2 * AREA] + bytes(2 * AREA))
        os.mkdir(self.at("void"))
        os.symlink("loop", self.at("loop"))
        for says, disk in (("zeros", "zeros"), ("small", "small"), ("nothing", "nothing"), ("noise", "noise"), ("cut",
                                                                                                                "cut"),
                           ("wiped", "wiped"), ("void", "void"), ("loop", "loop"), ("none", "none"), ("", ""),
                           ("null", "/dev/null"), ("zero", "/dev/zero")):
            path = self.at(disk) if disk else ""
            self.refused(says, MDFS, "mount", path, self.at("mnt"))
            self.refused(says, MDFSCK, path)
        self.refused("twice", MDFS, "mount", self.members[0], self.members[0], self.at("mnt"))
        self.refused("twice", MDFSCK, self.members[0], self.members[0])
        os.link(self.members[0], self.at("other-name"))
        self.refused("twice|copies", MDFS, "mount", self.members[0], self.at("other-name"), self.at("mnt"))

    def test_other_volumes_and_copies(self):
        run(MKMDFS, "--size", "4M", self.at("other"))
        self.refused("volume", MDFS, "mount", self.members[0], self.at("other"), self.at("mnt"))
        self.refused("volume", MDFSCK, self.members[0], self.at("other"))
        self.refused(f"{self.dir} holds disks of several volumes", MDFS, "mount", self.dir, self.at("mnt"))
        os.unlink(self.at("other"))
        shutil.copyfile(self.members[1], self.at("copy"))
        self.refused("copies", MDFS, "mount", self.dir, self.at("mnt"))
        self.refused("copies", MDFSCK, self.members[1], self.at("copy"))

    def test_missing_disks(self):
        os.mkdir(self.at("alone"))
        os.rename(self.members[0], self.at("alone/disk0"))
        self.members[0] = self.at("alone/disk0")
        os.unlink(self.members[2])
        # One of three: what can be read can be read, but nothing is written unless asked for.
        run(MDFS, "mount", self.members[0], self.at("mnt"))
        try:
            with self.assertRaises(OSError) as caught:
                write_all(self.at("mnt/new"), b"")
            self.assertEqual(caught.exception.errno, 30)
        finally:
            run(MDFS, "umount", self.at("mnt"))

    def test_volumes_of_another_version(self):
        with open(self.members[0], "rb") as disk:
            disk.seek(12)
            version = disk.read(4)
        known, = struct.unpack("<I", version)
        for offset, value, says in ((12, struct.pack("<I", known + 1), "newer"),
                                    (12, struct.pack("<I", known - 1), "earlier"),
                                    (32, struct.pack("<Q", 1 << 40), "newer"),
                                    (32, struct.pack("<Q", 1), "newer")):
            for disk in self.members:
                self.sealed(disk, offset, value)
            self.refused(says, MDFS, "mount", *self.members, self.at("mnt"))
            self.refused(says, MDFSCK, *self.members)
            self.refused(says, MDFSCK, "-y", *self.members)
            self.refused(f"holds|{says}", MKMDFS, self.members[0])
            for disk in self.members:
                self.sealed(disk, offset, version if offset == 12 else bytes(8))
        # Of features that may be read without being known the volume stays readable.
        for disk in self.members:
            self.sealed(disk, 24, struct.pack("<Q", 1 << 7))
        run(MDFS, "mount", *self.members, self.at("mnt"))
        try:
            with open(self.at("mnt/file"), "rb") as file:
                self.assertEqual(file.read(), b"x" * 10000)
            with self.assertRaises(OSError):
                write_all(self.at("mnt/new"), b"")
        finally:
            run(MDFS, "umount", self.at("mnt"))

    def test_labels_with_nonsense_under_a_good_checksum(self):
        for offset, size in ((72, 2), (74, 2), (76, 4), (80, 8), (88, 8), (96, 8), (112, 2), (114, 2), (512, 8), (528,
                                                                                                                  8),
                             (536, 2), (40, 16), (56, 16)):
            for value in (0, 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1):
                shutil.copyfile(self.volume.disks[0], self.members[0])
                data = value.to_bytes(size, "little")
                with open(self.members[0], "rb") as disk:
                    disk.seek(offset)
                    if disk.read(size) == data:
                        continue
                self.sealed(self.members[0], offset, data)
                done = subprocess.run([MDFSCK, self.members[0]], capture_output=True, text=True, timeout=60)
                with self.subTest(offset=offset, value=value):
                    self.assertIn(done.returncode, (0, 4, 8), done.stderr)
                    if done.returncode == 8:
                        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_list_of_commits_and_a_repair_are_not_asked_for_together(self):
        for repair in ("-y", "-p"):
            done = subprocess.run([MDFSCK, "--list-commits", repair, self.members[0]], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 16, done.stdout)
            self.assertIn("excludes", done.stderr)

    def test_no_name_of_a_volume_reaches_a_terminal_as_a_command_to_it(self):
        name = "\x1b]0;title\x07\x9b31m\n\u202egnp.exe\u2028"
        for member in self.members:
            self.sealed(member, 120, name.encode())
        shown = []
        for words in ((MDFS, "disk", "probe"), (MDFSCK, "-n"), (MDFSCK, "--list-commits")):
            done = subprocess.run([*words, self.members[0]], capture_output=True, text=True, timeout=60)
            shown += [done.stdout, done.stderr]
        properties = run(MDFS, "disk", "probe", "--udev", self.members[0])
        answers = [run(MDFS, "disk", "probe", "--json", self.members[0]),
                   run(MDFSCK, "-n", "--json", *self.members)]
        run(MDFS, "mount", *self.members, self.at("mnt"))
        try:
            shown += [run(MDFS, "volume", "status", self.at("mnt")), run(MDFS, "volume", "map", self.at("mnt"))]
            answers += [run(MDFS, "volume", "status", "--json", self.at("mnt"))]
        finally:
            run(MDFS, "umount", self.at("mnt"))
        for answer in answers:
            self.assertEqual(json.loads(answer)["label"], name)
        for text in shown + answers + [properties]:
            unsafe = [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2028")]
            self.assertEqual(unsafe, [], text)
        self.assertTrue(all("=" in line for line in properties.splitlines()), properties)

    def test_mkmdfs(self):
        for says, words in (("size", ("--size", "0")), ("small|least", ("--size", "4095K")), ("small|least",
                                                                                              ("--size", "1")),
                            ("size", ("--size", "")), ("size", ("--size", "x")), ("size", ("--size", "1.5.5G")),
                            ("size", ("--size", "18446744073709551616")), ("size|large", ("--size", "8388608T")),
                            ("block.size", ("--size", "4M", "--block-size", "0")),
                            ("block.size", ("--size", "4M", "--block-size", "4097")),
                            ("block.size", ("--size", "4M", "--block-size", "18446744073709551615")),
                            ("zone.size", ("--size", "4M", "--zone-size", "0x10")),
                            ("zone.size", ("--size", "4M", "--zone-size", "1")),
                            ("name|label", ("--size", "4M", "--label", b"\xff\xfe")), ("name|label", ("--size", "4M",
                                                                                                "--label",
                                                                                                b"\xed\xa0\x80")),
                            ("name|label", ("--size", "4M", "--label", "a\nb"))):
            self.refused(says, MKMDFS, *words, self.at("new"))
        write_all(self.at("small"), bytes(4194303))
        self.refused("small", MKMDFS, self.at("small"))
        self.refused("holds|MDFS", MKMDFS, self.members[0])
        self.refused("", MKMDFS, self.at("mnt"))
        self.refused("", MKMDFS, "--size", "4M", self.at("none/x"))
        self.refused("", MKMDFS, "--size", "4M", "")

    def test_mount_points(self):
        write_all(self.at("file"), b"")
        for point in (self.at("file"), self.at("none"), "", "/dev/null", "x" * 5000):
            self.refused("", MDFS, "mount", *self.members, point)
        for words in (("-n", "-y"), ("-p", "-y"), ("--nonsense",)):
            self.refused("", MDFSCK, *words, self.members[0])
        self.refused("", MDFSCK)


if __name__ == "__main__":
    main()
