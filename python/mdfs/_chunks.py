"""Shapes of boxes that are read or computed at a time: multiples of the extents, of a bounded size."""
# SPDX-License-Identifier: Apache-2.0
import math
from typing import Iterator, Sequence, Tuple


def grown(shape: Sequence[int], step: Sequence[int], most_samples: int) -> Tuple[int, ...]:
    """The largest box of whole steps that holds at most `most_samples`, or one step; the fastest axes grow first.

    A box that reaches the end of an axis is cut there."""
    box = [min(a, max(b, 1)) if a > 0 else 1 for a, b in zip(shape, step)]
    for axis in reversed(range(len(box))):
        others = math.prod(box[:axis]) * math.prod(box[axis + 1:])
        if others * shape[axis] <= most_samples:
            box[axis] = max(shape[axis], 1)
            continue
        box[axis] = max(box[axis], most_samples // max(others, 1) // box[axis] * box[axis])
        break
    return tuple(box)


def cells(shape: Sequence[int], box: Sequence[int]) -> int:
    """How many boxes cover the shape."""
    return math.prod(-(-length // side) for length, side in zip(shape, box))


def cell(shape: Sequence[int], box: Sequence[int], number: int) -> Tuple[slice, ...]:
    """The box of that number; the last axis counts fastest."""
    found = []
    for length, side in reversed(list(zip(shape, box))):
        number, at = divmod(number, -(-length // side))
        found.append(slice(at * side, min((at + 1) * side, length)))
    return tuple(reversed(found))


def places(shape: Sequence[int], step: Sequence[int], most_samples: int) -> Iterator[Tuple[slice, ...]]:
    """All of the shape in boxes of grown(), in order."""
    box = grown(shape, step, most_samples)
    return (cell(shape, box, number) for number in range(cells(shape, box)))
