#!/usr/bin/env python3
"""Rejects words that have been retired, and says what is written instead.

usage: words.py SOURCE_ROOT
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

FOLDERS = ["src", "include", "lib", "tools", "man", "doc", "tests", "bench", "completion"]
SUFFIXES = {".h", ".cc", ".c", ".md", ".scd", ".py", ".bash", ".fish"}
# Files without a suffix, and those that must name the retired words.
NAMES = {"_mdfs"}
EXEMPT = {"tests/lint/words.py", "tests/lint/lint_test.py"}
# Pattern, and what is written instead.
RETIRED = [
    (r"spill(?!over)", "fallback allocation"),
    (r"wished[_ ](for|disk)|for want of room|DataWish|\bwish\b", "request; because the disk is full"),
    (r"nobody's|anybody's|\bwho is gone|Anybodys", "free, available to all, a deleted object"),
    (r"close_owner", "release_preallocations"),
    (r"witness", "checksum record (of a commit)"),
    (r"\bmend|_mend", "repair"),
    (r"\bheal(?!th)", "repair"),
    (r"\bLanes?\b|_lanes?_?\b", "work queue"),
    (r"\balphabet\b", "set of operations"),
    (r"\bfaces? of an image|give_birth", "view; create_inode"),
    (r"\bengine::Content\b|\bContent\b[&*>]|\bContent(Spec|State|Use)\b|\bcontents_\b", "OpenObject"),
    (r"\bUnit(Ptr|Key)\b|\b(dirty|cached)[ _]units?\b|\bunits_in_row\b", "cache block; extent"),
    (r"\bengine::Records\b|\bcore_?\.records\b|map/records\.h", "extent map"),
    (r"\b(Inside|Closed)Gate\b|\bGridLock|\bclaim_(all|plan|changes)\b", "barrier; range lock; lock"),
    (r"\bsettl(e|ed|ing|er)(_|\b)", "consolidate; drop_removed"),
    (r"\bripe|kRipe|\btorn groups?\b|last_dirt_ns", "full group; split group; dirtied"),
    (r"LeftPlace|left_places|places? (it|they) left|\bReturner\b", "home blocks; relocate home"),
    (r"commit_unlinked|\btransaction[.](un)?link\b", "commit_freed; Transaction::publish, Transaction::free"),
    (r"troubl", "error, error record"),
    (r"evacuat|\brobbed\b|emptie[sd] (a|the) disk|\bdisks? (was |were )?emptied|an_emptying", "drain; remove"),
    (r"\bstretch(es)?\b", "range, run; block range"),
    (r"\b(merit|ripe)\b|\bdirt\b|\bchance[.](random|below|rand)", "fragmentation factor; full group; random"),
    (r"\bby chance\b|machine of chance", "at random"),
]
# The same for words that have another sense elsewhere: the folder, the pattern, and what is written instead.
RETIRED_BELOW = [
    ("man", r"\b[Pp]roo?[fv](?!ile)|\bconfirm", "validation, validate, finalize"),
    ("src/store", r"\b[Pp]roo?[fv]|\bconfirm", "validation, validate, finalize"),
    ("src/store", r"promis|\bRoom\b[&{(]|[.]puts\b", "reservation, reserved, SpaceAmount, items"),
    ("src/engine", r"promis|\bRoom\b[&{(]|[.]puts\b", "reservation, reserved, SpaceAmount, items"),
    ("src/volume", r"promis", "reservation, reserved"),
    ("src/engine", r"\b(un)?link(er|s|ed|ing)?\b|(\b|_)link(ed|er|ing)?_|_linked\b|Linker", "publish, Publisher, free"),
    ("src/alloc", r"link", "publish, free"),
    ("src/store", r"\bgated|\bgates?_\b|\bgate\(|ForGates", "pending free"),
    ("src/store", r"\blet_go\b", "release_run"),
    ("src/engine", r"\bClaims\b", "range lock"),
    ("src/engine", r"\blet_go\b", "release"),
    ("src/alloc", r"windows?(?![a-z])", "preallocation"),
    ("src/store", r"windows?(?![a-z])", "a preallocation, a section of a map"),
]


def retired_in(shown):
    return RETIRED + [rule[1:] for rule in RETIRED_BELOW if str(shown).startswith(rule[0] + "/")]


def check_text(shown, text):
    return [f"{shown}:{number}: '{found[0]}' is retired: {instead}"
            for number, line in enumerate(text.split("\n"), 1)
            for pattern, instead in retired_in(shown)
            for found in [re.search(pattern, line, re.IGNORECASE if pattern.islower() else 0)] if found]


def check_tree(root):
    complaints = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            shown = path.relative_to(root)
            if (path.suffix in SUFFIXES or path.name in NAMES) and str(shown) not in EXEMPT and path.is_file():
                complaints += check_text(shown, path.read_text())
    return complaints


def main():
    complaints = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(complaints) or "no retired word is in use")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
