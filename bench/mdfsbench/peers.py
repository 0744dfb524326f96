"""The same windows by what a user would pick instead: HDF5, TensorStore (Zarr) and GDAL (TIFF), all called from Python.

Nothing is tuned for a case: MDFS is mounted with its default options. Each read is compared with the source.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import dataclasses
import shutil
import statistics
import subprocess
import time

import numpy as np

from mdfsbench import cold, images, readers, table
from mdfsbench.cold import throttled_disks
from mdfsbench.context import Skip, run, say
from mdfsbench.readers import Mdfs
from mdfsbench.warm import picture

GROUP = "peers"
AXES = {"picture": "yx", "volume": "zyx", "movie": "tyx"}  # channels are no axis
IMPORT_AXES = {"picture": [], "volume": ["--axes", "zyx"], "movie": ["--axes", "tyxc"]}


@dataclasses.dataclass
class Case:
    """Windows of one size: the lengths of a box (0: the whole axis), how many warm and cold."""
    name: str
    lengths: tuple
    warm: int
    cold: int


CASES = {
    ("picture", "raw"): [Case("64x64", (64, 64), 300, 40), Case("512x512", (512, 512), 60, 20),
                         Case("2048x2048", (2048, 2048), 10, 5)],
    ("picture", "zstd"): [Case("64x64", (64, 64), 300, 40), Case("512x512", (512, 512), 60, 20),
                          Case("2048x2048", (2048, 2048), 10, 5)],
    ("volume", "raw"): [Case("plane xy", (1, 0, 0), 20, 4), Case("plane xz", (0, 1, 0), 20, 4),
                        Case("plane yz", (0, 0, 1), 20, 4)],
    ("movie", "raw"): [Case("frame", (1, 0, 0), 20, 6),
                       Case("256x256, all frames", (0, 256, 256), 8, 2)],
}
PAGE = 4096  # of which a read with O_DIRECT takes whole ones
THROTTLED = {"512x512": (512, 60), "2048x2048": (2048, 8)}  # side, how many


def rows(context):
    programs = readers.available()
    if not programs:
        raise Skip("neither h5py nor TensorStore nor GDAL is there")
    readers.library(context.program("lib/libmdfs.so"))
    made = sources(context)
    found = []
    for (name, codec), cases in CASES.items():
        found += of_image(context, programs, name, made[name], codec, cases)
    return found + throttled_rows(context, programs, made["picture"])


def sources(context):
    made = {"picture": picture(context)}
    made["volume"] = images.make(context.images, "volume", (192,) * 3 if context.quick else (768,) * 3)
    made["movie"] = images.make(context.images, "movie", (32 if context.quick else 132, 720, 1280, 3))
    return made


def beside(name, values, unit, floor=None, floor_name="", codec=None):
    """One row: MDFS, and all others as its peers."""
    others = {who: value for who, value in values.items() if who != Mdfs.name}
    row = table.Row(GROUP, name, values[Mdfs.name], unit, floor, floor_name, peers=others)
    row.target, row.met = "the fastest", row.peer_ratio is None or row.is_as_good_as_peers
    return row


class Stores:
    """One image, stored by all programs that can. Each is opened by reader(program)."""

    def __init__(self, context, programs, name, source, codec, folder, mnt):
        self.source, self.paths, self.seconds = source, {}, {}
        for program in [Mdfs, *programs]:
            path = (mnt if program is Mdfs else folder) / f"{name}-{program.name.replace(' ', '-')}.{codec}"
            say(f"{program.name}: storing the {name}, {codec}")
            begin = time.perf_counter()
            try:
                readers.store(context, program, source, path, codec, IMPORT_AXES[name])
            except readers.Absent:
                continue
            self.seconds[program.name] = time.perf_counter() - begin
            self.paths[program] = path

    @contextlib.contextmanager
    def opened(self, program):
        reader = program(self.paths[program], self.source.shape)
        try:
            yield reader
        finally:
            reader.close()


def of_image(context, programs, name, source, codec, cases):
    folder = context.new_path("stores")
    folder.mkdir()
    try:
        with context.volume([context.new_path("disk")], size=source.bytes * 3 // 2 + (256 << 20)) as disks:
            with context.mounted(disks) as mnt:
                stores = Stores(context, programs, name, source, codec, folder, mnt)
            found = [ingest_row(name, codec, source, stores)] if name == "picture" else []
            found += warm_rows(context, disks, stores, name, codec, cases)
            for case in cases:
                found.append(cold_row(context, disks, stores, name, codec, case))
        return found
    finally:
        shutil.rmtree(folder)


def ingest_row(name, codec, source, stores):
    rates = {who: source.bytes / 1e6 / seconds for who, seconds in stores.seconds.items()}
    return beside(f"{name}, {codec}, stored and synced", rates, "MB/s")


def at_mount(stores, mnt):
    """The image of MDFS lies below another mount point now."""
    stores.paths[Mdfs] = mnt / stores.paths[Mdfs].name


def warm_rows(context, disks, stores, name, codec, cases):
    array = np.load(stores.source.npy, mmap_mode="r")
    found = []
    with context.mounted(disks) as mnt, contextlib.ExitStack() as stack:
        at_mount(stores, mnt)
        opened = [stack.enter_context(stores.opened(program)) for program in stores.paths]
        for case in cases:
            say(f"{name}, {codec}, {case.name}, warm")
            wanted = readers.boxes(stores.source, case.lengths, case.warm)
            calls = {reader.name: lambda reader=reader: checked(reader.read, array, wanted) for reader in opened}
            calls["copy"] = lambda: timed(lambda box: np.array(readers.cut(array, box)), wanted)
            context.in_turn(1, **calls)  # into the caches
            median = {who: statistics.median(sum(times, []))
                      for who, times in context.in_turn(2 if context.quick else 5, **calls).items()}
            floor = median.pop("copy")
            found.append(beside(f"{name}, {codec}, {case.name}, warm", median, "ms", floor, "copy within memory"))
        if (name, codec) == ("picture", "raw"):
            found.append(whole_row(context, opened, array, stores.source))
        if (name, codec) == ("picture", "zstd") and readers.Tensorstore in stores.paths:
            found.append(zarr_row(context, stores.paths[Mdfs], array, stores.source))
    return found


def zarr_row(context, image, array, source):
    """All of a picture by TensorStore from the Zarr view, beside the same chunks as plain files."""
    import tensorstore
    say("picture, zstd, all of it as Zarr")
    copy = context.new_path("chunks.zarr")
    shutil.copytree(f"{image}@/ome.zarr/0", copy)

    def rate_of(path):
        begin = time.perf_counter()
        found = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}).result()
        found = found.read().result()
        seconds = time.perf_counter() - begin
        if not np.array_equal(np.moveaxis(found, 0, -1), array):
            raise AssertionError(f"{path}: WRONG BYTES")
        return source.bytes / 1e6 / seconds

    try:
        calls = {"view": lambda: rate_of(f"{image}@/ome.zarr/0"), "the same chunks as files": lambda: rate_of(copy)}
        context.in_turn(1, **calls)  # into the caches
        rates = context.alternate(3 if context.quick else 9, **calls)
        return table.at_least_of_peers(GROUP, "picture, zstd, all of it from the Zarr view, warm", rates.pop("view"),
                                       "MB/s", rates, 0.9)
    finally:
        shutil.rmtree(copy)


def whole_row(context, opened, array, source):
    """Windows of a picture that has been read before, all of it: more than the cache of many programs holds."""
    say("picture, windows of all of it, again")
    side = 2048
    tiles = [[(y, min(y + side, source.shape[0])), (x, min(x + side, source.shape[1])), (0, 3)]
             for y in range(0, source.shape[0], side) for x in range(0, source.shape[1], side)]
    wanted = readers.boxes(source, (512, 512), 300, seed=11)
    median = {}
    for reader in opened:
        for box in tiles:
            reader.read(box)
        median[reader.name] = statistics.median(checked(reader.read, array, wanted))
    floor = statistics.median(timed(lambda box: np.array(readers.cut(array, box)), wanted))
    return beside(f"picture of {source.bytes >> 20} MiB, raw, 512x512 of all of it, warm", median, "ms", floor,
                  "copy within memory")


def cold_row(context, disks, stores, name, codec, case):
    """Nothing is in any cache. Each round has other windows, and begins with another program. The median of the
    rounds' means: the machine's own disks have work left after a store, which slows whoever is first."""
    say(f"{name}, {codec}, {case.name}, cold")
    array = np.load(stores.source.npy, mmap_mode="r")
    times, floors = {}, []
    programs = list(stores.paths)
    for seed in range(1 if context.quick else 3):
        wanted = apart(stores.source, case.lengths, case.cold, seed)
        for program in programs[seed % len(programs):] + programs[:seed % len(programs)]:
            readers.forget_pages()
            with context.mounted(disks) if program is Mdfs else contextlib.nullcontext() as mnt:
                if program is Mdfs:
                    at_mount(stores, mnt)
                    planned = context.planned_bytes(stores.paths[Mdfs], AXES[name], wanted)
                with stores.opened(program) as reader:
                    times.setdefault(program.name, []).append(statistics.mean(checked(reader.read, array, wanted)))
        pages = -(-int(planned) // PAGE)
        floors.append(context.time_reads(stores.source.npy, "--direct", "--bytes", pages * PAGE, "--count", 4, "--seed",
                                         seed)["mean_ms"])
    medians = {who: statistics.median(found) for who, found in times.items()}
    return beside(f"{name}, {codec}, {case.name}, cold", medians, "ms", statistics.mean(floors),
                  "its stored bytes by one O_DIRECT read")


def apart(source, lengths, count, seed):
    """Boxes at random that share no chunk and no extent: planes evenly apart, others at least 256 samples."""
    if 1 in lengths:
        axis = lengths.index(1)
        step = source.shape[axis] // count
        places = np.random.default_rng(seed).integers(0, max(1, step // 2), count) + np.arange(count) * step
        return [[(int(place), int(place) + 1) if at == axis else (0, whole) for at, whole in enumerate(source.shape)]
                for place in places]
    chosen = []
    for box in readers.boxes(source, lengths, 50 * count, seed=100 + seed):
        if len(chosen) < count and all(any(abs(side[0] - far[0]) >= side[1] - side[0] + 256
                                           for side, far in zip(box, other)) for other in chosen):
            chosen.append(box)
    return chosen


def timed(read, wanted):
    """Milliseconds of each."""
    times = []
    for box in wanted:
        begin = time.perf_counter()
        read(box)
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def checked(read, array, wanted):
    """The same; all that was read is compared afterwards."""
    found = []
    times = timed(lambda box: found.append(read(box)), wanted)
    for box, got in zip(wanted, found):
        if not np.array_equal(readers.cut(array, box), got):
            raise AssertionError(f"{read.__self__.name}: WRONG BYTES")
    return times


class Striped:
    """The usual way to use several disks: btrfs RAID 0."""

    def __init__(self, context, disks):
        self.disks, self.mountpoint = disks, context.new_path("btrfs")
        self.mountpoint.mkdir()
        run("mkfs.btrfs", "-q", "-f", *(["-d", "raid0", "-m", "raid1"] if len(disks) > 1 else []), *disks)
        self.mount()

    def mount(self):
        run("mount", "-t", "btrfs", self.disks[0], self.mountpoint)

    def forget(self):
        """Empties its caches."""
        run("umount", self.mountpoint)
        self.mount()

    def close(self):
        subprocess.run(["umount", str(self.mountpoint)], check=False)
        self.mountpoint.rmdir()


def throttled_rows(context, programs, source):
    if shutil.which("mkfs.btrfs") is None:
        say("LEFT OUT slow disks: no mkfs.btrfs")
        return []
    found = []
    for k in (1, 8):
        times = {}
        try:
            with throttled_disks.ThrottledDisks(k, source.bytes * 2 // k + (512 << 20), context.scratch) as disks:
                for program in [Mdfs, *programs]:
                    times[program.name] = throttled_times(context, program, source, disks)
                    disks.unthrottle()
        except throttled_disks.Unavailable as error:
            raise Skip(str(error)) from error
        for name, (side, _) in THROTTLED.items():
            ideal = side * side * source.shape[2] / (k * cold.RATE) * 1e3
            found.append(beside(f"picture, {name}, k={k}, cold", {who: value[name] for who, value in times.items()},
                                "ms", ideal, "bytes of the window at the disks' rate"))
    return found


def throttled_times(context, program, source, disks):
    """Mean ms by case, with nothing in any cache and no two windows near each other."""
    say(f"{program.name}: cold, {len(disks.paths)} disks")
    means = {}
    if program is Mdfs:
        with context.volume(disks.paths):
            with context.mounted(disks.paths) as mnt:
                readers.store(context, program, source, mnt / "picture", "raw", [])
            disks.throttle(cold.RATE, cold.IOPS)
            for name in THROTTLED:
                with context.mounted(disks.paths) as mnt:
                    means[name] = time_throttled(program, mnt / "picture", source, name)
        return means
    striped = Striped(context, disks.paths)
    try:
        path = striped.mountpoint / "data"
        readers.store(context, program, source, path, "raw", [])
        disks.throttle(cold.RATE, cold.IOPS)
        for name in THROTTLED:
            striped.forget()
            means[name] = time_throttled(program, path, source, name)
    finally:
        striped.close()
    return means


def time_throttled(program, path, source, name):
    side, count = THROTTLED[name]
    reader = program(path, source.shape)
    try:
        return statistics.mean(checked(reader.read, np.load(source.npy, mmap_mode="r"),
                                       boxes_apart(source, side, count)))
    finally:
        reader.close()


def boxes_apart(source, side, count):
    """Squares in cells half as large again, so that no two share a chunk."""
    cell = side + max(side // 2, 256)
    across = source.shape[0] // cell
    chosen = np.random.default_rng(3).permutation(across * across)[:count]
    return [[(int(index) // across * cell, int(index) // across * cell + side),
             (int(index) % across * cell, int(index) % across * cell + side), (0, source.shape[2])] for index in chosen]
