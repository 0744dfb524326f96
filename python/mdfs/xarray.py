"""Images in xarray: xarray.open_dataset(path, engine="mdfs"), and the accessor .mdfs.to_mdfs(path) of a DataArray.

Installed with pip, the engine is there without an import. The accessor is there after `import mdfs.xarray`.
"""
# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from mdfs import _units
from mdfs._attributes import is_image
from mdfs._create import new_image, store_boxes
from mdfs._image import Image
from mdfs._samples import Array

ORIGIN, COORDINATES = "origin", "coordinates"  # attributes of an image: first coordinate; those without even steps
LETTERS = {"time": "t", "channel": "c", "channels": "c", "band": "c", "lat": "y", "latitude": "y", "lon": "x",
           "longitude": "x", "depth": "z", "row": "y", "col": "x", "column": "x", "frame": "t"}
EVEN = 1e-6  # steps of a coordinate differ by at most this part of a step


class _Lazy(BackendArray):
    """Reads what xarray selects, when it is needed."""

    def __init__(self, image: Image) -> None:
        self.image, self.shape, self.dtype = image, image.shape, image.dtype

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._read)

    def _read(self, key: Tuple[Any, ...]) -> Any:
        # Each axis on its own: beside an array, NumPy would move the axis of an integer.
        single = [isinstance(item, (int, np.integer)) for item in key]
        boxes = tuple(slice(item % length, item % length + 1) if one else item
                      for item, one, length in zip(key, single, self.shape))
        return self.image[boxes][tuple(0 if one else slice(None) for one in single)]


class MdfsBackend(BackendEntrypoint):
    """The engine "mdfs"."""

    description = "Images on a mounted MDFS volume"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "name", "level")

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: Union[str, Iterable[str], None] = None,
                     name: str = "image", level: int = 0) -> xr.Dataset:
        """A dataset of one variable, with a coordinate for each axis that has a spacing.

        Parameters
        ----------
        filename_or_obj : str or os.PathLike
            The image.
        drop_variables : str or iterable of str, optional
            Variables that are left out.
        name : str
            The name of the variable.
        level : int
            The resolution level.
        """
        image = Image(filename_or_obj, level=level)
        attributes = dict(image.attrs)
        encoding = {"preferred_chunks": dict(zip(image.axes, image.chunks)), "chunksizes": image.chunks,
                    "source": image.path, "dtype": image.dtype}
        coordinates = _coordinates(image, attributes, level)
        variable = xr.Variable(tuple(image.axes), indexing.LazilyIndexedArray(_Lazy(image)), attributes, encoding)
        dataset = xr.Dataset({name: variable}, coordinates)
        dataset.set_close(image.close)
        dropped = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or [])
        return dataset.drop_vars(dropped, errors="ignore")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return isinstance(filename_or_obj, (str, os.PathLike)) and is_image(filename_or_obj)


def _coordinates(image: Image, attributes: Dict[str, Any], level: int) -> Dict[str, xr.Variable]:
    """A coordinate for each axis that has one; takes its attributes out of those of the image."""
    lengths = dict(zip(image.axes, image.shape))
    origin, listed = attributes.pop(ORIGIN, {}), attributes.pop(COORDINATES, {})
    finest = image.spacing
    if level > 0 and image.reduction != "nearest":  # a sample lies amid those that it is made of
        finest = image.level(0).spacing
    found = {}
    for axis, (distance, unit) in image.spacing.items():
        first = float(origin.get(axis, 0)) + (distance - finest[axis][0]) / 2
        places = np.arange(lengths[axis]) * distance + first
        found[axis] = xr.Variable((axis,), places, {"units": unit} if unit else {})
    for axis, values in listed.items():
        if len(values) == lengths.get(axis):
            found[axis] = xr.Variable((axis,), np.asarray(values))
    return found


