"""A volume on file disks, mounted for the tests of one file; and the ioctls of include/mdfs/ioctl.h.

The programs come from the environment: MDFS and MKMDFS, as meson sets them.
"""
# SPDX-License-Identifier: Apache-2.0
import errno
import faulthandler
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

SKIP = 77
LONG_S = 280
RING_PARAMETER = "/sys/module/fuse/parameters/enable_uring"

MDFS = os.environ.get("MDFS", "mdfs")
MKMDFS = os.environ.get("MKMDFS", "mkmdfs")
MDFSCK = os.environ.get("MDFSCK", "mdfsck")
MDFS_SIM = os.environ.get("MDFS_SIM", "mdfs-sim")

TYPES = {"u8": 1, "u16": 2, "u32": 3, "u64": 4, "i8": 5, "i16": 6, "i32": 7, "i64": 8, "f16": 9, "f32": 10, "f64": 11}
NUMPY = {"u8": "|u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
         "f16": "<f2", "f32": "<f4", "f64": "<f8"}

MAGIC = 0xD5
GEOMETRY = struct.Struct("=I2BHBb6s5Q5II8s5d40sii4Q8Q")
WINDOW = struct.Struct("=II5Q5QiIQII3Q")
LAYOUT_HEAD = struct.Struct("=QIIII")
LAYOUT_ROW = struct.Struct("=5QIIQQ")
LAYOUT_BYTES = LAYOUT_HEAD.size + 200 * LAYOUT_ROW.size
PLAN_BYTES = WINDOW.size + 24 + 8 + 8 + 64 * 24
VOLUME_BYTES = 16 + 64 + 8 + 5 * 8 + 5 * 8 + 16 + 128 + 64 * (16 + 8 + 16 + 96)


def ioc(direction, number, size):
    return direction << 30 | size << 16 | MAGIC << 8 | number


SET_GEOMETRY = ioc(1, 1, GEOMETRY.size)
GET_GEOMETRY = ioc(2, 2, GEOMETRY.size)
BIND = ioc(3, 3, WINDOW.size)
UNBIND = ioc(0, 4, 0)
APPLY = ioc(0, 5, 0)
PLAN = ioc(3, 6, PLAN_BYTES)
LAYOUT = ioc(3, 7, LAYOUT_BYTES)
VOLUME = ioc(2, 8, VOLUME_BYTES)
SYNC = ioc(0, 9, 0)


def geometry(shape, element="u8", channels=1, codec=1, extent=(), axes="", disks=0):
    def pad(values):
        return list(values) + [0] * (5 - len(values))
    level = 3 if codec else 0
    return GEOMETRY.pack(GEOMETRY.size, len(shape), TYPES[element], channels, codec, level, b"", *pad(shape),
                         *pad(extent), disks, axes.encode(), *[0.0] * 5, b"", -1, -1, *[0] * 4, *[0] * 8)


def window(start, length, channel=-1, level=0):
    def pad(values):
        return list(values) + [0] * (5 - len(values))
    return WINDOW.pack(WINDOW.size, len(start), *pad(start), *pad(length), channel, 0, 0, level, *[0] * 4)


def bind(fd, start, length, channel=-1, level=0):
    """Binds the window; returns its size in bytes."""
    return WINDOW.unpack(fcntl.ioctl(fd, BIND, window(start, length, channel, level)))[14]


def read_now(fd, start, length, room, channel=-1, level=0):
    """The bytes of a small window, by one ioctl with so much room for them."""
    call = bytearray(window(start, length, channel, level)) + bytearray(room)
    fcntl.ioctl(fd, ioc(3, 10, len(call)), call)
    return bytes(call[WINDOW.size:WINDOW.size + WINDOW.unpack_from(call)[14]])


def make_image(path, shape, **options):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        fcntl.ioctl(fd, SET_GEOMETRY, geometry(shape, **options))
    finally:
        os.close(fd)


def read_all(path):
    with open(path, "rb") as file:
        return file.read()


def write_all(path, data):
    with open(path, "wb") as file:
        file.write(data)


