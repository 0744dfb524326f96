"""Zarr version 2 and 3 with OME-Zarr by zarr-python, and HDF5 by h5py."""
# SPDX-License-Identifier: Apache-2.0
import math
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from mdfs import _units
from mdfs._convert.source import Array, Place, Source, letters

MOST_NAMED = 12  # arrays in a message
CHUNK_OF_PLAIN = 1 << 20  # samples that are read at a time of an HDF5 dataset without chunks, at least


def _chosen(path: str, found: Mapping[str, Tuple[int, ...]], dataset: Optional[str], kind: str) -> str:
    """The array that is asked for, or the only one."""
    if dataset is not None:
        if dataset.strip("/") in found:
            return dataset.strip("/")
        raise ValueError(f"dataset {dataset!r}: {path} has {_listed(found)}")
    if len(found) == 1:
        return next(iter(found))
    if not found:
        raise ValueError(f"{path}: this {kind} file has no array of numbers")
    raise ValueError(f"{path} has {len(found)} arrays: choose one with --dataset (dataset=...) of {_listed(found)}")


def _listed(found: Mapping[str, Tuple[int, ...]]) -> str:
    shown = [f"{name} ({'x'.join(map(str, shape))})" for name, shape in list(found.items())[:MOST_NAMED]]
    return ", ".join(shown) + (", ..." if len(found) > MOST_NAMED else "") or "no array"


class ZarrSource(Source):
    """An array, or the first level of the multiscales of an OME-Zarr group."""

    def __init__(self, path: str, dataset: Optional[str]) -> None:
        import zarr  # pylint: disable=import-outside-toplevel
        super().__init__(path, "Zarr")
        node = zarr.open(path, mode="r")
        names: List[str] = []
        if isinstance(node, zarr.Group):
            attributes = dict(node.attrs)
            ome = attributes.get("ome", attributes)
            scales = ome.get("multiscales") if isinstance(ome, dict) else None
            if isinstance(scales, list) and scales and dataset is None:
                self.format = "OME-Zarr"
                names = self._from_multiscale(scales[0])
                self._from_omero(ome.get("omero", {}))
                self._array: Any = node[scales[0]["datasets"][0]["path"]]
            else:
                self._array = node[_chosen(path, dict(_zarr_arrays(node)), dataset, "Zarr")]
            self.attributes["zarr"] = attributes
        else:
            if dataset is not None:
                raise ValueError(f"dataset {dataset!r}: {path} is a single array")
            self._array = node
        if dict(self._array.attrs):
            self.attributes["zarr_array"] = dict(self._array.attrs)
        self.shape, self.dtype = tuple(self._array.shape), np.dtype(self._array.dtype)
        named = getattr(self._array.metadata, "dimension_names", None) or [""] * len(self.shape)
        labelled = self._array.attrs.get("_ARRAY_DIMENSIONS")
        if isinstance(labelled, list) and len(labelled) == len(self.shape) and not any(named):
            named = [str(name) for name in labelled]
        if len(names) != len(self.shape):
            names = [name or "" for name in named]
        self.axes = letters(names)
        self.spacing = {axis: found for axis, found in zip(self.axes, self._steps) if found} if self._steps else {}
        self.chunks = tuple(int(side) for side in getattr(self._array, "shards", None) or self._array.chunks)

    _steps: Tuple[Any, ...] = ()

    def _from_multiscale(self, scale: Dict[str, Any]) -> List[str]:
        axes = [axis if isinstance(axis, dict) else {"name": axis} for axis in scale.get("axes", [])]
        changes = scale["datasets"][0].get("coordinateTransformations", []) + scale.get("coordinateTransformations", [])
        steps = [1.0] * len(axes)
        for change in changes:
            if change.get("type") == "scale" and len(change.get("scale", [])) == len(axes):
                steps = [step * float(factor) for step, factor in zip(steps, change["scale"])]
        self._steps = tuple((step, _units.symbol(str(axis["unit"]))) if axis.get("unit") and step > 0 else None
                            for step, axis in zip(steps, axes))
        return ["c" if axis.get("type") == "channel" else str(axis.get("name", "")) for axis in axes]

    def _from_omero(self, omero: Any) -> None:
        channels = omero.get("channels", []) if isinstance(omero, dict) else []
        names = [str(channel.get("label", "")) for channel in channels if isinstance(channel, dict)]
        if any(names):
            self.attributes["channel_names"] = names

    def read(self, place: Place) -> Array:
        return np.asarray(self._array[place])


def _zarr_arrays(group: Any, below: str = "") -> List[Tuple[str, Tuple[int, ...]]]:
    found = []
    for name, node in sorted(group.members()):
        if hasattr(node, "members"):
            found += _zarr_arrays(node, f"{below}{name}/")
        elif np.dtype(node.dtype).kind in "biuf" and node.ndim > 0:
            found.append((f"{below}{name}", tuple(node.shape)))
    return found


class Hdf5Source(Source):
    """A dataset of numbers."""

    def __init__(self, path: str, dataset: Optional[str]) -> None:
        import h5py  # pylint: disable=import-outside-toplevel
        super().__init__(path, "HDF5")
        self._file = h5py.File(path, "r")
        try:
            found: Dict[str, Tuple[int, ...]] = {}

            def visit(name: str, item: Any) -> None:
                if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf" and item.ndim > 0 and item.size:
                    found[name] = tuple(item.shape)
            self._file.visititems(visit)
            self._array = self._file[_chosen(path, found, dataset, "HDF5")]
            self._describe()
        except BaseException:
            self._file.close()
            raise

    def _describe(self) -> None:
        array = self._array
        self.shape, self.dtype = tuple(array.shape), np.dtype(array.dtype)
        self.axes = letters([str(dim.label) for dim in array.dims])
        self.chunks = tuple(array.chunks) if array.chunks else tuple(
            min(side, CHUNK_OF_PLAIN) if axis == len(self.shape) - 1 else 1 for axis, side in enumerate(self.shape))
        attributes = {str(name): value for name, value in array.attrs.items()
                      if name not in ("DIMENSION_LIST", "DIMENSION_LABELS", "REFERENCE_LIST", "CLASS", "NAME")}
        spacing, units = attributes.pop("spacing", None), attributes.pop("units", None)
        sizes = attributes.get("element_size_um")
        if spacing is not None and units is not None and np.size(spacing) == np.size(units) == len(self.shape):
            self.spacing = {axis: (float(step), str(unit)) for axis, step, unit in zip(self.axes, spacing, units)
                            if step > 0}
        elif sizes is not None and 0 < np.size(sizes) <= len(self.shape):
            axes = self.axes.replace("c", "")[-np.size(sizes):]
            self.spacing = {axis: (float(step), "um") for axis, step in zip(axes, sizes) if step > 0}
        names = attributes.pop("channel_names", None)
        if names is not None:
            self.attributes["channel_names"] = [str(name) for name in np.ravel(names)]
        if attributes:
            self.attributes["hdf5"] = attributes

    def read(self, place: Place) -> Array:
        samples = np.empty([part.stop - part.start for part in place], self.dtype)
        if math.prod(samples.shape) > 0:
            self._array.read_direct(samples, place)
        return samples

    def close(self) -> None:
        self._file.close()
