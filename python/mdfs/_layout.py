"""What an image asks of the disks, and where it lies on them."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import fcntl
from typing import Any, Dict, List

import numpy as np

from mdfs._library import MAX_RANK, Plan, check, descriptor, library
from mdfs._samples import Array

# struct mdfs_ioc_layout: this, then the rows.
_HEADER = np.dtype([("next", "u8"), ("count", "u4"), ("block_size", "u4"), ("disk_count", "u4"), ("next_row", "u4")])
_ROW = np.dtype([("index", "u8", (MAX_RANK,)), ("disk", "u4"), ("flags", "u4"), ("block", "u8"),
                 ("stored_bytes", "u8")])
_ROWS = 200  # of one call
_BYTES = _HEADER.itemsize + _ROWS * _ROW.itemsize
_CALL = 3 << 30 | _BYTES << 16 | 0xD5 << 8 | 7  # MDFS_IOC_LAYOUT
_KINDS = ((8, "leaver"), (4, "parity"), (2, "copy"), (1, "strip"))  # by flag, the first that is set


def plan(image: ctypes.c_void_p, window: bytes) -> Dict[str, Any]:
    """The requests of a window read."""
    found = Plan()
    check(library().mdfs_plan(image, window, ctypes.byref(found)))
    return {"extents": found.extents, "holes": found.holes, "cached": found.cached,
            "disks": [{"bytes": disk.bytes, "requests": disk.requests, "runs": disk.runs}
                      for disk in found.disks[:found.disk_count]]}


def layout(image: ctypes.c_void_p, rank: int) -> Array:
    """The rows of Image.layout()."""
    answer = bytearray(_BYTES)
    head = np.frombuffer(answer, _HEADER, 1)
    pages: List[Any] = []
    while True:
        fcntl.ioctl(descriptor(image), _CALL, answer, True)
        count = int(head["count"][0])
        if count == 0 or count > _ROWS:
            break
        pages.append(np.frombuffer(answer, _ROW, count, _HEADER.itemsize).copy())
    rows = np.concatenate(pages) if pages else np.empty(0, _ROW)
    result = np.empty(len(rows), [("index", "u8", (rank,)), ("disk", "u4"), ("kind", "U6"), ("offset", "u8"),
                                  ("nbytes", "u8")])
    result["index"] = rows["index"][:, :rank]
    result["disk"] = rows["disk"]
    result["kind"] = np.select([(rows["flags"] & flag) != 0 for flag, _ in _KINDS], [kind for _, kind in _KINDS],
                               "extent")
    result["offset"] = rows["block"] * head["block_size"][0]
    result["nbytes"] = rows["stored_bytes"]
    return result