def fill_filesystem(path):
    """Lengthens a file until not a page of its filesystem is left."""
    with open(path, "ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def slow_machine(seconds):
    """The file of a machine whose disks take so long for each read."""
    return f"""
name = "slow"
[[resource]]
name = "disk"
count = "disks"
[[stage]]
name = "read"
resource = "disk"
cost = ["{seconds} s", "full / 100 MB/s"]
"""


def run(*words, **options):
    """Runs a command; a failure shows what it said."""
    options.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([str(word) for word in words], stderr=subprocess.PIPE, text=True, **options)
    # The daemon's filter lacks a system call: mdfs umount says it.
    if done.returncode != 0 or "refused system calls" in done.stderr:
        raise AssertionError(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}{done.stdout or ''}")
    return done.stdout


def wait_until(condition, process=None, seconds=60):
    """`process`: what is waited for happens while it runs; its end before that is a failure, which shows what it said
    (its output is a pipe, or goes to none)."""
    end = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None:
            said = [text for text in process.communicate() if text]
            raise AssertionError(f"{' '.join(map(str, process.args))} has ended: {process.returncode} {said}")
        if time.monotonic() > end:
            raise AssertionError(f"what is waited for has not happened in {seconds} s")
        time.sleep(0.005)


def status_of(path, *options, unhealthy=False):
    """What `mdfs volume status` prints; its exit status says whether it names an error."""
    done = subprocess.run([MDFS, "volume", "status", *options, str(path)], capture_output=True, text=True, check=False)
    if unhealthy is not None and done.returncode != (4 if unhealthy else 0):
        raise AssertionError(f"volume status: exit {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


def with_rings(options):
    """The options, and FUSE over io_uring if MDFS_TEST_RINGS asks for it: a mount of root switches it on in the kernel.
    Skips the test where there is none."""
    if not os.environ.get("MDFS_TEST_RINGS"):
        return options + ",io_uring=off"
    if not os.path.exists(RING_PARAMETER):
        print(f"skipped: this kernel has no {RING_PARAMETER}")
        sys.exit(SKIP)
    return options + ",io_uring=on"


NOBODY = 65534


def as_user(call, *arguments, uid=NOBODY, groups=()):
    """The error number that the call meets in a process without privileges, 0 for none."""
    child = os.fork()
    if child == 0:
        number = 255
        try:
            os.setgroups(list(groups))
            os.setgid(uid)
            os.setuid(uid)
            call(*arguments)
            number = 0
        except OSError as error:
            number = error.errno
        finally:
            os._exit(number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Mounted:
    """A new volume, mounted. Its disks lie in a folder of the name `below`."""

    def __init__(self, disks=4, size="64M", options="cache=64M", make=(), below=""):
        self.folder = tempfile.mkdtemp(prefix="mdfs-test-")
        os.chmod(self.folder, 0o755)
        os.makedirs(os.path.join(self.folder, below), exist_ok=True)
        self.disks = [os.path.join(self.folder, below, f"disk{i}") for i in range(disks)]
        self.path = os.path.join(self.folder, "mnt")
        os.mkdir(self.path)
        run(MKMDFS, "--size", size, "--sparse", *make, *self.disks)
        self.mount(options)

    def mount(self, options="cache=64M", disks=None):
        run(MDFS, "mount", "-o", with_rings(options), *(disks or self.disks[:1]), self.path)

    def unmount(self):
        run(MDFS, "umount", self.path)

    def daemon(self):
        """The process that serves the mount: the one with the control socket's volume open, by its command line."""
        for process in os.listdir("/proc"):
            if not process.isdigit():
                continue
            try:
                words = read_all(f"/proc/{process}/cmdline").split(b"\0")
                capabilities = read_all(f"/proc/{process}/status")
            except OSError:
                continue
            # The process that keeps the right to unmount has the same command line, and its capabilities.
            if self.path.encode() in words and b"mount" in words and b"CapEff:\t0000000000000000" in capabilities:
                return int(process)
        raise AssertionError("no daemon")

    def remove(self):
        if os.path.ismount(self.path) or is_dead(self.path):
            subprocess.run([MDFS, "umount", self.path], stderr=subprocess.DEVNULL, check=False)
            subprocess.run(["umount", "-l", self.path], stderr=subprocess.DEVNULL, check=False)
        if os.path.exists(self.folder):
            shutil.rmtree(self.folder)

    def __truediv__(self, name):
        return os.path.join(self.path, name)


def is_dead(path):
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == 107
    return False


class MountTest(unittest.TestCase):
    """Tests on one mounted volume a class; each works in a directory of its own."""
    disks = 4
    size = "64M"
    options = "cache=64M"

    @classmethod
    def setUpClass(cls):
        cls.volume = Mounted(cls.disks, cls.size, cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.volume.unmount()
        cls.volume.remove()

    def setUp(self):
        self.dir = self.volume / self.id().rsplit(".", 1)[-1]
        os.mkdir(self.dir)

    def at(self, *parts):
        return os.path.join(self.dir, *parts)

    def assertErrno(self, number, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.errno, number, os.strerror(caught.exception.errno))


# A device node that every user may open, seen by this program and those that it starts alone.
OPEN_TO_USERS = """
folder=$(mktemp -d)
mount -t tmpfs none "$folder"
mknod -m 666 "$folder/fuse" c 10 229
mount --bind "$folder/fuse" /dev/fuse
umount -l "$folder"
rmdir "$folder"
exec "$@"
"""


def open_fuse_to_users():
    """Where /dev/fuse is closed to users the program begins anew, in a mount namespace of its own."""
    if not os.stat("/dev/fuse").st_mode & 0o002:
        os.execvp("unshare", ["unshare", "--mount", "sh", "-ec", OPEN_TO_USERS, "sh", sys.executable, *sys.argv])


def main(with_users=False):
    """with_users: there are tests in which a user who is not root mounts."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("SKIPPED: mounting needs root and /dev/fuse")
        sys.exit(SKIP)
    if with_users:
        open_fuse_to_users()
    faulthandler.dump_traceback_later(LONG_S)  # a test that hangs says where
    unittest.main(verbosity=2)
