#!/usr/bin/env python3
"""Tests of what compares MDFS with btrfs when a disk is lost: plain files read by rows, work that is stopped, verdicts.

usage: protect_test.py
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import tempfile
import time
import types
import unittest

import numpy as np

from mdfsbench import protect, timed
from mdfsbench.context import Failed
from mdfsbench.figures import Figures
from mdfsbench.readers import RowMajor

SHAPE = (40, 50, 3)
BOXES = [[(3, 10), (5, 21), (0, 3)], [(20, 40), (30, 50), (0, 3)]]


class PlainFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.array = np.random.default_rng(1).integers(0, 256, SHAPE, np.uint8)
        self.source = types.SimpleNamespace(shape=SHAPE, npy=pathlib.Path(folder.name) / "array.npy")
        np.save(self.source.npy, self.array)
        self.path = pathlib.Path(folder.name) / "raw"
        self.path.write_bytes(self.array.tobytes())

    def test_windows_are_those_of_the_array(self):
        self.assertEqual(len(timed.cold_ms(RowMajor, self.path, self.source, BOXES)), 2)

    def test_other_bytes_than_the_source_are_an_error(self):
        changed = bytearray(self.array.tobytes())
        changed[(3 * SHAPE[1] + 5) * 3] ^= 1
        self.path.write_bytes(changed)
        with self.assertRaises(AssertionError):
            timed.cold_ms(RowMajor, self.path, self.source, BOXES)
        with self.assertRaises(AssertionError):
            timed.read_while(RowMajor, self.path, self.source, BOXES, lambda: True)

    def test_written_windows_are_inverted_and_nothing_else_is(self):
        self.assertEqual(len(timed.written_ms(RowMajor, self.path, self.source, BOXES)), 2)
        timed.check_written(RowMajor, self.path, self.source, BOXES)
        for (top, bottom), (left, right), _ in BOXES:
            self.array[top:bottom, left:right] ^= 255
        self.assertEqual(self.path.read_bytes(), self.array.tobytes())

    def test_a_window_that_was_not_written_is_an_error(self):
        with self.assertRaises(AssertionError):
            timed.check_written(RowMajor, self.path, self.source, BOXES)

    def test_a_file_that_ends_within_a_window_is_an_error(self):
        os.truncate(self.path, self.path.stat().st_size - 1)
        with self.assertRaises(OSError):
            timed.cold_ms(RowMajor, self.path, self.source, BOXES)

    def test_a_reader_beside_work_reads_one_window_at_least_and_stops_with_the_work(self):
        self.assertEqual(len(timed.read_while(RowMajor, self.path, self.source, BOXES, lambda: False)), 1)
        self.assertEqual(len(timed.read_while(RowMajor, self.path, self.source, BOXES, lambda: True)), 2)


class WorkTest(unittest.TestCase):
    def test_the_seconds_are_those_of_the_command_and_its_output_is_kept(self):
        with timed.Work("sh", "-c", "sleep 0.2; echo done") as work:
            self.assertTrue(work.is_running())
            time.sleep(0.4)
            self.assertLess(work.seconds(), 0.4)
        self.assertEqual(work.output, "done\n")

    def test_a_command_that_fails_is_named_with_its_message(self):
        with self.assertRaisesRegex(Failed, "exit status 3: no disk"), timed.Work("sh", "-c", "echo no disk >&2; exit 3"
                                                                                   ) as work:
            work.seconds()

    def test_work_is_cancelled_and_stopped_when_the_measurement_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = pathlib.Path(folder) / "cancelled"
            begin = time.monotonic()
            with self.assertRaises(AssertionError):
                with timed.Work("sleep", "60", cancel=["touch", mark]) as work:
                    raise AssertionError
            self.assertFalse(work.is_running())
            self.assertLess(time.monotonic() - begin, 30)
            self.assertTrue(mark.exists())


class VerdictTest(unittest.TestCase):
    def row(self, unit, twice, times, once=100):
        return protect.beside_once("row", unit, twice, once, 80, "throttle", times, {})

    def test_a_rate_must_reach_its_share_of_one_copy_and_a_time_must_not_exceed_it(self):
        self.assertTrue(self.row("MB/s", 48, 0.47).met)
        self.assertFalse(self.row("MB/s", 46, 0.47).met)
        self.assertTrue(self.row("ms", 190, 2).met)
        self.assertFalse(self.row("ms", 210, 2).met)

    def test_the_row_names_both_figures(self):
        self.assertEqual(self.row("MB/s", 48, 0.47).note, "with one copy 100 MB/s: 0.48x")

    def test_a_slow_disk_is_judged_beside_equal_ones_and_one_that_hangs_is_shown(self):
        timed_by_rate = {rate: {"p99_ms": p99, "mean_ms": 8, "max_ms": 2 * p99}
                         for rate, p99 in ((protect.RATE, 20), (protect.protected.SLOW_RATE, 30),
                                           (protect.protected.HUNG_RATE, 900))}
        slow, hung = protect.beside_a_lame_disk(Figures("twice", beside_lame=timed_by_rate))
        self.assertTrue(slow.met)
        self.assertIsNone(hung.met)
        self.assertEqual((slow.floor, hung.value), (20, 900))
        self.assertIn("longest 1800 ms (40.0)", hung.note)
        timed_by_rate[protect.protected.SLOW_RATE]["p99_ms"] = 41
        self.assertFalse(protect.beside_a_lame_disk(Figures("twice", beside_lame=timed_by_rate))[0].met)

    def test_every_row_of_a_lost_disk_has_a_floor_and_all_peers(self):
        def figures(name):
            return Figures(name, windows={64: 1, 512: 8}, degraded={64: 1, 512: 9}, rebuild_mb_s=120, replace_mb_s=19,
                           alone_ms=[8, 9], beside_ms=[10, 40], beside_mb_s=80)
        peers = [figures("btrfs raid1"), figures("btrfs raid10")]
        floors = types.SimpleNamespace(degraded={64: 1, 512: 8})
        rows = protect.without_a_disk(figures("twice"), floors, peers) + protect.rebuilding(
            figures("twice"), types.SimpleNamespace(shape=SHAPE), peers)
        for row in rows:
            self.assertGreater(row.floor, 0, row.name)
            self.assertEqual([name.split(",")[0] for name in row.peers], ["btrfs raid1", "btrfs raid10"], row.name)
        met = {row.name: row.met for row in rows}
        self.assertFalse(met["512x512, cold, 99th percentile beside the rebuild"])
        self.assertTrue(met["rebuild of a lost disk on the others"])


if __name__ == "__main__":
    unittest.main()
