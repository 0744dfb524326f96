"""One open image of libmdfs, shared by threads."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import threading
import weakref
from typing import Any, Optional

from mdfs._library import check, encoded, library

_handles: "weakref.WeakSet[Handle]" = weakref.WeakSet()


class Handle:
    """Opened at the first use, and again at the first use in a forked process. Calls under way end before it is freed.

    Parameters
    ----------
    path : str
        An image on a mounted volume.
    flags : int
        As for os.open().
    """

    def __init__(self, path: str, flags: int) -> None:
        self._path, self._flags = path, flags
        self._closed = False
        self._forget()
        _handles.add(self)

    def _forget(self) -> None:
        """In a forked process the open image stays the parent's, and a lock may be held by a thread of the parent."""
        self._lock = threading.Lock()
        self._image: Optional[ctypes.c_void_p] = None
        self._users = 0

    def __enter__(self) -> ctypes.c_void_p:
        """The image, for calls of libmdfs until the end of the block. ValueError once it is closed."""
        with self._lock:
            if self._closed:
                raise ValueError(f"{self._path}: the image is closed")
            if self._image is None:
                image = ctypes.c_void_p()
                check(library().mdfs_open(encoded(self._path), self._flags, ctypes.byref(image)))
                self._image = image
            self._users += 1
            return self._image

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._users -= 1
        self._free_if_unused()

    def close(self) -> None:
        """No use begins any more. The last use under way frees the image."""
        self._closed = True
        self._free_if_unused()

    def _free_if_unused(self) -> None:
        if not self._closed:
            return
        with self._lock:
            image = self._image if self._users == 0 else None
            if image is not None:
                self._image = None
        if image is not None:
            library().mdfs_close(image)


def _after_fork() -> None:
    for handle in list(_handles):
        handle._forget()  # pylint: disable=protected-access


os.register_at_fork(after_in_child=_after_fork)
