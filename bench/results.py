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
            "beside HDF5, TensorStore and GDAL, all called from Python", "many": "many processes",
            "channel": "from memory through libmdfs and its Python package", "scan":
            "plain files, one disk", "small": "small files, one disk (loop device)",
            "simulator": "predictions", "views": "views in the hands of other programs",
            "streams": "streams at reserved rates, eight disks of 20 MB/s, 200 requests/s",
            "lists": "fsync beside callers of lists",
            "protect": "second copies, eight disks of 20 MB/s, beside btrfs raid1 and raid10",
            "fill": "modelled disks, fast at their beginning and slow at their end"}
# Rows without a target that a reader wants to see; of the cold rows only the fewest and the most disks.
ALSO = [r"^write of a window", r"^window 2048", r"^volume .* plane", r"^movie", r"small files"]
LEFT_OUT = [r", k=[24], ", r"^gigaview|^throttled"]
# By name of the row: why a target stands where it stands. Shares are those of samples of perf.
CROSSINGS = (
    "HDF5, TensorStore and GDAL answer from a cache in the memory of the caller, without the kernel. A window of MDFS "
    "crosses the kernel to the daemon and back, and the kernel copies it once more. Profile of 2048x2048 windows, time "
    "of caller and daemon: 62 % kernel (copies, and clearing pages of new arrays and of replies), 17 % copies of the "
    "daemon, 5 % code of MDFS, 16 % the interpreter.")
DECODING = (
    "a cold 512x512 window decodes nine whole extents of 192 KiB, TensorStore's sharded layout 25 chunks of 48 KiB "
    "with fewer samples outside. Profile of the daemon: 54 % libzstd, 33 % kernel (pages of the cache, requests). "
    "Smaller extents would win these rows, and take 12 % more space and more requests for large windows.")
MEMORY = (
    "memory that is used for the first time costs 0.9 s for each GiB on this virtual machine, and the cache grows by "
    "what is stored. Profile of the daemon: 64 % is the kernel's clearing of pages, 6 % checksums. ")
HANDED_OVER = (
    "a window takes two hand-overs between processes, by words of shared memory, and two copies. HDF5 and TensorStore "
    "answer within the process. In Python, the interpreter and ctypes add 5 us.")
ROWS_OF_CROPS = (
    "a copy of such crops within one array, by one thread of NumPy, is the floor: both have rows of 64 bytes. Three "
    "times TensorStore lies above the floor on two processors, which the caller and the daemon share.")
ROWS_OF_BANDS = (
    "a band of 64 rows lies in 64 extents, of which 768 bytes are copied at a time. Such a copy within one process "
    "reaches 0.7 to 0.8 of the memcpy of whole bands. Profile of the daemon's thread: 80 % memmove, the rest finds "
    "extents.")
REASONS = {
    r"^window .*, raw, warm, from (C|Python)$": HANDED_OVER,
    r"^\d+ random windows .* in one call": ROWS_OF_CROPS,
    r"^picture band by band": ROWS_OF_BANDS,
    r"^window 64x64, .*, bind and pread": "bind and pread are two requests. Each costs at least the smallest request "
    "of the trivial server, so that two floors are spent before anything is read. `MDFS_IOC_READ` takes one request "
    "(the row above); libmdfs uses it for windows of up to 16 KiB.",
    r"^8 MiB frames appended|^cp of frames": MEMORY + "fio stores from one buffer. On another machine, with the same "
    "processor, these rows were 0.25 to 0.45 of fio on a file as fast as memory, and 0.50 to 0.83 on the disk of 1000 "
    "MB/s.",
    r"^picture, .*, stored and synced$": MEMORY + "HDF5 stores without checksums here.",
    r"^picture, zstd, .*, cold$": DECODING,
    r", warm$": CROSSINGS,
    r"^dd of a plain file, cold$": "the filesystem below is read through the page cache of the kernel, with requests "
    "ahead of dd. A read of MDFS is verified and copied once more. dd with O_DIRECT reads the same disk at 1065 MB/s, "
    "the floor.",
    r"reads ome.zarr, .*, warm$": "opening a chunk, its size and its bytes are three requests to the daemon. A file "
    "of ext4 needs no other process. Opening, reading and closing a frame of 98 kB takes 150 us, and 19 us on ext4.",
    r"^GDAL reads NAME.tif": "a window of 512x512 has up to nine tiles, each of which GDAL reads by a call of its own, "
    "through the daemon. The page cache of the kernel is not used: another program may write the image.",
    r"^JPEG tiles": "a tile is looked up, opened, measured and read: four requests to the daemon beside the encoding.",
    r"^overview .* of .* samples, cold$": "the open reads the window once, so that what cannot be read is built "
    "again, and the reader copies it from the cache.",
    r"^(64x64|512x512), cold, two copies, a disk lost$": "with all disks a window takes less than their rates say, "
    "from what the throttle has saved for idle disks. Without a disk it takes 1.04 to 1.15 times what seven disks "
    "can do.",
    r"^9000 small files, untar$": "a file takes several requests to the daemon, and each wakes a thread on another "
    "processor. passthrough_ll keeps no data of its own: MDFS stores, checksums and commits each file. With FUSE over "
    "io_uring (`io_uring` in mount.mdfs(8)), which this kernel has switched off, requests stay on the caller's "
    "processor.",
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
    by_reason = {}
    for row in missed:
        by_reason.setdefault(reason_of(row), []).append(
            f"{row['name']}: {table.number(row['value'])} {row['unit']}, {row['target']}")
    for reason, names in by_reason.items():
        out += wrapped(f"- {'; '.join(names)}. The reason: {reason}")
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
