"""Copies samples box by box, with a checksum over them."""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import hashlib
import math
from typing import Any, Callable, Optional, Protocol, Sequence, Tuple

import numpy as np
import numpy.typing as npt

from mdfs import _chunks

Array = npt.NDArray[Any]
Place = Tuple[slice, ...]
Progress = Callable[[int, int], None]  # samples that are copied and verified, of all

BOX_BYTES = 32 << 20  # of the samples that are copied at a time; about three boxes are in memory
KEPT_EVERY = 8  # boxes, after which the state is made durable


class Readable(Protocol):
    """What read() takes boxes of."""
    shape: Tuple[int, ...]
    dtype: "np.dtype[Any]"

    def read(self, place: Place) -> Array: ...


def box_of(shape: Sequence[int], chunks: Sequence[int], extent: Sequence[int], itemsize: int) -> Tuple[int, ...]:
    """The box of a copy: of whole chunks of the source and whole extents, where both fit into a box."""
    most = BOX_BYTES // itemsize
    both = [math.lcm(chunk, side) for chunk, side in zip(chunks, extent)]
    if math.prod(min(a, b) for a, b in zip(both, shape)) <= most:
        return _chunks.grown(shape, both, most)
    # Chunks of the source are decoded as a whole: rather whole ones than whole extents.
    whole = chunks if math.prod(chunks) <= most else extent
    return _chunks.grown(shape, whole, most)


def chained(chain: bytes, samples: Array) -> bytes:
    """The checksum of all boxes so far and of these samples."""
    digest = hashlib.blake2b(chain, digest_size=16)
    digest.update(np.ascontiguousarray(samples).reshape(-1).view("u1").data)
    return digest.digest()


class Copy:
    """A copy under way: how many boxes are done, and the checksum over them."""

    def __init__(self, source: Readable, box: Sequence[int], done: int = 0, chain: bytes = b"") -> None:
        self.source, self.box, self.done, self.chain = source, tuple(box), done, chain
        self.count = _chunks.cells(source.shape, box)
        self._size = math.prod(source.shape)

    def run(self, write: Callable[[Place, Array], None], keep: Optional[Callable[[int, bytes], None]],
            progress: Progress, rounds: int) -> None:
        """Copies what is not done. A box is written while the next one is read. ValueError: the source is damaged."""
        with concurrent.futures.ThreadPoolExecutor(1, "mdfs-convert") as writer:
            writing: "Optional[concurrent.futures.Future[None]]" = None
            while self.done < self.count:
                place = _chunks.cell(self.source.shape, self.box, self.done)
                samples = self.source.read(place)
                if writing is not None:
                    writing.result()
                writing = writer.submit(write, place, samples)
                self.chain = chained(self.chain, samples)
                self.done += 1
                if keep is not None and self.done % KEPT_EVERY == 0:
                    writing.result()
                    keep(self.done, self.chain)
                progress(self._seen(self.done), self._size * rounds)
            if writing is not None:
                writing.result()

    def verify(self, read: Callable[[Place], Array], progress: Progress) -> bool:
        """Has the other side the same samples?"""
        chain = b""
        for number in range(self.count):
            place = _chunks.cell(self.source.shape, self.box, number)
            chain = chained(chain, read(place))
            progress(self._size + self._seen(number + 1), 2 * self._size)
        return chain == self.chain

    def _seen(self, boxes: int) -> int:
        """Samples of so many boxes, about: those at an edge are smaller."""
        return self._size * boxes // max(1, self.count)
