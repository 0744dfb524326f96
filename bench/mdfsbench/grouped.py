"""An image with one parity for four extents on the throttled disks of `protect`, beside the same without protection."""
# SPDX-License-Identifier: Apache-2.0
import time

from mdfsbench import figures, protected, table
from mdfsbench.context import run, say
from mdfsbench.figures import DISKS, RATE, SIDES

GROUP = "protect"
KNOWN_S = 1.5  # the kernel may answer stat from its memory for a second
WIDTH = 4
NAMES = ("plain", "grouped")
LEAST_IMPORT = 0.47  # what is written has two copies
MOST_SPACE = 1.36
MOST_HEALTHY = 1 / 0.98
MOST_DEGRADED = 1.29 * 1.1  # what is enumerated for eight disks and four extents, and a tenth
LEAST_REBUILD = 0.8
# Each lost piece takes reads of the four others of its group; 1.06: the busiest disk beside the mean.
DESIGN_REBUILD = (DISKS - 1) * RATE / (WIDTH * 1.06) / 1e6


def measure(context, source, disks):
    """Figures by name."""
    found = {name: figures.Figures(name) for name in NAMES}
    members = disks.paths[:DISKS]
    with context.volume(members):
        space = stored(context, source, disks, members, found)
        disks.throttle(*figures.WINDOWS)
        protected.windows(context, source, members, {name: at.windows for name, at in found.items()})
        protected.lose(disks, members)
        disks.throttle(*figures.WINDOWS)
        protected.windows(context, source, members, {"grouped": found["grouped"].degraded})
        found["grouped"].rebuild_mb_s = protected.rebuilt(context, disks, members)
        with context.mounted(members) as mnt:
            run("cmp", source.raw, mnt / "grouped/picture")
    disks.bring_back()
    return found, space


def stored(context, source, disks, members, found):
    """Imports, then groups. Returns the blocks of the image with parity by those of the other."""
    with context.mounted(members) as mnt:
        for name in NAMES:
            (mnt / name).mkdir()
        context.mdfs("image", "protect", mnt / "grouped", f"parity=1,width={WIDTH}")
        disks.throttle(*figures.BULK)
        for name, at in found.items():
            say(f"MDFS: storing the picture, {name}")
            at.import_mb_s = source.bytes / 1e6 / figures.clock(lambda name=name: (
                protected.store(context, source, mnt / name / "picture"), context.mdfs("volume", "sync", mnt)))
        disks.unthrottle()
        say("MDFS: parities in place of copies")
        context.mdfs("image", "protect", mnt / "grouped/picture", f"parity=1,width={WIDTH}")
        time.sleep(KNOWN_S)
        blocks = {name: (mnt / name / "picture").stat().st_blocks for name in NAMES}
    return blocks["grouped"] / blocks["plain"]


def rows(context, source, disks):
    found, space = measure(context, source, disks)
    plain, grouped = found["plain"], found["grouped"]
    result = [
        table.Row(GROUP, "space of an image with parity", space, "x", 1 + 1 / WIDTH, "a parity for four extents",
                  f"at most {MOST_SPACE:g}x", space <= MOST_SPACE),
        table.Row(GROUP, "import with parity, which begins as copies", grouped.import_mb_s, "MB/s", DISKS * RATE / 2e6,
                  "throttle, all disks busy", f"at least {LEAST_IMPORT:g}x unprotected",
                  grouped.import_mb_s >= LEAST_IMPORT * plain.import_mb_s,
                  f"unprotected {table.number(plain.import_mb_s)} MB/s")]
    for side in SIDES:
        whole, lost, alone = grouped.windows[side], grouped.degraded[side], plain.windows[side]
        result.append(table.Row(GROUP, f"{side}x{side}, cold, with parity", whole, "ms", alone, "unprotected",
                                f"at most {MOST_HEALTHY:.3g}x unprotected", whole <= MOST_HEALTHY * alone))
        result.append(table.Row(GROUP, f"{side}x{side}, cold, with parity, a disk lost", lost, "ms", whole, "all disks",
                                f"at most {MOST_DEGRADED:.3g}x all disks", lost <= MOST_DEGRADED * whole))
    rate = grouped.rebuild_mb_s
    result.append(table.Row(GROUP, "rebuild of a lost disk with parity", rate, "MB/s", DESIGN_REBUILD,
                            "four reads for each piece, spread evenly", f"at least {LEAST_REBUILD:g}x",
                            rate >= LEAST_REBUILD * DESIGN_REBUILD))
    return result
