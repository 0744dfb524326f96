"""Buffers that the daemon shares: windows in them are those of the image, whatever becomes of client and mount."""
# SPDX-License-Identifier: Apache-2.0
import array
import ctypes
import errno
import mmap
import os
import signal
import struct
import unittest

import numpy
import channel_test
import harness
from channel_test import AREA_OFFSET, CHANNELS, DONE, HEADER_BYTES, LIBRARY, SHAPE, eventually
from harness import make_image, read_all, write_all

NEW_BUFFER, FREE_BUFFER, MOST_BUFFERS = 3, 4, 32  # src/channel/layout.h
LIBRARY.mdfs_buffer_data.restype = ctypes.c_void_p
LIBRARY.mdfs_buffer_data.argtypes = LIBRARY.mdfs_buffer_free.argtypes = [ctypes.c_void_p]
LIBRARY.mdfs_buffer_new.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def shared(process="self"):
    """The number of buffers that a process has mapped."""
    return read_all(f"/proc/{process}/maps").count(b"memfd:mdfs-buffer")


class Image(channel_test.Image):
    """An image whose windows go into one buffer."""

    def __init__(self, path, size=1 << 20):
        super().__init__(path)
        self.buffer = ctypes.c_void_p()
        result = LIBRARY.mdfs_buffer_new(self.handle, size, ctypes.byref(self.buffer))
        if result < 0:
            super().close()
            raise OSError(-result, LIBRARY.mdfs_last_error().decode())
        start = LIBRARY.mdfs_buffer_data(self.buffer)
        self.bytes = numpy.frombuffer((ctypes.c_ubyte * size).from_address(start), numpy.uint8)

    def read(self, start, length, channel=-1, dtype=numpy.uint8, channels=CHANNELS, level=0):
        at = start[-1] * 7 % 1000  # anywhere
        shape = tuple(length) + ((channels,) if channel < 0 and channels > 1 else ())
        out = self.bytes[at:at + int(numpy.prod(shape))].view(dtype).reshape(shape)
        count = LIBRARY.mdfs_read_window(self.handle, harness.window(start, length, channel, level), out.ctypes.data,
                                         out.nbytes, None)
        if count < 0:
            raise OSError(-count, LIBRARY.mdfs_last_error().decode())
        assert count == out.nbytes
        return out

    def close(self):
        super().close()
        LIBRARY.mdfs_buffer_free(self.buffer)


class Raw(channel_test.Raw):
    """A client without libmdfs that also has buffers."""

    def new_buffer(self, size):
        """The number and the memory of a buffer; OSError with the daemon's error."""
        self.socket.send(channel_test.MESSAGE.pack(NEW_BUFFER, 0, b"", size))
        fds = array.array("i")
        data, ancillary, _, _ = self.socket.recvmsg(channel_test.ANSWER.size, 64)
        if not data:
            raise ConnectionError("hung up")
        for _, _, content in ancillary:
            fds.frombytes(content)
        error, number, size = channel_test.ANSWER.unpack(data)
        if error:
            raise OSError(error, "new buffer")
        memory = mmap.mmap(fds[0], size)
        os.close(fds[0])
        return number, memory

    def free_buffer(self, number):
        self.socket.send(channel_test.MESSAGE.pack(FREE_BUFFER, number, b"", 0))

    def ask_into(self, image, buffer, offset, samples):
        """The error of a request for the window of so many samples in the first row."""
        self.submit(0, harness.window((0, 0), (1, samples)) +
                    struct.pack("=IIQQ", image, buffer, offset, samples * CHANNELS))
        if not eventually(lambda: struct.unpack("=I", self.memory[HEADER_BYTES:HEADER_BYTES + 4])[0] == DONE):
            raise AssertionError("no answer")
        return struct.unpack("=i", self.memory[HEADER_BYTES + 4:HEADER_BYTES + 8])[0]


