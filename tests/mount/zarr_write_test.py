"""Chunks of the Zarr view written as zarr-python, TensorStore and zarrs write them, replayed call by call."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import os
import pathlib
import random
import struct
import subprocess
import sys
import threading
import uuid

import harness
from harness import as_user, make_image, read_all, run, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of the Zarr view need numpy")
    raise SystemExit(harness.SKIP)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from zarr_reader import ZarrArray, in_array_order, with_zstd  # noqa: E402  the path comes first

F_OFD_SETLKW = 38


def write_fd(fd, data):
    """All bytes, as programs write them: until the kernel has taken all."""
    view = memoryview(data)
    while len(view):
        view = view[os.write(fd, view):]


# ---- the clients: each writes one chunk, or removes it if there are no bytes
def make_parents(path):
    """os.makedirs() of zarr-python: from the array down, each must exist."""
    try:
        os.mkdir(os.path.dirname(path))
    except FileExistsError:
        os.stat(os.path.dirname(path))


def by_zarr_python(path, data):
    if data is None:
        os.stat(path)
        os.unlink(path)
        return
    make_parents(path)
    partial = f"{path}.{uuid.uuid4().hex}.partial"
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        os.fstat(fd)
        write_fd(fd, data)
    finally:
        os.close(fd)
    try:
        os.rename(partial, path)
    except OSError:
        os.unlink(partial)
        raise


def by_tensorstore(path, data):
    lock_name = path + ".__lock"
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    lock = os.open(lock_name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.fcntl(lock, F_OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        again = os.open(lock_name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        assert os.fstat(again).st_ino == os.fstat(lock).st_ino  # it was not renamed meanwhile
        os.close(again)
        if data is None:
            os.unlink(path)
            os.unlink(lock_name)
        else:
            write_fd(lock, data)
            os.fsync(lock)
            try:
                os.rename(lock_name, path)
            except OSError:
                os.unlink(lock_name)
                raise
        os.fsync(folder)
    finally:
        os.close(lock)
        os.close(folder)


def by_zarrs(path, data):
    if data is None:
        os.unlink(path)
        return
    os.stat(os.path.dirname(path))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        write_fd(fd, data)
    finally:
        os.close(fd)


CLIENTS = {"zarr-python": by_zarr_python, "TensorStore": by_tensorstore, "zarrs": by_zarrs}


def names_of(client, path):
    """A name under which the client writes bytes that are no chunk yet."""
    return {"zarr-python": path + ".0123456789abcdef0123456789abcdef.partial", "TensorStore": path + ".__lock",
            "zarrs": path}[client]


class ZarrWrite(harness.MountTest):
    options = "cache=64M,allow_other"

    def array_of(self, name):
        return ZarrArray(self.at(f"{name}@/ome.zarr/0"))

    def image(self, name, shape, element="u8", channels=1, **options):
        """An image with samples that differ, and its array."""
        make_image(self.at(name), shape, element=element, channels=channels, **options)
        rng = np.random.default_rng(3)
        samples = rng.integers(1, 200, [*shape, *([channels] if channels > 1 else [])])
        samples = samples.astype(harness.NUMPY[element])
        write_all(self.at(name), samples.tobytes())
        return samples

    def samples_of(self, name, like):
        return np.frombuffer(read_all(self.at(name)), like.dtype).reshape(like.shape)

    def put(self, client, array, expected, key, value):
        """Writes a chunk by a client, and the same into the expected array."""
        write = CLIENTS[client]
        chunk = None if value is None else array.encoded(value)
        write(array.file_of(key), chunk)
        where = tuple(slice(i * part, (i + 1) * part) for i, part in zip(key, array.chunk))
        part = expected[where]
        part[...] = 0 if value is None else value[tuple(slice(0, length) for length in part.shape)]

    def test_each_client_writes_whole_chunks_and_edges_and_removes_them(self):
        for client in CLIENTS:
            for number, (axes, shape, extent, element, channels) in enumerate([
                    ("yx", (40, 70), (16, 16), "u8", 1), ("yx", (45, 61), (16, 32), "u16", 3),
                    ("zyx", (5, 20, 33), (2, 8, 16), "f32", 1), ("tyx", (3, 20, 30), (2, 8, 16), "u8", 3),
                    ("x", (1000,), (64,), "i32", 1)]):
                for codec in (0, 1):
                    name = f"{client}{number}{codec}"
                    with self.subTest(name):
                        samples = self.image(name, shape, element, channels, axes=axes, extent=extent, codec=codec)
                        array = self.array_of(name)
                        expected = in_array_order(samples, axes, channels)[0].copy()
                        rng = np.random.default_rng(number)
                        keys = list(array.keys())
                        for key in [keys[0], keys[-1], *random.Random(number).sample(keys, 3)]:
                            self.put(client, array, expected, key,
                                     rng.integers(1, 100, array.chunk).astype(array.type))
                        self.put(client, array, expected, keys[1], None)
                        self.put(client, array, expected, keys[-2], np.zeros(array.chunk, array.type))
                        np.testing.assert_array_equal(array.read(), expected)
                        self.assertNotIn(keys[1], array.listed())
                        self.assertNotIn(keys[-2], array.listed())
                        self.assertErrno(errno.ENOENT, os.stat, array.file_of(keys[1]))
                        # A hole is written like any other chunk.
                        self.put(client, array, expected, keys[1],
                                 rng.integers(1, 100, array.chunk).astype(array.type))
                        np.testing.assert_array_equal(array.read(), expected)
                        plain = self.samples_of(name, samples)
                        np.testing.assert_array_equal(in_array_order(plain, axes, channels)[0], expected)

    def test_what_a_client_wrote_and_synced_is_there_after_a_mount(self):
        samples = self.image("scan", (40, 70), extent=(16, 16))
        array = self.array_of("scan")
        expected = samples.copy()
        for number, client in enumerate(CLIENTS):
            self.put(client, array, expected, (number % 3, 4), np.full((16, 16), 7 + number, "u1"))
        self.volume.unmount()
        self.volume.mount(self.options)
        np.testing.assert_array_equal(self.array_of("scan").read(), expected)
        np.testing.assert_array_equal(self.samples_of("scan", samples), expected)

    def test_a_chunk_of_another_size_is_refused_and_changes_nothing(self):
        samples = self.image("scan", (40, 70), extent=(16, 16), codec=0)
        array = self.array_of("scan")
        for client, write in CLIENTS.items():
            for data in (b"x" * 255, b"x" * 257, b"x" * 100000, b"x"):
                with self.subTest(client=client, size=len(data)):
                    with self.assertRaises(OSError) as refused:
                        write(array.file_of((1, 1)), data)
                    self.assertIn(refused.exception.errno, (errno.EINVAL, errno.EFBIG))
                    np.testing.assert_array_equal(array.read(), samples)
        partial = names_of("zarr-python", array.file_of((1, 1)))
        write_all(partial, b"x" * 255)
        self.assertErrno(errno.EINVAL, os.rename, partial, array.file_of((1, 1)))
        with open(partial, "ab") as file:  # the bytes are kept until the client gives up, or has all
            file.write(b"y")
        os.rename(partial, array.file_of((1, 1)))
        self.assertEqual(read_all(array.file_of((1, 1))), b"x" * 255 + b"y")
        # Nothing was written: nothing changes.
        partial = names_of("zarr-python", array.file_of((2, 2)))
        write_all(partial, b"")
        self.assertErrno(errno.EINVAL, os.rename, partial, array.file_of((2, 2)))
        os.unlink(partial)
        write_all(array.file_of((2, 2)), b"")
        np.testing.assert_array_equal(array.load((2, 2))[:8, :], samples[32:40, 32:48])

    def test_what_is_not_one_frame_of_the_chunk_is_refused_and_changes_nothing(self):
        samples = self.image("scan", (40, 70), extent=(16, 16), codec=1)
        array = self.array_of("scan")
        good = array.encoded(np.full((16, 16), 5, "u1"))
        skippable = b"\x50\x2a\x4d\x18\x02\0\0\0ab"
        magic = b"\x28\xb5\x2f\xfd"
        rle = b"\x03\x08\0\x07"  # a last block of 256 sevens
        hostile = {
            "empty frame": with_zstd(b""), "raw samples": bytes([5]) * 256, "two frames": good + good,
            "bytes behind it": good + b"\0", "skippable behind it": good + skippable,
            "skippable before it": skippable + good, "only skippable": skippable, "cut short": good[:-1],
            "garbage": os.urandom(256), "one byte": b"\x28", "fewer samples": with_zstd(bytes(255)),
            "more samples": with_zstd(bytes(257)), "a bomb": with_zstd(bytes(64 << 20)),
            "dictionary": magic + b"\x61\x09\0\0" + rle, "window of 2^31": magic + b"\0" + bytes([21 << 3]) + rle,
            "window of 2^41": magic + b"\0" + bytes([31 << 3]) + rle,
            "content size of 2^63": magic + b"\xe0" + bytes(7) + b"\x80" + rle, "too long": bytes(100000)}
        for name, data in hostile.items():
            for client, write in CLIENTS.items():
                with self.subTest(client=client, data=name):
                    with self.assertRaises(OSError) as refused:
                        write(array.file_of((1, 1)), data)
                    self.assertIn(refused.exception.errno, (errno.EINVAL, errno.EFBIG))
        np.testing.assert_array_equal(array.read(), samples)
        # Of other encoders: with a checksum, without a content size, of a level of their own.
        allowed = {"one segment": magic + b"\x60\0\0" + rle, "no content size": magic + b"\0\x58" + rle,
                   "level 19": with_zstd(bytes([7]) * 256, 19), "level -5": with_zstd(bytes([7]) * 256, -5)}
        for name, data in allowed.items():
            for client, write in CLIENTS.items():
                with self.subTest(client=client, data=name):
                    write(array.file_of((1, 1)), array.encoded(np.full((16, 16), 5, "u1")))
                    write(array.file_of((1, 1)), data)
                    np.testing.assert_array_equal(array.load((1, 1)), 7)

    def test_the_frame_of_a_client_becomes_the_stored_frame(self):
        self.image("scan", (40, 70), "u16", extent=(16, 16), codec=1)
        array = self.array_of("scan")
        run(harness.MDFS, "volume", "sync", self.volume.path)
        for key in ((1, 1), (2, 4)):
            array.stored(key)
        rng = np.random.default_rng(4)
        for number, (client, write) in enumerate(CLIENTS.items()):
            for key in ((1, 1), (2, 4)):  # the second is at two edges
                with self.subTest(client=client, key=key):
                    chunk = np.tile(rng.integers(1, 9, (4, 16)), (4, 1)).astype("u2")
                    if key == (2, 4):
                        chunk[8:] = chunk[:, 6:] = 0
                    frame = with_zstd(chunk.astype("<u2").tobytes(), -50 if number else 19)
                    write(array.file_of(key), frame)
                    self.assertEqual(read_all(array.file_of(key)), frame)
                    np.testing.assert_array_equal(array.load(key), chunk)
                    chunk[15, 15] = 7  # inside of one chunk, and in the padding of the other
                    frame = with_zstd(chunk.astype("<u2").tobytes(), -50)
                    write(array.file_of(key), frame)
                    self.assertEqual(read_all(array.file_of(key)) == frame, key == (1, 1))
                    chunk[15, 15] = 7 if key == (1, 1) else 0
                    np.testing.assert_array_equal(array.load(key), chunk)
        before = array.read()
        self.volume.unmount()
        run(harness.MDFSCK, "--data", *self.volume.disks)
        self.volume.mount(self.options)
        np.testing.assert_array_equal(self.array_of("scan").read(), before)

    def test_a_writer_that_begins_again_writes_the_last_frame_only(self):
        samples = self.image("scan", (40, 70), extent=(16, 16), codec=1)
        array = self.array_of("scan")
        frames = [array.encoded(np.full((16, 16), value, "u1")) for value in (5, 6)]
        noise = array.encoded(np.random.default_rng(1).integers(0, 200, (16, 16)))
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
            for frame in frames:  # the second time the extent is dirty, or stored
                fd = os.open(array.file_of((1, 1)), flags)
                os.write(fd, noise)
                os.ftruncate(fd, 0)
                os.lseek(fd, 0, os.SEEK_SET)
                os.write(fd, frame)
                os.close(fd)
                np.testing.assert_array_equal(array.decoded(frame), array.load((1, 1)))
        samples[16:32, 16:32] = 6
        np.testing.assert_array_equal(array.read(), samples)

    def test_what_is_not_a_chunk_yet_is_in_no_list_and_in_no_sample(self):
        samples = self.image("scan", (40, 70), extent=(16, 16))
        array = self.array_of("scan")
        before = array.listed()
        partial, lock = (names_of(client, array.file_of((0, 0))) for client in ("zarr-python", "TensorStore"))
        write_all(partial, b"x" * 256)
        held = os.open(lock, os.O_WRONLY | os.O_CREAT)
        os.write(held, b"x" * 256)
        self.assertEqual(os.stat(partial).st_size, 256)
        self.assertEqual(array.listed(), before)
        np.testing.assert_array_equal(array.read(), samples)
        os.close(held)  # a lock goes with its last descriptor
        self.assertErrno(errno.ENOENT, os.stat, lock)
        self.volume.unmount()
        self.volume.mount(self.options)
        self.assertErrno(errno.ENOENT, os.stat, partial)
        np.testing.assert_array_equal(array.read(), samples)

    def test_two_writers_with_a_lock_take_turns(self):
        self.image("scan", (40, 70), extent=(16, 16), codec=0)
        path = self.array_of("scan").file_of((1, 1))
        errors = []

        def write(value):
            try:
                for _ in range(20):
                    by_lock_until_done(path, bytes([value]) * 256)
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)
        threads = [threading.Thread(target=write, args=(value,)) for value in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(set(read_all(path))), 1)
        self.assertErrno(errno.ENOENT, os.stat, path + ".__lock")

    def test_a_reader_beside_writers_sees_whole_chunks(self):
        self.image("scan", (256, 256), extent=(128, 128), codec=1)
        array = self.array_of("scan")
        done = threading.Event()
        seen, errors = set(), []

        def read():
            try:
                while not done.is_set():
                    chunk = array.load((0, 1))
                    values = set() if chunk is None else set(chunk.reshape(-1).tolist())
                    seen.add(frozenset(values))
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)
        write_all(array.file_of((0, 1)) + ".a.partial", array.encoded(np.full(array.chunk, 99, "u1")))
        os.rename(array.file_of((0, 1)) + ".a.partial", array.file_of((0, 1)))
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(60):
            client = list(CLIENTS.values())[number % 3]
            client(array.file_of((0, 1)), array.encoded(np.full(array.chunk, 100 + number, "u1")))
        done.set()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertTrue(all(len(values) <= 1 for values in seen), seen)

    def test_levels_are_refused_as_read_only(self):
        self.image("scan", (64, 64), extent=(16, 16))
        run(harness.MDFS, "image", "levels", self.at("scan"), "--set", "1")
        chunk = self.at("scan@/ome.zarr/1/c/0/0")
        before = read_all(chunk)
        for client in ("zarr-python", "TensorStore"):
            self.assertErrno(errno.EROFS, open, names_of(client, chunk), "wb")
        self.assertErrno(errno.EACCES, open, chunk, "wb")
        self.assertErrno(errno.EROFS, os.unlink, chunk)
        self.assertEqual(read_all(chunk), before)
        # A chunk of the image is one of its levels, too.
        write_all(self.at("scan@/ome.zarr/0/c/0/0.a.partial"), self.array_of("scan").encoded(
            np.full((16, 16), 8, "u1")))
        os.rename(self.at("scan@/ome.zarr/0/c/0/0.a.partial"), self.at("scan@/ome.zarr/0/c/0/0"))
        np.testing.assert_array_equal(ZarrArray(self.at("scan@/ome.zarr/1")).load((0, 0))[:8, :8], 8)

    def test_names_that_are_no_chunks_are_refused(self):
        samples = self.image("scan", (40, 70), extent=(16, 16))
        group = self.at("scan@/ome.zarr")
        for name in ("0/c/3/0.a.partial", "0/c/0/5.a.partial", "0/c/0/5.__lock", "0/c/0/5", "0/c/0/00.a.partial",
                     "0/c/0/0.partial", "0/c/0/0..partial", "0/c/0/.partial", "0/c/0/.__lock", "0/c/0/__lock",
                     "0/c/0/0.a.__lock", "0/c/0/0.tmp", "0/c/0/-1.a.partial", "0/c/0/0.a.partial@",
                     "0/c/0/18446744073709551616.__lock", "0/c/0.a.partial", "0/c.a.partial", "0/zarr.a.partial",
                     "0/zarr.json.__lock", "zarr.a.partial", "0/c/9", "1", "0/c/0/" + "9" * 240 + ".partial"):
            with self.subTest(name):
                with self.assertRaises(OSError) as refused:
                    with open(f"{group}/{name}", "wb") as file:
                        file.write(b"x" * 256)
                self.assertIn(refused.exception.errno, (errno.EPERM, errno.ENOENT))
        self.assertErrno(errno.ENAMETOOLONG, open, f"{group}/0/c/0/0." + "a" * 250 + ".partial", "wb")
        for name in ("zarr.json", "0/zarr.json"):
            before = read_all(f"{group}/{name}")
            self.assertErrno(errno.EACCES, open, f"{group}/{name}", "wb")
            self.assertErrno(errno.EPERM, os.unlink, f"{group}/{name}")
            self.assertEqual(read_all(f"{group}/{name}"), before)
        for name in ("0", "0/c", "0/c/1"):
            self.assertErrno(errno.EEXIST, os.mkdir, f"{group}/{name}")
            self.assertErrno(errno.EPERM, os.rmdir, f"{group}/{name}")
        self.assertErrno(errno.EPERM, os.mkdir, f"{group}/0/c/3")
        np.testing.assert_array_equal(self.array_of("scan").read(), samples)

    def test_a_staged_file_becomes_its_own_chunk_only(self):
        samples = self.image("scan", (40, 70), extent=(16, 16), codec=0)
        self.image("other", (40, 70), extent=(16, 16), codec=0)
        folder = self.at("scan@/ome.zarr/0/c/0")
        partial = folder + "/0.a.partial"
        write_all(partial, b"x" * 256)
        for to in (f"{folder}/1", f"{folder}/0.b.partial", f"{folder}/../1/0", self.at("other@/ome.zarr/0/c/0/0"),
                   self.at("plain"), self.at("scan")):
            with self.subTest(to=to):
                self.assertErrno(errno.EPERM, os.rename, partial, to)
        write_all(self.at("plain"), b"x" * 256)
        self.assertErrno(errno.EPERM, os.rename, self.at("plain"), f"{folder}/0")
        self.assertErrno(errno.EPERM, os.rename, f"{folder}/0", f"{folder}/1")
        self.assertErrno(errno.EPERM, os.link, partial, f"{folder}/0.b.partial")
        self.assertErrno(errno.EPERM, os.rename, f"{folder}/0", self.at("plain"))
        np.testing.assert_array_equal(self.array_of("scan").read(), samples)
        os.rename(partial, f"{folder}/0")
        self.assertErrno(errno.ENOENT, os.rename, partial, f"{folder}/0")
        self.assertEqual(read_all(f"{folder}/0"), b"x" * 256)

    def test_an_image_that_has_become_smaller_takes_no_chunk_beyond_its_end(self):
        samples = self.image("film", (6, 20, 30), axes="tyx", extent=(2, 32, 32), codec=0)
        partial = self.at("film@/ome.zarr/0/c/2/0/0.a.partial")
        self.assertEqual(len(read_all(self.at("film@/ome.zarr/0/c/2/0/0"))), 2048)
        write_all(partial, bytes(2048))
        os.truncate(self.at("film"), 3 * 600)
        with self.assertRaises(OSError):
            os.rename(partial, self.at("film@/ome.zarr/0/c/2/0/0"))
        np.testing.assert_array_equal(self.array_of("film").read(), samples[:3])

    def test_many_staged_files_of_a_dead_client_leave_room_for_the_next(self):
        self.image("scan", (1024, 1024), extent=(512, 512), codec=0)
        array = self.array_of("scan")
        for number in range(1500):  # the oldest go
            write_all(f"{array.file_of((0, 0))}.{number}.partial", b"left behind")
        self.assertErrno(errno.ENOENT, os.stat, f"{array.file_of((0, 0))}.0.partial")
        by_zarr_python(array.file_of((1, 1)), bytes([5]) * (512 * 512))
        self.assertEqual(set(read_all(array.file_of((1, 1)))), {5})

    def test_rights_are_those_of_the_image(self):
        self.image("scan", (40, 70), extent=(16, 16), codec=0)
        os.chmod(self.dir, 0o755)
        path = self.array_of("scan").file_of((1, 1))
        partial = path + ".a.partial"
        for mode, allowed in ((0o644, False), (0o600, False), (0o646, True), (0o666, True)):
            os.chmod(self.at("scan"), mode)
            for number, client in enumerate(CLIENTS):
                with self.subTest(mode=oct(mode), client=client):
                    before = read_all(path)
                    error = as_user(CLIENTS[client], path, bytes([mode % 251, number]) * 128)
                    self.assertEqual(error, 0 if allowed else errno.EACCES)
                    self.assertEqual(read_all(path), bytes([mode % 251, number]) * 128 if allowed else before)
            self.assertEqual(as_user(os.unlink, path), 0 if allowed else errno.EACCES)
            by_zarr_python(path, b"r" * 256)
        # A file that another user has staged is that user's.
        write_all(partial, b"x" * 256)
        for call, arguments in ((os.rename, (partial, path)), (os.unlink, (partial,))):
            self.assertEqual(as_user(call, *arguments), errno.EPERM)
        self.assertEqual(as_user(overwrite, partial), errno.EACCES)
        os.rename(partial, path)
        self.assertEqual(read_all(path), b"x" * 256)

    def test_unused_chunks_of_one_user_leave_room_for_those_of_others(self):
        self.image("scan", (4096, 4096), extent=(1024, 1024), codec=0)
        os.chmod(self.dir, 0o755)
        os.chmod(self.at("scan"), 0o666)
        path = self.array_of("scan").file_of((0, 0))

        def hoard():
            for number in range(2000):
                fd = os.open(f"{path}.{number}.partial", os.O_WRONLY | os.O_CREAT)
                os.write(fd, b"x")
        self.assertIn(as_user(hoard), (errno.ENOSPC, errno.EMFILE))

        def keep():
            fds = []
            for number in range(700):
                fds.append(os.open(f"{path}.{number}.partial", os.O_WRONLY | os.O_CREAT))
        import resource  # pylint: disable=import-outside-toplevel
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        self.assertEqual(as_user(keep), errno.ENOSPC)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        by_zarr_python(path, b"y" * (1 << 20))
        self.assertEqual(read_all(path), b"y" * (1 << 20))

    def test_a_killed_writer_leaves_the_chunk_as_it_was(self):
        samples = self.image("scan", (40, 70), extent=(16, 16), codec=0)
        array = self.array_of("scan")
        for client in CLIENTS:
            child = os.fork()
            if child == 0:
                fd = os.open(names_of(client, array.file_of((1, 1))), os.O_WRONLY | os.O_CREAT, 0o666)
                os.write(fd, b"x" * 100)
                os.kill(os.getpid(), 9)
            os.waitpid(child, 0)
            np.testing.assert_array_equal(array.read(), samples)

    def test_a_read_only_mount_takes_no_chunk(self):
        samples = self.image("scan", (40, 70), extent=(16, 16), codec=0)
        self.volume.unmount()
        self.volume.mount(self.options + ",ro")
        try:
            path = self.array_of("scan").file_of((1, 1))
            for client in CLIENTS:
                self.assertErrno(errno.EROFS, open, names_of(client, path), "wb")
            self.assertErrno(errno.EROFS, os.unlink, path)
            self.assertErrno(errno.EEXIST, os.mkdir, os.path.dirname(path))
            np.testing.assert_array_equal(self.array_of("scan").read(), samples)
        finally:
            self.volume.unmount()
            self.volume.mount(self.options)

    def test_a_mapped_plain_file_sees_the_chunk(self):
        samples = self.image("scan", (40, 70), extent=(16, 16), codec=0)
        mapped = np.memmap(self.at("scan"), "u1", "r", shape=(40, 70))
        np.testing.assert_array_equal(mapped, samples)
        for number, client in enumerate(CLIENTS.values()):
            client(self.array_of("scan").file_of((1, 2)), bytes([number + 1]) * 256)
            self.assertEqual(set(mapped[16:32, 32:48].reshape(-1).tolist()), {number + 1})

    def test_cp_and_mv_store_a_chunk(self):
        self.image("scan", (40, 70), extent=(16, 16), codec=0)
        path = self.array_of("scan").file_of((0, 3))
        write_all(self.at("chunk"), b"c" * 256)
        subprocess.run(["cp", self.at("chunk"), path], check=True)
        self.assertEqual(read_all(path), b"c" * 256)
        write_all(path + ".x.partial", b"d" * 256)
        subprocess.run(["mv", "-f", path + ".x.partial", path], check=True)
        self.assertEqual(read_all(path), b"d" * 256)


def overwrite(path):
    os.close(os.open(path, os.O_WRONLY))


def by_lock_until_done(path, data):
    """As TensorStore does beside others: a lock that has been renamed meanwhile is another one."""
    while True:
        lock = os.open(path + ".__lock", os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            fcntl.fcntl(lock, F_OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            again = os.open(path + ".__lock", os.O_WRONLY | os.O_CREAT, 0o666)
            same = os.fstat(again).st_ino == os.fstat(lock).st_ino
            os.close(again)
            if not same:
                continue
            write_fd(lock, data)
            os.rename(path + ".__lock", path)
            return
        finally:
            os.close(lock)


if __name__ == "__main__":
    harness.main()
