"""Streams on a real mount: frames in order and right, admission by the modelled disks, and what ends them."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import json
import os
import signal
import struct
import subprocess
import threading
import time

import harness
from harness import MDFS, WINDOW, ioc, make_image, run, slow_machine, wait_until, window, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of streams need numpy")
    raise SystemExit(harness.SKIP)

HEAD = struct.Struct("=4I")
TAIL = struct.Struct("=qd3Q2I2d4QqQ2IQ5Q128d")
STREAM_BYTES = HEAD.size + WINDOW.size + TAIL.size
FRAME = struct.Struct("=2I3Q2q2I3Q")
STREAM = ioc(3, 18, STREAM_BYTES)
NEXT = ioc(3, 19, FRAME.size)
SHOW, OPEN, CLOSE, PAUSE, RESUME, SEEK, PACE, LIST = range(8)
DROP, UNCHECKED, PAUSED, ENDED, COARSER = 1, 2, 4, 8, 16
FIELDS = ("step", "rate", "frame", "frames", "id", "lookahead", "busiest", "rate_that_fits", "load", "in_time", "late",
          "dropped", "failed", "latest_ns", "inode", "uid", "pid", "coarser")
RNG = np.random.default_rng(11)
SHAPE = [60, 48, 64]  # t, y, x


def call(fd, action, flags=0, axis=0, box=bytes(WINDOW.size), **fields):
    """The answer as a dictionary; errors carry it as `answer`."""
    values = [fields.pop(name, 0) for name in FIELDS] + [0] * (5 + 128)
    assert not fields, fields
    request = bytearray(HEAD.pack(STREAM_BYTES, action, flags, axis) + box + TAIL.pack(*values))
    problem = None
    try:
        fcntl.ioctl(fd, STREAM, request)
    except OSError as error:
        problem = error
    answer = dict(zip(FIELDS, TAIL.unpack_from(request, HEAD.size + WINDOW.size)))
    answer["flags"] = HEAD.unpack_from(request)[2]
    if problem:
        problem.answer = answer
        raise problem
    return answer


class Frame:
    """The next frame of a description's stream, with its bytes."""

    def __init__(self, fd):
        request = bytearray(FRAME.pack(FRAME.size, *[0] * 11))
        fcntl.ioctl(fd, NEXT, request)
        values = FRAME.unpack(request)
        self.ended = values[1] == ENDED
        self.number, self.size, self.dropped, self.deadline_ns, self.ready_ns, self.level = values[2:8]
        self.data = os.pread(fd, self.size + 1, 0) if self.size else b""


