"""One open image of libmdfs, shared by threads and by the levels of the image."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import threading
import weakref
from typing import Any, Optional

from mdfs._library import check, encoded, library

_opens: "weakref.WeakSet[_Open]" = weakref.WeakSet()


class _Open:
    """Opened at the first use, and again at the first use in a forked process. Closed with the last handle and the last
    call under way."""

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self._flags = flags
        self._handles = 0
        self.forget()
        _opens.add(self)

    def forget(self) -> None:
        """In a forked process the open image stays the parent's, and a lock may be held by a thread of the parent."""
        self._lock = threading.RLock()  # the collector may drop a handle inside
        self._image: Optional[ctypes.c_void_p] = None
        self._users = 0

    def enter(self, handle: "Handle") -> ctypes.c_void_p:
        with self._lock:
            if handle.closed:
                raise ValueError(f"{self.path}: the image is closed")
            if self._image is None:
                image = ctypes.c_void_p()
                check(library().mdfs_open(encoded(self.path), self._flags, ctypes.byref(image)))
                self._image = image
            self._users += 1
            return self._image

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
        self._free_if_unused()

    def add(self) -> None:
        """One handle more."""
        with self._lock:
            self._handles += 1

    def drop(self, handle: "Handle") -> None:
        with self._lock:
            self._handles -= not handle.closed
            handle.closed = True
        self._free_if_unused()

    def _free_if_unused(self) -> None:
        with self._lock:
            image = self._image if self._handles == 0 and self._users == 0 else None
            if image is not None:
                self._image = None
        if image is not None:
            library().mdfs_close(image)


class Handle:
    """A reference to an open image. Calls under way end before the image is freed.

    Parameters
    ----------
    path : str
        An image on a mounted volume.
    flags : int
        As for os.open().
    """

    def __init__(self, path: str, flags: int) -> None:
        self._refer(_Open(path, flags))

    def _refer(self, to: _Open) -> None:
        self.closed = False
        self._open = to
        to.add()

    def another(self) -> "Handle":
        """Of the same open image, which stays open until both handles are closed. ValueError once this one is."""
        with self:
            handle = Handle.__new__(Handle)
            handle._refer(self._open)
            return handle

    def __enter__(self) -> ctypes.c_void_p:
        """The image, for calls of libmdfs until the end of the block. ValueError once it is closed."""
        return self._open.enter(self)

    def __exit__(self, *_: Any) -> None:
        self._open.leave()

    def close(self) -> None:
        """No use begins any more. The last use under way, of the last handle, frees the image."""
        self._open.drop(self)


def _after_fork() -> None:
    for opened in list(_opens):
        opened.forget()


os.register_at_fork(after_in_child=_after_fork)
