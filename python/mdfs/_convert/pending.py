"""Targets that get their name when they are complete."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
from typing import Any, Callable, Dict, Optional, Tuple

from mdfs._image import Image

STATE = "user.mdfs.conversion"  # extended attribute of an unfinished image: what is done


def hidden_name(target: str) -> str:
    """The name that an unfinished target has: the same each time, so that the next conversion finds it."""
    folder, base = os.path.split(target)
    digest = hashlib.blake2b(os.fsencode(base), digest_size=12).hexdigest()
    return os.path.join(folder, f".part-{os.geteuid()}-{digest}")


def check_name(target: str, overwrite: bool) -> None:
    """FileExistsError, IsADirectoryError or ValueError if nothing can be made there."""
    if os.path.basename(target) in ("", ".", "..") or target.endswith("@"):
        raise ValueError(f"{target!r}: must be the name of a new file, and must not end in @")
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "is a directory", target)
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "exists already; overwrite=True (--overwrite) replaces it", target)


def sync_folder(path: str) -> None:
    """Makes names durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def give_name(part: str, target: str, overwrite: bool) -> None:
    """Gives a complete file its name. Never replaces one without `overwrite`."""
    if overwrite:
        os.replace(part, target)
    else:
        os.link(part, target)
        os.unlink(part)
    sync_folder(os.path.dirname(target))


class PendingImage:
    """An image under a hidden name, locked by this process.

    Parameters
    ----------
    target : str
        Its final path.
    identity : dict
        What is converted; an unfinished image of the same is resumed.
    make : callable
        Makes the image at the path that it is given.
    """

    def __init__(self, target: str, identity: Dict[str, Any], resume: bool, make: Callable[[str], Image]) -> None:
        self.target, self.part, self._identity = target, hidden_name(target), identity
        self._lock = -1
        self.state: Dict[str, Any] = {}
        there = self._take_over(resume)
        try:
            if there:
                self.image = Image(self.part, "r+")
            else:
                self.image = make(self.part)
                self._lock_part()
        except BaseException:
            self._unlock()
            raise

    def _take_over(self, resume: bool) -> bool:
        """True: there is an unfinished image of the same conversion, now locked. Others of this user are removed."""
        try:
            status = os.lstat(self.part)
        except FileNotFoundError:
            return False
        if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):
            raise PermissionError(errno.EPERM, "another user's file is where the unfinished image would be", self.part)
        self._lock_part()
        try:
            found = self._load()
            if resume and found and found.get("identity") != self._identity:
                raise ValueError(f"{self.target}: the unfinished image is of another source or other options, or the "
                                 "source has changed; start anew without resume (--resume)")
            if resume and found:
                self.state = found
                return True
            os.unlink(self.part)
        except BaseException:
            self._unlock()
            raise
        self._unlock()
        return False

    def _load(self) -> Dict[str, Any]:
        try:
            found = json.loads(os.getxattr(self.part, STATE))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _lock_part(self) -> None:
        self._lock = os.open(self.part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._unlock()
            raise BlockingIOError(error.errno, "another conversion into this image is running", self.target) from error

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def keep(self, state: Dict[str, Any]) -> None:
        """Makes what was written durable, and then that it was written."""
        self.image.sync()
        os.setxattr(self.part, STATE, json.dumps({**state, "identity": self._identity}).encode())

    def finish(self, overwrite: bool) -> None:
        """Gives the image its name."""
        try:
            os.removexattr(self.part, STATE)
        except OSError as error:
            if error.errno != errno.ENODATA:
                raise
        self.image.sync()
        give_name(self.part, self.target, overwrite)
        self.leave()

    def leave(self) -> None:
        """Closes the image, unfinished or not; it stays where it is."""
        self.image.close()
        self._unlock()

    def discard(self) -> None:
        """Removes the unfinished image."""
        os.unlink(self.part)
        self.leave()


class PendingFile:
    """A file or directory of another format, in a hidden folder of this user; removed unless it is finished."""

    def __init__(self, target: str, overwrite: bool) -> None:
        self.target, self._overwrite = target, overwrite
        self._folder = hidden_name(target)
        self.part = os.path.join(self._folder, os.path.basename(target))
        self._lock = -1

    def __enter__(self) -> "PendingFile":
        try:
            os.mkdir(self._folder, 0o700)
        except FileExistsError:
            status = os.lstat(self._folder)
            if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
                raise PermissionError(errno.EPERM, "another user's file is where the unfinished one would be",
                                      self._folder) from None
        self._lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise BlockingIOError(error.errno, "another conversion to this file is running", self.target) from error
        self._empty()
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], trace: Any) -> None:
        self._empty()
        os.rmdir(self._folder)
        os.close(self._lock)

    def _empty(self) -> None:
        with os.scandir(self._folder) as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)

    def finish(self) -> None:
        """Makes all of it durable, and gives it its name."""
        if os.path.isdir(self.part):
            for folder, _, names in os.walk(self.part):
                for name in names:
                    _sync_file(os.path.join(folder, name))
                sync_folder(folder)
            os.rename(self.part, self.target)
            sync_folder(os.path.dirname(self.target))
        else:
            _sync_file(self.part)
            give_name(self.part, self.target, self._overwrite)


def _sync_file(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def identity_of(path: str) -> Tuple[int, int, int]:
    """Number of files, bytes and latest change of a file or of all files of a directory."""
    if not os.path.isdir(path):
        status = os.stat(path)
        return 1, status.st_size, status.st_mtime_ns
    count = size = latest = 0
    for folder, _, names in os.walk(path):
        for name in names:
            status = os.stat(os.path.join(folder, name))
            count, size, latest = count + 1, size + status.st_size, max(latest, status.st_mtime_ns)
    return count, size, latest
