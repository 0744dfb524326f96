"""`mdfs play`, `mdfs send` and `mdfs receive`: every sample of movies, networks that lose packets, ends, errors."""
# SPDX-License-Identifier: Apache-2.0
import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import harness
from harness import MDFS, make_image, read_all, run, write_all
from lossy_relay import Relay, bursts, every, random_loss

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of movies need numpy")
    sys.exit(harness.SKIP)

LIMIT_S = 100
LATENCY_MS = "2000"  # packets may wait long on a machine with other work
RNG = np.random.default_rng(1993)


def seen(text):
    return json.loads(text)


class Receiver:
    """`mdfs receive` on a free port, which it has said."""

    def __init__(self, *options):
        self.process = subprocess.Popen([MDFS, "receive", "--port", "0", "--address", "127.0.0.1", "--json",
                                         *(() if "--latency" in options else ("--latency", LATENCY_MS)), *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if "port" not in line:
            raise AssertionError(f"mdfs receive: {line}{self.process.stderr.read()}")
        self.port = int(line.split()[-1])

    def end(self, status=0):
        out, error = self.process.communicate(timeout=LIMIT_S)
        if self.process.returncode != status:
            raise AssertionError(f"mdfs receive: exit {self.process.returncode}: {error}{out}")
        self.said = error
        return json.loads(out)


class Films(harness.MountTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_all)
        self.relays, self.receivers = [], []

    def end_all(self):
        for receiver in self.receivers:
            receiver.process.kill()
            receiver.process.communicate()
        for relay in self.relays:
            relay.stop()

    def movie(self, name, shape, element="u8", channels=1):
        data = RNG.integers(0, 250, [*shape, *([channels] if channels > 1 else [])]).astype(harness.NUMPY[element])
        if element == "u16":
            data *= 261
        make_image(self.at(name), shape, element=element, channels=channels, axes="tyx")
        write_all(self.at(name), data.tobytes())
        return data

    def smooth_movie(self, name, frames, height=96, width=160):
        """Each frame has its number as eight squares in its first rows."""
        rows, columns = np.mgrid[:height, :width]
        data = np.empty((frames, height, width, 3), "u1")
        for frame in range(frames):
            data[frame] = np.stack([(rows + frame) % 128 + 60, columns % 128 + 60, (rows + columns) % 128 + 60], -1)
            for bit in range(8):
                data[frame, :16, 16 * bit:16 * bit + 16] = 255 * (frame >> bit & 1)
        make_image(self.at(name), data.shape[:3], channels=3, axes="tyx")
        write_all(self.at(name), data.tobytes())
        return data

    @staticmethod
    def numbers(frames):
        """The numbers in frames of smooth_movie()."""
        return [sum(1 << bit for bit in range(8) if frame[2:14, 16 * bit + 2:16 * bit + 14].mean() > 128)
                for frame in frames]

    def stored(self, name, like):
        data = np.frombuffer(read_all(self.at(name)), like.dtype)
        return data.reshape(-1, *like.shape[1:])

    def receiver(self, *options):
        self.receivers.append(Receiver(*options))
        return self.receivers[-1]

    def through(self, receiver, is_lost=lambda: False):
        """The address of a network to the receiver."""
        self.relays.append(Relay(("127.0.0.1", receiver.port), is_lost))
        self.relays[-1].start()
        return f"127.0.0.1:{self.relays[-1].port}"

    def send(self, name, to, *options):
        return seen(run(MDFS, "send", self.at(name), "--to", to, "--json", *options, timeout=LIMIT_S))

    def assertRefused(self, words, *command):
        done = subprocess.run([MDFS, *command], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(words, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class Networks(Films):
    def test_every_sample_arrives_over_a_network_that_loses_packets_in_bursts(self):
        data = self.movie("film", (75, 90, 160), channels=3)
        receiver = self.receiver("--to", self.at("copy"))
        loss = every(random_loss(0.02), bursts(0.03, 8))
        sent = self.send("film", self.through(receiver, loss), "--codec", "raw", "--fps", "25", "--fec", "30%")
        received = receiver.end()
        self.assertEqual((sent["frames"], received["frames"], received["sent"]), (75, 75, 75))
        self.assertEqual((received["lost"], received["repeated"], received["packets"]["lost"]), (0, 0, 0))
        self.assertGreater(received["packets"]["recovered"], 50)
        self.assertGreater(self.relays[0].lost, 50)
        self.assertLess(sent["packets"]["repair"], 0.32 * sent["packets"]["source"])
        np.testing.assert_array_equal(self.stored("copy", data), data)
        self.assertIn("spacing  0.04s", run(MDFS, "image", "info", self.at("copy")))

    def test_a_receiver_that_has_waited_recovers_as_well(self):
        data = self.movie("film", (50, 45, 160), channels=3)
        receiver = self.receiver("--to", self.at("copy"))
        time.sleep(3)  # longer than its latency
        self.send("film", self.through(receiver, bursts(0.08, 8)), "--codec", "raw", "--fps", "25", "--fec", "60%")
        received = receiver.end()
        self.assertEqual((received["frames"], received["lost"]), (50, 0))
        self.assertGreater(received["packets"]["recovered"], 0)
        np.testing.assert_array_equal(self.stored("copy", data), data)

    def test_every_format_of_a_movie_arrives_exactly(self):
        for element, channels in (("u8", 1), ("u8", 3), ("u8", 4), ("u16", 1), ("u16", 4)):
            with self.subTest(element=element, channels=channels):
                name = f"{element}-{channels}"
                data = self.movie(name, (10, 20, 33), element, channels)
                receiver = self.receiver("--to", self.at(name + "-copy"), "--codec", "raw", "--latency", "1000")
                self.send(name, self.through(receiver), "--codec", "raw", "--fps", "50")
                self.assertEqual(receiver.end()["frames"], 10)
                np.testing.assert_array_equal(self.stored(name + "-copy", data), data)

    def test_frames_of_jpeg_arrive_in_their_order_and_look_alike(self):
        data = self.smooth_movie("film", 100)
        receiver = self.receiver("--to", self.at("copy"), "--times", self.at("times.csv"))
        loss = every(random_loss(0.02), bursts(0.03, 8))
        self.send("film", self.through(receiver, loss), "--fps", "50", "--fec", "60%")
        self.assertEqual(receiver.end()["lost"], 0)
        copy = self.stored("copy", data)
        self.assertEqual(self.numbers(copy), list(range(100)))
        error = np.abs(copy.astype(int) - data)[:, 16:].mean()
        self.assertLess(error, 8)
        with open(self.at("times.csv"), encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(row["frame"]) for row in rows], list(range(100)))
        for row in rows:
            self.assertAlmostEqual(int(row["timestamp_ns"]) / 1e9, int(row["frame"]) / 50, delta=0.0001)

    def test_a_window_and_a_level_are_sent(self):
        data = self.movie("film", (10, 40, 60))
        receiver = self.receiver("--to", self.at("copy"))
        self.send("film", self.through(receiver), "--codec", "raw", "--window", "t2+5,y8+20,x10+32")
        self.assertEqual(receiver.end()["frames"], 5)
        np.testing.assert_array_equal(self.stored("copy", data[:, :20, :32]), data[2:7, 8:28, 10:42])
        receiver = self.receiver("--to", self.at("coarse"))
        self.send("film", self.through(receiver), "--codec", "raw", "--level", "1")
        receiver.end()
        self.assertEqual(self.stored("coarse", data[:, :20, :30]).shape, (10, 20, 30))

    def test_lost_frames_are_counted_and_the_nearest_frame_stands_in_for_them(self):
        data = self.smooth_movie("film", 100)
        receiver = self.receiver("--to", self.at("copy"))
        sent = self.send("film", self.through(receiver, bursts(0.10, 8)), "--fps", "50", "--fec", "0%")
        received = receiver.end(status=4)
        self.assertEqual((sent["frames"], received["sent"], sent["packets"]["repair"]), (100, 100, 0))
        self.assertEqual(received["frames"] + received["lost"], 100)
        self.assertGreater(received["lost"], 2)
        numbers = self.numbers(self.stored("copy", data))
        self.assertEqual(len(numbers), received["frames"] + received["repeated"])
        first = numbers[0]
        self.assertEqual(len(set(numbers)), received["frames"])
        for place, number in enumerate(numbers):
            nearest = min(abs(other - first - place) for other in numbers)
            self.assertEqual(abs(number - first - place), nearest, numbers)

    def test_important_frames_arrive_over_a_network_that_loses_most_others(self):
        data = self.smooth_movie("film", 90)
        receiver = self.receiver("--to", self.at("copy"))
        self.send("film", self.through(receiver, random_loss(0.25)), "--fps", "50", "--fec", "0%", "--fec-important",
                  "150%", "--important-every", "3")
        received = receiver.end(status=4)
        numbers = set(self.numbers(self.stored("copy", data)))
        self.assertLessEqual(set(range(0, 90, 3)), numbers)
        self.assertGreater(received["lost"], 20)

    def test_a_file_keeps_the_frames_as_they_were_sent(self):
        self.smooth_movie("film", 20)
        file = os.path.join(self.volume.folder, "film.mkv")
        receiver = self.receiver("--to", file)
        self.send("film", self.through(receiver), "--fps", "50")
        self.assertEqual(receiver.end()["frames"], 20)
        told = run("ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=codec_name,nb_read_frames,width",
                   "-of", "csv=p=0", file)
        self.assertEqual(told.strip(), "mjpeg,160,20")
        self.assertRefused(f"already exists: {file}", "receive", "--port", "0", "--to", file)

    def test_frames_are_shown_as_they_arrive(self):
        data = self.movie("film", (10, 20, 32), channels=3)
        shown = os.path.join(self.volume.folder, "shown.rgb")
        receiver = self.receiver("--view", "--sink", f"filesink location={shown}", "--latency", "1000")
        self.send("film", self.through(receiver), "--codec", "raw", "--fps", "50")
        self.assertEqual(receiver.end()["frames"], 10)
        self.assertEqual(read_all(shown)[:data[0].nbytes], data[0].tobytes())


class Ends(Films):
    def test_a_receiver_keeps_what_came_when_the_sender_dies(self):
        data = self.movie("film", (500, 20, 32))
        receiver = self.receiver("--to", self.at("copy"), "--timeout", "1", "--latency", "1000")
        sender = subprocess.Popen([MDFS, "send", self.at("film"), "--to", f"127.0.0.1:{receiver.port}", "--codec",
                                   "raw", "--fps", "50", "--interval", "100"])
        harness.wait_until(lambda: os.path.exists(self.at("copy")) and os.stat(self.at("copy")).st_size > 6400)
        sender.kill()
        sender.wait()
        received = receiver.end(status=4)
        self.assertTrue(received["timed_out"])
        self.assertIsNone(received["sent"])
        self.assertIn("nothing came for 1 s", receiver.said)
        copy = self.stored("copy", data)
        self.assertEqual(len(copy), received["frames"])
        np.testing.assert_array_equal(copy, data[:len(copy)])

    def test_a_signal_ends_a_receiver_with_what_came(self):
        data = self.movie("film", (500, 20, 32))
        receiver = self.receiver("--to", self.at("copy"), "--latency", "1000")
        sender = subprocess.Popen([MDFS, "send", self.at("film"), "--to", f"127.0.0.1:{receiver.port}", "--codec",
                                   "raw", "--fps", "50", "--interval", "100"], stderr=subprocess.PIPE, text=True)
        harness.wait_until(lambda: os.path.exists(self.at("copy")) and os.stat(self.at("copy")).st_size > 6400)
        receiver.process.send_signal(signal.SIGINT)
        received = receiver.end()
        self.assertFalse(received["timed_out"])
        copy = self.stored("copy", data)
        np.testing.assert_array_equal(copy, data[:len(copy)])
        sender.send_signal(signal.SIGTERM)
        self.assertIn("stopped by a signal", sender.communicate(timeout=LIMIT_S)[1])

    def test_a_signal_ends_a_receiver_to_which_nothing_came(self):
        for to in (("--to", self.at("copy")), ("--view", "--sink", "fakesink")):
            receiver = self.receiver(*to)
            receiver.process.send_signal(signal.SIGINT)
            received = receiver.end()
            self.assertEqual((received["frames"], received["sent"], received["lost"]), (0, None, 0))
        self.assertFalse(os.path.exists(self.at("copy")))

    def test_datagrams_from_elsewhere_do_not_disturb(self):
        data = self.movie("film", (20, 20, 32))
        receiver = self.receiver("--to", self.at("copy"), "--latency", "1000")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for length in (0, 1, 11, 12, 100, 1400):
                stranger.sendto(b"\x4d" + bytes(length), ("127.0.0.1", receiver.port))
                stranger.sendto(RNG.bytes(length), ("127.0.0.1", receiver.port))
            self.send("film", self.through(receiver), "--codec", "raw", "--fps", "50")
        self.assertEqual(receiver.end()["frames"], 20)
        np.testing.assert_array_equal(self.stored("copy", data), data)


class Play(Films):
    def test_every_sample_is_shown(self):
        data = self.movie("film", (30, 20, 32), channels=3)
        shown = os.path.join(self.volume.folder, "played.rgb")
        run(MDFS, "play", self.at("film"), "--sink", f"filesink location={shown}")
        self.assertEqual(read_all(shown), data.tobytes())
        run(MDFS, "play", self.at("film"), "--window", "t3+4,c1", "--fps", "10", "--sink", f"filesink location={shown}")
        self.assertEqual(read_all(shown), data[3:7, ..., 1].tobytes())
        run(MDFS, "play", self.at("film"), "--level", "1", "--sink", f"filesink location={shown}")
        self.assertEqual(os.stat(shown).st_size, 30 * 10 * 16 * 3)

    def test_with_a_reserved_rate_every_sample_is_the_same(self):
        data = self.movie("film", (30, 20, 32), channels=3)
        shown = os.path.join(self.volume.folder, "reserved.rgb")
        sink = f"filesink location={shown}"
        run(MDFS, "play", self.at("film"), "--reserve", "--fps", "60", "--sink", sink)
        self.assertEqual(read_all(shown), data.tobytes())
        receiver = self.receiver("--to", self.at("copy"))
        self.send("film", self.through(receiver), "--codec", "raw", "--fps", "50", "--reserve")
        self.assertEqual(receiver.end()["frames"], 30)
        np.testing.assert_array_equal(self.stored("copy", data), data)
        film = self.at("film")
        self.assertRefused("has time for", "play", film, "--reserve", "--fps", "900000", "--sink", "fakesink")
        self.assertRefused("no level is stored that is coarser", "play", film, "--reserve", "--coarser", "--sink",
                           "fakesink")
        self.assertRefused("--coarser requires --reserve", "play", film, "--coarser", "--sink", "fakesink")

    def test_a_window_on_the_screen_shows_the_movie(self):
        if shutil.which("Xvfb") is None:
            self.skipTest("Xvfb is not installed")
        colour = (200, 40, 90)
        data = np.broadcast_to(np.array(colour, "u1"), (300, 96, 160, 3))
        make_image(self.at("film"), data.shape[:3], channels=3, axes="tyx")
        write_all(self.at("film"), data.tobytes())
        server = subprocess.Popen(["Xvfb", "-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp",
                                   "-noreset"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.terminate)
        display = ":" + server.stdout.readline().strip()
        viewer = subprocess.Popen([MDFS, "play", self.at("film"), "--fps", "10"], text=True, stderr=subprocess.PIPE,
                                  env={**os.environ, "DISPLAY": display})
        self.addCleanup(viewer.communicate)
        self.addCleanup(viewer.kill)

        def is_shown():
            grabbed = subprocess.run(["ffmpeg", "-loglevel", "error", "-f", "x11grab", "-video_size", "160x96", "-i",
                                      display, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                                     capture_output=True, check=True).stdout
            return (np.frombuffer(grabbed, "u1").reshape(-1, 3) == colour).all()

        harness.wait_until(is_shown, viewer)
        viewer.send_signal(signal.SIGINT)
        self.assertEqual(viewer.wait(LIMIT_S), 0)

    def test_without_a_screen_the_error_says_it(self):
        self.movie("film", (3, 20, 32))
        # The plugins of X11 alone: others show frames on a console.
        system = run("pkg-config", "--variable=pluginsdir", "gstreamer-1.0").strip()
        os.mkdir(self.at("plugins"))
        for name in ("autodetect", "coreelements", "videoconvertscale", "ximagesink"):
            os.symlink(f"{system}/libgst{name}.so", self.at("plugins", f"libgst{name}.so"))
        without = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        without |= {"GST_PLUGIN_SYSTEM_PATH": self.at("plugins"), "GST_REGISTRY": self.at("registry")}
        for environment, words in ((without, "neither DISPLAY nor WAYLAND_DISPLAY is set"),
                                   ({**without, "DISPLAY": ":1993"}, "cannot show frames on this screen")):
            done = subprocess.run([MDFS, "play", self.at("film")], env=environment, capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
            self.assertIn(words, done.stderr)
            self.assertNotEqual(done.returncode, 0)

    def test_what_is_not_installed_is_named_with_its_package(self):
        self.movie("film", (3, 20, 32))
        environment = {**os.environ, "GST_PLUGIN_PATH": "/nowhere", "GST_REGISTRY": self.at("registry")}
        done = subprocess.run([MDFS, "play", self.at("film"), "--sink", "fakesink"], env=environment,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertIn("GStreamer has no element mdfssrc: install mdfs-gstreamer", done.stderr)

    def test_errors_name_the_option_or_the_file(self):
        self.movie("film", (3, 20, 32))
        film = self.at("film")
        self.assertRefused(f"not found: {self.at('none')}", "play", self.at("none"), "--sink", "fakesink")
        self.assertRefused("abc: --fps requires frames a second above 0", "play", film, "--fps", "abc", "--sink",
                           "fakesink")
        self.assertRefused("0: --fps requires", "play", film, "--fps", "0", "--sink", "fakesink")
        self.assertRefused("9+90 along axis y is outside", "play", film, "--window", "y9+90", "--sink", "fakesink")
        self.assertRefused("no-such-sink", "play", film, "--sink", "no-such-sink")
        self.assertRefused("here: --to requires HOST:PORT", "send", film, "--to", "here")
        self.assertRefused("here:0: --to requires a port, 1 to 65535", "send", film, "--to", "here:0")
        self.assertRefused("201%: --fec requires a percentage, 0% to 200%", "send", film, "--to", "127.0.0.1:9",
                           "--fec", "201%")
        self.assertRefused("one of --to and --view is required", "receive", "--port", "0")
        self.assertRefused("film", "receive", "--port", "0", "--to", film)


if __name__ == "__main__":
    harness.main()
