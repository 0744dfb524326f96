#!/usr/bin/env python3
"""mdfs-sim as its users meet it: figures, errors with file and line, forms of output, calibration of a file.

usage: sim_cli_test.py MDFS_SIM SIMULATION.md
"""
# SPDX-License-Identifier: Apache-2.0
import csv
import fcntl
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = DOCUMENT = ""
PRESETS = ["gigaview-t800", "gigaview-t9000-004", "gigaview-t9000-000", "dec-cluster", "sparc-disk", "raid3", "raid5",
           "fixed-server", "powerwall-san", "sata-disk", "sata-disk-zoned", "nvme", "sata-shelf-10gbe"]


def run(*arguments, fails=False):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)
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


# One run of each command that simulates, and is short.
COMMANDS = {
    "window": ["gigaview-t800", "67,75,512,512"],
    "random": ["gigaview-t800", "--positions", 5],
    "sweep": ["gigaview-t800", "--positions", 5],
    "poisson": ["gigaview-t800", "--windows", 20, "--replications", 2, "--loads", "0.5"],
    "closed": ["gigaview-t800", "--windows", 20, "--replications", 2, "--clients", 2],
    "saturate": ["gigaview-t800", "--windows", 20, "--replications", 2],
    "streams": ["gigaview-t800", "--frame", "400 KiB", "--slices", 5],
    "rebuild": ["nvme", "--disks", 4, "--shape", "2048x2048", "--windows", 20],
}
NO_PARAMETERS = {"help", "json", "csv", "plot", "seed", "output", "figures"}


def options_of(command):
    return re.findall(r"^ +(?:-\w,)?--([a-z-]+)", run(command, "--help"), re.MULTILINE)


