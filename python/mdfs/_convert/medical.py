"""NIfTI by nibabel, NRRD by pynrrd, MetaImage, and series of DICOM files by pydicom."""
# SPDX-License-Identifier: Apache-2.0
import gzip
import math
import os
import zlib
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from mdfs import _units
from mdfs._convert.source import Array, Place, Source

PIECE = 1 << 20
PLANE_BYTES = 16 << 20
UNEVEN = 1e-3  # distances of slices differ by at most this part of a distance


class _Plain(Source):
    """Samples one behind another in a file, in C order: read in boxes of whole places of the slowest axis, forwards.

    The stream may be compressed. A box that lies before the last one begins the stream anew."""

    _stream: Any = None
    _start = 0  # of the samples in the stream
    _at = -1
    _compressed = False

    def _open(self) -> Any:
        raise NotImplementedError

    def _plane_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def _seek(self, offset: int) -> None:
        if self._stream is None or offset < self._at:
            self.close()
            self._stream = self._open()
            self._at = 0
        if not self._compressed:
            self._stream.seek(offset)
            self._at = offset
        while self._at < offset:
            self._take(min(PIECE, offset - self._at))

    def _take(self, size: int) -> bytes:
        taken = self._stream.read(size)
        if len(taken) != size:
            raise ValueError(f"the samples end after {self._at + len(taken) - self._start} bytes")
        self._at += size
        return bytes(taken)

    def _natural_chunks(self) -> Tuple[int, ...]:
        """Rows; of a compressed stream whole planes, or many rows of a large one, so that it is read once."""
        inner = 3 if self.axes.endswith("c") else 2
        if len(self.shape) < inner:
            return self.shape
        before, rows, row = self.shape[:-inner], self.shape[-inner], self.shape[1 - inner:]
        at_once = PLANE_BYTES // max(1, math.prod(row) * self.dtype.itemsize) if self._compressed else 1
        return (1,) * len(before) + (max(1, min(rows, at_once)),) + row

    def read(self, place: Place) -> Array:
        if len(place) == 1:
            self._seek(self._start + place[0].start * self.dtype.itemsize)
            return np.frombuffer(self._take((place[0].stop - place[0].start) * self.dtype.itemsize), self.dtype)
        rows, row_bytes = place[1], math.prod(self.shape[2:]) * self.dtype.itemsize
        parts: List[Array] = []
        for plane in range(place[0].start, place[0].stop):
            self._seek(self._start + plane * self._plane_bytes() + rows.start * row_bytes)
            taken = self._take((rows.stop - rows.start) * row_bytes)
            parts.append(np.frombuffer(taken, self.dtype))
        lengths = [place[0].stop - place[0].start, rows.stop - rows.start, *self.shape[2:]]
        samples = np.concatenate(parts).reshape(lengths)
        return samples[(slice(None), slice(None), *place[2:])]

    def finish(self) -> None:
        """Reads a compressed stream to its end, where its checksum is."""
        if self._compressed and self._stream is not None:
            while self._stream.read(PIECE):
                pass

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _is_gzip(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


class _Deflated:
    """The bytes of a stream that zlib or gzip compressed. ValueError or zlib.error: damaged."""

    def __init__(self, file: Any) -> None:
        self._file, self._inflate = file, zlib.decompressobj(32 + zlib.MAX_WBITS)

    def read(self, size: int) -> bytes:
        """So many bytes, fewer at the end only."""
        parts: List[bytes] = []
        while size > 0 and not self._inflate.eof:
            more = self._inflate.unconsumed_tail or self._file.read(PIECE)
            if not more:
                raise ValueError("the compressed samples end too early")
            parts.append(self._inflate.decompress(more, size))
            size -= len(parts[-1])
        return b"".join(parts)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class NiftiSource(_Plain):
    """Stored samples, without the slope and intercept of the header, which are attributes."""

    def __init__(self, path: str) -> None:
        import nibabel  # pylint: disable=import-outside-toplevel
        super().__init__(path, "NIfTI")
        image: Any = nibabel.load(path)
        header = image.header
        lengths = tuple(int(length) for length in image.shape)
        if not hasattr(header, "get_xyzt_units") or not 1 <= len(lengths) <= 5:
            raise ValueError(f"{path}: not a NIfTI file of 1 to 5 axes")
        self.dtype = np.dtype(header.get_data_dtype())
        self.shape, self.axes = lengths[::-1], "xyztc"[:len(lengths)][::-1]
        if self.dtype.fields is not None:  # RGB and RGBA
            if len(lengths) == 5 or len({field[0] for field in self.dtype.fields.values()}) > 1:
                raise ValueError(f"{path}: samples of {self.dtype} are not supported")
            self.shape += (len(self.dtype.fields),)
            self.axes += "c"
            self.dtype = next(iter(self.dtype.fields.values()))[0]
        self._file = str(image.file_map["image"].filename or path)
        self._compressed = _is_gzip(self._file)
        self.chunks = self._natural_chunks()
        self._start = int(image.dataobj.offset)  # the header no longer has it
        length_unit, time_unit = (_units.symbol(unit) for unit in header.get_xyzt_units())
        for axis, step in zip("xyzt", header.get_zooms()):
            unit = time_unit if axis == "t" else length_unit
            if step > 0 and unit not in ("", "unknown"):
                self.spacing[axis] = float(step), unit
        slope, intercept = (header[name].item() for name in ("scl_slope", "scl_inter"))
        kept = {"affine": np.asarray(image.affine).tolist(), "descrip": header["descrip"].item(),
                "slope": slope, "intercept": intercept}
        self.attributes["nifti"] = {name: value for name, value in kept.items()
                                    if value not in (b"", "") and value == value}

    def _open(self) -> Any:
        return gzip.open(self._file, "rb") if self._compressed else open(self._file, "rb")


class NrrdSource(_Plain):
    """Raw or gzip samples, in the file or beside it."""

    def __init__(self, path: str) -> None:
        import nrrd  # pylint: disable=import-outside-toplevel
        super().__init__(path, "NRRD")
        with open(path, "rb") as file:
            header: Dict[str, Any] = dict(nrrd.read_header(file))
            start = file.tell()
        encoding = str(header.get("encoding", ""))
        self._compressed = encoding in ("gzip", "gz")
        if encoding not in ("raw", "gzip", "gz"):
            raise ValueError(f"{path}: samples with encoding {encoding!r}: must be raw or gzip")
        detached = header.get("data file", header.get("datafile"))
        self._file, self._inside = path, start
        if detached is not None:
            if "%" in str(detached) or str(detached).startswith("LIST"):
                raise ValueError(f"{path}: samples in several files ({detached}) are not supported")
            self._file, self._inside = os.path.join(os.path.dirname(path), str(detached)), 0
        skip = int(header.get("byte skip", header.get("byteskip", 0)))
        if int(header.get("line skip", header.get("lineskip", 0))) != 0 or (skip < 0 and self._compressed):
            raise ValueError(f"{path}: a line skip, or a negative byte skip of compressed samples, is not supported")
        self.shape = tuple(int(length) for length in header["sizes"])[::-1]
        kind = nrrd.reader._determine_datatype(header)  # pylint: disable=protected-access
        self.dtype = np.dtype(kind)
        if skip < 0:
            self._inside = os.path.getsize(self._file) - math.prod(self.shape) * self.dtype.itemsize
        self._start = skip if self._compressed else self._inside + max(skip, 0)
        self._facts(header)
        self.chunks = self._natural_chunks()

    def _facts(self, header: Dict[str, Any]) -> None:
        rank = len(self.shape)
        kinds = [str(kind) for kind in header.get("kinds", ["domain"] * rank)][::-1]
        colours = {"vector", "list", "rgb-color", "rgba-color", "hsv-color", "covariant-vector", "point", "normal",
                   "quaternion", "3-vector", "4-vector", "2-vector", "complex"}
        axes, usual = [], list("xyzt")
        for kind in reversed(kinds):
            if kind.lower() in colours and "c" not in axes:
                axes.append("c")
            elif kind.lower() == "time" and "t" not in axes:
                axes.append("t")
                usual = [letter for letter in usual if letter != "t"]
            elif usual:
                axes.append(usual.pop(0))
            else:
                raise ValueError(f"{self.path}: {rank} axes are not supported")
        self.axes = "".join(reversed(axes))
        steps = list(header["spacings"]) if "spacings" in header else [
            np.linalg.norm(row) for row in header.get("space directions", [])]
        units = header.get("units", header.get("space units", []))
        if len(steps) == rank:
            named = [str(unit) for unit in units] if len(units) == rank else [
                str(units[0]) if len(units) > 0 else ""] * rank
            for axis, step, unit in zip(reversed(self.axes), steps, named):
                if axis != "c" and np.isfinite(step) and step > 0:
                    self.spacing[axis] = float(step), _units.symbol(unit)
        self.attributes["nrrd"] = {name: value for name, value in header.items()
                                   if name not in ("sizes", "type", "encoding", "endian", "dimension", "data file")}

    def _open(self) -> Any:
        file = open(self._file, "rb")  # pylint: disable=consider-using-with
        if not self._compressed:
            return file
        file.seek(self._inside)
        stream: Any = gzip.GzipFile(fileobj=file)
        stream.myfileobj = file  # closed with the stream
        return stream


class MetaImageSource(_Plain):
    """Raw or zlib samples, in the file or beside it.

    The header is read here: SimpleITK takes compressed samples that do not match their checksum."""

    TYPES = {"MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4",
             "MET_UINT": "u4", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4", "MET_DOUBLE": "f8"}
    MOST_HEADER_BYTES = 1 << 20

    def __init__(self, path: str) -> None:
        super().__init__(path, "MetaImage")
        header, end = self._header()
        lengths = [int(length) for length in header.get("DimSize", "").split()]
        if not 1 <= len(lengths) <= 4 or len(lengths) != int(header.get("NDims", "0")) or min(lengths) < 1:
            raise ValueError(f"{path}: DimSize {header.get('DimSize')!r}: must be 1 to 4 lengths, as NDims says")
        kind = self.TYPES.get(header.get("ElementType", "").removesuffix("_ARRAY"))
        if kind is None or header.get("BinaryData", "True") != "True":
            raise ValueError(f"{path}: ElementType {header.get('ElementType')!r}: must be binary samples of one of "
                             f"{', '.join(self.TYPES)}")
        large = header.get("BinaryDataByteOrderMSB", header.get("ElementByteOrderMSB", "False")) == "True"
        self.dtype = np.dtype((">" if large else "<") + kind)
        self.axes, self.shape = "xyzt"[:len(lengths)][::-1], tuple(lengths[::-1])
        channels = int(header.get("ElementNumberOfChannels", "1"))
        if channels > 1:
            self.axes, self.shape = self.axes + "c", (*self.shape, channels)
        self._compressed = header.get("CompressedData", "False") == "True"
        self._place(header, end)
        steps = [float(step) for step in header.get("ElementSpacing", header.get("ElementSize", "")).split()]
        self.spacing = {axis: (step, "mm") for axis, step in zip("xyz", steps) if step > 0}
        self.chunks = self._natural_chunks()
        self.attributes["metaimage"] = header

    def _header(self) -> Tuple[Dict[str, str], int]:
        """The fields, and where they end."""
        fields: Dict[str, str] = {}
        with open(self.path, "rb") as file:
            while "ElementDataFile" not in fields:
                line = file.readline(self.MOST_HEADER_BYTES)
                name, equals, value = line.decode("utf-8", "replace").partition("=")
                if not line.endswith(b"\n") or not equals or file.tell() > self.MOST_HEADER_BYTES:
                    raise ValueError(f"{self.path}: damaged: the header has no ElementDataFile")
                fields[name.strip()] = value.strip()
            return fields, file.tell()

    def _place(self, header: Dict[str, str], end: int) -> None:
        """Where the samples are."""
        name, skip = header["ElementDataFile"], int(header.get("HeaderSize", "0"))
        if name == "LIST" or "%" in name:
            raise ValueError(f"{self.path}: samples in several files ({name}) are not supported")
        local = name == "LOCAL"
        self._file = self.path if local else os.path.join(os.path.dirname(self.path), name)
        self._inside = end if local else 0
        if skip < 0 and not self._compressed:
            self._inside = os.path.getsize(self._file) - math.prod(self.shape) * self.dtype.itemsize
        self._inside += max(skip, 0)
        self._start = 0 if self._compressed else self._inside

    def _open(self) -> Any:
        file = open(self._file, "rb")  # pylint: disable=consider-using-with
        if not self._compressed:
            return file
        file.seek(self._inside)
        return _Deflated(file)


class DicomSource(Source):
    """A file, or the files of a folder that are one series: a slice or a frame each, sorted by their places."""

    KEPT = ("Modality", "StudyDate", "SeriesDescription", "SeriesInstanceUID", "StudyInstanceUID", "BodyPartExamined",
            "Manufacturer", "ManufacturerModelName", "SliceThickness", "RescaleSlope", "RescaleIntercept",
            "RescaleType", "WindowCenter", "WindowWidth", "ImageOrientationPatient", "ImagePositionPatient",
            "BitsStored", "PhotometricInterpretation", "FrameOfReferenceUID")

    def __init__(self, path: str, dataset: Optional[str]) -> None:
        import pydicom  # pylint: disable=import-outside-toplevel
        super().__init__(path, "DICOM")
        self._pydicom = pydicom
        self._files, first = self._slices(dataset)
        rows, columns = int(first.Rows), int(first.Columns)
        self._frames, self._colours = int(first.get("NumberOfFrames", 1) or 1), int(first.get("SamplesPerPixel", 1))
        if self._frames > 1 and len(self._files) > 1:
            raise ValueError(f"{path}: several files of several frames each; convert one of them")
        self.axes, self.shape = "yx", (rows, columns)
        if max(self._frames, len(self._files)) > 1:
            self.axes = ("t" if self._frames > 1 and "FrameTime" in first else "z") + "yx"
            self.shape = (max(self._frames, len(self._files)), rows, columns)
        if self._colours > 1:
            self.axes, self.shape = self.axes + "c", self.shape + (self._colours,)
        self._held: Tuple[int, Optional[Array]] = -1, None
        self.dtype = self._slice(0).dtype
        self.chunks = (1,) * (self.axes.find("y")) + self.shape[self.axes.find("y"):]
        self._facts(first)

    def _slices(self, dataset: Optional[str]) -> Tuple[List[str], Any]:
        """Paths in the order of the slices, and the first header."""
        if not os.path.isdir(self.path):
            return [self.path], self._pydicom.dcmread(self.path, stop_before_pixels=True)
        series: Dict[str, List[Tuple[str, Any]]] = {}
        for name in sorted(os.listdir(self.path)):
            path = os.path.join(self.path, name)
            if not os.path.isfile(path) or not _is_dicom(path):
                continue
            header = self._pydicom.dcmread(path, stop_before_pixels=True)
            if "Rows" in header:
                series.setdefault(str(header.get("SeriesInstanceUID", "")), []).append((path, header))
        if not series:
            raise ValueError(f"{self.path}: a folder without Zarr and without DICOM files")
        if dataset is None and len(series) > 1:
            shown = ", ".join(f"{uid} ({len(files)} files)" for uid, files in series.items())
            raise ValueError(f"{self.path} has {len(series)} series; choose one with --dataset (dataset=...) of "
                             f"{shown}")
        if dataset is not None and dataset not in series:
            raise ValueError(f"dataset {dataset!r}: {self.path} has the series {', '.join(series)}")
        files = series[dataset if dataset is not None else next(iter(series))]
        return self._sorted(files)

    def _sorted(self, files: Sequence[Tuple[str, Any]]) -> Tuple[List[str], Any]:
        first = files[0][1]
        for path, header in files:
            for name in ("Rows", "Columns", "BitsAllocated", "SamplesPerPixel", "PixelRepresentation"):
                if header.get(name) != first.get(name):
                    raise ValueError(f"{path}: {name} is {header.get(name)}, but {first.get(name)} in {files[0][0]}")
        places = [_place(header) for _, header in files]
        if len(files) > 1 and any(place is None for place in places):
            raise ValueError(f"{files[places.index(None)][0]}: has neither a position nor an instance number")
        order = sorted(range(len(files)), key=lambda number: places[number] or 0.0)
        steps = np.diff([places[number] or 0.0 for number in order])
        if len(steps) > 0:
            usual = float(np.median(steps))
            for number, step in enumerate(steps):
                if usual <= 0 or abs(step - usual) > max(UNEVEN * usual, 1e-9):
                    raise ValueError(f"{files[order[number + 1]][0]}: damaged series: this slice is {step:g} behind "
                                     f"the one before, others {usual:g}; one is missing or is there twice")
            if "ImagePositionPatient" in first:
                self.spacing["z"] = usual, "mm"
        return [files[number][0] for number in order], files[order[0]][1]

    def _facts(self, first: Any) -> None:
        distances = first.get("PixelSpacing", first.get("ImagerPixelSpacing"))
        if distances is not None and len(distances) == 2:
            self.spacing["y"], self.spacing["x"] = ((float(step), "mm") for step in distances)
        if self.axes[0] == "t" and float(first.FrameTime or 0) > 0:
            self.spacing["t"] = float(first.FrameTime), "ms"
        found = {name: first.get(name) for name in self.KEPT if first.get(name) not in (None, "")}
        self.attributes["dicom"] = {
            name: [float(item) for item in value] if name.startswith("Image") or isinstance(value, list)
            else float(value) if isinstance(value, float) else str(value) for name, value in found.items()}

    def _slice(self, number: int) -> Array:
        """The samples of a file; the last one is held."""
        if self._held[0] != number:
            samples: Array = np.asarray(self._pydicom.dcmread(self._files[number]).pixel_array)
            self._held = number, samples
        held = self._held[1]
        assert held is not None
        return held

    def read(self, place: Place) -> Array:
        if len(self._files) == 1:
            return self._slice(0)[place]
        parts = [self._slice(number)[place[1:]] for number in range(place[0].start, place[0].stop)]
        for part in parts:
            if part.dtype != self.dtype:
                raise ValueError(f"samples of {part.dtype} beside those of {self.dtype}")
        return np.stack(parts)


def _is_dicom(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(132)[128:] == b"DICM"


def _place(header: Any) -> Optional[float]:
    """Where a slice lies along the normal of its plane, or its number."""
    position, orientation = header.get("ImagePositionPatient"), header.get("ImageOrientationPatient")
    if position is not None and orientation is not None and len(position) == 3 and len(orientation) == 6:
        across = np.cross([float(value) for value in orientation[:3]], [float(value) for value in orientation[3:]])
        return float(np.dot(across, [float(value) for value in position]))
    number = header.get("InstanceNumber")
    return None if number in (None, "") else float(number)
