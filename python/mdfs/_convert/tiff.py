"""TIFF, BigTIFF, OME-TIFF and ImageJ's stacks, read by tifffile."""
# SPDX-License-Identifier: Apache-2.0
import logging
import re
import xml.etree.ElementTree as ET
from typing import Any, Dict, List, Optional

import numpy as np

from mdfs import _units
from mdfs._convert.attributes import packed
from mdfs._convert.source import Array, Place, Source, letters

WARNED = logging.WARNING


class _Heard(logging.Handler):
    """Collects what tifffile logs: it reads damaged files as far as it can, and reports that in the log alone."""

    def __init__(self) -> None:
        super().__init__(WARNED)
        self.messages: List[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


class TiffSource(Source):
    """One series of a file. Only the strips or tiles of a box are decoded.

    ValueError: tifffile warned of the file, strips or tiles lie outside of it, or it has several series."""

    def __init__(self, path: str, dataset: Optional[str], allow_warnings: bool) -> None:
        import tifffile  # pylint: disable=import-outside-toplevel
        import zarr  # pylint: disable=import-outside-toplevel
        super().__init__(path)
        self._heard = _Heard()
        logging.getLogger("tifffile").addHandler(self._heard)
        self._allow = allow_warnings
        self._file: Any = None
        try:
            self._file = tifffile.TiffFile(path)
            series = self._series(dataset)
            self._check(series)
            self._describe(series)
            self._array: Any = zarr.open(series.aszarr(level=0), mode="r")
            self.shape, self.dtype = tuple(series.shape), np.dtype(series.dtype)
            self.axes = letters(list(series.axes))
            self.chunks = tuple(int(side) for side in self._array.chunks)
            if tuple(self._array.shape) != self.shape or self.dtype.kind not in "biuf":
                raise ValueError(f"{path}: samples of {self.dtype} in shape {self.shape} are not supported")
            self._complain()
        except BaseException:
            self.close()
            raise

    def _series(self, dataset: Optional[str]) -> Any:
        count = len(self._file.series)
        if count == 0:
            raise ValueError(f"{self.path}: damaged: this TIFF file has no image")
        if dataset is None and count != 1:
            shown = ", ".join(f"{number}: {item.axes.lower()} {'x'.join(map(str, item.shape))}"
                              for number, item in enumerate(self._file.series[:8]))
            raise ValueError(f"{self.path} has {count} series ({shown}{', ...' if count > 8 else ''}); choose one, "
                             "such as --dataset 0 (dataset='0')")
        if dataset is not None and not (dataset.isdecimal() and int(dataset) < count):
            raise IndexError(f"dataset {dataset!r}: {self.path} has the series 0 to {count - 1}")
        return self._file.series[int(dataset or 0)]

    def _check(self, series: Any) -> None:
        """Each strip or tile lies in the file: those that do not would be read as zeros."""
        import tifffile  # pylint: disable=import-outside-toplevel
        size = self._file.filehandle.size
        if series.keyframe.photometric == tifffile.PHOTOMETRIC.PALETTE:
            raise ValueError(f"{self.path} has a palette; the command `mdfs image import` expands it")
        pages = list(series.pages)
        if series.dataoffset is not None:  # one range of bytes, for which a single page may stand
            need = series.dataoffset + series.nbytes
            if need > size:
                raise ValueError(f"{self.path}: damaged: {need} bytes are needed, {size} are there")
        for number, page in enumerate(pages):
            if page is None:
                raise ValueError(f"{self.path}: damaged: page {number} of {len(pages)} is missing")
            for offset, count in zip(page.dataoffsets, page.databytecounts):
                if count == 0 or offset == 0 or offset + count > page.parent.filehandle.size:
                    raise ValueError(f"{self.path}: damaged: page {number} has samples at {offset} to "
                                     f"{offset + count} of {page.parent.filehandle.size} bytes")

    def _describe(self, series: Any) -> None:
        tags = series.keyframe.tags
        self.format = "OME-TIFF" if self._file.is_ome else "TIFF"
        if self._file.is_ome:
            self.attributes["ome_xml"] = packed(self._file.ome_metadata)
            self._from_ome(series)
        elif self._file.is_imagej:
            self._from_imagej(self._file.imagej_metadata or {}, tags)
        else:
            description = series.keyframe.description
            if description:
                self.attributes["description"] = packed(description)
            self._from_resolution(tags, {2: "in", 3: "cm"}.get(int(_value(tags, "ResolutionUnit", 1)), ""))
        for name in ("Software", "DateTime", "Artist", "Make", "Model", "Copyright"):
            found = _value(tags, name, None)
            if found and not (name == "Software" and self._file.is_ome):
                self.attributes[name] = str(found)

    def _from_ome(self, series: Any) -> None:
        root = ET.fromstring(self._file.ome_metadata)
        images = [item for item in root if item.tag.endswith("}Image")]
        places = [number for number, item in enumerate(self._file.series) if item is series]
        if not images or not places or places[0] >= len(images):
            return
        pixels = next((item for item in images[places[0]] if item.tag.endswith("}Pixels")), None)
        if pixels is None:
            return
        for axis in "XYZ":
            size = pixels.get(f"PhysicalSize{axis}")
            if size is not None and float(size) > 0:
                self.spacing[axis.lower()] = float(size), _units.symbol(pixels.get(f"PhysicalSize{axis}Unit", "um"))
        if float(pixels.get("TimeIncrement", "0")) > 0:
            self.spacing["t"] = float(pixels.get("TimeIncrement", "0")), _units.symbol(
                pixels.get("TimeIncrementUnit", "s"))
        names = [item.get("Name", "") for item in pixels if item.tag.endswith("}Channel")]
        if any(names):
            self.attributes["channel_names"] = names

    def _from_imagej(self, metadata: Dict[str, Any], tags: Any) -> None:
        unit = _units.symbol(str(metadata.get("unit", "")))
        if unit not in ("", "pixel"):
            self._from_resolution(tags, unit)
            if float(metadata.get("spacing", 0)) > 0:
                self.spacing["z"] = float(metadata["spacing"]), unit
        if float(metadata.get("finterval", 0)) > 0:
            self.spacing["t"] = float(metadata["finterval"]), "s"
        kept = {name: value for name, value in metadata.items() if isinstance(value, (str, int, float, bool))}
        self.attributes["imagej"] = {name: packed(value) if isinstance(value, str) else value
                                     for name, value in kept.items()}
        labels = metadata.get("Labels")
        if isinstance(labels, (list, tuple)):
            self.attributes["imagej_labels"] = packed("\n".join(map(str, labels)))

    def _from_resolution(self, tags: Any, unit: str) -> None:
        if not unit:
            return
        for axis, tag in (("x", "XResolution"), ("y", "YResolution")):
            found = _value(tags, tag, None)
            if found is not None and found[0] > 0 and found[1] > 0:
                self.spacing[axis] = found[1] / found[0], unit

    def _complain(self) -> None:
        if self._heard.messages and not self._allow:
            message = re.sub(r"\s+", " ", self._heard.messages[0])
            raise ValueError(f"{self.path}: damaged, or not as its format requires: {message}; --allow-warnings "
                             "(allow_warnings=True) converts it all the same")

    def read(self, place: Place) -> Array:
        samples: Array = np.asarray(self._array[place])
        self._complain()
        return samples

    def close(self) -> None:
        logging.getLogger("tifffile").removeHandler(self._heard)
        if self._file is not None:
            self._file.close()


def _value(tags: Any, name: str, default: Any) -> Any:
    tag = tags.get(name)
    return default if tag is None else tag.value
