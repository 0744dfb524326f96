"""What belongs to an image beside its samples: a mapping that is stored as JSON in an extended attribute.

Programs that copy extended attributes, such as tar --xattrs and rsync -X, preserve the mapping.
"""
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
from typing import Any, Dict, Mapping, Union

NAME = "user.mdfs.attributes"
GEOMETRY = "user.mdfs.geometry"  # of every image
MOST_BYTES = 65536  # of the value of an extended attribute


def is_image(path: Union[str, "os.PathLike[str]"]) -> bool:
    """Is it an image of MDFS?"""
    try:
        return len(os.getxattr(path, GEOMETRY)) > 0
    except (OSError, ValueError):
        return False


def encoded(attributes: Mapping[str, Any]) -> bytes:
    """The stored form. TypeError: a name is no string, or a value has no form in JSON. ValueError: too long."""
    for name in attributes:
        if not isinstance(name, str):
            raise TypeError(f"attribute {name!r}: names must be strings")
    for name, value in attributes.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TypeError(f"attribute {name!r}: {error}; numbers, strings, lists and dicts are stored") from error
    text = json.dumps(dict(attributes), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(text) > MOST_BYTES:
        raise ValueError(f"attributes of {len(text)} bytes: an image has room for {MOST_BYTES}")
    return text


def load(file: int, path: str) -> Dict[str, Any]:
    """The attributes of an open image; none if it has none. ValueError if what is stored is no JSON object."""
    try:
        text = os.getxattr(file, NAME)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return {}
        raise
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: {NAME} is not a JSON object")
    return found


def store(file: int, attributes: Mapping[str, Any]) -> None:
    """Replaces the attributes of an open image as a whole."""
    os.setxattr(file, NAME, encoded(attributes))
