#!/usr/bin/env python3
"""Counts the packets and frames that forward error correction of GStreamer gets back, beside mdfsfecenc, with the same
redundancy and the same losses: ULPFEC (RFC 5109, rtpulpfecenc) and SMPTE 2022-1 (rtpst2022-1-fecenc).

usage: fec_elements.py [--seconds N] [--packets N] (with GST_PLUGIN_PATH; needs python3-gi, gir1.2-gstreamer-1.0,
gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad)
Frames of N packets, 25 a second, pass in real time through the encoder, a probe that drops datagrams (as
tests/mount/lossy_relay.py), the decoder and rtpjitterbuffer. A frame is lost if one of its packets is.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import collections
import pathlib
import struct
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/mount"))
import lossy_relay  # noqa: E402

RATE = 25
CAPS = "application/x-rtp,media=video,payload=96,clock-rate=90000,encoding-name=X,ssrc=(uint){ssrc}"
LATENCY_MS = 4000  # beyond any pause of this program
LOSSES = {"5 % at random": lambda: lossy_relay.random_loss(0.05),
          "5 % in bursts of 8": lambda: lossy_relay.bursts(0.05, 8)}
# 20 % each: ULPFEC by its percentage; 2022-1 with rows and columns of 10 packets, and with columns of 5 alone.
SCHEMES = {
    "mdfsfecenc": "appsrc name=in ! mdfsfecenc name=enc redundancy=20 ! fakesink name=paced sync=true "
                  "appsrc name=net ! mdfsfecdec name=dec caps=\"{caps}\" ! {rest}",
    "ULPFEC": "appsrc name=in ! rtpulpfecenc name=enc pt=122 percentage=20 multipacket=true ! rtpstorage name=storage "
              "size-time=6000000000 ! rtpjitterbuffer latency={latency} do-lost=true ! rtpulpfecdec name=dec pt=122 ! "
              "fakesink name=out signal-handoffs=true sync=false async=false",
    "SMPTE 2022-1, 10 x 10": "appsrc name=in ! rtpst2022-1-fecenc name=enc columns=10 rows=10 "
                             "enc.src ! dec.sink enc.fec_0 ! queue ! dec.fec_0 enc.fec_1 ! queue ! dec.fec_1 "
                             "rtpst2022-1-fecdec name=dec size-time=6000000000 ! {rest}",
    "SMPTE 2022-1, columns of 5": "appsrc name=in ! rtpst2022-1-fecenc name=enc columns=20 rows=5 enable-row-fec=false "
                                  "enc.src ! dec.sink enc.fec_0 ! queue ! dec.fec_0 "
                                  "rtpst2022-1-fecdec name=dec size-time=6000000000 ! {rest}",
}
REST = "rtpjitterbuffer latency={latency} ! fakesink name=out signal-handoffs=true sync=false async=false"


def rtp(number, frame, last, ssrc):
    head = struct.pack(">BBHII", 0x80, 96 | last << 7, number & 0xFFFF, 3600 * frame, ssrc)
    return head + struct.pack(">II", number, frame) + bytes(200)


class Run:
    """One scheme and one kind of loss."""

    def __init__(self, scheme, loss, seconds, packets):
        self.frames, self.packets = seconds * RATE, packets
        self.is_lost, self.sent, self.lost = LOSSES[loss](), 0, 0
        self.got = collections.Counter()
        self.ssrc = 0 if "2022" in scheme else 7  # which 2022-1 demands
        caps = CAPS.format(ssrc=self.ssrc)
        rest = REST.format(latency=LATENCY_MS)
        self.pipeline = Gst.parse_launch(SCHEMES[scheme].format(caps=caps, latency=LATENCY_MS, rest=rest))
        self.source = self.pipeline.get_by_name("in")
        self.source.set_property("caps", Gst.Caps.from_string(caps))
        self.source.set_property("format", Gst.Format.TIME)
        self.net = self.pipeline.get_by_name("net")
        encoder = self.pipeline.get_by_name("enc")
        if self.net:  # datagrams are paced by a sink, and go to another source
            self.net.set_property("is-live", True)
            self.net.set_property("format", Gst.Format.TIME)
            self.net.set_property("do-timestamp", True)
            paced = self.pipeline.get_by_name("paced")
            paced.set_property("signal-handoffs", True)
            paced.connect("handoff", self.hand_over)
        else:
            encoder.connect("pad-added", lambda _, pad: self.watch(pad))
            for pad in encoder.srcpads:
                self.watch(pad)
        if storage := self.pipeline.get_by_name("storage"):
            self.pipeline.get_by_name("dec").set_property("storage", storage.get_property("internal-storage"))
        self.pipeline.get_by_name("out").connect("handoff", self.arrived)

    def watch(self, pad):
        pad.add_probe(Gst.PadProbeType.BUFFER | Gst.PadProbeType.BUFFER_LIST, self.drop)

    def is_dropped(self):
        self.sent += 1
        dropped = self.is_lost()
        self.lost += dropped
        return dropped

    def drop(self, _pad, info):
        if info.get_buffer() is None:
            raise SystemExit("a list of packets: the probe drops single ones")
        return Gst.PadProbeReturn.DROP if self.is_dropped() else Gst.PadProbeReturn.OK

    def hand_over(self, _sink, buffer, _pad):
        if not self.is_dropped():
            self.net.emit("push-buffer", Gst.Buffer.new_wrapped(buffer.extract_dup(0, buffer.get_size())))

    def arrived(self, _sink, buffer, _pad):
        data = buffer.extract_dup(0, 20)
        if data[1] & 0x7F == 96:
            self.got[struct.unpack_from(">II", data, 12)[1]] += 1

    def feed(self):
        begin = time.monotonic()
        for frame in range(self.frames):
            time.sleep(max(0, begin + frame / RATE - time.monotonic()))
            for i in range(self.packets):
                buffer = Gst.Buffer.new_wrapped(rtp(frame * self.packets + i, frame, i + 1 == self.packets, self.ssrc))
                buffer.pts = buffer.dts = frame * Gst.SECOND // RATE
                self.source.emit("push-buffer", buffer)
        self.source.emit("end-of-stream")

    def measure(self):
        self.pipeline.set_state(Gst.State.PLAYING)
        feeder = threading.Thread(target=self.feed)
        feeder.start()
        feeder.join()
        time.sleep(1.5 * LATENCY_MS / 1000)
        bus = self.pipeline.get_bus()
        if message := bus.pop_filtered(Gst.MessageType.ERROR):
            raise SystemExit(message.parse_error().gerror.message)
        self.pipeline.set_state(Gst.State.NULL)
        whole = sum(count >= self.packets for count in self.got.values())
        return {"frames": self.frames, "frames_lost": self.frames - whole,
                "packets_lost": self.frames * self.packets - sum(self.got.values()),
                "redundancy": self.sent / (self.frames * self.packets) - 1, "dropped": self.lost / max(self.sent, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--packets", type=int, default=80, help="of a frame")
    parser.add_argument("--scheme", action="append", choices=SCHEMES)
    options = parser.parse_args()
    Gst.init(None)
    for scheme in options.scheme or SCHEMES:
        for loss in LOSSES:
            one = Run(scheme, loss, options.seconds, options.packets).measure()
            print(f"{scheme}, {loss} ({100 * one['dropped']:.1f} % dropped, redundancy {100 * one['redundancy']:.0f} "
                  f"%): {one['frames_lost']} of {one['frames']} frames and {one['packets_lost']} packets lost",
                  flush=True)


if __name__ == "__main__":
    main()
