"""A mounted volume as a whole: its disks, space, cache and errors."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
from typing import Any, Dict, Tuple, Union

HEALTHY, NAMES_ERRORS = 0, 4  # exit statuses of `mdfs volume status` that come with an answer


class Volume:
    """A mounted volume.

    Parameters
    ----------
    path : str or os.PathLike
        The mount point, or any file or directory on the volume.

    Raises
    ------
    FileNotFoundError
        There is nothing at the path.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self.path = os.path.abspath(os.fspath(path))
        os.stat(self.path)

    def status(self) -> Dict[str, Any]:
        """Disks, space in blocks, cache, errors and warnings, as `mdfs volume status --json` prints them.

        The program `mdfs` must be in the PATH; the environment variable MDFS names another one.

        Returns
        -------
        dict
            The fields are those of mdfs(1). "errors" is empty on a healthy volume.

        Raises
        ------
        FileNotFoundError
            The program is not installed.
        OSError
            The path is not on a mounted volume, or the volume does not answer; with the program's message.
        """
        program = os.environ.get("MDFS", "mdfs")
        try:
            done = subprocess.run([program, "volume", "status", "--json", "--", self.path], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, "the program mdfs is not installed; install it, or name it in MDFS",
                                    program) from error
        if done.returncode not in (HEALTHY, NAMES_ERRORS):
            raise OSError(done.stderr.strip() or f"{program} volume status: exit status {done.returncode}")
        status: Dict[str, Any] = json.loads(done.stdout)
        return status

    def __repr__(self) -> str:
        return f"<mdfs.Volume {self.path!r}>"

    def __reduce__(self) -> Tuple[Any, ...]:
        return Volume, (self.path,)


def volume(path: Union[str, "os.PathLike[str]"]) -> Volume:
    """The volume that holds a file or directory. `path`: its mount point, or anything on it."""
    return Volume(path)


__all__ = ["Volume", "volume"]