class ChannelBuffers(harness.MountTest):
    size = "128M"
    check_windows = channel_test.Channel.check_windows
    check_beside_a_writer = channel_test.Channel.check_beside_a_writer
    kill_clients = channel_test.Channel.kill_clients

    def setUp(self):
        super().setUp()
        self.path = self.at("scan")
        make_image(self.path, SHAPE, channels=CHANNELS, extent=(64, 64))
        self.samples = numpy.random.default_rng(4).integers(0, 256, SHAPE + (CHANNELS,), numpy.uint8)
        write_all(self.path, self.samples.tobytes())

    def hostile(self):
        fd = os.open(self.path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        token, name = channel_test.ask_for_token(fd)
        client = Raw(name)
        self.addCleanup(client.close)
        return client, client.attach(token)

    def test_windows_in_a_buffer_are_those_of_the_image(self):
        daemon = self.volume.daemon()
        image = Image(self.path)
        self.assertEqual((shared(), shared(daemon)), (1, 1))
        self.check_windows(image, 200)
        for number, error in ((SHAPE[0] + 1, errno.ERANGE), (0, errno.EINVAL)):
            self.assertErrno(error, image.read, (0, 0), (number, 1))
        image.close()
        self.assertTrue(eventually(lambda: (shared(), shared(daemon)) == (0, 0)))

    def test_the_daemon_puts_the_samples_there_itself(self):
        image = Image(self.path)
        self.addCleanup(image.close)
        area = channel_test.maps()
        self.check_windows(image, 10)
        with open("/proc/self/maps", encoding="ascii") as maps:
            start = next(int(line.split("-")[0], 16) for line in maps if "memfd:mdfs-channel" in line)
        ctypes.memset(start + AREA_OFFSET, 0xee, 1 << 16)
        self.check_windows(image, 20, 2)
        untouched = ctypes.string_at(start + AREA_OFFSET, 1 << 16)
        self.assertEqual(set(untouched), {0xee})
        self.assertEqual(channel_test.maps(), area)

    def test_windows_of_levels_come_there_too(self):
        image, plain = Image(self.path), channel_test.Image(self.path)
        self.addCleanup(image.close)
        self.addCleanup(plain.close)
        for level in (1, 2):
            box = (3, 5), (SHAPE[0] >> level + 1, SHAPE[1] >> level + 1)
            numpy.testing.assert_array_equal(image.read(*box, level=level), plain.read(*box, level=level))

    def test_a_window_that_leaves_its_buffer_goes_another_way(self):
        image = Image(self.path, 4096)
        self.addCleanup(image.close)
        beyond = numpy.zeros(1 << 16, numpy.uint8)
        box = self.samples[3:103, 5:105]
        count = LIBRARY.mdfs_read_window(image.handle, harness.window((3, 5), (100, 100)), beyond.ctypes.data,
                                         beyond.nbytes, None)
        self.assertEqual(count, box.size)
        numpy.testing.assert_array_equal(beyond[:count].reshape(box.shape), box)

    def test_a_reader_sees_no_mixture_of_versions(self):
        images = {}  # of each thread

        def read(handle):
            image = images.get(handle) or Image(self.at("flicker"))
            images[handle] = image
            return [image.read((10, 10), (150, 250), channels=1)]
        self.check_beside_a_writer(self.at("flicker"), SHAPE, (64, 64), (150, 250), 78, 3, read)
        for image in images.values():
            image.close()

    def test_many_windows_in_one_call_come_into_one_buffer(self):
        image = Image(self.path)
        self.addCleanup(image.close)
        boxes = [((y, x), (10, 20)) for y in range(0, 190, 19) for x in range(0, 280, 28)]
        out = [image.bytes[at * 600:(at + 1) * 600].reshape(10, 20, CHANNELS) for at in range(len(boxes))]
        reads = (channel_test.WindowRead * len(boxes))()
        for read, (start, length), target in zip(reads, boxes, out):
            read.window[:] = bytes(harness.window(start, length))
            read.buffer, read.buffer_bytes = target.ctypes.data, target.nbytes
        self.assertEqual(LIBRARY.mdfs_read_windows(image.handle, reads, len(boxes)), 0)
        for ((y, x), _), target in zip(boxes, out):
            numpy.testing.assert_array_equal(target, self.samples[y:y + 10, x:x + 20])

    def test_a_forked_child_reads_into_the_buffer_of_its_parent_through_a_channel_of_its_own(self):
        image = Image(self.path)
        self.addCleanup(image.close)
        self.check_windows(image, 10)

        def work():
            self.check_windows(image, 20, 2)
            image.close()
        self.assertEqual(channel_test.in_child(work), 0)
        self.check_windows(image, 20, 3)

    def test_clients_that_are_killed_leave_no_buffer(self):
        daemon = self.volume.daemon()
        self.kill_clients(lambda _: Image(self.path))
        self.assertTrue(eventually(lambda: shared(daemon) == 0))

    def test_a_user_has_a_bounded_number_of_bytes_and_windows_come_without_them_too(self):
        images = [Image(self.path, 4 << 20) for _ in range(40)]
        self.assertGreater(shared(), 0)
        self.assertLess(shared(), 40)
        for image in images:
            self.check_windows(image, 5)
            image.close()
        self.assertTrue(eventually(lambda: shared(self.volume.daemon()) == 0))
        again = Image(self.path, 4 << 20)
        self.assertEqual(shared(), 1)
        again.close()

    def test_wrong_places_are_errors_of_their_request_alone(self):
        client, image = self.hostile()
        number, memory = client.new_buffer(8192)
        row = self.samples[0, :100].tobytes()
        self.assertEqual(client.ask_into(image, number, 4096, 100), 0)
        self.assertEqual(memory[4096:4096 + len(row)], row)
        for buffer, offset in ((number, 8192 - 299), (number, 1 << 40), (number, (1 << 64) - 1), (number + 1, 0),
                               (MOST_BUFFERS + 1, 0), (0xffffffff, 0)):
            self.assertEqual(client.ask_into(image, buffer, offset, 100), errno.EINVAL, (buffer, offset))
        client.free_buffer(number)
        self.assertTrue(eventually(lambda: client.ask_into(image, number, 0, 100) == errno.EINVAL))
        for absent in (number, 0, 99, 0xffffffff):
            client.free_buffer(absent)
        self.assertEqual(client.ask_into(image, 0, 0, 100), 0)

    def test_wrong_sizes_of_buffers_are_refused(self):
        client, _ = self.hostile()
        for size, error in ((0, errno.EINVAL), (1 << 40, errno.EBUSY), ((1 << 64) - 1, errno.EBUSY)):
            self.assertErrno(error, client.new_buffer, size)
        kept = [client.new_buffer(1) for _ in range(MOST_BUFFERS)]
        self.assertErrno(errno.EMFILE, client.new_buffer, 1)
        client.free_buffer(kept[5][0])
        self.assertEqual(client.new_buffer(1)[0], kept[5][0])

    def test_who_has_no_channel_gets_no_buffer(self):
        fd = os.open(self.path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        client = Raw(channel_test.ask_for_token(fd)[1])
        self.addCleanup(client.close)
        self.assertRaises(ConnectionError, client.new_buffer, 4096)

    def test_without_a_channel_a_buffer_is_memory_of_the_caller(self):
        os.environ["MDFS_CHANNEL"] = "off"
        self.addCleanup(os.environ.pop, "MDFS_CHANNEL")
        image = Image(self.path)
        self.addCleanup(image.close)
        self.assertEqual(shared(), 0)
        self.check_windows(image, 20)
        for size, error in ((0, errno.EINVAL), (1 << 60, errno.ENOMEM)):
            self.assertErrno(error, Image, self.path, size)

    def test_samples_stay_when_the_daemon_dies_or_unmounts(self):
        for end in (lambda volume: os.kill(volume.daemon(), signal.SIGKILL), lambda volume: volume.unmount()):
            volume = harness.Mounted()
            self.addCleanup(volume.remove)
            make_image(volume / "scan", SHAPE, channels=CHANNELS)
            write_all(volume / "scan", self.samples.tobytes())
            image = Image(volume / "scan")
            found = image.read((0, 0), SHAPE)
            LIBRARY.mdfs_close(image.handle)
            end(volume)
            numpy.testing.assert_array_equal(found, self.samples)
            LIBRARY.mdfs_buffer_free(image.buffer)


if __name__ == "__main__":
    harness.main()
