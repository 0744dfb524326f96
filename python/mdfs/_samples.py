"""Values as samples of an image, and arrays into which libmdfs can read."""
# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def as_samples(value: Any, dtype: "np.dtype[Any]") -> Array:
    """The value as samples of the type. Arrays must be of a type that numpy.can_cast calls safe, TypeError if not;
    Python's numbers must be in the range of the type, OverflowError if not."""
    given = np.asarray(value)
    if given.dtype == dtype:
        return given
    if isinstance(value, (np.ndarray, np.generic)):
        if not np.can_cast(given.dtype, dtype, "safe"):
            raise TypeError(f"samples of {given.dtype} may not fit into an image of {dtype}: use astype")
        return given.astype(dtype)
    numbers = None
    if given.dtype.kind in "fO":  # perhaps integers: NumPy has no type for all from -1 to 2**64-1, nor for larger ones
        numbers = np.array(value, dtype=object)
        if all(isinstance(number, int) for number in numbers.flat):
            given = numbers if dtype.kind in "iu" else numbers.astype(np.float64)
    if given.dtype.kind not in "biuf" and given is not numbers:
        raise TypeError(f"{given.dtype} is no type of samples")
    if given.dtype.kind == "f" and dtype.kind != "f":
        raise TypeError(f"numbers with a fraction do not fit into an image of {dtype}")
    if dtype.kind in "iu" and given.size > 0:
        limits = np.iinfo(dtype)
        if int(given.min()) < limits.min or int(given.max()) > limits.max:
            raise OverflowError(f"samples of {dtype} are from {limits.min} to {limits.max}")
    with np.errstate(over="ignore"):
        samples = given.astype(dtype)
    if dtype.kind == "f" and bool(np.any(np.isinf(samples) & ~np.isinf(given))):
        raise OverflowError(f"samples of {dtype} are from {-np.finfo(dtype).max} to {np.finfo(dtype).max}, or infinite")
    return samples


def fits(target: Array, channels: bool) -> bool:
    """Can libmdfs read into this array? Its strides count forwards, and channels lie side by side."""
    if any(stride < 0 for stride in target.strides):
        return False
    return not channels or target.shape[-1] == 1 or target.strides[-1] == target.itemsize
