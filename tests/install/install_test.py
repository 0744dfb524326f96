"""Installs into a folder and uses what is there: programs, links, library, pkg-config, manual pages, completion, and
mount(8), mkfs(8), fsck(8) and fstab(5) in a mount namespace where the folder lies over /usr.

usage: install_test.py MESON BUILD SOURCE PREFIX LIBDIR
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

MESON, BUILD, SOURCE, PREFIX, LIBDIR = sys.argv[1:6]
del sys.argv[1:6]
os.environ.pop("LD_LIBRARY_PATH", None)  # of the build directory, from meson
CAN_MOUNT = os.geteuid() == 0 and os.path.exists("/dev/fuse")


def run(*words, code=0, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    if done.returncode != code:
        raise AssertionError(f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="mdfs-test-install-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        os.chmod(cls.folder, 0o755)
        run(MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.folder / "root")
        cls.top = cls.folder / "root" / PREFIX.lstrip("/")
        cls.library = cls.top / LIBDIR
        cls.path = f"{cls.top}/bin:{cls.top}/sbin:{os.environ['PATH']}"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mdfs-test-install-")
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def program(self, name):
        return self.top / ("sbin" if name in ("mkmdfs", "mdfsck") or name.endswith(".mdfs") else "bin") / name

    def make_volume(self):
        disks = [self.work / f"disk{i}" for i in range(2)]
        run(self.program("mkfs.mdfs"), "--size", "16M", *disks)
        return disks

    @contextlib.contextmanager
    def mounted(self):
        """The installed program, and the directory where a new volume is mounted."""
        disk = self.make_volume()[0]
        place = self.work / "mnt"
        place.mkdir()
        mdfs = self.program("mdfs")
        run(mdfs, "mount", disk, place)
        try:
            yield mdfs, place
        finally:
            run(mdfs, "umount", place)

    def test_everything_is_where_a_user_expects_it(self):
        for name in ("bin/mdfs", "bin/mdfs-sim", "sbin/mkmdfs", "sbin/mdfsck", "sbin/mkfs.mdfs", "sbin/fsck.mdfs",
                     "sbin/mount.mdfs", f"{LIBDIR}/libmdfs.so", f"{LIBDIR}/libmdfs.so.0",
                     f"{LIBDIR}/pkgconfig/libmdfs.pc", "include/mdfs/mdfs.h", "include/mdfs/ioctl.h",
                     "share/bash-completion/completions/mdfs", "share/mdfs/magic", "lib/udev/rules.d/61-mdfs.rules"):
            self.assertTrue((self.top / name).exists(), name)
        for link, program in (("mkfs.mdfs", "mkmdfs"), ("fsck.mdfs", "mdfsck"), ("mount.mdfs", "mdfs")):
            self.assertEqual((self.top / "sbin" / link).resolve(), self.program(program).resolve())

    def test_programs_run_from_wherever_they_were_put(self):
        moved = self.work / "moved"
        shutil.copytree(self.top, moved, symlinks=True)
        for name in ("bin/mdfs", "bin/mdfs-sim", "sbin/mkfs.mdfs", "sbin/fsck.mdfs"):
            said = run(moved / name, "--version", env={"PATH": "/nowhere"})
            self.assertRegex(said, r"^[a-z-]+ [0-9]+\.[0-9]+\.[0-9]+ \(.*disk format [0-9]+\)\n$")
        for file in moved.rglob("*"):
            if file.is_file() and not file.is_symlink() and os.access(file, os.X_OK):
                found = run("readelf", "-d", file)
                self.assertNotIn(BUILD, found, f"{file} looks for libraries in the build directory")

    def test_other_programs_can_tell_what_a_disk_is(self):
        disks = [self.work / f"disk{i}" for i in range(2)]
        run(self.program("mkfs.mdfs"), "--size", "16M", "--label", "a b", *disks)
        facts = json.loads(run(self.program("mdfs"), "disk", "probe", "--json", disks[1]))
        self.assertEqual((facts["number"], facts["disks"], facts["label"], facts["bytes"]), (1, 2, "a b", 16 << 20))
        said = run("file", "-m", self.top / "share/mdfs/magic", "-b", disks[1])
        self.assertEqual(said, f'MDFS disk, format 3, disk 1 of 2, volume "a b", {facts["uuid"]}\n')
        properties = dict(line.split("=", 1) for line in
                          run(self.program("mdfs"), "disk", "probe", "--udev", disks[1]).splitlines())
        self.assertEqual(properties, {
            "ID_FS_TYPE": "mdfs", "ID_FS_USAGE": "filesystem", "ID_FS_VERSION": "3", "ID_FS_UUID": facts["uuid"],
            "ID_FS_UUID_ENC": facts["uuid"], "ID_FS_UUID_SUB": facts["disk_uuid"],
            "ID_FS_UUID_SUB_ENC": facts["disk_uuid"], "ID_FS_LABEL": "a_b", "ID_FS_LABEL_ENC": "a\\x20b"})
        (self.work / "nothing").write_bytes(bytes(1 << 20))
        run(self.program("mdfs"), "disk", "probe", "--udev", self.work / "nothing", code=1)

    def test_every_manual_page_is_there_and_renders(self):
        if not shutil.which("scdoc"):
            self.skipTest("scdoc is not installed")
        written = sorted(page.stem for page in (pathlib.Path(SOURCE) / "man").glob("*.scd"))
        if not (self.library / "gstreamer-1.0").exists():
            written.remove("mdfs-gstreamer.7")
        pages = list((self.top / "share/man").rglob("*.[1-8]"))
        self.assertEqual(sorted(page.name for page in pages if not page.is_symlink()), written)
        for link in ("mkfs.mdfs.8", "fsck.mdfs.8", "mount.fuse.mdfs.8"):
            self.assertTrue((self.top / "share/man/man8" / link).exists(), link)
        for page in pages:
            self.assertEqual(page.parent.name, "man" + page.suffix[1:])
            if shutil.which("groff"):
                told = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, check=True)
                self.assertEqual(told.stderr, b"", page)
                self.assertIn(page.resolve().name.split(".")[0].encode(), told.stdout)

    def test_a_c_program_is_built_with_pkg_config(self):
        if not shutil.which("pkg-config") or not shutil.which("cc"):
            self.skipTest("pkg-config or cc is not installed")
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.library / "pkgconfig"),
                       "PKG_CONFIG_SYSROOT_DIR": str(self.folder / "root")}
        self.assertRegex(run("pkg-config", "--modversion", "libmdfs", env=environment), r"^[0-9.]+\n$")
        flags = run("pkg-config", "--cflags", "--libs", "libmdfs", env=environment).split()
        (self.work / "program.c").write_text(
            '#include <mdfs/mdfs.h>\n#include <mdfs/version.h>\n#include <stdio.h>\nint main(void) {\n'
            '  mdfs_image* image = NULL;\n  int opened = mdfs_open("/proc/self/exe", 0, &image);\n'
            '  printf("%s %s\\n", MDFS_VERSION_STRING, opened == 0 ? "an image" : "not an image");\n'
            '  return 0;\n}\n')
        run("cc", "-std=c11", "-Wall", "-Werror", "-o", self.work / "program", self.work / "program.c", *flags)
        said = run(self.work / "program", env={"LD_LIBRARY_PATH": str(self.library)})
        self.assertRegex(said, r"^[0-9.]+ not an image\n$")

    def test_every_file_is_in_one_debian_package(self):
        multiarch = pathlib.Path(LIBDIR).name
        patterns = {}
        for listed in (pathlib.Path(SOURCE) / "debian").glob("*.install"):
            for line in listed.read_text().split("\n"):
                if line:
                    # debian/rules moves what systemd and udev look for to /lib; the zsh folder is that of Debian.
                    pattern = re.sub(r"^lib/", "usr/lib/", line)
                    patterns[pattern.replace("usr/lib/*", f"usr/lib/{multiarch}")] = listed.stem
        # Debian packages are built without it.
        self.assertIn("-Drados=disabled", (pathlib.Path(SOURCE) / "debian/rules").read_text())
        not_packaged = {self.library / "mdfs/mdfs_rados.so"}
        used = set()
        for file in self.top.rglob("*"):
            if (file.is_dir() and not file.is_symlink()) or file in not_packaged:
                continue
            name = f"usr/{file.relative_to(self.top)}"
            found = [one for one in patterns if fnmatch.fnmatch(name, one) or name.startswith(one + "/")]
            self.assertEqual(len(found), 1, f"{name} is in {found} of debian/*.install")
            used.update(found)
        expected = set(patterns)
        for module in ("mdfs_oiio.so", "mdfs_serve.so", "mdfs_film.so"):
            if not (self.library / "mdfs" / module).exists():
                expected.remove(f"usr/lib/{multiarch}/mdfs/{module}")  # built without its library
        if not (self.library / "gstreamer-1.0").exists():
            expected -= {f"usr/lib/{multiarch}/gstreamer-1.0", "usr/share/man/man7"}
        if not (self.top / "lib/systemd").exists():
            expected -= {"usr/lib/systemd/system", "usr/lib/sysusers.d"}
        self.assertEqual(used, expected, "a line of debian/*.install finds nothing")

    def test_the_source_package_names_what_the_build_needs(self):
        control = (pathlib.Path(SOURCE) / "debian/control").read_text().split("\n\n")[0]
        asked = re.search(r"^Build-Depends:((?:.*\n )*.*)", control, re.MULTILINE)[1]
        packages = {one.split()[0] for one in asked.split(",")} - {"debhelper-compat", "dh-sequence-installsysusers"}
        dev = (pathlib.Path(SOURCE) / "dev").read_text()
        listed = re.search(r"BUILD_PACKAGES=\((.*?)\n\)", dev, re.DOTALL)[1]
        listed += "\n" + re.search(r"PLUGIN_PACKAGES=\((.*?)\)", dev)[1]
        setup = {one for line in listed.split("\n") for one in line.split("#")[0].split()}
        # Those are for tests, or come with every Debian build.
        more = {"g++", "ccache", "ninja-build", "openimageio-tools", "libgtest-dev", "libgmock-dev",
                "librapidcheck-dev", "libbenchmark-dev"}
        self.assertEqual(packages, setup - more)

    def test_the_symbols_file_lists_the_functions_of_the_library(self):
        listed = (pathlib.Path(SOURCE) / "debian/libmdfs0.symbols").read_text()
        exported = run("nm", "-D", "--defined-only", self.library / "libmdfs.so")
        self.assertEqual(set(re.findall(r"^ (\w+@\w+) ", listed, re.MULTILINE)),
                         {name.replace("@@", "@") if "@" in name else f"{name}@{name}"
                          for name in re.findall(r" (\S+)$", exported, re.MULTILINE)})

    def test_completions_are_where_the_shells_look(self):
        zsh = "vendor-completions" if PREFIX == "/usr" else "site-functions"
        for name in ("mdfs", "mkmdfs", "mdfsck", "mkfs.mdfs", "fsck.mdfs", "mdfs-sim"):
            for file in (f"bash-completion/completions/{name}", f"fish/vendor_completions.d/{name}.fish"):
                self.assertTrue((self.top / "share" / file).exists(), file)
        self.assertIn("#compdef mdfs ", (self.top / "share/zsh" / zsh / "_mdfs").read_text())

    def test_gstreamer_finds_the_plugin(self):
        folder = self.library / "gstreamer-1.0"
        if not folder.exists() or not shutil.which("gst-inspect-1.0"):
            self.skipTest("the plugin was not built, or gst-inspect-1.0 is not installed")
        environment = {**os.environ, "GST_PLUGIN_PATH": str(folder), "GST_REGISTRY": str(self.work / "registry")}
        for element, written in (("mdfssrc", "lookahead"), ("mdfssink", "codec"), ("mdfsfecenc", "redundancy"),
                                 ("mdfsfecdec", "stats")):
            told = run("gst-inspect-1.0", element, env=environment)
            self.assertIn(str(folder), told)
            self.assertIn(written, told)

    @unittest.skipUnless(CAN_MOUNT, "mounting needs root and /dev/fuse")
    def test_the_installed_program_finds_its_plugin_and_plays(self):
        if not (self.library / "mdfs/mdfs_film.so").exists():
            self.skipTest("built without GStreamer")
        with self.mounted() as (mdfs, place):
            run(mdfs, "image", "create", place / "film", "--shape", "5x30x40", "--axes", "tyx")
            (place / "film").write_bytes(samples := os.urandom(6000))
            environment = {name: value for name, value in os.environ.items() if name != "GST_PLUGIN_PATH"}
            run(mdfs, "play", place / "film", "--sink", f"filesink location={self.work / 'shown'}",
                env={**environment, "GST_REGISTRY": str(self.work / "registry")})
            self.assertEqual((self.work / "shown").read_bytes(), samples)

    @unittest.skipUnless(CAN_MOUNT, "mounting needs root and /dev/fuse")
    def test_pictures_are_imported_by_the_installed_program(self):
        if not (self.library / "mdfs/mdfs_oiio.so").exists():
            self.skipTest("built without OpenImageIO")
        with self.mounted() as (mdfs, place):
            (self.work / "a.ppm").write_bytes(b"P6\n40 30\n255\n" + os.urandom(3600))
            run(mdfs, "image", "import", self.work / "a.ppm", place / "a")
            run(mdfs, "image", "export", place / "a", self.work / "a.png")
            run(mdfs, "image", "import", self.work / "a.png", place / "b")
            self.assertEqual((place / "a").read_bytes(), (place / "b").read_bytes())

    @unittest.skipUnless(CAN_MOUNT, "mounting needs root and /dev/fuse")
    def test_mount_mkfs_fsck_and_fstab_know_mdfs(self):
        """They look in /sbin only, so the installed files are laid over /usr, for this script alone."""
        script = pathlib.Path(__file__).with_name("system.sh")
        done = subprocess.run(["unshare", "-m", "--propagation", "private", "bash", script, self.top, self.work],
                              capture_output=True, text=True, check=False, timeout=120)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(done.stdout.endswith("all is known\n"), done.stdout)

    @unittest.skipUnless(CAN_MOUNT, "mounting needs root and /dev/fuse")
    def test_systemd_keeps_a_volume_mounted_in_a_sandbox(self):
        if not (self.top / "lib/systemd/system/mdfs@.service").exists():
            self.skipTest("built without systemd")
        self.make_volume()
        script = pathlib.Path(__file__).with_name("systemd.sh")
        done = subprocess.run(["unshare", "-m", "--propagation", "private", "bash", script, self.top, self.work],
                              capture_output=True, text=True, check=False, timeout=240)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        said = self.work / "said"
        told = said.read_text() if said.exists() else ""
        self.assertTrue(told.endswith("all is known\n"), told + done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
