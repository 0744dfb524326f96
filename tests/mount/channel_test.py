"""The channel of a mount: windows through shared memory are those of the kernel, for those who may read the image."""
# SPDX-License-Identifier: Apache-2.0
import array
import ctypes
import errno
import fcntl
import mmap
import os
import random
import select
import signal
import socket
import struct
import threading
import time
import unittest

import numpy
import harness
from harness import make_image, read_all, write_all

NOBODY = 65534
SHAPE, CHANNELS = (200, 300), 3
CHANNEL = struct.Struct("=II16s64s4Q")  # struct mdfs_ioc_channel
GRANT = harness.ioc(3, 15, CHANNEL.size)
# src/channel/layout.h.
MESSAGE = struct.Struct("=II16sQ")
ANSWER = struct.Struct("=iIQ")
ATTACH, DETACH = 1, 2
HEADER_BYTES, SLOT_BYTES, SLOTS, AREA_OFFSET = 128, 256, 64, 32 << 10
DONE = 3
PATIENCE = 30  # seconds, for an answer that does not come

LIBRARY = ctypes.CDLL(os.environ["LIBMDFS"], use_errno=True)
LIBRARY.mdfs_last_error.restype = ctypes.c_char_p
LIBRARY.mdfs_read_window.restype = ctypes.c_ssize_t
LIBRARY.mdfs_read_window.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t,
                                     ctypes.c_void_p]


class WindowRead(ctypes.Structure):
    """struct mdfs_window_read."""
    _fields_ = [("window", ctypes.c_ubyte * len(harness.window((0,), (1,)))), ("buffer", ctypes.c_void_p),
                ("buffer_bytes", ctypes.c_size_t), ("strides", ctypes.c_void_p), ("result", ctypes.c_ssize_t)]


class Image:
    """An image by libmdfs."""

    def __init__(self, path):
        self.handle = ctypes.c_void_p()
        result = LIBRARY.mdfs_open(os.fsencode(path), os.O_RDONLY, ctypes.byref(self.handle))
        if result < 0:
            raise OSError(-result, LIBRARY.mdfs_last_error().decode())

    def read(self, start, length, channel=-1, dtype=numpy.uint8, channels=CHANNELS, level=0):
        out = numpy.empty(tuple(length) + ((channels,) if channel < 0 and channels > 1 else ()), dtype)
        count = LIBRARY.mdfs_read_window(self.handle, harness.window(start, length, channel, level), out.ctypes.data,
                                         out.nbytes, None)
        if count < 0:
            raise OSError(-count, LIBRARY.mdfs_last_error().decode())
        assert count == out.nbytes
        return out

    def read_many(self, boxes, out):
        """The result of the call and that of each window. `out`: for each box an array, with strides of its own."""
        reads, kept = (WindowRead * len(boxes))(), []
        for read, (start, length), target in zip(reads, boxes, out):
            window = harness.window(start, length)
            read.window[:] = bytes(window)
            kept.append((ctypes.c_int64 * len(length))(*target.strides[:len(length)]))
            read.buffer, read.buffer_bytes = target.ctypes.data, target.nbytes * 2
            read.strides = ctypes.addressof(kept[-1])
        return LIBRARY.mdfs_read_windows(self.handle, reads, len(boxes)), [read.result for read in reads]

    def close(self):
        LIBRARY.mdfs_close(self.handle)


def maps(process="self"):
    """The number of channels that a process has mapped."""
    return read_all(f"/proc/{process}/maps").count(b"memfd:mdfs-channel")


