"""Counts the results of a `meson test` run, one for each GoogleTest case, and prints "N passed, N failed".

usage: count_tests.py DIRECTORY STATUS, with the directory of meson's logs and the exit status of `meson test`.
The exit status is 0 only if something ran, nothing failed and meson itself was content.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

GOOD = {"OK", "EXPECTEDFAIL"}
NOT_RUN = {"SKIP"}
# Meson copies what tests print as it is; a bar for a terminal holds characters that XML does not know.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def gtest_cases(logs):
    """Counts of (passed, failed, skipped) GoogleTest cases by meson's name of the test."""
    counts = {}
    junit = logs / "testlog.junit.xml"
    if not junit.exists():
        return counts
    text = NOT_XML.sub("", junit.read_text(encoding="utf-8", errors="replace"))
    for suite in ElementTree.fromstring(text).iter("testsuite"):
        cases = suite.findall("testcase")
        failed = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
        skipped = sum(1 for case in cases if case.find("skipped") is not None)
        # Meson names a suite of one GoogleTest program PROJECT.TEST.SUITE; TEST may be "project:group / name".
        parts = suite.get("name", "").split(".")
        if len(parts) < 3:
            continue
        name = parts[1].split(" / ")[-1]
        old = counts.get(name, (0, 0, 0))
        counts[name] = (old[0] + len(cases) - failed - skipped, old[1] + failed, old[2] + skipped)
    return counts


def main():
    logs, meson_status = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    log = logs / "testlog.json"
    tests = [json.loads(line) for line in log.read_text().splitlines() if line] if log.exists() else []
    cases = gtest_cases(logs)
    passed = failed = skipped = 0
    for test in tests:
        name = test["name"].split(" / ")[-1]
        good, bad, not_run = cases.get(name, (0, 0, 0))
        if test["result"] in NOT_RUN:
            skipped += 1
        elif test["result"] in GOOD:
            passed += max(good, 0 if not_run else 1)
            skipped += not_run
        else:
            passed += good
            skipped += not_run
            failed += max(bad, 1)
    if meson_status != 0 and failed == 0:
        failed = 1
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
