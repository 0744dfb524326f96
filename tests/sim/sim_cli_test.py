#!/usr/bin/env python3
"""mdfs-sim as its users meet it: figures, errors with file and line, forms of output, calibration of a file.

usage: sim_cli_test.py MDFS_SIM
"""
# SPDX-License-Identifier: Apache-2.0
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
PRESETS = ["gigaview-t800", "gigaview-t9000-004", "gigaview-t9000-000", "dec-cluster", "sparc-disk", "raid3", "raid5",
           "fixed-server", "powerwall-san", "sata-disk", "nvme", "sata-shelf-10gbe"]


def run(*arguments, fails=False):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    if fails != (done.returncode != 0):
        raise AssertionError(f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr if fails else done.stdout


def load(*arguments):
    return json.loads(run(*arguments, "--json"))


class Window(unittest.TestCase):
    def test_the_published_window_has_its_delay_and_utilization(self):
        out = load("window", "gigaview-t800", "67,75,512,512")
        self.assertAlmostEqual(out["delay_s"], 0.332, delta=0.00332)
        self.assertEqual(len(out["utilization"]["disk"]), 4)
        self.assertAlmostEqual(out["utilization"]["disk"][0], 0.957, delta=0.001)
        self.assertEqual(len(out["utilization"]["link"]), 4)
        self.assertEqual(len(out["utilization"]["interface"]), 1)
        self.assertEqual(out["bottleneck"], "disk")
        for key in ("seed", "version", "machine", "parameters", "output_version"):
            self.assertIn(key, out)
        self.assertRegex(out["machine"]["hash"], "^[0-9a-f]{16}$")
        self.assertEqual(out["parameters"]["disks"], 4)

    def test_a_window_spec_of_the_mount_is_the_same_window(self):
        a = load("window", "gigaview-t800", "67,75,512,512", "--disks", 8)
        b = load("window", "gigaview-t800", "y75+512,x67+512", "--disks", 8)
        self.assertEqual(a["delay_s"], b["delay_s"])
        self.assertAlmostEqual(a["delay_s"], 0.218, delta=0.00218)

    def test_three_axes_and_offsets_are_taken(self):
        common = ["window", "gigaview-t9000-000", "x17", "--shape", "256x256x256", "--extent", "32x32x32",
                  "--bytes-per-pixel", 2, "--disks", 8]
        default = load(*common)
        self.assertEqual(default["extents"], 64)
        bad = load(*common, "--row-offset", 0, "--plane-offset", 0)
        self.assertGreater(bad["delay_s"], 4 * default["delay_s"])

    def test_every_preset_serves_a_window(self):
        for preset in PRESETS:
            spec = "x0+4194304" if preset == "powerwall-san" else "10,20,300,200"
            self.assertGreater(load("window", preset, spec)["delay_s"], 0, preset)

    def test_errors_are_one_line_with_the_reason(self):
        for arguments, words in [(["window", "gigaview-t800", "0,0,9000,1"], "axis x"),
                                 (["window", "gigaview-t800", "0,0,9"], "four"),
                                 (["window", "nowhere", "0,0,9,9"], "neither a shipped machine nor a file"),
                                 (["window", "raid5", "0,0,9,9", "--disks", "7"], "volumes of 5"),
                                 (["window", "gigaview-t800", "0,0,9,9", "--plot", "a.gif"], ".svg"),
                                 (["random", "gigaview-t800", "--size", "0x5"], "axis y")]:
            message = run(*arguments, fails=True)
            self.assertIn(words, message)
            self.assertEqual(message.count("\n"), 1, message)


class Forms(unittest.TestCase):
    def test_csv_is_a_table(self):
        rows = list(csv.DictReader(io.StringIO(run("sweep", "gigaview-t800", "--disk-counts", "1,4", "--sizes",
                                                   "512x512,640x512", "--positions", 5, "--csv"))))
        self.assertEqual([(row["disks"], row["size"]) for row in rows],
                         [("1", "512x512"), ("1", "640x512"), ("4", "512x512"), ("4", "640x512")])
        self.assertLess(float(rows[2]["delay_s"]), float(rows[0]["delay_s"]))

    def test_the_same_seed_gives_the_same_output(self):
        command = ["poisson", "gigaview-t9000-004", "--loads", "0.5", "--windows", 200, "--replications", 2, "--json"]
        self.assertEqual(run(*command), run(*command))
        self.assertNotEqual(run(*command), run(*command, "--seed", 2))

    def test_loads_have_error_bars(self):
        out = load("poisson", "gigaview-t9000-004", "--loads", "0.3,2/s", "--windows", 300)
        for one in out["loads"]:
            self.assertGreater(one["delay_s"]["half_width_95"], 0)
            self.assertLessEqual(one["delay_s"]["p50"], one["delay_s"]["max"])
        out = load("closed", "gigaview-t9000-004", "--clients", "1,4", "--windows", 200)
        self.assertGreater(out["loads"][1]["done_bytes_per_s"], out["loads"][0]["done_bytes_per_s"])
        out = load("saturate", "gigaview-t9000-004", "--disks", 16, "--windows", 100)
        self.assertAlmostEqual(out["throughput_bytes_per_s"] / out["maximum_sustainable_bytes_per_s"], 1, delta=0.1)

    def test_streams_ask_for_their_frames(self):
        out = load("streams", "gigaview-t9000-000", "--frame", "400KiB", "--frames", "8,7,6", "--slice", "776 ms",
                   "--slices", 50)
        self.assertAlmostEqual(out["frames_per_s"], 27.06, delta=0.01)
        self.assertEqual(len(out["streams"]), 3)
        self.assertAlmostEqual(sum(out["utilization"]["disk"]) / 8, 0.60, delta=0.01)

    def test_ten_panels_of_the_power_wall_read_ten_volumes(self):
        one = load("closed", "powerwall-san", "--size", 64 << 20, "--clients", 1, "--windows", 20)
        ten = load("closed", "powerwall-san", "--disks", 40, "--size", 64 << 20, "--clients", 10, "--windows", 200,
                   "--own-images")
        ratio = ten["loads"][0]["done_bytes_per_s"] / one["loads"][0]["done_bytes_per_s"]
        self.assertAlmostEqual(ratio, 10, delta=0.6)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_every_shipped_machine_is_printed_and_read_back(self):
        names = [line.split()[0] for line in run("machines").splitlines()]
        self.assertEqual(names, PRESETS)
        for name in names:
            path = self.folder / f"{name}.toml"
            path.write_text(run("machine", name))
            self.assertIn(name, run("machine", path))

    def test_a_bad_machine_names_file_line_and_field(self):
        path = self.folder / "bad.toml"
        good = run("machine", "gigaview-t800")
        path.write_text(good.replace('"0.19 ms"', '"0.19"'))
        line = 1 + good[:good.index('"0.19 ms"')].count("\n")
        message = run("window", path, "0,0,9,9", fails=True)
        self.assertIn(f"bad.toml:{line}: stage[0].cost: ", message)
        self.assertIn("without a unit", message)

    def test_a_trace_is_replayed_and_its_errors_name_the_line(self):
        trace = self.folder / "trace"
        trace.write_text("# seconds window client\n0 0,0,512,512\n10 y5+20,x7+100 3\n")
        out = load("replay", "gigaview-t800", trace)
        self.assertEqual(out["delay_s"]["count"], 2)
        trace.write_text("0 0,0,512,512\nsoon 0,0,5,5\n")
        self.assertIn("trace:2: ", run("replay", "gigaview-t800", trace, fails=True))

    def test_figures_are_svg(self):
        path = self.folder / "load.svg"
        run("poisson", "fixed-server", "--loads", "0.2,0.5,0.8", "--windows", 200, "--plot", path)
        text = path.read_text()
        self.assertTrue(text.startswith("<svg ") and "polyline" in text)
        self.assertIsNone(re.search("nan|inf", text))

    def test_a_file_is_calibrated_or_refused(self):
        disk = pathlib.Path.cwd() / f"calibrate.{os.getpid()}"
        self.addCleanup(disk.unlink)
        disk.write_bytes(os.urandom(1 << 20) * 32)
        machine = self.folder / "mine.toml"
        command = ["calibrate", disk, "--sizes", "64K,256K,1M,2M", "--reads", 12, "-o", machine, "--json"]
        done = subprocess.run([PROGRAM, *map(str, command)], capture_output=True, text=True, check=False)
        if "O_DIRECT" in done.stderr:
            self.skipTest("this filesystem has no O_DIRECT")
        out = json.loads(done.stdout)
        self.assertEqual(len(out["rows"]), 4)
        # Other programs may disturb the times: either the fit is good and there is a machine, or neither.
        self.assertEqual(out["accepted"], done.returncode == 0)
        self.assertEqual(out["accepted"], machine.exists())
        if out["accepted"]:
            self.assertGreater(load("window", machine, "0,0,512,512")["delay_s"], 0)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
