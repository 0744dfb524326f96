"""Reader and writer of napari, found by its plugin engine through napari.yaml."""
# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from mdfs import _units
from mdfs._attributes import is_image
from mdfs._create import new_image, store_boxes
from mdfs._image import Image

COLOURS = (3, 4)  # channels that napari shows as one coloured picture
COLORMAPS = ("magenta", "green", "cyan", "yellow", "red", "blue")  # of channels that are no colours
Layer = Tuple[Any, Dict[str, Any], str]
Paths = Union[str, Sequence[str]]


def get_reader(path: Paths) -> Optional[Callable[[Paths], List[Layer]]]:
    """The reader, or None if a path is no image of MDFS."""
    paths = [path] if isinstance(path, str) else list(path)
    return read_layers if paths and all(map(is_image, paths)) else None


def read_layers(path: Paths) -> List[Layer]:
    """A layer for each image, with its stored levels. Samples are read when napari shows them; channels that are no
    colours are layers."""
    return [layer for found in ([path] if isinstance(path, str) else path) for layer in _layers(found)]


class Channel:
    """One channel of an image, as an array that is read when it is needed."""

    def __init__(self, image: Image, number: int) -> None:
        self.image, self.number = image, number
        self.shape, self.dtype, self.ndim = image.shape[:-1], image.dtype, image.ndim - 1

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        rest = () if any(item is Ellipsis for item in items) else (Ellipsis,)
        return self.image[(*items, *rest, slice(self.number, self.number + 1))][..., 0]

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        if copy is False:
            raise ValueError("an image is copied into an array")
        return np.asarray(self[...], dtype=dtype)

    def __len__(self) -> int:
        return self.shape[0]


def _layers(path: str) -> List[Layer]:
    image = Image(path)
    pyramid = [image] + [image.level(number) for number in range(1, len(image.levels))]
    name = os.path.basename(path)
    axes = image.axes[:-1] if image.channels > 1 else image.axes
    shown: Dict[str, Any] = {
        "name": name,
        "scale": [image.spacing[axis][0] if axis in image.spacing else 1.0 for axis in axes],
        "axis_labels": list(axes), "units": [_unit(image, axis) for axis in axes],
        "metadata": {"mdfs": {"path": image.path, "attributes": dict(image.attrs)}}}
    if image.channels in COLOURS and image.dtype.name in ("uint8", "uint16") and "channel_names" not in image.attrs:
        return [_layer(pyramid, {**shown, "rgb": True})]
    if image.channels == 1:
        return [_layer(pyramid, shown)]
    names = image.attrs.get("channel_names")
    if not isinstance(names, list) or len(names) != image.channels:
        names = list(range(image.channels))
    return [_layer([Channel(level, number) for level in pyramid],
                   {**shown, "name": f"{name} {channel}", "blending": "additive",
                    "colormap": COLORMAPS[number % len(COLORMAPS)]})
            for number, channel in enumerate(names)]


def _layer(pyramid: List[Any], shown: Dict[str, Any]) -> Layer:
    if len(pyramid) == 1:
        return pyramid[0], shown, "image"
    return pyramid, {**shown, "multiscale": True}, "image"


def _unit(image: Image, axis: str) -> str:
    unit = image.spacing[axis][1] if axis in image.spacing else ""
    return _units.name(unit) if unit in _units.NAMES else "pixel"


def write_image(path: str, data: Any, meta: Dict[str, Any]) -> List[str]:
    """Stores a layer as a new image, box by box, and returns its path. Of several levels the first one is stored.

    FileExistsError: the path exists. ValueError: the layer has more axes than an image."""
    samples = data[0] if meta.get("multiscale") and isinstance(data, (list, tuple)) else data
    colours = bool(meta.get("rgb"))
    rank = len(samples.shape) - colours
    labels = [str(label) for label in meta.get("axis_labels") or ()]
    named = len(labels) == rank == len(set(labels)) and all(
        len(label) == 1 and "a" <= label <= "z" and label not in ("cl" if colours else "l")
        for label in labels) and labels[-1] != "c"
    if rank > 5:
        raise ValueError(f"a layer of {rank} axes: an image has at most 5 beside its colours; save one place of the "
                         "others")
    axes = "".join(labels) if named else "stzyx"[5 - rank:]
    steps = list(meta.get("scale") or ())
    units = [str(unit) for unit in meta.get("units") or ()]
    spacing = {}
    for place, axis in enumerate(axes):
        if len(steps) == rank and len(units) == rank and steps[place] > 0 and units[place] not in ("pixel", ""):
            spacing[axis] = float(steps[place]), _units.symbol(units[place])
    with new_image(path, samples.shape, samples.dtype, axes + ("c" if colours else ""), spacing=spacing) as image:
        store_boxes(image, lambda box: np.asarray(samples[box]))
    return [path]


__all__ = ["get_reader", "read_layers", "write_image"]
