"""Pipelines of GStreamer for tests: a player of an image, and gst-launch.

GST_PLUGIN_PATH names the folder of the plugin. The program ends as skipped where GStreamer for Python is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
import tempfile

import harness

# A registry of this test's own, that no other program reads or writes.
REGISTRY = tempfile.TemporaryDirectory(prefix="mdfs-test-gst-")
os.environ["GST_REGISTRY"] = os.path.join(REGISTRY.name, "registry")
os.environ["GST_REGISTRY_FORK"] = "no"

try:
    import gi
    import numpy as np
    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, Gst  # GLib: for the tests
except (ImportError, ValueError) as problem:
    print(f"SKIPPED: the tests of the plugin need numpy, python3-gi and gir1.2-gstreamer-1.0: {problem}")
    sys.exit(harness.SKIP)

LIMIT = 60 * Gst.SECOND  # of a wait that should end at once
RATE = 24


class PlayerError(Exception):
    """The message of the element's error."""


def begin_of(frame, numerator=RATE, denominator=1):
    return frame * Gst.SECOND * denominator // numerator


class Player:
    """A pipeline of mdfssrc and a sink that hands its frames over."""

    def __init__(self, location, ahead=1000, **properties):
        self.dropped = []  # messages of dropped frames
        self.pipeline = Gst.Pipeline.new()
        self.source = Gst.ElementFactory.make("mdfssrc")
        for name, value in {"location": location, **properties}.items():
            Gst.util_set_object_arg(self.source, name, str(value))
        self.sink = Gst.ElementFactory.make("appsink")
        self.sink.set_property("sync", False)
        self.sink.set_property("max-buffers", ahead)
        self.pipeline.add(self.source)
        self.pipeline.add(self.sink)
        self.source.link(self.sink)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pipeline.set_state(Gst.State.NULL)

    def error(self):
        """Raises the first error on the bus."""
        while message := self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR | Gst.MessageType.QOS):
            if message.type == Gst.MessageType.ERROR:
                raise PlayerError(message.parse_error().gerror.message)
            self.dropped.append(message)

    def set_state(self, state):
        if self.pipeline.set_state(state) == Gst.StateChangeReturn.FAILURE:
            self.error()
            raise AssertionError("a change of state failed without a message")
        self.pipeline.get_state(LIMIT)
        self.error()

    def seek(self, rate, unit, start, stop=-1, start_type=Gst.SeekType.SET):
        flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.ACCURATE
        stop_type = Gst.SeekType.NONE if stop == -1 else Gst.SeekType.SET
        done = self.source.seek(rate, unit, flags, start_type, start, stop_type, stop)
        self.pipeline.get_state(LIMIT)
        self.error()
        return done

    def next(self):
        """The buffer of the next frame; None at the end."""
        sample = self.sink.emit("try-pull-sample", LIMIT)
        if sample is None:
            self.error()
            if not self.sink.get_property("eos"):
                raise AssertionError("no frame and no end")
            return None
        return sample.get_buffer()

    def rest(self):
        buffers = []
        while (buffer := self.next()) is not None:
            buffers.append(buffer)
        return buffers

    def caps(self):
        return self.sink.get_static_pad("sink").get_current_caps().get_structure(0)


def bytes_of(buffer):
    return buffer.extract_dup(0, buffer.get_size())


def numbers(buffers):
    return [buffer.offset for buffer in buffers]


def play(location, **properties):
    """Structure of the caps, and the frames."""
    with Player(location, **properties) as player:
        player.set_state(Gst.State.PLAYING)
        buffers = player.rest()
        return player.caps(), buffers


def shown(frame):
    """The bytes of a frame in the layout of GStreamer: rows of whole words of 4 bytes."""
    rows = frame.reshape(frame.shape[0], -1).view(np.uint8)
    return np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4))).tobytes()


def error_of(pipeline):
    """The message of the error with which the pipeline ends."""
    running = Gst.parse_launch(pipeline)
    running.set_state(Gst.State.PLAYING)
    message = running.get_bus().timed_pop_filtered(LIMIT, Gst.MessageType.ERROR | Gst.MessageType.EOS)
    running.set_state(Gst.State.NULL)
    if message is None or message.type != Gst.MessageType.ERROR:
        raise AssertionError(f"{pipeline}: no error")
    return message.parse_error().gerror.message


def launch(*words):
    """Standard error of gst-launch, and its exit status."""
    done = subprocess.run(["gst-launch-1.0", "-q", *words], capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, done.stderr


def main(element):
    Gst.init(None)
    if not Gst.ElementFactory.find(element):
        print(f"no element {element} in {os.environ.get('GST_PLUGIN_PATH')}")
        sys.exit(1)
    harness.main()
