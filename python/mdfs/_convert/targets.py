"""What an image is converted into: OME-Zarr, OME-TIFF, HDF5."""
# SPDX-License-Identifier: Apache-2.0
import json
import math
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np

from mdfs import _chunks, _units
from mdfs._convert.copying import Array, Copy, Place, Progress, box_of
from mdfs._convert.source import Picked

CHUNK_BYTES = 1 << 20  # of a chunk of OME-Zarr and HDF5, about
TILE = 256  # of OME-TIFF
SUFFIXES = {".ome.zarr": "OME-Zarr", ".zarr": "OME-Zarr", ".ome.tif": "OME-TIFF", ".ome.tiff": "OME-TIFF",
            ".h5": "HDF5", ".hdf5": "HDF5"}
NGFF_AXES, TIFF_AXES = "tczyx", "TCZYX"
ONLY = "the axes of this image are {axes!r}; {format} has t, c, z, y and x, and needs y and x"
Nothing = Callable[[], None]


def format_of(path: str) -> str:
    """The format that the ending of a name stands for. ValueError if none does."""
    for suffix, name in SUFFIXES.items():
        if path.lower().endswith(suffix):
            return name
    raise ValueError(f"{path}: the ending names the format of the new file; must be one of {', '.join(SUFFIXES)}")


def _check_axes(source: Picked, name: str) -> None:
    if not set("yx") <= set(source.axes) <= set(NGFF_AXES):
        raise ValueError(ONLY.format(axes=source.axes, format=name))


def _inner(place: Place, axes: str, order: str) -> Tuple[slice, ...]:
    """A box along other axes."""
    return tuple(place[axes.index(axis)] for axis in order)


def to_zarr(source: Picked, path: str, progress: Progress, rounds: int) -> Copy:
    """A group of OME-NGFF 0.5 in Zarr version 3, with one level."""
    import zarr  # pylint: disable=import-outside-toplevel
    _check_axes(source, "OME-Zarr")
    order = "".join(axis for axis in NGFF_AXES if axis in source.axes)
    shape = dict(zip(source.axes, source.shape))
    chunks = dict(zip(source.axes, _chunk(source)))
    kinds = {"t": "time", "c": "channel"}
    axes: List[Dict[str, str]] = []
    for axis in order:
        axes.append({"name": axis, "type": kinds.get(axis, "space")})
        if axis in source.spacing and source.spacing[axis][1]:
            axes[-1]["unit"] = _units.name(source.spacing[axis][1])
    scale = [source.spacing[axis][0] if axis in source.spacing else 1.0 for axis in order]
    ome: Dict[str, Any] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]}]}]}
    names = source.attributes.get("channel_names")
    if names:
        ome["omero"] = {"channels": [{"label": name} for name in names]}
    group = zarr.create_group(path, attributes={"ome": ome, "mdfs": source.attributes} if source.attributes
                              else {"ome": ome})
    array = group.create_array("0", shape=tuple(shape[axis] for axis in order), dtype=source.dtype,
                               chunks=tuple(chunks[axis] for axis in order), dimension_names=list(order), fill_value=0)
    moved = [source.axes.index(axis) for axis in order]

    def write(place: Place, samples: Array) -> None:
        array[_inner(place, source.axes, order)] = samples.transpose(moved)
    return _copy(source, _chunk(source), write, progress, rounds)


def to_hdf5(source: Picked, path: str, progress: Progress, rounds: int) -> Copy:
    """A dataset "image" in the axes of the image, with labels, spacing and units."""
    import h5py  # pylint: disable=import-outside-toplevel
    with h5py.File(path, "w") as file:
        array = file.create_dataset("image", shape=source.shape, dtype=source.dtype, chunks=_chunk(source),
                                    compression="gzip", compression_opts=1, shuffle=True, fletcher32=True)
        for dim, axis in zip(array.dims, source.axes):
            dim.label = axis
        array.attrs["spacing"] = [source.spacing.get(axis, (0.0, ""))[0] for axis in source.axes]
        array.attrs["units"] = [source.spacing.get(axis, (0.0, ""))[1] for axis in source.axes]
        if source.attributes.get("channel_names"):
            array.attrs["channel_names"] = list(source.attributes["channel_names"])
        rest = {name: value for name, value in source.attributes.items() if name != "channel_names"}
        if rest:
            array.attrs["mdfs"] = json.dumps(rest)

        def write(place: Place, samples: Array) -> None:
            array[place] = samples
        return _copy(source, _chunk(source), write, progress, rounds)


