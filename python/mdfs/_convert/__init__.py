"""Conversions between images of MDFS and the formats of the field."""
# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from mdfs import _levels
from mdfs._attributes import is_image
from mdfs._convert import copying, formats, pending, targets
from mdfs._convert.attributes import fitting
from mdfs._convert.copying import Copy, Progress
from mdfs._convert.source import Choice, Picked, Source, choices
from mdfs._create import create
from mdfs._image import Image

Path = Union[str, "os.PathLike[str]"]


def _silent(done: int, total: int) -> None:
    """No progress is shown."""


def convert(source: Path, target: Path, *, select: Union[str, Mapping[str, Choice], None] = None,
            axes: Optional[str] = None, dataset: Optional[str] = None, codec: str = "zstd",
            extent: Optional[Sequence[int]] = None, levels: _levels.Count = None, reduce: Optional[str] = None,
            verify: bool = True, resume: bool = False, overwrite: bool = False, allow_warnings: bool = False,
            progress: Optional[Progress] = None) -> None:
    """Converts a file into an image of a mounted volume, or an image into OME-Zarr, OME-TIFF or HDF5.

    The target gets its name when it is complete, verified and on the disks. Memory is bounded: boxes of 32 MiB are
    copied one behind another. A chunk, tile, strip or DICOM file of the source is decoded as a whole.

    Parameters
    ----------
    source : str or os.PathLike
        OME-TIFF or TIFF, OME-Zarr or Zarr, HDF5, NIfTI, NRRD, MetaImage, a DICOM file or a folder of them; or an image.
    target : str or os.PathLike
        A name on a mounted volume. If the source is an image: a file or folder that ends in .ome.zarr, .zarr, .ome.tif,
        .ome.tiff, .h5 or .hdf5.
    select : str or mapping, optional
        Places along axes, such as "c=0,z=10:20" or {"c": 0, "z": slice(10, 20)}. An axis with one place is dropped.
    axes : str, optional
        A letter for each axis of the source, slowest first, instead of what it says of itself; "c" are channels.
    dataset : str, optional
        Which of several: the array of a Zarr group or an HDF5 file, the number of a series of TIFF, the UID of a series
        of DICOM.
    codec, extent, levels, reduce
        Of a new image, as for create().
    verify : bool
        Reads the target and compares a checksum over the samples with that of the source.
    resume : bool
        Continues an unfinished image that a killed conversion left, if it was of the same source and options.
    overwrite : bool
        Replaces an existing file, when the new one is complete.
    allow_warnings : bool
        Converts a TIFF file even though tifffile warns of it.
    progress : callable, optional
        Is called with the samples that are done and with their total; verified ones count again.

    Raises
    ------
    ValueError
        The source is damaged, of no known format, has more axes than an image, or is one of several.
    IndexError
        A selected place is not there.
    TypeError
        Images have no samples of that type.
    FileExistsError, FileNotFoundError, IsADirectoryError, PermissionError, OSError
        As for files.
    ImportError
        A package is missing: pip install 'mdfs[io]'.
    """
    from_path, to_path = os.path.abspath(os.fspath(source)), os.path.abspath(os.fspath(target))
    chosen = choices(select) if isinstance(select, str) else dict(select or {})
    os.stat(from_path)
    exports = is_image(from_path)
    written = targets.WRITERS[targets.format_of(to_path)] if exports else None
    if exports and resume:
        raise ValueError("resume is for conversions into an image")
    made: Dict[str, Any] = {"codec": codec, "extent": list(extent) if extent else None, "levels": levels,
                            "reduce": reduce}
    if exports and made != {"codec": "zstd", "extent": None, "levels": None, "reduce": None}:
        raise ValueError("codec, extent, levels and reduce are for conversions into an image")
    pending.check_name(to_path, overwrite)
    opened = _opened(from_path, dataset, allow_warnings)
    try:
        if axes is not None:
            _rename(opened, axes)
        picked = _Checked(opened, chosen)
        rounds = 2 if verify else 1
        report = progress or _silent
        if written is not None:
            with pending.PendingFile(to_path, overwrite) as file:
                try:
                    copy = written(picked, file.part, report, rounds)
                except ModuleNotFoundError as error:
                    raise ImportError(f"the package {error.name} is missing; pip install 'mdfs[io]'") from error
                if verify:
                    _verify_file(copy, file.part, report)
                file.finish()
            return
        _into_image(picked, to_path, {"dataset": dataset, "select": str(sorted(chosen.items(), key=str)), "axes": axes},
                    made, verify, resume, overwrite, report)
    finally:
        opened.close()