def eventually(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def ask_for_token(fd):
    """The token for the image and the name of the socket."""
    call = bytearray(CHANNEL.pack(CHANNEL.size, 0, b"", b"", *[0] * 4))
    fcntl.ioctl(fd, GRANT, call)
    fields = CHANNEL.unpack(call)
    return fields[2], b"\0" + fields[3].rstrip(b"\0")


class Raw:
    """A client without libmdfs, which may do what it likes."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(name)
        self.memory = None

    def attach(self, token, area=1 << 20):
        """The number of the image; OSError with the daemon's error, ConnectionError if it hangs up."""
        self.socket.send(MESSAGE.pack(ATTACH, 0, token, area))
        fds = array.array("i")
        data, ancillary, _, _ = self.socket.recvmsg(ANSWER.size, socket.CMSG_SPACE(4))
        if not data:
            raise ConnectionError("hung up")
        for _, _, content in ancillary:
            fds.frombytes(content)
        error, image, area = ANSWER.unpack(data)
        if error:
            raise OSError(error, "attach")
        if fds:
            self.memory = mmap.mmap(fds[0], AREA_OFFSET + area)
            os.close(fds[0])
        return image

    def submit(self, slot, request, state=1):
        at = HEADER_BYTES + slot * SLOT_BYTES
        self.memory[at + 8:at + 8 + len(request)] = request
        self.memory[at:at + 8] = struct.pack("=Ii", state, 0)
        self.memory[0:8] = struct.pack("=Q", struct.unpack("=Q", self.memory[0:8])[0] | 1 << slot)
        self.ring()

    def ring(self):
        """The daemon sleeps on the doorbell: a wake by futex(2), which Python does not have."""
        libc = ctypes.CDLL(None)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory, 64))
        libc.syscall(ctypes.c_long(FUTEX), ctypes.c_void_p(address), 1, 1 << 30, None, None, 0)

    def ask(self, image, start, length, samples, slot=0, level=0):
        """The error and the samples of one window."""
        window = harness.window(start, length, level=level)
        self.submit(slot, window + struct.pack("=IIQQ", image, 0, 0, samples))
        at = HEADER_BYTES + slot * SLOT_BYTES
        if not eventually(lambda: struct.unpack("=I", self.memory[at:at + 4])[0] == DONE):
            raise AssertionError("no answer")
        error = struct.unpack("=i", self.memory[at + 4:at + 8])[0]
        return error, bytes(self.memory[AREA_OFFSET:AREA_OFFSET + samples])

    def close(self):
        self.socket.close()


FUTEX = {"x86_64": 202}.get(os.uname().machine, 98)


