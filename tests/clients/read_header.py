"""Reads an image through a detached header with a client that users have, and saves what the client sees.

usage: read_header.py CLIENT HEADER OUTPUT.npy
The array has the axes of the image, slowest first, and channels last. Prints the spacing, slowest axis first, as JSON.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import sys

import numpy as np


def by_pynrrd(path):
    import nrrd
    array, header = nrrd.read(path, index_order="C")
    return array, [None if np.isnan(one) else float(one) for one in header.get("spacings", [])[::-1]]


def by_simpleitk(path):
    import SimpleITK
    image = SimpleITK.ReadImage(path)
    return SimpleITK.GetArrayFromImage(image), list(image.GetSpacing())[::-1]


def by_gdal(path):
    import rasterio
    with rasterio.open(path) as source:
        return source.read(), None


CLIENTS = {"pynrrd": by_pynrrd, "simpleitk": by_simpleitk, "gdal": by_gdal}

if __name__ == "__main__":
    seen, spacing = CLIENTS[sys.argv[1]](sys.argv[2])
    np.save(sys.argv[3], seen)
    print(json.dumps(spacing))
