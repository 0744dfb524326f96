"""Storing the picture: by `mdfs image import` and by cp, beside what fio writes to the same filesystem."""
# SPDX-License-Identifier: Apache-2.0
import json
import statistics
import time

from mdfsbench import table
from mdfsbench.context import run, say
from mdfsbench.warm import picture

GROUP = "ingest"
RAW_MB_S, OF_FIO, ZSTD_MB_S = 640, 0.8, 84


def rows(context):
    source = picture(context)
    rounds = 1 if context.quick else 3
    speeds = {}
    for _ in range(rounds):
        speeds.setdefault("fio", []).append(fio(context, source.bytes))
        for codec in ("raw", "zstd"):
            for way, store in (("image import", by_import), ("cp", by_copy)):
                say(f"{way}, {codec}")
                speeds.setdefault((way, codec), []).append(ingest(context, source, codec, store))
    fio_speed = statistics.median(speeds.pop("fio"))
    return [judged(way, codec, statistics.median(found), fio_speed) for (way, codec), found in speeds.items()]


def judged(way, codec, speed, fio_speed):
    least = min(RAW_MB_S, OF_FIO * fio_speed) if codec == "raw" else ZSTD_MB_S
    return table.Row(GROUP, f"{way}, {codec}", speed, "MB/s", fio_speed, "fio, sequential O_DIRECT",
                     f"at least {least:.0f} MB/s", speed >= least)


def fio(context, size):
    """MB/s of writing a new file until it is on the disk."""
    file = context.new_path("fio")
    with context.removed_after(file):
        text = run("fio", "--name=write", f"--filename={file}", "--rw=write", "--bs=1M", "--direct=1",
                   "--ioengine=libaio", "--iodepth=8", f"--size={size}", "--end_fsync=1", "--output-format=json")
    return json.loads(text)["jobs"][0]["write"]["bw_bytes"] / 1e6


def ingest(context, source, codec, store):
    """MB/s until the disk holds all of it; the bytes are compared afterwards."""
    with context.volume([context.new_path("disk")], size=source.bytes * 3 // 2 + (256 << 20)) as disks, \
            context.mounted(disks) as mnt:
        image = mnt / "picture"
        begin = time.monotonic()
        store(context, source, codec, image)
        seconds = time.monotonic() - begin
        run("cmp", source.raw, image)
    return source.bytes / 1e6 / seconds


def by_import(context, source, codec, image):
    context.mdfs("image", "import", "--quiet", "--codec", codec, *context.extent, source.npy, image)


def by_copy(context, source, codec, image):
    height, width, channels = source.shape
    context.mdfs("image", "create", "--shape", f"{height}x{width}", "--channels", channels, "--type", "u8", "--codec",
                 codec, *context.extent, image)
    run("cp", source.raw, image)
    context.mdfs("volume", "sync", image.parent)
