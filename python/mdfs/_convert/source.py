"""What a conversion reads: samples in boxes, and the facts about them, whatever the format."""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Place = Tuple[slice, ...]
Choice = Union[int, slice]
Spacing = Dict[str, Tuple[float, str]]

MOST_AXES = 5  # of an image, beside its channels
USUAL_AXES = 3  # beyond, axes with one place are left out


@dataclasses.dataclass
class Source:
    """Samples of a file, by boxes. Formats derive from it and set the fields."""

    path: str
    format: str = ""
    shape: Tuple[int, ...] = ()
    dtype: "np.dtype[Any]" = dataclasses.field(default_factory=lambda: np.dtype("u1"))
    axes: str = ""  # a letter for each length; "c" are channels
    chunks: Tuple[int, ...] = ()  # that the file decodes as a whole
    spacing: Spacing = dataclasses.field(default_factory=dict)
    attributes: Dict[str, Any] = dataclasses.field(default_factory=dict)

    def read(self, place: Place) -> Array:
        """The samples of a box. Raises what the library of the format raises."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called when all was read: checks what only the end of a file tells."""

    def close(self) -> None:
        """Closes the file."""


def native(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """The type of the samples in an image: of this machine's byte order, and bytes for booleans."""
    return np.dtype("u1") if dtype.kind == "b" else dtype.newbyteorder("=")


class Picked:
    """A source as an image takes it: some axes chosen, channels last, samples in the machine's byte order.

    Raises IndexError for a choice outside of an axis, ValueError if there are more axes than an image has."""

    def __init__(self, source: Source, select: Mapping[str, Choice]) -> None:
        self.source = source
        lengths = dict(zip(source.axes, source.shape))
        self._ranges: Dict[str, Tuple[int, int]] = {axis: (0, length) for axis, length in lengths.items()}
        dropped = set()
        for axis, choice in select.items():
            if axis not in lengths:
                raise ValueError(f"select {axis!r}: {source.path} has the axes {described(source)}")
            if not isinstance(choice, slice):
                dropped.add(axis)
            self._ranges[axis] = _range(axis, choice, lengths[axis])
        kept = [axis for axis in source.axes if axis not in dropped]
        for axis in source.axes:
            if _count(kept) > USUAL_AXES and axis in kept and self._length(axis) == 1:
                kept.remove(axis)
        if "c" in kept and (self._length("c") == 1 or len(kept) == 1):
            if self._length("c") > 1:
                raise ValueError(f"{source.path} has channels and no other axis; pass axes=... to name them otherwise")
            kept.remove("c")
        if _count(kept) > MOST_AXES:
            long = [axis for axis in kept if axis != "c"]
            raise ValueError(
                f"{source.path} has the axes {described(source)}; an image has at most {MOST_AXES} beside its "
                f"channels. Choose places, such as --select {long[0]}=0 (select={{{long[0]!r}: 0}})")
        if not kept:
            raise ValueError(f"{source.path}: the choice leaves a single sample")
        self._kept = kept
        order = [axis for axis in kept if axis != "c"] + (["c"] if "c" in kept else [])
        self.axes = "".join(order)
        self.shape = tuple(self._length(axis) for axis in order)
        if 0 in self.shape:
            raise ValueError(f"{source.path} has no samples: its axes are {described(source)}")
        self.dtype = native(source.dtype)
        chunks = dict(zip(source.axes, source.chunks))
        self.chunks = tuple(min(chunks[axis], self._length(axis)) for axis in order)
        self.spacing = {axis: found for axis, found in source.spacing.items() if axis in order and axis != "c"}
        self.attributes = dict(source.attributes)
        names = self.attributes.get("channel_names")
        if isinstance(names, list) and "c" in lengths:
            first, end = self._ranges["c"]
            self.attributes["channel_names"] = names[first:end]

    def _length(self, axis: str) -> int:
        return self._ranges[axis][1] - self._ranges[axis][0]

    def read(self, place: Place) -> Array:
        """The samples of a box, contiguous."""
        wanted = dict(zip(self.axes, place))
        there: List[slice] = []
        for axis in self.source.axes:
            first, end = self._ranges[axis]
            there.append(slice(first + wanted[axis].start, first + wanted[axis].stop) if axis in wanted
                         else slice(first, end))
        samples = np.asarray(self.source.read(tuple(there)))
        lengths = tuple(item.stop - item.start for item in there)
        if samples.shape != lengths:
            raise ValueError(f"{samples.shape} samples are there instead of {lengths}")
        samples = samples.reshape([length for axis, length in zip(self.source.axes, lengths) if axis in wanted])
        samples = samples.transpose([self._kept.index(axis) for axis in self.axes])
        return np.ascontiguousarray(samples, self.dtype)


def described(source: Source) -> str:
    """Such as "t=5, z=40, y=512, x=512"."""
    return ", ".join(f"{axis}={length}" for axis, length in zip(source.axes, source.shape))


def _count(axes: Sequence[str]) -> int:
    """Axes beside channels."""
    return len([axis for axis in axes if axis != "c"])


def _range(axis: str, choice: Choice, length: int) -> Tuple[int, int]:
    """First and end of a choice along an axis."""
    if isinstance(choice, slice):
        if choice.step not in (None, 1):
            raise ValueError(f"select {axis}: a range has no step")
        first = 0 if choice.start is None else int(choice.start)
        end = length if choice.stop is None else int(choice.stop)
        if not 0 <= first < end <= length:
            raise IndexError(f"select {axis}={first}:{end}: axis {axis} has the places 0 to {length - 1}")
        return first, end
    if isinstance(choice, bool) or not isinstance(choice, (int, np.integer)):
        raise TypeError(f"select {axis}: {choice!r} is neither an integer nor a slice")
    if not 0 <= choice < length:
        raise IndexError(f"select {axis}={choice}: axis {axis} has the places 0 to {length - 1}")
    return int(choice), int(choice) + 1


def letters(names: Sequence[str]) -> str:
    """A different lower-case letter for each axis, of whatever a format calls them; unnamed ones get what is usual."""
    known = {"time": "t", "channel": "c", "channels": "c", "depth": "z", "height": "y", "width": "x", "s": "c",
             "sample": "c", "rgb": "c", "i": "", "q": ""}
    found: List[str] = []
    for name in names:
        letter = known.get(name.lower(), name.lower())
        found.append(letter if len(letter) == 1 and "a" <= letter <= "z" and letter not in found else "")
    usual = [letter for letter in "xyztsrqp" if letter not in found]
    for place in reversed(range(len(found))):
        if not found[place]:
            found[place] = usual.pop(0)
    return "".join(found)


def choices(text: str) -> Dict[str, Choice]:
    """The choices that "c=0,t=3,z=10:20" names. ValueError tells what is wrong."""
    found: Dict[str, Choice] = {}
    for item in text.split(","):
        axis, equals, value = item.strip().partition("=")
        first, colon, end = value.partition(":")
        if len(axis) != 1 or not equals or not all(part == "" or part.isdecimal() for part in (first, end)) or (
                not colon and not first):
            raise ValueError(f"select {item.strip()!r}: must be AXIS=PLACE or AXIS=FIRST:END, such as t=3 or z=10:20")
        if axis in found:
            raise ValueError(f"select {axis!r} is there twice")
        found[axis] = slice(int(first) if first else None, int(end) if end else None) if colon else int(first)
    return found
