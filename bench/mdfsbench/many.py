"""Many clients at once: processes that read random windows from memory, and from slow disks."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import multiprocessing
import shutil
import statistics
import time

import numpy as np

from mdfsbench import cold, readers, table
from mdfsbench.cold import throttled_disks
from mdfsbench.context import Skip, say
from mdfsbench.peers import Striped, boxes_apart
from mdfsbench.readers import Mdfs
from mdfsbench.warm import picture

GROUP = "many"
SIDE = 512
WARM_CLIENTS, COLD_CLIENTS, COLD_DISKS = 8, 16, 8
TIMES_MEDIAN = 3  # the slowest hundredth of the windows
OF_DISKS = 0.9
WARM_WINDOWS = 20_000  # of each client, if there is time
MOST_SECONDS = 600
COLD_WINDOWS = 20  # of each client; no two share an extent or a chunk


class Copy:
    """The floor: windows copied out of the memory of the process."""
    name = "copy"

    def __init__(self, path, shape):
        self.data = np.load(path, mmap_mode="r")

    def read(self, box):
        return np.array(readers.cut(self.data, box))

    def close(self):
        pass


def rows(context):
    programs = readers.available()
    readers.library(context.program("lib/libmdfs.so"))
    source = picture(context)
    return warm_rows(context, programs, source) + cold_rows(context, programs, source)


def client(program, path, source, wanted, seconds, start, results, library):
    """Reads the windows until `seconds` are over; then (seconds in all, ms of each, how many are wrong) are sent."""
    readers.library(library)
    reader = program(path, source.shape)
    array = np.load(source.npy, mmap_mode="r")
    start.wait()
    times, begin, wrong = [], time.perf_counter(), 0
    for box in wanted:
        now = time.perf_counter()
        if now - begin > seconds:
            break
        got = reader.read(box)
        times.append((time.perf_counter() - now) * 1e3)
        wrong += is_wrong(array, box, got)
    results.put((time.perf_counter() - begin, times, wrong))
    reader.close()


def is_wrong(array, box, got):
    """By two corners of a window: comparing all of it would take as long as reading it."""
    (top, bottom), (left, right), _ = box
    return not (np.array_equal(array[top, left], got[0, 0])
                and np.array_equal(array[bottom - 1, right - 1], got[-1, -1]))


def run_clients(program, path, source, windows, seconds):
    """Windows a second of all, and ms of each. Each process has its own handle, and its own list of windows."""
    spawn = multiprocessing.get_context("spawn")  # TensorStore's threads do not survive a fork
    start, results = spawn.Barrier(len(windows)), spawn.Queue()
    library = str(readers.library()._name)
    processes = [spawn.Process(target=client, args=(program, path, source, wanted, seconds, start, results, library))
                 for wanted in windows]
    for process in processes:
        process.start()
    taken = [results.get(timeout=MOST_SECONDS) for _ in processes]
    for process in processes:
        process.join()
    if any(wrong for _, _, wrong in taken):
        raise AssertionError(f"{program.name}: WRONG BYTES")
    return sum(len(times) / wall for wall, times, _ in taken), sum((times for _, times, _ in taken), [])


def random_windows(source, seed):
    return [readers.boxes(source, (SIDE, SIDE), WARM_WINDOWS, seed=seed + number) for number in range(WARM_CLIENTS)]


def windows_apart(source, count):
    """Of each client; on a small picture fewer than asked for."""
    boxes = boxes_apart(source, SIDE, COLD_CLIENTS * count)
    return [boxes[number::COLD_CLIENTS] for number in range(COLD_CLIENTS)]


def warm_rows(context, programs, source):
    folder = context.new_path("stores")
    folder.mkdir()
    rates, times = {}, {}
    try:
        with context.volume([context.new_path("disk")], size=source.bytes * 3 // 2 + (256 << 20)) as disks, \
                context.mounted(disks) as mnt:
            paths = {Copy: source.npy}
            for program in [Mdfs, *programs]:
                paths[program] = (mnt if program is Mdfs else folder) / program.name.replace(" ", "-")
                readers.store(context, program, source, paths[program], "raw", [])
            for number in range(1 if context.quick else 3):
                for program, path in paths.items():
                    say(f"{WARM_CLIENTS} clients, warm, {program.name}")
                    rate, each = run_clients(program, path, source, random_windows(source, 100 * number),
                                             1 if context.quick else 4)
                    rates.setdefault(program.name, []).append(rate)
                    times.setdefault(program.name, []).extend(each)
    finally:
        shutil.rmtree(folder)
    rate = {who: statistics.median(found) for who, found in rates.items()}
    spread = {who: float(np.percentile(each, 99) / np.median(each)) for who, each in times.items()}
    own, floor = rate.pop("MDFS"), rate.pop("copy")
    name = f"{WARM_CLIENTS} processes, windows 512x512, warm"
    return [table.at_least_of_peers(GROUP, name, own, "/s", rate, 1, floor=floor, floor_name="copy within memory")
            if rate else table.Row(GROUP, name, own, "/s", floor, "copy within memory"),
            table.Row(GROUP, f"{name}, 99th percentile over median", spread["MDFS"], "x", spread["copy"],
                      "copy within memory", f"at most {TIMES_MEDIAN}x", spread["MDFS"] <= TIMES_MEDIAN,
                      peers={who: value for who, value in spread.items() if who not in ("MDFS", "copy")})]


def cold_rows(context, programs, source):
    """On slow disks. The floor is what the disks can deliver of such windows: all of them busy all the time."""
    if shutil.which("mkfs.btrfs") is None:
        raise Skip("there is no mkfs.btrfs")
    rates, floor = {}, None
    try:
        with throttled_disks.ThrottledDisks(COLD_DISKS, source.bytes * 2 // COLD_DISKS + (512 << 20),
                                            context.scratch) as disks:
            for program in [Mdfs, *programs]:
                say(f"{COLD_CLIENTS} clients, cold, {program.name}")
                rates[program.name], wanted = cold_rate(context, program, source, disks)
                disks.unthrottle()
                floor = wanted or floor
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error
    own = rates.pop("MDFS")
    row = table.Row(GROUP, f"{COLD_CLIENTS} processes, windows 512x512, cold, k={COLD_DISKS}", own, "/s", floor,
                    "all disks busy with the bytes of the extents", f"at least {OF_DISKS:g}x",
                    own >= OF_DISKS * floor, peers=rates)
    return [row]


def cold_rate(context, program, source, disks):
    """Windows a second; for MDFS also how many a second the disks could deliver."""
    windows = windows_apart(source, 1 if context.quick else COLD_WINDOWS)
    with contextlib.ExitStack() as stack:
        if program is Mdfs:
            stack.enter_context(context.volume(disks.paths))
            with context.mounted(disks.paths) as mnt:
                readers.store(context, program, source, mnt / "picture", "raw", [])
            disks.throttle(cold.RATE, cold.IOPS)
            mnt = stack.enter_context(context.mounted(disks.paths))
            planned = context.planned_bytes(mnt / "picture", "yx", [wanted[0] for wanted in windows])
            rate, _ = run_clients(program, mnt / "picture", source, windows, MOST_SECONDS)
            return rate, COLD_DISKS * cold.RATE / planned
        striped = Striped(context, disks.paths)
        stack.callback(striped.close)
        readers.store(context, program, source, striped.mountpoint / "data", "raw", [])
        disks.throttle(cold.RATE, cold.IOPS)
        striped.forget()
        return run_clients(program, striped.mountpoint / "data", source, windows, MOST_SECONDS)[0], None
