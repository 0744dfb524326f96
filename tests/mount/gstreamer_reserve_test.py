"""The GStreamer element mdfssrc with reserve=true: the disks keep time for the rate, and the frames are the same.

No test depends on how long anything takes.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os

import gst_player
import harness
from gst_player import Gst, Player, PlayerError, bytes_of, np, numbers, play, shown
from harness import MDFS, make_image, run, write_all

RNG = np.random.default_rng(23)
FAST = 60  # frames a second: little for a disk of a busy machine, and tests need not wait long


class Movies(harness.MountTest):
    def film(self, name="film", shape=(60, 20, 33), element="u8", channels=1):
        data = RNG.integers(0, 250, (*shape, *([channels] if channels > 1 else []))).astype(harness.NUMPY[element])
        make_image(self.at(name), shape, element=element, channels=channels, axes="tyx")
        write_all(self.at(name), data.tobytes())
        return data

    def player(self, name="film", fps=FAST, **properties):
        return Player(self.at(name), reserve="true", fps=fps, **properties)

    def listed(self):
        return json.loads(run(MDFS, "stream", "list", "--json", self.dir))["streams"]

    def assertRefused(self, words, name="film", **properties):
        with self.assertRaises(PlayerError) as caught, Player(self.at(name), **properties) as player:
            player.set_state(Gst.State.PLAYING)
            player.rest()
        self.assertIn(words, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(self.listed(), [])


class Reserved(Movies):
    def test_every_pixel_of_each_format(self):
        for element, channels, width in (("u8", 1, 32), ("u8", 1, 33), ("u8", 3, 33), ("u16", 1, 31), ("u16", 3, 33),
                                         ("f32", 1, 33)):
            with self.subTest(element=element, channels=channels, width=width):
                name = f"{element}-{channels}-{width}"
                self.film(name, (9, 20, width), element, channels)
                run(MDFS, "image", "display", "--range", "auto", self.at(name))
                caps, buffers = play(self.at(name))
                again, reserved = play(self.at(name), reserve="true", fps=FAST)
                self.assertEqual(again.get_string("format"), caps.get_string("format"))
                self.assertEqual([bytes_of(b) for b in reserved], [bytes_of(b) for b in buffers])

    def test_a_window_of_frames_and_a_stored_level(self):
        data = self.film()
        _, buffers = play(self.at("film"), window="t7+20,y3+10", reserve="true", fps=FAST)
        self.assertEqual([bytes_of(b) for b in buffers], [shown(f[3:13].copy()) for f in data[7:27]])
        self.assertEqual(numbers(buffers), list(range(20)))
        self.assertRefused("level 1 is not stored", level=1, reserve="true")
        run(MDFS, "image", "levels", "--set", "1", self.at("film"))
        _, buffers = play(self.at("film"), level=1, reserve="true", fps=FAST)
        self.assertEqual([bytes_of(b) for b in buffers],
                         [shown(np.load(self.at(f"film@/win/l1,t{t}.npy"))) for t in range(60)])

    def test_seeks_in_both_directions_and_at_other_speeds(self):
        data = self.film()
        with self.player() as player:
            player.set_state(Gst.State.PAUSED)
            for rate, start, stop, frames in ((1, 10, 20, range(10, 20)), (-1, 5, 30, range(29, 4, -1)),
                                              (2, 0, 60, range(60)), (-3, 0, 60, range(59, -1, -1)),
                                              (1, 55, 60, range(55, 60)), (1, 0, 3, range(3))):
                with self.subTest(rate=rate, start=start):
                    player.set_state(Gst.State.PAUSED)
                    self.assertTrue(player.seek(rate, Gst.Format.DEFAULT, start, stop))
                    player.set_state(Gst.State.PLAYING)
                    buffers = player.rest()
                    self.assertEqual(numbers(buffers), list(frames))
                    self.assertEqual([bytes_of(b) for b in buffers], [shown(data[f]) for f in frames])

    def test_pauses_lose_and_repeat_no_frame(self):
        self.film()
        with self.player(ahead=3) as player:
            player.set_state(Gst.State.PLAYING)
            seen = []
            for _ in range(5):
                seen += [player.next() for _ in range(8)]
                player.set_state(Gst.State.PAUSED)
                player.set_state(Gst.State.PLAYING)
            seen += player.rest()
        self.assertEqual(numbers(seen), list(range(60)))

    def test_the_stream_is_listed_while_the_movie_plays(self):
        self.film()
        with self.player(fps=24, ahead=2) as player:
            player.set_state(Gst.State.PLAYING)
            player.next()
            stream, = self.listed()
            self.assertEqual(round(stream["rate"], 3), 24.024)
            self.assertEqual(stream["inode"], os.stat(self.at("film")).st_ino)
        self.assertEqual(self.listed(), [])


class Refused(Movies):
    def test_a_rate_that_the_disks_have_no_time_for(self):
        self.film()
        self.assertRefused("has time for", reserve="true", fps=900000)
        self.assertRefused("must be 0.001 to 1000000", reserve="true", fps=10_000_000)

    def test_a_speed_that_the_disks_have_no_time_for_leaves_the_movie_as_it_was(self):
        self.film()
        with self.player(ahead=2) as player:
            player.set_state(Gst.State.PAUSED)
            self.assertFalse(player.seek(15000, Gst.Format.DEFAULT, 0))
            self.assertTrue(player.seek(1, Gst.Format.DEFAULT, 50))
            player.set_state(Gst.State.PLAYING)
            self.assertEqual(numbers(player.rest()), list(range(50, 60)))

    def test_coarser_levels(self):
        self.film()
        self.assertRefused("reserve=true is missing", coarser="true")
        self.assertRefused("no level is stored that is coarser", coarser="true", reserve="true")
        run(MDFS, "image", "levels", "--set", "1", self.at("film"))
        with self.player(coarser="true") as player:
            player.set_state(Gst.State.PLAYING)
            self.assertEqual(len(player.rest()), 60)
            self.assertLessEqual(player.source.get_property("from-coarser"), 60)

    def test_a_stream_that_somebody_closes_ends_the_movie_with_an_error(self):
        self.film()
        with self.player(fps=24, ahead=2) as player:
            player.set_state(Gst.State.PLAYING)
            player.next()
            run(MDFS, "stream", "close", self.dir, str(self.listed()[0]["id"]))
            with self.assertRaises(PlayerError):
                player.rest()


class WithoutStreams(harness.MountTest):
    options = "cache=64M,streams=off"

    def test_a_mount_without_streams(self):
        make_image(self.at("film"), (5, 20, 33), axes="tyx")
        with self.assertRaises(PlayerError) as caught, Player(self.at("film"), reserve="true") as player:
            player.set_state(Gst.State.PLAYING)
        self.assertIn("the mount has no streams (-o streams=off)", str(caught.exception))


if __name__ == "__main__":
    gst_player.main("mdfssrc")
