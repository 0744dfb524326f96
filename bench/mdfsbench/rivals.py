"""The same windows by what a user would pick instead: HDF5 (h5py) and tensorstore (Zarr), all read from Python.

Needs python3-h5py of Debian and, for tensorstore, `pip install tensorstore` in the Python that runs this.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import time

import numpy as np

from mdfsbench import cold, images, table
from mdfsbench.context import Skip, run, say
from mdfsbench.cold import throttled_disks
from mdfsbench.warm import picture

GROUP = "rivals"
# struct mdfs_ioc_window of include/mdfs/ioctl.h; _IOWR(0xD5, 3, ..)
WINDOW = struct.Struct("<I I 5Q 5Q i I Q 4Q 0q")
BIND = (3 << 30) | (WINDOW.size << 16) | (0xD5 << 8) | 3
COLD_CASES = {"512x512": (512, 60), "2048x2048": (2048, 8)}  # side, how many
CHUNKS = {2: (128, 128, 3), 3: (64, 64, 64), 4: (4, 128, 128, 3)}


class Mdfs:
    """An image on a mount, by bind and pread."""
    name = "MDFS"

    def __init__(self, path, shape):
        self.fd = os.open(path, os.O_RDONLY)
        self.shape, self.rank = shape, len(shape) - (1 if shape[-1] <= 4 else 0)

    def read(self, box):
        shape = [stop - start for start, stop in box]
        starts = [start for start, _ in box[:self.rank]] + [0] * (5 - self.rank)
        lengths = shape[:self.rank] + [0] * (5 - self.rank)
        fcntl.ioctl(self.fd, BIND, WINDOW.pack(WINDOW.size, self.rank, *starts, *lengths, -1, 0, 0, *[0] * 4))
        out = np.empty(shape, np.uint8)
        flat, done = memoryview(out.reshape(-1)), 0
        while done < len(flat):
            done += os.preadv(self.fd, [flat[done:]], done)
        return out

    def close(self):
        os.close(self.fd)


class Hdf5:
    name = "HDF5"

    def __init__(self, path, shape):
        import h5py
        self.file = h5py.File(path, "r", rdcc_nbytes=256 << 20, rdcc_nslots=100_003)
        self.data = self.file["data"]

    @staticmethod
    def store(source, path):
        import h5py
        array = np.load(source.npy, mmap_mode="r")
        chunks = chunks_of(source)
        with h5py.File(path, "w", rdcc_nbytes=64 << 20) as file:
            data = file.create_dataset("data", shape=array.shape, dtype=array.dtype, chunks=chunks)
            for begin in range(0, len(array), chunks[0] * 4):
                data[begin:begin + chunks[0] * 4] = array[begin:begin + chunks[0] * 4]
        sync_tree(path)

    def read(self, box):
        return self.data[tuple(slice(*side) for side in box)]

    def close(self):
        self.file.close()


class Tensorstore:
    name = "tensorstore"

    def __init__(self, path, shape):
        import tensorstore
        self.data = tensorstore.open(self.spec(path)).result()

    @staticmethod
    def spec(path):
        return {"driver": "zarr", "kvstore": {"driver": "file", "path": str(path)}}

    @staticmethod
    def store(source, path):
        import tensorstore
        array = np.load(source.npy, mmap_mode="r")
        metadata = {"shape": list(array.shape), "chunks": list(chunks_of(source)), "dtype": "|u1", "compressor": None}
        data = tensorstore.open(Tensorstore.spec(path) | {"metadata": metadata, "create": True}).result()
        data.write(array).result()
        sync_tree(path)

    def read(self, box):
        return self.data[tuple(slice(*side) for side in box)].read().result()

    def close(self):
        self.data = None


def chunks_of(source):
    rank = len(source.shape) - (1 if source.shape[-1] <= 4 else 0)
    return CHUNKS[4 if rank == 3 and source.shape[-1] <= 4 else rank]


def sync_tree(path):
    run("sync", "-f", path)


def available():
    found = []
    for module, rival in (("h5py", Hdf5), ("tensorstore", Tensorstore)):
        try:
            __import__(module)
            found.append(rival)
        except ImportError as error:
            say(f"SKIPPED {rival.name}: {error}")
    if not found:
        raise Skip("neither h5py nor tensorstore is there")
    return found


def boxes(source, lengths, count):
    """Boxes at random; a length of 0 is the whole axis."""
    random = np.random.default_rng(7)
    lengths = [whole if wanted == 0 else wanted for wanted, whole in zip(lengths, source.shape)]
    lengths += list(source.shape[len(lengths):])
    corners = [[int(random.integers(0, whole - side + 1)) for side, whole in zip(lengths, source.shape)]
               for _ in range(count)]
    return [[(start, start + side) for start, side in zip(corner, lengths)] for corner in corners]


def time_boxes(reader, source, wanted):
    """Median and mean ms; all that was read is compared afterwards."""
    array = np.load(source.npy, mmap_mode="r")
    times, found = [], []
    for box in wanted:
        begin = time.perf_counter()
        found.append(reader.read(box))
        times.append((time.perf_counter() - begin) * 1e3)
    for box, read in zip(wanted, found):
        if not np.array_equal(array[tuple(slice(*side) for side in box)], read):
            raise AssertionError(f"{reader.name}: WRONG BYTES")
    return float(np.median(times)), float(np.mean(times))


CACHE = "cache=1200M"  # of warm windows: the peers have the whole page cache
CASES = {
    "picture": [("64x64", (64, 64), 300), ("512x512", (512, 512), 60), ("2048x2048", (2048, 2048), 10)],
    "volume": [("plane xy", (1, 0, 0), 20), ("plane xz", (0, 1, 0), 20), ("plane yz", (0, 0, 1), 20)],
    "movie": [("frame", (1, 0, 0), 20), ("256x256, all frames", (0, 256, 256), 8)],
}


def sources(context):
    made = {"picture": picture(context)}
    made["volume"] = images.make(context.images, "volume", (192,) * 3 if context.quick else (768,) * 3)
    made["movie"] = images.make(context.images, "movie", (32 if context.quick else 132, 720, 1280, 3))
    return made


def rows(context):
    rivals = available()
    made = sources(context)
    return warm_rows(context, rivals, made) + cold_rows(context, rivals, made["picture"])


def store_in(context, mnt, source, name):
    axes = {"picture": [], "volume": ["--axes", "zyx"], "movie": ["--axes", "tyxc"]}[name]
    begin = time.perf_counter()
    context.mdfs("image", "import", "--quiet", "--codec", "raw", *axes, source.npy, mnt / name)
    return time.perf_counter() - begin


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def warm_rows(context, rivals, made):
    found = []
    for name, source in made.items():
        with contextlib.ExitStack() as stack:
            disks = stack.enter_context(context.volume([context.new_path("disk")], size=source.bytes * 3 // 2 +
                                                       (256 << 20)))
            mnt = stack.enter_context(context.mounted(disks, CACHE))
            seconds = {"MDFS": store_in(context, mnt, source, name)}
            readers = [Mdfs(mnt / name, source.shape)]
            for rival in rivals:
                say(f"{rival.name}: storing the {name}")
                path = context.new_path(rival.name)
                stack.callback(remove, path)
                begin = time.perf_counter()
                rival.store(source, path)
                seconds[rival.name] = time.perf_counter() - begin
                readers.append(rival(path, source.shape))
            for reader in readers:
                stack.callback(reader.close)
            for case, lengths, count in CASES[name]:
                say(f"{name}, {case}, warm")
                wanted = boxes(source, lengths, count)
                for reader in readers:
                    time_boxes(reader, source, wanted)
                median = context.alternate(3, **{reader.name: lambda r=reader: time_boxes(r, source, wanted)[0]
                                                 for reader in readers})
                found += beside(f"{name}, {case}, warm", median, "ms")
            if name == "picture":
                found += beside("ingest of the picture, raw", seconds, "s")
    return found


def beside(name, values, unit):
    """MDFS, then each rival with MDFS as what it is compared with."""
    own = values["MDFS"]
    found = [table.Row(GROUP, f"{name}: MDFS", own, unit, target="the fastest", met=own <= min(values.values()))]
    return found + [table.Row(GROUP, f"{name}: {who}", value, unit, own, "MDFS")
                    for who, value in values.items() if who != "MDFS"]


class Striped:
    """The usual way to use several disks: btrfs RAID0."""

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


def cold_rows(context, rivals, source):
    if shutil.which("mkfs.btrfs") is None:
        say("SKIPPED cold rivals: no mkfs.btrfs")
        return []
    found = []
    for k in (1, 8):
        times = {}
        try:
            with throttled_disks.ThrottledDisks(k, source.bytes * 2 // k + (512 << 20), context.scratch) as disks:
                for rival in [Mdfs, *rivals]:
                    times[rival.name] = cold_times(context, rival, source, disks)
                    disks.unthrottle()
        except throttled_disks.Unavailable as error:
            raise Skip(str(error)) from error
        for case in COLD_CASES:
            found += beside(f"picture, {case}, k={k}, cold", {who: value[case] for who, value in times.items()}, "ms")
    return found


def cold_times(context, rival, source, disks):
    """Mean ms by case, with nothing in any cache and no two windows near each other."""
    say(f"{rival.name}: cold, {len(disks.paths)} disks")
    means = {}
    if rival is Mdfs:
        with context.volume(disks.paths):
            with context.mounted(disks.paths) as mnt:
                store_in(context, mnt, source, "picture")
            disks.throttle(cold.RATE, cold.IOPS)
            for case in COLD_CASES:
                with context.mounted(disks.paths) as mnt:
                    means[case] = time_once(rival, mnt / "picture", source, case)
        return means
    striped = Striped(context, disks.paths)
    try:
        path = striped.mountpoint / "data"
        rival.store(source, path)
        disks.throttle(cold.RATE, cold.IOPS)
        for case in COLD_CASES:
            striped.forget()
            means[case] = time_once(rival, path, source, case)
    finally:
        striped.close()
    return means


def time_once(rival, path, source, case):
    side, count = COLD_CASES[case]
    reader = rival(path, source.shape)
    try:
        return time_boxes(reader, source, boxes_apart(source, side, count))[1]
    finally:
        reader.close()


def boxes_apart(source, side, count):
    """Squares in cells half as large again, so that no two share a chunk."""
    cell = side + max(side // 2, 256)
    across = source.shape[0] // cell
    chosen = np.random.default_rng(3).permutation(across * across)[:count]
    return [[(int(index) // across * cell, int(index) // across * cell + side),
             (int(index) % across * cell, int(index) % across * cell + side), (0, source.shape[2])] for index in chosen]
