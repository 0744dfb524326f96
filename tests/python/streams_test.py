"""Claims about streams in the Python package: frames are what NumPy has, and a rate that does not fit is refused."""
# SPDX-License-Identifier: Apache-2.0
import errno
import pathlib
import sys
import threading
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import harness  # noqa: E402

import mdfs  # noqa: E402

RNG = np.random.default_rng(8)


class StreamsTest(harness.MountTest):
    size = "128M"

    def stored(self, shape, axes, dtype="u2"):
        array = RNG.integers(0, 60_000, shape).astype(dtype)
        mdfs.imwrite(self.at("image"), array, axes)
        image = mdfs.open(self.at("image"))
        self.addCleanup(image.close)
        return array, image

    def test_the_frames_of_a_movie_are_those_of_the_array(self):
        array, image = self.stored((30, 40, 50), "tyx")
        with image.stream(rate=300) as stream:
            frames = list(stream)
        self.assertEqual([frame.number for frame in frames], list(range(30)))
        for frame in frames:
            np.testing.assert_array_equal(frame.samples, array[frame.number])
        self.assertTrue(all(later.deadline_ns > frame.deadline_ns for frame, later in zip(frames, frames[1:])))

    def test_windows_axes_channels_and_steps(self):
        array, image = self.stored((6, 24, 20, 3), "zyxc", "u1")
        cases = [({"window": "y4+10,x2+8", "axis": "z", "step": 2}, [array[z, 4:14, 2:10] for z in (0, 2, 4)]),
                 ({"window": np.s_[:, 5], "axis": "y", "step": 6}, [array[:, y] for y in (5, 11, 17, 23)]),
                 ({"window": np.s_[:, :, 4:8], "axis": "x"}, [array[:, :, x:x + 4] for x in (4, 8, 12, 16)]),
                 ({"axis": "z", "step": -1}, [array[z] for z in range(5, -1, -1)]),
                 ({"window": np.s_[0, ..., 1]}, [array[z, ..., 1] for z in range(6)])]
        for options, wanted in cases:
            with image.stream(rate=400, **options) as stream:
                found = [frame.samples for frame in stream]
            self.assertEqual(len(found), len(wanted), options)
            for one, other in zip(found, wanted):
                np.testing.assert_array_equal(one, other, str(options))

    def test_a_level_streams_as_an_image_does(self):
        _, image = self.stored((8, 64, 64), "tyx")
        with mdfs.open(self.at("image"), "r+") as writable:
            writable.set_levels(1)
        level = image.level(1)
        wanted = level[...]
        with level.stream(rate=300) as stream:
            for frame in stream:
                np.testing.assert_array_equal(frame.samples, wanted[frame.number])

    def test_seek_pause_resume_and_another_pace(self):
        array, image = self.stored((60, 16, 16), "tyx")
        with image.stream(rate=200) as stream:
            next(stream)
            stream.seek(50)
            self.assertEqual(next(stream).number, 50)
            stream.pause()
            with self.assertRaises(OSError) as raised:
                next(stream)
            self.assertEqual(raised.exception.errno, errno.EBUSY)
            stream.resume()
            stream.set_pace(100, -2)
            self.assertEqual([next(stream).number for _ in range(3)], [51, 49, 47])
            state = stream.state
            self.assertEqual((state["rate"], state["step"]), (100.0, -2))
            frame = next(stream)
            np.testing.assert_array_equal(frame.samples, array[45])
            self.assertTrue(frame.in_time)

    def test_a_rate_that_does_not_fit_is_refused_with_the_one_that_does(self):
        _, image = self.stored((16, 256, 256), "tyx")
        with self.assertRaises(mdfs.RateRefused) as raised:
            image.stream(rate=1e6)
        fits = raised.exception.rate_that_fits
        self.assertGreater(fits, 0)
        self.assertLess(fits, 1e6)
        self.assertEqual(raised.exception.errno, errno.EBUSY)
        with image.stream(rate=min(fits / 4, 1000)) as stream:
            with self.assertRaises(mdfs.RateRefused):
                stream.set_pace(1e6)
            self.assertEqual(next(stream).number, 0)

    def test_other_threads_run_while_one_waits_for_a_frame(self):
        _, image = self.stored((4, 16, 16), "tyx")
        counted = []
        with image.stream(rate=2, lookahead=1) as stream:
            thread = threading.Thread(target=lambda: [next(stream) for _ in range(3)])
            thread.start()
            while thread.is_alive():
                counted.append(time.monotonic())
                time.sleep(0.01)
        self.assertGreater(len(counted), 20)

    def test_wrong_frames_are_refused(self):
        _, image = self.stored((16, 32, 32), "tyx")
        for error, options in ((ValueError, {"axis": "z"}), (ValueError, {"axis": "tt"}),
                               (IndexError, {"window": [1, 3]}),
                               (ValueError, {"window": "t40+1"}),
                               (ValueError, {"window": "q5"}), (TypeError, {"step": 0.5})):
            with self.assertRaises(error):
                image.stream(rate=10, **options)
        for name, options in (("step 0", {"step": 0}), ("step", {"step": 2**64 + 3}),
                              ("lookahead", {"lookahead": 2**32 + 2}), ("lookahead", {"lookahead": -1})):
            with self.assertRaisesRegex(ValueError, name):
                image.stream(rate=10, **options)
        for rate in (0, -1, float("nan"), 1e9):
            with self.assertRaisesRegex(OSError, "rate .*must be 0.001 to 1000000"):
                image.stream(rate=rate)
        with self.assertRaisesRegex(OSError, "multiple of its length there, 2"):
            image.stream("t1+2", rate=10)
        with self.assertRaisesRegex(OSError, "level 1 is not stored"):
            image.stream("l1,t0", rate=10)
        with self.assertRaisesRegex(ValueError, "empty"):
            mdfs.create(self.at("empty"), (0, 8, 8), "u1", axes="tyx").stream(rate=10)
        with image.stream(rate=10) as one:
            with self.assertRaisesRegex(ValueError, "frame"):
                one.seek(2**64 + 5)
            with self.assertRaisesRegex(OSError, "frame 16: the axis has fewer"):
                one.seek(16)

    def test_an_axis_that_is_named_is_as_long_as_it_says(self):
        array, image = self.stored((8, 16, 16), "tyx")
        for window in ("t0+8", np.s_[0:8], np.s_[0:8, ...], np.s_[0:8, :, 4:8]):
            with image.stream(window, rate=100) as stream:
                frames = list(stream)
            self.assertEqual(len(frames), 1, window)
            wanted = array[:, :, 4:8] if isinstance(window, tuple) and len(window) == 3 else array
            np.testing.assert_array_equal(frames[0].samples, wanted)
        for window in (..., "all", np.s_[:], np.s_[..., 4:8], np.s_[:, 3], "y0+4"):
            with image.stream(window, rate=1000) as stream:
                self.assertEqual(len(list(stream)), 8, window)

    def test_another_pace_keeps_the_step_and_ends_where_the_frames_end(self):
        _, image = self.stored((12, 16, 16), "tyx")
        with image.stream(rate=1000, step=-1) as stream:
            self.assertEqual(next(stream).number, 11)
            stream.set_pace(500)
            self.assertEqual([frame.number for frame in stream], list(range(10, -1, -1)))
            stream.set_pace(1000)
            self.assertEqual(list(stream), [])
            stream.set_pace(1000, 4)
            self.assertEqual([frame.number for frame in stream], [4, 8])
            state = stream.state
            self.assertEqual(state["in_time"] + state["late"], 14)

    def test_frames_without_time_may_come_from_a_coarser_level(self):
        array, image = self.stored((12, 16, 16), "tyx")
        with self.assertRaisesRegex(OSError, "no level is stored"):
            image.stream(rate=10, coarser=True)
        mdfs.open(image.path, "r+").set_levels(1)
        with image.stream(rate=1000, coarser=True) as stream:
            for frame in stream:
                wanted = array[frame.number] if frame.level == 0 else \
                    image.level(1)[frame.number].repeat(2, axis=0).repeat(2, axis=1)
                np.testing.assert_array_equal(frame.samples, wanted)

    def test_a_level_on_other_disks_than_its_image_streams(self):
        for shape in ((7, 6, 1, 30), (3, 64, 1)):
            path = self.at(f"small{len(shape)}")
            mdfs.imwrite(path, np.ones(shape, "f2"), axes="tzyx"[-len(shape):] if len(shape) == 4 else "tyx", levels=1)
            image = mdfs.open(path)
            for _ in range(2):
                with image.stream("l1,t0", rate=100) as stream:
                    self.assertEqual(len(list(stream)), shape[0])

    def test_a_closed_stream_has_no_frames(self):
        _, image = self.stored((16, 32, 32), "tyx")
        stream = image.stream(rate=10)
        stream.close()
        stream.close()
        with self.assertRaises(ValueError):
            next(stream)


if __name__ == "__main__":
    harness.main()
