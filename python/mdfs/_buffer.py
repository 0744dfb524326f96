"""Arrays in memory that the daemon shares (mdfs_buffer_new)."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import weakref
from typing import Any, Tuple

import numpy as np
import numpy.typing as npt

from mdfs._library import check, library


def shared_array(image: Any, shape: Tuple[int, ...], dtype: "np.dtype[Any]") -> "npt.NDArray[Any]":
    """An array of zeros. Its memory is freed with the last array that uses it."""
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    if size > ctypes.c_size_t(-1).value:
        raise MemoryError(f"{size} bytes for an array of the shape {shape}")
    buffer = ctypes.c_void_p()
    check(library().mdfs_buffer_new(image, size, ctypes.byref(buffer)))
    memory = (ctypes.c_ubyte * size).from_address(library().mdfs_buffer_data(buffer))
    # Not at the end of the process, when arrays may still be in use.
    weakref.finalize(memory, library().mdfs_buffer_free, buffer).atexit = False
    array: "npt.NDArray[Any]" = np.frombuffer(memoryview(memory), dtype)
    return array.reshape(shape)
