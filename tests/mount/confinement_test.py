"""What the processes of a mount may still do: their users, capabilities and system calls."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pwd
import shutil
import signal
import subprocess
import time
import unittest

import harness
from harness import MDFS, MKMDFS, Mounted, bind, make_image, read_all, run, write_all

# The daemon's uid and gid where the system has no user of this name (doc/SAFETY.md, section 12).
USER = "mdfs"
UID_WITHOUT_USER = 65533
NONE = "0000000000000000"
SYS_ADMIN = f"{1 << 21:016x}"
OTHER_CALLS = os.environ.get("OTHER_CALLS")
SANITIZED = bool(os.environ.get("MDFS_SANITIZED"))


def ids():
    try:
        entry = pwd.getpwnam(USER)
        return entry.pw_uid, entry.pw_gid
    except KeyError:
        return UID_WITHOUT_USER, UID_WITHOUT_USER


def fields(path):
    """The lines of a file like /proc/PID/status, by name."""
    lines = read_all(path).decode().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_filtered_mounter(process):
    """False for a process that has ended, such as the mount(8) of a shell."""
    try:
        return (b"mounter" in read_all(f"/proc/{process}/comm") and
                fields(f"/proc/{process}/status")["Seccomp"] == "2")
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(process):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if fields(f"/proc/{name}/status")["PPid"] == str(process):
                    found.append(int(name))
            except OSError:
                pass
    return found


class Confinement(unittest.TestCase):
    def setUp(self):
        self.volume = Mounted()
        self.addCleanup(self.volume.remove)

    def assertConfined(self, path, uid, gid, capabilities):
        status = fields(path)
        told = {name: status[name] for name in ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd",
                                                "CapAmb", "NoNewPrivs", "Seccomp")}
        self.assertEqual(told, {
            "Uid": "\t".join([str(uid)] * 4), "Gid": "\t".join([str(gid)] * 4), "Groups": "", "CapInh": NONE,
            "CapPrm": capabilities, "CapEff": capabilities, "CapBnd": capabilities, "CapAmb": NONE,
            "NoNewPrivs": "1", "Seccomp": "2"}, path)

    @unittest.skipIf(SANITIZED, "ThreadSanitizer's own thread keeps what it began with")
    def test_each_thread_of_the_daemon_is_a_user_of_its_own_without_capabilities_and_behind_a_filter(self):
        daemon = self.volume.daemon()
        write_all(self.volume / "file", os.urandom(5_000_000))
        run(MDFS, "volume", "sync", self.volume.path)
        threads = os.listdir(f"/proc/{daemon}/task")
        self.assertGreater(len(threads), 10)
        for thread in threads:
            self.assertConfined(f"/proc/{daemon}/task/{thread}/status", *ids(), NONE)

    def test_the_process_that_unmounts_has_one_capability(self):
        helpers = children(self.volume.daemon())
        self.assertEqual(len(helpers), 1)
        self.assertConfined(f"/proc/{helpers[0]}/status", *ids(), SYS_ADMIN)

    @unittest.skipIf(SANITIZED or not OTHER_CALLS, "nothing is refused then, or there is no library that asks for it")
    def test_a_refused_call_is_told_by_its_name_and_harms_nothing_else(self):
        self.volume.unmount()
        run(MDFS, "mount", self.volume.disks[0], self.volume.path,
            env={**os.environ, "LD_PRELOAD": OTHER_CALLS})
        data = os.urandom(3_000_000)
        write_all(self.volume / "file", data)
        self.assertEqual(read_all(self.volume / "file"), data)
        done = subprocess.run([MDFS, "umount", self.volume.path], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr,
                         "mdfs: the daemon's filter refused system calls: getpriority; report this defect of MDFS, "
                         "unless an attacker controls the daemon\n")
        self.volume.mount()
        self.assertEqual(read_all(self.volume / "file"), data)
        self.volume.unmount()

    def test_only_root_and_the_daemon_reach_the_control_socket(self):
        volume = json.loads(run(MDFS, "volume", "status", "--json", self.volume.path))["uuid"]
        folder = f"/run/mdfs/{volume}"
        for path, uid, mode in ((folder, ids()[0], 0o700), (folder + "/control", 0, 0o600), ("/run/mdfs", 0, 0o700)):
            status = os.stat(path)
            self.assertEqual((status.st_uid, status.st_mode & 0o7777), (uid, mode), path)
        self.volume.unmount()
        self.assertFalse(os.path.exists(folder))

    def test_a_mount_of_another_user_is_behind_a_filter_and_ends_by_a_signal(self):
        if not shutil.which("fusermount3") or not os.stat(shutil.which("fusermount3")).st_mode & 0o4000:
            self.skipTest("fusermount3 is not set-uid")
        os.chown(self.volume.path, 65534, 65534)
        self.volume.unmount()
        for path in (self.volume.folder, self.volume.path, *self.volume.disks):
            os.chown(path, 65534, 65534)
        process = subprocess.Popen([MDFS, "mount", "-o", "foreground", self.volume.disks[0], self.volume.path],
                                   user=65534, group=65534, extra_groups=[], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        mounted = lambda: self.volume.path.encode() in read_all("/proc/self/mountinfo")  # root may not look inside
        end = time.time() + 20
        while not mounted():
            self.assertLess(time.time(), end)
            time.sleep(0.01)
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            status = fields(f"/proc/{process.pid}/task/{thread}/status")
            self.assertEqual([status[name] for name in ("CapPrm", "NoNewPrivs", "Seccomp")], [NONE, "1", "2"])
        process.send_signal(signal.SIGTERM)
        self.assertNotIn("refused", process.communicate(timeout=20)[1])
        self.assertEqual(process.returncode, 0)
        self.assertFalse(mounted())

    def test_a_signal_unmounts_where_the_user_of_the_daemon_could_not_look(self):
        """The mount point lies in a directory that its owner alone may search."""
        self.volume.unmount()
        for owner in (0, 1234):
            closed = os.path.join(self.volume.folder, f"closed{owner}")
            place = os.path.join(closed, "mnt")
            os.makedirs(place)
            os.chown(closed, owner, owner)
            os.chmod(closed, 0o700)
            process = subprocess.Popen([MDFS, "mount", "-o", "foreground", self.volume.disks[0], place])
            self.addCleanup(process.kill)
            self.addCleanup(subprocess.run, ["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)
            end = time.time() + 20
            while not os.path.ismount(place):
                self.assertLess(time.time(), end)
                time.sleep(0.01)
            write_all(os.path.join(place, "file"), b"kept")
            held = os.open(os.path.join(place, "file"), os.O_RDONLY)  # only a lazy unmounting takes the mount away
            process.send_signal(signal.SIGTERM)
            while os.path.ismount(place):
                self.assertLess(time.time(), end, "it stays mounted")
                time.sleep(0.01)
            os.close(held)
            self.assertEqual(process.wait(20), 0)
            self.assertEqual(os.listdir(place), [])

    def test_the_daemon_is_the_user_of_that_name_where_there_is_one(self):
        self.volume.unmount()
        table = os.path.join(self.volume.folder, "passwd")
        others = [line for line in read_all("/etc/passwd").decode().splitlines() if not line.startswith(USER + ":")]
        with open(table, "w", encoding="ascii") as file:
            file.write("\n".join([*others, f"{USER}:x:4321:4322::/:/usr/sbin/nologin", ""]))
        script = 'mount --bind "$1" /etc/passwd; shift; exec "$@"'
        process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", table,
                                    MDFS, "mount", "-o", "foreground", self.volume.disks[0], self.volume.path])
        try:
            end = time.time() + 20
            while not any(is_filtered_mounter(child) for child in children(process.pid)):
                self.assertIsNone(process.poll())
                self.assertLess(time.time(), end)
                time.sleep(0.01)
            helper, = children(process.pid)
            self.assertConfined(f"/proc/{process.pid}/status", 4321, 4322, NONE)
            self.assertConfined(f"/proc/{helper}/status", 4321, 4322, SYS_ADMIN)
        finally:
            process.terminate()
            self.assertEqual(process.wait(20), 0)

    def test_root_of_a_user_namespace_without_that_user_keeps_its_uid_alone(self):
        self.volume.unmount()
        run(MKMDFS, "--force", *self.volume.disks)  # a volume whose control socket no other user has had
        process = subprocess.Popen(["unshare", "--user", "--map-root-user", "--mount", MDFS, "mount", "-o",
                                    "foreground", self.volume.disks[0], self.volume.path],
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        path = f"/proc/{process.pid}/status"
        end = time.time() + 20
        while fields(path)["Seccomp"] != "2" or len(os.listdir(f"/proc/{process.pid}/task")) < 30:
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else None)
            self.assertLess(time.time(), end)
            time.sleep(0.01)
        status = fields(path)
        self.assertEqual([status[name] for name in ("CapPrm", "CapBnd", "NoNewPrivs")], [NONE, NONE, "1"])
        process.terminate()
        said = process.communicate(timeout=20)[1]
        self.assertIn(f"uid {ids()[0]} has no number in this user namespace", said)
        self.assertNotIn("refused", said)
        self.assertEqual(process.returncode, 0)

    def test_only_root_and_not_the_user_of_the_daemon_owns_a_mount_of_root(self):
        """Scrubs, defragmentation and the like are for root and for whoever mounted."""
        self.volume.unmount()
        self.volume.mount("cache=64M,allow_other")
        uid, gid = ids()
        tool = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", MDFS]
        done = subprocess.run([*tool, "scrub", "start", self.volume.path], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        run(MDFS, "scrub", "start", self.volume.path)

    def test_windows_are_staged_in_files_that_the_user_of_the_daemon_makes(self):
        self.volume.unmount()
        staging = os.path.join(self.volume.folder, "staging")
        os.mkdir(staging, 0o755)
        done = subprocess.run([MDFS, "mount", "-o", f"staging={staging}", self.volume.disks[0], self.volume.path],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        uid, gid = ids()
        self.assertIn(staging, done.stderr)
        self.assertIn(f"uid {uid}", done.stderr)
        os.chown(staging, uid, gid)
        os.chmod(staging, 0o700)
        self.volume.mount(f"cache=64M,staging={staging}")
        side = 5000  # more bytes than are staged in memory
        make_image(self.volume / "image", (side, side), channels=4, codec=0)
        data = os.urandom(side * side * 4)
        fd = os.open(self.volume / "image", os.O_RDWR)
        try:
            self.assertEqual(bind(fd, (0, 0), (side, side)), len(data))
            for start in range(0, len(data), 1 << 20):
                os.pwrite(fd, data[start:start + (1 << 20)], start)
        finally:
            os.close(fd)
        self.assertEqual(read_all(self.volume / "image"), data)
        self.volume.unmount()

    def test_the_next_daemon_takes_over_the_socket_of_one_that_was_killed(self):
        os.kill(self.volume.daemon(), signal.SIGKILL)
        run(MDFS, "umount", self.volume.path)
        self.volume.mount()
        self.volume.unmount()
        self.assertFalse(os.path.ismount(self.volume.path))


if __name__ == "__main__":
    harness.main(with_users=True)
