#!/usr/bin/env python3
"""Checks that every file, folder, name of the sources and test that a document names is there.

usage: paths.py SOURCE_ROOT
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

DOCUMENTS = ["*.md", "doc/*.md", "bench/*.md", "man/*.scd"]
TOP = "bench|completion|debian|doc|gst|include|lib|man|python|src|systemd|tests|tools"
# doc/FORMAT.md, engine/cache.h, ../doc/a.svg; tests/safety, `tests/mount/`.
FILE = re.compile(r"(?<![\w./@%*-])((?:\.\./)?(?:[\w-]+/)*[\w-]+\.(?:h|cc|c|py|md|svg|scd))\b(?![\w/*])")
FOLDER = re.compile(rf"(?<![\w./@%-])((?:{TOP})(?:/[\w-]+)+)(?![\w.@%*/-]*[@%*.]\w)")
# `Store`, `Engine::write`, `state_mutex`, `FullVolumeTest.ATruncate..`, in quotes.
NAME = re.compile(r"`((?:[A-Z][A-Za-z0-9]*[a-z]\w*|[A-Za-z]\w*_\w*)(?:(?:::|\.)\w+)*)(?:\(\))?`")
TEST = re.compile(r"(?:mount|torture)_(\w+)")  # as meson names them
SOURCES = {".h", ".cc", ".c", ".py"}
NOT_HERE = {"bench.md", "program.c"}  # a file that ./dev bench writes, and an example


def without_examples(text):
    """The text, with its code blocks empty: what is in them lies with the user."""
    parts = re.split(r"^```.*$", text, flags=re.MULTILINE)
    return "".join(part if number % 2 == 0 else re.sub(r"[^\n]", "", part)
                   for number, part in enumerate(parts))


def is_there(root, document, name, names):
    if "/" not in name:
        return name in names or name in NOT_HERE
    places = [root, document.parent, root / "src", root / "include", root / "tests", root / "bench"]
    # A program is named without the ending of its source.
    return any((place / name).exists() or (place / f"{name}.cc").exists() for place in places)


def words_of(root):
    """All words of the sources."""
    words = set()
    for folder in TOP.split("|"):
        for path in (root / folder).rglob("*"):
            if path.suffix in SOURCES:
                words.update(re.findall(r"\w+", path.read_text()))
    return words


def check_tree(root):
    words = words_of(root)
    names = {path.name for folder in TOP.split("|") for path in (root / folder).rglob("*")}
    names |= {path.name for path in root.iterdir()}
    complaints = []
    for pattern in DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            text = without_examples(path.read_text()).replace("\\_", "_")
            for number, line in enumerate(text.split("\n"), 1):
                for found in FILE.findall(line) + FOLDER.findall(line):
                    if not is_there(root, path, found, names):
                        complaints.append(f"{path.relative_to(root)}:{number}: there is no {found}")
                for found in NAME.findall(line):
                    test = TEST.fullmatch(found)
                    if test and not names.isdisjoint({f"{test[1]}_test.py", f"{test[1]}_test.cc"}):
                        continue
                    if not words.issuperset(re.findall(r"\w+", found)):
                        complaints.append(f"{path.relative_to(root)}:{number}: there is no {found}")
    return complaints


def main():
    complaints = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(complaints) or "every named file is there")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