def in_child(work, uid=0):
    """The exit status of a child process that runs `work`: 0 if it raises nothing."""
    child = os.fork()
    if child == 0:
        number = 1
        try:
            if uid:
                os.setgid(uid)
                os.setuid(uid)
            work()
            number = 0
        except BaseException as problem:  # the child must not go on as a test
            print(f"child: {problem!r}", flush=True)
        finally:
            os._exit(number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Channel(harness.MountTest):
    size = "128M"
    options = "cache=64M,allow_other"

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.path = self.at("scan")
        make_image(self.path, SHAPE, channels=CHANNELS, extent=(64, 64))
        self.samples = numpy.random.default_rng(1).integers(0, 256, SHAPE + (CHANNELS,), numpy.uint8)
        write_all(self.path, self.samples.tobytes())

    def check_windows(self, image, count, seed=1):
        numbers = random.Random(seed)
        for _ in range(count):
            start = [numbers.randrange(n) for n in SHAPE]
            length = [numbers.randint(1, n - s) for n, s in zip(SHAPE, start)]
            box = tuple(slice(s, s + n) for s, n in zip(start, length))
            channel = numbers.choice([-1, -1, 0, 1, 2])
            want = self.samples[box] if channel < 0 else self.samples[box][..., channel]
            numpy.testing.assert_array_equal(image.read(start, length, channel), want)

    def test_windows_through_the_channel_are_those_of_the_image(self):
        before = maps()
        image = Image(self.path)
        self.addCleanup(image.close)
        self.check_windows(image, 200)
        self.assertEqual(maps(), before + 1)

    def test_errors_are_those_of_the_kernels_way(self):
        image = Image(self.path)
        self.addCleanup(image.close)
        self.check_windows(image, 10)
        for start, length, number in (((SHAPE[0], 0), (1, 1), errno.ERANGE), ((0,), (1,), errno.EINVAL),
                                      ((0, 0), (SHAPE[0] + 1, 1), errno.ERANGE)):
            self.assertErrno(number, image.read, start, length)
        self.assertErrno(errno.ERANGE, image.read, (0, 0), (2, 2), CHANNELS)

    def check_beside_a_writer(self, path, shape, extent, window, writes, readers, read):
        """Readers call `read` with an open image while a window is written again and again, each time with another
        value. It returns samples that must be of one value."""
        make_image(path, shape, extent=extent)
        write_all(path, bytes([1]) * (shape[0] * shape[1]))
        done, mixed, reads = threading.Event(), [], [0]

        def work():
            try:
                image = Image(path)
                while not done.is_set():
                    for samples in read(image):
                        reads[0] += 1
                        if len(numpy.unique(samples)) != 1:
                            mixed.append(numpy.unique(samples))
                image.close()
            except (OSError, AssertionError) as problem:
                mixed.append(problem)
        threads = [threading.Thread(target=work) for _ in range(readers)]
        for thread in threads:
            thread.start()
        height, width = window
        for value in range(2, 2 + writes):
            write_all(f"{path}@/win/y10+{height},x10+{width}.raw", bytes([value]) * (height * width))
        done.set()
        for thread in threads:
            thread.join()
        self.assertEqual(mixed, [])
        self.assertGreater(reads[0], 10)
        print(f"tried: {reads[0]} reads beside {writes} writes", flush=True)

    def test_a_reader_sees_no_mixture_of_versions(self):
        self.check_beside_a_writer(self.at("flicker"), SHAPE, (64, 64), (150, 250), 78, 3,
                                   lambda image: [image.read((10, 10), (150, 250), channels=1)])

    def test_a_reader_of_windows_that_come_in_passes_sees_no_mixture_of_versions(self):
        def read(image):
            yield image.read((10, 10), (1150, 950), channels=1)
            out = numpy.zeros((1150, 1900), numpy.uint8)[:, ::2]
            self.assertEqual(image.read_many([((10, 10), (1150, 950))], [out])[0], 0)
            yield out
        self.check_beside_a_writer(self.at("wide"), (1200, 1000), (128, 128), (1150, 950), 58, 2, read)

    def test_many_windows_in_one_call_are_those_of_single_calls(self):
        rng = random.Random(9)
        for switched_off in (False, True):
            if switched_off:
                os.environ["MDFS_CHANNEL"] = "off"
                self.addCleanup(os.environ.pop, "MDFS_CHANNEL")
            image = Image(self.path)
            boxes, out = [], []
            for number in range(100):
                start = [rng.randrange(side) for side in SHAPE]
                length = [rng.randrange(1, side - at + 1) for side, at in zip(SHAPE, start)]
                step = 1 + number % 2
                boxes.append((start, length))
                out.append(numpy.zeros((length[0], length[1] * step, CHANNELS), numpy.uint8)[:, ::step])
            wrong = {17: ((SHAPE[0], 0), (1, 1)), 60: ((0, 0), (SHAPE[0] + 1, 1)), 61: ((0,), (1,))}
            asked = [wrong.get(number, box) for number, box in enumerate(boxes)]
            result, each = image.read_many(asked, out)
            self.assertEqual(result, -errno.ERANGE)
            self.assertIn(b"range", LIBRARY.mdfs_last_error().lower())
            for number, ((start, length), target) in enumerate(zip(boxes, out)):
                if number in wrong:
                    self.assertIn(each[number], (-errno.ERANGE, -errno.EINVAL))
                    continue
                self.assertEqual(each[number], target.size)
                wanted = self.samples[start[0]:start[0] + length[0], start[1]:start[1] + length[1]]
                self.assertTrue(numpy.array_equal(target, wanted), (number, start, length))
            self.assertEqual(image.read_many([], []), (0, []))
            image.close()

    def test_a_written_window_is_seen_at_once(self):
        image = Image(self.path)
        self.addCleanup(image.close)
        self.check_windows(image, 10)
        for value in range(20):
            write_all(f"{self.path}@/win/y5+64,x5+64.raw", bytes([value]) * (64 * 64 * CHANNELS))
            self.assertEqual(set(image.read((5, 5), (64, 64)).ravel()), {value})

    def test_many_threads_share_one_channel(self):
        before, image, errors = maps(), Image(self.path), []

        def work(seed):
            try:
                self.check_windows(image, 100, seed)
            except AssertionError as problem:
                errors.append(problem)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(maps(), before + 1)
        image.close()
        self.assertTrue(eventually(lambda: maps() == before))

    def test_a_forked_child_gets_a_channel_of_its_own(self):
        image = Image(self.path)
        self.addCleanup(image.close)
        self.check_windows(image, 10)

        def work():
            assert maps() == 0, "the child has its parent's memory"
            self.check_windows(image, 20, 2)
            assert maps() == 1, "the child has no channel"
        for _ in range(3):
            self.assertEqual(in_child(work), 0)
        self.check_windows(image, 20, 3)

    def test_the_environment_switches_it_off(self):
        os.environ["MDFS_CHANNEL"] = "off"
        self.addCleanup(os.environ.pop, "MDFS_CHANNEL")
        before, image = maps(), Image(self.path)
        self.addCleanup(image.close)
        self.check_windows(image, 20)
        self.assertEqual(maps(), before)

    def test_a_token_is_for_one_use_and_for_readers_alone(self):
        fd = os.open(self.path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        token, name = ask_for_token(fd)
        client = Raw(name)
        self.addCleanup(client.close)
        self.assertEqual(client.ask(client.attach(token), (0, 0), (1, 2), 2 * CHANNELS),
                         (0, self.samples[0, :2].tobytes()))
        for wrong in (token, bytes(16), os.urandom(16)):
            other = Raw(name)
            self.assertRaises((ConnectionError, OSError), other.attach, wrong)
            other.close()
        write_only = os.open(self.path, os.O_WRONLY)
        self.assertErrno(errno.EACCES, ask_for_token, write_only)
        os.close(write_only)
        write_all(self.at("plain"), b"bytes")
        with open(self.at("plain"), "rb") as plain:
            self.assertErrno(errno.EINVAL, ask_for_token, plain.fileno())

    def test_another_user_cannot_redeem_a_token(self):
        fd = os.open(self.path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        token, name = ask_for_token(fd)
        self.assertEqual(in_child(lambda: self.assertRaises((ConnectionError, OSError), Raw(name).attach, token),
                                  NOBODY), 0)
        own = Raw(name)
        self.addCleanup(own.close)
        own.attach(token)

    def test_a_user_reads_through_a_channel_what_the_mode_allows(self):
        os.chmod(self.path, 0o600)
        self.assertEqual(in_child(lambda: self.assertRaises(PermissionError, Image, self.path), NOBODY), 0)
        os.chmod(self.path, 0o644)

        def work():
            image = Image(self.path)
            self.check_windows(image, 20)
            assert maps() == 1, "no channel"
        self.assertEqual(in_child(work, NOBODY), 0)

    def test_the_last_close_withdraws_the_right(self):
        fd = os.open(self.path, os.O_RDONLY)
        token, name = ask_for_token(fd)
        client = Raw(name)
        self.addCleanup(client.close)
        image = client.attach(token)
        self.assertEqual(client.ask(image, (0, 0), (1, 1), CHANNELS)[0], 0)
        late, _ = ask_for_token(fd)
        os.close(fd)
        self.assertTrue(eventually(lambda: client.ask(image, (0, 0), (1, 1), CHANNELS)[0] == errno.ENOENT))
        self.assertRaises((ConnectionError, OSError), client.attach, late)

    def test_garbage_in_the_memory_harms_its_client_alone(self):
        fd = os.open(self.path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        token, name = ask_for_token(fd)
        hostile, numbers = Raw(name), random.Random(5)
        number = hostile.attach(token)
        image = Image(self.path)
        self.addCleanup(image.close)
        head = bytearray(HEADER_BYTES + SLOTS * SLOT_BYTES)
        for round_ in range(200):
            for slot in range(SLOTS):
                request = bytearray(harness.window((1, 2), (30, 40)) +
                                    struct.pack("=IIQQ", number, 0, 4096, 30 * 40 * CHANNELS))
                for _ in range(numbers.randrange(4)):
                    request[numbers.randrange(len(request))] = numbers.randrange(256)
                at = HEADER_BYTES + slot * SLOT_BYTES
                head[at:at + 8] = numbers.randbytes(8)
                head[at + 8:at + 8 + len(request)] = request
            head[0:HEADER_BYTES] = numbers.randbytes(HEADER_BYTES)
            hostile.memory[0:len(head)] = head
            hostile.ring()
            if round_ % 20 == 0:
                self.check_windows(image, 5, round_)
        hostile.close()
        self.check_windows(image, 20)
        print(f"tried: {200 * SLOTS} requests with wrong fields", flush=True)

    def kill_clients(self, begin):
        """Kills ten children, one after another, while each checks windows of the image that `begin` gives it."""
        for round_ in range(10):
            ready, child = os.pipe(), os.fork()
            if child == 0:
                try:
                    image = begin(round_)
                    os.write(ready[1], b"r")
                    while True:
                        self.check_windows(image, 8, round_)
                finally:  # the child must not go on as a test
                    os._exit(1)
            select.select([ready[0]], [], [], PATIENCE)
            os.kill(child, signal.SIGKILL)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGKILL)
            for end in ready:
                os.close(end)

    def test_clients_that_are_killed_leave_nothing(self):
        daemon = self.volume.daemon()
        self.assertTrue(eventually(lambda: maps(daemon) == 0))

        def begin(round_):
            image = Image(self.path)
            self.check_windows(image, 8, round_)
            return image
        self.kill_clients(begin)
        self.assertTrue(eventually(lambda: maps(daemon) == 0))

    def test_two_hundred_clients_are_served(self):
        daemon, children = self.volume.daemon(), []
        begin, done = os.pipe(), os.pipe()
        for number in range(200):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    os.close(begin[1])
                    image = Image(self.path)
                    self.check_windows(image, 10, number)
                    os.write(done[1], b"d" if maps() == 1 else b"n")
                    os.read(begin[0], 1)
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        answers = b""
        while len(answers) < len(children) and select.select([done[0]], [], [], PATIENCE)[0]:
            answers += os.read(done[0], 200)
        os.close(begin[1])
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        for end in (begin[0], *done):
            os.close(end)
        self.assertEqual(statuses, [0] * 200)
        self.assertEqual(answers, b"d" * 200)
        self.assertTrue(eventually(lambda: maps(daemon) == 0))

    def test_strangers_are_hung_up_on(self):
        fd = os.open(self.path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        _, name = ask_for_token(fd)
        for message in (b"", b"x", bytes(MESSAGE.size), b"y" * 5000, MESSAGE.pack(DETACH, 5, b"", 0)):
            stranger = Raw(name)
            stranger.socket.send(message)
            self.assertIn(stranger.socket.recv(100), (b"",))
            stranger.close()
        silent = Raw(name)
        self.assertEqual(silent.socket.recv(100), b"")
        silent.close()


class ChannelWithCachedImages(Channel):
    options = "cache=64M,allow_other,cached_images"


class Switched(unittest.TestCase):
    def test_a_mount_without_channels_reads_through_the_kernel(self):
        volume = harness.Mounted(options="cache=64M,channel=off")
        self.addCleanup(volume.remove)
        make_image(volume / "scan", SHAPE)
        samples = os.urandom(SHAPE[0] * SHAPE[1])
        write_all(volume / "scan", samples)
        with open(volume / "scan", "rb") as file:
            self.assertRaises(OSError, ask_for_token, file.fileno())
        image = Image(volume / "scan")
        for _ in range(10):
            self.assertEqual(image.read((0, 0), SHAPE, channels=1).tobytes(), samples)
        self.assertEqual(maps(), 0)
        image.close()
        volume.unmount()

    def test_an_unmount_ends_channels_that_are_still_connected(self):
        volume = harness.Mounted()
        self.addCleanup(volume.remove)
        make_image(volume / "scan", SHAPE)
        fd = os.open(volume / "scan", os.O_RDONLY)
        token, name = ask_for_token(fd)
        client = Raw(name)
        client.attach(token)
        os.close(fd)
        volume.unmount()
        self.assertEqual(client.socket.recv(100), b"")
        client.close()

    def test_a_reader_goes_on_after_a_remount(self):
        volume = harness.Mounted()
        self.addCleanup(volume.remove)
        make_image(volume / "scan", SHAPE)
        for _ in range(2):
            image = Image(volume / "scan")
            for _ in range(10):
                self.assertFalse(image.read((0, 0), SHAPE, channels=1).any())
            self.assertEqual(maps(), 1)
            image.close()
            volume.unmount()
            volume.mount()
        volume.unmount()

    def read_image(self):
        """A volume, and an image of it that has been read often enough for a channel."""
        volume = harness.Mounted()
        self.addCleanup(volume.remove)
        make_image(volume / "scan", SHAPE)
        image = Image(volume / "scan")
        for _ in range(10):
            image.read((0, 0), SHAPE, channels=1)
        return volume, image

    def test_a_daemon_that_dies_ends_its_readers(self):
        volume, image = self.read_image()
        os.kill(volume.daemon(), signal.SIGKILL)
        self.assertRaises(OSError, image.read, (0, 0), SHAPE, channels=1)
        image.close()

    def test_the_thread_of_an_idle_channel_sleeps(self):
        volume, image = self.read_image()
        daemon = volume.daemon()

        def waits():
            """What the threads of channels wait for in the kernel."""
            calls = []
            for task in os.listdir(f"/proc/{daemon}/task"):
                try:
                    if read_all(f"/proc/{daemon}/task/{task}/comm") == b"channel\n":
                        calls.append(read_all(f"/proc/{daemon}/task/{task}/syscall").split()[0])
                except (FileNotFoundError, ProcessLookupError):
                    pass  # the thread has ended since it was listed
            return calls
        self.assertTrue(eventually(lambda: waits() == [str(FUTEX).encode()]))
        image.close()
        self.assertTrue(eventually(lambda: waits() == []))
        volume.unmount()


if __name__ == "__main__":
    harness.main()
