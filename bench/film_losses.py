#!/usr/bin/env python3
"""Measures `mdfs send` and `mdfs receive` over a network that loses packets: frames lost, delay, processor time.

usage: film_losses.py [--build DIR] [--seconds N] [--scratch DIR] [--json FILE] (as root)
The sender, a relay that loses datagrams (tests/mount/lossy_relay.py) and the receiver have network namespaces of their
own, with veth pairs between them: the kernels of many machines have no netem. The film has 1280x720 samples in RGB at
25 frames a second, and each frame its number. The receiver stores the frames as they arrive (.mkv); the numbers in the
stored frames say which are there. Scratch space: 1 GB for each minute.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import contextlib
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

RATE = 25
HEIGHT, WIDTH = 720, 1280
BITS, SQUARE = 16, 16  # of the number of a frame
SAME = 8  # frames with the same background
HOSTS = ["mdfs-sender", "mdfs-relay", "mdfs-receiver"]
RELAY = pathlib.Path(__file__).resolve().parent.parent / "tests/mount/lossy_relay.py"
LOSSES = {"5 % at random": ["random:0.05"],
          "5 % in bursts of 8": ["burst:0.05:8"],
          "5 % at random, and 1 % in bursts of 8": ["random:0.05", "burst:0.01:8"],
          "5 % at random, and 5 % in bursts of 8": ["random:0.05", "burst:0.05:8"]}


def say(text):
    print(f"film_losses: {text}", file=sys.stderr, flush=True)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


@contextlib.contextmanager
def network():
    """Three hosts in a row: 10.93.1.1 - 10.93.1.2, 10.93.2.1 - 10.93.2.2."""
    try:
        for host in HOSTS:
            run("ip", "netns", "add", host)
        for number, (left, right) in enumerate(zip(HOSTS, HOSTS[1:]), 1):
            run("ip", "link", "add", f"left{number}", "netns", left, "type", "veth", "peer", "name", f"right{number}",
                "netns", right)
            for host, side, last in ((left, "left", 1), (right, "right", 2)):
                run("ip", "-n", host, "address", "add", f"10.93.{number}.{last}/24", "dev", f"{side}{number}")
                run("ip", "-n", host, "link", "set", f"{side}{number}", "up")
        yield
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "delete", host], check=False, stderr=subprocess.DEVNULL)


def on(host, *command, **options):
    """A program on one of the hosts, with the mounts of this one."""
    return subprocess.Popen(["nsenter", f"--net=/run/netns/{host}", *map(str, command)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def background():
    """A picture as busy as a photograph: noise of several sizes."""
    random = np.random.default_rng(93)
    picture = np.zeros((HEIGHT, 2 * WIDTH, 3))
    for size, weight in ((4, 5), (8, 8), (16, 16), (64, 30), (180, 50)):
        coarse = random.normal(size=(HEIGHT // size + 2, 2 * WIDTH // size + 2, 3))
        rows, columns = np.arange(HEIGHT) / size, np.arange(2 * WIDTH) / size
        up, left = rows.astype(int), columns.astype(int)
        down, right = (rows - up)[:, None, None], (columns - left)[None, :, None]
        top = coarse[up][:, left] * (1 - right) + coarse[up][:, left + 1] * right
        low = coarse[up + 1][:, left] * (1 - right) + coarse[up + 1][:, left + 1] * right
        picture += weight * (top * (1 - down) + low * down)
    picture += random.normal(scale=3, size=picture.shape)
    return np.clip(picture + 128, 0, 255).astype("u1")


def store_film(mdfs, image, frames):
    run(mdfs, "image", "create", image, "--shape", f"0x{HEIGHT}x{WIDTH}", "--channels", "3", "--axes", "tyx",
        "--spacing", f"{1 / RATE},1,1s", "--extent", f"{SAME}x128x128")
    picture = background()
    with open(image, "ab", buffering=0) as film:
        for frame in range(frames):
            shift = 4 * (frame // SAME) % WIDTH
            shown = picture[:, shift:shift + WIDTH].copy()
            for bit in range(BITS):
                shown[:SQUARE, bit * SQUARE:(bit + 1) * SQUARE] = 255 * (frame >> bit & 1)
            left = memoryview(shown).cast("B")
            while left:
                left = left[film.write(left):]


def numbers_in(file):
    """The numbers in the frames of a stored film."""
    decoded = subprocess.Popen(["ffmpeg", "-loglevel", "error", "-i", str(file), "-vf",
                                f"crop={BITS * SQUARE}:{SQUARE}:0:0", "-fps_mode", "passthrough", "-f", "rawvideo",
                                "-pix_fmt", "gray", "-"], stdout=subprocess.PIPE)
    found = []
    while len(data := decoded.stdout.read(BITS * SQUARE * SQUARE)) == BITS * SQUARE * SQUARE:
        squares = np.frombuffer(data, "u1").reshape(SQUARE, BITS, SQUARE)[4:12, :, 4:12].mean(axis=(0, 2))
        found.append(sum(1 << bit for bit in range(BITS) if squares[bit] > 128))
    decoded.wait()
    return found


def delays_ms(times, started_ns, first):
    """Of whole frames behind the time at which the sender began to send them, after the first two seconds."""
    with open(times, encoding="ascii") as file:
        rows = [(int(row["timestamp_ns"]), int(row["arrival_ns"])) for row in csv.DictReader(file)]
    begin = started_ns + first * 1e9 / RATE
    return np.array([(arrival - timestamp - begin) / 1e6 for timestamp, arrival in rows if timestamp > 2e9])


def transmit(mdfs, image, folder, losses, fec, seconds, view=False, more=()):
    """Sends so many seconds of the film; what was measured."""
    store, times = folder / "received.mkv", folder / "times.csv"
    store.unlink(missing_ok=True)
    times.unlink(missing_ok=True)
    to = ["--view", "--sink", "fakesink sync=true"] if view else ["--to", store]
    receiver = on(HOSTS[2], mdfs, "receive", "--port", "5004", "--json", "--times", times, *to)
    if "port" not in (line := receiver.stderr.readline()):
        sys.exit(f"mdfs receive: {line}{receiver.stderr.read()}")
    relay = on(HOSTS[1], sys.executable, RELAY, "10.93.1.2:5004", "10.93.2.2:5004", *losses)
    time.sleep(1)
    begin = time.monotonic()
    sender = on(HOSTS[0], mdfs, "send", image, "--to", "10.93.1.2:5004", "--json", "--fec", f"{fec}%", "--window",
                f"t0+{seconds * RATE}", *more)
    told, error = sender.communicate()
    if sender.returncode != 0:
        sys.exit(f"mdfs send: {error}")
    sent, elapsed = json.loads(told), time.monotonic() - begin
    told, error = receiver.communicate()
    if receiver.returncode not in (0, 4):
        sys.exit(f"mdfs receive: {error}")
    received = json.loads(told)
    relay.send_signal(signal.SIGTERM)
    lost = json.loads(relay.communicate()[0])
    numbers = [] if view or received["frames"] == 0 else numbers_in(store)
    if numbers and (len(set(numbers)) != received["frames"] or numbers != sorted(numbers)):
        sys.exit(f"{len(numbers)} frames are stored, {received['frames']} were counted")
    delays = delays_ms(times, sent["started_ns"], numbers[0] if numbers else 0)
    packets = sent["packets"]
    return {"seconds": seconds, "fec": fec, "frames": sent["frames"], "dropped": sent["dropped"],
            "received": received["frames"], "missing": sent["frames"] - (len(set(numbers)) if numbers else
                                                                         received["frames"]),
            "datagrams": lost["came"], "datagrams_lost": lost["lost"], "redundancy":
            packets["repair"] / packets["source"], "packets_a_frame": packets["source"] / sent["frames"],
            "recovered": received["packets"]["recovered"],
            "delay_ms": {name: float(np.percentile(delays, share)) if len(delays) else None
                         for name, share in (("p1", 1), ("p50", 50), ("p99", 99), ("max", 100))},
            "sender_cpu": sent["cpu_s"] / elapsed, "receiver_cpu": received["cpu_s"] / elapsed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", type=pathlib.Path, help="where the programs are built")
    parser.add_argument("--seconds", default=600, type=int, help="of the film with repair packets")
    parser.add_argument("--without", default=60, type=int, metavar="SECONDS", help="of the film without them")
    parser.add_argument("--fec", default=20, type=int, metavar="PERCENT", help="repair packets for 100 packets")
    parser.add_argument("--loss", action="append", choices=LOSSES, help="measure these networks alone")
    parser.add_argument("--scratch", type=pathlib.Path, help="directory for all files")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    options = parser.parse_args()
    mdfs = options.build.resolve() / "tools/mdfs"
    os.environ.setdefault("GST_PLUGIN_PATH", str(options.build.resolve() / "gst"))
    frames = RATE * max(options.seconds, options.without)
    found = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as name, network():
        folder = pathlib.Path(name)
        mnt = folder / "mnt"
        mnt.mkdir()
        disks = [folder / f"disk{i}" for i in range(4)]
        run(options.build / "tools/mkmdfs", "--size", "12G", "--sparse", *disks)
        run(mdfs, "mount", disks[0], mnt)
        try:
            say(f"storing {frames} frames")
            store_film(mdfs, mnt / "film", frames)
            for loss in options.loss or LOSSES:
                for fec, seconds, view in ((0, options.without, False), (options.fec, options.without, True),
                                           (options.fec, options.seconds, False)):
                    one = {"loss": loss, "view": view,
                           **transmit(mdfs, mnt / "film", folder, LOSSES[loss], fec, seconds, view)}
                    say(json.dumps(one))
                    found.append(one)
                    if options.json:
                        options.json.write_text(json.dumps(found, indent=1) + "\n")
        finally:
            run(mdfs, "umount", mnt)
    for one in found:
        shown = {name: "-" if value is None else f"{value:.0f}" for name, value in one["delay_ms"].items()}
        print(f"{one['loss']}, {one['fec']} %{', shown' if one['view'] else ''}: {one['missing']} of {one['frames']} "
              f"frames lost; delay {shown['p50']} ms, 1 % below {shown['p1']}, 1 % above {shown['p99']}, at most "
              f"{shown['max']}; sender {100 * one['sender_cpu']:.0f} %, receiver {100 * one['receiver_cpu']:.0f} % of "
              f"a processor")


if __name__ == "__main__":
    main()
