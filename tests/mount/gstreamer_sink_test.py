"""The GStreamer element mdfssink stores frames as images: every pixel, geometry, refusals, a full volume."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import unittest

import gst_player
import harness
from gst_player import GLib, Gst, launch, np
from harness import MDFS, make_image, read_all, run, write_all

RNG = np.random.default_rng(32)


class Sink(harness.MountTest):
    def info(self, name):
        return json.loads(run(MDFS, "image", "info", "--json", self.at(name)))

    def assertFails(self, words, *pipeline):
        """gst-launch 1.22 sometimes waits for ever after an error of a sink before the first frame: none is used."""
        self.assertIn(words, gst_player.error_of(" ".join(pipeline)))

    def pattern(self, form, *more, frames=5, width=33, rate="25/1"):
        return ["videotestsrc", f"num-buffers={frames}", "pattern=snow", "!",
                f"video/x-raw,format={form},width={width},height=20,framerate={rate}", "!", *more]

    def test_every_pixel_of_each_format_is_stored(self):
        for form, element, channels in (("GRAY8", "u8", 1), ("GRAY16_LE", "u16", 1), ("RGB", "u8", 3),
                                        ("RGBA", "u8", 4), ("RGBA64_LE", "u16", 4)):
            for width in (32, 33):
                with self.subTest(form=form, width=width):
                    name = f"{form}-{width}"
                    copy = os.path.join(self.volume.folder, "copy")
                    self.assertEqual(launch(*self.pattern(form, "tee", "name=t", "t.", "!", "queue", "!", "filesink",
                                                          f"location={copy}", "t.", "!", "queue", "!", "mdfssink",
                                                          f"location={self.at(name)}", width=width)), (0, ""))
                    info = self.info(name)
                    self.assertEqual((info["axes"], info["shape"]), ("tyx", [5, 20, width]))
                    self.assertEqual((info["type"], info["channels"]), (element, channels))
                    row = width * channels * np.dtype(harness.NUMPY[element]).itemsize
                    padded = np.fromfile(copy, "u1").reshape(5, 20, (row + 3) // 4 * 4)
                    self.assertEqual(read_all(self.at(name)), padded[..., :row].tobytes())

    def test_a_movie_is_copied_with_its_rate(self):
        data = RNG.integers(0, 65536, (30, 20, 33, 4)).astype("<u2")
        make_image(self.at("film"), (30, 20, 33), element="u16", channels=4, axes="tyx")
        write_all(self.at("film"), data.tobytes())
        self.assertEqual(launch("mdfssrc", f"location={self.at('film')}", "fps=30000/1001", "!", "mdfssink",
                                f"location={self.at('copy')}", "codec=raw"), (0, ""))
        self.assertEqual(read_all(self.at("copy")), data.tobytes())
        info = self.info("copy")
        self.assertEqual((info["codec"], info["spacing"][0], info["unit"][0]), ("raw", 1001 / 30000, "s"))
        caps, _ = gst_player.play(self.at("copy"))
        self.assertEqual(caps.get_fraction("framerate")[1:], (30000, 1001))

    def test_an_existing_name_and_bad_properties_are_refused(self):
        write_all(self.at("file"), b"precious")
        make_image(self.at("image"), (2, 20, 30), axes="tyx")
        for name in ("file", "image"):
            before = read_all(self.at(name))
            self.assertFails("exists", *self.pattern("GRAY8", "mdfssink", f"location={self.at(name)}"))
            self.assertEqual(read_all(self.at(name)), before)
        self.assertFails("location is not set", *self.pattern("GRAY8", "mdfssink"))
        self.assertFails("codec", *self.pattern("GRAY8", "mdfssink", f"location={self.at('a')}", "codec=lzma"))
        self.assertFails("zstd:99", *self.pattern("GRAY8", "mdfssink", f"location={self.at('a')}", "codec=zstd:99"))
        elsewhere = os.path.join(self.volume.folder, "elsewhere")
        for words, path in (("is no folder on a mounted MDFS volume", elsewhere),
                            ("missing/ is no folder on a mounted MDFS volume", self.at("missing/a")),
                            ("names that end in @", self.at("a@"))):
            self.assertFails(words, *self.pattern("GRAY8", "mdfssink", f"location={path}"))
        with self.assertRaisesRegex(GLib.Error, "could not link"):
            Gst.parse_launch(" ".join(self.pattern("I420", "mdfssink", f"location={self.at('a')}")))
        self.assertEqual(sorted(os.listdir(self.dir)), ["file", "image"])
        self.assertFalse(os.path.exists(elsewhere))

    def test_frames_of_another_format_are_an_error_and_the_first_ones_stay(self):
        pipeline = Gst.parse_launch(f"appsrc name=a format=time ! mdfssink location={self.at('film')}")
        source = pipeline.get_by_name("a")
        pipeline.set_state(Gst.State.PLAYING)
        frames = [bytes([n]) * 640 for n in range(3)]
        for width, height in ((32, 20), (20, 32)):
            source.set_property("caps", Gst.Caps.from_string(
                f"video/x-raw,format=GRAY8,width={width},height={height},framerate=25/1"))
            for frame in frames:
                source.emit("push-buffer", Gst.Buffer.new_wrapped(frame))
        message = pipeline.get_bus().timed_pop_filtered(gst_player.LIMIT, Gst.MessageType.ERROR | Gst.MessageType.EOS)
        pipeline.set_state(Gst.State.NULL)
        self.assertEqual(message.type, Gst.MessageType.ERROR)
        self.assertIn("the frames change their format", message.parse_error().gerror.message)
        self.assertEqual(read_all(self.at("film")), b"".join(frames))

    def test_a_buffer_that_is_no_frame_is_an_error(self):
        pipeline = Gst.parse_launch(f"appsrc name=a format=time ! mdfssink location={self.at('film')}")
        source = pipeline.get_by_name("a")
        source.set_property("caps", Gst.Caps.from_string("video/x-raw,format=GRAY8,width=32,height=20,framerate=25/1"))
        pipeline.set_state(Gst.State.PLAYING)
        source.emit("push-buffer", Gst.Buffer.new_wrapped(bytes(639)))
        message = pipeline.get_bus().timed_pop_filtered(gst_player.LIMIT, Gst.MessageType.ERROR | Gst.MessageType.EOS)
        pipeline.set_state(Gst.State.NULL)
        self.assertEqual(message.type, Gst.MessageType.ERROR)
        self.assertIn("a buffer of 639 bytes is no frame", message.parse_error().gerror.message)


class FullVolume(harness.MountTest):
    disks = 2
    size = "16M"

    def test_a_full_volume_is_an_error_and_the_frames_before_are_stored(self):
        self.assertIn("No space left", gst_player.error_of(
            "videotestsrc num-buffers=200 pattern=snow ! video/x-raw,format=RGB,width=640,height=480,framerate=25/1 "
            f"! mdfssink location={self.at('film')} codec=raw"))
        self.assertGreater(os.stat(self.at("film")).st_size, 10 * 640 * 480 * 3)


class Durable(unittest.TestCase):
    def test_frames_are_on_the_disks_at_the_end(self):
        volume = harness.Mounted()
        try:
            path = volume / "film"
            self.assertEqual(launch("videotestsrc", "num-buffers=5", "!",
                                    "video/x-raw,format=RGB,width=32,height=20,framerate=25/1", "!", "mdfssink",
                                    f"location={path}"), (0, ""))
            data = read_all(path)
            # Without an unmount: what was not synced is lost.
            os.kill(volume.daemon(), 9)
            run("umount", "-l", volume.path)
            volume.mount()
            self.assertEqual(read_all(path), data)
            self.assertEqual(len(data), 5 * 32 * 20 * 3)
            volume.unmount()
        finally:
            volume.remove()


if __name__ == "__main__":
    gst_player.main("mdfssink")