class Streams(harness.MountTest):
    def movie(self, name="movie", shape=SHAPE, codec=0, extent=(4, 16, 64)):
        make_image(self.at(name), shape, codec=codec, extent=extent, axes="tyx")
        data = RNG.integers(0, 256, size=shape, dtype="u1")
        write_all(self.at(name), data.tobytes())
        run(MDFS, "volume", "sync", self.dir)
        return data

    def open(self, name="movie", flags=os.O_RDONLY):
        fd = os.open(self.at(name), flags)
        self.addCleanup(lambda: os.close(fd) if fd in self.open_fds else None)
        self.open_fds.add(fd)
        return fd

    def close(self, fd):
        self.open_fds.discard(fd)
        os.close(fd)

    def setUp(self):
        super().setUp()
        self.open_fds = set()

    def error(self, number, function, *words, **fields):
        with self.assertRaises(OSError) as raised:
            function(*words, **fields)
        self.assertEqual(raised.exception.errno, number, raised.exception)
        return raised.exception

    def listed(self):
        return json.loads(run(MDFS, "stream", "list", "--json", self.dir))["streams"]

    def frames_of(self, fd, count):
        return [Frame(fd) for _ in range(count)]

    def test_every_frame_comes_once_in_order_with_its_samples(self):
        for codec in (0, 1):
            data = self.movie(f"movie{codec}", codec=codec)
            fd = self.open(f"movie{codec}")
            opened = call(fd, OPEN, box=window([0, 8, 0], [1, 30, 64]), rate=400.0)
            self.assertEqual((opened["frames"], opened["step"], opened["rate"]), (60, 1, 400.0))
            for number in range(60):
                frame = Frame(fd)
                self.assertEqual(frame.number, number)
                self.assertEqual(frame.data, data[number, 8:38].tobytes())
            self.assertTrue(Frame(fd).ended)
            state = call(fd, SHOW)
            self.assertEqual(state["in_time"] + state["late"], 60)
            self.assertTrue(state["flags"] & ENDED)

    def test_backwards_in_steps_along_any_axis(self):
        data = self.movie()
        fd = self.open()
        call(fd, OPEN, axis=2, box=window([0, 0, 62], [60, 48, 2]), rate=500.0, step=-3)
        for number in range(31, -1, -3):
            frame = Frame(fd)
            self.assertEqual(frame.number, number)
            self.assertEqual(frame.data, data[:, :, 2 * number:2 * number + 2].tobytes())
        self.assertTrue(Frame(fd).ended)

    def test_frames_of_a_stored_level(self):
        self.movie()
        run(MDFS, "image", "levels", "--set", "1", self.at("movie"))
        fd = self.open()
        level = np.frombuffer(harness.read_all(self.at("movie@/win/l1.raw")), "u1").reshape(-1, 24, 32)
        opened = call(fd, OPEN, box=window([0, 0, 0], [1, 24, 32], level=1), rate=500.0)
        self.assertEqual(opened["frames"], len(level))
        for number in range(len(level)):
            self.assertEqual(Frame(fd).data, level[number].tobytes())
        other = self.open()
        self.error(errno.ERANGE, call, other, OPEN, box=window([0, 0, 0], [1, 12, 16], level=2), rate=5.0)

    def test_seek_pause_and_another_rate(self):
        data = self.movie()
        fd = self.open()
        call(fd, OPEN, box=window([0, 0, 0], [1, 48, 64]), rate=100.0, lookahead=4)
        self.frames_of(fd, 5)
        self.assertEqual(call(fd, SEEK, frame=40)["frame"], 40)
        self.assertEqual(Frame(fd).data, data[40].tobytes())
        self.assertTrue(call(fd, PAUSE)["flags"] & PAUSED)
        self.error(errno.EBUSY, Frame, fd)
        self.assertEqual(self.listed()[0]["paused"], True)
        call(fd, RESUME)
        self.assertEqual(Frame(fd).number, 41)
        backwards = call(fd, PACE, rate=50.0, step=-1)
        self.assertEqual((backwards["rate"], backwards["step"], backwards["frame"]), (50.0, -1, 42))
        frames = self.frames_of(fd, 3)
        self.assertEqual([frame.number for frame in frames], [42, 41, 40])
        self.assertEqual(frames[2].deadline_ns - frames[1].deadline_ns, 20_000_000)
        self.error(errno.ERANGE, call, fd, SEEK, frame=60)
        self.error(errno.EINVAL, call, fd, PACE, rate=-3.0)
        self.assertEqual(call(fd, SHOW)["rate"], 50.0)

    def test_a_client_gets_no_frame_long_before_its_time(self):
        self.movie()
        fd = self.open()
        call(fd, OPEN, box=window([0, 0, 0], [1, 48, 64]), rate=20.0, lookahead=2)
        for frame in self.frames_of(fd, 12):
            self.assertGreaterEqual(frame.ready_ns, frame.deadline_ns - 100_000_000)

    def test_a_late_client_gets_every_frame_or_with_drop_the_newest(self):
        self.movie()
        for flags, expected in ((0, 1), (DROP, 20)):
            fd = self.open()
            call(fd, OPEN, flags, box=window([0, 0, 0], [1, 48, 64]), rate=50.0)
            Frame(fd)
            time.sleep(1)
            frame = Frame(fd)
            self.assertGreaterEqual(frame.number, expected)
            self.assertEqual(frame.number == 1, flags == 0)
            self.assertEqual(frame.dropped, frame.number - 1)
            call(fd, CLOSE)

    def test_writes_show_in_frames_that_are_read_later(self):
        data = self.movie()
        fd = self.open()
        call(fd, OPEN, box=window([0, 0, 0], [1, 48, 64]), rate=100.0, lookahead=2)
        Frame(fd)
        with open(self.at("movie"), "r+b") as file:
            file.seek(50 * 48 * 64)
            file.write(bytes(10 * 48 * 64))
        data[50:] = 0
        call(fd, SEEK, frame=48)
        for number in range(48, 54):
            self.assertEqual(Frame(fd).data, data[number].tobytes())

    def test_a_description_has_one_stream_which_ends_with_it(self):
        self.movie()
        fd = self.open()
        self.error(errno.ENODATA, Frame, fd)
        self.error(errno.ENODATA, call, fd, SHOW)
        box = window([0, 0, 0], [1, 48, 64])
        first = call(fd, OPEN, box=box, rate=10.0)["id"]
        self.error(errno.EEXIST, call, fd, OPEN, box=box, rate=10.0)
        self.assertEqual([one["id"] for one in self.listed()], [first])
        self.close(fd)
        wait_until(lambda: self.listed() == [])

    def test_a_killed_client_frees_what_it_had_reserved(self):
        self.movie()
        process = subprocess.Popen([MDFS, "stream", "open", "--rate", "0.01", "--lookahead", "1", self.at("movie")],
                                   stderr=subprocess.DEVNULL)
        wait_until(lambda: len(self.listed()) == 1, process)
        time.sleep(0.3)  # it waits for a frame
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: self.listed() == [], seconds=10)

    def test_the_command_ends_when_the_daemon_does(self):
        self.movie()
        process = subprocess.Popen([MDFS, "stream", "open", "--rate", "5", self.at("movie")],
                                   stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(self.listed()) == 1, process)
        os.kill(self.volume.daemon(), signal.SIGKILL)
        said = process.communicate(timeout=30)[1]
        subprocess.run([MDFS, "umount", self.dir], stderr=subprocess.DEVNULL, check=False)
        self.volume.mount(self.options)
        self.assertNotEqual(process.returncode, 0)
        self.assertLess(len(said.splitlines()), 5, said)
        self.assertNotIn("usage", said)

    def test_an_output_that_is_the_image_is_refused_and_no_refusal_empties_a_file(self):
        data = self.movie()
        done = subprocess.run([MDFS, "stream", "open", "--rate", "5", "-o", self.at("movie"), self.at("movie")],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("is the image itself", done.stderr)
        self.assertEqual(harness.read_all(self.at("movie")), data.tobytes())
        kept = os.path.join(self.volume.folder, "kept")
        write_all(kept, b"kept")
        words = ["--rate", "5", "--window", "l1,t0", "-o", kept, self.at("movie")]
        done = subprocess.run([MDFS, "stream", "open", *words], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("level 1 is not stored", done.stderr)
        self.assertEqual(harness.read_all(kept), b"kept")

    def test_a_closed_stream_ends_the_wait_for_its_frame(self):
        self.movie()
        fd = self.open()
        opened = call(fd, OPEN, box=window([0, 0, 0], [1, 48, 64]), rate=0.01, lookahead=1)
        errors = []

        def take():
            try:
                for _ in range(3):
                    Frame(fd)
            except OSError as error:
                errors.append(error.errno)
        thread = threading.Thread(target=take)
        thread.start()
        time.sleep(0.3)
        self.assertIn("closed stream", run(MDFS, "stream", "close", self.dir, str(opened["id"])))
        thread.join(10)
        self.assertEqual(errors, [errno.EINTR])
        self.assertIn("no stream is open", run(MDFS, "stream", "list", self.dir))

    def test_bad_requests_are_refused(self):
        self.movie()
        fd = self.open()
        box = window([0, 0, 0], [1, 48, 64])
        for number, fields in ((errno.EINVAL, {"axis": 3, "rate": 5.0}), (errno.EINVAL, {"rate": 0.0}),
                               (errno.EINVAL, {"rate": float("nan")}), (errno.EINVAL, {"rate": 1e9}),
                               (errno.EINVAL, {"rate": 5.0, "lookahead": 300}), (errno.EINVAL, {"rate": 5.0, "id": 3}),
                               (errno.EINVAL, {"flags": 32, "rate": 5.0}), (errno.EINVAL, {"rate": 5.0, "frames": 1}),
                               (errno.EINVAL, {"flags": COARSER, "rate": 5.0}),
                               (errno.EINVAL, {"rate": 5.0, "step": -(1 << 63)})):
            self.error(number, call, fd, OPEN, box=box, **fields)
        self.error(errno.EINVAL, call, fd, OPEN, box=window([1, 0, 0], [2, 48, 64]), rate=5.0)
        self.error(errno.ERANGE, call, fd, OPEN, box=window([60, 0, 0], [1, 48, 64]), rate=5.0)
        self.error(errno.EINVAL, call, fd, 99)
        write_all(self.at("plain"), b"no image")
        self.error(errno.EINVAL, call, self.open("plain"), OPEN, box=box, rate=5.0)
        writer = self.open(flags=os.O_WRONLY)
        self.error(errno.EACCES, call, writer, OPEN, box=box, rate=5.0)
        self.assertEqual(self.listed(), [])


class Admission(harness.MountTest):
    """Disks whose speed is known: 10 ms for a request."""
    options = "cache=64M"

    def setUp(self):
        super().setUp()
        machine = os.path.join(self.volume.folder, "machine.toml")
        write_all(machine, slow_machine(0.01).encode())
        make_image(self.at("movie"), [400, 64, 64], codec=0, extent=(1, 64, 64), axes="tyx")
        self.data = RNG.integers(0, 256, size=[400, 64, 64], dtype="u1")
        write_all(self.at("movie"), self.data.tobytes())
        self.modelled = f"cache=64M,model={machine}"
        self.remount(self.modelled)
        self.addCleanup(self.remount, self.options)

    def remount(self, options):
        self.volume.unmount()
        self.volume.mount(options)

    def stream(self, rate, *words):
        return subprocess.run([MDFS, "stream", "open", "--rate", str(rate), *words, "--json", self.at("movie")],
                              capture_output=True, text=True)

    def rate_that_fits(self):
        """By a rate that does not fit."""
        fd = os.open(self.at("movie"), os.O_RDONLY)
        try:
            call(fd, OPEN, box=window([0, 0, 0], [1, 64, 64]), rate=1e6)
            self.fail("a million frames per second were accepted")
        except OSError as error:
            self.assertEqual(error.errno, errno.EBUSY)
            return error.answer
        finally:
            os.close(fd)

    def test_the_rate_that_fits_is_that_of_the_disks(self):
        # Each of the disks has 80 of 100 requests per second to give; frames take turns among the disks.
        fits = self.rate_that_fits()["rate_that_fits"]
        ideal = 0.8 * 100 * self.disks
        self.assertGreater(fits, 0.3 * ideal)  # a busy machine is slower than its model
        self.assertLess(fits, 1.05 * ideal)
        refused = self.stream(1.5 * fits)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("frames per second: disk", refused.stderr)

    def test_what_one_stream_has_reserved_another_does_not_get(self):
        fits = self.rate_that_fits()["rate_that_fits"]
        fd = os.open(self.at("movie"), os.O_RDONLY)
        self.addCleanup(os.close, fd)
        call(fd, OPEN, box=window([0, 0, 0], [1, 64, 64]), rate=0.9 * fits)
        self.assertNotEqual(self.stream(0.9 * fits).returncode, 0)
        with self.assertRaises(OSError) as raised:
            call(fd, PACE, rate=2 * fits)
        self.assertEqual(raised.exception.errno, errno.EBUSY)
        self.assertAlmostEqual(raised.exception.answer["rate"], 0.9 * fits)
        call(fd, PACE, rate=0.1 * fits)
        done = self.stream(0.3 * fits, "--frames", "20")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["failed"], 0)

    def test_an_unchecked_stream_is_accepted_and_counted(self):
        fits = self.rate_that_fits()["rate_that_fits"]
        fd = os.open(self.at("movie"), os.O_RDONLY)
        self.addCleanup(os.close, fd)
        call(fd, OPEN, UNCHECKED, box=window([0, 0, 0], [1, 64, 64]), rate=2 * fits)
        self.assertEqual(self.rate_that_fits()["rate_that_fits"], 0)

    def test_frames_without_time_come_from_a_coarser_level_in_the_same_shape(self):
        large = RNG.integers(0, 256, size=[200, 128, 128], dtype="u1")
        make_image(self.at("large"), [200, 128, 128], codec=0, extent=(1, 64, 64), axes="tyx")
        write_all(self.at("large"), large.tobytes())
        run(MDFS, "image", "levels", "--set", "1", self.at("large"))
        level = np.frombuffer(harness.read_all(self.at("large@/win/l1.raw")), "u1").reshape(200, 64, 64)
        self.remount(self.modelled)  # nothing is cached
        fd = os.open(self.at("large"), os.O_RDONLY)
        self.addCleanup(os.close, fd)
        box = window([0, 0, 0], [1, 128, 128])
        fits = None
        try:
            call(fd, OPEN, box=box, rate=1e6)
        except OSError as error:
            fits = error.answer["rate_that_fits"]
        call(fd, OPEN, UNCHECKED | COARSER, box=box, rate=3 * fits)
        from_level = 0
        for number in range(200):
            frame = Frame(fd)
            self.assertEqual(frame.number, number)
            expected = large[number] if frame.level == 0 else level[number].repeat(2, axis=0).repeat(2, axis=1)
            self.assertEqual(frame.data, expected.tobytes())
            from_level += frame.level
        state = call(fd, SHOW)
        self.assertEqual(state["coarser"], from_level)
        self.assertGreater(from_level, 20)
        self.assertTrue(state["flags"] & COARSER)

    def test_streams_can_be_switched_off(self):
        self.remount("cache=64M,streams=off")
        fd = os.open(self.at("movie"), os.O_RDONLY)
        self.addCleanup(os.close, fd)
        with self.assertRaises(OSError) as raised:
            call(fd, OPEN, box=window([0, 0, 0], [1, 64, 64]), rate=5.0)
        self.assertEqual(raised.exception.errno, errno.EOPNOTSUPP)
        self.assertIn("-o streams=off", self.stream(5).stderr)

    def test_the_command_writes_the_frames_it_is_asked_for(self):
        output = os.path.join(self.volume.folder, "frames.raw")
        done = self.stream(100, "--window", "t7+1,y10+20", "--step", "3", "--frames", "9", "--output", output)
        self.assertEqual(done.returncode, 0, done.stderr)
        wanted = self.data[7:7 + 27:3, 10:30].tobytes()
        self.assertEqual(harness.read_all(output), wanted)
        state = json.loads(done.stdout)
        self.assertEqual(state["rate"], 100)
        self.assertEqual(state["failed"] + state["dropped"], 0)


if __name__ == "__main__":
    harness.main()
