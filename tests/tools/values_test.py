"""A bad value is a usage error: exit status 2, and a message that names the option.

usage: values_test.py MDFS MKMDFS MDFS_SIM
"""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys
import tempfile
import unittest

MDFS, MKMDFS, MDFS_SIM = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))


def run(*words, program=MDFS):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=60)


def verbs(program=MDFS, verb=()):
    """All commands without commands of their own."""
    below = run(*verb, "--help", program=program).stdout.split("Subcommands:", 1)
    if len(below) == 1:
        return [verb]
    names = re.findall(r"^  ([a-z][-a-z]*)", below[1], re.M)
    return [leaf for name in names for leaf in verbs(program, (*verb, name))]


def numeric_options(program, verb):
    shown = run(*verb, "--help", program=program).stdout
    return re.findall(r"^  (?:-\w,)?(--[-a-z]+) (?:UINT|INT|FLOAT)\b", shown, re.M)


BELOW_ZERO = {"--step"}  # options that take such numbers, too


class Values(unittest.TestCase):
    def refused(self, option, *words, program=MDFS):
        result = run(*words, program=program)
        self.assertEqual(result.returncode, 2, (words, result.stderr))
        self.assertIn(option, result.stderr, words)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.stderr

    def test_no_numeric_option_takes_a_word_or_nothing(self):
        tried = 0
        for program in (MDFS, MDFS_SIM):
            for verb in verbs(program):
                for option in numeric_options(program, verb):
                    with self.subTest(program=program, verb=verb, option=option):
                        below = () if option in BELOW_ZERO else ("-1",)
                        for value in ("many", "1e400x", "1e999", *below, "nan", "0x10", " 1"):
                            message = self.refused(option, *verb, f"{option}={value}", program=program)
                            self.assertIn(f"{value} must be a", message)
                        for value in ((), ("",)):
                            self.refused(option, *verb, option, *value, program=program)
                        tried += 1
        self.assertGreater(tried, 60)

    def test_values_out_of_range_are_refused_by_name_before_anything_is_looked_for(self):
        create = ("image", "create", "/none/a", "--shape", "64x64")
        for option, value, words in (
            ("--channels", "0", create), ("--channels", "70000", create), ("--channels", "-1", create),
            ("--channels", "", create), ("--disks", "", create),
            ("--disks", "0", create), ("--disks", "65", create), ("--axes", "\u00e9", create),
            ("--axes", "YX", create), ("--row-offset", "4294967296", create),
            ("--extent", "0x4", create), ("--shape", "4x0", ("image", "create", "/none/a")),
            ("--axes", "yy", create), ("--axes", "yc", create), ("--axes", "zyx", create),
            ("--extent", "5000x5000", create), ("--shape", "4611686018427387904x2", ("image", "create", "/none/a")),
            ("--threshold", "0.5", ("defrag", "start", "/none")), ("--threshold", "nan", ("defrag", "start", "/none")),
            ("--threshold", "2000", ("defrag", "start", "/none")),
        ):
            with self.subTest(option=option, value=value):
                self.refused(option, *words, option, value)

    def test_values_of_the_simulator_are_refused_by_name(self):
        for option, value, verb in (
            ("--clients", "0", "closed"), ("--clients", "nan", "closed"), ("--think", "-1 s", "closed"),
            ("--think", "nan", "closed"), ("--loads", "0", "poisson"), ("--loads", "nan", "poisson"),
            ("--loads", "1e400/s", "poisson"), ("--frames", "0", "streams"), ("--slice", "0 s", "streams"),
            ("--rate", "0", "streams"), ("--rate", "nan", "streams"), ("--windows", "19", "rebuild"),
            ("--slice", "inf", "streams"), ("--frame", "-1", "streams"), ("--bytes-per-pixel", "0", "random"),
            ("--shape", "4x0", "random"), ("--extent", "0x1", "random"), ("--size", "0x1", "random"),
            ("--disks", "", "random"),
            ("--filled", "nan", "random"), ("--row-offset", "4097", "random"), ("--sizes", "0", "sweep"),
            ("--sizes", "0", "calibrate"), ("--batch", "nan", "calibrate"), ("--warm-up", "nan", "closed"),
        ):
            with self.subTest(option=option, value=value):
                self.refused(option, verb, "sata-disk", option, value, program=MDFS_SIM)

    def test_values_of_mkmdfs_are_refused_by_name_before_a_disk_is_looked_for(self):
        for option, value in (("--size", "0"), ("--size", "-1"), ("--size", "nan"), ("--size", ""),
                              ("--block-size", "0"), ("--block-size", "4097"), ("--block-size", "128K"),
                              ("--zone-size", "0"), ("--zone-size", "many"), ("--weights", "0"), ("--weights", "257"),
                              ("--policy", "many"), ("--grow-to", "many"), ("--label", "x" * 64),
                              ("--label", "a\nb")):
            with self.subTest(option=option, value=value):
                self.refused(option, option, value, "/none/disk", program=MKMDFS)

    def test_a_size_is_refused_as_it_was_typed_and_under_its_own_option(self):
        with tempfile.TemporaryDirectory() as place:
            disk = os.path.join(place, "disk")
            for option, value, size in (("--grow-to", "1M", "16M"), ("--grow-to", "99999T", "16M"),
                                        ("--size", "99999999999999999999G", "99999999999999999999G"),
                                        ("--size", "1K", "1K"), ("--grow-to", "99999999999999999999G", "16M")):
                with self.subTest(option=option, value=value):
                    grow = ["--grow-to", value] if option == "--grow-to" else []
                    result = run("--size", size, *grow, disk, program=MKMDFS)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertRegex(result.stderr, rf"{option} '?{value}\b")
                    self.assertEqual(os.listdir(place), [])

    def test_a_mount_point_that_is_a_file_is_a_usage_error(self):
        with tempfile.NamedTemporaryFile() as file:
            self.refused(file.name, "mount", "/none/disk", file.name)

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
