"""A bad value is a usage error: exit status 2, and a message that names the option.

usage: values_test.py MDFS
"""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys
import tempfile
import unittest

MDFS = os.path.abspath(sys.argv.pop(1))


def run(*words):
    return subprocess.run([MDFS, *words], capture_output=True, text=True, timeout=60)


def help_of(verb):
    return run(*verb, "--help").stdout


def verbs(verb=()):
    """All commands without commands of their own."""
    below = help_of(verb).split("Subcommands:", 1)
    if len(below) == 1:
        return [verb]
    names = re.findall(r"^  ([a-z][-a-z]*)", below[1], re.M)
    return [leaf for name in names for leaf in verbs((*verb, name))]


def numeric_options(verb):
    return re.findall(r"^  (?:-\w,)?(--[-a-z]+) (?:UINT|INT|FLOAT)\b", help_of(verb), re.M)


class Values(unittest.TestCase):
    def refused(self, option, *words):
        result = run(*words)
        self.assertEqual(result.returncode, 2, (words, result.stderr))
        self.assertIn(option, result.stderr, words)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_no_numeric_option_takes_a_word_or_nothing(self):
        tried = 0
        for verb in verbs():
            for option in numeric_options(verb):
                with self.subTest(verb=verb, option=option):
                    self.refused(option, *verb, option, "many")
                    self.refused(option, *verb, option)
                    tried += 1
        self.assertGreater(tried, 8)

    def test_values_out_of_range_are_refused_by_name_before_anything_is_looked_for(self):
        create = ("image", "create", "/none/a", "--shape", "64x64")
        for option, value, words in (
            ("--channels", "0", create), ("--channels", "70000", create), ("--channels", "-1", create),
            ("--disks", "0", create), ("--extent", "0x4", create), ("--shape", "4x0", ("image", "create", "/none/a")),
            ("--threshold", "0.5", ("defrag", "start", "/none")), ("--threshold", "nan", ("defrag", "start", "/none")),
            ("--threshold", "2000", ("defrag", "start", "/none")),
        ):
            with self.subTest(option=option, value=value):
                self.refused(option, *words, option, value)

    def test_commands_without_operands_are_usage_errors(self):
        for verb in verbs():
            with self.subTest(verb=verb):
                result = run(*verb)
                self.assertEqual(result.returncode, 2, (verb, result.stderr, result.stdout))

    def test_a_disk_that_may_be_absent_is_no_error_and_another_is(self):
        with tempfile.TemporaryDirectory() as place:
            absent = os.path.join(place, "absent")
            result = run("mount", "-o", "nofail", absent, place)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(run("mount", absent, place).returncode, 1)
            self.refused("nosuchoption", "mount", "-o", "nofail,nosuchoption=1", absent, place)


if __name__ == "__main__":
    unittest.main()
