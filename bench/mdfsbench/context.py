"""What all rows share: programs, scratch space, the timer, mounts; all is taken down at the end, come what may."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

START_SECONDS = 60
END_SECONDS = 300


class Failed(Exception):
    """A program that a row needs did not do its work."""


class Skip(Exception):
    """The machine lacks what a row needs."""


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def run(*command, **options):
    """Runs a program; its standard output. Failed with its words if it fails."""
    command = [str(word) for word in command]
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {result.returncode}: {result.stderr.strip()[-2000:]}")
    return result.stdout


def wait_for(condition, what, process=None):
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if process is not None and process.poll() is not None:
            raise Failed(f"{what}: ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not ready after {START_SECONDS} s")
        time.sleep(0.005)


def machine():
    """The machine in words and figures."""
    cpu = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    memory = next(int(line.split()[1]) for line in pathlib.Path("/proc/meminfo").read_text().splitlines()
                  if line.startswith("MemTotal"))
    cores = os.cpu_count()
    return {"cores": cores, "cpu": cpu, "kernel": platform.release(), "memory_gib": round(memory / (1 << 20), 1),
            "load": round(os.getloadavg()[0], 1),
            "text": f"{cores} cores ({cpu}), {memory / (1 << 20):.0f} GiB, Linux {platform.release()}"}


class Context:
    """Used as `with Context(options) as context`; the options are those of run.py."""

    def __init__(self, options):
        self.build, self.quick = pathlib.Path(options.build).resolve(), options.quick
        self.extent = ["--extent", options.extent] if options.extent else []
        self.scratch_parent, self.kept_images = options.scratch, options.images
        self.stack = contextlib.ExitStack()
        self.scratch = self.images = None
        self.serial = 0
        self.daemon_pid = None  # of the volume mounted last

    def __enter__(self):
        if self.scratch_parent:
            pathlib.Path(self.scratch_parent).mkdir(parents=True, exist_ok=True)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="mdfs-bench-", dir=self.scratch_parent))
        self.stack.callback(shutil.rmtree, self.scratch)
        self.images = pathlib.Path(self.kept_images) if self.kept_images else self.scratch / "images"
        self.images.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_):
        # A second signal must not leave mounts behind.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self.stack.close()

    def program(self, name):
        return self.build / name

    def mdfs(self, *arguments):
        return run(self.program("tools/mdfs"), *arguments)

    def planned_bytes(self, image, axes, boxes):
        """Mean bytes that MDFS must read of its disks for a box, with what is in its cache now."""
        total = 0
        for box in boxes:
            window = ",".join(f"{axis}{start}+{stop - start}" for axis, (start, stop) in zip(axes, box))
            plan = json.loads(self.mdfs("window", "explain", "--json", image, window))
            total += sum(disk["bytes"] for disk in plan["disks"])
        return total / len(boxes)

    def new_path(self, name):
        """A name in the scratch directory that nobody has."""
        self.serial += 1
        return self.scratch / f"{self.serial}-{name}"

    @contextlib.contextmanager
    def removed_after(self, *paths):
        try:
            yield
        finally:
            for path in paths:
                pathlib.Path(path).unlink(missing_ok=True)

    def time_reads(self, *arguments):
        """What window_timer says: times in ms."""
        return json.loads(run(self.program("bench/mount/window_timer"), *arguments))

    @contextlib.contextmanager
    def server(self, command, mountpoint, name):
        """Another FUSE server, which serves an empty directory until the end."""
        process = subprocess.Popen(list(map(str, command)), start_new_session=True)
        try:
            wait_for(lambda: os.path.ismount(mountpoint), name, process)
            yield mountpoint
        finally:
            process.terminate()
            process.wait(END_SECONDS)
            mountpoint.rmdir()

    @contextlib.contextmanager
    def trivial_server(self, file):
        """The path of a file that the least possible FUSE server holds in memory."""
        mountpoint = self.new_path("trivial")
        mountpoint.mkdir()
        with self.server([self.program("bench/mount/trivial_fuse"), mountpoint, file], mountpoint, "trivial_fuse"):
            yield mountpoint / "data"

    @contextlib.contextmanager
    def volume(self, disks, *, size=None, sparse=False, weights=None):
        """A new volume. Disks are paths; with `size` they are files that are made, and removed at the end."""
        options = ["--size", str(size)] if size else ["--force"]
        options += ["--sparse"] if sparse else []
        options += ["--weights", weights] if weights else []
        with self.removed_after(*(disks if size else [])):
            run(self.program("tools/mkmdfs"), *options, *disks)
            yield disks

    @contextlib.contextmanager
    def mounted(self, disks, options=""):
        """The mount point of a volume. Unmounted at the end, when the disks hold everything."""
        mountpoint = self.new_path("mnt")
        mountpoint.mkdir()
        words = ",".join(filter(None, ["foreground", options]))
        daemon = subprocess.Popen([str(self.program("tools/mdfs")), "mount", "-o", words, *map(str, disks),
                                   str(mountpoint)], start_new_session=True)
        self.daemon_pid = daemon.pid
        try:
            wait_for(lambda: os.path.ismount(mountpoint), "mdfs mount", daemon)
            yield mountpoint
        except BaseException:
            subprocess.run(["umount", "--lazy", str(mountpoint)], capture_output=True, check=False)
            self.end(daemon)
            raise
        else:
            self.mdfs("umount", mountpoint)
            self.end(daemon)
        finally:
            if not os.path.ismount(mountpoint):
                mountpoint.rmdir()

    def daemon_cpu_ms(self):
        """Processor time that the daemon of the volume mounted last has taken."""
        fields = pathlib.Path(f"/proc/{self.daemon_pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def end(process):
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def in_turn(self, rounds, **measurements):
        """Calls each in turn, so that what else the machine does strikes all alike; all that each says."""
        found = {name: [] for name in measurements}
        for _ in range(rounds):
            for name, measure in measurements.items():
                found[name].append(measure())
        return found

    def alternate(self, rounds, **measurements):
        """The same; the median of what each says."""
        return {name: statistics.median(values) for name, values in self.in_turn(rounds, **measurements).items()}
