"""The manual page ioctl_mdfs(2) names every command and structure, and its example is compiled and run.

usage: ioctl_page_test.py SOURCE_ROOT
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import harness

SOURCE = pathlib.Path(sys.argv.pop())
PAGE = (SOURCE / "man" / "ioctl_mdfs.2.scd").read_text()
HEADER = (SOURCE / "include" / "mdfs" / "ioctl.h").read_text()
HEIGHT, WIDTH = 300, 400
WINDOW_TOP, WINDOW_LEFT, WINDOW_HEIGHT, WINDOW_WIDTH = 50, 100, 30, 40  # as in the example


def commands(header):
    """The commands that a header defines, each with its structure, or None."""
    found = re.findall(r"^#define (MDFS_IOC_[A-Z_]+)(?:\([a-z]+\))?[ \\\n]+_IO(?:C|R|W|WR)?\((.*)\)$", header,
                       re.MULTILINE)
    return {name: (re.search(r"struct (\w+)", rest) or [None, None])[1] for name, rest in found}


def described(page):
    """The commands that head a paragraph of a page, each with its structure, or None."""
    found = re.findall(r"^\*(MDFS_IOC_[A-Z_]+)\*(?:\([^)]*\))? \((?:struct (\w+)|no argument)", page, re.MULTILINE)
    return {name: structure or None for name, structure in found}


class IoctlPage(harness.MountTest):
    def test_every_command_and_structure_is_described(self):
        self.assertGreater(len(commands(HEADER)), 15)
        self.assertEqual(described(PAGE), commands(HEADER))

    def test_a_command_that_is_missing_is_seen(self):
        more = HEADER + "#define MDFS_IOC_MORE _IOR(MDFS_IOC_MAGIC, 99, struct mdfs_ioc_more)\n"
        self.assertEqual(commands(more).items() - described(PAGE).items(), {("MDFS_IOC_MORE", "mdfs_ioc_more")})

    def test_every_constant_it_names_exists(self):
        headers = HEADER + (SOURCE / "include" / "mdfs" / "ondisk.h").read_text()
        named = set(re.findall(r"\bMDFS_[A-Z_]*[A-Z]\b(?!\\_)", PAGE))
        self.assertEqual({name for name in named if not re.search(rf"#define {name}\b", headers)}, set())

    def test_the_example_reads_a_window(self):
        folder = tempfile.TemporaryDirectory(prefix="mdfs-test-")
        self.addCleanup(folder.cleanup)
        program = os.path.join(folder.name, "window")
        example = re.search(r"^```\n(.*?)^```\n", PAGE.split("# EXAMPLE")[1], re.DOTALL | re.MULTILINE)[1]
        harness.write_all(program + ".c", example.encode())
        harness.run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", SOURCE / "include", "-o", program,
                    program + ".c")
        image = os.path.join(self.dir, "scan")
        samples = random.Random(5).randbytes(HEIGHT * WIDTH)
        harness.make_image(image, [HEIGHT, WIDTH])
        harness.write_all(image, samples)
        done = subprocess.run([program, image], capture_output=True, check=True)
        rows = range(WINDOW_TOP, WINDOW_TOP + WINDOW_HEIGHT)
        self.assertEqual(done.stdout, b"".join(
            samples[y * WIDTH + WINDOW_LEFT:][:WINDOW_WIDTH] for y in rows))
        self.assertRegex(done.stderr, rb"^[1-9]\d* extents, \d+ of them in memory\n$")
        harness.write_all(os.path.join(self.dir, "plain"), b"no image")
        refused = subprocess.run([program, os.path.join(self.dir, "plain")], capture_output=True, check=False)
        self.assertEqual((refused.returncode, refused.stdout), (1, b""))
        self.assertIn(b"not an image on a mounted volume: Invalid argument", refused.stderr)


if __name__ == "__main__":
    harness.main()
