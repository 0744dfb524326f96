"""A writer on another machine: namespaces of its own for mounts and processes, so that no program here sees it end.

Run as a program it mounts the volume, and writes files with fsync until that fails; it prints the number of each file
that was acknowledged, and in the end why it stopped.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import sys
import threading

# What the machine knows of mounts lies in /run, as on any other.
PREPARE = 'mkdir -p /run/mdfs && mount -t tmpfs mdfs-machine /run/mdfs && exec "$@"'
FILE_BYTES = 300_000


def content(number):
    return (f"file {number}\n".encode() * FILE_BYTES)[:FILE_BYTES]


class Machine:
    def __init__(self, mdfs, conf, names, path):
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", PREPARE, "sh",
             sys.executable, __file__, mdfs, conf, path, *names], stdout=subprocess.PIPE, text=True)
        self.acknowledged, self.failure = [], None
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()

    def listen(self):
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "stopped":
                self.failure = rest
            else:
                self.acknowledged.append(int(word))

    def processes(self):
        """All of the machine, its first one first."""
        found, seen = [], [self.process.pid]
        while seen:
            parent = seen.pop(0)
            try:
                with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
                    seen += [int(word) for word in file.read().split()]
            except OSError:
                continue
            found.append(parent)
        space = os.readlink(f"/proc/{found[1]}/ns/pid")
        for entry in os.listdir("/proc"):  # daemons have left their parents
            try:
                if entry.isdigit() and os.readlink(f"/proc/{entry}/ns/pid") == space and int(entry) not in found:
                    found.append(int(entry))
            except OSError:
                continue
        return found[1:]

    def signal(self, number):
        for process in self.processes():
            os.kill(process, number)

    def lose_power(self):
        """Its first process takes all others along."""
        os.kill(self.processes()[0], signal.SIGKILL)
        self.process.wait(60)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()  # and its child
            self.process.wait(60)
        self.reader.join(60)
        self.process.stdout.close()


def write_until_it_fails(mdfs, conf, path, *names):
    subprocess.run([mdfs, "mount", "-o", f"ceph_conf={conf},cache=64M", *names, path], check=True)
    number = 0
    try:
        while True:
            with open(f"{path}/{number}", "wb", buffering=0) as file:
                file.write(content(number))
                os.fsync(file.fileno())
            print(number, flush=True)
            number += 1
    except OSError as error:
        print(f"stopped {error}", flush=True)
    signal.pause()


if __name__ == "__main__":
    write_until_it_fails(*sys.argv[1:])
