"""`mdfs wall`: panels show the same frame at each tick, also one that was killed and has come back."""
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import harness
from harness import MDFS, make_image, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of walls need numpy")
    sys.exit(harness.SKIP)

RATE = 10
FRAME_S = 1 / RATE
PANELS = 3
HEIGHT, WIDTH = 8, 16  # of a panel
LIMIT_S = 60
MOST_OFF = 0.1  # of the frames, on a machine with other work


class Screen(threading.Thread):
    """What a panel shows, and when: its pipeline ends in a UDP sink that waits for the clock."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.shown = []  # (time, frame number, number of the panel)

    def run(self):
        while True:
            data = self.socket.recv(65536)
            now = time.monotonic()
            if data == b"stop":
                return
            pixels = np.frombuffer(data, "u1")
            self.shown.append((now, int(pixels[0]) + 256 * int(pixels[1]), int(pixels[2])))

    def stop(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"stop", self.socket.getsockname())
        self.join()
        self.socket.close()


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Wall(harness.MountTest):
    def setUp(self):
        super().setUp()
        self.screens = [Screen() for _ in range(PANELS)]
        for screen in self.screens:
            screen.start()
            self.addCleanup(screen.stop)
        self.layout = self.at("wall.toml")

    def movie(self, frames):
        """Each panel's window begins with the number of the frame, in two bytes, and that of the panel."""
        data = np.zeros((frames, HEIGHT, PANELS * WIDTH), "u1")
        for panel in range(PANELS):
            data[:, 0, panel * WIDTH] = np.arange(frames) % 256
            data[:, 0, panel * WIDTH + 1] = np.arange(frames) // 256
            data[:, 0, panel * WIDTH + 2] = panel
        make_image(self.at("film"), data.shape, axes="tyx")
        write_all(self.at("film"), data.tobytes())

    def write_layout(self, started=PANELS):
        lines = [f"port = {free_port()}", f'fps = "{RATE}"']
        for number, screen in enumerate(self.screens):
            lines += ["[[panel]]", f'name = "panel{number}"', f'window = "x{number * WIDTH}+{WIDTH}"',
                      f'sink = "udpsink host=127.0.0.1 port={screen.port} sync=true"',
                      f"start = {'true' if number < started else 'false'}"]
        write_all(self.layout, "\n".join(lines).encode() + b"\n")

    def start(self, *options):
        process = subprocess.Popen([MDFS, "wall", self.layout, self.at("film"), *options], stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def command(self, wall, text):
        wall.stdin.write(text + "\n")
        wall.stdin.flush()

    def wait_for_frame(self, number, screens=None):
        harness.wait_until(lambda: all(any(frame >= number for _, frame, _ in screen.shown)
                                       for screen in screens or self.screens), seconds=LIMIT_S)

    def assertInSync(self, shown, most_missing=0):
        """Panels show the frames of their windows, each within half a tick of the others; which frames they are."""
        times = []
        for number, one in enumerate(shown):
            self.assertEqual({panel for _, _, panel in one}, {number})
            times.append({frame: when for when, frame, _ in one})
        common = set.intersection(*(set(one) for one in times))
        everything = set.union(*(set(one) for one in times))
        self.assertLessEqual(len(everything - common), most_missing)
        apart = {frame: max(one[frame] for one in times) - min(one[frame] for one in times) for frame in common}
        off = {frame: seconds for frame, seconds in apart.items() if seconds > FRAME_S / 2}
        self.assertLessEqual(len(off), MOST_OFF * len(common), off)
        return common

    def since(self, counts):
        return [screen.shown[count:] for screen, count in zip(self.screens, counts)]

    def counts(self):
        return [len(screen.shown) for screen in self.screens]

    def test_all_panels_show_the_same_frame_at_each_tick(self):
        self.movie(50)
        self.write_layout()
        wall = self.start()
        self.assertEqual(wall.wait(LIMIT_S), 0, wall.stderr)
        # The first frame is shown twice: when the panel is ready, and when the movie begins.
        self.assertEqual(self.assertInSync([screen.shown for screen in self.screens]), set(range(50)))

    def test_a_panel_that_was_killed_and_started_again_is_in_sync(self):
        self.movie(150)
        self.write_layout(started=PANELS - 1)
        wall = self.start()
        panel = self.start("--panel", f"panel{PANELS - 1}")
        self.wait_for_frame(10)
        panel.kill()
        panel.wait()
        gone = len(self.screens[-1].shown)
        self.wait_for_frame(25, self.screens[:-1])
        self.start("--panel", f"panel{PANELS - 1}")
        harness.wait_until(lambda: len(self.screens[-1].shown) > gone + 25, seconds=LIMIT_S)
        back = self.screens[-1].shown[gone + 2:]  # the frame it gets ready with, and the first one, come early
        self.assertGreater(back[0][1], 25)
        others = [[one for one in screen.shown if back[0][1] <= one[1] <= back[-1][1]]
                  for screen in self.screens[:-1]]
        self.assertGreater(len(self.assertInSync([*others, back], most_missing=2)), 15)
        self.command(wall, "quit")
        self.assertEqual(wall.wait(LIMIT_S), 0)

    def test_panels_pause_seek_and_play_together(self):
        self.movie(200)
        self.write_layout()
        wall = self.start()
        self.wait_for_frame(8)
        self.command(wall, "pause")
        time.sleep(1)
        paused = self.counts()
        time.sleep(0.5)
        self.assertEqual(self.counts(), paused)
        self.assertEqual(len({screen.shown[-1][1] for screen in self.screens}), 1)
        before = self.screens[0].shown[-1][1]
        self.command(wall, "play")
        harness.wait_until(lambda: min(len(one) for one in self.since(paused)) > 10, seconds=LIMIT_S)
        played = self.since(paused)
        self.assertLessEqual(min(frame for one in played for _, frame, _ in one), before + 1)
        self.command(wall, "seek 12")
        self.wait_for_frame(145)
        after = [[one for one in screen.shown if one[1] >= 121] for screen in self.screens]
        self.assertGreater(len(self.assertInSync(after, most_missing=2)), 15)
        self.command(wall, "quit")
        self.assertEqual(wall.wait(LIMIT_S), 0)

    def test_a_signal_ends_the_wall_and_its_panels(self):
        self.movie(200)
        self.write_layout()
        wall = self.start()
        self.wait_for_frame(5)
        wall.send_signal(signal.SIGTERM)
        self.assertEqual(wall.wait(LIMIT_S), 0)
        counts = self.counts()
        time.sleep(0.3)
        self.assertEqual(self.counts(), counts)

    def test_errors_name_the_file_the_line_and_the_field(self):
        self.movie(3)
        for text, words in (("", "wall.toml:1: port: is missing"),
                            ("port = 0", "wall.toml:1: port: 0 is not in 1..65535"),
                            ("port = 5\nsize = 3\n[[panel]]\nname = \"a\"\nwindow = \"x0\"", "size: is not a field"),
                            ("port = 5", "panel: a wall has one [[panel]] or more"),
                            ("port = 5\n[[panel]]\nname = \"a b\"\nwindow = \"x0\"",
                             "panel[0].name: is made of letters, digits, - and _"),
                            ("port = 5\n[[panel]]\nname = \"a\"", "panel[0].window: is missing"),
                            ("port = 5\n" + "[[panel]]\nname = \"a\"\nwindow = \"x0\"\n" * 2,
                             "two panels have the name a")):
            with self.subTest(words):
                write_all(self.layout, text.encode())
                done = subprocess.run([MDFS, "wall", self.layout, self.at("film")], capture_output=True, text=True,
                                      timeout=LIMIT_S, check=False)
                self.assertIn(words, done.stderr)
                self.assertNotEqual(done.returncode, 0)
        self.write_layout()
        done = subprocess.run([MDFS, "wall", self.layout, self.at("film"), "--panel", "none"], capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)
        self.assertIn("the layout has no panel none", done.stderr)
        done = subprocess.run([MDFS, "wall", self.layout, os.path.join(self.dir, "none")], capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)
        self.assertIn("all panels of this machine have ended before the movie began", done.stderr)


if __name__ == "__main__":
    harness.main()
