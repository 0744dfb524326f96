"""FUSE over io_uring: requests that wait hold up no others of their processor, and the option says what is wrong."""
# SPDX-License-Identifier: Apache-2.0
import mmap
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import MDFS, Mounted, bind, make_image, slow_machine

DISKS = 8
EXTENT = 64
SLOW_SECONDS = 0.3
SLOW = slow_machine(SLOW_SECONDS)
# More than the threads of a queue (RequestRings::kThreads), and fewer than those with the threads of the overflow.
MANY = 22
# About as many more wait for a thread (RingOverflow::kMaxQueued).
RINGS_QUEUE = 12
# A read of so many waits for that many times SLOW_SECONDS.
LONG_EXTENTS = 64
WRITERS = 60
LARGE_WRITERS, LARGE = 150, 1 << 20
# Of the cache, and of requests: those of the threads of one processor, of ten threads of the overflow, and 50 more.
LARGE_BYTES = 92 << 20
WRITER_WINDOWS = 20


def on_one_processor(work, *words):
    """A child that runs `work` on the first processor of this process; returns its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            work(*words)
            os._exit(0)
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
    return pid


def exit_status(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ring_threads(pid):
    """How many threads of the daemon serve rings of each processor."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        name = harness.read_all(f"/proc/{pid}/task/{task}/comm").decode().strip()
        if name.startswith("ring-"):
            found[name] = found.get(name, 0) + 1
    return found


def resident_bytes(pid):
    return int(harness.read_all(f"/proc/{pid}/statm").split()[1]) * mmap.PAGESIZE


