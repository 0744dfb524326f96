"""Lists of extents come in pages: nothing is kept for a descriptor, and any descriptor may go on with a cursor."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import os
import random
import unittest

import harness
from harness import LAYOUT, LAYOUT_BYTES, LAYOUT_HEAD, LAYOUT_ROW, Mounted, make_image, read_all

# One row of extents; a list of all of them takes the daemon some 3 MB.
UNITS = 50000
SHAPE = (4, 64 * UNITS)
DESCRIPTORS = 60
MOST_GROWTH = 32 << 20
# Extents and their parts, copies, what left eight pieces of a group each, copies of the parts.
ROWS_OF_PAGE = (1 + 256) * 64 + 64 + 64 * 8 + 256 * 64


def page_of(fd, cursor=(0, 0)):
    """The columns of the extents of a page, and the cursor behind it."""
    call = bytearray(LAYOUT_BYTES)
    LAYOUT_HEAD.pack_into(call, 0, cursor[0], 0, 0, 0, cursor[1])
    fcntl.ioctl(fd, LAYOUT, call)
    page, count, block_size, disks, row = LAYOUT_HEAD.unpack_from(call)
    assert (block_size, disks) == (4096, 1)
    columns = [LAYOUT_ROW.unpack_from(call, LAYOUT_HEAD.size + i * LAYOUT_ROW.size)[1] for i in range(count)]
    return columns, (page, row)


class Lists(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.volume = Mounted(disks=1, size="512M", options="cache=16M")
        cls.addClassCleanup(cls.volume.remove)
        cls.image = cls.volume / "image"
        make_image(cls.image, SHAPE, codec=1, extent=(4, 64))
        with open(cls.image, "r+b") as file:
            file.write(b"\1" * (SHAPE[0] * SHAPE[1]))
            os.fsync(file.fileno())

    def setUp(self):
        self.fds = [os.open(self.image, os.O_RDONLY) for _ in range(DESCRIPTORS)]
        self.addCleanup(lambda: [os.close(fd) for fd in self.fds])

    def resident(self):
        status = read_all(f"/proc/{self.volume.daemon()}/status").decode()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def test_lists_that_many_descriptors_have_begun_take_no_memory(self):
        page_of(self.fds[0])
        before = self.resident()
        for fd in self.fds:
            self.assertEqual(len(page_of(fd)[0]), 200)
        growth = self.resident() - before
        print(f"{DESCRIPTORS} descriptors: {growth >> 10} KiB", flush=True)
        self.assertLess(growth, MOST_GROWTH)

    def test_any_descriptor_goes_on_and_each_extent_comes_once(self):
        rng = random.Random(7)
        seen, cursor = [], (0, 0)
        while True:
            columns, cursor = page_of(rng.choice(self.fds), cursor)
            if not columns:
                break
            seen += columns
        self.assertEqual(sorted(seen), list(range(UNITS)))

    def test_a_cursor_out_of_range_is_the_end_or_an_error(self):
        for cursor in ((1 << 40, 0), (2 ** 64 - 1, 0), (2 ** 64 - 1, ROWS_OF_PAGE - 1), (UNITS, 3)):
            self.assertEqual(page_of(self.fds[0], cursor)[0], [], cursor)
        for row in (ROWS_OF_PAGE, 2 ** 32 - 1):
            with self.assertRaises(OSError) as caught:
                page_of(self.fds[0], (0, row))
            self.assertEqual(caught.exception.errno, errno.EINVAL)


if __name__ == "__main__":
    harness.main()
