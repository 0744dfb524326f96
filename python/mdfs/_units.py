"""Units of the distance between samples: the symbols that images keep, and the names of other formats."""
# SPDX-License-Identifier: Apache-2.0
from typing import Dict

MOST_BYTES = 7  # of a unit in an image
NAMES: Dict[str, str] = {
    "m": "meter", "cm": "centimeter", "mm": "millimeter", "um": "micrometer", "nm": "nanometer", "pm": "picometer",
    "A": "angstrom", "km": "kilometer", "in": "inch", "ft": "foot", "d": "day", "h": "hour", "min": "minute",
    "s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
_SYMBOLS = {name: symbol for symbol, name in NAMES.items()}
_SYMBOLS.update({name + "s": symbol for symbol, name in NAMES.items()})
_SYMBOLS.update({"inches": "in", "feet": "ft", "metre": "m", "millimetre": "mm", "micrometre": "um", "micron": "um",
                 "microns": "um", "\u00b5m": "um", "\u03bcm": "um", "\u00b5s": "us", "\u03bcs": "us", "\u00c5": "A",
                 "\u212b": "A", "sec": "s", "msec": "ms", "usec": "us", "\\u00B5m": "um"})


def symbol(text: str) -> str:
    """"um" for "micrometer"; a unit that is not known stays as it is, or is dropped if it is too long for an image."""
    found = _SYMBOLS.get(text, _SYMBOLS.get(text.lower(), text))
    return found if len(found.encode()) <= MOST_BYTES else ""


def name(text: str) -> str:
    """"micrometer" for "um"; a unit that is not known stays as it is."""
    return NAMES.get(symbol(text), text)
