#!/usr/bin/env python3
"""Loop disks of a known speed for benchmarks: makes them, throttles them, takes everything down again.

usage: throttled_disks.py [options] -- COMMAND [ARGUMENT...]
Runs COMMAND with the paths of the disks in place of an argument "{}" and in MDFS_BENCH_DISKS, then takes the disks
down, also when COMMAND fails or is interrupted. Needs root. As a module: `with ThrottledDisks(...) as disks`.

The disks are files in a scratch directory behind loop devices with direct I/O. The throttle is cgroup v1 blkio on the
loop device, for processes of the caller's cgroup, or io.max of cgroup v2 in a cgroup of its own that the caller joins.
Where neither is there, the exit status is 77 (skipped), with a line on stderr that says so.
Facts worth knowing: requests of 4 to 256 KiB are throttled exactly, one of 1 MiB may get half the rate; after idleness
there is about 0.1 s of credit, so use long batches and means.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77
READ_AHEAD_KB = 128
KTHREADD = 2  # the process of which all threads of the kernel are children
SECTOR_BYTES = 512  # of the kernel's statistics, whatever the device has
CGROUP_V1 = pathlib.Path("/sys/fs/cgroup/blkio")
CGROUP_V2_ROOTS = [pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/cgroup/unified")]
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Unavailable(Exception):
    """The machine cannot do it: no root, no loop devices, no throttle."""


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {result.stderr.strip() or result.returncode}")
    return result.stdout.strip()


def cgroup_of(controller, process="self"):
    """Path of a process below the hierarchy of a controller; "" is the unified one."""
    for line in pathlib.Path(f"/proc/{process}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" == controller or (controller and controller in controllers.split(",")):
            return path.lstrip("/")
    return None


class ThrottleV1:
    """blkio.throttle.* of the cgroup that the caller is in."""

    RULES = ["read_bps", "write_bps", "read_iops", "write_iops"]

    @property
    def limits_kernel_threads(self):
        """Only where the caller is in their cgroup; a container does not see them."""
        name = pathlib.Path(f"/proc/{KTHREADD}/comm")
        return (name.exists() and name.read_text().strip() == "kthreadd"
                and cgroup_of("blkio", KTHREADD) == cgroup_of("blkio"))

    def __init__(self):
        path = cgroup_of("blkio")
        # Inside a container the path may be that of the host; then the hierarchy's own root is ours.
        candidates = [CGROUP_V1 / path, CGROUP_V1] if path is not None else []
        self.folder = next((c for c in candidates if (c / "blkio.throttle.read_bps_device").exists()), None)
        if self.folder is None:
            raise Unavailable("no cgroup v1 blkio controller")

    def set(self, numbers, bps, iops):
        """0 lifts the limit."""
        for rule in self.RULES:
            value = bps if rule.endswith("bps") else iops
            (self.folder / f"blkio.throttle.{rule}_device").write_text(f"{numbers} {value}\n")

    def close(self):
        pass


class ThrottleV2:
    """io.max of a new cgroup that the caller joins; closing moves the caller back."""

    limits_kernel_threads = False

    def __init__(self):
        path = cgroup_of("")
        root = next((r for r in CGROUP_V2_ROOTS if (r / "cgroup.controllers").exists()), None)
        if root is None or path is None or "io" not in (root / "cgroup.controllers").read_text().split():
            raise Unavailable("no cgroup v2 io controller")
        self.home = root / path
        self.folder = root / f"mdfs-bench-{os.getpid()}"
        try:
            (root / "cgroup.subtree_control").write_text("+io")
            self.folder.mkdir()
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))
        except OSError as error:
            raise Unavailable(f"cgroup v2 io controller: {error}") from error

    def set(self, numbers, bps, iops):
        bps, iops = bps or "max", iops or "max"
        (self.folder / "io.max").write_text(f"{numbers} rbps={bps} wbps={bps} riops={iops} wiops={iops}\n")

    def close(self):
        for pid in (self.folder / "cgroup.procs").read_text().split():
            (self.home / "cgroup.procs").write_text(pid)
        self.folder.rmdir()


def make_throttle():
    reasons = []
    for kind in (ThrottleV1, ThrottleV2):
        try:
            return kind()
        except Unavailable as error:
            reasons.append(str(error))
    raise Unavailable("; ".join(reasons))


def written_bytes(device):
    """What has been written to a block device since it is there."""
    fields = (pathlib.Path("/sys/block") / pathlib.Path(device).name / "stat").read_text().split()
    return int(fields[6]) * SECTOR_BYTES


class ThrottledDisks:
    """`count` loop disks of `size_bytes` in a new directory below `scratch`; unthrottled until throttle()."""

    def __init__(self, count, size_bytes, scratch=None):
        self.count, self.size_bytes, self.scratch = count, size_bytes, scratch
        self.folder = self.limiter = None
        self.paths = []
        self.files, self.lost = {}, []  # the file behind each device; the files whose devices are lost

    @property
    def limits_kernel_threads(self):
        """True if the throttle also strikes what a filesystem of the kernel reads and writes by threads of its own."""
        return self.limiter.limits_kernel_threads

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("loop devices and throttles need root")
        try:
            self.limiter = make_throttle()
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mdfs-bench-", dir=self.scratch))
            for index in range(self.count):
                file = self.folder / f"disk{index}"
                with open(file, "wb") as out:
                    os.posix_fallocate(out.fileno(), 0, self.size_bytes)
                self._attach(file)
        except BaseException:
            self.close()
            raise
        return self

    def _attach(self, file):
        device = run("losetup", "--find", "--show", "--direct-io=on", str(file))
        self.paths.append(device)
        self.files[device] = file
        queue = pathlib.Path("/sys/block") / pathlib.Path(device).name / "queue"
        (queue / "read_ahead_kb").write_text(str(READ_AHEAD_KB))

    def _numbers(self, device):
        status = os.stat(device)
        return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"

    def throttle(self, bps, iops):
        """`bps` is one rate for all disks, or a list of their rates."""
        rates = bps if isinstance(bps, list) else [bps] * self.count
        for device, rate in zip(self.paths, rates, strict=True):
            self.limiter.set(self._numbers(device), rate, iops)

    def lose(self, index):
        """The device is gone; the others keep their order."""
        device = self.paths[index]
        self.limiter.set(self._numbers(device), 0, 0)
        run("losetup", "--detach", device)
        self.paths.pop(index)
        self.lost.append(self.files.pop(device))
        self.count -= 1

    def bring_back(self):
        """The lost devices are there again, behind the others, with their old content and without a throttle."""
        while self.lost:
            self._attach(self.lost[0])
            self.lost.pop(0)
            self.count += 1

    def unthrottle(self):
        self.throttle(0, 0)

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Undoes everything that was done, and goes on where one step fails; complains at the end."""
        problems = []
        steps = []
        for device in self.paths:
            # The rule would outlast the device and strike its next user.
            steps.append(lambda d=device: self.limiter.set(self._numbers(d), 0, 0))
            steps.append(lambda d=device: run("losetup", "--detach", d))
        if self.limiter is not None:
            steps.append(self.limiter.close)
        if self.folder is not None:
            steps.append(lambda: shutil.rmtree(self.folder))
        for step in steps:
            try:
                step()
            except (OSError, Unavailable) as error:
                problems.append(str(error))
        self.paths, self.folder, self.limiter = [], None, None
        for problem in problems:
            print(f"throttled_disks: taking down: {problem}", file=sys.stderr)


def size(text):
    unit = UNITS.get(text[-1:].upper(), 1)
    return int(text[:-1] if unit > 1 else text) * unit


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=8, help="number of disks")
    parser.add_argument("--size", type=size, default=size("1G"), help="of each, in bytes or with K, M, G, T")
    parser.add_argument("--scratch", help="directory for the files (default: the temporary directory)")
    parser.add_argument("--bps", type=int, default=20_000_000, help="bytes a second each way, 0 = no limit")
    parser.add_argument("--iops", type=int, default=200, help="requests a second each way, 0 = no limit")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    return parser.parse_args()


def main():
    options = arguments()
    # SIGTERM and SIGHUP unwind like an exception, so that the disks go down.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    try:
        with ThrottledDisks(options.count, options.size, options.scratch) as disks:
            disks.throttle(options.bps, options.iops)
            command = []
            for argument in options.command:
                command += disks.paths if argument == "{}" else [argument]
            environment = dict(os.environ, MDFS_BENCH_DISKS=" ".join(disks.paths))
            return subprocess.run(command, env=environment, check=False).returncode
    except Unavailable as error:
        print(f"throttled_disks: SKIPPED, no throttled disks here: {error}", file=sys.stderr)
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
