"""What it costs to be sure: fdatasync, SQLite, many clients at once, and PostgreSQL's own pg_test_fsync where it is
installed, beside btrfs on disks of the same kind."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import mmap
import os
import pathlib
import re
import shutil
import sqlite3
import statistics
import threading
import time

from mdfsbench import table
from mdfsbench.context import Skip, run, say

GROUP = "durable"
DISK_BYTES = 1 << 30
DISKS = 2
OF_BTRFS = 0.5
CLIENTS = 100


def rows(context):
    if shutil.which("mkfs.btrfs") is None:
        raise Skip("there is no mkfs.btrfs")
    seconds, rounds = (1, 1) if context.quick else (3, 5)
    with loops(context) as own, loops(context) as others, contextlib.ExitStack() as stack:
        raw = own[0]
        floor = overwrites(raw, seconds)
        stack.enter_context(context.volume(own))
        places = {"mdfs": stack.enter_context(context.mounted(own)),
                  "btrfs": stack.enter_context(btrfs(context, others))}
        found = []
        for name, measure in (("8 KiB overwritten and fdatasync", overwrites_of_file),
                              ("SQLite commit, rollback journal", commits("delete")),
                              ("SQLite commit, WAL", commits("wal")),
                              (f"{CLIENTS} clients, each 8 KiB and fsync", clients)):
            say(name)
            median = context.alternate(rounds, **{which: lambda measure=measure, place=place: measure(place, seconds)
                                                  for which, place in places.items()})
            found.append(table.at_least_of_peers(
                GROUP, name, median["mdfs"], "/s", {"btrfs": median["btrfs"]}, OF_BTRFS,
                note=f"one of these disks alone: {table.number(floor)} flushed writes/s"))
        return found + postgres_rows(context, places)


def postgres_rows(context, places):
    """What pg_test_fsync says of both, by method and number of writes."""
    program = shutil.which("pg_test_fsync") or next(
        iter(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pg_test_fsync"))), None)
    if program is None:
        say("pg_test_fsync (of PostgreSQL) is not installed: its rows are left out")
        return []
    say("pg_test_fsync")
    taken = context.in_turn(1 if context.quick else 3, **{
        which: lambda place=place: postgres_rates(run(program, "-s", "1", "-f", place / "pg_test_fsync"))
        for which, place in places.items()})
    found = []
    for method in taken["mdfs"][0]:
        own, others = (statistics.median(rates[method] for rates in taken[which]) for which in ("mdfs", "btrfs"))
        found.append(table.at_least_of_peers(GROUP, f"pg_test_fsync, {method}", own, "/s", {"btrfs": others}, OF_BTRFS))
    return found


def postgres_rates(output):
    """{method: operations a second} out of the first two tables, which are of one and of two writes of 8 KiB."""
    rates, writes = {}, None
    for line in output.splitlines():
        if line.startswith("Compare"):
            heading = re.match(r"Compare file sync methods using (one|two) 8kB write", line)
            writes = heading and {"one": "8 KiB", "two": "2 x 8 KiB"}[heading.group(1)]
        elif writes and (row := re.match(r"\s+(\w+)\s+([\d.]+) ops/sec", line)):
            rates[f"{row.group(1)} {writes}"] = float(row.group(2))
    if not rates:
        raise AssertionError(f"pg_test_fsync: no rates in {output!r}")
    return rates


@contextlib.contextmanager
def loop(context):
    """A loop device over a file."""
    file = context.new_path("loop")
    with open(file, "wb") as made:
        os.posix_fallocate(made.fileno(), 0, DISK_BYTES)
    with context.removed_after(file):
        device = run("losetup", "--find", "--show", file).strip()
        try:
            yield device
        finally:
            run("losetup", "--detach", device)


@contextlib.contextmanager
def loops(context):
    """As many as a volume of this bench has disks."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(loop(context)) for _ in range(DISKS)]


def format_btrfs(disks):
    """RAID 0, with its metadata twice, if there are several disks."""
    profiles = ["--data", "raid0", "--metadata", "raid1"] if len(disks) > 1 else []
    run("mkfs.btrfs", "--quiet", "--force", *profiles, *disks)


@contextlib.contextmanager
def btrfs(context, disks):
    format_btrfs(disks)
    with mounted_btrfs(context, disks) as mountpoint:
        yield mountpoint


@contextlib.contextmanager
def mounted_btrfs(context, disks):
    mountpoint = context.new_path("btrfs")
    mountpoint.mkdir()
    run("mount", "-o", "noatime", disks[0], mountpoint)
    try:
        yield mountpoint
    finally:
        run("umount", mountpoint)
        mountpoint.rmdir()


def repeated(call, seconds):
    """Calls a second."""
    count, begin = 0, time.monotonic()
    while (now := time.monotonic()) - begin < seconds:
        call(count)
        count += 1
    return count / (now - begin)


def overwrites(path, seconds, flags=0):
    page = mmap.mmap(-1, 8192)
    fd = os.open(path, os.O_RDWR | flags, 0o644)

    def once(number):
        page[:8] = number.to_bytes(8, "little")
        os.pwrite(fd, page, 0)
        os.fdatasync(fd)

    try:
        return repeated(once, seconds)
    finally:
        os.close(fd)


def overwrites_of_file(place, seconds):
    return overwrites(place / "file", seconds, os.O_CREAT)


def commits(journal):
    def measure(place, seconds):
        folder = place / journal
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with contextlib.closing(sqlite3.connect(folder / "data", isolation_level=None)) as base:
            base.execute(f"pragma journal_mode={journal}")
            base.execute("pragma synchronous=full")
            base.execute("create table rows(number, text)")
            return repeated(lambda number: base.execute("insert into rows values(?, ?)", (number, "x" * 100)), seconds)
    return measure


def clients(place, seconds):
    """All clients together."""
    done = []

    def client(number):
        done.append(overwrites(place / f"client{number}", seconds, os.O_CREAT))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(done) != CLIENTS:
        raise AssertionError(f"{CLIENTS - len(done)} clients failed")
    return sum(done)
