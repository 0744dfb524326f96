"""The version is the same in version.h, meson, debian/changelog and every program; a program names commit and format.

usage: version_test.py SOURCE_ROOT MESON_VERSION MDFS MKMDFS MDFSCK MDFS_SIM
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE, MESON_VERSION = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
PROGRAMS = {name: sys.argv.pop(1) for name in ("mdfs", "mkmdfs", "mdfsck", "mdfs-sim")}


def defined(header, name):
    """The value of a #define of a public header."""
    text = (SOURCE / "include" / "mdfs" / header).read_text()
    return re.search(rf'^#define {name} "?([^"\n]*)"?$', text, re.MULTILINE)[1]


class Version(unittest.TestCase):
    def test_the_header_says_one_version(self):
        numbers = [defined("version.h", f"MDFS_VERSION_{part}") for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(defined("version.h", "MDFS_VERSION_STRING"), ".".join(numbers))

    def test_meson_takes_it_from_the_header(self):
        self.assertEqual(MESON_VERSION, defined("version.h", "MDFS_VERSION_STRING"))

    def test_the_package_has_it(self):
        first = (SOURCE / "debian" / "changelog").read_text().split("\n")[0]
        self.assertEqual(re.match(r"mdfs \(([^)]*)\)", first)[1], defined("version.h", "MDFS_VERSION_STRING"))

    def test_every_program_names_version_commit_and_format(self):
        commits = set()
        for name, program in PROGRAMS.items():
            said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            found = re.fullmatch(r"([a-z-]+) ([0-9.]+) \((?:commit ([0-9a-f]{12}(?:-dirty)?), )?disk format (\d+)\)\n",
                                 said)
            self.assertIsNotNone(found, said)
            self.assertEqual((found[1], found[2]), (name, defined("version.h", "MDFS_VERSION_STRING")))
            self.assertEqual(found[4] + "u", defined("ondisk.h", "MDFS_FORMAT_VERSION"))
            commits.add(found[3])
        self.assertEqual(len(commits), 1, commits)
        head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=SOURCE, capture_output=True, text=True)
        if head.returncode == 0 and (SOURCE / ".git").exists():
            self.assertNotEqual(commits, {None}, "the sources are a checkout of git")


if __name__ == "__main__":
    unittest.main(verbosity=2)
