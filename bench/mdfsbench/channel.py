"""Windows from memory through libmdfs and through the Python package, where both may use the channel."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import shutil
import statistics
import sys
import time

import numpy as np

from mdfsbench import images, readers, table
from mdfsbench.context import say
from mdfsbench.peers import Stores, checked, timed
from mdfsbench.warm import picture

GROUP = "channel"
SMALL, LARGE = 64, 512
SMALL_MOST = {"C": 0.006, "Python": 0.015}  # ms
LARGE_TIMES_COPY = 1.5
CROPS, CROP_SIDE, TIMES_BATCH = 256, 64, 3
OF_MEMCPY = 0.8
COUNTS = {SMALL: 400, LARGE: 80}
SEQUENTIAL_BYTES = 256 << 20  # of the picture, band by band
BAND_ROWS = 64


class Package:
    """The Python package."""
    name = "MDFS"

    def __init__(self, path, _):
        self.image = package().open(path)

    def read(self, box):
        return self.image[tuple(slice(*side) for side in box)]

    def close(self):
        self.image.close()


def package(library=None):
    """The package of this tree, with the library of the build; its path is given once."""
    if library is not None:
        os.environ["MDFS_LIBRARY"] = str(library)
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    import mdfs  # pylint: disable=import-outside-toplevel
    return mdfs


def rows(context):
    package(context.program("lib/libmdfs.so"))
    readers.library(context.program("lib/libmdfs.so"))
    programs = readers.available()
    images_of = {"picture": picture(context),
                 "volume": images.make(context.images, "volume", (192,) * 3 if context.quick else (768,) * 3)}
    folder = context.new_path("stores")
    folder.mkdir()
    size = sum(2 * source.bytes for source in images_of.values()) + (256 << 20)
    try:
        with context.volume([context.new_path("disk")], size=size) as disks, context.mounted(disks) as mnt:
            picture_stores, volume_stores = (Stores(context, programs, name, source, "raw", folder, mnt)
                                             for name, source in images_of.items())
            return single_rows(context, picture_stores) + crop_rows(context, volume_stores) + \
                sequential_rows(context, picture_stores)
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def opened(stores):
    """All readers of the image; MDFS by its package."""
    with contextlib.ExitStack() as stack:
        found = [(Package if program is readers.Mdfs else program)(path, stores.source.shape)
                 for program, path in stores.paths.items()]
        for reader in found:
            stack.callback(reader.close)
        yield found


def single_rows(context, stores):
    """One window after another."""
    found = []
    source = stores.source
    array = np.load(source.npy, mmap_mode="r")
    for side in (SMALL, LARGE):
        say(f"channel, {side}x{side}")
        wanted = readers.boxes(source, (side, side), COUNTS[side])
        with opened(stores) as all_readers:
            calls = {reader.name: lambda reader=reader: statistics.median(checked(reader.read, array, wanted))
                     for reader in all_readers}
            calls["copy"] = lambda: statistics.median(timed(lambda box: np.array(readers.cut(array, box)), wanted))
            in_c = ["--window", f"{side}x{side}", "--warm", "--source", source.raw, "--count", COUNTS[side]]
            image = stores.paths[readers.Mdfs]
            calls["C"] = lambda: context.time_reads(image, "--library", *in_c)["median_ms"]
            calls["copy in C"] = lambda: context.time_reads(image, "--memory", *in_c)["median_ms"]
            context.in_turn(1, **calls)  # into the caches
            median = context.alternate(3 if context.quick else 9, **calls)
        floors = {"C": median.pop("copy in C"), "Python": median.pop("copy")}
        in_c = median.pop("C")
        for language, value, peers in (("C", in_c, {}), ("Python", median.pop("MDFS"), median)):
            row = table.Row(GROUP, f"window {side}x{side}, raw, warm, from {language}", value, "ms", floors[language],
                            "copy within memory", peers=peers)
            if side == SMALL:
                row.target, row.met = f"at most {SMALL_MOST[language]:g} ms", value <= SMALL_MOST[language]
            else:
                row.target = f"at most {LARGE_TIMES_COPY:g}x"
                row.met = value <= LARGE_TIMES_COPY * floors[language]
            found.append(row)
    return found


def crop_rows(context, stores):
    """Many random crops in one call, as training wants them."""
    say("channel, many crops in one call")
    array = np.load(stores.source.npy, mmap_mode="r")
    wanted = readers.boxes(stores.source, (CROP_SIDE,) * 3, CROPS)
    out = np.zeros((CROPS,) + (CROP_SIDE,) * 3, np.uint8)

    def check(who):
        for box, crop in zip(wanted, out):
            if not np.array_equal(readers.cut(array, box), crop):
                raise AssertionError(f"{who}: WRONG BYTES")

    def by_mdfs(image):
        image.read_many([tuple(slice(*side) for side in box) for box in wanted], out=out)

    def by_tensorstore(data):
        import tensorstore  # pylint: disable=import-outside-toplevel
        with tensorstore.Batch() as batch:
            reads = [data[tuple(slice(*side) for side in box)].read(batch=batch) for box in wanted]
        for crop, read in zip(out, reads):
            crop[...] = read.result()

    def by_copies():
        for crop, box in zip(out, wanted):
            crop[...] = readers.cut(array, box)

    def seconds(call):
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    with opened(stores) as all_readers:
        calls = {}
        for reader in all_readers:
            if isinstance(reader, Package):
                calls[reader.name] = lambda reader=reader: by_mdfs(reader.image)
            elif isinstance(reader, readers.Tensorstore):
                calls[reader.name] = lambda reader=reader: by_tensorstore(reader.data)
        calls["copy"] = by_copies
        for who, call in calls.items():
            out[...] = 0
            call()
            check(who)
        took = context.alternate(3 if context.quick else 9, **{who: lambda call=call: seconds(call)
                                                               for who, call in calls.items()})
    rates = {who: CROPS / value for who, value in took.items()}
    own, floor = rates.pop("MDFS"), rates.pop("copy")
    name = f"{CROPS} random windows {CROP_SIDE}x{CROP_SIDE}x{CROP_SIDE} in one call, warm"
    if not rates:
        return [table.Row(GROUP, name, own, "/s", floor, "copy within memory, one thread")]
    return [table.at_least_of_peers(GROUP, name, own, "/s", rates, TIMES_BATCH, floor=floor,
                                    floor_name="copy within memory, one thread")]


def sequential_rows(context, stores):
    """The picture from its first row on, band by band, into the same memory: shared with the daemon, or any other."""
    say("channel, the picture band by band")
    source = stores.source
    row_bytes = source.bytes // source.shape[0]
    bands = min(SEQUENTIAL_BYTES // row_bytes, source.shape[0]) // BAND_ROWS
    whole = np.load(source.npy, mmap_mode="r")
    array = np.array(whole[:bands * BAND_ROWS])  # in memory of the process, not in that of a file
    image = package().open(stores.paths[readers.Mdfs])
    plain, shared = np.zeros((BAND_ROWS,) + source.shape[1:], np.uint8), image.empty((BAND_ROWS,) + source.shape[1:])

    def by_mdfs(out, verify=False):
        begin = time.perf_counter()
        for band in range(bands):
            image.read((slice(band * BAND_ROWS, (band + 1) * BAND_ROWS),), out=out)
            if verify and not np.array_equal(out, array[band * BAND_ROWS:(band + 1) * BAND_ROWS]):
                raise AssertionError("MDFS: WRONG BYTES")
        return array.nbytes / 1e6 / (time.perf_counter() - begin)

    def by_copies():
        begin = time.perf_counter()
        for band in range(bands):
            plain[...] = array[band * BAND_ROWS:(band + 1) * BAND_ROWS]
        return array.nbytes / 1e6 / (time.perf_counter() - begin)

    with image:
        for out in (plain, shared):
            by_mdfs(out, verify=True)
        rate = context.alternate(3 if context.quick else 9, plain=lambda: by_mdfs(plain),
                                 shared=lambda: by_mdfs(shared), floor=by_copies)
    name, floor = "picture band by band, raw, warm", (rate["floor"], "copy within memory")
    return [table.Row(GROUP, f"{name}, into shared memory", rate["shared"], "MB/s", *floor,
                      f"at least {OF_MEMCPY:g}x", rate["shared"] >= OF_MEMCPY * rate["floor"]),
            table.Row(GROUP, f"{name}, into any memory", rate["plain"], "MB/s", *floor)]
