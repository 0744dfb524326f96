"""The whole life of a volume: filled, rewritten, emptied, refilled, given two disks, one disk drained, defragmented.
At the end every byte is in place, mdfsck finds nothing, and windows lie as on a new volume."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import unittest

import numpy

from harness import MDFS, MDFSCK, Mounted, bind, main, make_image, run, write_all

EXTENT, SIDE, WINDOW = 128, 1536, 640
FULL = 0.85
# Of a disk of which typical windows are asked: what a run costs beside the bytes.
BYTES_PER_SECOND, SECONDS_PER_RUN = 200e6, 0.005


class LifeTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(5)
        self.noise = numpy.random.default_rng(5)
        self.expected = {}
        self.serial = 0
        self.volume = Mounted(disks=4, size="48M")
        self.addCleanup(self.volume.remove)

    def store(self):
        self.serial += 1
        name = f"{self.serial:04}"
        array = self.noise.integers(0, 256, (SIDE, SIDE), numpy.uint8)
        make_image(self.volume.path + "/" + name, (SIDE, SIDE), codec=0, extent=(EXTENT, EXTENT))
        write_all(self.volume.path + "/" + name, array.tobytes())
        self.expected[name] = array

    def fill(self):
        while (state := os.statvfs(self.volume.path)).f_bavail > (1 - FULL) * state.f_blocks:
            self.store()

    def rewrite(self, count):
        for _ in range(count):
            name = self.random.choice(sorted(self.expected))
            length = [self.random.randrange(1, SIDE // 3) for _ in range(2)]
            start = [self.random.randrange(SIDE - side) for side in length]
            array = self.noise.integers(0, 256, length, numpy.uint8)
            self.expected[name][start[0]:start[0] + length[0], start[1]:start[1] + length[1]] = array
            fd = os.open(self.volume.path + "/" + name, os.O_RDWR)
            self.assertEqual(bind(fd, start, length), array.size)
            os.pwrite(fd, array.tobytes(), 0)
            os.close(fd)

    def empty(self, share):
        for name in self.random.sample(sorted(self.expected), int(share * len(self.expected))):
            os.unlink(self.volume.path + "/" + name)
            del self.expected[name]

    def look(self):
        for name, array in self.expected.items():
            with open(self.volume.path + "/" + name, "rb") as file:
                self.assertEqual(file.read(), array.tobytes(), name)

    def window_seconds(self, volume):
        """Of random windows, the mean time of the disk that takes longest, by where their extents lie."""
        rng = random.Random(1)
        total, count = 0, 0
        for name in sorted(self.expected):
            layout = json.loads(run(MDFS, "image", "layout", "--json", volume.path + "/" + name))
            block = layout["block_size"]
            places = {tuple(row["index"]): row for row in layout["extents"]}
            for _ in range(8):
                start = [rng.randrange(SIDE - WINDOW) for _ in range(2)]
                disks = {}
                for y in range(start[0] // EXTENT, (start[0] + WINDOW - 1) // EXTENT + 1):
                    for x in range(start[1] // EXTENT, (start[1] + WINDOW - 1) // EXTENT + 1):
                        row = places[(y, x)]
                        disks.setdefault(row["disk"], []).append((row["block"], -(-row["stored_bytes"] // block)))
                total += max(self.disk_seconds(sorted(pieces), block) for pieces in disks.values())
                count += 1
        return total / count

    @staticmethod
    def disk_seconds(pieces, block):
        runs = sum(1 for i, (at, _) in enumerate(pieces) if i == 0 or pieces[i - 1][0] + pieces[i - 1][1] != at)
        return runs * SECONDS_PER_RUN + sum(blocks for _, blocks in pieces) * block / BYTES_PER_SECOND

    def test_a_volume_at_the_end_of_its_life_reads_windows_as_a_new_one(self):
        self.fill()
        for _ in range(3):
            self.rewrite(80)
            self.empty(0.3)
            self.fill()
        self.rewrite(80)
        run(MDFS, "volume", "sync", self.volume.path)
        aged = self.window_seconds(self.volume)  # shown only: a volume with idle moments may be in order by now
        added = [os.path.join(self.volume.folder, f"disk{i}") for i in (4, 5)]
        for path in added:
            with open(path, "wb") as file:
                file.truncate(48 << 20)
        run(MDFS, "disk", "add", "--balance", self.volume.path, *added)
        run(MDFS, "disk", "remove", self.volume.path, "1")
        self.look()
        told = json.loads(run(MDFS, "defrag", "start", "--wait", "--json", self.volume.path))
        self.assertEqual((told["state"], told["items_failed"]), ("done", 0))
        self.look()
        for _ in range(100):  # each looks at some images; the round that is under way may have begun before
            fragmentation = json.loads(run(MDFS, "volume", "status", "--json", self.volume.path))["fragmentation"]
            if fragmentation["factor"] < 1.1:
                break
        after = self.window_seconds(self.volume)
        self.volume.unmount()
        run(MDFSCK, "-n", "--data", self.volume.disks[0])
        self.volume.mount()
        self.look()
        new = Mounted(disks=5, size="48M")
        self.addCleanup(new.remove)
        for name, array in self.expected.items():
            make_image(new.path + "/" + name, (SIDE, SIDE), codec=0, extent=(EXTENT, EXTENT))
            write_all(new.path + "/" + name, array.tobytes())
        run(MDFS, "volume", "sync", new.path)
        as_new = self.window_seconds(new)
        print(f"a window takes {aged * 1e3:.1f} ms aged, {after * 1e3:.1f} ms in the end, {as_new * 1e3:.1f} ms new; "
              f"fragmentation {fragmentation['factor']:.2f}, imbalance {fragmentation['imbalance']:.2f}; "
              f"{told['no_room']} groups found no room")
        self.assertLess(after, 1.05 * as_new)
        self.assertLess(fragmentation["factor"], 1.1)
        self.assertLess(fragmentation["imbalance"], 1.1)


if __name__ == "__main__":
    main()
