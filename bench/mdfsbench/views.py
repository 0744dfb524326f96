"""What other programs read of the views of an image, beside the same bytes as files of ext4; and a browser's pictures.

zarr-python and TensorStore read ome.zarr, GDAL the TIFF file with levels. The copies on ext4 are made by cp from the
mount. All that is read is compared.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

import numpy as np

from mdfsbench import cold, readers, table
from mdfsbench.cold import throttled_disks
from mdfsbench.context import Skip, run, say
from mdfsbench.small import ext4, ext4_on
from mdfsbench.warm import picture

GROUP = "views"
OF_EXT4, OF_DISKS, OF_ENCODER, TIMES_SMALL = 0.9, 0.9, 0.7, 1.2
FIRST_PICTURE_MS = 1000
EXTENTS = ["256x256", "512x512"]
REGION, COLD_REGIONS, COLD_DISKS = 2048, 6, 8
WINDOW, WINDOWS = 512, 100  # of the TIFF file
GDAL_CACHE = 1 << 20  # so that each window is read from the file
TILE, TILES, JPEG_QUALITY = 256, 300, 90  # as the views have them
HUGE, QUICK_HUGE, BAND = 100_000, 8_192, 256  # rows are stored in bands
SCREEN = 1024  # samples of the longer side that a browser shows first
OVERVIEW = 2048  # and at most so many of the level that is the overview
ROUNDS = 5


def rows(context):
    source, clients = picture(context), programs()
    crop = context.new_path("crop.npy")
    with contextlib.ExitStack() as stack:
        stack.enter_context(context.removed_after(crop))
        side = min(source.shape[0], 4096)  # both copies fit into memory
        np.save(crop, np.load(source.npy, mmap_mode="r")[:side, :side])
        disks = stack.enter_context(context.volume([context.new_path("disk")], size=1 << 30, sparse=True))
        mnt = stack.enter_context(context.mounted(disks))
        place = stack.enter_context(ext4(context))
        found = []
        for extent in EXTENTS:
            context.mdfs("image", "import", "--quiet", "--codec", "zstd", "--extent", extent, crop, mnt / extent)
            found += zarr_rows(context, clients, f"{mnt / extent}@/ome.zarr", place / extent, extent)
        context.mdfs("image", "import", "--quiet", "--codec", "zstd", "--levels", "auto", crop, mnt / "picture")
        found += tiff_rows(context, f"{mnt / 'picture'}@/picture.tif", place / "picture.tif")
        found += tile_rows(context, f"{mnt / 'picture'}@/win", side)
    if "TensorStore" in clients:
        found += cold_rows(context, source)
    return found + huge_rows(context, source)


# ---- Zarr


def by_zarr(group):
    import zarr
    array = zarr.open_group(group, mode="r")["0"]
    return lambda: array[...]


def tensorstore_array(group):
    import tensorstore
    return tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{group}/0"}}).result()


def by_tensorstore(group):
    array = tensorstore_array(group)
    return lambda: array.read().result()


def programs():
    found = {}
    for name, module, opened in (("zarr-python", "zarr", by_zarr), ("TensorStore", "tensorstore", by_tensorstore)):
        try:
            __import__(module)
            found[name] = opened
        except ImportError as error:
            say(f"LEFT OUT {name}: {error}")
    return found


def rate(read, expected=None):
    """MB/s of what `read` returns."""
    begin = time.perf_counter()
    array = read()
    seconds = time.perf_counter() - begin
    if expected is not None and not np.array_equal(array, expected):
        raise AssertionError("WRONG BYTES")
    return array.nbytes / 1e6 / seconds


def zarr_rows(context, clients, view, copy, extent):
    """The whole image from memory: a store is opened once, and keeps nothing itself."""
    run("cp", "-r", view, copy)
    found = []
    for name, opened in clients.items():
        say(f"ome.zarr by {name}, extents {extent}")
        here, there = opened(str(view)), opened(str(copy))
        expected = there()
        rate(here, expected)
        rates = context.alternate(2 if context.quick else 2 * ROUNDS, mdfs=lambda: rate(here),  # noqa: B023
                                  ext4=lambda: rate(there))  # noqa: B023
        found.append(table.at_least_of_peers(GROUP, f"{name} reads ome.zarr, extents {extent}, zstd, warm",
                                             rates["mdfs"], "MB/s", {"the same store on ext4": rates["ext4"]}, OF_EXT4))
    return found


def cold_rows(context, source):
    """Regions of a Zarr view on slow disks, beside the same store on one of the disks."""
    rates = {}
    try:
        size = source.bytes * 2 // COLD_DISKS + (512 << 20)
        with throttled_disks.ThrottledDisks(COLD_DISKS, size, context.scratch) as disks:
            with context.volume(disks.paths):
                with context.mounted(disks.paths) as mnt:
                    context.mdfs("image", "import", "--quiet", "--codec", "raw", source.npy, mnt / "picture")
                disks.throttle(cold.RATE, cold.IOPS)
                with context.mounted(disks.paths) as mnt:
                    rates["mdfs"], regions = region_rate(context, f"{mnt / 'picture'}@/ome.zarr", source)
                disks.unthrottle()
            rates["one"] = one_disk(context, disks, source, regions)
    except throttled_disks.Unavailable as error:
        raise Skip(str(error)) from error
    row = table.Row(GROUP, f"TensorStore reads ome.zarr, {REGION}x{REGION}, cold, k={COLD_DISKS}", rates["mdfs"],
                    "MB/s", COLD_DISKS * cold.RATE / 1e6, "all disks",
                    peers={"the same store on one disk": rates["one"]})
    row.target = f"at least {OF_DISKS * COLD_DISKS:g}x the peer"
    row.met = row.peer_ratio >= OF_DISKS * COLD_DISKS
    return [row]


def region_rate(context, group, source, regions=None):
    """MB/s of stored chunks, and the regions that were read: of channels, rows, columns."""
    readers.forget_pages()
    array = tensorstore_array(group)
    _, side = sides(array, source)
    if regions is None:
        random = np.random.default_rng(5)
        corners = random.permutation((source.shape[0] // side) ** 2)[:2 if context.quick else COLD_REGIONS]
        regions = [[int(at) * side for at in divmod(int(corner), source.shape[0] // side)] for corner in corners]
    expected = np.load(source.npy, mmap_mode="r")
    begin, read = time.perf_counter(), []
    for y, x in regions:
        say(f"cold region at {y}, {x}")
        read.append(array[:, y:y + side, x:x + side].read().result())
    seconds = time.perf_counter() - begin
    for (y, x), region in zip(regions, read):
        if not np.array_equal(region, expected[y:y + side, x:x + side].transpose(2, 0, 1)):
            raise AssertionError("WRONG BYTES")
    return sum(region.nbytes for region in read) / 1e6 / seconds, regions


def sides(array, source):
    """Of a chunk, and of a region, which has whole chunks."""
    chunk = array.chunk_layout.read_chunk.shape[-1]
    side = min(REGION, source.shape[0] // 4)
    return chunk, side - side % chunk


def one_disk(context, disks, source, regions):
    """The store on the first disk: of the chunks those that are read."""
    with ext4_on(context, disks.paths[0]) as mnt:
        size = source.bytes * 3 // 2 + (256 << 20)
        with context.volume([context.new_path("disk")], size=size, sparse=True) as whole, \
                context.mounted(whole) as view:
            context.mdfs("image", "import", "--quiet", "--codec", "raw", source.npy, view / "picture")
            copy_chunks(f"{view / 'picture'}@/ome.zarr", mnt / "store", source, regions)
        run("sync", "-f", mnt)
        disks.throttle(cold.RATE, cold.IOPS)
        try:
            return region_rate(context, mnt / "store", source, regions)[0]
        finally:
            disks.unthrottle()


def copy_chunks(view, store, source, regions):
    chunk, side = sides(tensorstore_array(view), source)
    for name in ("zarr.json", "0/zarr.json"):
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(f"{view}/{name}", store / name)
    for y, x in regions:
        for row in range(y // chunk, (y + side) // chunk):
            (store / f"0/c/0/{row}").mkdir(parents=True, exist_ok=True)
            for column in range(x // chunk, (x + side) // chunk):
                shutil.copy(f"{view}/0/c/0/{row}/{column}", store / f"0/c/0/{row}/{column}")


# ---- TIFF


def tiff_rows(context, view, copy):
    try:
        from osgeo import gdal
    except ImportError as error:
        say(f"LEFT OUT GDAL: {error}")
        return []
    gdal.UseExceptions()
    gdal.SetCacheMax(GDAL_CACHE)
    shutil.copy(view, copy)
    say("the TIFF file by GDAL")
    files = {"mdfs": gdal.Open(str(view)), "ext4": gdal.Open(str(copy))}
    random = np.random.default_rng(3)
    side = files["mdfs"].RasterXSize
    corners = random.integers(0, side - WINDOW, (WINDOWS, 2)).tolist()

    def once(file):
        begin = time.perf_counter()
        read = [file.ReadRaster(x, y, WINDOW, WINDOW) for y, x in corners]
        return (time.perf_counter() - begin) * 1e3 / WINDOWS, read

    if once(files["mdfs"])[1] != once(files["ext4"])[1]:
        raise AssertionError("WRONG BYTES")
    times = context.alternate(2 if context.quick else ROUNDS, mdfs=lambda: once(files["mdfs"])[0],
                              ext4=lambda: once(files["ext4"])[0])
    return [table.at_most_of_peer(GROUP, f"GDAL reads NAME.tif, {WINDOW}x{WINDOW}, zstd, warm", times["mdfs"], "ms",
                                  {"the same file on ext4": times["ext4"]}, "the same file on ext4", 1 / OF_EXT4)]


# ---- a browser


def tile_rows(context, windows, side):
    """Tiles one after another by one reader; the floor encodes the same samples on one core."""
    try:
        from PIL import Image
    except ImportError as error:
        say(f"LEFT OUT JPEG tiles: {error}")
        return []
    random = np.random.default_rng(4)
    corners = (random.integers(0, side // TILE, (TILES, 2)) * TILE).tolist()
    arrays = [np.frombuffer(read(f"{windows}/y{y}+{TILE},x{x}+{TILE}.raw"), np.uint8).reshape(TILE, TILE, 3)
              for y, x in corners]

    def tiles():
        begin = time.perf_counter()
        for y, x in corners:
            serve(f"{windows}/y{y}+{TILE},x{x}+{TILE}.jpg")
        return TILES / (time.perf_counter() - begin)

    def encoder():
        begin = time.perf_counter()
        for array in arrays:
            Image.fromarray(array).save(io.BytesIO(), "JPEG", quality=JPEG_QUALITY, subsampling=0)
        return TILES / (time.perf_counter() - begin)

    say("JPEG tiles")
    rates = context.alternate(2 if context.quick else ROUNDS, tiles=tiles, encoder=encoder)
    row = table.Row(GROUP, f"JPEG tiles {TILE}x{TILE}, warm", rates["tiles"], "/s", rates["encoder"],
                    "libjpeg-turbo by Pillow on one core", f"at least {OF_ENCODER:g}x")
    row.met = row.ratio >= OF_ENCODER
    return [row]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def serve(path):
    """As a web server reads: a size, then as many bytes."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, os.fstat(file).st_size)
    finally:
        os.close(file)


