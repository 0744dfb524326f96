"""Installs the Python package with pip, from a copy of its sources, and imports what was installed."""
# SPDX-License-Identifier: Apache-2.0
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCES = sys.argv.pop()


class InstallTest(unittest.TestCase):
    def test_pip_installs_the_package_and_python_finds_its_types(self):
        with tempfile.TemporaryDirectory() as folder:
            sources, place = os.path.join(folder, "python"), os.path.join(folder, "there")
            shutil.copytree(SOURCES, sources)
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps",
                            "--no-index", "--root-user-action=ignore", "--target", place, sources], check=True)
            self.assertTrue(os.path.exists(os.path.join(place, "mdfs", "py.typed")))
            told = subprocess.run([sys.executable, "-c", "import mdfs; print(mdfs.__file__, mdfs.__version__, "
                                   "mdfs.library_version())"], env=os.environ | {"PYTHONPATH": place}, cwd=folder,
                                  capture_output=True, text=True, check=True).stdout.split()
            self.assertTrue(told[0].startswith(place), told)
            self.assertEqual(told[1], told[2], "the package and the library are of one version")

    def test_a_wheel_has_all_that_pip_installs_from_the_sources(self):
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "there")
            subprocess.run([os.path.join(SOURCES, "..", "dev"), "wheel", folder], check=True, capture_output=True)
            wheel = glob.glob(os.path.join(folder, "*.whl"))
            self.assertEqual(len(wheel), 1)
            self.assertTrue(wheel[0].endswith("-py3-none-any.whl"), wheel)
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
                            "--root-user-action=ignore", "--target", place, *wheel], check=True)
            for file in ("mdfs/py.typed", "mdfs/napari.yaml", "mdfs/_convert/command.py", "bin/mdfs-convert"):
                self.assertTrue(os.path.exists(os.path.join(place, file)), file)


if __name__ == "__main__":
    unittest.main()
