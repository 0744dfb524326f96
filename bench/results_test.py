#!/usr/bin/env python3
"""Tests that the tables say what was measured, missed targets included."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import unittest

import results
from mdfsbench import table

README = f"# MDFS\nbefore\n{results.BEGIN}\nold\n{results.END}\nafter\n"


def run_of(*rows):
    return {"machine": {"text": "2 cores"}, "rows": [vars(row) | {"ratio": row.ratio} for row in rows]}


class ResultsTest(unittest.TestCase):
    def test_the_text_between_the_marks_is_replaced_and_nothing_else(self):
        text = results.replaced(README, results.lines_of(
            run_of(table.at_most("warm", "window", 0.3, "ms", 0.2, "server", 2))))
        self.assertTrue(text.startswith("# MDFS\nbefore\n" + results.BEGIN))
        self.assertTrue(text.endswith(results.END + "\nafter\n"))
        self.assertNotIn("old", text)
        self.assertIn("| window | 0.30 ms |  |  | 0.20 ms (server) | 1.50 | at most 2x | met |", text)
        self.assertIn("No target is missed.", text)
        empty = results.lines_of(run_of())
        self.assertEqual(results.replaced(text, empty), results.replaced(README, empty))

    def test_the_cache_of_warm_windows_is_named(self):
        run = run_of()
        self.assertIn("`cache=1200M`.", results.short_lines_of(run)[0])
        run["machine"]["warm_cache"] = "the default cache"
        self.assertIn("the default cache.", results.short_lines_of(run)[0])
        self.assertIn("Warm windows were read with the default cache.", " ".join(results.lines_of(run)))

    def test_a_missed_target_is_named_with_its_reason(self):
        row = table.at_most("warm", "window 64x64, raw, warm, bind and pread", 0.5, "ms", 0.2, "server", 2)
        text = results.replaced(README, results.lines_of(run_of(row)))
        self.assertIn("- window 64x64, raw, warm, bind and pread: 0.50 ms, at most 2x. The reason: bind and", text)

    def test_a_missed_target_without_a_reason_is_refused(self):
        row = table.at_most("warm", "something new", 0.5, "ms", 0.2, "server", 2)
        with self.assertRaises(results.Unexplained):
            results.replaced(README, results.lines_of(run_of(row)))

    def test_a_missed_target_is_named_even_where_its_row_is_left_out(self):
        row = table.at_most("cold", "512x512, k=4, cold", 50, "ms", 20, "busiest disk", 1.15)
        with self.assertRaises(results.Unexplained):
            results.replaced(README, results.lines_of(run_of(row)))

    def test_windows_through_the_channel_have_reasons_of_their_own(self):
        names = ("window 64x64, raw, warm, from C", "picture band by band, raw, warm",
                 "256 random windows 64x64x64 in one call, warm")
        reasons = {results.reason_of({"name": name, "target": ""}) for name in names}
        self.assertEqual(len(reasons), 3)
        self.assertNotIn(results.CROSSINGS, reasons)
        self.assertIn("channel", results.HEADINGS)

    def test_the_readme_has_the_rows_that_were_chosen_for_it(self):
        sqlite = table.at_least_of_peers("durable", "SQLite commit, rollback journal", 301, "/s", {"btrfs": 260}, 2)
        rows = run_of(sqlite, table.at_most("warm", "window", 0.3, "ms", 0.2, "server", 2))
        self.assertEqual(results.short_lines_of(rows)[4:],
                         ["| SQLite commit, rollback journal | 301 /s | 260 /s (btrfs) | 1.16 |  |  |"])

    def test_the_best_peer_is_the_fastest_of_them(self):
        times = table.Row("peers", "window", 2, "ms", peers={"a": 4.0, "b": 1.0})
        self.assertEqual((times.best_peer, times.peer_ratio, times.is_as_good_as_peers), (("b", 1.0), 2, False))
        rates = table.Row("peers", "ingest", 400, "MB/s", peers={"a": 400.0, "b": 100.0})
        self.assertEqual((rates.best_peer, rates.peer_ratio, rates.is_as_good_as_peers), (("a", 400.0), 1, True))
        self.assertIsNone(table.Row("peers", "window", 2, "ms").peer_ratio)
        untar = table.at_most_of_peer("small", "untar", 3, "s", {"passthrough": 2, "btrfs": 1}, "passthrough", 1.2)
        self.assertIs(untar.met, False)

    def test_every_row_of_the_readme_is_a_row_of_the_results(self):
        folder = pathlib.Path(results.__file__).parent
        whole = (folder / "RESULTS.md").read_text()
        shown = (folder.parent / "README.md").read_text().split(results.BEGIN)[1].split(results.END)[0]
        rows = [line for line in shown.splitlines() if line.startswith("| ")][1:]
        self.assertEqual(len(rows), len(results.SHORT))
        for row in rows:
            self.assertIn(row.rstrip("|"), whole)


if __name__ == "__main__":
    unittest.main()
