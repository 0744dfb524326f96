"""The last line of a test run, made from logs of which all is known."""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

COUNT = pathlib.Path(__file__).with_name("count_tests.py")
SUITE = ('<testsuite name="mdfs.mdfs:unit / base.A"><testcase/><testcase/><testcase><failure/></testcase></testsuite>'
         '<testsuite name="mdfs"><testcase><system-out>{}</system-out></testcase></testsuite>')


class CountTests(unittest.TestCase):
    def count(self, results, status=0, printed=""):
        """The exit status and the last line."""
        with tempfile.TemporaryDirectory() as folder:
            logs = pathlib.Path(folder)
            lines = [json.dumps({"name": f"mdfs:unit / {name}", "result": result}) for name, result in results.items()]
            (logs / "testlog.json").write_text("\n".join(lines))
            xml = "<?xml version='1.0' encoding='utf8'?><testsuites>" + SUITE.format(printed) + "</testsuites>"
            (logs / "testlog.junit.xml").write_text(xml, encoding="utf-8")
            done = subprocess.run([sys.executable, COUNT, logs, str(status)], capture_output=True, text=True,
                                  check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()[-1]

    def test_every_case_counts(self):
        self.assertEqual(self.count({"base": "FAIL", "mount": "OK"}, 1), (1, "3 passed, 1 failed"))
        self.assertEqual(self.count({"mount": "OK", "canary": "EXPECTEDFAIL"}), (0, "2 passed, 0 failed"))

    def test_nothing_and_a_discontented_meson_are_failures(self):
        self.assertEqual(self.count({}), (1, "0 passed, 0 failed"))
        self.assertEqual(self.count({"mount": "OK"}, 1), (1, "1 passed, 1 failed"))

    def test_a_test_may_print_what_no_xml_may_hold(self):
        self.assertEqual(self.count({"mount": "OK"}, printed="\r[##  ] \x1b[K\x00"), (0, "1 passed, 0 failed"))


if __name__ == "__main__":
    unittest.main()
