"""Files that programs make: no planted name decides what is written, and a killed program leaves none."""
# SPDX-License-Identifier: Apache-2.0
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

import numpy
from harness import MDFS, MDFS_SIM, MountTest, main, run

SECRET = b"what somebody else owns\n"
HIDDEN_NAMES = 16  # of a user in a folder, where a file without a name cannot be made (tools/support/exclusive_file.cc)


def hidden_files(folder):
    return [name for name in os.listdir(folder) if name.startswith(".part-")]


def links_of(process):
    for link in glob.glob(f"/proc/{process.pid}/fd/*"):
        try:
            yield os.readlink(link)
        except OSError:
            pass  # closed meanwhile


def is_locked(path):
    """A living program holds the file: before that it counts as abandoned."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass  # it has its own name already
    return False


class Outputs(MountTest):
    def setUp(self):
        super().setUp()
        self.shared = tempfile.mkdtemp(prefix="mdfs-shared-")
        self.addCleanup(shutil.rmtree, self.shared)
        os.chmod(self.shared, 0o1777)
        self.victim = os.path.join(self.shared, "victim")
        with open(self.victim, "wb") as file:
            file.write(SECRET)
        run(MDFS, "image", "create", self.at("a"), "--shape", "64x64")

    def unharmed(self):
        with open(self.victim, "rb") as file:
            self.assertEqual(file.read(), SECRET)

    def run_with_planted_names(self, folder, base, *command):
        """The command, in a process whose hidden names of old lead to the victim already."""
        script = ('for n in 0 1 2 3; do ln -s "$1" "$2/.part-$$-$n-$3"; done; ln -s "$1" "$2/.part-$$-$3"; '
                  'shift 3; exec "$@"')
        for number in range(HIDDEN_NAMES):
            name = os.path.join(folder, f".part-{os.geteuid()}-{number}")
            if not os.path.lexists(name):
                os.symlink(self.victim, name)
        return subprocess.run(["sh", "-ec", script, "sh", self.victim, folder, base, *command],
                              stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, check=False)

    def test_planted_hidden_names_lead_an_output_nowhere(self):
        on_volume = self.at("out")
        os.mkdir(on_volume)
        for folder in (self.shared, on_volume):  # with O_TMPFILE, and without
            for base in ("a.raw", "a.npy", "a.pgm", "a.tif"):
                for command in ((MDFS, "image", "export", self.at("a")),
                                (MDFS, "window", "read", self.at("a"), "y3+20,x5+30")):
                    target = os.path.join(folder, base)
                    output = [target] if "export" in command else ["-o", target]
                    done = self.run_with_planted_names(folder, base, *command, *output)
                    if "built without OpenImageIO" in done.stderr:
                        continue
                    self.unharmed()
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertFalse(os.path.islink(target))
                    os.unlink(target)

    def test_planted_hidden_names_lead_an_import_nowhere(self):
        numpy.save(self.at("a.npy"), numpy.zeros((8, 9), "u1"))
        done = self.run_with_planted_names(self.dir, "b", MDFS, "image", "import", self.at("a.npy"), self.at("b"))
        self.unharmed()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.stat(self.at("b")).st_size, 72)

    def test_a_link_under_the_name_of_an_output_is_replaced_or_refused_and_not_followed(self):
        machine = self.at("machine")
        with open(machine, "wb") as file:
            file.write(bytes(4 << 20))
        link = os.path.join(self.shared, "link.svg")
        nowhere = os.path.join(self.shared, "nowhere")
        for command in ((MDFS, "image", "layout", self.at("a"), "--svg", link, "--force"),
                        (MDFS, "image", "layout", self.at("a"), "--svg", link),
                        (MDFS, "volume", "map", self.dir, "--svg", link, "--force"),
                        (MDFS, "volume", "map", self.dir, "--svg", link),
                        (MDFS, "image", "export", self.at("a"), link + ".raw", "--force"),
                        (MDFS, "image", "export", self.at("a"), link + ".raw")):
            for planted in (self.victim, nowhere):
                name = next(word for word in command if word.startswith(link))
                os.symlink(planted, name)
                done = subprocess.run(command, capture_output=True, check=False)
                self.unharmed()
                self.assertFalse(os.path.exists(nowhere), command)
                replaced = "--force" in command
                self.assertEqual(done.returncode == 0, replaced, (command, done.stderr))
                self.assertEqual(os.path.islink(name), not replaced)
                os.unlink(name)

    def test_a_link_under_the_name_of_a_machine_file_is_not_followed(self):
        target = os.path.join(self.shared, "disk")
        with open(target, "wb") as file:
            file.truncate(8 << 20)
        link = os.path.join(self.shared, "machine.toml")
        os.symlink(self.victim, link)
        subprocess.run([MDFS_SIM, "calibrate", target, "--reads", "2", "--sizes", "4096,65536", "-o", link],
                       capture_output=True, check=False)
        self.unharmed()

    def test_a_link_to_a_device_that_somebody_else_planted_is_refused(self):
        link = os.path.join(self.shared, "out.raw")
        os.symlink("/dev/null", link)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        pipe = os.path.join(self.shared, "pipe.raw")
        os.mkfifo(pipe)
        os.chown(pipe, 65534, 65534)
        for target in (link, pipe):
            done = subprocess.run([MDFS, "image", "export", self.at("a"), target], capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(target, done.stderr)
        os.chown(link, 0, 0, follow_symlinks=False)
        run(MDFS, "image", "export", self.at("a"), link)

    def test_a_trace_does_not_follow_a_planted_link(self):
        link = os.path.join(self.shared, "trace")
        os.symlink(self.victim, link)
        mount = os.path.join(self.shared, "mnt")
        os.mkdir(mount)
        disk = os.path.join(self.shared, "disk")
        run(os.environ["MKMDFS"], "--size", "64M", "--sparse", disk)
        done = subprocess.run([MDFS, "mount", "-o", f"trace={link}", disk, mount], capture_output=True, text=True,
                              check=False)
        if done.returncode == 0:
            run(MDFS, "umount", mount)
        self.unharmed()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(link, done.stderr)
        # Its own file of an earlier mount is replaced.
        os.unlink(link)
        for _ in range(2):
            run(MDFS, "mount", "-o", f"trace={link}", disk, mount)
            run(MDFS, "umount", mount)

    def started(self, *command):
        """The command, stopped while it has a hidden file that did not exist before."""
        before = set(hidden_files(self.dir))
        for _ in range(100):  # it may end before it is seen
            process = subprocess.Popen([MDFS, "image", *command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            while not any(is_locked(self.at(name)) for name in set(hidden_files(self.dir)) - before):
                if process.poll() is not None:
                    break
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            if process.poll() is None and set(hidden_files(self.dir)) - before:
                return process
            process.send_signal(signal.SIGCONT)
            self.assertEqual(process.wait(), 0, process.stderr.read())
            os.unlink(command[-1])
        self.fail("it always ended before it could be stopped")

    def large(self):
        with open(self.at("large.npy"), "wb") as file:
            numpy.lib.format.write_array_header_1_0(
                file, {"descr": "|u1", "fortran_order": False, "shape": (20000, 20000)})
            file.truncate(file.tell() + 20000**2)

    def test_leftovers_of_killed_imports_are_removed_by_the_next_one_and_living_ones_are_not(self):
        self.large()
        numpy.save(self.at("a.npy"), numpy.zeros((8, 9), "u1"))
        dead = [self.started("import", self.at("large.npy"), self.at(f"dead{i}")) for i in range(3)]
        living = self.started("import", self.at("large.npy"), self.at("living"))
        for process in dead:
            process.kill()
            process.communicate()
        self.assertEqual(len(hidden_files(self.dir)), 4)
        run(MDFS, "image", "import", self.at("a.npy"), self.at("b"))
        self.assertEqual(len(hidden_files(self.dir)), 1)
        living.send_signal(signal.SIGCONT)
        _, text = living.communicate(timeout=300)
        self.assertEqual(living.returncode, 0, text)
        self.assertEqual(hidden_files(self.dir), [])
        self.assertEqual(os.stat(self.at("living")).st_size, 20000**2)

    def test_a_killed_export_leaves_nothing_where_files_need_no_name(self):
        run(MDFS, "image", "create", self.at("zeros"), "--shape", "60000x60000")
        before = sorted(os.listdir(self.shared))
        with subprocess.Popen([MDFS, "image", "export", self.at("zeros"), os.path.join(self.shared, "z.raw")],
                              stderr=subprocess.DEVNULL) as process:
            while not any(link.startswith(self.shared) and link.endswith(" (deleted)") for link in links_of(process)):
                self.assertIsNone(process.poll(), "it did not work on a file without a name")
            process.kill()
        self.assertEqual(sorted(os.listdir(self.shared)), before)

    # ---- a target without room

    def target(self, size, filesystem="tmpfs"):
        """A filesystem of so many bytes. ext2 lies on a disk that has less room than it names."""
        folder = tempfile.mkdtemp(prefix="mdfs-target-")
        self.addCleanup(os.rmdir, folder)
        if filesystem == "tmpfs":
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
        else:
            disk = os.path.join(self.target(size), "disk")
            with open(disk, "wb") as file:
                file.truncate(64 << 20)
            subprocess.run(["mkfs.ext2", "-q", "-m", "0", disk], check=True)
            subprocess.run(["mount", "-o", "loop", disk, folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def pictures(self):
        """An image for each format that export offers, of samples that do not shrink."""
        made = {"u8": (self.at("u8"), ["--shape", "200x300", "--channels", "3"]),
                "f16": (self.at("f16"), ["--shape", "200x300", "--type", "f16"]),
                "pages": (self.at("pages"), ["--shape", "3x200x100"])}
        for path, options in made.values():
            run(MDFS, "image", "create", path, *options)
            samples = numpy.random.default_rng(1).integers(0, 1 << 10, os.stat(path).st_size // 2, "u2")
            with open(path, "r+b") as file:
                file.write(samples.tobytes())
        names = ["raw", "npy", "ppm"]
        probe = subprocess.run([MDFS, "image", "export", made["u8"][0], self.at("probe.png")], capture_output=True,
                               text=True, check=False)
        if "built without OpenImageIO" not in probe.stderr:
            self.assertEqual(probe.returncode, 0, probe.stderr)
            names += ["png", "tif", "jpg", "bmp", "tga", "sgi", "dpx"]
            yield made["f16"][0], "exr"
            yield made["pages"][0], "tif"
        for name in names:
            yield made["u8"][0], name

    def assertFails(self, command, folder, left):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seen = {name: os.stat(os.path.join(folder, name)).st_size for name in os.listdir(folder)}
        about = (command, done.returncode, done.stderr, seen)
        self.assertEqual(done.returncode, 1, about)
        self.assertIn("mdfs", done.stderr, about)
        self.assertEqual(list(seen), left, about)

    def test_an_export_without_room_fails_and_leaves_an_older_file_as_it_was(self):
        older = b"an older file\n"
        block = 4096
        for image, ending in self.pictures():
            whole = os.path.join(self.shared, "whole." + ending)
            run(MDFS, "image", "export", image, whole, "--force")
            size = os.stat(whole).st_size
            name = "o." + ending
            for room in sorted({block, size // 2 // block * block, (size - 1) // block * block}):
                with self.subTest(ending=ending, image=os.path.basename(image), room=room, size=size):
                    folder = self.target(room + block)
                    path = os.path.join(folder, name)
                    with open(path, "wb") as file:
                        file.write(older)
                    self.assertFails([MDFS, "image", "export", image, path, "--force"], folder, [name])
                    with open(path, "rb") as file:
                        self.assertEqual(file.read(), older)
            with self.subTest(ending=ending, image=os.path.basename(image), room="enough"):
                folder = self.target((size + block - 1) // block * block)
                run(MDFS, "image", "export", image, os.path.join(folder, name))
                self.assertEqual(os.stat(os.path.join(folder, name)).st_size, size)

    def test_other_commands_that_write_an_image_file_without_room_fail(self):
        for image, ending in self.pictures():
            with self.subTest(ending=ending, image=os.path.basename(image)):
                folder = self.target(16384)
                path = os.path.join(folder, "o." + ending)
                self.assertFails([MDFS, "window", "read", image, "all", "-o", path], folder, [])
                self.assertFails([MDFS, "image", "salvage", image, path], folder, [])

    def test_an_export_to_a_full_device_fails(self):
        for image, ending in self.pictures():
            with self.subTest(ending=ending, image=os.path.basename(image)):
                folder = tempfile.mkdtemp(dir=self.shared)
                path = os.path.join(folder, "o." + ending)
                os.symlink("/dev/full", path)
                self.assertFails([MDFS, "image", "export", image, path], folder, ["o." + ending])

    def test_an_export_fails_that_the_disk_refuses_only_when_it_is_written_back(self):
        run(MDFS, "image", "create", self.at("large"), "--shape", "3000x3000")
        with open(self.at("large"), "r+b") as file:
            file.write(numpy.random.default_rng(1).bytes(9_000_000))
        for ending in ("raw", "png"):
            folder = self.target(4 << 20, "ext2")
            path = os.path.join(folder, "o." + ending)
            done = subprocess.run([MDFS, "image", "export", self.at("large"), path], capture_output=True, text=True,
                                  check=False)
            if "built without OpenImageIO" in done.stderr:
                continue
            self.assertIn(done.returncode, (1, 3), (ending, done.stderr))
            self.assertEqual(os.listdir(folder), ["lost+found"])


if __name__ == "__main__":
    main()