def _letters(dims: Sequence[Any], axes: Optional[str]) -> List[str]:
    """A letter for each dimension."""
    if axes is not None:
        if len(axes) != len(dims):
            raise ValueError(f"axes {axes!r}: {len(dims)} letters are required, one for each of {tuple(dims)}")
        letters = list(axes)
    else:
        letters = [LETTERS.get(str(dim).lower(), str(dim)) for dim in dims]
    for letter, dim in zip(letters, dims):
        if len(letter) != 1 or not "a" <= letter <= "z":
            raise ValueError(f"dimension {dim!r}: the axes of an image are single letters a to z; pass axes='...' with "
                             f"one for each of {tuple(dims)}")
        if letters.count(letter) > 1:
            raise ValueError(f"axis {letter!r} stands for more than one of the dimensions {tuple(dims)}")
    return letters


def _even(values: Array) -> Optional[Tuple[float, float]]:
    """The first value and the step, if all steps are equal and positive."""
    if values.dtype.kind not in "iuf" or values.size < 2:
        return None
    steps = np.diff(values.astype(np.float64))
    step = float((float(values[-1]) - float(values[0])) / (values.size - 1))
    if not np.isfinite(step) or step <= 0 or np.abs(steps - step).max() > EVEN * step:
        return None
    return float(values[0]), step


@xr.register_dataarray_accessor("mdfs")
class MdfsAccessor:
    """Stores a DataArray as an image."""

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def to_mdfs(self, path: Union[str, "os.PathLike[str]"], axes: Optional[str] = None,
                extent: Optional[Sequence[int]] = None, codec: str = "zstd") -> None:
        """Stores the array as a new image, and returns when it is on the disks.

        Dask arrays are computed and written chunk by chunk. Coordinates with even steps become the spacing of the
        image, with their attribute "units". Other coordinates of a dimension, and the attributes, are stored beside
        the samples. A dimension of channels becomes the last one.

        Parameters
        ----------
        path : str or os.PathLike
            A name on a mounted volume that does not exist yet.
        axes : str, optional
            A letter for each dimension, "c" for channels. Default: the names of the dimensions, where they are single
            letters or words such as "time" and "channel".
        extent, codec
            As for mdfs.create().

        Raises
        ------
        ValueError
            A dimension has no letter, or there are more of them than an image has.
        TypeError
            Samples of this type, or attributes that are no numbers, strings, lists or dicts.
        """
        letters = _letters(self._array.dims, axes)
        order = sorted(range(len(letters)), key=lambda place: letters[place] == "c")
        array = self._array.transpose(*[self._array.dims[place] for place in order])
        letters = [letters[place] for place in order]
        spacing, attributes = self._described(dict(zip(letters, array.dims)))
        with new_image(path, array.shape, array.dtype, "".join(letters), extent=extent, codec=codec,
                       spacing=spacing) as image:
            if attributes:
                image.attrs = attributes
            if array.chunks is None:
                store_boxes(image, lambda box: array[box].values)
            else:
                import dask.array  # pylint: disable=import-outside-toplevel
                dask.array.store(array.data, image, lock=False)

    def _described(self, dims: Mapping[str, Any]) -> Tuple[Dict[str, Tuple[float, str]], Dict[str, Any]]:
        """The spacing of the image, and its attributes."""
        spacing: Dict[str, Tuple[float, str]] = {}
        origin: Dict[str, float] = {}
        listed: Dict[str, Any] = {}
        for letter, dim in dims.items():
            if dim not in self._array.coords:
                continue
            coordinate = self._array.coords[dim]
            even = _even(coordinate.values)
            if even is None or letter == "c":
                listed[letter] = coordinate.values.tolist()
                continue
            spacing[letter] = even[1], _units.symbol(str(coordinate.attrs.get("units", "")))
            if even[0] != 0:
                origin[letter] = even[0]
        attributes = {str(name): value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
                      for name, value in self._array.attrs.items()}
        for name, kept in ((ORIGIN, origin), (COORDINATES, listed)):
            if kept:
                attributes[name] = kept
        return spacing, attributes


__all__ = ["MdfsAccessor", "MdfsBackend"]