class _Checked(Picked):
    """Errors of the library that reads become one of this function, which names the file."""

    def read(self, place: copying.Place) -> Any:
        try:
            return super().read(place)
        except (MemoryError, ImportError):
            raise
        except Exception as error:
            where = ", ".join(f"{axis}={part.start}:{part.stop}" for axis, part in zip(self.axes, place))
            raise ValueError(f"{self.source.path}: damaged, samples at {where} cannot be read: {error}") from error

    def finish(self) -> None:
        """Checks the end of the source."""
        try:
            self.source.finish()
        except Exception as error:
            raise ValueError(f"{self.source.path}: damaged: {error}") from error


def _opened(path: str, dataset: Optional[str], allow_warnings: bool) -> Source:
    """The source; what is not understood becomes a ValueError that names the file."""
    try:
        return formats.open_source(path, dataset, allow_warnings)
    except (MemoryError, ImportError, PermissionError, FileNotFoundError):
        raise
    except (ValueError, IndexError) as error:
        if path in str(error):
            raise
        raise ValueError(f"{path}: damaged, or not as its format requires: {error}") from error
    except Exception as error:
        raise ValueError(f"{path}: damaged, or not as its format requires: {error}") from error


def _rename(source: Source, axes: str) -> None:
    """Other letters for the axes."""
    if len(axes) != len(source.shape) or len(set(axes)) != len(axes) or not axes.isascii() or not axes.islower():
        raise ValueError(f"axes {axes!r}: {len(source.shape)} different lower-case letters are required, for the "
                         f"lengths {source.shape} of {source.path}")
    letters = dict(zip(source.axes, axes))
    source.spacing = {letters[axis]: found for axis, found in source.spacing.items()}
    source.axes = axes


def _into_image(picked: _Checked, target: str, options: Dict[str, Any], made: Dict[str, Any], verify: bool,
                resume: bool, overwrite: bool, progress: Progress) -> None:
    identity = {**options, **made, "source": picked.source.path, "files": list(pending.identity_of(picked.source.path)),
                "shape": list(picked.shape), "type": picked.dtype.name}
    attributes = fitting(picked.attributes)

    def make(path: str) -> Image:
        try:
            return create(path, picked.shape, picked.dtype, picked.axes, spacing=picked.spacing, **made)
        except ValueError as error:
            raise ValueError(str(error).replace(path, target)) from error
    part = pending.PendingImage(target, identity, resume, make)
    rounds = 2 if verify else 1
    try:
        image, state = part.image, part.state
        box = state.get("box") or copying.box_of(picked.shape, picked.chunks, image.chunks, picked.dtype.itemsize)
        copy = Copy(picked, box, int(state.get("done", 0)), bytes.fromhex(state.get("chain", "")))
        if attributes:
            image.attrs = attributes
        part.keep({"box": list(copy.box), "done": copy.done, "chain": copy.chain.hex()})
        copy.run(image.__setitem__,
                 lambda done, chain: part.keep({"box": list(copy.box), "done": done, "chain": chain.hex()}),
                 progress, rounds)
        picked.finish()
        image.sync()
        if verify and not copy.verify(image.__getitem__, progress):
            raise OSError(f"{target}: the samples of the image differ from those of {picked.source.path}")
        part.finish(overwrite)
    except KeyboardInterrupt:
        part.leave()  # for a resume
        raise
    except BaseException:
        part.discard()
        raise


def _verify_file(copy: Copy, path: str, progress: Progress) -> None:
    """Reads the new file as a source, in the axes of the image."""
    there = formats.open_source(path)
    try:
        axes = copy.source.axes  # type: ignore[attr-defined]
        back = Picked(there, {})
        if sorted(back.axes) != sorted(axes):
            raise OSError(f"{path}: has the axes {back.axes}, not {axes}")
        moved = [back.axes.index(axis) for axis in axes]

        def read(place: copying.Place) -> Any:
            wanted = dict(zip(axes, place))
            return back.read(tuple(wanted[axis] for axis in back.axes)).transpose(moved)
        if not copy.verify(read, progress):
            raise OSError(f"{path}: the samples differ from those of the image")
    finally:
        there.close()


__all__ = ["convert"]
