"""What an index of NumPy means for an image: which boxes to read or write, and how the result is made of them. Pure."""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import itertools
import operator
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[Any]  # indices along one axis
Run = Tuple[int, int]  # from, to (not included), along one axis
MOST_BOXES = 1 << 16


@dataclasses.dataclass
class Selection:
    """`runs`: for each axis the parts that are read, ascending and apart. They lie behind one another in a buffer of
    `lengths`, and buffer[residual] is what the index selects. `plain`: the index has integers, slices of step 1 and
    Ellipsis alone. `arrays`: how many axes an array selects from."""
    runs: List[List[Run]]
    residual: Tuple[Any, ...]
    plain: bool
    arrays: int

    @property
    def lengths(self) -> Tuple[int, ...]:
        return tuple(sum(stop - start for start, stop in runs) for runs in self.runs)

    @property
    def box_count(self) -> int:
        count = 1
        for runs in self.runs:
            count *= len(runs)
        return count

    @property
    def kept(self) -> Tuple[bool, ...]:
        """For each axis whether it is an axis of the result; for plain selections."""
        return tuple(not isinstance(item, int) for item in self.residual if item is not Ellipsis)

    def boxes(self) -> Iterator[Tuple[Tuple[slice, ...], Tuple[Run, ...]]]:
        """Each box: its place in the buffer, and in the image."""
        for parts in itertools.product(*[placed(runs) for runs in self.runs]):
            yield tuple(place for place, _ in parts), tuple(run for _, run in parts)


def simple_window(index: Any, shape: Sequence[int], rank: int) -> \
        Optional[Tuple[List[int], List[int], Tuple[int, ...]]]:
    """The starts and the lengths of a window of `rank` axes, and the shape of the result, of the usual index: an int or
    a slice of step 1 for each of the first axes, perhaps with a slice of all channels. None: any other index, and one
    that selects nothing."""
    items = index if type(index) is tuple else (index,)  # pylint: disable=unidiomatic-typecheck
    if len(items) > rank:
        if len(items) != len(shape) or type(items[-1]) is not slice or \
                items[-1].indices(shape[-1]) != (0, shape[-1], 1):
            return None
        items = items[:rank]
    starts, lengths, kept = [], [], []
    for item, length in zip(items, shape):
        if type(item) is slice:  # pylint: disable=unidiomatic-typecheck
            start, stop, step = item.indices(length)
            if step != 1 or stop <= start:
                return None
            kept.append(stop - start)
        elif type(item) is int and -length <= item < length:  # pylint: disable=unidiomatic-typecheck
            start = item % length
            stop = start + 1
        else:
            return None
        starts.append(start)
        lengths.append(stop - start)
    for length in shape[len(items):rank]:
        if length == 0:
            return None
        starts.append(0)
        lengths.append(length)
    return starts, lengths, (*kept, *shape[len(items):])


def placed(runs: Sequence[Run]) -> List[Tuple[slice, Run]]:
    """The runs with their places in the buffer."""
    found, at = [], 0
    for start, stop in runs:
        found.append((slice(at, at + stop - start), (start, stop)))
        at += stop - start
    return found


def to_runs(places: Places, gap: int) -> List[Run]:
    """Runs that cover ascending places; those with fewer than `gap` others between them share one."""
    if places.size == 0:
        return []
    cuts = np.flatnonzero(np.diff(places) > max(gap, 1))
    starts = places[np.concatenate(([0], cuts + 1))]
    stops = places[np.concatenate((cuts, [places.size - 1]))] + 1
    return [(int(start), int(stop)) for start, stop in zip(starts, stops)]


def in_buffer(places: Places, runs: Sequence[Run]) -> Places:
    """Where the places of the image lie in the buffer."""
    starts = np.array([start for start, _ in runs])
    offsets = np.array([place.start for place, _ in placed(runs)])
    run = np.searchsorted(starts, places, side="right") - 1
    return np.asarray(places - starts[run] + offsets[run])


