"""Random crops for training: an iterable dataset of PyTorch, and without PyTorch a plain iterable."""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import operator
import os
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from mdfs._image import Image
from mdfs._samples import Array

try:
    from torch.utils.data import IterableDataset as _Base
    from torch.utils.data import get_worker_info
except ImportError:
    _Base = object

    def get_worker_info() -> Any:
        """No workers without PyTorch."""
        return None

DRAWN_AT_ONCE = 1024  # crops that come from one state of the random numbers
Source = Union[str, "os.PathLike[str]", Image]


class Crops(_Base):  # type: ignore[misc,valid-type,unused-ignore]
    """Random crops of images, at places that are all equally likely.

    The n crops follow from `seed` and the epoch alone. Each worker of a DataLoader yields every crop whose number,
    modulo the number of workers, is its own. Workers open the images for themselves and share one daemon.

    Parameters
    ----------
    images : sequence of path or Image
        Of one type, with the same number of axes and channels.
    size : sequence of int
        Lengths of a crop, slowest axis first, without channels: a crop has all of them.
    n : int
        Crops in an epoch.
    weights : sequence of float, optional
        How often each image is chosen, relative to the others. Default: by the number of places in it.
    seed : int
        Of the random numbers.
    prefetch : int
        Crops that are read at once, while those before them are used.
    transform : callable, optional
        Is given the array of a crop; its result is yielded.

    Yields
    ------
    numpy.ndarray
        Of shape `size`, and the channels if there are several.
    """

    def __init__(self, images: Sequence[Source], size: Sequence[int], n: int, weights: Optional[Sequence[float]] = None,
                 seed: int = 0, prefetch: int = 16, transform: Optional[Callable[[Array], Any]] = None) -> None:
        super().__init__()
        if isinstance(images, (str, os.PathLike, Image)):
            raise TypeError("images must be a sequence, such as [path]")
        self.images: List[Image] = [image if isinstance(image, Image) else Image(image) for image in images]
        if not self.images:
            raise ValueError("images is empty: one or more are required")
        self.size = tuple(operator.index(length) for length in size)
        self.n, self.seed = _whole("n", n, 0), _whole("seed", seed, 0)
        self.prefetch, self.transform = _whole("prefetch", prefetch, 1), transform
        self.epoch = 0
        self._places = np.array([self._count_of(image) for image in self.images], np.int64)
        self._shares = self._shares_of(weights)

    def _count_of(self, image: Image) -> List[int]:
        """First places of a crop along each axis."""
        first = self.images[0]
        for what in ("dtype", "channels", "axes"):
            if getattr(image, what) != getattr(first, what):
                raise ValueError(f"{image.path} has {what} {getattr(image, what)}, but {first.path} has "
                                 f"{getattr(first, what)}")
        lengths = image.shape[:-1] if image.channels > 1 else image.shape
        if len(self.size) != len(lengths):
            raise ValueError(f"size {self.size}: {len(lengths)} lengths are required, for the axes "
                             f"{image.axes[:len(lengths)]!r} of {image.path}")
        for axis, side, length in zip(image.axes, self.size, lengths):
            if not 1 <= side <= length:
                raise ValueError(f"size {self.size}: {side} along {axis}, must be from 1 to {length} for {image.path}")
        return [length - side + 1 for side, length in zip(self.size, lengths)]

    def _shares_of(self, weights: Optional[Sequence[float]]) -> Array:
        if weights is None:
            shares = self._places.astype(np.float64).prod(axis=1)
        else:
            shares = np.asarray(weights, np.float64)
            if shares.shape != (len(self.images),):
                raise ValueError(f"{shares.size} weights for {len(self.images)} images")
            if not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
                raise ValueError("weights must be finite, not negative, and not all zero")
        return np.asarray(shares / shares.sum())

    def set_epoch(self, epoch: int) -> None:
        """Other crops, which follow from the seed and this number; call it before each epoch."""
        self.epoch = _whole("epoch", epoch, 0)

    def __len__(self) -> int:
        return self.n

    def windows(self) -> Iterator[Tuple[int, Tuple[slice, ...]]]:
        """All crops of the epoch, as (number of the image, index), without reading them."""
        for start in range(0, self.n, DRAWN_AT_ONCE):
            rng = np.random.default_rng([self.seed, self.epoch, start])
            chosen = rng.choice(len(self.images), size=DRAWN_AT_ONCE, p=self._shares)
            firsts = rng.integers(0, self._places[chosen])
            for image, first in zip(chosen[:self.n - start], firsts):
                yield int(image), tuple(slice(int(at), int(at) + side) for at, side in zip(first, self.size))

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        mine = (window for place, window in enumerate(self.windows()) if place % workers == number)
        with concurrent.futures.ThreadPoolExecutor(1, "mdfs-crops") as ahead:
            reading = ahead.submit(self._read, self._next(mine))
            while True:
                crops = reading.result()
                if not crops:
                    return
                reading = ahead.submit(self._read, self._next(mine))
                for crop in crops:
                    yield crop if self.transform is None else self.transform(crop)

    def _next(self, windows: Iterator[Tuple[int, Tuple[slice, ...]]]) -> List[Tuple[int, Tuple[slice, ...]]]:
        return [window for _, window in zip(range(self.prefetch), windows)]

    def _read(self, windows: Sequence[Tuple[int, Tuple[slice, ...]]]) -> List[Array]:
        """The crops in their order; those of an image are read at once."""
        crops: List[Optional[Array]] = [None] * len(windows)
        for number in {image for image, _ in windows}:
            places = [place for place, (image, _) in enumerate(windows) if image == number]
            found = self.images[number].read_many([windows[place][1] for place in places])
            for place, crop in zip(places, found):
                crops[place] = crop
        return [crop for crop in crops if crop is not None]


def _whole(name: str, value: Any, least: int) -> int:
    """TypeError or ValueError unless it is a whole number from `least`."""
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{name} is {number}: must be {least} or more")
    return number


__all__ = ["Crops"]
