"""Installs the Python package with pip, from a copy of its sources, and imports what was installed."""
# SPDX-License-Identifier: Apache-2.0
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


if __name__ == "__main__":
    unittest.main()
