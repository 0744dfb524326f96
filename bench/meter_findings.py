#!/usr/bin/env python3
"""Reproduces the findings of the BBC's talk on media storage (2011; seeds/003) with `mdfs meter`: what fragmentation
costs and what grouping saves, what scatter does to a filling disk, and what a read cache gives. MDFS and btrfs lie on
the same throttled loop disks; btrfs stripes them (RAID 0). Needs root, btrfs-progs, and blkio or io.max.

usage: meter_findings.py [--build DIR] [--scratch DIR] [--rounds N] [--json FILE] [--svg FILE]

Scatter is measured on MDFS alone, on modelled disks whose rate falls from 250 to 120 MB/s: throttled loop disks are as
fast everywhere.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import contextlib
import html
import json
import math
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys

from mdfsbench.context import Context, Failed, Skip, machine, run, say
from mdfsbench.durable import format_btrfs, mounted_btrfs

sys.path.insert(0, str(pathlib.Path(__file__).parent / "mount"))
import throttled_disks  # noqa: E402

MIB = 1 << 20
RATE, IOPS, DISKS = 20_000_000, 100, 4  # of each disk; requests below 200 KB cost more than their bytes
DISK_BYTES = 512 * MIB
FILE_BYTES, PIECE = 128 * MIB, 128 << 10  # a film; what one write takes
WRITERS = 3
REWRITTEN = 1.0  # of the bytes of all files
MOST_REWRITE = 256 << 10
SECONDS = 1.2  # less than a film takes at the rate of the disks
CACHE_SECONDS, CACHE_STEPS, CACHED_BYTES = 1, 8, 192 * MIB
FULL = 0.75  # of a disk with zones
SCATTER_SECONDS = 0.9  # less than an image takes at 250 MB/s
SEED = 3
READER = """
name = "reader"
description = "Reads in order"
file = "4 GiB"
open = "client"
transfer = "1 MiB"
block = "1 MiB"
"""
RANDOM_READER = READER + 'order = "random"\n'


class Filesystem:
    """A filesystem on the disks, which can be mounted many times. mounted() yields the mount point."""

    def __init__(self, context, disks, name):
        self.context, self.disks, self.name = context, disks, name

    def film(self, folder, number):
        return folder / f"film{number}"


class Mdfs(Filesystem):
    def __init__(self, context, disks, name, options=""):
        super().__init__(context, disks, name)
        self.options = options

    def formatted(self):
        run(self.context.program("tools/mkmdfs"), "--force", *self.disks)
        return self

    def mounted(self, cache="32M"):
        return self.context.mounted(self.disks[:1], f"cache={cache},log=off{self.options}")

    def make(self, path, size):
        """An image of rows; its extents are as large as the cells of ordinary files."""
        self.context.mdfs("image", "create", path, "--shape", f"{size // 8192}x8192", "--codec", "raw", "--extent",
                          f"{PIECE // 8192}x8192")

    def defragment(self, folder):
        self.context.mdfs("defrag", "start", "--wait", folder)


class Btrfs(Filesystem):
    def formatted(self):
        format_btrfs(self.disks)
        return self

    def mounted(self, cache=None):
        run("btrfs", "device", "scan", *self.disks)
        return mounted_btrfs(self.context, self.disks)

    def make(self, path, size):
        with open(path, "xb") as file:
            file.truncate(size)

    def defragment(self, folder):
        run("btrfs", "filesystem", "defragment", "-r", "-f", folder)


def write_pieces(files, pieces, flush_after=64):
    """Writes random bytes at the places (file, offset, length), and flushes all files after so many."""
    noise = os.urandom(MOST_REWRITE + 4096)
    for count, (number, offset, length) in enumerate(pieces, 1):
        start = count % 4096
        os.pwrite(files[number], noise[start:start + length], offset)
        if count % flush_after == 0:
            for fd in files:
                os.fsync(fd)
    for fd in files:
        os.fsync(fd)


@contextlib.contextmanager
def opened(paths):
    files = [os.open(path, os.O_WRONLY) for path in paths]
    try:
        yield files
    finally:
        for fd in files:
            os.close(fd)


def alone():
    for number in range(WRITERS):
        for offset in range(0, FILE_BYTES, PIECE):
            yield number, offset, PIECE


def interleaved():
    """As cameras store at the same time, which flush each piece."""
    for offset in range(0, FILE_BYTES, PIECE):
        for number in range(WRITERS):
            yield number, offset, PIECE


def rewrites():
    rng = random.Random(SEED)
    rest = REWRITTEN * WRITERS * FILE_BYTES
    while rest > 0:
        length = rng.randrange(4096, MOST_REWRITE + 1, 4096)
        yield rng.randrange(WRITERS), rng.randrange(0, FILE_BYTES - length, 4096), length
        rest -= length


def meter(context, path, profile, seconds, *options):
    """MB/s of one client that reads the file."""
    told = json.loads(context.mdfs("meter", path, "--profile", profile, "--duration", seconds, "--json", *options))
    return told["places"][0]["steps"][0]["bytes_per_s"] / 1e6


def profile_file(context, text, name):
    path = context.scratch / name
    path.write_text(text)
    return path


def cold_rates(context, disks, filesystem, rounds):
    """The median rate of the films, each read right after a mount."""
    profile = profile_file(context, READER, "reader.toml")
    disks.throttle(RATE, IOPS)
    rates = []
    for _ in range(rounds):
        for number in range(WRITERS):
            with filesystem.mounted() as folder:
                rates.append(meter(context, filesystem.film(folder, number), profile, SECONDS, "--drop-caches"))
    disks.unthrottle()
    return statistics.median(rates)


def write_films(filesystem, pieces, flush_after=64):
    with filesystem.mounted() as folder:
        paths = [filesystem.film(folder, number) for number in range(WRITERS)]
        for path in paths:
            if not path.exists():
                filesystem.make(path, FILE_BYTES)
        with opened(paths) as files:
            write_pieces(files, pieces, flush_after)


def fragmentation(context, disks, filesystem, rounds):
    """Rates of films that were written one after another, at the same time, then rewritten in pieces, defragmented."""
    found = {}
    write_films(filesystem.formatted(), alone())
    found["alone"] = cold_rates(context, disks, filesystem, rounds)
    write_films(filesystem.formatted(), interleaved(), flush_after=WRITERS)
    found["together"] = cold_rates(context, disks, filesystem, rounds)
    write_films(filesystem, rewrites())
    found["rewritten"] = cold_rates(context, disks, filesystem, rounds)
    with filesystem.mounted() as folder:
        filesystem.defragment(folder)
    found["defragmented"] = cold_rates(context, disks, filesystem, rounds)
    return found


def read_cache(context, disks, filesystem, cache):
    """The rate of random reads of a file, from a cold mount on, by successive periods."""
    profile = profile_file(context, RANDOM_READER, "random.toml")
    with filesystem.mounted() as folder:
        path = folder / "clip"
        filesystem.make(path, CACHED_BYTES)
        with opened([path]) as files:
            write_pieces(files, [(0, offset, PIECE) for offset in range(0, CACHED_BYTES, PIECE)])
    disks.throttle(RATE, IOPS)
    rates = []
    with filesystem.mounted(cache) as folder:
        for step in range(CACHE_STEPS):
            drop = ["--drop-caches"] if step == 0 else []
            direct = ["--direct"] if cache is None else []
            rates.append(meter(context, folder / "clip", profile, CACHE_SECONDS, "--seed", step + 1, *drop, *direct))
    disks.unthrottle()
    return rates


def scatter(context, policy, rounds):
    """Rates of images stored while a modelled disk with zones fills, the first and the last one."""
    disk = context.new_path("zoned")
    size, image = 2048 * MIB, 256 * MIB
    count = int(FULL * size / image)
    with context.volume([disk], size=size, sparse=True) as disks:
        mdfs = Mdfs(context, disks, policy, f",policy={policy}")
        with mdfs.mounted() as folder:
            for number in range(count):
                path = mdfs.film(folder, number)
                mdfs.make(path, image)
                with opened([path]) as files:
                    write_pieces(files, [(0, offset, PIECE) for offset in range(0, image, PIECE)])
        mdfs.options += ",model=sata-disk-zoned"
        profile = profile_file(context, READER, "reader.toml")
        rates = {}
        for name, numbers in (("first stored", range(2)), ("last stored", range(count - 2, count))):
            values = []
            for _ in range(rounds):
                for number in numbers:
                    with mdfs.mounted() as folder:
                        path = mdfs.film(folder, number)
                        values.append(meter(context, path, profile, SCATTER_SECONDS, "--drop-caches"))
            rates[name] = statistics.median(values)
    return rates


def measure(context, rounds):
    findings = {"disks": f"{DISKS} loop disks of {RATE / 1e6:g} MB/s and {IOPS} requests/s each",
                "machine": machine()["text"], "fragmentation": {}, "read_cache": {}, "scatter": {}}
    with throttled_disks.ThrottledDisks(DISKS, DISK_BYTES, context.scratch) as disks:
        all_of_them = (Mdfs(context, disks.paths, "MDFS"),
                       Mdfs(context, disks.paths, "MDFS without groups", ",no_grouping"),
                       Btrfs(context, disks.paths, "btrfs"))
        for filesystem in all_of_them:
            say(f"fragmentation: {filesystem.name}")
            findings["fragmentation"][filesystem.name] = fragmentation(context, disks, filesystem, rounds)
        for name, cache in (("MDFS", "512M"), ("MDFS, small cache", "32M"), ("btrfs", "memory"),
                            ("btrfs, no cache", None)):
            say(f"read cache: {name}")
            filesystem = next(one for one in all_of_them if one.name == name.split(",")[0])
            findings["read_cache"][name] = read_cache(context, disks, filesystem.formatted(), cache)
    for policy in ("first", "scatter"):
        say(f"scatter: policy {policy}")
        findings["scatter"][policy] = scatter(context, policy, rounds)
    return findings


# The picture: three groups of bars and lines beside each other.
COLOURS = ["#0072b2", "#56b4e9", "#e69f00", "#cc79a7"]
PANEL, GAP, HIGH, TOP = 300, 60, 220, 60


def text(x, y, words, anchor="middle", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{html.escape(words)}</text>'


def heights(series, logarithmic):
    """The heights of the values as shares of a panel, and the values at its bottom and its top."""
    values = [value for one in series.values() for value in one]
    low, high = (10 ** math.floor(math.log10(min(values))) if logarithmic else 0), max(values) * 1.05

    def height(value):
        return math.log(value / low) / math.log(high / low) if logarithmic else value / high
    return {name: [height(value) for value in one] for name, one in series.items()}, low, high


def panel(left, title, series, names, lines):
    """Bars, or lines over a logarithmic axis, of the series {name: MB/s} over the names."""
    shares, low, high = heights(series, lines)
    bottom = TOP + HIGH
    parts = [text(left + PANEL / 2, TOP - 14, title, size=14), text(left - 6, TOP + 6, f"{high:.0f} MB/s", "end", 10),
             text(left - 6, bottom, f"{low:.0f}", "end", 10),
             f'<path d="M{left} {TOP}V{bottom}H{left + PANEL}" stroke="black" fill="none"/>']
    step = PANEL / len(names)
    for number, (name, values) in enumerate(shares.items()):
        colour = COLOURS[number]
        if lines:
            points = " ".join(f"{left + step * (i + 0.5):.1f},{bottom - HIGH * share:.1f}"
                              for i, share in enumerate(values))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        else:
            width = step * 0.8 / len(series)
            parts += [f'<rect x="{left + step * (i + 0.1) + width * number:.1f}" y="{bottom - HIGH * share:.1f}" '
                      f'width="{width:.1f}" height="{HIGH * share:.1f}" fill="{colour}"/>'
                      for i, share in enumerate(values)]
        y = bottom + 40 + 16 * number
        parts.append(f'<rect x="{left}" y="{y - 9}" width="12" height="9" fill="{colour}"/>')
        parts.append(text(left + 18, y, name, "start"))
    parts += [text(left + step * (i + 0.5), bottom + 16, name, size=10) for i, name in enumerate(names)]
    return parts


def picture(findings):
    fragments, caches, scattered = findings["fragmentation"], findings["read_cache"], findings["scatter"]
    films = {name: list(values.values()) for name, values in fragments.items()}
    policies = {f"policy {name}": list(values.values()) for name, values in scattered.items()}
    panels = [("Fragmentation and grouping", films, list(next(iter(fragments.values()))), False),
              ("Read cache: seconds after a mount", caches, [str(step + 1) for step in range(CACHE_STEPS)], True),
              (f"A disk with zones, filled to {FULL:.0%}", policies, list(next(iter(scattered.values()))), False)]
    width = len(panels) * (PANEL + 2 * GAP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HIGH + 120}" '
             'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>']
    for number, (title, series, names, lines) in enumerate(panels):
        parts += panel(number * (PANEL + 2 * GAP) + 1.5 * GAP, title, series, names, lines)
    return "\n".join([*parts, "</svg>", ""])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where the programs are built")
    parser.add_argument("--scratch", help="directory for all files, 3 GB (default: the temporary directory)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each film is read")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    parser.add_argument("--svg", type=pathlib.Path, help="draw the figures to this file")
    options = parser.parse_args()
    options.quick, options.extent, options.images = False, None, None
    return options


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    options = arguments()
    try:
        with Context(options) as context:
            findings = measure(context, options.rounds)
    except (Skip, throttled_disks.Unavailable) as reason:
        say(f"SKIPPED: {reason}")
        return throttled_disks.SKIPPED
    except (Failed, OSError, subprocess.SubprocessError) as reason:
        say(f"FAILED: {reason}")
        return 1
    said = json.dumps(findings, indent=2)
    print(said)
    if options.json:
        options.json.write_text(said + "\n")
    if options.svg:
        options.svg.write_text(picture(findings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
