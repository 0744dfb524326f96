"""What a conversion keeps beside the samples, within the room that an image has for it."""
# SPDX-License-Identifier: Apache-2.0
import base64
import json
import warnings
import zlib
from typing import Any, Dict, Mapping

from mdfs import _attributes

LONG = 8192  # characters of a text that is stored compressed
PACKED = "zlib_base64"  # {"zlib_base64": "..."} is a long text


def packed(text: str) -> Any:
    """A text as an attribute: long ones are compressed."""
    if len(text) < LONG:
        return text
    return {PACKED: base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 9)).decode()}


def unpacked(value: Any) -> str:
    """The text of an attribute that packed() made."""
    if isinstance(value, dict) and isinstance(value.get(PACKED), str):
        return zlib.decompress(base64.b64decode(value[PACKED])).decode("utf-8", "surrogatepass")
    return str(value)


def plain(value: Any) -> Any:
    """A value of another library as JSON has it: arrays as lists, bytes as text, what has no other form as its text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def fitting(attributes: Mapping[str, Any]) -> Dict[str, Any]:
    """The attributes that an image has room for; each one that is left out is named in a warning, largest first."""
    kept = {str(name): plain(value) for name, value in attributes.items()}
    sizes = {name: len(json.dumps(value)) for name, value in kept.items()}
    while True:
        try:
            _attributes.encoded(kept)
            return kept
        except ValueError:
            largest = max(kept, key=lambda name: sizes[name])
            warnings.warn(f"attribute {largest!r} of {sizes[largest]} bytes is not kept: an image has room for "
                          f"{_attributes.MOST_BYTES} bytes", stacklevel=2)
            del kept[largest]
