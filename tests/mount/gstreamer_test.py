"""The GStreamer element mdfssrc plays images: every pixel, time stamps, seeks, late frames, errors.

No test depends on how long anything takes.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import threading

import gst_player
import harness
from gst_player import Gst, Player, PlayerError, begin_of, bytes_of, launch, np, numbers, play, shown
from harness import MDFS, make_image, read_all, run, write_all

RNG = np.random.default_rng(23)


class Movies(harness.MountTest):
    def image(self, name, shape, element="u8", channels=1, spacing=None, **options):
        full = [*shape, *([channels] if channels > 1 else [])]
        data = RNG.integers(0, 250, full).astype(harness.NUMPY[element])
        if element == "u16":
            data *= 261
        if spacing:
            run(MDFS, "image", "create", self.at(name), "--shape", "x".join(map(str, shape)), "--type", element,
                "--channels", channels, "--axes", options["axes"], "--spacing", spacing)
        else:
            make_image(self.at(name), shape, element=element, channels=channels, **options)
        write_all(self.at(name), data.tobytes())
        return data

    def film(self, frames=12, **options):
        """Each frame has other samples."""
        return self.image("film", (frames, 20, 33), axes="tyx", **options)

    def assertRefused(self, words, location=None, **properties):
        location = self.at("film") if location is None else location
        with self.assertRaises(PlayerError) as caught, Player(location, **properties) as player:
            player.set_state(Gst.State.PLAYING)
            player.rest()
        self.assertIn(words, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))


class Pixels(Movies):
    def test_every_pixel_of_each_exact_format(self):
        for element, channels, name in (("u8", 1, "GRAY8"), ("u8", 3, "RGB"), ("u8", 4, "RGBA"),
                                        ("u16", 1, "GRAY16_LE"), ("u16", 3, "RGBA64_LE"), ("u16", 4, "RGBA64_LE")):
            for width in (32, 33):
                with self.subTest(element=element, channels=channels, width=width):
                    path = f"{element}-{channels}-{width}"
                    data = self.image(path, (7, 20, width), element, channels, axes="tyx")
                    if (element, channels) == ("u16", 3):
                        data = np.concatenate([data, np.full((*data.shape[:3], 1), 65535, "<u2")], axis=-1)
                    caps, buffers = play(self.at(path))
                    self.assertEqual(caps.get_string("format"), name)
                    self.assertEqual((caps.get_int("width")[1], caps.get_int("height")[1]), (width, 20))
                    self.assertEqual([bytes_of(b) for b in buffers], [shown(frame) for frame in data])

    def test_other_types_are_shown_through_the_display_range(self):
        for element in ("i8", "u32", "i64", "f16", "f32", "f64"):
            for channels, name in ((1, "GRAY8"), (3, "RGB")):
                with self.subTest(element=element, channels=channels):
                    path = self.at(f"{element}-{channels}")
                    data = self.image(f"{element}-{channels}", (3, 20, 33), element, channels, axes="tyx")
                    self.assertRefused(f"{channels} channel{'s' * (channels > 1)} of {element} cannot be shown", path)
                    run(MDFS, "image", "display", "--range=-20,200", path)
                    caps, buffers = play(path)
                    self.assertEqual(caps.get_string("format"), name)
                    share = np.clip((data.astype("f8") + 20) / 220, 0, 1)
                    as_bytes = np.floor(share * 255 + 0.5).astype("u1")
                    self.assertEqual([bytes_of(b) for b in buffers], [shown(frame) for frame in as_bytes])

    def test_the_display_range_shows_what_the_png_windows_show(self):
        from PIL import Image  # pylint: disable=import-outside-toplevel
        self.image("deep", (3, 20, 33), "f32", axes="tyx")
        run(MDFS, "image", "display", "--range", "auto", self.at("deep"))
        _, buffers = play(self.at("deep"))
        for t, buffer in enumerate(buffers):
            with Image.open(self.at(f"deep@/win/t{t}.png")) as picture:
                self.assertEqual(bytes_of(buffer), shown(np.asarray(picture)))

    def test_formats_that_gstreamer_does_not_have_are_refused(self):
        self.image("film", (3, 20, 33), channels=2, axes="tyx")
        self.assertRefused("2 channels of u8 cannot be shown: allowed are 1, 3 or 4 channels")
        _, buffers = play(self.at("film"), window="c1")
        self.assertEqual(len(buffers), 3)

    def test_the_window_and_the_level_are_played(self):
        data = self.image("film", (9, 40, 60), channels=3, axes="tyx")
        _, buffers = play(self.at("film"), window="y7+20,x11+30")
        self.assertEqual([bytes_of(b) for b in buffers], [shown(f[7:27, 11:41].copy()) for f in data])
        _, buffers = play(self.at("film"), window="t2+5,c1")
        self.assertEqual([bytes_of(b) for b in buffers], [shown(f[..., 1].copy()) for f in data[2:7]])
        for properties in ({"level": 1, "window": "y3+10"}, {"window": "l1,y3+10"}):
            caps, buffers = play(self.at("film"), **properties)
            self.assertEqual((caps.get_int("width")[1], caps.get_int("height")[1]), (30, 10))
            for t, buffer in enumerate(buffers):
                self.assertEqual(bytes_of(buffer), shown(np.load(self.at(f"film@/win/l1,t{t},y3+10.npy"))))

    def test_each_axis_may_be_the_rows_or_the_frames(self):
        data = self.image("volumes", (5, 6, 20, 33), axes="tzyx")
        self.assertRefused("the window leaves z, y, x beside t", self.at("volumes"))
        for window, frames in (("z2", data[:, 2]), ("y7", data[:, :, 7]), ("x3", data[..., 3]),
                               ("z1,y2", data[:, 1, 2:3])):
            _, buffers = play(self.at("volumes"), window=window)
            self.assertEqual([bytes_of(b) for b in buffers], [shown(f.copy()) for f in frames], window)
        data = self.image("stack", (8, 20, 33))
        _, buffers = play(self.at("stack"))
        self.assertEqual([bytes_of(b) for b in buffers], [shown(f) for f in data])
        data = self.image("crossed", (20, 7, 33), axes="ytx")
        _, buffers = play(self.at("crossed"))
        self.assertEqual([bytes_of(b) for b in buffers], [shown(data[:, t].copy()) for t in range(7)])

    def test_gst_launch_writes_the_whole_movie(self):
        data = self.image("film", (50, 20, 32), channels=3, axes="tyx")
        copy = os.path.join(self.volume.folder, "copy.rgb")
        self.assertEqual(launch("mdfssrc", f"location={self.at('film')}", "!", "filesink", f"location={copy}"), (0, ""))
        self.assertEqual(read_all(copy), data.tobytes())


class Times(Movies):
    def rate(self, name, **properties):
        caps, buffers = play(self.at(name), **properties)
        _, numerator, denominator = caps.get_fraction("framerate")
        for frame, buffer in enumerate(buffers):
            self.assertEqual(buffer.pts, begin_of(frame, numerator, denominator))
            self.assertEqual(buffer.duration, begin_of(frame + 1, numerator, denominator) - buffer.pts)
            self.assertEqual((buffer.offset, buffer.offset_end), (frame, frame + 1))
        return numerator, denominator

    def test_the_rate_is_that_of_the_property_or_of_the_spacing(self):
        for name, spacing in (("seconds", "0.04,1,1s"), ("millis", "40,1,1ms"), ("ntsc", "0.0333666667,1,1s"),
                              ("length", "40,1,1um")):
            self.image(name, (30, 4, 4), axes="tyx", spacing=spacing)
        self.film()
        self.assertEqual(self.rate("seconds"), (25, 1))
        self.assertEqual(self.rate("millis"), (25, 1))
        self.assertEqual(self.rate("ntsc"), (30000, 1001))
        self.assertEqual(self.rate("length"), (24, 1))
        self.assertEqual(self.rate("film"), (24, 1))
        self.assertEqual(self.rate("seconds", fps="30000/1001"), (30000, 1001))
        self.assertEqual(self.rate("seconds", fps=50), (50, 1))

    def test_the_duration_is_known_in_both_formats(self):
        self.film(11)
        with Player(self.at("film")) as player:
            player.set_state(Gst.State.PAUSED)
            self.assertEqual(player.source.query_duration(Gst.Format.TIME), (True, begin_of(11)))
            self.assertEqual(player.source.query_duration(Gst.Format.DEFAULT), (True, 11))
            for frame in range(12):
                self.assertEqual(player.source.query_convert(Gst.Format.DEFAULT, frame, Gst.Format.TIME),
                                 (True, begin_of(frame)))
                self.assertEqual(player.source.query_convert(Gst.Format.TIME, begin_of(frame), Gst.Format.DEFAULT),
                                 (True, frame))
            for unit in (Gst.Format.TIME, Gst.Format.DEFAULT):
                query = Gst.Query.new_seeking(unit)
                self.assertTrue(player.source.query(query))
                self.assertTrue(query.parse_seeking()[1])

    def test_a_seek_to_a_frame_shows_that_frame(self):
        data = self.film(30)
        with Player(self.at("film")) as player:
            player.set_state(Gst.State.PAUSED)
            for frame in RNG.permutation(30).tolist():
                inside = begin_of(frame) + int(RNG.integers(0, begin_of(1)))
                for unit, start in ((Gst.Format.DEFAULT, frame), (Gst.Format.TIME, begin_of(frame)),
                                    (Gst.Format.TIME, inside)):
                    self.assertTrue(player.seek(1, unit, start))
                    buffer = player.sink.emit("pull-preroll").get_buffer()
                    self.assertEqual((buffer.offset, buffer.pts), (frame, begin_of(frame)))
                    self.assertEqual(bytes_of(buffer), shown(data[frame]))

    def test_a_seek_plays_from_its_start_to_its_stop(self):
        self.film(30)
        with Player(self.at("film")) as player:
            player.set_state(Gst.State.PLAYING)
            self.assertTrue(player.seek(1, Gst.Format.DEFAULT, 4, 9))
            self.assertEqual(numbers(player.rest()), [4, 5, 6, 7, 8])
            self.assertTrue(player.seek(1, Gst.Format.TIME, begin_of(7), begin_of(9)))
            self.assertEqual(numbers(player.rest()), [7, 8])
            self.assertTrue(player.seek(2, Gst.Format.DEFAULT, 25))
            self.assertEqual(numbers(player.rest()), [25, 26, 27, 28, 29])
            self.assertTrue(player.seek(1, Gst.Format.DEFAULT, -3, start_type=Gst.SeekType.END))
            self.assertEqual(numbers(player.rest()), [27, 28, 29])
            self.assertTrue(player.seek(1, Gst.Format.TIME, begin_of(30)))
            self.assertEqual(numbers(player.rest()), [])
            self.assertTrue(player.seek(1, Gst.Format.DEFAULT, 1 << 60))
            self.assertEqual(numbers(player.rest()), [])
            self.assertTrue(player.seek(1, Gst.Format.DEFAULT, 0))
            self.assertEqual(numbers(player.rest()), list(range(30)))

    def test_a_negative_rate_plays_backwards(self):
        data = self.film(30)
        with Player(self.at("film")) as player:
            player.set_state(Gst.State.PLAYING)
            for unit, stop in ((Gst.Format.DEFAULT, 9), (Gst.Format.TIME, begin_of(9))):
                self.assertTrue(player.seek(-1, unit, 0, stop))
                buffers = player.rest()
                self.assertEqual(numbers(buffers), [8, 7, 6, 5, 4, 3, 2, 1, 0])
                self.assertEqual([bytes_of(b) for b in buffers], [shown(f) for f in data[8::-1]])
                self.assertEqual([b.pts for b in buffers], [begin_of(f) for f in range(8, -1, -1)])
            self.assertTrue(player.seek(-1, Gst.Format.DEFAULT, 3, 6))
            self.assertEqual(numbers(player.rest()), [5, 4, 3])
            self.assertTrue(player.seek(-2.5, Gst.Format.DEFAULT, 26))
            self.assertEqual(numbers(player.rest()), [29, 28, 27, 26])

    def test_the_end_comes_after_the_last_frame(self):
        self.film(12)
        for lookahead in (1, 2, 256):
            _, buffers = play(self.at("film"), lookahead=lookahead)
            self.assertEqual(numbers(buffers), list(range(12)))

    def test_late_frames_are_skipped_and_counted(self):
        data = self.film(40)
        with Player(self.at("film"), ahead=1) as player:
            player.set_state(Gst.State.PLAYING)
            buffers = [player.next()]
            # The sink says that a frame of frame 10's time was late by the time of 5 frames.
            late = Gst.Event.new_qos(Gst.QOSType.UNDERFLOW, 2.0, begin_of(5), begin_of(10))
            self.assertTrue(player.source.get_static_pad("src").send_event(late))
            buffers += player.rest()
            shown_early = [n for n in numbers(buffers) if n < 20]
            # Frame 20 is the first in time. Those before it: that of the sink, and those on their way there.
            self.assertEqual(numbers(buffers)[len(shown_early):], list(range(20, 40)))
            self.assertLess(len(shown_early), 6)
            self.assertEqual([bytes_of(b) for b in buffers], [shown(data[n]) for n in numbers(buffers)])
            dropped = player.source.get_property("dropped")
            self.assertEqual(dropped, 20 - len(shown_early))
            self.assertTrue(buffers[len(shown_early)].has_flags(Gst.BufferFlags.DISCONT))
            self.assertEqual([message.src for message in player.dropped], [player.source])
            self.assertEqual(player.dropped[0].parse_qos_stats()[2], dropped)
            self.assertTrue(player.seek(1, Gst.Format.DEFAULT, 0))
            self.assertEqual(numbers(player.rest()), list(range(40)), "a seek begins anew")


class Failures(Movies):
    def test_bad_properties_are_refused_with_what_is_allowed(self):
        self.film()
        self.image("picture", (20, 30))
        write_all(self.at("file"), b"no image")
        make_image(self.at("empty"), (0, 20, 30), axes="tyx")
        self.assertRefused("location is not set", location="", window="t0")
        self.assertRefused("not found: ", self.at("missing"))
        self.assertRefused("not an image", self.at("file"))
        self.assertRefused("directory", self.dir)
        self.assertRefused("", os.path.join(self.volume.folder, "disk0"))
        self.assertRefused("the image has no frames", self.at("empty"))
        self.assertRefused("an image of 2 axes is no movie", self.at("picture"))
        self.assertRefused("level is -1: allowed are 0 to 62", level=-1)
        self.assertRefused("level 40 is not in 0..6", level=40)
        self.assertRefused("fps is -3/1: allowed are", fps="-3")
        self.assertRefused("fps is 2000000000/1", fps="2000000000")
        self.assertRefused("lookahead is 0: allowed are 1 to 256 frames", lookahead=0)
        self.assertRefused("lookahead is 100000", lookahead=100000)
        for window in ("q3", "y30", "t12", "y0+0", "l2,l1", "y-1+5,clip", "c1", ",", "cut,0,0,0,1,0,0,0,1,0,8,8",
                       "\u00e9" * 400, "%s%n"):
            with self.subTest(window=window):
                self.assertRefused(self.at("film"), window=window)
        for word in ("fps=fast", "level=high", "lookahead=many", "colour=red"):
            with self.subTest(word=word):
                status, text = launch("mdfssrc", f"location={self.at('film')}", word, "!", "fakesink")
                self.assertNotEqual(status, 0)
                self.assertIn(word.split("=", maxsplit=1)[0], text)

    def test_gst_launch_shows_the_error(self):
        status, text = launch("mdfssrc", f"location={self.at('missing')}", "!", "fakesink")
        self.assertNotEqual(status, 0)
        self.assertIn("missing", text)

    def test_an_image_that_shrinks_is_an_error(self):
        self.film(40)
        with Player(self.at("film"), ahead=1, lookahead=2) as player:
            player.set_state(Gst.State.PLAYING)
            self.assertEqual(player.next().offset, 0)
            os.truncate(self.at("film"), 0)
            with self.assertRaises(PlayerError) as caught:
                player.rest()
            self.assertRegex(str(caught.exception), r"^frame \d+: .*film")

    def test_frames_that_are_appended_are_not_played(self):
        data = self.film(10)
        with Player(self.at("film"), ahead=1) as player:
            player.set_state(Gst.State.PAUSED)
            with open(self.at("film"), "ab") as file:
                file.write(data.tobytes())
            self.assertEqual(player.source.query_duration(Gst.Format.DEFAULT), (True, 10))
            player.set_state(Gst.State.PLAYING)
            self.assertEqual(numbers(player.rest()), list(range(10)))
        self.assertEqual(len(play(self.at("film"))[1]), 20)

    def test_frames_beside_a_writer_are_of_one_version(self):
        frames, shape = 6, (256, 320)
        make_image(self.at("film"), (frames, *shape), axes="tyx", extent=(1, 64, 64))
        write_all(self.at("film"), bytes(frames * shape[0] * shape[1]))
        done = threading.Event()
        written = []

        def write():
            fd = os.open(self.at("film"), os.O_RDWR)
            value = 0
            try:
                while not done.is_set():
                    value = value % 255 + 1
                    for frame in range(frames):
                        size = harness.bind(fd, (frame, 0, 0), (1, *shape))
                        os.pwrite(fd, bytes([value]) * size, 0)
                    written.append(value)
            finally:
                os.close(fd)

        writer = threading.Thread(target=write)
        writer.start()
        values = set()
        try:
            while len(values) < 10 and writer.is_alive():
                for buffer in play(self.at("film"))[1]:
                    found = set(bytes_of(buffer))
                    self.assertEqual(len(found), 1, "bytes of two versions in a frame")
                    values |= found
        finally:
            done.set()
            writer.join()
        self.assertGreater(len(written), 0)

    def test_an_element_can_be_started_again_and_closes_its_files(self):
        self.film(12)
        before = len(os.listdir("/proc/self/fd"))
        with Player(self.at("film"), ahead=2) as player:
            for _ in range(20):
                player.set_state(Gst.State.PAUSED)
                self.assertEqual(player.sink.emit("pull-preroll").get_buffer().offset, 0)
                player.set_state(Gst.State.READY)
            player.source.set_property("window", "t5+2")
            player.set_state(Gst.State.PLAYING)
            self.assertEqual(len(player.rest()), 2)
        del player
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before + 8)  # of pipelines that wait for their end

    def test_seeks_while_frames_are_on_their_way_lose_nothing(self):
        data = self.film(60)
        with Player(self.at("film"), ahead=3) as player:
            player.set_state(Gst.State.PLAYING)
            for _ in range(100):
                frame = int(RNG.integers(0, 60))
                backwards = bool(RNG.integers(0, 2))
                if backwards:
                    self.assertTrue(player.seek(-1, Gst.Format.DEFAULT, 0, frame + 1))
                else:
                    self.assertTrue(player.seek(1, Gst.Format.DEFAULT, frame))
                buffer = player.next()
                self.assertEqual(buffer.offset, frame)
                self.assertEqual(bytes_of(buffer), shown(data[frame]))


if __name__ == "__main__":
    gst_player.main("mdfssrc")
