"""Claims about images that grow frame by frame: what was synced is there, as windows too, whatever happens next."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import time
import unittest

import numpy

from harness import MDFS, MDFSCK, Mounted, is_dead, main, read_all, run, wait_until

SIDE, DEPTH, EXTENT = 256, 16, 64


class Streaming(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=3, size="64M")
        self.addCleanup(self.volume.remove)
        self.path = self.volume / "stack"
        run(MDFS, "image", "create", "--shape", f"0x{SIDE}x{SIDE}", "--extent", f"{DEPTH}x{EXTENT}x{EXTENT}", "--codec",
            "raw", self.path)
        self.random = numpy.random.default_rng(1)
        self.frames = numpy.zeros((0, SIDE, SIDE), numpy.uint8)

    def append(self, count):
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            for _ in range(count):
                frame = self.random.integers(1, 256, (1, SIDE, SIDE), numpy.uint8)
                self.assertEqual(os.write(file, frame.tobytes()), frame.size)
                os.fsync(file)
                self.frames = numpy.concatenate([self.frames, frame])
        finally:
            os.close(file)

    def extents(self, strips):
        """Of those in strips a row for each frame."""
        layout = json.loads(run(MDFS, "image", "layout", "--json", self.path))
        return [place["index"] for place in layout["extents"] if place["strip"] == strips]

    def expect(self):
        self.assertEqual(read_all(self.path), self.frames.tobytes())
        last = len(self.frames) - 1
        for z, depth, y, x in ((0, last + 1, 100, 30), (last, 1, 0, 0), (last // 2, last - last // 2 + 1, 60, 60)):
            window = self.frames[z:z + depth, y:y + 70, x:x + 90]
            name = f"{self.path}@/win/z{z}+{depth},y{y}+70,x{x}+90.raw"
            self.assertEqual(read_all(name), numpy.ascontiguousarray(window).tobytes(), name)

    def kill(self):
        os.kill(self.volume.daemon(), signal.SIGKILL)
        wait_until(lambda: is_dead(self.volume.path))
        run("umount", "-l", self.volume.path)

    def wait_until_consolidated(self, left):
        """Asking counts as work, which consolidation gives way to."""
        deadline = time.monotonic() + 60
        while len(self.extents(True)) > left and time.monotonic() < deadline:
            time.sleep(1)
        self.assertEqual(len(self.extents(True)), left)

    def test_synced_frames_are_windows_at_once_and_survive_a_killed_daemon(self):
        in_row = (SIDE // EXTENT) ** 2
        for count in (1, 4, 7, DEPTH):
            self.append(count)
            self.expect()
            self.kill()
            self.volume.mount()
            self.expect()
        self.assertGreaterEqual(len(self.extents(True)), len(self.frames) % DEPTH * in_row)

    def test_full_extents_are_written_whole_on_an_idle_volume_and_the_others_by_defragmentation(self):
        in_row = (SIDE // EXTENT) ** 2
        self.append(2 * DEPTH + 3)
        self.wait_until_consolidated(3 * in_row)
        self.assertEqual(len(self.extents(False)), 2 * in_row)
        self.expect()
        run(MDFS, "defrag", "start", "--wait", self.path)
        self.assertEqual((len(self.extents(True)), len(self.extents(False))), (0, 3 * in_row))
        self.expect()
        self.append(2)
        self.expect()
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", self.volume.disks[0])
        self.volume.mount()
        self.expect()

    def test_frames_written_over_cut_and_appended_again(self):
        self.append(5)
        frame = self.random.integers(1, 256, (SIDE, SIDE), numpy.uint8)
        with open(self.path, "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), frame.tobytes(), 2 * SIDE * SIDE)
            os.fsync(file.fileno())
        self.frames[2] = frame
        self.expect()
        os.truncate(self.path, 4 * SIDE * SIDE)
        self.frames = self.frames[:4]
        self.append(DEPTH)
        self.kill()
        self.volume.mount()
        self.expect()
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", self.volume.disks[0])

    def test_a_disk_leaves_while_frames_lie_in_strips(self):
        self.append(DEPTH + 5)
        run(MDFS, "disk", "remove", self.volume.path, "1")
        self.expect()
        self.append(2)
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", self.volume.disks[0])
        self.volume.mount()
        self.expect()


if __name__ == "__main__":
    main()
