"""The daemon's memory stays within what mount.mdfs(8) states, and no user's fsync starves, whatever others write."""
# SPDX-License-Identifier: Apache-2.0
import multiprocessing
import os
import time
import unittest

import harness
from harness import Mounted, make_image, read_all, write_all

MIB = 1 << 20
# Beside the cache: encoders of large and of small extents, frames, and the rest. As in mount.mdfs(8), cache=.
BESIDE_CACHE_MIB = 82 + 40 + 42 + 64
CONVERSIONS = 5
SYNCS = 20
DELETED_MIB = 128
IDLE_SECONDS = 60
USER = 65534


def as_user(work, *arguments):
    os.setgid(USER)
    os.setuid(USER)
    work(*arguments)


def process(work, *arguments):
    return multiprocessing.Process(target=as_user, args=(work, *arguments))


def memory_mib(daemon, field):
    with open(f"/proc/{daemon}/status", encoding="ascii") as status:
        return int(status.read().split(field + ":")[1].split()[0]) / 1024


def write_over_and_over(path, size, stop, writes):
    """Each write is one of a random MiB, one after another, from the beginning again at the end."""
    data = os.urandom(MIB)
    fd = os.open(path, os.O_RDWR)
    while not stop.is_set():
        for offset in range(0, size - MIB, MIB):
            os.pwrite(fd, data, offset)
            writes.value += 1
            if stop.is_set():
                break
    os.close(fd)


def sync_again_and_again(path, synced):
    fd = os.open(path, os.O_RDWR)
    for _ in range(SYNCS):
        os.pwrite(fd, b"x" * 100, 0)
        os.fsync(fd)
        synced.value += 1
    os.close(fd)


@unittest.skipIf(os.environ.get("MDFS_SANITIZED"), "a sanitizer's memory is not ours")
class Memory(unittest.TestCase):
    def mount(self, cache_mib):
        self.volume = Mounted(size="2G", options=f"cache={cache_mib}M")
        self.addCleanup(self.volume.remove)
        self.most = cache_mib + BESIDE_CACHE_MIB

    def test_a_row_across_extents_one_sample_wide_takes_little(self):
        self.mount(32)
        daemon = self.volume.daemon()
        make_image(self.volume / "a", (64, 1 << 20), extent=(64, 1))
        with open(f"/proc/{daemon}/clear_refs", "w", encoding="ascii") as reset:
            reset.write("5")  # VmHWM begins anew
        before = memory_mib(daemon, "VmRSS")
        with open(self.volume / "a@/win/y5+1.raw", "rb") as file:
            self.assertEqual(len(os.pread(file.fileno(), MIB, 0)), MIB)
        self.assertLess(memory_mib(daemon, "VmHWM") - before, 32 + 48)  # a plan of all parts takes 200

    def assert_within_bound(self):
        status = read_all(f"/proc/{self.volume.daemon()}/status").decode()
        peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
        print(f"at most {peak:.0f} MiB of {self.most}", flush=True)
        self.assertLess(peak, self.most)

    def given(self, name):
        os.chown(self.volume / name, USER, USER)
        return self.volume / name

    def test_conversions_to_the_largest_extents_at_once_stay_within_the_bound(self):
        self.mount(256)  # so that no extent goes to strips, which are not encoded, before it is full
        geometry = (b'{"shape":[16,1024,1024],"type":"u8","extent":[16,1024,1024],"codec":"zstd",'
                    b'"codec_level":22}')
        data = os.urandom(8 * MIB) + bytes(8 * MIB)
        conversions = []
        for i in range(CONVERSIONS):
            write_all(self.volume / f"file{i}", data)
            conversions.append(process(os.setxattr, self.given(f"file{i}"), "user.mdfs.geometry", geometry))
        for conversion in conversions:
            conversion.start()
        for conversion in conversions:
            conversion.join()
        self.assertEqual([conversion.exitcode for conversion in conversions], [0] * CONVERSIONS)
        self.assert_within_bound()
        for i in range(CONVERSIONS):
            self.assertEqual(read_all(self.volume / f"file{i}"), data)
        self.volume.unmount()

    def test_writers_of_tiny_and_large_extents_leave_memory_and_turns_to_others(self):
        self.mount(64)
        stop = multiprocessing.Event()
        synced = multiprocessing.Value("i", 0)
        writers, writes = [], []

        def add_writer(name, shape, **options):
            make_image(self.volume / name, shape, **options)
            size = shape[0] * shape[1] * shape[2] * (2 if options["element"] == "f16" else 8)
            writes.append(multiprocessing.Value("i", 0))
            writers.append(process(write_over_and_over, self.given(name), size, stop, writes[-1]))

        for i in range(9):
            add_writer(f"tiny{i}", (300, 300, 100), element="f16", codec=i % 2, extent=(1, 1, 100))
        for i in range(4):
            add_writer(f"large{i}", (1000, 1000, 7), element="i64", codec=i % 2, extent=(100, 1000, 7))
        write_all(self.volume / "small", b"")
        sync = process(sync_again_and_again, self.given("small"), synced)
        for one in [*writers, sync]:
            one.start()
        sync.join()
        self.assertTrue(all(writer.is_alive() for writer in writers), "they write until they are told to end")
        stop.set()
        for writer in writers:
            writer.join()
        self.assertEqual([one.exitcode for one in [*writers, sync]], [0] * (len(writers) + 1))
        self.assertEqual(synced.value, SYNCS)
        self.assertTrue(all(count.value > 0 for count in writes), [count.value for count in writes])
        self.assert_within_bound()
        self.volume.unmount()

    def resident_mib(self):
        status = read_all(f"/proc/{self.volume.daemon()}/status").decode()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def test_the_memory_of_a_deleted_file_goes_back_to_the_system_when_no_program_reads(self):
        self.mount(256)
        before = self.resident_mib()
        write_all(self.volume / "file", os.urandom(MIB) * DELETED_MIB)
        harness.run(harness.MDFS, "volume", "sync", self.volume.path)
        read_all(self.volume / "file")
        held = self.resident_mib()
        self.assertGreater(held, before + DELETED_MIB / 2, "the cache holds the file")
        os.unlink(self.volume / "file")
        deadline = time.monotonic() + IDLE_SECONDS
        while self.resident_mib() > before + DELETED_MIB / 4 and time.monotonic() < deadline:
            time.sleep(0.5)
        self.assertLess(self.resident_mib(), before + DELETED_MIB / 4, f"{held:.0f} MiB with the file")
        self.volume.unmount()


if __name__ == "__main__":
    harness.main()
