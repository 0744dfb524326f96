"""Callers who wait for disks or for memory stop no other caller: with requests through /dev/fuse and through rings."""
# SPDX-License-Identifier: Apache-2.0
import itertools
import os
import signal
import subprocess
import threading
import time
import unittest

import harness
from harness import MDFS, NOBODY, Mounted, bind, is_dead, make_image, read_all, run, wait_until, write_all

CALLERS = 30  # more than the threads that the daemon begins with
# So slow that what thirty callers ask for takes minutes, and metadata comes within seconds.
CRAWLING = """
name = "crawling"
[[resource]]
name = "disk"
count = "disks"
[[stage]]
name = "serve"
resource = "disk"
cost = "full / 200 kB/s"
"""
OTHER_CALLS = 200  # behind waiting callers each of them would take seconds


def child(work, *words):
    pid = os.fork()
    if pid == 0:
        try:
            work(*words)
        finally:
            os._exit(0)
    return pid


class Waiting(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=4, size="64M")
        self.addCleanup(self.volume.remove)
        os.mkdir(self.volume / "other")
        write_all(self.volume / "other/cached", b"c" * 5000)
        make_image(self.volume / "other/image", (512, 512), channels=3, codec=0)
        write_all(self.volume / "other/image", os.urandom(512 * 512 * 3))
        make_image(self.volume / "large", (4096, 4096), codec=0)
        write_all(self.volume / "large", os.urandom(4096 * 4096))
        os.makedirs(self.volume / "far")
        for number in range(2000):
            write_all(self.volume / f"far/{number}", b"")
        self.volume.unmount()
        machine = os.path.join(self.volume.folder, "crawling.toml")
        write_all(machine, CRAWLING.encode())
        self.volume.mount(f"noatime,cache=16M,commit=600,model={machine}")
        self.others()  # now in the cache

    def others(self):
        """Calls that need the daemon and no disk."""
        os.statvfs(self.volume.path)
        self.assertEqual(len(os.listdir(self.volume / "other")), 2)
        os.stat(self.volume / "other/cached")
        with open(self.volume / "other/image@/win/y10+20,x0+30.raw", "rb") as view:
            self.assertEqual(len(view.read()), 20 * 30 * 3)

    def kill_daemon(self):
        """Its disks have work for minutes."""
        os.kill(self.volume.daemon(), signal.SIGKILL)
        wait_until(lambda: is_dead(self.volume.path))

    def beside(self, work):
        under_way = [child(work, number) for number in range(CALLERS)]
        try:
            time.sleep(3)  # until all of them wait
            for _ in range(OTHER_CALLS):
                self.others()
            under_way = [pid for pid in under_way if os.waitpid(pid, os.WNOHANG) == (0, 0)]
            # Behind them, the other calls would have taken until the end of nearly all.
            self.assertGreater(len(under_way), CALLERS / 2)
        finally:
            self.kill_daemon()
            for pid in under_way:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def write(self, number):
        write_all(self.volume / f"file{number}", os.urandom(4 << 20))

    def read(self, number):
        with open(self.volume / "large", "rb", buffering=0) as file:
            for row in range(number, 4096, CALLERS):
                os.pread(file.fileno(), 4096, 4096 * row)

    def read_window(self, number):
        fd = os.open(self.volume / "large", os.O_RDONLY)
        bind(fd, (0, 30 * (number % 100)), (4096, 30))
        os.pread(fd, 4096 * 30, 0)

    def show_map(self, _):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(MDFS, [MDFS, "volume", "map", self.volume / "large"])

    def test_thirty_writers_that_wait_for_memory(self):
        self.beside(self.write)

    def test_thirty_readers_that_wait_for_disks(self):
        self.beside(self.read)

    def test_readers_who_are_killed_end_and_stop_no_other(self):
        """More of them than there are requests under way at a time, in data and in metadata."""
        calls = [self.read, self.read_window, self.show_map,
                 lambda _: os.stat(self.volume / "far/away"), lambda _: os.listdir(self.volume / "far")]
        pids = [child(calls[number % len(calls)], number) for number in range(4 * CALLERS)]
        time.sleep(3)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 30  # their disks have work for minutes
        for pid in pids:
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                self.assertLess(time.monotonic(), deadline, "a killed reader still waits for its disk")
                time.sleep(0.05)
        for _ in range(OTHER_CALLS):
            self.others()
        self.kill_daemon()

    def test_look_ups_behind_one_another_end_when_their_callers_are_killed(self):
        """Some have not reached the daemon when they are killed; then the kernel sends no interrupt through rings."""
        pids = [child(lambda number: os.stat(self.volume / f"far/{number * 13 % 2000}"), number)
                for number in range(4 * CALLERS)]
        time.sleep(2)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        for pid in pids:
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                self.assertLess(time.monotonic(), deadline, "a killed caller still waits")
                time.sleep(0.02)
        self.kill_daemon()

    def test_an_unmount_that_is_refused_does_not_wait_for_disks(self):
        with open(self.volume / "other/cached", "ab") as file:
            file.write(bytes(8 << 20))
            file.flush()
            begun = time.monotonic()
            refused = subprocess.run([MDFS, "umount", self.volume.path], text=True, capture_output=True, check=False)
            self.assertIn("files are open there", refused.stderr)
            self.assertLess(time.monotonic() - begun, 8, "what is dirty takes ten seconds")
            self.kill_daemon()

    @unittest.skipIf(os.environ.get("MDFS_TEST_RINGS"), "about threads of /dev/fuse")
    def test_threads_that_were_started_for_waiting_callers_end_afterwards(self):
        self.volume.unmount()
        self.volume.mount("noatime,cache=16M")
        pids = [child(self.write, number) for number in range(CALLERS)]
        for pid in pids:
            os.waitpid(pid, 0)
        run(MDFS, "volume", "sync", self.volume.path)
        for _ in range(2 * CALLERS):  # each may end one thread
            os.statvfs(self.volume.path)
        self.assertLessEqual(self.readers_of_requests(), 11)

    def readers_of_requests(self):
        tasks = f"/proc/{self.volume.daemon()}/task"
        return sum(read_all(f"{tasks}/{task}/wchan").startswith(b"fuse_dev_do_read") for task in os.listdir(tasks))


