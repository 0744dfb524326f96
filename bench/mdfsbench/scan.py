"""A plain file read from beginning to end by dd, as tools do that know nothing of windows, beside the filesystem below
and one O_DIRECT read of the same file."""
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import time

from mdfsbench import readers, table
from mdfsbench.context import run, say

GROUP = "scan"
BYTES = 1 << 30
OF_BELOW = 0.9


def rows(context):
    size = BYTES // 8 if context.quick else BYTES
    below = context.new_path("plain")
    rounds = 1 if context.quick else 5
    with context.removed_after(below):
        make(below, size)
        rates = {}
        with context.volume([context.new_path("disk")], size=size + (256 << 20)) as disks:
            with context.mounted(disks) as mnt:
                shutil.copy(below, mnt / "plain")
            for _ in range(rounds):
                for name, taken in once(context, disks, below, size).items():
                    rates.setdefault(name, []).append(taken)
    median = {name: sorted(found)[len(found) // 2] for name, found in rates.items()}
    return [table.at_least_of_peers(GROUP, "dd of a plain file, cold", median["mdfs cold"], "MB/s",
                                    {"filesystem below": median["below cold"]}, OF_BELOW, floor=median["direct"],
                                    floor_name="dd with O_DIRECT of the same disk"),
            table.Row(GROUP, "dd of a plain file, warm", median["mdfs warm"], "MB/s",
                      peers={"filesystem below": median["below warm"]})]


def once(context, disks, below, size):
    say("dd, cold and warm")
    found = {}
    readers.forget_pages()
    found["direct"] = scan(below, size, "iflag=direct")
    readers.forget_pages()
    found["below cold"] = scan(below, size)
    found["below warm"] = scan(below, size)
    readers.forget_pages()
    with context.mounted(disks) as mnt:
        found["mdfs cold"] = scan(mnt / "plain", size)
        found["mdfs warm"] = scan(mnt / "plain", size)
        run("cmp", below, mnt / "plain")
    return found


def scan(path, size, *words):
    """MB/s."""
    begin = time.perf_counter()
    run("dd", f"if={path}", "of=/dev/null", "bs=1M", "status=none", *words)
    return size / 1e6 / (time.perf_counter() - begin)


def make(path, size):
    with open(path, "wb") as file:
        block = os.urandom(1 << 20)
        for number in range(size >> 20):
            file.write(number.to_bytes(8, "little") + block[8:])
        os.fsync(file.fileno())
