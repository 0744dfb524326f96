"""Archives and copies bring images back as images: the attribute user.mdfs.geometry."""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import shutil
import subprocess
import tempfile

import harness
from harness import make_image

NAME = "user.mdfs.geometry"


class Archives(harness.MountTest):
    def setUp(self):
        super().setUp()
        self.outside = tempfile.mkdtemp(prefix="outside-")
        self.addCleanup(shutil.rmtree, self.outside)

    def make_folder(self, folder):
        """Two images, one of which ends within a frame, and a file."""
        os.mkdir(folder)
        make_image(f"{folder}/slide", [300, 500], element="u16", channels=3)
        with open(f"{folder}/slide", "r+b") as file:
            file.write(os.urandom(300 * 500 * 6))
        make_image(f"{folder}/stack", [2, 64, 64])
        with open(f"{folder}/stack", "ab") as file:
            file.write(os.urandom(5000))
        with open(f"{folder}/notes", "wb") as file:
            file.write(b"a file")
        os.setxattr(f"{folder}/notes", "user.by", b"me")

    def check_folder(self, folder, source):
        for name in ("slide", "stack"):
            self.assertEqual(json.loads(os.getxattr(f"{folder}/{name}", NAME)),
                             json.loads(os.getxattr(f"{source}/{name}", NAME)))
            with open(f"{folder}/{name}", "rb") as one, open(f"{source}/{name}", "rb") as other:
                self.assertEqual(one.read(), other.read())
            with open(f"{folder}/{name}@/info.json", "rb") as file:
                self.assertEqual(json.load(file)["size_bytes"], os.path.getsize(f"{source}/{name}"))
        self.assertNotIn(NAME, os.listxattr(f"{folder}/notes"))
        self.assertEqual(os.getxattr(f"{folder}/notes", "user.by"), b"me")

    def run_in(self, folder, *command):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    def bring_back(self, name, there, back):
        source, restored = self.at(name), self.at(name + "-back")
        self.make_folder(source)
        self.addCleanup(shutil.rmtree, source)
        self.addCleanup(shutil.rmtree, restored, ignore_errors=True)
        there(source)
        back(restored)
        self.check_folder(restored, source)

    def test_tar_brings_images_back(self):
        archive = f"{self.outside}/a.tar"
        self.bring_back("tar", lambda source: self.run_in(source, "tar", "--xattrs", "--sparse", "-cf", archive, "."),
                        lambda to: (os.mkdir(to), self.run_in(to, "tar", "--xattrs", "-xf", archive)))

    def test_cp_a_brings_images_back(self):
        kept = f"{self.outside}/cp"
        self.bring_back("cp", lambda source: self.run_in("/", "cp", "-a", source, kept),
                        lambda to: self.run_in("/", "cp", "-a", kept, to))

    def test_cp_a_within_the_volume_copies_images_as_images(self):
        self.bring_back("cpin", lambda source: None,
                        lambda to: self.run_in("/", "cp", "-a", self.at("cpin"), to))

    def test_rsync_brings_images_back(self):
        kept = f"{self.outside}/rsync"
        self.bring_back("rsync", lambda source: self.run_in("/", "rsync", "-aX", source + "/", kept + "/"),
                        lambda to: self.run_in("/", "rsync", "-aX", kept + "/", to + "/"))

    def test_rsync_again_changes_nothing_and_then_what_has_changed(self):
        kept, restored = f"{self.outside}/again", self.at("again-back")
        self.make_folder(self.at("again"))
        self.addCleanup(shutil.rmtree, restored)
        self.addCleanup(shutil.rmtree, self.at("again"))
        for _ in range(2):
            self.run_in("/", "rsync", "-aXc", self.at("again") + "/", kept + "/")
            self.run_in("/", "rsync", "-aXc", kept + "/", restored + "/")
            self.check_folder(restored, self.at("again"))
            with open(self.at("again", "slide"), "r+b") as file:
                file.seek(1000)
                file.write(b"changed")

    def test_an_ordinary_file_becomes_an_image_by_the_attribute_whole_or_empty(self):
        for size in (0, 6000):
            path = self.at(f"by-hand-{size}")
            content = os.urandom(size)
            with open(path, "wb") as file:
                file.write(content)
            with self.assertRaises(OSError) as raised:
                os.getxattr(path, NAME)
            self.assertEqual(raised.exception.errno, errno.ENODATA)
            os.setxattr(path, NAME, b'{"shape": [20, 300], "type": "u8", "spacing": [0.5, 0.5], "unit": ["um", "um"]}')
            self.assertEqual(os.stat(path).st_size, 6000)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), content or bytes(6000))
            self.assertIn(NAME, os.listxattr(path))
            self.assertEqual(json.loads(os.getxattr(path, NAME))["spacing"], [0.5, 0.5])
            with open(f"{path}@/win/y5+2,x10+20.raw", "rb") as file:
                self.assertEqual(file.read(), b"".join((content or bytes(6000))[at:at + 20] for at in (1510, 1810)))

    def test_what_cannot_be_is_refused_and_the_file_stays_what_it_is(self):
        path = self.at("refused")
        with open(path, "wb") as file:
            file.write(b"x" * 100)
        for value, flags, number in ((b"", 0, errno.EINVAL), (b"{}", 0, errno.EINVAL), (b"\xff" * 100, 0, errno.EINVAL),
                                     (b'{"shape": [9, 9], "type": "u8"}', 0, errno.EINVAL),
                                     (b'{"shape": [10, 10], "type": "u8"}', os.XATTR_REPLACE, errno.ENODATA)):
            with self.assertRaises(OSError) as raised:
                os.setxattr(path, NAME, value, flags)
            self.assertEqual(raised.exception.errno, number, value)
        self.assertEqual(os.listxattr(path), [])
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"x" * 100)
        os.setxattr(path, NAME, b'{"shape": [10, 10], "type": "u8"}', os.XATTR_CREATE)
        for value, flags, number in ((b'{"shape": [10, 10], "type": "u8"}', os.XATTR_CREATE, errno.EEXIST),
                                     (b'{"shape": [100], "type": "u8"}', 0, errno.EEXIST)):
            with self.assertRaises(OSError) as raised:
                os.setxattr(path, NAME, value, flags)
            self.assertEqual(raised.exception.errno, number, value)
        with self.assertRaises(OSError) as raised:
            os.removexattr(path, NAME)
        self.assertEqual(raised.exception.errno, errno.EPERM)


if __name__ == "__main__":
    harness.main()
