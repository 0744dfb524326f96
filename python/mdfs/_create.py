"""Opening and making images, and images as arrays as a whole."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import ctypes
import operator
import os
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from mdfs import _chunks, _levels, _library
from mdfs._image import Image
from mdfs._library import Geometry, check, library
from mdfs._samples import Array

STORED_BYTES = 32 << 20  # of a box that is stored at a time


def open(path: Union[str, "os.PathLike[str]"], mode: str = "r") -> Image:  # pylint: disable=redefined-builtin
    """Opens an image. `mode`: "r" to read, "r+" to read and write."""
    return Image(path, mode)


def create(path: Union[str, "os.PathLike[str]"], shape: Sequence[int], dtype: npt.DTypeLike,
           axes: Optional[str] = None, extent: Optional[Sequence[int]] = None, codec: str = "zstd",
           spacing: Optional[Mapping[str, Tuple[float, str]]] = None, levels: _levels.Count = None,
           reduce: Optional[str] = None) -> Image:
    """Makes an image of zeros, and opens it with mode "r+".

    Parameters
    ----------
    path : str or os.PathLike
        A name on a mounted volume that does not exist yet.
    shape : sequence of int
        Lengths of the axes, slowest first.
    dtype : data type
        Integers of 8 to 64 bits, or floating point numbers of 16, 32 or 64 bits.
    axes : str, optional
        A letter for each axis; a "c" at the end makes the last axis the channels, another "c" is an axis. Default:
        "x", "yx", "zyx", "tzyx" or "tczyx".
    extent : sequence of int, optional
        The shape of an extent, without channels. Default: the volume chooses it.
    codec : str
        "raw", "zstd", or "zstd:" and a level from 1 to 19.
    spacing : mapping, optional
        From letters of axes to the distance between samples and its unit, such as {"x": (0.3, "um")}.
    levels : int, "auto" or None
        How many resolution levels are stored, and `reduce`: as for Image.set_levels().
    reduce : {"mean", "nearest", "max"}, optional
        How a sample of a level is made of those below. Default: the mean.
    """
    if reduce is not None and not levels:
        raise ValueError("reduce is of levels: store some")
    request = _levels.asked(levels, reduce)
    lengths = [operator.index(length) for length in shape]
    if axes is None:
        axes = {4: "tzyx", 5: "tczyx"}.get(len(lengths), "zyx"[max(0, 3 - len(lengths)):])
    channels = 1
    if len(axes) != len(lengths):
        raise ValueError(f"axes {axes!r}: {len(lengths)} letters are required, one for each length")
    if axes.endswith("c"):
        axes, channels = axes[:-1], lengths.pop()
    number, level = _library.parse_codec(codec)
    kind = np.dtype(dtype).newbyteorder("=")
    if kind.name not in _library.TYPES:
        raise TypeError(f"images have no samples of {kind}")
    if not 1 <= len(lengths) <= _library.MAX_RANK or not 1 <= channels <= 0xffff or any(
            not 0 <= n < 1 << 64 for n in lengths):
        raise ValueError(f"no image has shape {tuple(shape)} with axes {axes!r}")
    geometry = Geometry(struct_bytes=ctypes.sizeof(Geometry), rank=len(lengths), type=_library.TYPES[kind.name],
                        channels=channels, codec=number, codec_level=level, axes=axes.encode(), row_offset=-1,
                        plane_offset=-1)
    for axis, length in enumerate(lengths):
        geometry.shape[axis] = length
    if extent is not None:
        if len(extent) != len(lengths) or any(not 1 <= operator.index(length) <= 0xffffffff for length in extent):
            raise ValueError(f"extent {tuple(extent)}: {len(lengths)} lengths are required, each of 1 or more")
        for axis, length in enumerate(extent):
            geometry.extent[axis] = operator.index(length)
    for letter, (distance, unit) in (spacing or {}).items():
        if letter not in axes or len(unit.encode()) > 7 or not 0 < distance < float("inf"):
            raise ValueError(f"spacing of {letter!r}: must be of one of the axes {axes!r}, positive, and its unit must "
                             "have at most 7 bytes")
        geometry.spacing[axes.index(letter)] = distance
        geometry.unit[axes.index(letter)].value = unit.encode()
    check(library().mdfs_create(_library.encoded(path), ctypes.byref(geometry), 0o666))
    image = Image(path, "r+")
    if request.count > 0:
        try:
            image.set_levels(levels, reduce)
        except BaseException:
            image.close()
            os.unlink(image.path)
            raise
    return image


@contextlib.contextmanager
def new_image(path: Union[str, "os.PathLike[str]"], shape: Sequence[int], dtype: npt.DTypeLike,
              axes: Optional[str] = None, **options: Any) -> Iterator[Image]:
    """Makes an image that is on the disks at the end of the block; an error within the block removes it."""
    with create(path, shape, dtype, axes, **options) as image:
        try:
            yield image
            image.sync()
        except BaseException:
            os.unlink(image.path)
            raise


def store_boxes(image: Image, samples_of: Callable[[Tuple[slice, ...]], Array]) -> None:
    """Writes box by box, so that what is lazy is never in memory as a whole."""
    for place in _chunks.places(image.shape, image.chunks, STORED_BYTES // image.dtype.itemsize):
        image[place] = samples_of(place)


def imread(path: Union[str, "os.PathLike[str]"]) -> Array:
    """All samples of an image, as numpy.asarray(image): boxes of 16 MiB are of one version each."""
    with Image(path) as image:
        return np.asarray(image)


def imwrite(path: Union[str, "os.PathLike[str]"], array: npt.ArrayLike, axes: Optional[str] = None,
            **options: Any) -> None:
    """Stores an array as a new image, and returns when it is on the disks. `options`: as for create()."""
    samples = np.asarray(array)
    with new_image(path, samples.shape, samples.dtype, axes, **options) as image:
        image[...] = samples


__all__ = ["create", "imread", "imwrite", "new_image", "open", "store_boxes"]
