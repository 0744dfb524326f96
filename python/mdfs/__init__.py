"""Images on a mounted MDFS volume, indexed like NumPy arrays.

    import mdfs
    image = mdfs.open("mnt/scan")
    window = image[10, 100:612, 200:712]

The package calls libmdfs, which must be installed; the environment variable MDFS_LIBRARY names another one.
"""
# SPDX-License-Identifier: Apache-2.0
from mdfs._convert import convert
from mdfs._create import create, imread, imwrite, open  # pylint: disable=redefined-builtin
from mdfs._image import Image
from mdfs._library import library_version
from mdfs._stream import Frame, RateRefused, Stream
from mdfs._volume import Volume, volume

__all__ = ["Frame", "Image", "RateRefused", "Stream", "Volume", "convert", "create", "imread", "imwrite",
           "library_version", "open", "volume"]
__version__ = "0.1.0"
