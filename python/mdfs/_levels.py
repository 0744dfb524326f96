"""Stored resolution levels of an open image, and the shapes of levels."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import math
import operator
from typing import Any, Optional, Tuple, Union

import numpy as np

from mdfs import _library
from mdfs._library import Geometry, Levels, check, library

Count = Union[int, str, None]  # of levels: a number, None for none, or "auto"


def number(level: Any) -> int:
    """Of a level, which an image may have. IndexError: no image has it."""
    found = operator.index(level)
    if not 0 <= found < 1 << 32:
        raise IndexError(f"level {found}: must be from 0 to {_library.MAX_LEVELS}")
    return found


def geometry(image: Any, level: int) -> Geometry:
    """That of a level; level 0 is the image. IndexError: the image has fewer levels."""
    found = Geometry(struct_bytes=ctypes.sizeof(Geometry))
    result = library().mdfs_level_info(image, level, ctypes.byref(found))
    if result == -errno.ERANGE:
        raise IndexError(library().mdfs_last_error().decode("utf-8", "replace"))
    check(result)
    return found


def dtype(found: Geometry) -> "np.dtype[Any]":
    """Of the samples."""
    return np.dtype({number: name for name, number in _library.TYPES.items()}[found.type])


def shape(found: Geometry) -> Tuple[int, ...]:
    """A frame counts when all of it is there: another program may be appending it."""
    last = (found.channels,) if found.channels > 1 else ()
    lengths = tuple(found.shape[:found.rank]) + last
    frame_bytes = math.prod(lengths[1:]) * dtype(found).itemsize
    return lengths if frame_bytes == 0 else (found.size_bytes // frame_bytes,) + lengths[1:]


def stored(image: Any) -> Levels:
    """The stored levels."""
    levels = Levels(struct_bytes=ctypes.sizeof(Levels))
    check(library().mdfs_levels(image, ctypes.byref(levels)))
    return levels


def asked(count: Count, reduce: Optional[str]) -> Levels:
    """A request for levels. ValueError: wrong words or numbers."""
    if isinstance(count, str):
        if count != "auto":
            raise ValueError(f"levels {count!r}: must be 'auto', None or a number")
        number = _library.LEVELS_AUTO
    else:
        number = operator.index(count or 0)
        if not 0 <= number <= _library.MAX_LEVELS:
            raise ValueError(f"levels {number}: must be at most {_library.MAX_LEVELS}")
    if reduce is not None and reduce not in _library.REDUCTIONS:
        raise ValueError(f"reduce {reduce!r}: must be one of {', '.join(_library.REDUCTIONS)}")
    return Levels(struct_bytes=ctypes.sizeof(Levels), action=_library.LEVELS_SET, count=number,
                  reduction=0 if reduce is None else _library.REDUCTIONS[reduce])


def store(image: Any, request: Levels) -> None:
    """Sets the stored levels as asked. ValueError: the image has fewer."""
    result = library().mdfs_levels(image, ctypes.byref(request))
    if result == -errno.ERANGE:
        raise ValueError(library().mdfs_last_error().decode("utf-8", "replace"))
    check(result)
