"""Disks modelled as a machine's, traces of what a mount was asked, and the simulator beside a mount."""
# SPDX-License-Identifier: Apache-2.0
import fcntl
import json
import os
import random
import subprocess
import tempfile
import time
import unittest

import harness
from harness import MDFS, Mounted, bind, make_image, read_all, run, write_all

MDFS_SIM = os.environ.get("MDFS_SIM", "mdfs-sim")
LATENCY = 0.05  # of a request of the slow machine, so long that a busy computer does not hide it

SLOW = f"""
name = "slow"
[[resource]]
name = "disk"
count = "disks"
[[resource]]
name = "link"
count = 1
[[stage]]
name = "read"
resource = "disk"
cost = ["{LATENCY} s", "full / 100 MB/s"]
[[stage]]
name = "send"
resource = "link"
cost = "part / 1 GB/s"
"""


def fails(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0, words
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def unmount_when_idle(path):
    """The daemon closes its trace just after its own mount has gone."""
    for _ in range(100):
        if subprocess.run(["umount", path], capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", path], check=True)


class Base(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted(disks=4)
        self.addCleanup(self.volume.remove)

    def file(self, name, text=None):
        path = os.path.join(self.volume.folder, name)
        if text is not None:
            with open(path, "w") as out:
                out.write(text)
        return path

    def remount(self, options):
        self.volume.unmount()
        self.volume.mount(options)

    def image(self, shape=(512, 512), extent=(64, 64)):
        make_image(self.volume / "image", shape, codec=0, extent=extent)
        write_all_in_place(self.volume / "image", os.urandom(shape[0] * shape[1]))


def write_all_in_place(path, data):
    with open(path, "r+b") as file:
        file.write(data)


def read_window(path, start, length):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        size = bind(fd, start, length)
        return os.pread(fd, size, 0)
    finally:
        os.close(fd)


class Modelled(Base):
    def test_disks_are_as_slow_as_the_machine_says_and_hold_the_same_bytes(self):
        self.image()
        data = read_all(self.volume / "image")
        self.remount(f"noatime,model={self.file('slow.toml', SLOW)}")
        os.stat(self.volume / "image")
        begun = time.monotonic()
        window = read_window(self.volume / "image", (0, 0), (64, 64))
        seconds = time.monotonic() - begun
        self.assertEqual(window, b"".join(data[512 * y:512 * y + 64] for y in range(64)))
        self.assertGreaterEqual(seconds, LATENCY)
        self.assertEqual(read_all(self.volume / "image"), data)
        write_all(self.volume / "other", data)
        self.remount(f"model={self.file('slow.toml')}")
        self.assertEqual(read_all(self.volume / "other"), data)
        self.volume.unmount()

    def test_status_and_the_report_at_the_end_count_what_was_asked(self):
        self.image()
        self.remount(f"noatime,model={self.file('slow.toml', SLOW)}")
        read_all(self.volume / "image")
        status = json.loads(run(MDFS, "volume", "status", "--json", self.volume.path))["modelled"]
        self.assertEqual(status["machine"], "slow")
        self.assertRegex(status["hash"], "^[0-9a-f]{16}$")
        self.assertEqual(len(status["disks"]), 4)
        reads = sum(disk["reads"] for disk in status["disks"])
        self.assertGreaterEqual(sum(disk["read_bytes"] for disk in status["disks"]), 512 * 512)
        names = [(one["name"], one["instance"]) for one in status["components"]]
        self.assertEqual(names, [("disk", 0), ("disk", 1), ("disk", 2), ("disk", 3), ("link", 0)])
        for index in range(4):
            disk, station = status["disks"][index], status["components"][index]
            self.assertEqual(station["served"], disk["reads"] + disk["writes"])
            wanted = LATENCY * station["served"] + (disk["read_bytes"] + disk["written_bytes"]) / 100e6
            self.assertAlmostEqual(station["busy_s"], wanted, delta=1e-6)
        self.assertGreater(reads, 4)
        self.assertIn("modelled as slow", run(MDFS, "volume", "status", self.volume.path))
        done = subprocess.run([MDFS, "umount", self.volume.path], capture_output=True, text=True, check=True)
        self.assertIn("modelled disks: slow", done.stderr)
        for disk in self.volume.disks:
            self.assertIn(disk, done.stderr)
        self.assertIn("link 0", done.stderr)

    def test_disks_with_zones_are_between_their_fastest_and_their_slowest(self):
        """Files are scattered over it: their mean rate lies between that of its beginning and that of its end."""
        zones = SLOW.replace(f'["{LATENCY} s", "full / 100 MB/s"]', '"full / 8.192 MB/s .. 4.096 MB/s"').replace(
            'count = "disks"',
            'count = "disks"\nhead = { track = "0 s", stroke = "0 s", rotation = "0 s", capacity = "1 TB" }')
        self.remount(f"noatime,cache=16M,model={self.file('zones.toml', zones)}")
        for i in range(100):
            write_all(self.volume / f"file{i}", os.urandom(256 << 10))
        run(MDFS, "volume", "sync", self.volume.path)
        modelled = json.loads(run(MDFS, "volume", "status", "--json", self.volume.path))["modelled"]
        for disk, station in zip(modelled["disks"], modelled["components"]):
            mean_rate = (disk["read_bytes"] + disk["written_bytes"]) / station["busy_s"]
            self.assertGreater(mean_rate, 4.096e6)
            self.assertLess(mean_rate, 8.192e6)

    def test_a_volume_that_is_not_modelled_says_nothing_of_it(self):
        self.assertNotIn("modelled", json.loads(run(MDFS, "volume", "status", "--json", self.volume.path)))
        done = subprocess.run([MDFS, "umount", self.volume.path], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")

    def test_every_shipped_machine_of_extents_can_be_mounted(self):
        self.image()
        data = read_all(self.volume / "image")
        self.volume.unmount()
        names = [one["name"] for one in json.loads(run(MDFS_SIM, "machines", "--json"))["machines"]]
        for name in names:
            with self.subTest(name):
                if name == "fixed-server":
                    self.assertIn("per window", fails(MDFS, "mount", "-o", "model=fixed-server", self.volume.disks[0],
                                                      self.volume.path))
                    continue
                self.volume.mount(f"noatime,model={name}")
                self.assertEqual(read_window(self.volume / "image", (3, 0), (1, 512)), data[3 * 512:4 * 512])
                self.volume.unmount()

    def test_a_bad_machine_is_one_line_with_file_line_and_field_and_nothing_is_mounted(self):
        self.volume.unmount()
        bad = self.file("bad.toml", SLOW.replace("100 MB/s", "100"))
        line = 1 + SLOW[:SLOW.index("100 MB/s")].count("\n")
        message = fails(MDFS, "mount", "-o", f"model={bad}", self.volume.disks[0], self.volume.path)
        self.assertIn(f"bad.toml:{line}: stage[0].cost", message)
        self.assertIn("unit", message)
        self.assertFalse(os.path.ismount(self.volume.path))
        self.assertIn("neither a shipped machine nor a file",
                      fails(MDFS, "mount", "-o", "model=nowhere", self.volume.disks[0], self.volume.path))


class Traced(Base):
    def lines(self, path):
        with open(path) as file:
            return [line.split() for line in file if not line.startswith("#")]

    def test_what_was_asked_is_written_down_and_replayed(self):
        self.image()
        data = read_all(self.volume / "image")
        write_all(self.volume / "plain", data)
        trace = self.file("trace")
        self.remount(f"noatime,trace={trace}")
        read_window(self.volume / "image", (10, 20), (100, 200))
        with open(str(self.volume / "image") + "@/win/y5+10,x7+30.raw", "rb") as view:
            view.read()
        fd = os.open(self.volume / "image", os.O_RDWR | os.O_DIRECT)
        self.assertEqual(os.pread(fd, 4096, 8192), data[8192:12288])
        size = bind(fd, (64, 64), (8, 16))
        os.write(fd, bytes(size))
        os.close(fd)
        with open(self.volume / "plain", "rb") as file:
            file.read()
        write_all(self.volume / "new", data[:5000])
        self.volume.unmount()

        lines = self.lines(trace)
        images = [line for line in lines if line[0] == "image"]
        self.assertEqual(len(images), 1)
        self.assertIn("shape=512x512", images[0])
        self.assertIn("extent=64x64", images[0])
        requests = [line for line in lines if line[0] not in ("cache", "image", "file")]
        asked = [(line[1], line[4]) for line in requests if f"object={images[0][1]}" in line]
        # Binding for writing on a descriptor that may read starts the window too.
        self.assertEqual(asked, [("y10+100,x20+200", "op=read"), ("y5+10,x7+30", "op=read"), ("@8192+4096", "op=read"),
                                 ("y64+8,x64+16", "op=read"), ("y64+8,x64+16", "op=write")])
        self.assertIn("bytes=20000", requests[0])
        self.assertEqual(requests[0][2], str(os.getpid()))
        times = [float(line[0]) for line in requests]
        self.assertGreater(times[0], 0)
        plain = [line for line in requests if f"object={images[0][1]}" not in line]
        self.assertEqual(sum(int(line[5].split("=")[1]) for line in plain if line[4] == "op=read"), len(data))
        self.assertEqual(sum(int(line[5].split("=")[1]) for line in plain if line[4] == "op=write"), 5000)

        out = json.loads(run(MDFS_SIM, "replay", "gigaview-t800", trace, "--json"))
        self.assertEqual(out["delay_s"]["count"], len(requests))
        self.assertEqual(out["parameters"]["objects"], len(lines) - len(requests) - 1)  # without the cache
        self.assertGreater(out["delay_s"]["mean"], 0.02)
        reads = json.loads(run(MDFS_SIM, "replay", "gigaview-t800", trace, "--json", "--reads-only"))
        self.assertEqual(reads["delay_s"]["count"], len([line for line in requests if line[4] == "op=read"]))

    def test_a_replay_reads_what_the_mount_has_read(self):
        """Of raw images the same bytes; of compressed ones, whose sizes it knows as a mean, nearly as many."""
        machine = self.file("fast.toml", SLOW.replace(f"{LATENCY} s", "0.1 ms"))
        for codec, tolerance in ((0, 0), (1, 0.1)):
            with self.subTest(codec=codec):
                name = f"image{codec}"
                make_image(self.volume / name, (512, 512), codec=codec, extent=(64, 64), channels=3)
                random.seed(1)
                write_all_in_place(self.volume / name, bytes(byte & 15 for byte in random.randbytes(512 * 512 * 3)))
                trace = self.file("trace")
                self.remount(f"noatime,cache=16M,model={machine},trace={trace}")
                read_window(self.volume / name, (0, 0), (1, 1))  # and the metadata
                before = self.disk_reads()
                for _ in range(100):
                    read_window(self.volume / name, (random.randrange(400), random.randrange(400)), (100, 100))
                read, requests = (after - early for after, early in zip(self.disk_reads(), before))
                self.volume.unmount()
                replay = (MDFS_SIM, "replay", machine, "--disks", "4", "--json")
                out = json.loads(run(*replay, trace))
                first = json.loads(run(*replay, self.file("first", self.head(trace, 1))))
                self.assertAlmostEqual(out["read_bytes"] - first["read_bytes"], read, delta=tolerance * read)
                served = sum(out["served"]["disk"]) - sum(first["served"]["disk"])
                self.assertAlmostEqual(served, requests, delta=tolerance * requests)
                self.assertEqual(out["parameters"]["cache_bytes"], 16 << 20)
                cold = json.loads(run(*replay, trace, "--cache", "0"))
                self.assertGreater(cold["read_bytes"], 4 * out["read_bytes"])
                self.volume.mount("noatime")  # without a trace

    def disk_reads(self):
        disks = json.loads(run(MDFS, "volume", "status", "--json", self.volume.path))["modelled"]["disks"]
        return sum(disk["read_bytes"] for disk in disks), sum(disk["reads"] for disk in disks)

    def head(self, trace, requests):
        """The lines of the trace up to so many requests."""
        with open(trace) as file:
            lines = file.readlines()
        first = next(i for i, line in enumerate(lines) if line[0].isdigit())
        return "".join(lines[:first + requests])

    def test_a_trace_of_many_requests_is_whole_and_takes_little_memory(self):
        self.image()
        trace = self.file("trace")
        self.remount(f"noatime,trace={trace}")
        fd = os.open(self.volume / "image", os.O_RDONLY | os.O_DIRECT)
        for index in range(20000):
            os.pread(fd, 512, 512 * (index % 512))
        os.close(fd)
        self.volume.unmount()
        self.assertEqual(len([line for line in self.lines(trace) if line[1].startswith("@")]), 20000)

    def test_a_trace_that_cannot_be_written_is_refused(self):
        self.volume.unmount()
        message = fails(MDFS, "mount", "-o", "trace=/nowhere/trace", self.volume.disks[0], self.volume.path)
        self.assertIn("/nowhere/trace", message)
        self.assertFalse(os.path.ismount(self.volume.path))

    def test_a_full_disk_ends_the_trace_and_not_the_mount(self):
        self.image()
        full = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, full)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", full], check=True)
        self.addCleanup(unmount_when_idle, full)
        with open(os.path.join(full, "filler"), "wb") as filler:
            filler.write(bytes(64 << 10))
        self.remount(f"noatime,trace={full}/trace")
        data = read_window(self.volume / "image", (0, 0), (512, 512))
        self.assertEqual(len(data), 512 * 512)
        done = subprocess.run([MDFS, "umount", self.volume.path], capture_output=True, text=True, check=True)
        self.assertIn("the trace ends early", done.stderr)


class Compared(Base):
    def compare(self, *words):
        """What the command says; whether times agree decides its exit code, and no test."""
        done = subprocess.run([MDFS_SIM, "compare", *map(str, words), "--json"], capture_output=True, text=True)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def check(self, row, disks):
        self.assertEqual(row["disks"], disks)
        self.assertEqual(row["cached_extents"], 0)
        self.assertEqual(row["windows_planned_otherwise"], 0)
        self.assertEqual(row["extents_off_placement"], 0)
        self.assertGreater(row["extents"], 0)
        # No answer comes before its time; how much later it comes a busy machine may decide.
        self.assertGreater(row["ratio"], 0.99)
        self.assertIn(row["verdict"], ["yes", "unsure", "no"])
        self.assertEqual(row["within"], row["verdict"] == "yes")
        self.assertGreater(row["measured_s"], row["again_s"])

    def test_the_simulator_plans_a_mounted_image_as_the_mount_does(self):
        for codec in (0, 1):
            with self.subTest(codec=codec):
                name = self.volume / f"image{codec}"
                make_image(name, (500, 700), codec=codec, extent=(64, 64), channels=3)
                write_all_in_place(name, os.urandom(500 * 700 * 3 // 2) * 2)
                self.remount("noatime,model=sparc-disk")
                out = self.compare("sparc-disk", name, "--size", "100x90", "--windows", 5)
                self.check(out["rows"][0], 4)
                self.assertTrue(out["rows"][0]["modelled_disks"])
                self.remount("cache=64M")

    def test_windows_of_several_sizes_share_no_extent_either(self):
        self.image((1024, 1024))
        self.remount("noatime,model=sparc-disk")
        out = self.compare("sparc-disk", self.volume / "image", "--sizes", "64x64,256x256", "--windows", 3, "--warm-up",
                           0)
        self.assertEqual([row["size"] for row in out["rows"]], ["64x64", "256x256"])
        for row in out["rows"]:
            self.check(row, 4)

    def test_a_machine_with_random_times_is_judged_with_its_error_bar(self):
        self.image((1024, 1024))
        self.remount("noatime,model=sata-disk-zoned")
        row = self.compare("sata-disk-zoned", self.volume / "image", "--size", "64x64", "--windows", 12)["rows"][0]
        self.assertGreater(row["ratio_half_width_95"], 0)
        self.assertEqual(row["windows_planned_otherwise"], 0)

    def test_several_clients_wait_for_each_other_in_both(self):
        self.image((1024, 1024))
        self.remount("noatime,model=sparc-disk")
        words = [self.volume / "image", "--size", "64x64", "--windows", 6, "--warm-up", 0]
        alone = self.compare("sparc-disk", *words)["rows"][0]
        self.remount("noatime,model=sparc-disk")
        row = self.compare("sparc-disk", *words, "--clients", 6)["rows"][0]
        self.assertEqual((row["cached_extents"], row["windows_planned_otherwise"]), (0, 0))
        self.assertEqual((alone["clients"], row["clients"]), (1, 6))
        for figure in ("mean", "p50", "p95"):
            self.assertGreater(row[figure]["simulated_s"], alone[figure]["simulated_s"])
            self.assertGreater(row[figure]["ratio"], 0.5)  # the disks serve the clients' requests in another order
            self.assertIn(row[figure]["verdict"], ["yes", "unsure", "no"])
        self.assertEqual(row["within"], all(row[figure]["verdict"] == "yes" for figure in ("mean", "p50", "p95")))

    def test_a_trace_is_read_at_its_times_and_extents_read_again_come_from_the_cache_in_both(self):
        self.image((1024, 1024))
        trace = self.file("trace", "0.5 0,0,64,64 1\n0.5 512,0,64,64 2\n0.6 0,512,64,64 1\n1.2 0,0,64,64 2\n")
        self.remount("noatime,model=sparc-disk")
        begun = time.monotonic()
        out = self.compare("sparc-disk", self.volume / "image", "--trace", trace, "--warm-up", 0)
        self.assertGreater(time.monotonic() - begun, 0.7)
        row = out["rows"][0]
        self.assertEqual((row["size"], row["clients"], row["windows"]), ("trace", 2, 4))
        self.assertEqual(row["windows_planned_otherwise"], 0)
        self.assertEqual(row["simulated_delays_s"][3], 0)
        self.assertLess(row["measured_delays_s"][3], min(row["measured_delays_s"][:3]))
        self.assertEqual(out["parameters"]["trace"], trace)

    def test_a_trace_that_cannot_be_compared_is_refused_with_its_line(self):
        self.image((1024, 1024))
        for text, words in [("0 0,0,64,64\n1 @0+100\n", "trace:2: bytes of the plain file"),
                            ("0 0,0,64,64\n1 0,0,64,2000\n", "trace:2: "),
                            ("image 1 axes=yx shape=8x8 extent=8x8 bytes=1 base=0\n0 0,0,4,4 1 object=1\n",
                             "trace:2: a window of an image of another shape"),
                            ("0 0,0,64,64\n", "1 windows; at least 4")]:
            trace = self.file("trace", text)
            self.assertIn(words, fails(MDFS_SIM, "compare", "sparc-disk", self.volume / "image", "--trace", trace))
        self.assertIn("--clients", fails(MDFS_SIM, "compare", "sparc-disk", self.volume / "image", "--trace", trace,
                                         "--clients", 2))

    def test_a_machine_that_is_faster_than_this_computer_is_said_to_be(self):
        self.image((1024, 1024))
        fast = self.file("fast.toml", SLOW.replace(f"{LATENCY} s", "1 ns").replace("100 MB/s", "1000 TB/s").replace(
            "1 GB/s", "1000 TB/s"))
        self.remount(f"noatime,model={fast}")
        words = [fast, self.volume / "image", "--size", "64x64", "--windows", 3]
        self.assertTrue(self.compare(*words)["rows"][0]["machine_is_faster_than_computer"])
        done = subprocess.run([MDFS_SIM, "compare", *map(str, words)], capture_output=True, text=True)
        self.assertIn("faster than this computer", done.stdout)

    def test_a_mount_modelled_as_another_machine_is_refused(self):
        self.image()
        self.remount("model=sparc-disk")
        self.assertIn("another machine", fails(MDFS_SIM, "compare", "raid3", self.volume / "image"))
        self.assertIn("not on a mounted", fails(MDFS_SIM, "compare", "raid3", self.volume.disks[0]))
        self.assertIn("not an image", fails(MDFS_SIM, "compare", "raid3", self.plain()))

    def plain(self):
        write_all(self.volume / "plain", b"x")
        return self.volume / "plain"

    def test_volumes_are_made_compared_and_taken_away(self):
        scratch = self.file("scratch")
        os.mkdir(scratch)
        out = self.compare("gigaview-t9000-000", "--disk-counts", "1,3", "--size", "256x256", "--shape", "1024x1024",
                           "--windows", 3, "--scratch", scratch)
        self.assertEqual([row["disks"] for row in out["rows"]], [1, 3])
        for row in out["rows"]:
            self.check(row, row["disks"])
            self.assertEqual(row["extent"], "128x128")
            self.assertEqual(len(row["measured_delays_s"]), 3)
        for key in ("seed", "version", "machine", "parameters"):
            self.assertIn(key, out)
        self.assertEqual(os.listdir(scratch), [])


if __name__ == "__main__":
    harness.main()
