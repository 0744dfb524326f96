"""What a process without privileges gets of a mount: by mode and ACL of the image itself, through each of its views."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import os
import pwd
import shutil
import signal
import stat
import subprocess
import unittest

import harness
from harness import MDFS, NOBODY, Mounted, as_user, bind, make_image, read_all, run, write_all

SIDE = 64
VIEWS = ("{0}", "{0}@/win/y0+8,x0+8.npy", "{0}@/win/y0+8,x0+8.raw", "{0}@/win/y3.raw", "{0}@/info.json", "{0}@/{1}.npy",
         "{0}@/ome.zarr/zarr.json", "{0}@/ome.zarr/0/zarr.json", "{0}@/ome.zarr/0/c/0/0")


def views(path):
    return [view.format(path, os.path.basename(path)) for view in VIEWS]


def overwrite(path):
    """As a program does that has no business there: opens for writing, without making or cutting anything."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(fd, b"evil", 0)
    finally:
        os.close(fd)


class Privilege(harness.MountTest):
    options = "cache=64M,allow_other"
    tried = 0

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        print(f"tried: {cls.tried} calls without privileges", flush=True)

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.image = self.at("scan")
        make_image(self.image, (SIDE, SIDE))
        self.bytes = bytes(i % 251 for i in range(SIDE * SIDE))
        self.fill(self.image)

    def fill(self, path):
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, self.bytes, 0)
        os.close(fd)

    def expect(self, number, call, *arguments, **options):
        Privilege.tried += 1
        self.assertEqual(errno.errorcode.get(as_user(call, *arguments, **options), "0"),
                         errno.errorcode.get(number, "0"), (call.__name__, arguments))

    def untouched(self):
        self.assertEqual(read_all(self.image), self.bytes)

    def test_each_face_of_a_closed_image_is_closed(self):
        os.chmod(self.image, 0o600)
        for view in views(self.image):
            self.expect(errno.EACCES, read_all, view)
            self.expect(errno.EACCES, overwrite, view)
            self.expect(errno.EACCES, os.open, view, os.O_RDWR)
        # No descriptor, no ioctl: O_PATH gives one that ioctls do not take.

        def ask(call, argument):
            fcntl.ioctl(os.open(self.image, os.O_PATH), call, argument)
        for call, size in ((harness.GET_GEOMETRY, harness.GEOMETRY.size), (harness.LAYOUT, harness.LAYOUT_BYTES)):
            self.expect(errno.EBADF, ask, call, bytearray(size))
        self.expect(errno.EACCES, os.truncate, self.image, 0)
        self.expect(errno.EPERM, os.chmod, self.image, 0o666)
        self.expect(errno.EPERM, os.setxattr, self.image, "trusted.a", b"b")
        self.expect(errno.EACCES, os.setxattr, self.image, "user.a", b"b")
        mirror = os.path.join(self.volume.path, ".mdfs/img", os.path.relpath(self.image, self.volume.path))
        for name in ("win/y0+8,x0+8.npy", "info.json", "scan.npy", "ome.zarr/zarr.json", "ome.zarr/0/c/0/0"):
            self.assertTrue(read_all(f"{mirror}/{name}"))
            self.expect(errno.EACCES, read_all, f"{mirror}/{name}")
        self.untouched()

    def test_an_image_in_a_closed_directory_has_no_open_face(self):
        os.mkdir(self.at("closed"), 0o700)
        image = self.at("closed/scan")
        make_image(image, (SIDE, SIDE))
        self.fill(image)
        os.chmod(image, 0o666)
        for view in views(image):
            self.assertTrue(read_all(view))
            self.expect(errno.EACCES, read_all, view)
        mirror = os.path.join(self.volume.path, ".mdfs/img", os.path.relpath(image, self.volume.path))
        for name in ("win/y0+8,x0+8.npy", "info.json", "scan.npy", "ome.zarr/zarr.json", "ome.zarr/0/c/0/0"):
            self.assertTrue(read_all(f"{mirror}/{name}"))
            self.expect(errno.EACCES, read_all, f"{mirror}/{name}")

    def test_the_access_list_of_a_directory_counts_for_its_mirror(self):
        os.mkdir(self.at("closed"))
        image = self.at("closed/scan")
        make_image(image, (SIDE, SIDE))
        self.fill(image)
        os.chmod(image, 0o644)
        mirror = os.path.join(self.volume.path, ".mdfs/img", os.path.relpath(image, self.volume.path))
        paths = [*views(image), *(f"{mirror}/{name}" for name in ("win/y0+8,x0+8.npy", "info.json", "scan.npy",
                                                                  "ome.zarr/0/c/0/0"))]
        for mode, acl, number in ((0o755, "u:65534:-", errno.EACCES), (0o700, "u:65534:rx", 0),
                                  (0o755, "g:1234:r", errno.EACCES), (0o700, "g:1234:rx", 0)):
            with self.subTest(mode=oct(mode), acl=acl):
                run("setfacl", "-b", self.at("closed"))
                os.chmod(self.at("closed"), mode)
                run("setfacl", "-m", acl, self.at("closed"))
                for path in paths:
                    self.expect(number, read_all, path, groups=[1234])

    def test_unfinished_windows_of_one_user_leave_room_for_those_of_others(self):
        image = self.at("public")
        make_image(image, (4096, 4096))
        os.chmod(image, 0o666)

        def begin_windows():
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            files = []
            try:
                for _ in range(2000):
                    files.append(os.open(image, os.O_RDWR | os.O_DIRECT))
                    bind(files[-1], (0, 0), (64, 4096))
                    os.pwrite(files[-1], bytes(4096), 0)
            except OSError as error:
                os.write(out, f"{error.errno} {len(files)}".encode())
            signal.pause()

        back, out = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                begin_windows()
            finally:
                os._exit(1)
        try:
            number, count = map(int, os.read(back, 100).split())
            self.assertEqual(number, errno.ENOSPC)
            self.assertLess(count, 1000)
            write_all(f"{self.image}@/win/all.raw", self.bytes)
            os.chmod(self.image, 0o640)
            os.chown(self.image, 0, 1234)
            for view in views(self.image):
                self.expect(0, read_all, view, groups=[1234])
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(back)
            os.close(out)

    def test_who_may_read_may_not_write_in_any_way(self):
        os.chmod(self.image, 0o644)
        for view in views(self.image):
            self.expect(0, read_all, view)
            self.expect(errno.EACCES, overwrite, view)
        # A descriptor for reading, bound: it reads its window, and is not one for writing.

        def through_a_bound_descriptor(change):
            fd = os.open(self.image, os.O_RDONLY)
            self.assertEqual(bind(fd, (0, 0), (8, 8)), 64)
            self.assertEqual(len(os.read(fd, 100)), 64)
            change(fd)
        for change, number in ((lambda fd: os.pwrite(fd, b"evil", 0), errno.EBADF),
                               (lambda fd: os.ftruncate(fd, 1), errno.EINVAL)):
            self.expect(number, through_a_bound_descriptor, change)

        def by_ioctl(call, argument):
            fd = os.open(self.image, os.O_RDONLY)
            bind(fd, (0, 0), (8, 8))
            fcntl.ioctl(fd, call, argument)
        self.expect(errno.EACCES, by_ioctl, harness.SET_GEOMETRY, harness.geometry((8, 8)))
        self.expect(0, by_ioctl, harness.APPLY, 0)  # nothing has been written
        self.untouched()

    def test_a_bound_descriptor_for_reading_cannot_be_opened_anew_for_writing(self):
        """Through /proc a descriptor is opened again: by the permission of the image."""
        os.chmod(self.image, 0o644)

        def open_again():
            fd = os.open(self.image, os.O_RDONLY)
            bind(fd, (0, 0), (8, 8))
            os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
        self.expect(errno.EACCES, open_again)
        self.untouched()

    def test_acls_let_in_and_keep_out(self):
        for mode, acl, may_read, may_write in ((0o600, "u:65534:r", True, False), (0o600, "u:65534:rw", True, True),
                                               (0o666, "u:65534:-", False, False), (0o666, "u:65534:r", True, False),
                                               (0o600, "g:1234:rw", True, True), (0o666, "g:1234:-", False, False),
                                               (0o600, "u:65534:rw,m::r", True, False)):
            with self.subTest(mode=oct(mode), acl=acl):
                run("setfacl", "-b", self.image)
                os.chmod(self.image, mode)
                run("setfacl", "-m", acl, self.image)
                for view in views(self.image):
                    self.expect(0 if may_read else errno.EACCES, read_all, view, groups=[1234])
                window = f"{self.image}@/win/y0+8,x0+8.raw"
                self.expect(0 if may_write else errno.EACCES, write_all, window, b"a" * 64, groups=[1234])
                self.expect(0 if may_write else errno.EACCES, overwrite, self.image, groups=[1234])
                self.fill(self.image)

    def test_what_only_root_may_do(self):
        for words in (("volume", "sync"), ("scrub", "start"), ("defrag", "start"), ("disk", "remove", "0"),
                      ("umount",)):
            Privilege.tried += 1
            done = subprocess.run([MDFS, *words[:2], self.volume.path, *words[2:]], user=NOBODY, group=NOBODY,
                                  extra_groups=[], capture_output=True, text=True, check=False)
            if words == ("volume", "sync"):
                continue  # every user may, as sync(1)
            self.assertNotEqual(done.returncode, 0, words)
            if words == ("umount",):
                self.assertIn("was mounted by the user 0; only that user and root may unmount it", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(os.path.ismount(self.volume.path))
        for number in range(3):
            self.assertNotEqual(as_user(os.open, self.volume.disks[number], os.O_RDWR), 0)

    def test_where_root_mounts_others_come_in_unless_told_otherwise(self):
        open_to_all = Mounted(1, "32M", "cache=16M")
        try:
            write_all(open_to_all / "file", b"x")
            os.chmod(open_to_all / "file", 0o644)
            self.assertEqual(as_user(read_all, open_to_all / "file"), 0)
            os.chmod(open_to_all / "file", 0o600)
            self.expect(errno.EACCES, read_all, open_to_all / "file")
            open_to_all.unmount()
        finally:
            open_to_all.remove()

    def test_with_noallow_other_the_mount_is_its_users_alone(self):
        other = Mounted(1, "32M", "cache=16M,allow_other,noallow_other")
        try:
            write_all(other / "file", b"x")
            os.chmod(other / "file", 0o666)
            self.expect(errno.EACCES, read_all, other / "file")
            self.expect(errno.EACCES, os.listdir, other.path)
            other.unmount()
        finally:
            other.remove()


def mount_options(path):
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words[4] == path:
                return set(words[5].split(","))
    return set()


class UserMount(unittest.TestCase):
    """A volume that somebody has prepared, mounted by a user: it gives no user a right."""

    def setUp(self):
        self.volume = Mounted(2, "32M", "cache=16M,allow_other")
        self.addCleanup(self.volume.remove)
        shutil.copyfile("/usr/bin/id", self.volume / "id")
        os.chown(self.volume / "id", 0, 0)
        os.chmod(self.volume / "id", 0o6755)
        os.mknod(self.volume / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(self.volume / "zero", stat.S_IFBLK | 0o666, os.makedev(7, 0))
        os.chown(self.volume.path, NOBODY, NOBODY)

    def gives_nothing(self):
        options = mount_options(self.volume.path)
        self.assertLessEqual({"nosuid", "nodev"}, options, options)
        said = subprocess.run([self.volume / "id", "-u"], user=NOBODY, group=NOBODY, extra_groups=[],
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.strip(), str(NOBODY), "a set-uid file gave its rights")
        for name in ("null", "zero"):
            self.assertEqual(as_user(os.open, self.volume / name, os.O_RDONLY), errno.EACCES)

    def test_a_set_uid_file_and_a_device_node_of_a_volume_give_nothing(self):
        self.gives_nothing()

    def test_nor_where_a_user_mounts_it(self):
        fusermount = shutil.which("fusermount3")
        if not fusermount or not os.stat(fusermount).st_mode & stat.S_ISUID:
            self.skipTest("fusermount3 is not set-uid")
        self.volume.unmount()
        for path in (self.volume.folder, self.volume.path, *self.volume.disks):
            os.chown(path, NOBODY, NOBODY)
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": [],
                "env": {"PATH": os.environ["PATH"], "HOME": pwd.getpwuid(NOBODY).pw_dir}}
        run(MDFS, "mount", self.volume.disks[0], self.volume.path, **user)
        try:
            options = mount_options(self.volume.path)
            self.assertLessEqual({"nosuid", "nodev"}, options, options)
            said = subprocess.run([self.volume / "id", "-u"], capture_output=True, text=True, check=True, **user)
            self.assertEqual(said.stdout.strip(), str(NOBODY))
            self.assertEqual(as_user(os.open, self.volume / "null", os.O_RDONLY), errno.EACCES)
            # suid and dev are not his to ask for.
            again = subprocess.run([MDFS, "mount", "-o", "suid,dev", self.volume.disks[0], self.volume.path],
                                   capture_output=True, text=True, check=False, **user)
            self.assertNotEqual(again.returncode, 0)
        finally:
            run(MDFS, "umount", self.volume.path, **user)


if __name__ == "__main__":
    harness.main(with_users=True)
