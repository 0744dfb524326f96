#!/usr/bin/env python3
"""Checks the form of the sources: opening sentence, SPDX line, length of lines and files, no leftovers, and in
programs no output but through tools/support. Of documents and other texts, the length of lines.

usage: files.py SOURCE_ROOT
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

FOLDERS = ["src", "include", "lib", "gst", "tools", "tests", "bench"]
SUFFIXES = {".h", ".cc", ".c", ".py", ".sh"}
LINE_LIMIT = 120
# Documents, which people read beside a terminal. A row of a table is one line.
DOCUMENTS = ["*.md", "doc/*.md", "bench/*.md", "man/*.scd"]
DOCUMENT_LINE_LIMIT = 100
# Other texts, with lines as long as those of sources.
OTHER_TEXTS = ["dev", ".ci/run", "meson.build", "meson_options.txt", "completion/*", "debian/*", "debian/tests/*",
               "systemd/*", "man/meson.build", "python/**/*.py", "python/*.toml",
               *(f"{folder}/**/meson.build" for folder in FOLDERS)]
FILE_LIMIT = 600
OPENING_LINES = 25  # the sentence and the SPDX line are in these
SPDX_IN_PROSE = re.compile(r"^(//|#|/?\*).*\w.* SPDX-License-Identifier:")
MARKER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b")

# Programs print through support/streams.h and support/json_output.h, which escape control characters.
DIRECT_OUTPUT = re.compile(r"\bfmt::print\(|\bstd::(cout|cerr|puts|fputs|f?printf|fwrite)\b|(\.|->)dump\(")
PRINTING = {"tools/support/streams.cc", "tools/support/json_output.cc", "tools/placement_search.cc"}


def opening_sentence(path, lines):
    """Does the file begin with a comment that holds a whole sentence?"""
    lines = lines[1:] if lines and lines[0].startswith("#!") else lines
    start = {".py": ('"""', "# "), ".sh": ("# ",)}.get(path.suffix, ("// ", "/* "))
    if not lines or not lines[0].startswith(start):
        return False
    words = " ".join(line.lstrip("/*# ") for line in lines[:OPENING_LINES - 1])
    return re.match(r'"*[A-Za-z0-9`].{5,}?[.:]( |$)', words) is not None


def check_file(path, shown):
    lines = path.read_text().split("\n")
    complaints = []
    if not opening_sentence(path, lines):
        complaints.append(f"{shown}:1: the first line is a comment of one sentence")
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:OPENING_LINES]):
        complaints.append(f"{shown}:2: no SPDX line")
    for number, line in enumerate(lines[:OPENING_LINES], 1):
        if SPDX_IN_PROSE.search(line):
            complaints.append(f"{shown}:{number}: the SPDX line has something before it")
    if lines[-1] != "":
        complaints.append(f"{shown}:{len(lines)}: the last line has no end")
    if len(lines) > FILE_LIMIT:
        complaints.append(f"{shown}: {len(lines)} lines, more than {FILE_LIMIT}: split it")
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_LIMIT:
            complaints.append(f"{shown}:{number}: {len(line)} columns, more than {LINE_LIMIT}")
        if line != line.rstrip():
            complaints.append(f"{shown}:{number}: blanks at the end of the line")
        if "\t" in line:
            complaints.append(f"{shown}:{number}: a tab")
        if str(shown).startswith("tools/") and str(shown) not in PRINTING and DIRECT_OUTPUT.search(line):
            complaints.append(f"{shown}:{number}: prints past support/streams.h or support/json_output.h")
        if MARKER.search(line):
            complaints.append(f"{shown}:{number}: a note of unfinished work")
    return complaints


def check_lines(path, shown, limit):
    return [f"{shown}:{number}: {len(line)} columns, more than {limit}"
            for number, line in enumerate(path.read_text().split("\n"), 1)
            if len(line) > limit and not line.startswith("|")]


def check_tree(root):
    complaints = []
    for pattern in DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            complaints += check_lines(path, path.relative_to(root), DOCUMENT_LINE_LIMIT)
    for pattern in OTHER_TEXTS:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                complaints += check_lines(path, path.relative_to(root), LINE_LIMIT)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                complaints += check_file(path, path.relative_to(root))
    return complaints


def main():
    complaints = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(complaints) or "files are in form")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
