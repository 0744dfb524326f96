#!/usr/bin/env python3
"""Puts measurements into bench/RESULTS.md and README.md, from what one run of `./dev bench --save DIR` has written.

usage: results.py DIR/bench.json
Between the two marks of RESULTS.md: the rows that have a target, and a few others, and below them each target that was
missed with its reason. A missed target without a reason is an error. Between those of the README: eight of the rows.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import sys
import textwrap

from mdfsbench import table

BEGIN, END = "<!-- measured: begin (bench/results.py) -->", "<!-- measured: end -->"
HEADINGS = {"warm": "from memory", "cold": "cold, disks of 20 MB/s and 200 requests/s each", "planes":
            "planes and movies, on one fast disk", "ingest": "storing", "streaming": "frames appended", "durable":
            "durable writes, two disks (loop devices), beside btrfs RAID 0 on two more", "scale": "size", "peers":
            "beside HDF5, TensorStore and GDAL, all called from Python", "many": "many processes", "scan":
            "plain files, one disk", "small": "small files, one disk (loop device)",
            "simulator": "predictions", "fill": "modelled disks, fast at their beginning and slow at their end"}
# Rows without a target that a reader wants to see; of the cold rows only the fewest and the most disks.
ALSO = [r"^write of a window", r"^window 2048", r"^volume .* plane", r"^movie", r"small files"]
LEFT_OUT = [r", k=[24], ", r"^gigaview|^throttled"]
# By name of the row: why a target stands where it stands.
REASONS = {
    r"^window 64x64, .*, bind and pread": "bind and pread are two requests. Each costs at least the smallest request "
    "of the trivial server, so that two floors are spent before anything is read. `MDFS_IOC_READ` takes one request "
    "(the row above); libmdfs uses it for windows of up to 16 KiB.",
    r"^window 64x64, .*, one call": "on the edge from run to run (1.75 to 2.05 times). The trivial server's read of as "
    "many bytes takes 1.3 times its smallest read. An ioctl also carries room for its answer to the daemon. The rest, "
    "some 2 us, is the look-up of two extents and the copy of 64 rows. The daemon makes two system calls, the fewest "
    "possible.",
    r"^8 MiB frames appended.*8x128x128$": "this file is as fast as memory, and the two cores are the limit. The "
    "daemon takes some 9 ms of a core for a frame with extents 8x128x128 and 21 ms with 32x64x64, beside the writer "
    "and the kernel. The rows below have disks of 250 and 1000 MB/s.",
    r"^8 MiB frames appended.*x64$|^cp of frames.*M$": "as with extents 8x128x128.",
    r"^8 MiB frames appended.*32x64x64, disk of 1000 MB/s$": "a frame is 2048 pieces of 4 KiB, and the two cores are "
    "the limit. The daemon alone takes 21 ms of a core for a frame; half of the disk's rate leaves 16 ms in all.",
}


# The rows of the README.
SHORT = [r"^picture, raw, 512x512, warm$", r"^picture, raw, 512x512, cold$", r"^picture, zstd, 512x512, cold$",
         r"^volume, raw, plane xz, cold$", r"^picture, 512x512, k=8, cold$", r"^picture, raw, stored and synced$",
         r"^16 processes, windows 512x512, cold, k=8$", r"^SQLite commit, rollback journal$"]


class Unexplained(Exception):
    """A target was missed, and no reason is known."""


def is_shown(row):
    wanted = row["target"] or any(re.search(pattern, row["name"]) for pattern in ALSO)
    return wanted and not any(re.search(pattern, row["name"]) for pattern in LEFT_OUT)


def reason_of(row):
    for pattern, reason in REASONS.items():
        if re.search(pattern, row["name"]):
            return reason
    raise Unexplained(f"'{row['name']}' misses its target ({row['target']}), and no reason is known")


def cache_of(run):
    """With which cache the windows from memory were read. Runs of older versions do not say it."""
    return f"Warm windows were read with {run['machine'].get('warm_cache', '`cache=1200M`')}."


def wrapped(text):
    """Lines of at most 100 columns; those of a list item are indented."""
    return textwrap.wrap(text, 100, subsequent_indent="  " if text.startswith("- ") else "",
                         break_long_words=False, break_on_hyphens=False)


def lines_of(run):
    """The text between the marks."""
    rows = run["rows"]
    head = (f"One run of `./dev bench` on {run['machine']['text']}. Ratios are those of MDFS over the best peer and "
            "over the floor. ")
    out = [*wrapped(head + cache_of(run)), "",
           "| " + " | ".join(table.HEADINGS) + " |", table.SEPARATOR]
    group = None
    for row in filter(is_shown, rows):
        if row["group"] != group:
            group = row["group"]
            out.append(f"| **{HEADINGS.get(group, group)}** | | | | | | | |")
        out.append("| " + " | ".join(table.cells(table.row_of(row))) + " |")
    missed = [row for row in rows if row["met"] is False]
    out += ["", "Missed:" if missed else "No target is missed."]
    for row in missed:
        value = f"{table.number(row['value'])} {row['unit']}"
        out += wrapped(f"- {row['name']}: {value}, {row['target']}: {reason_of(row)}")
    return out


def short_lines_of(run):
    """The text between the marks of the README."""
    out = [cache_of(run), "", "| " + " | ".join(table.HEADINGS[:6]) + " |", "|---|--:|---|--:|---|--:|"]
    for pattern in SHORT:
        for row in run["rows"]:
            if re.search(pattern, row["name"]):
                out.append("| " + " | ".join(table.cells(table.row_of(row))[:6]) + " |")
    return out


def replaced(text, lines):
    """The text with these lines between its marks."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError("the text has not one of each mark")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END)[1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    bench = pathlib.Path(__file__).parent
    run = json.loads(pathlib.Path(sys.argv[1]).read_text())
    try:
        for path, lines in ((bench / "RESULTS.md", lines_of(run)), (bench.parent / "README.md", short_lines_of(run))):
            path.write_text(replaced(path.read_text(), lines))
    except (Unexplained, ValueError) as error:
        sys.exit(f"results: {error}")


if __name__ == "__main__":
    main()
