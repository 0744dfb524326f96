"""MDFS on the throttled disks of `protect`: images with one copy and with two, and three volumes that lose a disk."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import statistics
import time

from mdfsbench import figures, many, timed
from mdfsbench.cold import throttled_disks
from mdfsbench.context import run, say
from mdfsbench.figures import DISKS, IOPS, RATE
from mdfsbench.readers import Mdfs

COUNTS = {64: (400, 30), 512: (200, 6)}  # windows, and how many before them
QUICK_COUNTS = {64: (20, 2), 512: (8, 1)}
DEFAULT_EXTENT = "256x256"  # of the picture
ROUNDS = 3
APART = 256  # samples between windows: the largest extent in question
CLIENT_WINDOWS = 10
COPIES = {"once": 1, "twice": 2}
SLOW_RATE, HUNG_RATE = RATE // 4, 1000
LAME_RATES = (RATE, SLOW_RATE, HUNG_RATE)


class Floors:
    """What the throttle leaves: ms of a window, if all disks share the work of all windows evenly."""

    def __init__(self):
        self.windows, self.degraded, self.written = {}, {}, {}
        self.clients_s = 0


def measure(context, source, small, disks):
    """The figures with one copy and with two, and the floors of the latter."""
    found, floors = {name: figures.Figures(name) for name in COPIES}, Floors()
    members = disks.paths[:DISKS]
    with context.volume(members):
        stored(context, source, small, disks, members, found)
        written(context, small, disks, members, found)
        floors.written = {side: written_floor(context, small, side) for side in figures.SIDES}
        disks.throttle(*figures.WINDOWS)
        windows(context, source, members, {name: at.windows for name, at in found.items()})
        for name, at in found.items():
            at.clients_s, planned = clients(context, source, members, name)
        floors.clients_s = DISKS * RATE / planned
        floors.windows = window_floors(context, source, members)
        found["twice"].beside_lame = beside_a_lame_disk(context, source, disks, members)
        lose(disks, members)
        disks.throttle(*figures.WINDOWS)
        windows(context, source, members, {"twice": found["twice"].degraded})
        floors.degraded = {side: ms * DISKS / (DISKS - 1) for side, ms in floors.windows.items()}
        found["twice"].rebuild_mb_s = rebuilt(context, disks, members)
    disks.bring_back()
    rebuilt_beside_a_reader(context, source, disks, found["twice"])
    replaced(context, source, disks, found["twice"])
    return found, floors


def lose(disks, members):
    """The last of the members."""
    disks.lose(disks.paths.index(members.pop()))


def store(context, source, path):
    context.mdfs("image", "import", "--quiet", "--codec", "raw", *context.extent, source.npy, path)


def stored(context, source, small, disks, members, found):
    """Imports, and frames appended."""
    with context.mounted(members) as mnt:
        for name in COPIES:
            (mnt / name).mkdir()
        context.mdfs("image", "protect", mnt / "twice", "copies=2")
        for name in COPIES:
            store(context, small, mnt / name / "small")
        disks.throttle(*figures.BULK)
        for name, at in found.items():
            say(f"MDFS: storing the picture {name}")
            at.import_mb_s = source.bytes / 1e6 / figures.clock(lambda name=name: (
                store(context, source, mnt / name / "picture"), context.mdfs("volume", "sync", mnt)))
            at.frames_s = frames(context, mnt / name / "frames")
        disks.unthrottle()


def frames(context, path):
    """Frames a second."""
    side = figures.FRAME_SIDE
    context.mdfs("image", "create", "--shape", f"0x{side}x{side}", "--codec", "raw", path)
    rate = figures.append_synced(path)
    path.unlink()
    return rate


def written(context, small, disks, members, found):
    """Windows of each size, of a volume that was just mounted. They are compared after the next mount."""
    for side in figures.SIDES:
        for name, at in found.items():
            say(f"MDFS, stored {name}: windows of {side}x{side}, written and synced")
            wanted = figures.written_boxes(context, small, side)
            disks.throttle(*figures.WINDOWS)
            with context.mounted(members) as mnt:
                times = timed.written_ms(Mdfs, mnt / name / "small", small, wanted)
            at.written[side] = statistics.mean(times[len(times) // 5:])  # without the credit of idle disks
            disks.unthrottle()
            with context.mounted(members) as mnt:
                timed.check_written(Mdfs, mnt / name / "small", small, wanted)


def written_floor(context, small, side):
    """ms of a window: the extents that it touches, whole and twice, on all disks at once."""
    rows, columns = (int(length) for length in (context.extent or ["", DEFAULT_EXTENT])[1].split("x"))
    touched = [(-(-bottom // rows) - top // rows) * (-(-right // columns) - left // columns)
               for (top, bottom), (left, right), _ in figures.written_boxes(context, small, side)]
    return 2 * statistics.mean(touched) * rows * columns * small.shape[2] / (DISKS * RATE) * 1e3


def windows(context, source, members, found):
    """Puts the ms of a window by its side into `found[name]`: medians of rounds, each after a mount."""
    for side, (count, warmup) in (QUICK_COUNTS if context.quick else COUNTS).items():
        say(f"MDFS, stored {' and '.join(found)}, {len(members)} disks: {count} windows of {side}x{side}, cold")

        def mean(name, side=side, count=count, warmup=warmup):
            with context.mounted(members) as mnt:
                return timer(context, mnt / name / "picture", source, side, count, warmup)["mean_ms"]

        medians = context.alternate(1 if context.quick else ROUNDS,
                                    **{name: lambda name=name: mean(name) for name in found})
        for name, median in medians.items():
            found[name][side] = median


def beside_a_lame_disk(context, source, disks, members):
    """What the timer says of windows by the rate of the last member, which changes when the volume is mounted."""
    side = figures.READER_SIDE
    count, warmup = (QUICK_COUNTS if context.quick else COUNTS)[side]
    found = {}
    for rate in LAME_RATES:
        say(f"MDFS, stored twice: windows of {side}x{side}, cold, a disk of {rate} bytes/s")
        with context.mounted(members) as mnt:
            disks.throttle([RATE] * (DISKS - 1) + [rate] * (len(disks.paths) - DISKS + 1), IOPS)
            try:
                found[rate] = timer(context, mnt / "twice/picture", source, side, count, warmup)
            finally:
                disks.throttle(*figures.WINDOWS)
    return found


def window_floors(context, source, members):
    """The busiest disk in the plans of the same windows. Nothing of the image is read."""
    found = {}
    for side, (count, warmup) in (QUICK_COUNTS if context.quick else COUNTS).items():
        with context.mounted(members) as mnt:
            found[side] = timer(context, mnt / "twice/picture", source, side, count, warmup, "--memory", "--rate", RATE,
                                "--iops", IOPS)["batch_floor_ms"]
    return found


def timer(context, path, source, side, count, warmup, *more):
    return context.time_reads(path, "--window", f"{side}x{side}", "--count", count, "--warmup", warmup, "--apart",
                              APART, "--source", source.raw, *more)


def clients(context, source, members, name):
    """Windows a second, and the bytes that one of them takes of the disks."""
    wanted = many.windows_apart(source, 1 if context.quick else CLIENT_WINDOWS)
    say(f"MDFS, stored {name}: {len(wanted)} clients")
    with context.mounted(members) as mnt:
        image = mnt / name / "picture"
        planned = context.planned_bytes(image, "yx", [windows[0] for windows in wanted])
        return many.run_clients(Mdfs, image, source, wanted, many.MOST_SECONDS)[0], planned


def rebuilt(context, disks, members):
    """MB/s of a rebuild that has the disks for itself."""
    say("MDFS: rebuild")
    disks.throttle(*figures.BULK)
    with context.mounted(members) as mnt, rebuild(context, mnt) as work:
        rate = rate_of(work)
        disks.unthrottle()
    return rate


def rebuild(context, mnt):
    command = [context.program("tools/mdfs"), "disk", "rebuild"]
    return timed.Work(*command, "--json", mnt, cancel=[*command, "--cancel", mnt])


def rate_of(work):
    """MB/s, when it has ended."""
    seconds = work.seconds()
    return json.loads(work.output)["written_bytes"] / seconds / 1e6


def rebuilt_beside_a_reader(context, source, disks, found):
    """Two pictures, so that the rebuild takes longer. The reader has one before the rebuild, the other beside it."""
    alone, beside = figures.reader_boxes(source)
    say("MDFS: a reader without a rebuild, then beside it")
    with protected_volume(context, source, disks, ["first", "second"]) as members, context.mounted(members) as mnt:
        found.alone_ms = timed.read_while(Mdfs, mnt / "first", source, alone, lambda: True)
        with rebuild(context, mnt) as work:
            before = [throttled_disks.written_bytes(disk) for disk in members]
            found.beside_ms = timed.read_while(Mdfs, mnt / "second", source, beside + alone, work.is_running)
            written_bytes = sum(throttled_disks.written_bytes(disk) for disk in members) - sum(before)
            found.beside_mb_s = written_bytes / (time.monotonic() - work.begin) / 1e6
            work.seconds()
        disks.unthrottle()
    disks.bring_back()


def replaced(context, source, disks, found):
    """The lost disk's data go to a new one, as fast as that can write."""
    say("MDFS: disk replace")
    with protected_volume(context, source, disks, ["picture"]) as members:
        spare = disks.paths[DISKS - 1]
        with context.mounted(members) as mnt:
            before = throttled_disks.written_bytes(spare)
            with timed.Work(context.program("tools/mdfs"), "disk", "replace", "--force", mnt, DISKS - 1, spare) as work:
                seconds = work.seconds()
            found.replace_mb_s = (throttled_disks.written_bytes(spare) - before) / seconds / 1e6
            disks.unthrottle()
        with context.mounted([*members, spare]) as mnt:
            run("cmp", source.raw, mnt / "picture")
    disks.bring_back()


@contextlib.contextmanager
def protected_volume(context, source, disks, names):
    """A new volume with the picture under these names, each with two copies, that has lost its last disk. Its disks are
    throttled."""
    members = disks.paths[:DISKS]
    with context.volume(members):
        with context.mounted(members) as mnt:
            context.mdfs("image", "protect", mnt, "copies=2")
            for name in names:
                store(context, source, mnt / name)
        lose(disks, members)
        disks.throttle(*figures.BULK)
        yield members