def to_item(item: Any) -> Any:
    """What is no slice, None or Ellipsis becomes an int or an array."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if not isinstance(item, (bool, np.bool_)) and hasattr(item, "__index__"):
        try:
            return operator.index(item)
        except TypeError:  # an array of more than one number
            pass
    array = np.asarray(item)
    return array.astype(np.intp) if array.size == 0 and not isinstance(item, np.ndarray) else array


def expanded(index: Any, rank: int) -> List[Any]:
    """One item for each axis, None for each new one, and Ellipsis where it was, which stands for nothing any more."""
    items = [to_item(item) for item in (index if isinstance(index, tuple) else (index,))]
    at = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(at) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > rank:
        raise IndexError(f"too many indices for an image: it has {rank} axes, and {used} were indexed")
    after = at[0] + 1 if at else len(items)
    return items[:after] + [slice(None)] * (rank - used) + items[after:]


def places_of(item: Places, axis: int, length: int) -> Places:
    """The places that an array of integers or truth values selects, none of them negative."""
    if item.dtype == np.bool_:
        if item.ndim != 1:
            raise IndexError("a boolean index must have one axis; for several axes use numpy.nonzero")
        if item.size != length:
            raise IndexError(f"boolean index did not match along axis {axis}: its size is {item.size}, the axis has "
                             f"{length}")
        return np.flatnonzero(item)
    if item.dtype.kind not in "iu":
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and arrays of integers or booleans are "
                         "valid indices")
    places = item.astype(np.int64)
    outside = places[(places < -length) | (places >= length)]
    if outside.size > 0:
        raise IndexError(f"index {outside.flat[0]} is out of bounds for axis {axis} with size {length}")
    return np.asarray(np.where(places < 0, places + length, places))


def of_slice(item: slice, length: int, gap: int) -> Tuple[List[Run], slice]:
    start, stop, step = item.indices(length)
    places = range(start, stop, step)
    if len(places) == 0:
        return [], slice(0, 0)
    if step == 1:
        return [(start, stop)], slice(None)
    ascending = places if step > 0 else places[::-1]
    if abs(step) <= max(gap, 1):
        return [(ascending[0], ascending[-1] + 1)], slice(None, None, step)
    return [(place, place + 1) for place in ascending], slice(None, None, 1 if step > 0 else -1)


def select(index: Any, shape: Sequence[int], gaps: Sequence[int], whole: Optional[int] = None) -> Selection:
    """`gaps`: along each axis, parts with at most so many places from one to the next are read as one. `whole`: an axis
    of which one place, or all, are read."""
    runs: List[List[Run]] = []
    residual: List[Any] = []
    plain, arrays = True, 0
    found: List[Run]
    left: Any
    for item in expanded(index, len(shape)):
        if item is None or item is Ellipsis:
            residual.append(item)
            plain = plain and item is Ellipsis
            continue
        axis, length = len(runs), shape[len(runs)]
        gap = length if axis == whole else gaps[axis]
        if isinstance(item, int):
            if not -length <= item < length:
                raise IndexError(f"index {item} is out of bounds for axis {axis} with size {length}")
            place = item % length
            found = [(place, place + 1)]
            left = 0
        elif isinstance(item, slice):
            found, left = of_slice(item, length, gap)
            plain = plain and left in (slice(None), slice(0, 0))
        else:
            places = places_of(item, axis, length)
            found = to_runs(np.unique(places), gap)
            left = in_buffer(places, found) if found else places
            plain = False
            arrays += 1
        if axis == whole and found and found[0][1] - found[0][0] > 1 and found != [(0, length)]:
            found, left = [(0, length)], moved(left, found[0])
            plain = False
        runs.append(found)
        residual.append(left)
    return Selection(runs, tuple(residual), plain, arrays)


def moved(left: Any, run: Run) -> Any:
    """What selects from all of an axis as `left` does from one run of it."""
    if not isinstance(left, slice):
        return left + run[0]
    places = range(*run)[left]
    stop: Optional[int] = places[-1] + (1 if places.step > 0 else -1)
    return slice(places[0], None if stop is not None and stop < 0 else stop, places.step)


def result_shape(selection: Selection) -> Tuple[int, ...]:
    """Of what the index selects, without anything being read."""
    empty = np.broadcast_to(np.empty((), np.uint8), selection.lengths)
    return tuple(empty[selection.residual].shape)
