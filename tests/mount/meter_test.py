"""Claims about `mdfs meter`, on a mounted volume and on a filesystem of the system: what it counts, prints, refuses,
and that it leaves nothing behind. No claim depends on a time.
"""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import pty
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree

from harness import MDFS, MountTest, main, run

KINDS = {"sequential_read", "random_read", "sequential_write", "random_write"}
PROFILES = ("record", "edit", "playout", "archive")
QUICK = ("--size", "8M", "--duration", "0.2")
READER = """
name = "reader"
file = "4 MiB"
transfer = "64 KiB"
block = "16 KiB"
"""
KIB = 1 << 10
MIB = 1 << 20


def meter(*words):
    return subprocess.run([MDFS, "meter", *map(str, words)], capture_output=True, text=True, check=False)


class Meter(MountTest):
    def setUp(self):
        super().setUp()
        self.plain = tempfile.mkdtemp(prefix="mdfs-test-")
        self.addCleanup(shutil.rmtree, self.plain)

    def measured(self, *words):
        done = meter(*words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        told = json.loads(done.stdout)
        self.assertEqual(told["output_version"], 1)
        return told

    def refused(self, *words, status=1):
        done = meter(*words)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def profile(self, text, name="profile.toml"):
        path = os.path.join(self.plain, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def assertEmpty(self, *folders):
        for folder in folders:
            self.assertEqual(os.listdir(folder), [], folder)

    def test_every_built_in_profile_runs_on_any_filesystem_and_leaves_nothing(self):
        folder = os.path.join(self.plain, "empty")
        os.mkdir(folder)
        for place in (self.dir, folder):
            for name in PROFILES:
                with self.subTest(place=place, profile=name):
                    told = self.measured(place, "--profile", name, *QUICK, "--clients", "2")
                    self.assertEqual(told["profile"]["name"], name)
                    (step,) = told["places"][0]["steps"]
                    self.assertEqual(set(step["transfers"]), KINDS)
                    count = sum(kind["count"] for kind in step["transfers"].values())
                    self.assertGreaterEqual(count, 2, "each client makes a transfer")
                    self.assertEqual(step["bytes"], sum(kind["bytes"] for kind in step["transfers"].values()))
                    self.assertEqual(step["due"], count if told["profile"]["rate"] else 0)
                    reads = sum(step["transfers"][kind]["count"] for kind in KINDS if kind.endswith("read"))
                    if told["profile"]["writes"] in (0, 1):
                        self.assertEqual(reads, 0 if told["profile"]["writes"] else count)
                    self.assertLessEqual(told["places"][0]["bytes"], 8 * MIB)
                    self.assertEmpty(place)

    def test_the_filesystem_is_named(self):
        (place,) = self.measured(self.dir, "--profile", "playout", *QUICK)["places"]
        self.assertEqual(place["filesystem"], "fuse.mdfs")

    def test_transfers_have_the_sizes_and_the_direction_of_the_profile(self):
        profile = self.profile(READER)
        (place,) = self.measured(self.dir, "--profile", profile, *QUICK)["places"]
        kind = place["steps"][0]["transfers"]["sequential_read"]
        self.assertGreater(kind["count"], 0)
        self.assertEqual(kind["bytes"], kind["count"] * 64 * KIB)
        self.assertEqual(kind["blocks"], kind["count"] * 4)
        for times in (kind["latency_s"], kind["time_s"]):
            ordered = [times[name] for name in ("min", "p50", "p90", "p95", "p99", "p999", "max")]
            self.assertEqual(ordered, sorted(ordered))
        self.assertGreater(kind["bytes_per_s"], 0)
        self.assertLessEqual(kind["mean_latency_s"], kind["max_latency_s"])
        random = self.profile(READER.replace('"64 KiB"', '"16 KiB"') + 'order = "random"\n')
        (place,) = self.measured(self.dir, "--profile", random, *QUICK)["places"]
        transfers = place["steps"][0]["transfers"]
        self.assertEqual({name for name in KINDS if transfers[name]["count"]}, {"random_read"})

    def test_a_file_is_read_and_not_changed(self):
        path = self.at("file")
        data = os.urandom(300_000)
        with open(path, "wb") as file:
            file.write(data)
        before = os.stat(path).st_mtime_ns
        (place,) = self.measured(path, "--profile", self.profile(READER), "--duration", "0.2")["places"]
        self.assertEqual((place["files"], place["bytes"]), (1, 300_000 // 4096 * 4096))
        with open(path, "rb") as file:
            self.assertEqual(file.read(), data)
        self.assertEqual(os.stat(path).st_mtime_ns, before)
        self.assertEqual(os.listdir(self.dir), ["file"])
        self.assertIn("only read", self.refused(path, "--profile", "edit", status=2))

    def test_an_image_is_read_as_a_file(self):
        run(MDFS, "image", "create", self.at("image"), "--shape", "512x512")
        told = self.measured(self.at("image"), "--profile", self.profile(READER), "--duration", "0.1", "--direct")
        self.assertEqual(told["places"][0]["bytes"], 512 * 512)

    def test_two_places_are_compared(self):
        folder = os.path.join(self.plain, "empty")
        os.mkdir(folder)
        words = (self.dir, folder, "--profile", "edit", *QUICK, "--rounds", "2")
        told = self.measured(*words)
        self.assertEqual([place["path"] for place in told["places"]], [self.dir, folder])
        (compared,) = told["comparison"]
        self.assertEqual(compared["clients"], 1)
        for (name, pair), place in zip([("bytes_per_s", compared["bytes_per_s"])] * 2, told["places"]):
            self.assertIn(place["steps"][0][name], (pair["first"], pair["second"]))
        self.assertAlmostEqual(compared["bytes_per_s"]["ratio"],
                               compared["bytes_per_s"]["second"] / compared["bytes_per_s"]["first"])
        text = meter(*words).stdout
        self.assertRegex(text, f"1 client +{self.dir} +{folder} +ratio\n")
        self.assertIn("rate in all", text)
        self.assertEmpty(self.dir, folder)

    def test_a_ramp_ends_where_a_limit_breaks(self):
        # No transfer ends within a nanosecond; all of them end within an hour.
        strict = self.profile(READER + '[until]\np99 = "1 ns"\n')
        (place,) = self.measured(self.dir, "--profile", strict, *QUICK, "--most-clients", "8")["places"]
        self.assertEqual(([step["clients"] for step in place["steps"]], place["most_clients_held"]), ([1], 0))
        self.assertRegex(place["steps"][0]["broken"], "^p99: ")
        generous = self.profile(READER + '[until]\np99 = "3600 s"\n')
        words = (self.dir, "--profile", generous, "--size", "8M", "--duration", "0.1", "--most-clients", "5")
        (place,) = self.measured(*words)["places"]
        self.assertEqual(([step["clients"] for step in place["steps"]], place["most_clients_held"]), ([1, 2, 4, 5], 5))
        self.assertTrue(all(step["holds"] and not step["broken"] for step in place["steps"]))
        self.assertIn("hold for up to 5 clients", meter(*words).stdout)
        self.assertEmpty(self.dir)

    def test_the_picture_is_svg_and_replaces_no_file(self):
        picture = os.path.join(self.plain, "picture.svg")
        words = (self.dir, "--profile", "edit", *QUICK, "--svg", picture)
        self.assertEqual(meter(*words).returncode, 0)
        self.assertTrue(xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg"))
        self.assertIn("exists", self.refused(*words))
        self.assertEqual(meter(*words, "--force", "--most-clients", "2").returncode, 0)

    def test_profiles_are_shown_and_what_is_shown_is_a_profile(self):
        for name in PROFILES:
            shown = meter("--profile", name, "--show")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            told = self.measured(self.dir, "--profile", self.profile(shown.stdout), *QUICK)
            self.assertEqual(told["profile"]["name"], name)

    def test_bad_profiles_are_refused_with_their_line_before_anything_is_made(self):
        for text, said in (("files = 0\n", ":6: files: 0 is not in 1..1024"),
                           ("speed = 3\n", ":6: speed: is not a field of a profile"),
                           ('order = "any"\n', ':6: order: "any" is not allowed; write one of "sequential", "random", '
                                               '"strided", "backwards"'),
                           ("writes = 7\n", ":6: writes: is not in 0..1"),
                           ("[until]\nlate = 0\n", ":7: until.late: needs the field rate")):
            path = self.profile(READER + text)
            self.assertIn(path + said, self.refused(self.dir, "--profile", path, status=2))
        self.assertIn("neither a profile", self.refused(self.dir, "--profile", self.at("none")))
        self.assertEmpty(self.dir)

    def test_what_cannot_be_measured_is_refused(self):
        edit = ("--profile", "edit")
        self.assertIn("PATH is required", self.refused(*edit, status=2))
        self.assertIn("not found", self.refused(self.at("none"), *edit))
        self.assertIn("a directory or a file", self.refused("/dev/null", *edit, status=2))
        self.assertIn("--size", self.refused(self.dir, *edit, "--size", "4K", status=2))
        self.assertIn("--size", self.refused(self.dir, *edit, "--size", "many", status=2))
        self.assertIn("from 1 to 256", self.refused(self.dir, *edit, "--clients", "0", status=2))
        self.refused(self.dir, self.dir, self.dir, *edit, status=2)
        self.refused(self.dir, *edit, "--clients", "2", "--most-clients", "4", status=2)
        large = self.profile(READER.replace('"4 MiB"', '"1 TiB"'))
        self.assertIn("choose a smaller --size", self.refused(self.dir, "--profile", large, "--size", "1T"))
        self.assertEmpty(self.dir)

    def test_a_place_that_may_not_be_written_is_refused(self):
        run("mount", "-t", "tmpfs", "-o", "ro", "none", self.plain)
        self.addCleanup(run, "umount", self.plain)
        self.assertIn("ead-only", self.refused(self.plain, "--profile", "edit"))

    def test_caches_are_dropped_by_root(self):
        told = self.measured(self.dir, "--profile", "playout", *QUICK, "--drop-caches")
        self.assertTrue(told["drop_caches"])
        child = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", MDFS, "meter", "/tmp", "--profile",
                                "playout", "--drop-caches"], capture_output=True, text=True, check=False)
        if "setpriv" in child.stderr or "ermission denied" in child.stderr and "caches" not in child.stderr:
            self.skipTest("the program cannot be run as another user here")
        self.assertEqual(child.returncode, 1, child.stderr)
        self.assertIn("only root can drop the caches", child.stderr)

    def test_signals_leave_nothing(self):
        folder = os.path.join(self.plain, "empty")
        os.mkdir(folder)
        for place in (self.dir, folder):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(place=place, signal=number):
                    child = subprocess.Popen([MDFS, "meter", place, "--profile", "edit", "--size", "8M", "--duration",
                                              "600"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    self.wait_for_files(child, place)
                    child.send_signal(number)
                    said = child.communicate(timeout=60)
                    self.assertEqual((child.returncode, said[0]), (32, ""), said[1])
                    self.assertIn("stopped by a signal", said[1])
                    self.assertEmpty(place)

    def wait_for_files(self, child, place):
        end = time.monotonic() + 60
        while not any(os.listdir(os.path.join(place, name)) for name in os.listdir(place)):
            self.assertIsNone(child.poll(), "it ended by itself")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_a_failing_place_ends_the_measurement_and_the_files_go(self):
        small = os.path.join(self.plain, "small")
        os.mkdir(small)
        run("mount", "-t", "tmpfs", "-o", "size=8M", "none", small)
        self.addCleanup(run, "umount", small)
        # Another program fills the disk after the check of the free space: files that begin empty find no space.
        record = self.profile(READER.replace('"4 MiB"', '"6 MiB"') + 'begin = "empty"\nwrites = 1\n')
        child = subprocess.Popen([MDFS, "meter", small, "--profile", record, "--duration", "600"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for_files(child, small)
        with open(os.path.join(small, "other"), "wb") as other:
            end = time.monotonic() + 60
            while child.poll() is None and time.monotonic() < end:
                try:
                    os.write(other.fileno(), bytes(64 * KIB))
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENOSPC)
                    time.sleep(0.001)
            said = child.communicate(timeout=60)[1]
        self.assertEqual(child.returncode, 1, said)
        self.assertIn("no space", said)
        self.assertEqual(os.listdir(small), ["other"])

    def test_a_terminal_sees_the_progress(self):
        reader, writer = pty.openpty()
        child = subprocess.Popen([MDFS, "meter", self.dir, "--profile", "edit", "--size", "8M", "--duration", "1"],
                                 stdout=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        said = b""
        try:
            while piece := os.read(reader, 4096):
                said += piece
        except OSError:
            pass  # its end
        os.close(reader)
        self.assertEqual(child.wait(), 0)
        self.assertIn(b"1 client", said)


if __name__ == "__main__":
    main()