class ComputedWindows(unittest.TestCase):
    """Windows that are computed when they are opened take processor time, which users share."""

    OPENERS = 12
    FEW = OPENERS // 2  # cuts; two are computed at once, and those behind all openers would have to wait for twelve

    def setUp(self):
        self.volume = Mounted(disks=1, size="256M", options="cache=128M,allow_other")
        self.addCleanup(self.volume.remove)
        make_image(self.volume / "volume", (200, 200, 200), codec=0)
        write_all(self.volume / "volume", os.urandom(200 ** 3))
        make_image(self.volume / "small", (400, 400), codec=0)
        write_all(self.volume / "small", os.urandom(400 * 400))

    def open_cuts(self, number):
        """A process of a user without privileges, whose threads open one large cut after another, and a pipe that gets
        a byte for each cut."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)

        def work():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            threads = [threading.Thread(target=self.cuts, args=(number * 1000 + i, writer))
                       for i in range(self.OPENERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        pid = child(work)
        self.addCleanup(self.end, pid)
        self.addCleanup(os.close, reader)
        os.close(writer)
        return pid, reader

    def cuts(self, number, writer):
        for step in itertools.count():
            name = f"volume@/win/cut,{number % 100},0,{step % 100},1,0,0.5,0,1,0.3,6000,6000.raw"
            os.close(os.open(self.volume / name, os.O_RDONLY))
            os.write(writer, b"x")

    @staticmethod
    def end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def made(self, reader):
        """The number of cuts since the last call."""
        try:
            return len(os.read(reader, 1 << 16))
        except BlockingIOError:
            return 0

    def test_a_user_who_opens_many_cuts_leaves_turns_to_another_one(self):
        openers, reader = self.open_cuts(1)
        time.sleep(2)
        waited_for = []
        for row in range(3):
            self.made(reader)
            read_all(self.volume / f"small@/win/y{row}+20.png")
            waited_for.append(self.made(reader))
        self.assertLess(min(waited_for), self.FEW, "a small window waits for all openers of the other user")
        self.assertEqual(os.waitpid(openers, os.WNOHANG), (0, 0), "no call of the openers has failed")

    def test_a_caller_who_is_killed_while_its_open_waits_for_others_of_the_same_user_ends(self):
        others, reader = self.open_cuts(1)
        time.sleep(1)
        waited_for = []
        for number in range(2, 5):
            killed, _ = self.open_cuts(number)
            time.sleep(1)
            self.made(reader)
            self.end(killed)
            waited_for.append(self.made(reader))
        self.assertLess(min(waited_for), self.FEW, "a killed caller waits for the openers before it")
        self.assertEqual(os.waitpid(others, os.WNOHANG), (0, 0), "no call of the openers has failed")


if __name__ == "__main__":
    harness.main()
