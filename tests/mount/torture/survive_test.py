"""Large directories that change while they are read, and daemons killed in the middle of everything."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import random
import signal
import struct
import threading
import time

from torture import LONGER, TortureTest, bind, is_dead, main, make_image, read_all, tried, write_all

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.opendir.restype = LIBC.readdir.restype = ctypes.c_void_p
LIBC.telldir.restype = ctypes.c_long
ENTRIES = 100_000


class Entry(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_ulong), ("offset", ctypes.c_long), ("length", ctypes.c_ushort),
                ("kind", ctypes.c_ubyte), ("name", ctypes.c_char * 256)]


class Stream:
    """opendir(3) and friends, with places to come back to."""

    def __init__(self, path):
        self.stream = ctypes.c_void_p(LIBC.opendir(path.encode()))
        assert self.stream

    def next(self):
        entry = LIBC.readdir(self.stream)
        return Entry.from_address(entry).name.decode() if entry else None

    def tell(self):
        return LIBC.telldir(self.stream)

    def seek(self, place):
        LIBC.seekdir(self.stream, ctypes.c_long(place))

    def rewind(self):
        LIBC.rewinddir(self.stream)

    def close(self):
        LIBC.closedir(self.stream)


class LargeDirectories(TortureTest):
    def fill(self):
        def some(start):
            for i in range(start, ENTRIES, 4):
                os.mknod(self.at(f"stays{i}"))
        threads = [threading.Thread(target=some, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def churn(self, stop, number):
        """Makes, moves and removes names among those that stay."""
        rng = random.Random(number)
        names, i = [], 0
        while not stop.is_set():
            i += 1
            kind = rng.random()
            if kind < 0.5 or not names:
                names.append(f"comes{number}.{i}")
                os.mknod(self.at(names[-1]))
            elif kind < 0.7:
                at = rng.randrange(len(names))
                new = f"moved{number}.{i}"
                os.rename(self.at(names[at]), self.at(new))
                names[at] = new
            else:
                os.unlink(self.at(names.pop(rng.randrange(len(names)))))

    def test_a_hundred_thousand_entries_are_listed_once_while_others_come_and_go(self):
        self.fill()
        expected = {f"stays{i}" for i in range(ENTRIES)}
        start = time.monotonic()
        self.assertEqual(set(os.listdir(self.dir)), expected)
        print(f"{ENTRIES} entries listed in {time.monotonic() - start:.2f} s", flush=True)
        stop = threading.Event()
        threads = [threading.Thread(target=self.churn, args=(stop, number)) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2 * LONGER):
                names = os.listdir(self.dir)
                self.assertEqual(len(names), len(set(names)), "a name was seen twice")
                self.assertEqual({name for name in names if name.startswith("stays")}, expected)
            self.places_stay()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        for i in range(0, ENTRIES, 50):
            os.unlink(self.at(f"stays{i}"))
            expected.discard(f"stays{i}")
        self.volume.unmount()
        self.volume.mount(self.options)
        self.assertEqual({name for name in os.listdir(self.dir) if name.startswith("stays")}, expected)

    def places_stay(self):
        """seekdir(3) to a place seen before shows the same entries that stay, in the same order."""
        stream = Stream(self.dir)
        places, names = [], []
        while True:
            place = stream.tell()
            name = stream.next()
            if name is None:
                break
            if name.startswith("stays"):
                places.append(place)
                names.append(name)
        rng = random.Random(1)
        for at in rng.sample(range(len(names) - 20), 30):
            stream.seek(places[at])
            seen = []
            while len(seen) < 10:
                name = stream.next()
                if name.startswith("stays"):
                    seen.append(name)
            self.assertEqual(seen, names[at:at + 10])
        stream.rewind()
        self.assertEqual({stream.next(), stream.next()}, {".", ".."})
        stream.close()

    def test_a_directory_is_emptied_while_it_is_read(self):
        for i in range(20_000):
            os.mknod(self.at(str(i)))
        removed = 0
        with os.scandir(self.dir) as entries:
            for entry in entries:
                os.unlink(entry.path)
                removed += 1
        self.assertEqual(removed, 20_000)
        self.assertEqual(os.listdir(self.dir), [])
        os.rmdir(self.dir)
        os.mkdir(self.dir)


BLOCK = 4096
STAMP = struct.Struct("<QQ")  # where a block belongs, and which write it is of


def stamped(place, number):
    return STAMP.pack(place, number) * (BLOCK // STAMP.size)


class Oracle:
    """What was written, and what of it was promised to last."""

    def __init__(self):
        self.written = {}  # place -> number of the newest write that was begun
        self.lasting = {}  # place -> number of the newest write that an fsync has covered

    def check(self, place, data):
        """A block must be whole, of its place, as new as what was promised or newer, and one that was written."""
        found = {STAMP.unpack_from(data, at) for at in range(0, len(data), STAMP.size)}
        if len(found) != 1:
            return f"block {place} is a mixture of {sorted(found)[:3]}"
        (where, number), least = found.pop(), self.lasting.get(place, 0)
        if (where, number) == (0, 0) and least == 0:
            return ""
        if where != place or not least <= number <= self.written.get(place, 0):
            return f"block {place} is {where}, {number}; {least} was promised and {self.written.get(place, 0)} the last"
        return ""


class Worker:
    """Writes blocks to one file until the daemon is gone; the file and its oracle go on through many daemons."""
    blocks = 200

    def __init__(self, path, seed):
        self.path, self.oracle, self.number = path, Oracle(), 0
        self.rng = random.Random(seed)

    def prepare(self):
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o644))

    def pick(self, fd):
        place = self.rng.randrange(1, self.blocks)
        self.number += 1
        self.oracle.written[place] = self.number
        os.pwrite(fd, stamped(place, self.number), place * BLOCK)

    def work(self):
        try:
            fd = os.open(self.path, os.O_RDWR)
            try:
                while True:
                    for _ in range(self.rng.randrange(1, 30)):
                        self.pick(fd)
                    written = dict(self.oracle.written)
                    self.rng.choice((os.fsync, os.fdatasync))(fd)
                    self.oracle.lasting = written
            finally:
                os.close(fd)
        except OSError:
            pass  # the daemon has died

    def judge(self):
        """What is there now is what is there: later checks start from it."""
        problems, data = [], read_all(self.path)
        for place in range(1, self.blocks):
            block = data[place * BLOCK:(place + 1) * BLOCK]
            problems.append(self.oracle.check(place, block.ljust(BLOCK, b"\0")))
            if block:
                number = STAMP.unpack_from(block)[1]
                self.oracle.written[place] = self.oracle.lasting[place] = number
        return [problem for problem in problems if problem]


class WindowWorker(Worker):
    """Writes windows of one image; each is seen whole or not at all."""
    side, blocks = 64, 64

    def prepare(self):
        make_image(self.path, (512, 512), extent=(48, 40))

    def box(self, place):
        return (place // 8 * self.side, place % 8 * self.side), (self.side, self.side)

    def pick(self, fd):
        place = self.rng.randrange(1, self.blocks)
        self.number += 1
        self.oracle.written[place] = self.number
        bind(fd, *self.box(place))
        os.pwrite(fd, stamped(place, self.number), 0)

    def judge(self):
        problems = []
        fd = os.open(self.path, os.O_RDONLY)
        for place in range(1, self.blocks):
            bind(fd, *self.box(place))
            block = os.pread(fd, BLOCK, 0)
            problems.append(self.oracle.check(place, block))
            self.oracle.written[place] = self.oracle.lasting[place] = STAMP.unpack_from(block)[1]
        os.close(fd)
        return [problem for problem in problems if problem]


class NameWorker(Worker):
    """Replaces a file by writing another and renaming it over: old or new, whole; with fsync of the directory, new."""
    blocks = 40

    def prepare(self):
        write_all(self.path, stamped(1, 0) * self.blocks)
        self.folder = os.path.dirname(self.path)

    def work(self):
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                while True:
                    self.number += 1
                    self.oracle.written[1] = self.number
                    write_all(self.path + ".new", stamped(1, self.number) * self.blocks)
                    os.rename(self.path + ".new", self.path)
                    if self.rng.random() < 0.3:
                        os.fsync(folder)
                        self.oracle.lasting[1] = self.number
            finally:
                os.close(folder)
        except OSError:
            pass

    def judge(self):
        data = read_all(self.path)
        if len(data) != self.blocks * BLOCK:
            return [f"{self.path} has {len(data)} bytes"]
        problem = self.oracle.check(1, data)
        self.oracle.written[1] = self.oracle.lasting[1] = STAMP.unpack_from(data)[1]
        return [problem] if problem else []


class KilledDaemons(TortureTest):
    def workers(self):
        made = [Worker(self.at(f"file{i}"), i) for i in range(3)]
        made += [WindowWorker(self.at(f"scan{i}"), 10 + i) for i in range(2)]
        made += [NameWorker(self.at(f"name{i}"), 20 + i) for i in range(2)]
        for worker in made:
            worker.prepare()
        os.sync()
        self.volume.unmount()
        self.volume.mount(self.options)
        return made

    def test_every_promise_holds_through_kills_at_random_moments(self):
        workers, rng = self.workers(), random.Random(5)
        for turn in range(5 * LONGER):
            threads = [threading.Thread(target=worker.work) for worker in workers]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.05, 1.2))
            os.kill(self.volume.daemon(), signal.SIGKILL)
            for thread in threads:
                thread.join()
            end = time.time() + 10
            while not is_dead(self.volume.path):
                self.assertLess(time.time(), end)
                time.sleep(0.005)
            self.volume.mount(self.options)
            for worker in workers:
                self.assertEqual(worker.judge(), [], f"{worker.path} after kill {turn}")
        promised = [len(worker.oracle.lasting) for worker in workers]
        self.assertTrue(all(promised), f"a worker got nothing done: {promised}")
        tried(f"{5 * LONGER} kills (SIGKILL) under {len(workers)} writers, {sum(promised)} blocks promised in the end")

    def test_the_oracle_sees_loss_and_mixtures(self):
        oracle = Oracle()
        oracle.written[3], oracle.lasting[3] = 9, 7
        self.assertEqual(oracle.check(3, stamped(3, 8)), "")
        for wrong in (stamped(3, 6), stamped(3, 10), stamped(4, 8), bytes(BLOCK),
                      stamped(3, 8)[:2048] + stamped(3, 9)[2048:]):
            self.assertNotEqual(oracle.check(3, wrong), "")

    def test_unlinked_open_files_are_gone_after_a_kill(self):
        """Their space comes back; nothing of them is left in any directory."""
        free = os.statvfs(self.dir).f_bavail
        held = [os.open(self.at(f"held{i}"), os.O_RDWR | os.O_CREAT) for i in range(20)]
        for i, fd in enumerate(held):
            os.write(fd, os.urandom(500_000))
            os.unlink(self.at(f"held{i}"))
            os.fsync(fd)
        os.kill(self.volume.daemon(), signal.SIGKILL)
        while not is_dead(self.volume.path):
            time.sleep(0.005)
        for fd in held:
            os.close(fd)
        self.volume.mount(self.options)
        self.assertEqual(os.listdir(self.dir), [])
        end = time.time() + 10
        while os.statvfs(self.dir).f_bavail < free - 64 and time.time() < end:
            time.sleep(0.05)
        self.assertGreaterEqual(os.statvfs(self.dir).f_bavail, free - 64)


if __name__ == "__main__":
    main()
