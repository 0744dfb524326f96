#!/usr/bin/env python3
"""Times the same work on mounts with different options, alternating, and prints medians and ratios.

usage: compare_mounts.py BUILD OPTIONS OPTIONS [...] [--rounds N] [--files N] [--only WORK] [--folder PATH]

The work: many small files (untar, rm -r, git add and commit, creating, appending), warm windows, warm and cold reads
of a large file. Each round makes a new volume for each set of options: `compare_mounts.py build io_uring=off
io_uring=on`. Needs root, and `ninja -C BUILD bench/mount/window_timer`.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import io
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time

DISKS = 4
LARGE_BYTES = 256 << 20
FILE_BYTES = 2000
FOLDER_FILES = 100
CREATES = 10000
APPENDS = 20000
IMAGE_SIDE = 8192
WINDOW_COUNTS = {"64x64": ("4000", ["--one-call"]), "512x512": ("200", [])}


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, **options).stdout


def seconds(work, *words):
    start = time.perf_counter()
    work(*words)
    return time.perf_counter() - start


def make_archive(path, files):
    with tarfile.open(path, "w") as archive:
        for number in range(files):
            entry = tarfile.TarInfo(f"tree/{number // FOLDER_FILES}/{number}.txt")
            entry.size = FILE_BYTES
            archive.addfile(entry, io.BytesIO(f"{number:08}".encode() * (FILE_BYTES // 8)))


def commit_tree(tree):
    def git(*words):
        run("git", "-C", tree, "-c", "user.name=b", "-c", "user.email=b@b", "-c", "gc.auto=0", *words)
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "all")


def create_files(folder):
    folder.mkdir()
    prefix = str(folder) + "/"
    for number in range(CREATES):
        os.close(os.open(f"{prefix}{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def append(path):
    block = bytes(1024)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for _ in range(APPENDS):
        os.write(fd, block)
    os.close(fd)


class Volume:
    def __init__(self, build, folder, options):
        self.build, self.options = build, options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mdfs-compare-", dir=folder))
        self.disks = [self.folder / f"disk{number}" for number in range(DISKS)]
        self.mnt = self.folder / "mnt"
        self.mnt.mkdir()
        run(build / "tools/mkmdfs", "--size", "1G", "--sparse", *self.disks)
        self.mount()

    def mount(self):
        run(self.build / "tools/mdfs", "mount", "-o", "cache=1G," + self.options, self.disks[0], self.mnt)

    def unmount(self):
        run(self.build / "tools/mdfs", "umount", self.mnt)

    def remove(self):
        self.unmount()
        shutil.rmtree(self.folder)


def small_files(volume, archive):
    tree = volume.mnt / "tree"
    yield "untar, s", seconds(run, "tar", "xf", archive, "-C", volume.mnt)
    yield "git add + commit, s", seconds(commit_tree, tree)
    yield "rm -r, s", seconds(run, "rm", "-r", tree)
    yield "creating, us a file", seconds(create_files, volume.mnt / "many") / CREATES * 1e6
    yield "appending 1 KiB, us", seconds(append, volume.mnt / "log") / APPENDS * 1e6


def windows(volume, _):
    image = volume.mnt / "image"
    raw = volume.folder / "raw"
    with open(raw, "wb") as file:
        file.write(os.urandom(1 << 20) * (IMAGE_SIDE * IMAGE_SIDE >> 20))
    run(volume.build / "tools/mdfs", "image", "import", "--quiet", "--shape", f"{IMAGE_SIDE}x{IMAGE_SIDE}", "--type",
        "u8", "--codec", "raw", raw, image)
    for window, (count, how) in WINDOW_COUNTS.items():
        timed = run(volume.build / "bench/mount/window_timer", image, "--window", window, "--count", count, "--warm",
                    *how)
        yield f"warm {window} window, us", json.loads(timed)["median_ms"] * 1e3


def dd(path, *words):
    run("dd", f"if={path}", "of=/dev/null", "bs=1M", "status=none", *words)


def large_reads(volume, _):
    path = volume.mnt / "large"
    with open(path, "wb") as file:
        for _ in range(LARGE_BYTES >> 20):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    volume.unmount()
    for disk in volume.disks:
        run("dd", f"of={disk}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none")
    volume.mount()
    yield "cold dd, s", seconds(dd, path)
    yield "warm direct dd, s", min(seconds(dd, path, "iflag=direct") for _ in range(3))
    volume.unmount()
    volume.mount()
    dd(path, "iflag=direct")  # into the daemon's cache
    yield "dd from the daemon's cache, s", seconds(dd, path)


WORK = {"files": small_files, "windows": windows, "large": large_reads}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("options", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--only", choices=WORK, action="append")
    parser.add_argument("--folder", type=pathlib.Path, default="/tmp")
    asked = parser.parse_args()
    times = {}
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch:
        archive = pathlib.Path(scratch) / "tree.tar"
        make_archive(archive, asked.files)
        for number in range(asked.rounds):
            for options in asked.options[::1 if number % 2 == 0 else -1]:
                for name in asked.only or WORK:
                    volume = Volume(asked.build.resolve(), asked.folder, options)
                    try:
                        for what, value in WORK[name](volume, archive):
                            times.setdefault(what, {}).setdefault(options, []).append(value)
                    finally:
                        volume.remove()
    first = asked.options[0]
    print(f"{'':32}" + "".join(f"{options[-18:]:>20}" for options in asked.options))
    for what, found in times.items():
        middle = {options: statistics.median(values) for options, values in found.items()}
        cells = [f"{middle[options]:12.3f} ({middle[options] / middle[first]:4.2f}) " for options in asked.options]
        print(f"{what:32}" + "".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
