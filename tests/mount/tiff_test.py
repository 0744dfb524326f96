"""NAME.tif: an image as a TIFF of tiles or strips, with its levels and metadata, which other programs read."""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import mmap
import os
import shutil
import struct
import subprocess
import threading
import unittest

import harness
from harness import make_image, read_all, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of the TIFF view need numpy")
    raise SystemExit(harness.SKIP)


def directory_at(file, at):
    """A directory of a BigTIFF, as fields by tag, bytes or arrays of numbers, and where the next one is."""
    kinds = {3: "<u2", 4: "<u4", 5: "<u4", 12: "<f8", 16: "<u8", 18: "<u8"}
    count = struct.unpack_from("<Q", file, at)[0]
    page = {}
    for entry in range(at + 8, at + 8 + 20 * count, 20):
        tag, kind, number = struct.unpack_from("<HHQ", file, entry)
        size = number * {3: 2, 4: 4, 5: 8, 12: 8, 16: 8, 18: 8}.get(kind, 1)
        place = entry + 12 if size <= 8 else struct.unpack_from("<Q", file, entry + 12)[0]
        values = file[place:place + size]
        page[tag] = np.frombuffer(values, kinds[kind]) if kind in kinds else values
    return page, struct.unpack_from("<Q", file, at + 8 + 20 * count)[0]


def pages_of(file):
    """The directories in the chain."""
    pages, at = [], struct.unpack_from("<Q", file, 8)[0]
    while at != 0:
        page, at = directory_at(file, at)
        pages.append(page)
    return pages


