"""A volume on disks in a RADOS cluster: mounts, windows, checks, crashes of the daemon, of an OSD, and second writers.

CEPH_CONF names the cluster of tests/support/rados_cluster.sh, RADOS_FOLDER its folder; tests/rados/run.sh sets both.
"""
# SPDX-License-Identifier: Apache-2.0
import errno
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "mount"))
from harness import MDFS, MDFSCK, MKMDFS, main, run, wait_until  # noqa: E402

CONF = os.environ.get("CEPH_CONF", "")
FOLDER = os.environ.get("RADOS_FOLDER", "")
SIZE = "512M"
PATIENCE_S = 90


def cluster(*words):
    subprocess.run([str(SOURCE / "tests/support/rados_cluster.sh"), words[0], FOLDER, *words[1:]], check=True,
                   timeout=120)


def attempt(*words, **options):
    return subprocess.run(words, text=True, capture_output=True, check=False, timeout=PATIENCE_S, **options)


class RadosTest(unittest.TestCase):
    number = 0

    def setUp(self):
        RadosTest.number += 1
        self.names = [f"rados:pinned{i}/mount/v{os.getpid()}-{RadosTest.number}" for i in range(3)]
        self.path = tempfile.mkdtemp(prefix="mdfs-rados-")
        self.addCleanup(shutil.rmtree, self.path, True)
        self.addCleanup(self.unmount)

    def make(self, *options):
        run(MKMDFS, "--size", SIZE, *options, *self.names)

    def mount(self, options="cache=64M"):
        run(MDFS, "mount", "-o", f"ceph_conf={CONF},{options}", *self.names, self.path)

    def unmount(self):
        for process in self.daemons():
            os.kill(process, signal.SIGCONT)
        if os.path.ismount(self.path):
            done = attempt(MDFS, "umount", self.path)
            if done.returncode != 0:
                subprocess.run(["umount", "-l", self.path], check=False)

    def daemons(self):
        """Processes whose arguments end with the mount point: the daemon, and the one that unmounts."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if b"mount" in words and words[-2:-1] == [self.path.encode()]:
                found.append(int(entry.name))
        return sorted(found)

    def kill_daemon(self):
        for process in self.daemons():
            os.kill(process, signal.SIGKILL)
        wait_until(lambda: not self.daemons())

    def put(self, name, size=4 << 20):
        data = os.urandom(size)
        with open(f"{self.path}/{name}", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return data

    def get(self, name):
        with open(f"{self.path}/{name}", "rb") as file:
            return file.read()

    def check(self, *options):
        done = attempt(MDFSCK, *options, *self.names)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_picture_is_stored_read_by_windows_and_there_after_a_remount(self):
        self.make()
        self.mount()
        picture = os.urandom(3000 * 2000 * 3)
        source = pathlib.Path(tempfile.mkstemp(suffix=".ppm")[1])
        self.addCleanup(source.unlink)
        source.write_bytes(b"P6 3000 2000 255\n" + picture)
        run(MDFS, "image", "import", str(source), f"{self.path}/picture")
        for _ in range(2):
            part = subprocess.run([MDFS, "window", "read", f"{self.path}/picture", "y100+50,x200+70"],
                                  stdout=subprocess.PIPE, check=True)
            wanted = b"".join(picture[(y * 3000 + 200) * 3:(y * 3000 + 270) * 3] for y in range(100, 150))
            self.assertEqual(part.stdout, wanted)
            self.assertEqual(hashlib.sha256(self.get("picture")).digest(), hashlib.sha256(picture).digest())
            run(MDFS, "umount", self.path)
            self.check("--data")
            self.mount()
        listed = json.loads(run(MDFS, "disk", "list", "--json", self.path))
        self.assertEqual([disk["path"] for disk in listed["disks"]], self.names)

    def test_the_filter_of_system_calls_and_the_daemons_user_allow_all_that_a_mount_needs(self):
        self.make()
        self.mount("cache=64M,discard")
        self.put("file", 20 << 20)
        os.unlink(f"{self.path}/file")
        for _ in range(6):
            run(MDFS, "volume", "sync", self.path)
        done = attempt(MDFS, "umount", self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_disks_are_added_resized_and_replaced(self):
        self.names = self.names[:2]
        self.make("--grow-to", "2G")
        self.mount()
        data = self.put("file")
        extra = self.names[0] + "-extra"
        run(MKMDFS, "--size", SIZE, extra, env={**os.environ, "CEPH_CONF": CONF})  # a volume of its own
        for words, *options in (("holds MDFS volume",), ("leave out --size", "--size", SIZE)):
            self.assertIn(words, attempt(MDFS, "disk", "add", *options, self.path, extra).stderr)
        run(MDFS, "disk", "add", "--force", "--ceph-conf", CONF, self.path, extra)
        made = self.names[1] + "-made"
        self.assertIn("would add", run(MDFS, "disk", "add", "--size", SIZE, "--dry-run", self.path, made))
        refused = attempt(MDFS, "disk", "add", "--size", SIZE, "--ceph-conf", CONF, self.path, made, "rados:nowhere/v")
        self.assertIn("nowhere", refused.stderr)
        self.assertIn("no such disk", attempt(MDFS, "disk", "add", self.path, made).stderr)
        run(MDFS, "disk", "replace", "--size", SIZE, "--ceph-conf", CONF, self.path, extra, made)
        run(MDFS, "disk", "replace", "--force", "--size", SIZE, "--ceph-conf", CONF, self.path, made, extra)
        run(MDFS, "disk", "resize", self.path, "0", "1G")
        listed = json.loads(run(MDFS, "disk", "list", "--json", self.path))
        self.assertEqual(len(listed["disks"]), 3)
        self.assertGreater(listed["disks"][0]["blocks"] * listed["block_size"], 1000 << 20)
        removed = run(MDFS, "disk", "remove", self.path, "1")
        self.assertIn("its objects stay in the cluster: ", removed)
        self.assertIn("rados -p pinned1 -N mount ls", removed)
        self.names[1] = extra
        run(MDFS, "umount", self.path)
        self.check("--data")
        self.mount()
        self.assertEqual(self.get("file"), data)

    def test_a_local_mount_refuses_a_disk_of_a_cluster_with_the_reason(self):
        folder = tempfile.mkdtemp(prefix="mdfs-rados-")
        self.addCleanup(shutil.rmtree, folder, True)
        run(MKMDFS, "--size", "64M", f"{folder}/disk")
        run(MDFS, "mount", f"{folder}/disk", self.path)
        self.names = self.names[:1]
        self.make()
        done = attempt(MDFS, "disk", "add", "--force", self.path, self.names[0])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("without disks in RADOS", done.stderr)
        self.unmount()

    def test_the_rights_that_the_manual_names_are_enough_even_to_fence(self):
        keyring = f"{FOLDER}/lab.keyring"
        pools = ", ".join(f"profile rbd pool=pinned{i}" for i in range(3))
        run("ceph", "auth", "get-or-create", "client.lab", "mon", "profile rbd", "osd", pools, "-o", keyring)
        conf = f"{FOLDER}/lab.conf"
        with open(CONF, encoding="utf-8") as source, open(conf, "w", encoding="utf-8") as copy:
            copy.write(source.read().replace(f"keyring = {FOLDER}/keyring", f"keyring = {keyring}"))
        cluster_options = ["--ceph-conf", conf, "--ceph-id", "lab"]
        run(MKMDFS, "--size", SIZE, *cluster_options, *self.names)
        for _ in range(2):
            run(MDFS, "mount", "-o", f"ceph_conf={conf},ceph_id=lab", *self.names, self.path)
            self.put("file")
            self.kill_daemon()
        done = attempt(MDFSCK, "-p", *cluster_options, *self.names)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("was fenced", done.stderr)
        done = attempt(MKMDFS, "--size", SIZE, *cluster_options, f"rados:shared/v{os.getpid()}")
        self.assertIn("may not do that", done.stderr)
        subprocess.run(["umount", "-l", self.path], check=False)

    def test_a_cluster_without_an_answer_and_a_wrong_configuration_are_errors_within_a_bound(self):
        conf = f"{FOLDER}/nowhere.conf"
        with open(conf, "w", encoding="utf-8") as file:
            file.write(f"[global]\nmon_host = [v2:127.0.0.1:9/0]\nkeyring = {FOLDER}/keyring\n")
        began = time.monotonic()
        done = attempt(MKMDFS, "--ceph-conf", conf, *self.names)
        self.assertLess(time.monotonic() - began, 40)
        self.assertIn("does not answer", done.stderr)
        done = attempt(MKMDFS, "--ceph-conf", f"{FOLDER}/missing.conf", *self.names)
        self.assertIn(f"{FOLDER}/missing.conf: not found", done.stderr)
        done = attempt(MKMDFS, "--ceph-conf", CONF, "--ceph-id", "stranger", *self.names)
        self.assertIn("no keyring has a key of client.stranger", done.stderr)
        done = attempt(MDFS, "mount", "-o", f"ceph_conf={CONF}", "rados:absent/v", self.path)
        self.assertIn("the cluster has no pool absent", done.stderr)

    def test_an_object_of_another_program_is_never_replaced(self):
        name = f"other{os.getpid()}"
        subprocess.run(["rados", "-p", "pinned0", "put", name, "-"], input=b"mine", check=True, timeout=30)
        done = attempt(MKMDFS, "--size", SIZE, "--force", f"rados:pinned0/{name}")
        self.assertIn("is not a disk of MDFS", done.stderr)
        kept = subprocess.run(["rados", "-p", "pinned0", "get", name, "-"], stdout=subprocess.PIPE, check=True,
                              timeout=30)
        self.assertEqual(kept.stdout, b"mine")

    def test_a_second_writer_is_refused_with_the_name_of_the_first(self):
        self.make()
        self.mount()
        for words in ([MDFSCK, "-p", *self.names], [MDFSCK, *self.names], [MKMDFS, "--force", *self.names]):
            done = attempt(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, f"{self.names[0]} is in use by host .*, process [0-9]+")

    def test_what_was_acknowledged_is_there_after_the_daemon_was_killed(self):
        self.make()
        for turn in range(5):
            self.mount()
            for earlier in range(turn):
                self.assertEqual(self.get(f"file{earlier}"), self.kept[earlier])
            self.kept = [*getattr(self, "kept", []), self.put(f"file{turn}")]
            writer = threading.Thread(target=self.write_until_it_fails, daemon=True)
            writer.start()
            time.sleep(0.3 + 0.2 * turn)
            self.kill_daemon()
            writer.join(PATIENCE_S)
        self.mount()  # finishes the commit that the last kill has cut
        self.assertEqual([self.get(f"file{turn}") for turn in range(5)], self.kept)
        run(MDFS, "umount", self.path)
        self.check("--data")

    def write_until_it_fails(self):
        try:
            for number in range(1000):
                self.put(f"more{number}", 1 << 20)
        except OSError:
            pass

    def test_a_writer_that_was_only_stopped_is_fenced_and_writes_nothing_more(self):
        """The first daemon is stopped until the cluster has ended its watch; another one takes the volume over."""
        self.make()
        self.mount()
        before = self.put("before")
        daemons = self.daemons()
        for process in daemons:
            os.kill(process, signal.SIGSTOP)
        words = [MDFSCK, "-p", *self.names]
        end = time.monotonic() + PATIENCE_S
        while (done := attempt(*words)).returncode != 0 and time.monotonic() < end:
            self.assertIn("is in use by", done.stderr)
            time.sleep(1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("was fenced", done.stderr)
        for process in daemons:
            os.kill(process, signal.SIGCONT)
        with self.assertRaises(OSError):
            self.put("after")
        attempt(MDFS, "umount", "--force", self.path)
        subprocess.run(["umount", "-l", self.path], check=False, capture_output=True)
        wait_until(lambda: not self.daemons())
        self.check("--data")
        self.mount()
        self.assertEqual(self.get("before"), before)
        self.assertFalse(os.path.exists(f"{self.path}/after"))

    def break_locks(self):
        for pool, space, name in (disk.removeprefix("rados:").split("/") for disk in self.names):
            rados = ["rados", "-p", pool, "-N", space, "lock"]
            info = json.loads(run(*rados, "info", name, "mdfs", "--format", "json"))
            for locker in info["lockers"]:
                run(*rados, "break", name, "mdfs", locker["name"], "--lock-cookie", locker["cookie"])

    def test_a_writer_whose_lock_was_broken_writes_nothing_more(self):
        self.make()
        self.mount()
        before = self.put("before")
        self.break_locks()
        with self.assertRaises(OSError):
            self.put("after")
        self.end_by_force()
        self.mount()
        self.assertEqual(self.get("before"), before)
        self.assertFalse(os.path.exists(f"{self.path}/after"))

    def test_the_next_writer_fences_one_whose_lock_was_broken(self):
        self.make()
        self.mount()
        before = self.put("before")
        self.break_locks()
        done = attempt(MDFSCK, "-p", *self.names)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("used it without a lock", done.stderr)
        with self.assertRaises(OSError):
            self.put("after")
        self.end_by_force()
        self.check("--data")
        self.mount()
        self.assertEqual(self.get("before"), before)

    def end_by_force(self):
        attempt(MDFS, "umount", "--force", self.path)
        subprocess.run(["umount", "-l", self.path], check=False, capture_output=True)
        wait_until(lambda: not self.daemons())

    def test_a_disk_that_has_lost_its_header_is_no_room_for_a_new_one_and_can_be_given_it_back(self):
        self.make()
        self.mount()
        before = self.put("before")
        run(MDFS, "umount", self.path)
        pool, space, name = self.names[1].removeprefix("rados:").split("/")
        rados = ["rados", "-p", pool, "-N", space]
        header = subprocess.run([*rados, "getxattr", name, "mdfs.disk"], check=True, capture_output=True).stdout
        self.assertEqual(header, b"mdfs-disk 1 536870912 4194304\n")
        run(*rados, "rm", name)
        done = attempt(MKMDFS, "--size", SIZE, self.names[1])
        self.assertIn("a disk has lost its header here", done.stderr)
        self.assertEqual(done.returncode, 1, done.stderr)
        run(*rados, "create", name)
        run(*rados, "setxattr", name, "mdfs.disk", header.decode())
        self.check("--data")
        self.mount()
        self.assertEqual(self.get("before"), before)

    def test_a_name_that_is_none_is_an_error_of_usage(self):
        for name in ("rados:", "rados:pool", "rados:pool/", "rados:a/b/c/d", "rados:po ol/v"):
            done = attempt(MDFSCK, "-n", name)
            self.assertEqual(done.returncode, 16, (name, done.stderr))
            self.assertIn(f"{name}: ", done.stderr)

    def test_a_size_whose_maps_the_cluster_has_no_room_for_is_refused(self):
        done = attempt(MKMDFS, "--size", "999999T", f"rados:pinned0/large{os.getpid()}")
        self.assertRegex(done.stderr, "the maps of a disk of .* take .*; the pool has .* left")
        self.assertNotEqual(done.returncode, 0)

    def test_a_pool_that_reaches_its_quota_is_no_space_and_loses_nothing(self):
        self.make()
        self.mount("cache=64M")
        kept = {"before": self.put("before")}
        stored = json.loads(run("ceph", "df", "--format", "json"))
        stored = next(pool["stats"]["stored"] for pool in stored["pools"] if pool["name"] == "pinned1")
        self.addCleanup(run, "ceph", "osd", "pool", "set-quota", "pinned1", "max_bytes", "0")
        run("ceph", "osd", "pool", "set-quota", "pinned1", "max_bytes", str(stored + (40 << 20)))
        refused = None
        for number in range(60):
            begun = time.monotonic()
            try:
                kept[f"file{number}"] = self.put(f"file{number}", 6 << 20)
            except OSError as error:
                refused = error.errno
            self.assertLess(time.monotonic() - begun, 30, "a write waits for room")
            if refused is not None:
                break
            time.sleep(1)
        self.assertEqual(refused, errno.ENOSPC)
        status = attempt(MDFS, "volume", "status", self.path)
        self.assertIn("the filesystem or pool below it has", status.stdout + status.stderr)
        run("ceph", "osd", "pool", "set-quota", "pinned1", "max_bytes", "0")
        wait_until(lambda: attempt(MDFS, "volume", "sync", self.path).returncode == 0)
        kept["after"] = self.put("after")
        run(MDFS, "umount", self.path)
        self.check("--data")
        self.mount()
        for name, data in kept.items():
            self.assertEqual(self.get(name), data, name)

    def test_a_status_comes_while_an_osd_is_silent(self):
        self.make()
        self.mount()
        cluster("kill-osd", "1")
        begun = time.monotonic()
        done = attempt(MDFS, "volume", "status", self.path)
        took = time.monotonic() - begun
        cluster("start-osd", "1")
        self.assertIn(done.returncode, (0, 4), done.stderr)
        self.assertLess(took, 40, "one operation waits for 60 s")

    def test_an_osd_that_is_killed_and_comes_back_delays_and_changes_no_byte(self):
        self.names = [f"rados:shared/mount/v{os.getpid()}-{self.number}-{i}" for i in range(2)]
        self.make()
        self.mount("cache=16M")
        kept = {name: self.put(name, 3 << 20) for name in (f"before{i}" for i in range(8))}
        for osd in range(3):
            cluster("kill-osd", str(osd))
            try:
                for i in range(3):
                    kept[f"during{osd}-{i}"] = self.put(f"during{osd}-{i}", 3 << 20)
                for name, data in kept.items():
                    self.assertEqual(self.get(name), data, name)
            finally:
                cluster("start-osd", str(osd))
                cluster("start")  # waits until all is clean
        run(MDFS, "umount", self.path)
        self.check("--data")

    def test_a_pool_without_a_replica_waits_for_its_osd_and_loses_nothing(self):
        self.make()
        self.mount("cache=16M")
        kept = self.put("before", 12 << 20)
        cluster("kill-osd", "1")
        written = []
        writer = threading.Thread(target=lambda: written.append(self.put("during", 12 << 20)), daemon=True)
        writer.start()
        time.sleep(5)
        self.assertEqual(written, [])
        cluster("start-osd", "1")
        writer.join(PATIENCE_S)
        self.assertEqual(self.get("during"), written[0])
        self.assertEqual(self.get("before"), kept)
        run(MDFS, "umount", self.path)
        self.check("--data")


if __name__ == "__main__":
    main()
