"""Random operations on one file against an array of bytes: what fsx does, on ordinary files and on images.

The real fsx (crates.io) runs as well where it is installed. It cannot be installed by Debian 12 alone: its dependencies
want a newer compiler than rustc 1.63. MDFS_TEST_SEEDS=A-B picks the seeds.
"""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import mmap
import os
import random
import shutil

from torture import LONGER, TortureTest, main, make_image, read_all, run, tried

LIBC = ctypes.CDLL(None, use_errno=True)
KEEP, PUNCH, ZERO = 1, 2, 16
LARGEST = 600_000
# (how often, operation)
OPERATIONS = ((12, "write"), (10, "read"), (5, "map_write"), (5, "map_read"), (3, "grow"), (4, "shrink"), (4, "punch"),
              (3, "zero"), (2, "allocate"), (4, "copy"), (2, "append"), (2, "reopen"), (2, "sync"), (1, "drop_pages"),
              (3, "write_direct"), (3, "read_direct"), (2, "copy_from"), (1, "seek_hole"), (2, "write_vector"),
              (1, "sendfile"))


class Exercise:
    """One file, its model, and two descriptors: one through the page cache, one that goes past it."""

    def __init__(self, path, other, seed):
        self.rng = random.Random(seed)
        self.path, self.other = path, other
        self.model = bytearray()
        self.log = []
        self.fds = []
        self.reopen()
        os.ftruncate(self.fd, 0)

    def reopen(self):
        self.close()
        self.fd, self.direct = os.open(self.path, os.O_RDWR), os.open(self.path, os.O_RDWR | os.O_DIRECT)
        self.fds = [self.fd, self.direct]

    def close(self):
        while self.fds:
            os.close(self.fds.pop())

    def say(self, text):
        self.log.append(text)

    def place(self):
        edges = (0, 1, 2047, 2048, 4095, 4096, 131_071, 131_072, len(self.model), len(self.model) // 4096 * 4096)
        return min(self.rng.choice((*edges, *[self.rng.randrange(LARGEST)] * 8)), LARGEST - 1)

    def length(self):
        return self.rng.choice((1, 2, 511, 4096, 4097, 65_536, 140_000, self.rng.randrange(1, 20_000)))

    def inside(self):
        """A range within the file, or none."""
        if not self.model:
            return 0, 0
        start = min(self.place(), len(self.model) - 1)
        return start, min(self.length(), len(self.model) - start)

    def put(self, start, data):
        if start > len(self.model):
            self.model.extend(bytes(start - len(self.model)))
        self.model[start:start + len(data)] = data

    def expect(self, got, start, length):
        wanted = bytes(self.model[start:start + length])
        if got != wanted:
            at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
            raise AssertionError("\n".join(self.log[-30:]) + f"\n{len(got)} bytes of {len(wanted)}; byte {start + at} "
                                 f"is {got[at:at + 8].hex()} and not {wanted[at:at + 8].hex()}")

    def write(self, fd=None):
        start = self.place()
        data = self.rng.randbytes(min(self.length(), LARGEST - start))
        self.say(f"write {start}+{len(data)} {'direct' if fd else ''}")
        while data:
            count = os.pwrite(fd or self.fd, data, start)
            self.put(start, data[:count])
            start, data = start + count, data[count:]

    def write_direct(self):
        self.write(self.direct)

    def write_vector(self):
        start = min(self.place(), LARGEST - 15_000)
        parts = [self.rng.randbytes(self.rng.randrange(3000)) for _ in range(5)]
        self.say(f"writev {start}+{sum(map(len, parts))}")
        if os.pwritev(self.fd, parts, start) != sum(map(len, parts)):
            raise AssertionError("a short writev")
        if any(parts):
            self.put(start, b"".join(parts))

    def append(self):
        data = self.rng.randbytes(self.length())
        if len(self.model) + len(data) > LARGEST:
            return
        self.say(f"append {len(data)}")
        with open(self.path, "ab", buffering=0) as file:
            if file.write(data) != len(data):
                raise AssertionError("a short append")
        self.model.extend(data)

    def read(self, fd=None):
        start, length = self.place(), self.length()
        self.say(f"read {start}+{length} {'direct' if fd else ''}")
        self.expect(os.pread(fd or self.fd, length, start), start, length)

    def read_direct(self):
        self.read(self.direct)

    def map_read(self):
        start, length = self.inside()
        if length:
            self.say(f"map and read {start}+{length}")
            page = start // mmap.PAGESIZE * mmap.PAGESIZE
            with mmap.mmap(self.fd, start + length - page, mmap.MAP_SHARED, mmap.PROT_READ, offset=page) as mapping:
                self.expect(mapping[start - page:], start, length)

    def map_write(self):
        start, length = self.inside()
        if length:
            self.say(f"map and write {start}+{length}")
            page = start // mmap.PAGESIZE * mmap.PAGESIZE
            data = self.rng.randbytes(length)
            with mmap.mmap(self.fd, start + length - page, offset=page) as mapping:
                mapping[start - page:] = data
                mapping.flush()
            self.put(start, data)

    def grow(self):
        size = max(len(self.model), self.place())
        self.say(f"truncate to {size}")
        os.ftruncate(self.fd, size)
        self.model.extend(bytes(size - len(self.model)))

    def shrink(self):
        size = min(len(self.model), self.place())
        self.say(f"truncate to {size}")
        os.truncate(self.path, size)
        del self.model[size:]

    def fallocate(self, mode, start, length):
        if LIBC.fallocate(self.fd, mode, ctypes.c_long(start), ctypes.c_long(length)) != 0:
            raise OSError(ctypes.get_errno(), f"fallocate {mode} {start} {length}")

    def punch(self):
        start, length = self.place(), self.length()
        self.say(f"punch {start}+{length}")
        self.fallocate(KEEP | PUNCH, start, length)
        end = min(start + length, len(self.model))
        if end > start:
            self.model[start:end] = bytes(end - start)

    def zero(self):
        start, keep = self.place(), self.rng.random() < 0.5
        length = min(self.length(), LARGEST - start)
        self.say(f"zero {start}+{length} {'keeping the size' if keep else ''}")
        self.fallocate(ZERO | (KEEP if keep else 0), start, length)
        end = min(start + length, len(self.model)) if keep else start + length
        if end > start:
            self.put(start, bytes(end - start))

    def allocate(self):
        start, keep = self.place(), self.rng.random() < 0.5
        length = min(self.length(), LARGEST - start)
        self.say(f"allocate {start}+{length} {'keeping the size' if keep else ''}")
        self.fallocate(KEEP if keep else 0, start, length)
        if not keep and start + length > len(self.model):
            self.model.extend(bytes(start + length - len(self.model)))

    def copy(self):
        """Within the file, where the ranges are apart."""
        start, length = self.inside()
        to = self.place()
        length = min(length, LARGEST - to)
        if length <= 0 or abs(to - start) < length:
            return
        self.say(f"copy {start}+{length} to {to}")
        data = bytes(self.model[start:start + length])
        while data:
            count = os.copy_file_range(self.fd, self.fd, len(data), start, to)
            if count == 0:
                raise AssertionError("copy_file_range makes no progress")
            self.put(to, data[:count])
            start, to, data = start + count, to + count, data[count:]

    def copy_from(self):
        """From another file, with holes in it."""
        source = os.open(self.other, os.O_RDONLY)
        try:
            whole = read_all(self.other)
            start, to = self.rng.randrange(len(whole)), self.place()
            length = min(self.length(), len(whole) - start, LARGEST - to)
            self.say(f"copy {start}+{length} of another file to {to}")
            while length:
                count = os.copy_file_range(source, self.fd, length, start, to)
                self.put(to, whole[start:start + count])
                start, to, length = start + count, to + count, length - count
        finally:
            os.close(source)

    def sendfile(self):
        start, length = self.inside()
        self.say(f"sendfile {start}+{length}")
        reader, writer = os.pipe()
        length = min(length, 60_000)
        if length:
            sent = os.sendfile(writer, self.fd, start, length)
            self.expect(os.read(reader, 65_536), start, sent)
        os.close(reader)
        os.close(writer)

    def seek_hole(self):
        """What lies before the next hole may be anything; what is called a hole is zeros."""
        start, length = self.inside()
        if not length:
            return
        hole = os.lseek(self.fd, start, os.SEEK_HOLE)
        try:
            data = os.lseek(self.fd, hole, os.SEEK_DATA)
        except OSError:  # to the end
            data = len(self.model)
        self.say(f"hole from {start}: {hole} to {data}")
        if not start <= hole <= len(self.model) or any(self.model[hole:data]):
            raise AssertionError("\n".join(self.log[-30:]) + "\ndata in a hole")

    def sync(self):
        self.say("sync")
        self.rng.choice((os.fsync, os.fdatasync))(self.fd)

    def drop_pages(self):
        self.say("drop pages")
        os.fsync(self.fd)
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def run(self, steps):
        weights, names = zip(*OPERATIONS)
        for _ in range(steps):
            name = self.rng.choices(names, weights)[0]
            if name == "reopen":
                self.say("reopen")
            getattr(self, name)()
            size = os.fstat(self.fd).st_size
            if size != len(self.model):
                raise AssertionError("\n".join(self.log[-30:]) + f"\nthe size is {size} and not {len(self.model)}")
        self.check()

    def check(self):
        self.expect(read_all(self.path), 0, LARGEST + 1)


def seeds(count):
    first, _, last = os.environ.get("MDFS_TEST_SEEDS", f"1-{count * LONGER}").partition("-")
    return range(int(first), int(last or first) + 1)


# Few and many, small and large, thin and thick extents; the slab of one step along the slowest axis is from 1 byte up.
IMAGES = ({"shape": (400, 1000), "extent": (32, 64), "codec": 1},
          {"shape": (400, 1000), "extent": (64, 64), "codec": 0},
          {"shape": (20, 30, 40), "element": "u16", "extent": (4, 8, 8), "codec": 1},
          {"shape": (100, 111), "channels": 3, "extent": (128, 128), "codec": 0},
          {"shape": (200_000,), "extent": (5000,), "codec": 0}, {"shape": (3, 500, 300), "extent": (2, 128, 128)})


class Exercises(TortureTest):
    options = "cache=16M"

    steps = 400

    def exercise(self, make, seed):
        """The same again after a remount: the file must be what the model says."""
        path, other = self.at(f"file{seed}"), self.at("other")
        make(path)
        with open(other, "wb") as file:
            file.write(random.Random(seed).randbytes(150_000))
            file.truncate(300_000)
        one = Exercise(path, other, seed)
        try:
            one.run(self.steps)
            return one
        finally:
            one.close()

    def exercise_all(self, makers):
        done = []
        for seed in seeds(4):
            for number, make in enumerate(makers):
                with self.subTest(seed=seed, file=number):
                    done.append(self.exercise(make, seed * 100 + number))
        self.volume.unmount()
        self.volume.mount(self.options)
        for one in done:
            one.check()
        tried(f"{self.steps} random operations on each of {len(done)} files")

    def test_files(self):
        self.exercise_all([lambda path: os.close(os.open(path, os.O_CREAT | os.O_EXCL)) for _ in range(3)])

    def test_images(self):
        self.exercise_all([lambda path, kind=kind: make_image(path, **kind) for kind in IMAGES])

    def test_images_through_the_page_cache(self):
        self.volume.unmount()
        self.options = "cache=16M,cached_images"
        self.volume.mount(self.options)
        self.exercise_all([lambda path, kind=kind: make_image(path, **kind) for kind in IMAGES[:3]])

    def test_a_wrong_byte_is_seen(self):
        os.close(os.open(self.at("file"), os.O_CREAT))
        one = Exercise(self.at("file"), self.at("file"), 1)
        one.write()
        one.model[0] ^= 1
        with self.assertRaisesRegex(AssertionError, "byte 0 is"):
            one.check()
        one.close()

    def test_fsx(self):
        fsx = shutil.which("fsx")
        if not fsx:
            self.skipTest("fsx is not installed (cargo install fsx, with a compiler of 2025 or later)")
        with open(self.outside("fsx.toml"), "w", encoding="ascii") as file:
            file.write("flen = 400000\n[opsize]\nmax = 70000\n[weights]\nclose_open = 1\ninvalidate = 1\nread = 10\n"
                       "write = 10\nmapread = 5\nmapwrite = 5\ntruncate = 5\nfsync = 1\nfdatasync = 1\npunch_hole = 3\n"
                       "posix_fallocate = 2\ncopy_file_range = 5\nsendfile = 5\nposix_fadvise = 1\n")
        for seed in seeds(3):
            for number, options in enumerate((None, *IMAGES)):
                with self.subTest(seed=seed, file=number):
                    path = self.at(f"{seed}.{number}")
                    if options:
                        make_image(path, **options)
                    run(fsx, "-f", self.outside("fsx.toml"), "-S", seed, "-N", 500, "-P", self.volume.folder, path)
        tried(f"fsx: 500 operations on each of {len(seeds(3)) * (1 + len(IMAGES))} files")


if __name__ == "__main__":
    main()
