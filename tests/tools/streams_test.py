"""Claims about programs whose standard streams are closed or cannot be written."""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MDFS, MKMDFS, MDFSCK, SIM = (os.path.abspath(path) for path in sys.argv[1:5])
del sys.argv[1:5]
OUTPUT_FAILED = 5
NOT_REPORTED = 8  # of mdfsck, added to its other status


class Streams(unittest.TestCase):
    def setUp(self):
        # Files of a tmpfs take O_DIRECT writes of any length, as a message is.
        parent = "/dev/shm" if os.path.isdir("/dev/shm") else "/var/tmp"
        folder = tempfile.TemporaryDirectory(prefix="mdfs-streams-", dir=parent)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def shell(self, *words, streams=""):
        """The status of a program; `streams` are redirections of the shell."""
        script = f'exec "$@" {streams}'
        done = subprocess.run(["sh", "-c", script, "sh", *map(str, words)], cwd=self.folder, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.said = done.stderr
        return done.returncode

    def make(self, *names):
        self.assertEqual(self.shell(MKMDFS, "--size", "8M", "--sparse", *names), 0, self.said)

    def test_an_error_has_its_status_when_standard_error_cannot_be_written(self):
        (self.folder / "data").write_bytes(b"x" * 100)
        for streams in ("2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"):
            for status, *words in ((2, MDFS, "disk", "lst"), (1, MDFS, "image", "info", "nothere"),
                                   (8, MDFSCK, "nothere"), (16, MDFSCK, "--wrong"), (2, MKMDFS, "--wrong"),
                                   (2, SIM, "nothing")):
                with self.subTest(streams=streams, words=words):
                    self.assertEqual(self.shell(*words, streams=streams), status)

    def test_a_message_never_goes_into_a_disk(self):
        self.make("z0", "z1")
        with open(self.folder / "z1", "r+b") as disk:
            disk.seek(100)
            disk.write(b"damaged!")
        label = (self.folder / "z0").read_bytes()[:4096]
        for streams in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            self.shell(MDFSCK, "-n", "z0", "z1", streams=streams)
            self.assertEqual((self.folder / "z0").read_bytes()[:4096], label, streams)
        self.shell(MDFSCK, "-p", "z0", streams=">&- 2>&-")
        self.assertEqual(self.shell(MDFSCK, "-n", "z0", "z1"), 0, "the repair, and nothing else, was written")

    def test_a_volume_that_was_made_but_not_reported_is_told_by_the_status(self):
        for number, streams in enumerate((">/dev/full", ">&-")):
            self.assertEqual(self.shell(MKMDFS, "--size", "8M", "--sparse", f"d{number}", streams=streams),
                             OUTPUT_FAILED)
            self.assertIn("mkmdfs: the command has done its work, but its output cannot be written", self.said)
            self.assertEqual(self.shell(MDFSCK, f"d{number}"), 0)

    def test_the_result_of_a_check_stays_in_the_status_when_the_report_cannot_be_written(self):
        self.make("d0", "d1")
        self.assertEqual(self.shell(MDFSCK, "d0", streams=">/dev/full"), NOT_REPORTED)
        os.unlink(self.folder / "d1")
        self.assertEqual(self.shell(MDFSCK, "d0", streams=">/dev/full"), 4 | NOT_REPORTED)
        self.assertEqual(self.shell(MDFSCK, "--json", "d0", streams=">/dev/full"), 4 | NOT_REPORTED)

    def test_help_that_cannot_be_written_is_no_success(self):
        for program, status in ((MDFS, OUTPUT_FAILED), (MKMDFS, OUTPUT_FAILED), (SIM, OUTPUT_FAILED),
                                (MDFSCK, NOT_REPORTED)):
            self.assertEqual(self.shell(program, "--help", streams=">/dev/full"), status, program)
            self.assertEqual(self.shell(program, "--version", streams=">&-"), status, program)


if __name__ == "__main__":
    unittest.main()