def huge_rows(context, source):
    side = QUICK_HUGE if context.quick else HUGE
    with context.volume([context.new_path("disk")], size=side * side + side * side // 2 + (512 << 20),
                        sparse=True) as disks:
        with context.mounted(disks) as mnt:
            store_huge(context, mnt / "huge", source, side)
            levels = built_levels(context, mnt / "huge")
            level = next(entry for entry in levels if max(entry["shape"]) <= OVERVIEW)
            small = np.array(np.load(source.npy, mmap_mode="r")[:level["shape"][0], :level["shape"][1], 0])
            path = context.new_path("small.npy")
            with context.removed_after(path):
                np.save(path, small)
                context.mdfs("image", "import", "--quiet", "--codec", "zstd", path, mnt / "small")
        first = [first_picture(context, disks, side) for _ in range(1 if context.quick else 3)]
        times = context.alternate(1 if context.quick else 3, huge=lambda: overview(context, disks, "huge", level),
                                  small=lambda: overview(context, disks, "small", level | {"level": 0}))
    name = f"{side} x {side}"
    row = table.Row(GROUP, f"first picture of {name} samples in a browser, cold", sorted(first)[len(first) // 2], "ms",
                    target=f"at most {FIRST_PICTURE_MS} ms")
    row.met = row.value <= FIRST_PICTURE_MS
    shape = "x".join(map(str, level["shape"]))
    return [row, table.at_most(GROUP, f"overview {shape} of {name} samples, cold", times["huge"], "ms", times["small"],
                               "an image of this size", TIMES_SMALL)]


def store_huge(context, image, source, side):
    """The first channel of the picture again and again, each band of rows shifted against the one before."""
    context.mdfs("image", "create", "--shape", f"{side}x{side}", "--type", "u8", "--codec", "zstd", "--levels", "auto",
                 image)
    array = np.load(source.npy, mmap_mode="r")
    with open(image, "r+b") as file:
        for y in range(0, side, BAND):
            if y % (BAND * 64) == 0:
                say(f"storing rows {y} to {side} of {side}")
            part = np.asarray(array[y % (array.shape[0] - BAND):, :, 0][:min(BAND, side - y)])
            band = np.roll(np.tile(part, (1, -(-side // part.shape[1])))[:, :side], 131 * y, axis=1)
            file.write(np.ascontiguousarray(band))


def built_levels(context, image):
    """The levels, once all of them are built: a read of the coarsest builds them."""
    say("building levels")
    levels = json.loads(context.mdfs("image", "levels", "--json", image))["levels"]
    read(f"{image}@/win/l{len(levels)}.raw")
    levels = json.loads(context.mdfs("image", "levels", "--json", image))["levels"]
    assert all(level["built"] == level["extents"] for level in levels), levels
    return levels


def first_picture(context, disks, side):
    """ms for the page of the image, its description, and the tiles that fill a screen."""
    say("the first picture in a browser")
    readers.forget_pages()
    with context.mounted(disks) as mnt, served(context, mnt) as address:
        begin = time.perf_counter()
        fetch(f"{address}/huge@/")
        fetch(f"{address}/huge@/dz.dzi")
        top = (side - 1).bit_length()
        level = next(level for level in range(top, 0, -1) if side >> (top - level) <= SCREEN)
        shown = -(-side >> (top - level))
        count = -(-shown // TILE)
        for row in range(count):
            for column in range(count):
                fetch(f"{address}/huge@/dz_files/{level}/{column}_{row}.jpg")
        return (time.perf_counter() - begin) * 1e3


def fetch(address):
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()


@contextlib.contextmanager
def served(context, mnt):
    """The address of `mdfs serve`."""
    process = subprocess.Popen([str(context.program("tools/mdfs")), "serve", "--listen", "127.0.0.1:0", str(mnt)],
                               stdout=subprocess.PIPE, text=True)
    try:
        yield re.search(r"http://[0-9.:]+", process.stdout.readline()).group(0)
    finally:
        process.terminate()
        process.wait()


def overview(context, disks, name, level):
    say(f"overview of {name}")
    readers.forget_pages()
    height, width = level["shape"]
    spec = (f"l{level['level']}," if level["level"] else "") + f"y0+{height},x0+{width}.raw"
    with context.mounted(disks) as mnt:
        begin = time.perf_counter()
        data = read(f"{mnt / name}@/win/{spec}")
        taken = (time.perf_counter() - begin) * 1e3
    assert len(data) == height * width
    return taken