def tiles_of(file, page, element):
    """The samples of a page of tiles."""
    (height,), (width,), (channels,) = page[257], page[256], page[277]
    (across,), (rows,) = page[322], page[323]
    columns = -(-int(width) // int(across))
    samples = np.zeros((-(-int(height) // int(rows)) * int(rows), columns * int(across), channels), element)
    for number, (offset, size) in enumerate(zip(page[324], page[325])):
        y, x = number // columns * int(rows), number % columns * int(across)
        tile = np.frombuffer(file[int(offset):int(offset + size)], element)
        samples[y:y + int(rows), x:x + int(across)] = tile.reshape(rows, across, channels)
    return samples[:height, :width]


def halved(data):
    """The mean of 2 x 2 samples, of fewer at the end of an axis, rounded half to even."""
    whole = np.pad(data, [(0, data.shape[0] % 2), (0, data.shape[1] % 2), (0, 0)], mode="edge").astype("f8")
    mean = sum(whole[y::2, x::2] for y in (0, 1) for x in (0, 1)) / 4
    return np.rint(mean).astype(data.dtype)


class Tiff(harness.MountTest):
    def image(self, name, shape, element="u8", channels=1, **options):
        full = [*shape, *([channels] if channels > 1 else [])]
        data = np.random.default_rng(1).integers(0, 100, full).astype(harness.NUMPY[element])
        make_image(self.at(name), shape, element=element, channels=channels, **options)
        write_all(self.at(name), data.tobytes())
        return data

    def by_gdal(self, path, page):
        copy = os.path.join(self.volume.folder, "copy.bin")
        subprocess.run(["gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BIP", f"GTIFF_DIR:{page}:{path}",
                        copy], check=True, capture_output=True)
        return read_all(copy)

    @unittest.skipUnless(shutil.which("gdal_translate"), "needs gdal_translate")
    def test_gdal_reads_every_page_of_tiles_and_of_strips(self):
        for name, extent in ("tiles", (2, 32, 64)), ("strips", (2, 30, 50)):
            for element, channels in ("u8", 3), ("u16", 1), ("f32", 4), ("i32", 1), ("u8", 6):
                path = f"{name}{element}{channels}"
                data = self.image(path, (3, 70, 150), element, channels, extent=extent)
                tif = self.at(f"{path}@/{path}.tif")
                self.assertEqual(len(read_all(tif)), os.stat(tif).st_size)
                for page in range(3):
                    with self.subTest(path=path, page=page):
                        self.assertEqual(self.by_gdal(tif, page + 1), data[page].tobytes())

    def test_any_piece_is_that_of_the_file(self):
        self.image("scan", (150, 200), "u16", extent=(32, 64))
        whole = read_all(self.at("scan@/scan.tif"))
        self.assertEqual(whole[:4], b"II\x2b\0")
        fd = os.open(self.at("scan@/scan.tif"), os.O_RDONLY | os.O_DIRECT)
        for offset in range(0, len(whole), 1777):
            self.assertEqual(os.pread(fd, 3000, offset), whole[offset:offset + 3000])
        os.close(fd)

    def test_the_file_follows_the_image(self):
        data = self.image("film", (2, 32, 48), extent=(1, 16, 16))
        tif = self.at("film@/film.tif")
        before = read_all(tif)
        with open(self.at("film"), "ab") as file:
            file.write(data[0].tobytes())
        write_all(self.at("film@/win/z0.raw"), data[1].tobytes())
        after = read_all(tif)
        self.assertEqual(len(after), os.stat(tif).st_size)
        self.assertEqual(len(after) - len(before), 32 * 48)  # a page fits the head, which is rounded up
        first, second = before[-2 * 32 * 48:-32 * 48], before[-32 * 48:]  # in the order of tiles
        self.assertEqual(after[-3 * 32 * 48:], second + second + first)
        self.assertEqual(struct.unpack_from("<Q", after, 8), (16,))
        os.truncate(self.at("film"), 0)
        self.assertErrno(errno.ENOENT, os.stat, tif)
        self.assertNotIn("film.tif", os.listdir(self.at("film@")))

    def test_the_file_is_read_only_and_has_the_rights_of_the_image(self):
        self.image("scan", (32, 32))
        for flags in (os.O_WRONLY, os.O_RDWR):
            self.assertErrno(errno.EACCES, os.open, self.at("scan@/scan.tif"), flags)
        os.chmod(self.at("scan"), 0o640)
        self.assertEqual(os.stat(self.at("scan@/scan.tif")).st_mode & 0o777, 0o440)

    def same_pyramid(self, file, data, levels):
        pages = pages_of(file)
        self.assertEqual(len(pages), levels + 1)
        for page in pages:
            np.testing.assert_array_equal(tiles_of(file, page, data.dtype), data)
            data = halved(data)
        first = [int(page[324][0]) for page in pages]
        self.assertEqual(first, sorted(first, reverse=True))  # the smallest level comes first

    def test_levels_are_overviews_that_follow_every_write(self):
        data = np.random.default_rng(3).integers(0, 60000, (301, 455, 3), dtype="u2")
        harness.run(harness.MDFS, "image", "create", "--shape", "301x455", "--channels", "3", "--type", "u16",
                    "--extent", "64x64", "--levels", "3", self.at("scan"))
        write_all(self.at("scan"), data.tobytes())
        tif = self.at("scan@/scan.tif")
        self.same_pyramid(read_all(tif), data, 3)
        with open(tif, "rb", buffering=0) as file:
            for number in range(5):
                window = np.random.default_rng(number).integers(0, 60000, (70, 90, 3), dtype="u2")
                y, x = 50 * number, 70 * number
                data[y:y + 70, x:x + 90] = window
                write_all(self.at(f"scan@/win/y{y}+70,x{x}+90.raw"), window.tobytes())
                file.seek(0)
                self.same_pyramid(file.readall(), data, 3)  # by an open descriptor
                self.same_pyramid(read_all(tif), data, 3)
            for levels in 0, 2:
                harness.run(harness.MDFS, "image", "levels", "--set", str(levels or "none"), self.at("scan"))
                self.assertEqual(os.stat(tif).st_size, len(read_all(tif)))
                self.same_pyramid(read_all(tif), data, levels)

    def test_an_open_file_keeps_its_layout(self):
        data = self.image("film", (2, 150, 200), "u16", extent=(1, 64, 64))
        film, tif = self.at("film"), self.at("film@/film.tif")
        harness.run(harness.MDFS, "image", "levels", "--set", "1", film)

        def append():
            with open(film, "ab") as file:
                file.write(data.tobytes() * 60)

        def set_levels():
            harness.run(harness.MDFS, "image", "levels", "--set", "none", film)

        def describe():
            os.setxattr(film, "user.mdfs.meta.description", b"words" * 2000)

        for change in (append, describe, set_levels):
            with self.subTest(change.__name__), open(tif, "rb", buffering=0) as file:
                before = file.readall()
                change()
                self.assertEqual(os.pread(file.fileno(), len(before), 0), before)
                self.assertNotEqual(read_all(tif), before)

    def test_stacks_of_any_number_of_channels_come_back_from_an_exported_file(self):
        for channels in range(1, 7):
            for element in ("u8", "u16", "f32"):
                with self.subTest(channels=channels, element=element):
                    name = f"stack{channels}{element}"
                    data = self.image(name, (3, 20, 30), element, channels, extent=(1, 16, 16))
                    target = os.path.join(self.volume.folder, "stack.tif")
                    harness.run(harness.MDFS, "image", "export", "--force", self.at(name), target)
                    harness.run(harness.MDFS, "image", "import", "--quiet", "--axes",
                                "zyxc" if channels > 1 else "zyx", target, self.at(f"{name}again"))
                    self.assertEqual(read_all(self.at(f"{name}again")), data.tobytes())
                    os.unlink(target)

    def test_an_open_file_follows_every_kind_of_write(self):
        shape, random = (200, 320, 3), np.random.default_rng(8)
        data = self.image("scan", shape[:2], channels=3, extent=(64, 64))
        harness.run(harness.MDFS, "image", "levels", "--set", "2", self.at("scan"))
        scan, tif = self.at("scan"), self.at("scan@/scan.tif")
        kept, plain = os.open(tif, os.O_RDONLY), os.open(scan, os.O_RDWR)
        bound = os.open(scan, os.O_RDWR)
        # Its reads pass the kernel's pages by.
        direct = os.open(tif, os.O_RDONLY | os.O_DIRECT)
        size = os.fstat(kept).st_size
        ended, failed = threading.Event(), []

        def fill_pages():
            pieces = np.random.default_rng(9)
            while not ended.is_set():
                os.pread(kept, 20_000, int(pieces.integers(0, size)))

        def write(number, y, x, window):
            rows, columns = window.shape[:2]
            if number == 0:
                write_all(f"{scan}@/win/y{y}+{rows},x{x}+{columns}.raw", window.tobytes())
            elif number == 1:
                for row in range(rows):
                    os.pwrite(plain, window[row].tobytes(), ((y + row) * shape[1] + x) * 3)
            elif number == 2:
                harness.bind(bound, (y, x), (rows, columns))
                os.pwrite(bound, window.tobytes(), 0)
            else:
                with mmap.mmap(plain, 0) as samples:
                    for row in range(rows):
                        at = ((y + row) * shape[1] + x) * 3
                        samples[at:at + columns * 3] = window[row].tobytes()
                    samples.flush()
            data[y:y + rows, x:x + columns] = window

        readers = [threading.Thread(target=fill_pages) for _ in range(2)]
        for reader in readers:
            reader.start()
        try:
            with mmap.mmap(kept, 0, prot=mmap.PROT_READ) as mapped:
                for number in range(40):
                    y, x = int(random.integers(0, 150)), int(random.integers(0, 250))
                    write(number % 4, y, x, random.integers(0, 256, (50, 70, 3), dtype="u1"))
                    newest = os.pread(direct, size, 0)
                    for name, got in (("descriptor", os.pread(kept, size, 0)), ("mapping", mapped[:]),
                                      ("open", read_all(tif))):
                        if got != newest:
                            failed.append((number, name))
                    self.same_pyramid(newest, data, 2)
        finally:
            ended.set()
            for reader in readers:
                reader.join()
            for fd in kept, plain, bound, direct:
                os.close(fd)
        self.assertEqual(failed, [])

    def test_each_of_several_pages_has_its_levels(self):
        data = np.random.default_rng(6).integers(0, 60000, (2, 3, 201, 155, 1), dtype="u2")
        harness.run(harness.MDFS, "image", "create", "--shape", "2x3x201x155", "--axes", "tcyx", "--type", "u16",
                    "--extent", "1x1x32x32", "--levels", "2", self.at("cells"))
        write_all(self.at("cells"), data.tobytes())
        tif = self.at("cells@/cells.tif")
        for _ in range(2):
            file = read_all(tif)
            self.assertEqual(os.stat(tif).st_size, len(file))
            pages = pages_of(file)
            self.assertEqual(len(pages), 6)
            self.assertIn(b'SizeC="3"', pages[0][270])
            for page, wanted in zip(pages, data.reshape(6, 201, 155, 1)):
                np.testing.assert_array_equal(tiles_of(file, page, wanted.dtype), wanted)
                self.assertEqual(len(page[330]), 2)
                for place in page[330]:
                    level, following = directory_at(file, int(place))
                    wanted = halved(wanted)
                    self.assertEqual(following, 0)
                    np.testing.assert_array_equal(tiles_of(file, level, wanted.dtype), wanted)
            window = np.random.default_rng(7).integers(0, 60000, (70, 90, 1), dtype="u2")
            data[1, 2, 100:170, 50:140] = window
            write_all(self.at("cells@/win/t1,c2,y100+70,x50+90.raw"), window.tobytes())

    @unittest.skipUnless(shutil.which("gdalinfo"), "needs gdalinfo")
    def test_gdal_finds_the_overviews(self):
        harness.run(harness.MDFS, "image", "create", "--shape", "600x900", "--type", "u8", "--extent", "64x64",
                    "--levels", "2", self.at("map"))
        info = json.loads(subprocess.run(["gdalinfo", "-json", self.at("map@/map.tif")], check=True,
                                         capture_output=True).stdout)
        self.assertEqual([one["size"] for one in info["bands"][0]["overviews"]], [[450, 300], [225, 150]])

    def test_metadata_are_fields_of_the_first_page(self):
        harness.run(harness.MDFS, "image", "create", "--shape", "40x50", "--spacing", "0.5um,0.25um", self.at("scan"))
        tif = self.at("scan@/scan.tif")
        self.assertNotIn(34675, pages_of(read_all(tif))[0])
        for profile in b"a profile", b"p" * 65536:
            os.setxattr(self.at("scan"), "user.mdfs.meta.icc", profile)
            self.assertEqual(pages_of(read_all(tif))[0][34675], profile)
            self.assertEqual(os.stat(tif).st_size, len(read_all(tif)))
        os.setxattr(self.at("scan"), "user.mdfs.meta.icc.1", b"and more")
        self.assertEqual(pages_of(read_all(tif))[0][34675], b"p" * 65536 + b"and more")
        os.removexattr(self.at("scan"), "user.mdfs.meta.icc")
        page = pages_of(read_all(tif))[0]
        self.assertNotIn(34675, page)
        self.assertIn(b'PhysicalSizeX="0.25" SizeY="40" PhysicalSizeY="0.5"', page[270])
        self.assertEqual([page[282][0] // page[282][1], page[283][0] // page[283][1]], [40000, 20000])
        os.setxattr(self.at("scan"), "user.mdfs.meta.description", "what it is".encode())
        self.assertEqual(pages_of(read_all(tif))[0][270], b"what it is\0")

    @unittest.skipUnless(shutil.which("gdal_translate"), "needs gdal_translate")
    def test_a_map_keeps_its_place(self):
        source = os.path.join(self.volume.folder, "geo.tif")
        subprocess.run(["gdal_translate", "-q", "-of", "GTiff", "-outsize", "60", "50", "-a_srs", "EPSG:32632",
                        "-a_ullr", "500000", "5200000", "500600", "5199500", self.plain_picture(), source], check=True)
        harness.run(harness.MDFS, "image", "import", source, self.at("geo"))
        facts = []
        for path in source, self.at("geo@/geo.tif"):
            info = json.loads(subprocess.run(["gdalinfo", "-json", path], check=True, capture_output=True).stdout)
            facts.append((info["geoTransform"], info["coordinateSystem"]["wkt"]))
        self.assertEqual(*facts)

    def plain_picture(self):
        path = os.path.join(self.volume.folder, "plain.pgm")
        write_all(path, b"P5 60 50 255\n" + bytes(range(250)) * 12)
        return path


if __name__ == "__main__":
    harness.main()
