"""Finds the reader of a file by what is in it."""
# SPDX-License-Identifier: Apache-2.0
import os
from typing import Optional

import numpy as np

from mdfs._attributes import is_image
from mdfs._convert.source import Array, Place, Source
from mdfs._image import Image

FORMATS = "OME-TIFF and TIFF, OME-Zarr and Zarr, HDF5, NIfTI, NRRD, MetaImage, DICOM, and images of MDFS"


class ImageSource(Source):
    """An image of MDFS."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "MDFS")
        self._image = Image(path)
        self.shape, self.dtype, self.axes = self._image.shape, self._image.dtype, self._image.axes
        self.chunks, self.spacing = self._image.chunks, self._image.spacing
        self.attributes = dict(self._image.attrs)

    def read(self, place: Place) -> Array:
        return np.asarray(self._image[place])

    def close(self) -> None:
        self._image.close()


def _format(path: str) -> str:
    """The name of the format, by content where that tells it."""
    if os.path.isdir(path):
        zarr = any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zgroup", ".zarray"))
        return "zarr" if zarr else "dicom"
    if is_image(path):
        return "image"
    with open(path, "rb") as file:
        head = file.read(512)
    lower = path.lower()
    if head[128:132] == b"DICM":  # what is before may be of another format
        return "dicom"
    if head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return "tiff"
    if head[:8] == b"\x89HDF\r\n\x1a\n":
        return "hdf5"
    if head[:4] == b"NRRD":
        return "nrrd"
    if head[344:348] in (b"n+1\0", b"ni1\0") or head[4:8] in (b"n+2\0", b"ni2\0") or lower.endswith(
            (".nii", ".nii.gz", ".hdr", ".img")):
        return "nifti"
    if lower.endswith((".mha", ".mhd")):
        return "metaimage"
    return ""


def open_source(path: str, dataset: Optional[str] = None, allow_warnings: bool = False) -> Source:
    """Opens a file or folder of any known format. ImportError names the package that is missing; ValueError: unknown,
    damaged, or it has several images."""
    found = _format(path)
    if dataset is not None and found not in ("tiff", "zarr", "hdf5", "dicom"):
        raise ValueError(f"dataset {dataset!r}: {path} has one image")
    try:
        if found == "image":
            return ImageSource(path)
        if found == "tiff":
            from mdfs._convert.tiff import TiffSource  # pylint: disable=import-outside-toplevel
            return TiffSource(path, dataset, allow_warnings)
        if found in ("zarr", "hdf5"):
            from mdfs._convert import chunked  # pylint: disable=import-outside-toplevel
            return chunked.ZarrSource(path, dataset) if found == "zarr" else chunked.Hdf5Source(path, dataset)
        from mdfs._convert import medical  # pylint: disable=import-outside-toplevel
        if found == "nifti":
            return medical.NiftiSource(path)
        if found == "nrrd":
            return medical.NrrdSource(path)
        if found == "metaimage":
            return medical.MetaImageSource(path)
        if found == "dicom":
            return medical.DicomSource(path, dataset)
    except ModuleNotFoundError as error:
        raise ImportError(f"{path}: the package {error.name} is missing; pip install 'mdfs[io]'") from error
    raise ValueError(f"{path}: not a format that is read: {FORMATS}. `mdfs image import` reads PNG, JPEG, EXR, DPX, "
                     "NPY, PNM and raw samples")
