#!/usr/bin/env python3
"""Puts the table of measurements into README.md, from what one run of `./dev bench --save DIR` has written.

usage: readme_table.py DIR/bench.json [README.md]
Between the two marks in the README: the rows that have a target, and a few others, and below them each target that was
missed with its reason. A missed target that nobody has explained is an error.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import sys

from mdfsbench import table

BEGIN, END = "<!-- measured: begin (bench/readme_table.py) -->", "<!-- measured: end -->"
HEADINGS = {"warm": "from memory", "cold": "cold, disks of 20 MB/s and 200 requests/s each", "planes":
            "planes and movies, on one fast disk", "ingest": "storing", "streaming": "frames appended", "durable":
            "to be sure, two disks (loop devices), beside btrfs RAID 0 on two more", "scale": "size",
            "simulator": "predictions", "fill": "modelled disks, fast at their beginning and slow at their end"}
# Rows without a target that a reader wants to see; of the cold rows only the fewest and the most disks.
ALSO = [r"^write of a window", r"^window 2048", r"^volume .* plane", r"^movie"]
LEFT_OUT = [r", k=[24], ", r"^gigaview|^throttled"]
# By name of the row: why a target stands where it stands.
REASONS = {
    r"^window 64x64, .*, bind and pread": "bind and pread are two requests, each of which costs at least what the "
    "trivial server's smallest one does: twice the floor is spent before anything is read. `MDFS_IOC_READ`, and "
    "libmdfs for windows of up to 16 KiB, take one request (the row above).",
    r"^window 64x64, .*, one call": "on the edge from run to run (1.75 to 2.05 times). The trivial server's read of as "
    "many bytes takes 1.3 times its smallest one; an ioctl also carries its room for the answer from the caller to the "
    "daemon, and the rest, some 2 us, is the look-up of two extents and the copying of 64 rows. The daemon makes two "
    "system calls for it, the fewest possible.",
    r"^8 MiB frames appended.*8x128x128$": "this file is as fast as memory, and the two cores are what is busy: the "
    "daemon takes some 9 ms of a core for a frame with extents 8x128x128 and 21 ms with 32x64x64, beside the writer "
    "and the kernel. Of disks of 250 and 1000 MB/s see the rows below.",
    r"^8 MiB frames appended.*x64$|^cp of frames.*M$": "as with extents 8x128x128.",
    r"^8 MiB frames appended.*32x64x64, disk of 1000 MB/s$": "a frame is 2048 pieces of 4 KiB, and the two cores are "
    "what is busy: 21 ms of a core a frame in the daemon alone, where 16 ms in all would be half of the disk's rate.",
}


class Unexplained(Exception):
    """A target was missed and nobody says why."""


def is_shown(row):
    wanted = row["target"] or any(re.search(pattern, row["name"]) for pattern in ALSO)
    return wanted and not any(re.search(pattern, row["name"]) for pattern in LEFT_OUT)


def reason_of(row):
    for pattern, reason in REASONS.items():
        if re.search(pattern, row["name"]):
            return reason
    raise Unexplained(f"'{row['name']}' misses its target ({row['target']}), and no reason is known")


def lines_of(run):
    """The text between the marks."""
    rows = run["rows"]
    out = [f"One run of `./dev bench` on {run['machine']['text']}. The ratio is that to the floor.", "",
           "| " + " | ".join(table.HEADINGS) + " |", "|---|--:|---|--:|---|---|"]
    group = None
    for row in filter(is_shown, rows):
        if row["group"] != group:
            group = row["group"]
            out.append(f"| **{HEADINGS.get(group, group)}** | | | | | |")
        cells = table.cells(table.Row(**{key: value for key, value in row.items() if key != "ratio"}))
        out.append("| " + " | ".join(cells) + " |")
    missed = [row for row in rows if row["met"] is False]
    out += ["", "Missed:" if missed else "No target is missed."]
    out += [f"- {row['name']}: {table.number(row['value'])} {row['unit']}, {row['target']}: {reason_of(row)}"
            for row in missed]
    return out


def replaced(readme, run):
    """The README's text with the table of that run."""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1:
        raise ValueError("the README has not one of each mark")
    before, rest = readme.split(BEGIN)
    return before + BEGIN + "\n" + "\n".join(lines_of(run)) + "\n" + END + rest.split(END)[1]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    readme = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else pathlib.Path(__file__).parents[1] / "README.md")
    run = json.loads(pathlib.Path(sys.argv[1]).read_text())
    try:
        readme.write_text(replaced(readme.read_text(), run))
    except (Unexplained, ValueError) as error:
        sys.exit(f"readme_table: {error}")


if __name__ == "__main__":
    main()