def to_tiff(source: Picked, path: str, progress: Progress, rounds: int) -> Copy:
    """A tiled OME-TIFF (BigTIFF), compressed without loss."""
    import tifffile  # pylint: disable=import-outside-toplevel
    _check_axes(source, "OME-TIFF")
    if source.dtype.name not in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "float32", "float64"):
        raise ValueError(f"OME-TIFF has no samples of {source.dtype}; OME-Zarr and HDF5 have")
    lengths = dict(zip(source.axes, source.shape))
    colours = lengths.get("c", 1) in (3, 4) and "channel_names" not in source.attributes
    pages = [axis for axis in "tczyx" if axis in source.axes and axis not in "yx" and not (axis == "c" and colours)]
    order = "".join(pages) + "yx" + ("c" if colours else "")
    shape = tuple(lengths[axis] for axis in order)
    metadata: Dict[str, Any] = {"axes": order[:-1].upper() + "S" if colours else order.upper()}
    for axis, (step, unit) in source.spacing.items():
        if axis == "t":
            metadata["TimeIncrement"], metadata["TimeIncrementUnit"] = step, unit or "s"
        elif unit:
            metadata[f"PhysicalSize{axis.upper()}"] = step
            metadata[f"PhysicalSize{axis.upper()}Unit"] = "\u00b5m" if unit == "um" else unit
    if source.attributes.get("channel_names"):
        metadata["Channel"] = {"Name": list(source.attributes["channel_names"])}
    copy = Copy(source, (1,))  # counts what the tiles hold
    copy.count = math.prod(lengths[axis] for axis in pages) * -(-lengths["y"] // TILE)
    with tifffile.TiffWriter(path, bigtiff=True, ome=True) as writer:
        writer.write(_tiles(source, order, copy, lambda done: progress(done, math.prod(shape) * rounds)), shape=shape,
                     dtype=source.dtype, tile=(TILE, TILE), compression="zlib", predictor=True,
                     photometric="rgb" if colours else "minisblack", metadata=metadata)
    return _rechained(source) if rounds > 1 else copy


def _tiles(source: Picked, order: str, copy: Copy, progress: Callable[[int], None]) -> Iterator[Array]:
    """The tiles of all pages; a row of tiles is read at a time."""
    lengths = dict(zip(source.axes, source.shape))
    pages = order[:order.index("y")]
    moved = [source.axes.index(axis) for axis in order]
    for page in np.ndindex(*[lengths[axis] for axis in pages]):
        for top in range(0, lengths["y"], TILE):
            wanted = {axis: slice(0, length) for axis, length in lengths.items()}
            wanted.update({axis: slice(at, at + 1) for axis, at in zip(pages, page)})
            wanted["y"] = slice(top, min(top + TILE, lengths["y"]))
            band = source.read(tuple(wanted[axis] for axis in source.axes)).transpose(moved)
            band = band.reshape(band.shape[len(pages):])
            copy.done += 1
            progress(math.prod(source.shape) * copy.done // copy.count)
            for left in range(0, lengths["x"], TILE):
                part = band[:, left:left + TILE]
                tile = np.zeros((TILE, TILE, *band.shape[2:]), source.dtype)
                tile[:part.shape[0], :part.shape[1]] = part
                yield tile


def _rechained(source: Picked) -> Copy:
    """The checksum in the order of boxes: OME-TIFF is written in another order."""
    whole = Copy(source, box_of(source.shape, source.chunks, source.chunks, source.dtype.itemsize))
    whole.run(lambda place, samples: None, None, lambda done, total: None, 1)
    return whole


def _chunk(source: Picked) -> Tuple[int, ...]:
    """The shape of a chunk: whole extents of the image."""
    return _chunks.grown(source.shape, source.chunks, CHUNK_BYTES // source.dtype.itemsize)


def _copy(source: Picked, chunk: Tuple[int, ...], write: Callable[[Place, Array], None], progress: Progress,
          rounds: int) -> Copy:
    copy = Copy(source, box_of(source.shape, chunk, chunk, source.dtype.itemsize))
    copy.run(write, None, progress, rounds)
    return copy


WRITERS = {"OME-Zarr": to_zarr, "OME-TIFF": to_tiff, "HDF5": to_hdf5}
