"""Many small files: a source tree unpacked, committed by git, read, appended to and removed, on MDFS, ext4, btrfs, and
ext4 through passthrough_ll, the example of libfuse that does nothing but pass requests on."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import os
import pathlib
import shutil
import sys
import tarfile
import time

import numpy as np

from mdfsbench import table
from mdfsbench.context import Skip, run, say
from mdfsbench.durable import btrfs, loop

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
from compare_mounts import commit_tree  # noqa: E402

GROUP = "small"
FILES, FOLDER_FILES = 9_000, 100  # passthrough_ll holds all and git's copies open: fewer than 20 000
MEAN_BYTES = 13_000
EXAMPLE = pathlib.Path("/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c")
PASSTHROUGH = "passthrough_ll"
TIMES_PASSTHROUGH = {"untar": 1.2, "git add and commit": 1.5, "rm -r": 1.2}


def rows(context):
    if shutil.which("mkfs.btrfs") is None or shutil.which("mkfs.ext4") is None:
        raise Skip("there is no mkfs.btrfs or mkfs.ext4")
    files = FILES // 10 if context.quick else FILES
    archive = make_archive(context.new_path("tree.tar"), files)
    with context.removed_after(archive), contextlib.ExitStack() as stack:
        places = {"MDFS": stack.enter_context(mdfs(context)), "ext4": stack.enter_context(ext4(context)),
                  "btrfs": stack.enter_context(btrfs(context, [stack.enter_context(loop(context))]))}
        if EXAMPLE.exists():
            places[PASSTHROUGH] = stack.enter_context(passthrough(context, places["ext4"]))
        else:
            say(f"LEFT OUT {PASSTHROUGH}: no {EXAMPLE}")
        times = {}
        for _ in range(1 if context.quick else 3):
            for who, place in places.items():
                say(f"small files, {who}")
                for what, seconds in measure(place, archive):
                    times.setdefault(what, {}).setdefault(who, []).append(seconds)
    return [judged(what, {who: sorted(found)[len(found) // 2] for who, found in by_whom.items()}, files)
            for what, by_whom in times.items()]


def judged(what, seconds, files):
    own = seconds.pop("MDFS")
    whole = f"{files} small files, {what}"
    floor = {"floor": seconds.pop("ext4"), "floor_name": "ext4, in the kernel"}
    if what in TIMES_PASSTHROUGH and PASSTHROUGH in seconds:
        return table.at_most_of_peer(GROUP, whole, own, "s", seconds, PASSTHROUGH, TIMES_PASSTHROUGH[what], **floor)
    return table.Row(GROUP, whole, own, "s", peers=seconds, **floor)


def make_archive(path, files):
    """Sizes are spread as in a source tree; the content is not the same twice."""
    random = np.random.default_rng(5)
    sizes = np.minimum(random.lognormal(np.log(MEAN_BYTES) - 0.5, 1, files), 200_000).astype(int)
    with tarfile.open(path, "w") as archive:
        for number, size in enumerate(sizes):
            entry = tarfile.TarInfo(f"tree/{number // FOLDER_FILES}/{number}.txt")
            entry.size = int(size)
            archive.addfile(entry, io.BytesIO(random.bytes(size // 2 + 1).hex().encode()[:size]))
    return path


def measure(place, archive):
    """(what, seconds); nothing is left at the end."""
    tree = place / "tree"

    def clock(work):
        os.sync()
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    yield "untar", clock(lambda: run("tar", "xf", archive, "-C", place))
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(tree) for name in names]
    yield "read all", clock(lambda: [pathlib.Path(path).read_bytes() for path in paths])
    yield "append 1 KiB to each", clock(lambda: [append(path) for path in paths])
    yield "git add and commit", clock(lambda: commit_tree(tree))
    yield "rm -r", clock(lambda: run("rm", "-r", tree))


def append(path):
    with open(path, "ab") as file:
        file.write(bytes(1024))


@contextlib.contextmanager
def mdfs(context):
    with loop(context) as device, context.volume([device]), context.mounted([device]) as mnt:
        yield mnt


@contextlib.contextmanager
def ext4(context):
    with loop(context) as device, ext4_on(context, device) as mnt:
        yield mnt


@contextlib.contextmanager
def ext4_on(context, device):
    run("mkfs.ext4", "-q", "-F", device)
    mnt = context.new_path("ext4")
    mnt.mkdir()
    run("mount", "-o", "noatime", device, mnt)
    try:
        yield mnt
    finally:
        run("umount", mnt)
        mnt.rmdir()


@contextlib.contextmanager
def passthrough(context, place):
    """A folder of `place`, through passthrough_ll with its cache on."""
    program, mnt = context.new_path(PASSTHROUGH), context.new_path("passthrough")
    flags = run("pkg-config", "--cflags", "--libs", "fuse3").split()
    run("cc", "-O2", EXAMPLE, "-o", program, *flags)
    mnt.mkdir()
    folder = place / "below"
    folder.mkdir()
    with context.removed_after(program), context.server(
            [program, "-f", "-o", f"source={folder},cache=always", mnt], mnt, PASSTHROUGH):
        yield mnt
