#!/usr/bin/env python3
"""Runs every command of doc/TUTORIAL.md on real mounts, and compares the output that it shows.
Runs the start of README.md as well.

usage: tutorial_test.py TUTORIAL.md README.md [--show PART]

A `sh` block holds commands; a `text` block after it shows their output. Each part (a heading of the
second level) runs in one bash, in a new folder, and ends at the first command that fails. In the
output three dots stand for any text, on a line of their own for any lines. UUIDs, dates, times with
a unit, rates and the number of blanks may differ. Everything else is compared as it is.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SKIP = 77
LIMIT_S = 150
# conf: lines of a configuration file, which nothing runs. python: lines for libraries of PyPI, which `./dev clients`
# runs.
LANGUAGES = {"sh", "text", "conf", "python"}
VARIES = [
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?", "DATE"),
    (r"\b\d+(\.\d+)? ([KMG]i?B|[KMG]?B)/s", "RATE"),
    (r"\b\d+(\.\d+)? (ms|us|s|min)\b", "TIME"),
]
# Programs of other packages, and the package of Debian that brings them.
NEEDED = {"ffmpeg": "ffmpeg", "ffprobe": "ffmpeg", "oiiotool": "openimageio-tools",
          "gdal_translate": "gdal-bin", "rsync": "rsync", "tar": "tar", "jq": "jq",
          "getfattr": "attr", "gst-launch-1.0": "gstreamer1.0-tools",
          "cc": "gcc", "pkg-config": "pkg-config", "smbd": "samba", "smbclient": "smbclient"}


class Block:
    """Commands, and what the tutorial shows of their output."""

    def __init__(self, line):
        self.line = line
        self.commands = []
        self.shown = None


def parts_of(text, run_python=False):
    """The blocks of each part, by its heading. Refuses a fence that is neither run nor compared. Python is run if it
    needs no packages but NumPy."""
    parts, heading, language, target = {}, None, None, None
    for number, line in enumerate(text.split("\n"), 1):
        if language is None and line.startswith("## "):
            heading = line[3:]
            parts[heading] = []
        elif line.startswith("```") and language is None:
            language = line[3:]
            if language not in LANGUAGES:
                raise ValueError(f"line {number}: '{language}' is none of {sorted(LANGUAGES)}")
            if heading is None:
                raise ValueError(f"line {number}: a block before the first part")
            if language == "sh" or (language == "python" and run_python):
                parts[heading].append(Block(number))
                target = parts[heading][-1].commands
                if language == "python":
                    target.append("python3 - <<'END OF PYTHON'")
            elif language == "text":
                if not parts[heading] or parts[heading][-1].shown is not None:
                    raise ValueError(f"line {number}: an output without commands before it")
                target = parts[heading][-1].shown = []
            else:
                target = []
        elif line == "```":
            if language == "python" and run_python:
                target.append("END OF PYTHON")
            language = None
        elif language is not None:
            target.append(line)
    return {name: blocks for name, blocks in parts.items() if blocks}


def start_of(readme):
    """The part of README.md that a reader runs, with the picture that the reader has."""
    section = readme.split("\n## Start\n")[1].split("\n## ")[0]
    blocks = parts_of("## Start\n" + section, run_python=True)["Start"]
    blocks[0].commands.insert(0, "oiiotool --pattern noise 1024x1024 3 -d uint8 -o picture.png")
    return blocks


def without_what_varies(line):
    for pattern, name in VARIES:
        line = re.sub(pattern, name, line)
    return re.sub(r"\s+", " ", line).strip()


def same_line(shown, printed):
    """Are they equal but for what varies, where '...' stands for any text?"""
    pattern = ".*".join(map(re.escape, without_what_varies(shown).split("...")))
    return re.fullmatch(pattern, without_what_varies(printed)) is not None


def matches(shown, printed):
    """Are these lines the printed ones, where '...' stands for any lines?"""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[left_out:]) for left_out in range(len(printed) + 1))
    return bool(printed) and same_line(shown[0], printed[0]) and matches(shown[1:], printed[1:])


def missing_packages(blocks):
    text = "\n".join(line for block in blocks for line in block.commands)
    return sorted(package for program, package in NEEDED.items()
                  if re.search(rf"\b{program}\b", text) and shutil.which(program) is None)


def outputs_of(blocks, folder, environment):
    """What each block prints, and None, or a complaint about the one that failed."""
    mark = "=== block "
    script = ["set -euo pipefail", "exec 2>&1"]
    for block in blocks:
        script += [f"echo; echo '{mark}{block.line}'", *block.commands]
    log = folder / ".output"
    with log.open("wb") as out:
        bash = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=folder, env=environment,
                                stdout=out, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            status = bash.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(bash.pid, signal.SIGKILL)
            status = f"none after {LIMIT_S} s"
            bash.wait()
    found = re.split(rf"\n?{mark}(\d+)\n", log.read_text(errors="replace"))
    printed = {int(line): text.rstrip("\n") for line, text in zip(found[1::2], found[2::2])}
    if status == 0:
        return printed, None
    last = max(printed, default=0)
    return printed, f"line {last}: the block ends with status {status}:\n{printed.get(last, '')}"


def complaints_about(blocks, folder, environment):
    printed, complaint = outputs_of(blocks, folder, environment)
    if complaint:
        return [complaint]
    complaints = []
    for block in blocks:
        lines = printed[block.line].split("\n") if printed[block.line] else []
        if block.shown is not None and not matches(block.shown, lines):
            complaints.append("\n".join([f"line {block.line}: the tutorial shows", *block.shown,
                                         "but this was printed:", *lines]))
    return complaints


def environment_with_programs():
    """The programs come first in the path, then those of Debian, whose Python has numpy."""
    programs = ("MDFS", "MKMDFS", "MDFSCK")
    folders = {os.path.dirname(os.environ[name]) for name in programs if name in os.environ}
    environment = dict(os.environ, LC_ALL="C.UTF-8")
    environment["PATH"] = ":".join([*sorted(folders), "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
    return environment


def clean_up(folder):
    pid_file = folder / "samba" / "smbd.pid"
    if pid_file.exists():
        try:
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
        except ProcessLookupError:
            pass
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        mount = line.split()[1]
        if mount.startswith(str(folder) + "/"):
            subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(folder)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mdfs-tutorial-"))
        self.folder.chmod(0o755)
        self.addCleanup(clean_up, self.folder)


class RunnerTest(Folder):
    """The runner sees what it is there to see."""

    def complaints(self, *lines):
        blocks = parts_of("\n".join(["## Part", *lines, ""]), run_python=True)["Part"]
        return complaints_about(blocks, self.folder, environment_with_programs())

    def one_complaint(self, words, *lines):
        complaints = self.complaints(*lines)
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(words, complaints[0])

    def test_a_command_that_fails_is_seen(self):
        self.one_complaint("line 2: the block ends with status 3", "```sh", "(exit 3)", "ls", "```")
        self.one_complaint("status 1", "```sh", "false | cat", "```")

    def test_another_output_is_seen(self):
        self.one_complaint("this was printed:\n5", "```sh", "echo 5", "```", "```text", "6", "```")
        self.one_complaint("printed", "```sh", "seq 3", "```", "```text", "1", "...", "2", "```")
        self.one_complaint("this was printed", "```sh", "echo ab", "```", "```text", "b...", "```")
        self.one_complaint("this was printed", "```sh", "echo a", "```", "```text", "```")

    def test_what_varies_and_what_is_left_out_passes(self):
        self.assertEqual(self.complaints(
            "```sh", "name=x", "echo took 7.25 ms; seq 4", "```",
            "```text", "took 12 ms", "1", "...", "4", "```",
            "```sh", "echo $name is a name >&2", "```", "```text", "x is ...", "```"), [])

    def test_python_is_run_beside_the_commands(self):
        self.one_complaint("this was printed:\n5", "```sh", "echo 5 > five", "```", "```python",
                           "print(open('five').read().strip())", "```", "```text", "6", "```")
        self.one_complaint("status 1", "```python", "assert False", "```")

    def test_a_block_that_would_not_be_run_is_refused(self):
        for fence in ("```", "```bash", "```text"):
            with self.assertRaises(ValueError):
                self.complaints(fence, "mdfs", "```")


class TutorialTest(Folder):
    pass


def part_test(name, blocks):
    def test(self):
        lacking = missing_packages(blocks)
        self.assertEqual(lacking, [], f"'{name}' needs packages; run ./dev setup")
        complaints = complaints_about(blocks, self.folder, environment_with_programs())
        self.assertEqual(complaints, [], "\n" + "\n".join(complaints))
    return test


def show(blocks):
    """For who writes the tutorial: what the blocks print."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mdfs-tutorial-"))
    folder.chmod(0o755)
    try:
        printed, complaint = outputs_of(blocks, folder, environment_with_programs())
        for block in blocks:
            print(*["$ " + line for line in block.commands], sep="\n")
            print(printed.get(block.line, "(not run)"))
        print(complaint or "all blocks ended well")
    finally:
        clean_up(folder)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("SKIPPED: mounting needs root and /dev/fuse")
        sys.exit(SKIP)
    tutorial, readme = (pathlib.Path(path).read_text() for path in sys.argv[1:3])
    parts = {"Start": start_of(readme)} | parts_of(tutorial)
    if sys.argv[3:4] == ["--show"]:
        for name, blocks in parts.items():
            if sys.argv[4] in name:
                show(blocks)
        return
    for number, (name, blocks) in enumerate(parts.items(), 1):
        words = re.sub(r"\W+", "_", name).strip("_").lower()
        setattr(TutorialTest, f"test_{number}_{words}", part_test(name, blocks))
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
