#!/usr/bin/env python3
"""Rejects words that have been retired, and says what is written instead.

usage: words.py SOURCE_ROOT
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

FOLDERS = ["src", "include", "lib", "gst", "tools", "man", "doc", "tests", "bench", "completion", "python",
           "debian", "systemd"]
SUFFIXES = {".h", ".cc", ".c", ".md", ".scd", ".py", ".bash", ".fish", ".sh", ".in", ".conf"}
# Files without a suffix, and those of the root.
NAMES = {"_mdfs", "control", "rules", "changelog"}
FILES = ["*.md", "dev"]
# These must name the retired words.
EXEMPT = {"tests/lint/words.py", "tests/lint/lint_test.py"}
# Pattern, and what is written instead. A pattern of small letters alone finds capitals as well.
RETIRED = [
    (r"spill(?!over)", "fallback allocation"),
    (r"\bwish(ed|es)?(_|\b)|for want of room|DataWish", "request; because the disk is full"),
    (r"nobody's|anybody's|\bwho is gone|Anybodys", "free, available to all, a deleted object"),
    (r"close_owner", "release_preallocations"),
    (r"witness", "checksum record (of a commit)"),
    (r"\bmend|_mend", "repair"),
    (r"\bheal(?!th)", "repair"),
    (r"\bLanes?\b|_lanes?_?\b|[a-z]Lanes?\b", "work queue"),
    (r"\balphabet\b", "set of operations"),
    (r"\b(other )?faces? of (an|the|its|one) image|giv(e|es|ing)[_ ]birth", "view; create_inode"),
    (r"\bengine::Content\b|\bContent\b[&*>]|\bContent(Spec|State|Use)\b|\bcontents_\b", "OpenObject"),
    (r"\bUnit(Ptr|Key)\b|\b(dirty|cached)[ _]units?\b|\bunits_in_row\b", "cache block; extent"),
    (r"\bunits? of (one|an|the) (object|image|file)\b", "extents or cells"),
    (r"\bengine::Records\b|\bcore_?\.records\b|map/records\.h", "extent map"),
    (r"\b(Inside|Closed)Gate\b|\bGridLock|\bclaim_(all|plan|changes)\b", "barrier; range lock; lock"),
    (r"settl", "consolidate; drop_removed"),
    (r"\bripe|kRipe|\btorn groups?\b|last_dirt_ns", "full group; split group; dirtied"),
    (r"\bgroups? (is|are|was|were) torn\b", "split"),
    (r"LeftPlace|\bleft[_ ]places?\b|places? (it|they) left|\bReturner\b|\breturn_home\b|\bnote_left\b",
     "home blocks; relocate home"),
    (r"\b(un)?lets?[_ ]go\b|\bkeep\(Run", "release; reserve"),
    (r"commit_unlinked|\btransaction[.](un)?link\b", "commit_freed; Transaction::publish, Transaction::free"),
    (r"troubl", "error, error record"),
    (r"evacuat|\brobbed\b|emptie[sd] (a|the) disk|\bdisks? (was |were )?emptied|an_emptying", "drain; remove"),
    (r"\bempty(ing)? (a|the|this) disk\b", "drain"),
    (r"(\b|_)stretch(es)?(_|\b)", "range, run; block range"),
    (r"\b(merits?|ripe)(_|\b)|\bdirt(_|\b)", "fragmentation factor; full group; dirty bytes"),
    (r"chance|identities", "random numbers; UUIDs"),
    (r"\bon paper\b", "simulated, modelled machine"),
    (r"gone[_ ]?on(_|\b)|GoneOn", "continue, resume"),
    (r"speaks?[_ ]against", "contradicts"),
    (r"\blaid[_ ](anew|freshly|image)|LaidImage", "relocated contiguously, a fresh copy; ImageLayout"),
    (r"\bzones?[_ ]polic", "allocation policy"),
]
# The same for words that have another sense elsewhere, or in names of tests: where (a folder with a slash at its end,
# or a file), the pattern, and what is written instead.
PRODUCT = ["src/", "include/", "lib/", "gst/", "tools/", "python/", "man/", "doc/", "debian/", "README.md",
           "CHANGELOG.md"]
RETIRED_BELOW = [
    ("man/", r"\b[Pp]roo?[fv](?!ile)|\bconfirm", "validation, validate, finalize"),
    ("src/store/", r"\b[Pp]roo?[fv]|\bconfirm", "validation, validate, finalize"),
    ("src/store/", r"promis|\bRoom\b[&{(]|[.]puts\b", "reservation, reserved, SpaceAmount, items"),
    ("src/engine/", r"promis|\bRoom\b[&{(]|[.]puts\b", "reservation, reserved, SpaceAmount, items"),
    ("src/volume/", r"promis", "reservation, reserved"),
    ("src/engine/", r"\b(un)?link(er|s|ed|ing)?\b|(\b|_)link(ed|er|ing)?_|_linked\b|Linker",
     "publish, Publisher, free"),
    ("src/alloc/", r"link", "publish, free"),
    ("bench/", r"\blinked, but not committed", "published"),
    ("src/store/", r"\bgated|\bgates?_\b|\bgate\(|ForGates", "pending free"),
    ("src/", r"[a-z]Gates?\b", "barrier"),
    ("src/", r"\bclass Content\b", "OpenObject"),
    ("src/engine/", r"\bClaims\b", "range lock"),
    ("src/alloc/", r"windows?(?![a-z])", "preallocation"),
    ("src/store/", r"windows?(?![a-z])", "a preallocation, a section of a map"),
]
RETIRED_BELOW += [(place, pattern, instead) for place in PRODUCT for pattern, instead in [
    (r"(?<!`)\b(nobody|anybody)\b", "the actor, in a sentence without not"),
    (r"\bin words\b(?![]):])|\bsa(y|ys|id) so\b", "a message, prints, logs, reports"),
    (r"\bproofs?\b|\bproven\b", "validation, valid"),
    (r"\b(go|goes|going|went)[_ ]on\b", "continue, resume"),
]]


def retired_in(shown):
    return RETIRED + [rule[1:] for rule in RETIRED_BELOW if str(shown).startswith(rule[0])]


def find(pattern, line):
    return re.search(pattern, line, re.IGNORECASE if pattern.islower() else 0)


def check_text(shown, text):
    return [f"{shown}:{number}: '{found[0]}' is retired: {instead}"
            for number, line in enumerate(text.split("\n"), 1)
            for pattern, instead in retired_in(shown)
            for found in [find(pattern, line)] if found]


def check_tree(root):
    found = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*"))
             if path.suffix in SUFFIXES or path.name in NAMES]
    found += [path for pattern in FILES for path in sorted(root.glob(pattern))]
    complaints = []
    for path in found:
        shown = path.relative_to(root)
        if str(shown) not in EXEMPT and path.is_file():
            complaints += check_text(shown, path.read_text())
    return complaints


def main():
    complaints = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(complaints) or "no retired word is in use")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
