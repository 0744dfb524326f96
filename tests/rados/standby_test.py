"""A volume in a cluster is taken over from a machine that fails, and from one that is alive.

CEPH_CONF names the cluster of tests/support/rados_cluster.sh; tests/rados/run.sh sets it.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mount"))
from harness import MDFS, MDFSCK, MKMDFS, main, run, wait_until  # noqa: E402
from machine import Machine, content  # noqa: E402

CONF = os.environ.get("CEPH_CONF", "")
PATIENCE_S = 90


class StandbyTest(unittest.TestCase):
    number = 0

    def setUp(self):
        StandbyTest.number += 1
        self.names = [f"rados:pinned{i}/standby/v{os.getpid()}-{self.number}" for i in range(3)]
        run(MKMDFS, "--size", "512M", *self.names)
        self.path = tempfile.mkdtemp(prefix="mdfs-standby-")
        self.addCleanup(shutil.rmtree, self.path, True)
        self.addCleanup(lambda: os.path.ismount(self.path) and run(MDFS, "umount", self.path))

    def writer(self):
        """A machine that has been writing for a while."""
        machine = Machine(MDFS, CONF, self.names, self.path)
        self.addCleanup(machine.end)
        wait_until(lambda: len(machine.acknowledged) > 3, seconds=PATIENCE_S)
        return machine

    def standby(self):
        """A mount that waits. It has said for what."""
        process = subprocess.Popen([MDFS, "mount", "-o", f"ceph_conf={CONF},standby,cache=64M", *self.names, self.path],
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assertRegex(process.stderr.readline(), "standing by: .* is in use by host ")
        return process

    def check_taken_over(self, machine, count):
        """All that the machine was told is stored is there; then this one writes."""
        for number in range(count):
            with open(f"{self.path}/{number}", "rb") as file:
                self.assertEqual(file.read(), content(number), number)
        with open(f"{self.path}/mine", "wb", buffering=0) as file:
            file.write(b"mine")
            os.fsync(file.fileno())
        machine.end()
        run(MDFS, "umount", self.path)
        done = subprocess.run([MDFSCK, "--data", *self.names], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_standby_mounts_when_the_machine_of_the_writer_is_gone(self):
        machine = self.writer()
        standby = self.standby()
        machine.lose_power()
        begun = time.monotonic()
        said = standby.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(standby.returncode, 0, said)
        self.assertIn("has gone and was fenced", said)
        print(f"taken over after {time.monotonic() - begun:.1f} s", file=sys.stderr)
        machine.reader.join(60)  # what it printed before
        self.check_taken_over(machine, len(machine.acknowledged))

    def test_a_standby_mounts_when_the_writer_unmounts(self):
        run(MDFS, "mount", "-o", f"ceph_conf={CONF}", *self.names, self.path)
        other = tempfile.mkdtemp(prefix="mdfs-standby-")
        self.addCleanup(shutil.rmtree, other, True)
        process = subprocess.Popen([MDFS, "mount", "-o", f"ceph_conf={CONF},standby", *self.names, other],
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assertIn("standing by: ", process.stderr.readline())
        run(MDFS, "umount", self.path)
        said = process.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(process.returncode, 0, said)
        run(MDFS, "umount", other)

    def test_a_writer_that_was_stopped_writes_nothing_after_it_was_replaced(self):
        machine = self.writer()
        standby = self.standby()
        machine.signal(signal.SIGSTOP)
        said = standby.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(standby.returncode, 0, said)
        machine.signal(signal.SIGCONT)
        wait_until(lambda: machine.failure is not None, seconds=PATIENCE_S)
        self.check_taken_over(machine, len(machine.acknowledged))

    def test_a_writer_that_is_alive_is_fenced_on_demand(self):
        machine = self.writer()
        told = json.loads(run(MDFS, "volume", "takeover", "--json", "--ceph-conf", CONF, *self.names))
        self.assertEqual([disk["disk"] for disk in told["disks"]], self.names)
        for disk in told["disks"]:
            self.assertRegex(disk["fenced"][0], "^host .*, process .* at ")
        wait_until(lambda: machine.failure is not None, seconds=PATIENCE_S)
        count = len(machine.acknowledged)
        again = run(MDFS, "volume", "takeover", "--ceph-conf", CONF, *self.names)
        self.assertEqual(again.count("its lock is free"), 3, again)
        run(MDFS, "mount", "-o", f"ceph_conf={CONF}", *self.names, self.path)
        self.check_taken_over(machine, count)

    def test_readers_are_not_fenced(self):
        run(MDFS, "mount", "-o", f"ro,ceph_conf={CONF}", *self.names, self.path)
        done = subprocess.run([MDFS, "volume", "takeover", "--ceph-conf", CONF, *self.names], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("for reading", done.stderr)
        self.assertEqual(os.listdir(self.path), [])


if __name__ == "__main__":
    main()