class Options(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trace = pathlib.Path(folder.name) / "trace"
        self.trace.write_text("0 0,0,512,512\n")
        self.commands = {**COMMANDS, "replay": ["gigaview-t800", self.trace], "meter": ["gigaview-t800", self.trace],
                         "size": ["--workload", self.trace, "--target", "p99<100 s", "--machines", "nvme"]}

    def test_the_json_holds_every_parameter(self):
        for command, arguments in self.commands.items():
            with self.subTest(command):
                parameters = load(command, *arguments)["parameters"]
                for option in set(options_of(command)) - NO_PARAMETERS:
                    key = option.replace("-", "_")
                    self.assertTrue({key, f"{key}_s", f"{key}_bytes"} & parameters.keys(),
                                    f"--{option} is not in {parameters}")

    def test_nonsense_in_any_option_is_refused_in_one_line_and_never_ends_in_a_crash(self):
        flags = {"json", "csv", "own-images", "stagger", "reads-only", "independent", "all", "drop", "unchecked",
                 "scrub"}
        for command, arguments in self.commands.items():
            for option in set(options_of(command)) - flags - {"help", "plot"}:
                words = list(arguments)
                if f"--{option}" in words:
                    at = words.index(f"--{option}")
                    del words[at:at + 2]
                for value in ["garbage", "", "-1", "nan", "1e400", "18446744073709551616", "2,garbage"]:
                    with self.subTest(f"{command} --{option} {value!r}"):
                        message = run(command, *words, f"--{option}={value}" if value else f"--{option}", *(
                            [] if value else [""]), fails=True)
                        self.assertEqual(message.count("\n"), 1, message)
                        self.assertTrue(message.startswith("mdfs-sim: "), message)


class Forms(unittest.TestCase):
    def test_csv_is_a_table(self):
        rows = list(csv.DictReader(io.StringIO(run("sweep", "gigaview-t800", "--disk-counts", "1,4", "--sizes",
                                                   "512x512,640x512", "--positions", 5, "--csv"))))
        self.assertEqual([(row["disks"], row["size"]) for row in rows],
                         [("1", "512x512"), ("1", "640x512"), ("4", "512x512"), ("4", "640x512")])
        self.assertLess(float(rows[2]["delay_s"]), float(rows[0]["delay_s"]))

    def test_figures_of_one_or_two_windows_are_numbers_or_unknown(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace"
            for count in 1, 2:
                trace.write_text("0 0,0,64,64\n0 64,64,64,64\n"[:12 * count])
                windows = ["--windows", count]
                commands = [["window", "y0+64,x0+64"], ["random", "--positions", count],
                            ["sweep", "--positions", count],
                            ["sweep", "--positions", count, "--sizes", "64x64,128x128,256x256"],
                            ["streams", "--frames", count, "--slices", 1, "--skip", 0, "--frame", "400 KiB"],
                            ["replay", trace], ["replay", trace, "--replications", 1],
                            ["meter", trace], ["meter", trace, "--replications", 2]]
                for runs in 1, 2:
                    load_ = [*windows, "--replications", runs]
                    commands += [["poisson", *load_], ["poisson", *load_, "--loads", 0.5],
                                 ["poisson", *load_, "--warm-up", 0.9], ["saturate", *load_],
                                 ["closed", "--clients", 1, *load_],
                                 ["closed", "--clients", 1, *load_, "--warm-up", 0.9]]
                for machine in "nvme", "sata-disk", "sata-shelf-10gbe":
                    for command in commands:
                        whole = [command[0], machine, *command[1:]]
                        for form in [], ["--csv"], ["--json"], ["--plot", pathlib.Path(folder) / "figure.svg"]:
                            with self.subTest(command=whole, form=form):
                                text = run(*whole, *form)
                                if "--plot" in form:
                                    text += form[1].read_text()
                                self.assertNotRegex(text.lower(), r"(?<![a-z])(nan|inf)(?![a-z])")
            row = run("sweep", "nvme", "--positions", 1, "--csv").splitlines()[1].split(",")
            self.assertEqual(row[5], "")
            self.assertRegex(run("sweep", "nvme", "--positions", 1).splitlines()[-1], r" - ")

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

    def test_streams_of_a_mount_are_in_time_when_accepted_and_late_by_force_or_without_a_reservation(self):
        film = ["streams", "sata-disk", "--disks", 4, "--shape", "2048x256x512", "--extent", "1x128x128",
                "--bytes-per-pixel", 1, "--window", "y0+128,x0+128", "--readers", 2, "--reader-size", "8x256x512",
                "--writers", 8, "--scrub", "--seconds", 12]
        rates = ["--rate", ",".join(["50"] * 8)]
        out = load(*film, *rates)
        running = [stream for stream in out["streams"] if stream["runs"]]
        self.assertGreater(len(running), 2)
        self.assertLess(len(running), 8)
        self.assertTrue(all(stream["accepted"] for stream in running))
        self.assertLessEqual(max(out["reserved_loads"]), 0.8 + 1e-9)
        self.assertEqual(out["reserved"]["late"], 0)
        self.assertGreater(out["unreserved"]["late"], out["unreserved"]["frames"] / 10)
        forced = load(*film, *rates, "--unchecked")
        self.assertTrue(all(stream["runs"] for stream in forced["streams"]))
        self.assertGreater(forced["reserved"]["late"], 0)
        self.assertEqual(run(*film, *rates), run(*film, *rates))
        self.assertIn("is refused", run(*film, *rates))
        for words, message in ((["--axis", "q"], "the image has the axes"), (["--window", "z0"], "for 8 streams"),
                               (["--slices", 3], "--rate"), (["--copies", 2], "one copy")):
            self.assertIn(message, run(*film, *rates, *words, fails=True))
        self.assertIn("--rate", run("streams", "nvme", "--readers", 1, fails=True))

    def test_a_rebuild_says_what_it_moves_how_long_it_takes_and_what_windows_cost_meanwhile(self):
        command = ["rebuild", "sata-disk", "--disks", 6, "--lost-disk", 2, "--filled", 0.5, "--sizes",
                   "64x64,512x512", "--windows", 200]
        out = load(*command)
        self.assertEqual(out["lost"]["disk"], 2)
        others = [disk for disk in out["disks"] if disk["disk"] != 2]
        for key in "read_bytes", "written_bytes":
            self.assertEqual(sum(disk[key] for disk in others), out["lost"]["bytes"])
            self.assertEqual(out["disks"][2][key], 0)
        rate = out["lost"]["bytes"] / out["alone"]["rebuild_s"]
        self.assertAlmostEqual(out["full_disk"]["rebuild_s"] * rate, 2e12, delta=1e6)
        self.assertEqual([(one["size"], one["state"]) for one in out["states"]],
                         [(size, state) for size in ("64x64", "512x512")
                          for state in ("healthy", "degraded", "rebuilding")])
        for healthy, degraded, rebuilding in (out["states"][:3], out["states"][3:]):
            self.assertLess(healthy["mean_s"], degraded["mean_s"])
            self.assertLess(degraded["mean_s"], rebuilding["mean_s"])
            self.assertGreater(rebuilding["rebuild_s"], out["alone"]["rebuild_s"])
        self.assertEqual(run(*command), run(*command))
        self.assertIn("3 or more", run("rebuild", "sata-disk", "--disks", 2, fails=True))
        self.assertIn("0..5", run("rebuild", "sata-disk", "--disks", 6, "--lost-disk", 6, fails=True))
        self.assertIn("must be 2", run("rebuild", "sata-disk", "--disks", 6, "--copies", 1, fails=True))

    def test_parity_takes_a_quarter_more_room_and_a_lost_disk_is_made_from_the_other_pieces(self):
        command = ["rebuild", "sata-disk", "--disks", 8, "--parity", 1, "--lost-disk", 2, "--sizes", "64x64,512x512",
                   "--windows", 200, "--extent", "128x128"]
        out = load(*command)
        self.assertEqual((out["parameters"]["copies"], out["parameters"]["parity"], out["parameters"]["width"]),
                         (1, 1, 4))
        shown = out["protection"]
        self.assertEqual(shown["extents"], 4096)
        self.assertEqual(shown["grouped"] + shown["copies"], 4096)
        self.assertAlmostEqual(shown["stored"], 1.25, delta=0.01)
        others = [disk for disk in out["disks"] if disk["disk"] != 2]
        self.assertEqual(sum(disk["written_bytes"] for disk in others), out["lost"]["bytes"])
        self.assertEqual(sum(disk["read_bytes"] for disk in others), 4 * out["lost"]["bytes"])
        self.assertEqual([out["disks"][2][key] for key in ("read_bytes", "written_bytes")], [0, 0])
        for healthy, degraded, rebuilding in (out["states"][:3], out["states"][3:]):
            self.assertLess(healthy["mean_s"], degraded["mean_s"])
            self.assertLess(degraded["mean_s"], rebuilding["mean_s"])
        self.assertEqual(run(*command), run(*command))
        self.assertIn("1.250 times the room", run(*command))

    def test_the_width_of_a_parity_is_that_of_mkmdfs_and_so_are_its_errors(self):
        window = ["window", "nvme", "0,0,100,100"]
        for disks, words, width in ((3, [], 2), (5, [], 2), (6, [], 4), (9, ["--width", 8], 8)):
            out = load(*window, "--disks", disks, "--parity", 1, *words)
            self.assertEqual(out["parameters"]["width"], width)
        self.assertEqual(load(*window)["parameters"]["width"], 1)
        for words, message in ((["--disks", 2, "--parity", 1], "needs 3 disks for data or more, not 2"),
                               (["--disks", 4, "--parity", 1, "--width", 4], "needs 5 disks for data or more, not 4"),
                               (["--disks", 8, "--parity", 1, "--width", 3], "--width 3: must be 2, 4 or 8"),
                               (["--disks", 8, "--parity", 1, "--width", 9], "--width"),
                               (["--disks", 8, "--parity", 2], "--parity"),
                               (["--disks", 8, "--width", 4], "--width is of --parity"),
                               (["--disks", 8, "--parity", 1, "--copies", 2], "excludes"),
                               (["--disks", 65, "--parity", 1], "to 64 disks"),
                               (["--disks", 8, "--parity", 1, "--lost-disk", 8], "0..7")):
            self.assertIn(message, run(*window, *words, fails=True))
        self.assertIn("as a mount does", run("window", "raid5", "0,0,100,100", "--parity", 1, fails=True))
        self.assertIn("one copy", run("streams", "nvme", "--disks", 8, "--shape", "64x256x256", "--rate", 5, "--parity",
                                      1, fails=True))
        out = load("size", "--workload", "closed:512x512:4", "--target", "p99<10s", "--machines", "nvme", "--disks",
                   "2..4", "--parity", 1, "--windows", 100, "--all")
        self.assertEqual(["does not fit" in str(one) or "problem" in one for one in out["candidates"]],
                         [True, False, False])

    def test_ten_panels_of_the_power_wall_read_ten_volumes(self):
        one = load("closed", "powerwall-san", "--size", 64 << 20, "--clients", 1, "--windows", 20)
        ten = load("closed", "powerwall-san", "--disks", 40, "--size", 64 << 20, "--clients", 10, "--windows", 200,
                   "--own-images")
        ratio = ten["loads"][0]["done_bytes_per_s"] / one["loads"][0]["done_bytes_per_s"]
        self.assertAlmostEqual(ratio, 10, delta=0.6)


class WorkedExample(unittest.TestCase):
    """doc/SIMULATION.md followed word for word."""

    def test_the_machine_and_the_commands_of_the_document_give_its_table(self):
        part = DOCUMENT[DOCUMENT.index("## A machine of your own"):]
        machine = part.split("```")[1]
        self.assertLessEqual(len(machine.strip().splitlines()), 30)
        command = re.search(r"`mdfs-sim (streams film.toml [^`]*)`", part).group(1)
        line = r"^\| (\d+) \| ([\d.]+) \+- ([\d.]+) ms \| ([\d.]+) ms \| ([\d.]+) % \| (\d+) of (\d+) \|$"
        rows = re.findall(line, part, re.MULTILINE)
        self.assertEqual(len(rows), 5)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "film.toml"
            path.write_text(machine)
            for disks, mean, half_width, most, busy, late, frames in rows:
                out = load(*command.replace("film.toml", str(path)).replace("K", disks).split())
                delay = out["delay_s"]
                self.assertEqual([f"{delay['mean'] * 1e3:.2f}", f"{delay['half_width_95'] * 1e3:.2f}",
                                  f"{delay['max'] * 1e3:.2f}"], [mean, half_width, most])
                self.assertEqual(f"{sum(out['utilization']['disk']) / int(disks) * 100:.1f}", busy)
                self.assertEqual([out["late_frames"], delay["count"]], [int(late), int(frames)])


class Size(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_the_cheapest_machine_that_meets_the_target_is_found_and_dearer_ones_are_not_tried(self):
        command = ["size", "--workload", "poisson:512x512:60/s", "--target", "p99<120ms", "--machines",
                   "sata-disk,sata-shelf-10gbe", "--disks", "1..12", "--windows", 400]
        best, every = load(*command), load(*command, "--all")
        self.assertEqual(best["cheapest"], every["cheapest"])
        self.assertEqual(len(every["candidates"]), 24)
        met = [one for one in every["candidates"] if one["verdict"] == "met"]
        self.assertEqual(met[0], best["cheapest"])
        self.assertEqual(best["candidates"], every["candidates"][:len(best["candidates"])])
        self.assertEqual(best["candidates"][-1], best["cheapest"])
        target = best["cheapest"]["targets"][0]
        self.assertGreater(target["half_width_95"], 0)
        self.assertLess(target["value"] + target["half_width_95"], 0.12)
        self.assertEqual(best["cheapest"]["bottleneck"], "disk")

    def test_prices_decide_and_are_named_in_errors(self):
        prices = self.folder / "prices.toml"
        prices.write_text('currency = "EUR"\n[[machine]]\nname = "nvme"\nbase = 2000\ndisk = 100\n'
                          '[[machine]]\nname = "sata-disk"\nbase = 100\ndisk = 90\n')
        command = ["size", "--workload", "closed:256x256:4", "--target", "p50<200ms,throughput>1MB/s",
                   "--machines", "nvme,sata-disk", "--disks", "2,4", "--windows", 200, "--price", prices]
        found = load(*command)
        self.assertEqual((found["cheapest"]["machine"], found["cheapest"]["price"]), ("sata-disk", 280))
        self.assertIn("price 280 EUR", run(*command))
        self.assertIn("raid3 has no price", run(*command, "--machines", "raid3", fails=True))

    def test_a_target_that_no_machine_meets_is_said_and_ends_with_status_1(self):
        done = subprocess.run([PROGRAM, "size", "--workload", "poisson:512x512:50/s", "--target", "p99<1us",
                               "--machines", "nvme", "--disks", "1,2", "--windows", "100"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("none of the machines meets the targets", done.stdout)

    def test_a_trace_is_a_workload_and_its_figure_a_picture(self):
        trace, picture = self.folder / "trace", self.folder / "size.svg"
        trace.write_text("".join(f"{second / 10} 0,{second * 10},512,512\n" for second in range(100)))
        command = ["size", "--workload", trace, "--target", "mean<40ms", "--machines", "gigaview-t9000-004,sata-disk",
                   "--disks", "1..8", "--all"]
        self.assertEqual(len(load(*command, "--plot", picture)["candidates"]), 16)
        text = picture.read_text()
        self.assertTrue(text.startswith("<svg ") and "sata-disk" in text)
        self.assertIsNone(re.search("nan|inf", text))
        self.assertEqual(load(*command), load(*command), "the number of threads does not change the result")


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

    def test_a_quantity_that_is_no_length_of_time_or_bytes_is_an_error_that_says_why(self):
        path = self.folder / "bad.toml"
        tried = 0
        for name in PRESETS:
            good = run("machine", name)
            for found in re.finditer(r"(?<![\w.])[\d.]+(?= (?:ns|us|ms|s|[kKMGT]?i?B(?:/s)?)\b)", good):
                before = good[:found.start()].splitlines()[-1]
                if before.count('"') % 2 == 0 or before.startswith("description"):
                    continue  # a comment, or text
                for bad, why in (("-1", "is negative"), ("inf", "must be a finite number"), ("nan", "must be a finite"),
                                 ("1e400", "out of range"), ("1e200", "above|a rate is from"), ("", "."), ("1,5", ".")):
                    path.write_text(good[:found.start()] + bad + good[found.end():])
                    with self.subTest(machine=name, place=good[found.start() - 20:found.end() + 5], bad=bad):
                        message = run("machine", path, fails=True)
                        self.assertRegex(message, rf"bad\.toml:\d+: .*({why})")
                        self.assertEqual(message.count("\n"), 1)
                    tried += 1
        self.assertGreater(tried, 100)

    def test_a_machine_that_takes_no_time_is_refused(self):
        path = self.folder / "free.toml"
        path.write_text(run("machine", "fixed-server").replace("305 ms", "0 ms"))
        self.assertIn("all costs are 0", run("random", path, fails=True))

    def test_a_trace_is_replayed_and_its_errors_name_the_line(self):
        trace = self.folder / "trace"
        trace.write_text("# seconds window client\n0 0,0,512,512\n10 y5+20,x7+100 3\n")
        out = load("replay", "gigaview-t800", trace)
        self.assertEqual(out["delay_s"]["count"], 2)
        trace.write_text("0 0,0,512,512\nsoon 0,0,5,5\n")
        self.assertIn("trace:2: ", run("replay", "gigaview-t800", trace, fails=True))
        trace.write_text("0 0,0,512,512\n# " + "x" * 4094 + "\n10 y5+20,x7+100")  # without a last line end
        self.assertEqual(load("replay", "gigaview-t800", trace)["delay_s"]["count"], 2)
        trace.write_text("file 1\n0.1 @0+9999999999999 5 object=1 op=read bytes=9999999999999\n")
        self.assertIn("trace:2: a window may touch at most 262144 extents",
                      run("replay", "nvme", trace, fails=True))
        self.assertIn("is a directory", run("replay", "nvme", self.folder, fails=True))
        trace.write_text("0 0,0,512,512\n# " + "x" * 4095 + "\n")
        self.assertIn("trace:2: a line has at most 4096 bytes", run("replay", "gigaview-t800", trace, fails=True))

    def test_transfers_of_a_trace_are_counted_by_kind(self):
        trace = self.folder / "trace"
        trace.write_text("image 17 axes=tyx shape=9x256x256 extent=1x256x256 bytes=1 base=0\nfile 3\n"
                         "0 t2 5 object=17 op=read bytes=65536\n"             # a movie, frame by frame
                         "1 @65536+65536 6 object=17 op=write bytes=65536\n"  # in between: another client
                         "10 t3 5 object=17 op=read bytes=65536\n"
                         "20 t4+2 5 object=17 op=read bytes=131072\n"
                         "30 t1,x7+100 5 object=17 op=read bytes=25600\n"     # apart
                         "40 @4096+8192 5 object=3 op=read bytes=8192\n"
                         "41 @12288+4096 5 object=3 op=read bytes=4096\n")
        rows = list(csv.DictReader(io.StringIO(run("replay", "gigaview-t800", trace, "--csv"))))
        delay = [float(row["delay_s"]) for row in rows]
        transfers = load("meter", "gigaview-t800", trace)["transfers"]
        self.assertEqual({kind: (one["count"], one["blocks"], one["bytes"]) for kind, one in transfers.items()},
                         {"sequential_read": (2, 5, 4 * 65536 + 12288), "random_read": (1, 1, 25600),
                          "sequential_write": (0, 0, 0), "random_write": (1, 1, 65536)})
        sequential = transfers["sequential_read"]
        latency = 20 - delay[0] - delay[2], 1 - delay[5]
        self.assertAlmostEqual(sequential["max_latency_s"], latency[0], 3)
        self.assertAlmostEqual(sequential["mean_latency_s"], sum(latency) / 2, 3)
        self.assertAlmostEqual(sequential["bytes_per_s"] * sum(delay[i] for i in (0, 2, 3, 5, 6)),
                               sequential["bytes"], -2)
        table = {row["transfers"]: row for row in csv.DictReader(io.StringIO(run("meter", "gigaview-t800", trace,
                                                                                 "--csv")))}
        self.assertEqual(table["random_write"]["count"], "1")
        trace.write_text("0 0,0,512,512\nsoon 0,0,5,5\n")
        self.assertIn("trace:2: ", run("meter", "gigaview-t800", trace, fails=True))

    def test_an_image_is_as_long_as_what_is_appended_to_it(self):
        image = "image 17 axes=zyx shape=1x256x256 extent=1x256x256 bytes=1 base=1\n"
        trace = self.folder / "trace"
        trace.write_text(image + "".join(f"{n} @{n * 65536}+65536 5 object=17 op=write bytes=65536\n" for n in range(3))
                         + image.replace("=1x256", "=3x256", 1) + "4 z1 5 object=17 op=read bytes=65536\n")
        self.assertEqual(load("replay", "nvme", trace)["delay_s"]["count"], 4)
        trace.write_text(image + "0 z0 113")  # cut: its client and object are lost
        self.assertIn("trace:2: the trace of a mount ends within this line", run("replay", "nvme", trace, fails=True))

    def test_a_client_waits_for_its_last_read_of_an_image_but_not_of_a_file(self):
        machine = ["gigaview-t9000-000", "--disks", "4"]
        delays = {}
        for kind, line, window in (("windows", "image 1 axes=yx shape=4096x4096 extent=128x128 bytes=3 base=1",
                                    "y{0}00+50,x100+2000"),
                                   ("bytes", "image 1 axes=yx shape=4096x4096 extent=128x128 bytes=3 base=1",
                                    "@{0}2289500+300000"), ("file", "file 1", "@{0}2289500+300000")):
            trace = self.folder / "trace"
            trace.write_text(line + "\n" + "".join(
                f"0.{i} {window.format(i)} 5 object=1 op=read bytes=300000\n" for i in range(1, 5)))
            for way in ([], ["--independent"]):
                delays[kind, bool(way)] = load("replay", machine[0], trace, *machine[1:], *way)["delay_s"]["max"]
        self.assertLess(delays["windows", False], delays["windows", True])
        self.assertLess(delays["bytes", False], delays["bytes", True])
        self.assertEqual(delays["file", False], delays["file", True])

    def test_a_trace_without_line_ends_is_refused_at_once(self):
        for command in (["replay", "gigaview-t800", "/dev/zero"],
                        ["size", "--workload", "/dev/zero", "--target", "p99<1s", "--machines", "nvme"]):
            self.assertIn("/dev/zero:1: a line has at most 4096 bytes", run(*command, fails=True))

    def test_a_replay_on_a_machine_with_random_times_has_an_error_bar_and_on_others_needs_none(self):
        trace = self.folder / "trace"
        trace.write_text("".join(f"{second} 0,0,512,512\n" for second in range(20)))
        self.assertGreater(load("replay", "sata-disk", trace)["delay_s"]["half_width_95"], 0)
        self.assertNotIn("half_width_95", load("replay", "gigaview-t800", trace)["delay_s"])

    def test_a_disk_with_zones_is_slower_where_it_is_full_unless_groups_are_scattered(self):
        path = self.folder / "first.toml"
        path.write_text(run("machine", "sata-disk-zoned").replace('group = "8 MiB"', ""))
        command = ["random", path, "--size", "4096x4096", "--filled"]
        slower = load(*command, 0.9)["delay_s"]["mean"] / load(*command, 0)["delay_s"]["mean"]
        self.assertGreater(slower, 1.4)
        command[1] = "sata-disk-zoned"
        self.assertEqual(load(*command, 0.9)["delay_s"]["mean"], load(*command, 0)["delay_s"]["mean"])

    def test_lengths_that_are_too_large_are_invalid_values(self):
        for option in (["--shape", "4096x4096", "--extent", "4096x4096"], ["--shape", "99999999999x99999999999"]):
            done = subprocess.run([PROGRAM, "window", "nvme", "0,0,1,1", *option], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(option[0], done.stderr)

    def test_figures_are_svg(self):
        path = self.folder / "load.svg"
        run("poisson", "fixed-server", "--loads", "0.2,0.5,0.8", "--windows", 200, "--plot", path)
        text = path.read_text()
        self.assertTrue(text.startswith("<svg ") and "polyline" in text)
        self.assertIsNone(re.search("nan|inf", text))

    def test_a_figure_that_cannot_be_written_costs_no_result(self):
        done = subprocess.run([PROGRAM, "poisson", "fixed-server", "--loads", "0.5", "--windows", "200", "--plot",
                               self.folder / "none" / "a.svg"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("bottleneck", done.stdout)
        self.assertIn("a.svg", done.stderr)
        self.assertIn("must end in .svg or .png",
                      run("window", "fixed-server", "0,0,512,512", "--plot", self.folder / "a.pdf", fails=True))

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
        self.assertEqual(out["held_out"]["reads"], 48)
        self.assertEqual(out["latency"], out["candidates"][0]["latency"])
        scores = [one["score"] for one in out["candidates"]]
        self.assertEqual(scores, sorted(scores))
        worst = max(abs(out["held_out"]["median_error"]), abs(out["held_out"]["p95_error"]))
        self.assertEqual(out["distribution_fits"], worst <= 0.2)
        # Other programs may disturb the times: either the fit is good and there is a machine, or neither.
        self.assertEqual(out["accepted"], done.returncode == 0)
        self.assertEqual(out["accepted"], machine.exists())
        if out["accepted"]:
            self.assertGreater(load("window", machine, "0,0,512,512")["delay_s"], 0)

    def test_writes_are_calibrated_only_when_asked_for_and_leave_every_byte_as_it_was(self):
        disk = pathlib.Path.cwd() / f"calibrate-write.{os.getpid()}"
        self.addCleanup(disk.unlink)
        content = os.urandom(1 << 20) * 8
        disk.write_bytes(content)
        command = ["calibrate", disk, "--sizes", "4K,16K,64K,1M", "--reads", 2, "--batch", "1 ms", "--json"]
        modified = disk.stat().st_mtime_ns
        done = subprocess.run([PROGRAM, *map(str, command)], capture_output=True, text=True, check=False)
        if "O_DIRECT" in done.stderr:
            self.skipTest("this filesystem has no O_DIRECT")
        self.assertEqual(disk.stat().st_mtime_ns, modified)
        done = subprocess.run([PROGRAM, *map(str, command), "--write"], capture_output=True, text=True, check=False)
        self.assertTrue(json.loads(done.stdout)["parameters"]["write"])
        self.assertGreater(disk.stat().st_mtime_ns, modified)
        self.assertEqual(disk.read_bytes(), content)
        with open(disk, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            self.assertIn("in use", run(*command, "--write", fails=True))


if __name__ == "__main__":
    PROGRAM, DOCUMENT = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1)).read_text()
    unittest.main()