class Rings(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=DISKS, size="64M")
        self.addCleanup(self.volume.remove)

    def slow_mount(self):
        machine = os.path.join(self.volume.folder, "slow.toml")
        with open(machine, "w", encoding="utf8") as file:
            file.write(SLOW)
        self.volume.unmount()
        self.volume.mount(f"noatime,cache=16M,model={machine}")

    def extents(self, count):
        """An image with so many extents in a row, of which neighbours lie on different disks."""
        path = self.volume / "image"
        make_image(path, (EXTENT, EXTENT * count), codec=0, extent=(EXTENT, EXTENT))
        harness.write_all(path, b"\1" * (EXTENT * EXTENT * count))
        return path

    def read_extent(self, path, number):
        fd = os.open(path, os.O_RDONLY)
        if os.pread(fd, 1, number * EXTENT) != b"\1":
            raise AssertionError(f"extent {number}")

    def test_requests_come_through_rings_of_all_processors(self):
        os.statvfs(self.volume.path)
        wanted = {"ring-overflow"} | {f"ring-{number}" for number in os.sched_getaffinity(0)}
        ends = time.monotonic() + 20
        while set(ring_threads(self.volume.daemon())) != wanted and time.monotonic() < ends:
            time.sleep(0.1)  # threads start one after the other
        self.assertEqual(set(ring_threads(self.volume.daemon())), wanted)

    def test_eight_readers_on_one_processor_wait_for_eight_disks_together(self):
        path = self.extents(2 * DISKS)
        self.slow_mount()
        self.read_extent(path, DISKS)  # what else the first read of the image needs
        begun = time.monotonic()
        pids = [on_one_processor(self.read_extent, path, number) for number in range(DISKS)]
        self.assertEqual([exit_status(pid) for pid in pids], [0] * DISKS)
        self.assertLess(time.monotonic() - begun, DISKS * SLOW_SECONDS / 2)

    def test_a_processor_whose_threads_all_wait_answers_other_requests(self):
        path = self.extents(MANY + 1)
        self.slow_mount()
        self.read_extent(path, MANY)
        pids = [on_one_processor(self.read_extent, path, number) for number in range(MANY)]
        time.sleep(SLOW_SECONDS / 4)
        self.assertEqual(exit_status(on_one_processor(os.statvfs, self.volume.path)), 0)
        under_way = [pid for pid in pids if os.waitpid(pid, os.WNOHANG) == (0, 0)]
        # In the queue behind the reads, it would have waited for the first of each disk.
        self.assertGreater(len(under_way), MANY - DISKS)
        self.assertEqual({exit_status(pid) for pid in under_way}, {0})

    def test_more_requests_than_the_daemon_takes_at_once_all_end(self):
        path = self.extents(WRITERS)
        self.slow_mount()
        pids = [on_one_processor(self.read_extent, path, number) for number in range(WRITERS)]
        self.assertEqual([exit_status(pid) for pid in pids], [0] * WRITERS)

    def read_for_minutes(self, path):
        fd = os.open(path, os.O_RDONLY)
        os.pread(fd, LONG_EXTENTS * EXTENT * EXTENT, 0)

    def write_synchronously(self, number):
        fd = os.open(self.volume / f"file{number}", os.O_WRONLY | os.O_CREAT | os.O_SYNC)
        os.pwrite(fd, bytes(LARGE), 0)

    @unittest.skipIf(os.environ.get("MDFS_SANITIZED"), "a sanitizer's memory is not ours")
    def test_the_memory_of_many_large_writes_is_bounded(self):
        self.volume.unmount()
        self.volume.mount("cache=16M")
        os.statvfs(self.volume.path)
        before = resident_bytes(self.volume.daemon())
        pids = [on_one_processor(self.write_synchronously, number) for number in range(LARGE_WRITERS)]
        most = before
        failed = 0
        for pid in pids:
            while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                most = max(most, resident_bytes(self.volume.daemon()))
                time.sleep(0.02)
            failed += exit_status(pid)
        self.assertEqual(failed, 0)
        print(f"{most - before >> 20} MiB more")
        self.assertLess(most - before, LARGE_BYTES)

    def test_killed_callers_end_also_where_the_request_waits_for_a_thread(self):
        path = self.extents(LONG_EXTENTS * DISKS)
        self.slow_mount()
        pids = [on_one_processor(self.read_for_minutes, path) for _ in range(MANY + RINGS_QUEUE)]
        time.sleep(2 * SLOW_SECONDS)
        self.assertEqual([os.waitpid(pid, os.WNOHANG) for pid in pids], [(0, 0)] * len(pids))
        begun = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual({exit_status(pid) for pid in pids}, {-signal.SIGKILL})
        self.assertLess(time.monotonic() - begun, LONG_EXTENTS * SLOW_SECONDS / 4)
        self.assertEqual(exit_status(on_one_processor(os.statvfs, self.volume.path)), 0)

    def write_windows(self, path, number):
        fd = os.open(path, os.O_RDWR)
        for turn in range(WRITER_WINDOWS):
            size = bind(fd, (0, number * EXTENT), (EXTENT, EXTENT))
            os.pwrite(fd, bytes([turn + 1]) * size, 0)

    def read_mapping(self, path, size):
        fd = os.open(path, os.O_RDONLY)
        for _ in range(WRITER_WINDOWS):
            with mmap.mmap(fd, size, prot=mmap.PROT_READ) as mapped:
                sum(mapped[at] for at in range(0, size, mmap.PAGESIZE))

    def test_many_window_writes_and_mapped_reads_on_one_processor_all_end(self):
        path = self.extents(WRITERS)
        pids = [on_one_processor(self.write_windows, path, number) for number in range(WRITERS)]
        pids += [on_one_processor(self.read_mapping, path, WRITERS * EXTENT * EXTENT) for _ in range(4)]
        self.assertEqual([exit_status(pid) for pid in pids], [0] * len(pids))
        self.assertEqual(set(harness.read_all(path)), {WRITER_WINDOWS})

    def test_many_syncs_on_one_processor_all_end(self):
        def sync(number):
            path = self.volume / f"file{number}"
            for turn in range(5):
                fd = os.open(path, os.O_RDWR | os.O_CREAT)
                os.write(fd, bytes([turn]) * 1000)
                os.fsync(fd)
                os.close(fd)
        pids = [on_one_processor(sync, number) for number in range(WRITERS)]
        self.assertEqual([exit_status(pid) for pid in pids], [0] * WRITERS)

    def test_callers_of_a_killed_daemon_get_errors(self):
        path = self.extents(MANY)
        self.slow_mount()
        pids = [on_one_processor(self.read_extent, path, number) for number in range(MANY)]
        time.sleep(0.2)
        os.kill(self.volume.daemon(), signal.SIGKILL)
        self.assertIn(1, [exit_status(pid) for pid in pids])
        with self.assertRaises(OSError):
            os.listdir(self.volume.path)

    def test_an_unmount_by_force_ends_requests_under_way(self):
        path = self.extents(WRITERS)
        self.slow_mount()
        daemon = self.volume.daemon()
        pids = [on_one_processor(self.read_extent, path, number) for number in range(WRITERS)]
        time.sleep(0.2)
        harness.run("umount", "-f", "-l", self.volume.path)
        self.assertIn(1, [exit_status(pid) for pid in pids])
        ends = time.monotonic() + 60
        while os.path.exists(f"/proc/{daemon}") and time.monotonic() < ends:
            time.sleep(0.05)
        self.assertFalse(os.path.exists(f"/proc/{daemon}"))
        self.volume.mount()
        self.read_extent(path, 0)

    def test_a_mount_without_rings_has_no_threads_for_them(self):
        self.volume.unmount()
        subprocess.run([MDFS, "mount", "-o", "io_uring=off", self.volume.disks[0], self.volume.path], check=True)
        self.assertEqual(ring_threads(self.volume.daemon()), {})


if __name__ == "__main__":
    os.environ["MDFS_TEST_RINGS"] = "1"
    harness.main()
