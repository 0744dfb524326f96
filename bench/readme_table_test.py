#!/usr/bin/env python3
"""Tests that the README's table says what was measured, missed targets included."""
# SPDX-License-Identifier: Apache-2.0
import unittest

import readme_table
from mdfsbench import table

README = f"# MDFS\nbefore\n{readme_table.BEGIN}\nold\n{readme_table.END}\nafter\n"


def run_of(*rows):
    return {"machine": {"text": "2 cores"}, "rows": [vars(row) | {"ratio": row.ratio} for row in rows]}


class ReadmeTableTest(unittest.TestCase):
    def test_the_text_between_the_marks_is_replaced_and_nothing_else(self):
        text = readme_table.replaced(README, run_of(table.at_most("warm", "window", 0.3, "ms", 0.2, "server", 2)))
        self.assertTrue(text.startswith("# MDFS\nbefore\n" + readme_table.BEGIN))
        self.assertTrue(text.endswith(readme_table.END + "\nafter\n"))
        self.assertNotIn("old", text)
        self.assertIn("| window | 0.30 ms | 0.20 ms (server) | 1.50 | at most 2x | met |", text)
        self.assertIn("No target is missed.", text)
        self.assertEqual(readme_table.replaced(text, run_of()), readme_table.replaced(README, run_of()))

    def test_a_missed_target_is_named_with_its_reason(self):
        row = table.at_most("warm", "window 64x64, raw, warm, bind and pread", 0.5, "ms", 0.2, "server", 2)
        text = readme_table.replaced(README, run_of(row))
        self.assertIn("- window 64x64, raw, warm, bind and pread: 0.50 ms, at most 2x: bind and pread are two", text)

    def test_a_missed_target_without_a_reason_is_refused(self):
        row = table.at_most("warm", "something new", 0.5, "ms", 0.2, "server", 2)
        with self.assertRaises(readme_table.Unexplained):
            readme_table.replaced(README, run_of(row))

    def test_a_missed_target_is_named_even_where_its_row_is_left_out(self):
        row = table.at_most("cold", "512x512, k=4, cold", 50, "ms", 20, "busiest disk", 1.15)
        with self.assertRaises(readme_table.Unexplained):
            readme_table.replaced(README, run_of(row))


if __name__ == "__main__":
    unittest.main()
