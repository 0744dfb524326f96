"""Reads NAME.tif with a client that users have, and saves what the client sees.

usage: read_tiff.py CLIENT FILE OUTPUT.npy
The array has the pages first, if there are several, and channels last, if there are several.
"""
# SPDX-License-Identifier: Apache-2.0
import sys

import numpy as np


def by_tifffile(path):
    import tifffile
    with tifffile.TiffFile(path) as file:
        return np.squeeze(np.stack([page.asarray() for page in file.pages]))


def by_gdal(path):
    import rasterio
    with rasterio.open(path) as source:
        count = max(1, len(source.subdatasets))
    pages = []
    for page in range(1, count + 1):
        with rasterio.open(f"GTIFF_DIR:{page}:{path}") as source:
            pages.append(np.moveaxis(source.read(), 0, -1))
    return np.squeeze(np.stack(pages))


def by_vips(path):
    import pyvips
    pages = pyvips.Image.new_from_file(path).get("n-pages")
    return np.squeeze(np.stack([pyvips.Image.new_from_file(path, page=page).numpy() for page in range(pages)]))


CLIENTS = {"tifffile": by_tifffile, "gdal": by_gdal, "vips": by_vips}

if __name__ == "__main__":
    np.save(sys.argv[3], CLIENTS[sys.argv[1]](sys.argv[2]))
