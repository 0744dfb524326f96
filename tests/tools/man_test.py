"""Every option of --help is in the manual page, and the other way round.

usage: man_test.py MAN_FOLDER MDFS MKMDFS MDFSCK MDFS_SIM
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import subprocess
import sys
import unittest

MAN = pathlib.Path(sys.argv.pop(1))
MDFS, MKMDFS, MDFSCK, MDFS_SIM = (os.path.abspath(sys.argv.pop(1)) for _ in range(4))
EVERYWHERE = {"-h", "--help", "--version"}


def help_text(*command):
    result = subprocess.run([*command, "--help"], capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stderr}")
    return result.stdout


def options_of_help(text):
    """The words with dashes that begin the lines under "Options:"."""
    found = set()
    for line in text.split("Options:", 1)[-1].splitlines():
        match = re.match(r"  (-[^ ]+)", line)
        if match:
            found.update(match.group(1).split(","))
    return found


def options_of_page(text):
    """The words with dashes in the lines that head an indented paragraph."""
    found = set()
    for line in re.findall(r"^(\*-.*)\n\t", text, re.MULTILINE):
        found.update(re.findall(r"\*(--?[a-z][a-z-]*)\*", line))
    return found


class Manual(unittest.TestCase):
    def compare(self, text, page):
        shown, written = options_of_help(text) - EVERYWHERE, options_of_page(page) - EVERYWHERE
        self.assertEqual(sorted(shown - written), [], "in --help but not in the manual")
        self.assertEqual(sorted(written - shown), [], "in the manual but not in --help")

    def test_the_comparison_sees_a_difference(self):
        page = "*-o*, *--output* _FILE_\n\tA file.\n"
        self.assertEqual(options_of_page(page), {"-o", "--output"})
        self.assertEqual(options_of_help("Options:\n  -o,--output TEXT  A file\n"), {"-o", "--output"})
        with self.assertRaises(AssertionError):
            self.compare("Options:\n  -o,--output TEXT  A file\n  --more  More\n", page)

    def test_mkmdfs(self):
        self.compare(help_text(MKMDFS), (MAN / "mkmdfs.8.scd").read_text())

    def test_mdfsck(self):
        self.compare(help_text(MDFSCK), (MAN / "mdfsck.8.scd").read_text())

    def test_mdfs_sim(self):
        page = (MAN / "mdfs-sim.1.scd").read_text()
        commands = re.findall(r"^  ([a-z]+) ", help_text(MDFS_SIM).partition("Subcommands:")[2], re.MULTILINE)
        self.assertIn("compare", commands)
        shown = set().union(*(options_of_help(help_text(MDFS_SIM, command)) for command in commands)) - EVERYWHERE
        self.assertEqual(sorted(shown), sorted(options_of_page(page)))
        for command in commands:
            self.assertIn(f"*{command}*", page)

    def test_every_verb_of_mdfs(self):
        sections = re.split(r"^## mdfs ", (MAN / "mdfs.1.scd").read_text(), flags=re.MULTILINE)[1:]
        written = {}
        for section in sections:
            head, text = section.split("\n", 1)
            words = [word for word in head.split() if re.fullmatch("[a-z]+", word)]
            written[" ".join(words)] = text.split("\n# ")[0]
        self.assertEqual(sorted(written), sorted(self.verbs()))
        for verb, text in written.items():
            with self.subTest(verb):
                self.compare(help_text(MDFS, *verb.split()), text)

    def verbs(self):
        def below(*command):
            part = help_text(MDFS, *command).partition("Subcommands:")[2]
            return re.findall(r"^  ([a-z]+) ", part, re.MULTILINE)
        for noun in below():
            verbs = below(noun)
            yield from (f"{noun} {verb}" for verb in verbs) if verbs else [noun]

    def test_mount_options(self):
        shown = help_text(MDFS, "mount").partition("Mount options")[2].splitlines()[1:]
        names = {re.match(r"  ([a-z_]+)", line).group(1) for line in shown if line.strip()}
        page = (MAN / "mount.mdfs.8.scd").read_text()
        self.assertEqual(names, set(re.findall(r"^\*([a-z_]+)\*(?:\[?=_[A-Z]+_\]?)?\n\t", page, re.MULTILINE)))


if __name__ == "__main__":
    unittest.main()
