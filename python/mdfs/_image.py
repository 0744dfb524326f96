"""Images as arrays."""
# SPDX-License-Identifier: Apache-2.0
import asyncio
import concurrent.futures
import contextlib
import ctypes
import errno
import operator
import os
import types
from types import TracebackType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

import numpy as np
import numpy.typing as npt

from mdfs import _attributes, _chunks, _layout, _levels, _library
from mdfs._append import append_whole
from mdfs._buffer import shared_array
from mdfs._handle import Handle
from mdfs._library import Geometry, Strides, Window, check, library, read_window, read_windows, window_fields
from mdfs._samples import Array, as_samples, fits
from mdfs._selection import MOST_BOXES, Selection, result_shape, select, simple_window
from mdfs._stream import COARSER, DROP, UNCHECKED, Stream, open_stream

Spec = Union[str, Any]  # "y50+30,x100+40", or an index

WRONG_WINDOW = (-errno.EINVAL, -errno.ERANGE, -errno.EOVERFLOW)  # a specification that is none, or outside the image
READERS = 16  # windows under way at once, of blocks() and aread()
BOX_BYTES = 16 << 20  # of an image that is read as a whole, at a time
_executor: Tuple[int, Optional[concurrent.futures.ThreadPoolExecutor]] = (0, None)


def _pool() -> concurrent.futures.ThreadPoolExecutor:
    """Threads of this process: those of the parent do not survive a fork."""
    global _executor  # pylint: disable=global-statement
    owner, pool = _executor
    if pool is None or owner != os.getpid():
        pool = concurrent.futures.ThreadPoolExecutor(READERS, "mdfs")
        _executor = (os.getpid(), pool)
    return pool


class Image:
    """An open image, with the shape, the type and the indexing of a NumPy array.

    Any number of threads may use it. The image stays the same when its path goes to another one. A process that was
    forked opens the path again when it uses the image first; pickling keeps the path. The shape is that of the time of
    opening, of the last append() and of the last refresh().

    Parameters
    ----------
    path : str or os.PathLike
        An image on a mounted volume.
    mode : {"r", "r+"}
        Read, or read and write.
    level : int
        A resolution level, which is only read. IndexError: the image has fewer levels.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], mode: str = "r", level: int = 0) -> None:
        if mode not in ("r", "r+"):
            raise ValueError(f"mode {mode!r}: must be 'r' or 'r+'")
        number = _levels.number(level)
        if number > 0 and mode != "r":
            raise ValueError("a level is only read")
        full_path = os.path.abspath(os.fspath(path))
        self._begin(full_path, mode, number, Handle(full_path, os.O_RDONLY if mode == "r" else os.O_RDWR))

    def _begin(self, path: str, mode: str, level: int, handle: Handle) -> None:
        self.path, self.mode, self._level, self._handle = path, mode, level, handle
        self._opened: Dict[int, "Image"] = {}  # levels, of the shape of the image at the last refresh()
        self.refresh()

    # ---- the library

    def _info(self) -> Geometry:
        with self._handle as image:
            return _levels.geometry(image, self._level)

    def close(self) -> None:
        """Closes the image; it cannot be used any more. Reads and writes under way in other threads end before."""
        self._handle.close()
        self._opened = {}

    def __enter__(self) -> "Image":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        return Image, (self.path, self.mode, self._level)

    def refresh(self) -> None:
        """Takes over the shape that the image has now, in whole places of the slowest axis."""
        geometry = self._geometry = self._info()
        self._rank, self._channels = geometry.rank, geometry.channels
        self._dtype, self._shape = _levels.dtype(geometry), _levels.shape(geometry)
        self._chunks = tuple(geometry.extent[:self._rank]) + self._shape[self._rank:]
        self._opened = {}

    # ---- what it is

    @property
    def shape(self) -> Tuple[int, ...]:
        """Lengths of the axes, slowest first; several channels are the last axis."""
        return self._shape

    @property
    def dtype(self) -> "np.dtype[Any]":
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of samples."""
        return int(np.prod(self._shape, dtype=object))

    @property
    def nbytes(self) -> int:
        return self.size * self._dtype.itemsize

    @property
    def axes(self) -> str:
        """A letter for each axis of the shape, such as "zyx" or "yxc"."""
        return str(self._geometry.axes.decode()) + ("c" if self._channels > 1 else "")

    @property
    def channels(self) -> int:
        return int(self._channels)

    @property
    def chunks(self) -> Tuple[int, ...]:
        """The shape of an extent."""
        return self._chunks

    @property
    def codec(self) -> str:
        """"raw", or "zstd:" and the level; "codec" and a number for one that the library does not know."""
        return _library.codec_text(self._geometry.codec, self._geometry.codec_level)

    @property
    def spacing(self) -> Dict[str, Tuple[float, str]]:
        """Distance between samples with its unit, for each axis that has one."""
        return {letter: (self._geometry.spacing[axis], self._geometry.unit[axis].value.decode())
                for axis, letter in enumerate(self._geometry.axes.decode()) if self._geometry.spacing[axis] > 0}

    @property
    def levels(self) -> Tuple[Tuple[int, ...], ...]:
        """The shapes of the image and of its stored levels: levels[n] is that of level(n)."""
        with self._handle as image:
            count = _levels.stored(image).count
            found = []
            for level in range(count + 1):
                with contextlib.suppress(IndexError):  # the image has become smaller than its levels
                    found.append(_levels.shape(_levels.geometry(image, level)))
            return tuple(found)

    @property
    def reduction(self) -> str:
        """How a sample of a level is made of those below: "mean", "nearest" or "max"."""
        with self._handle as image:
            number = _levels.stored(image).reduction
        return {number: name for name, number in _library.REDUCTIONS.items()}.get(number, "mean")

    @property
    def attrs(self) -> Mapping[str, Any]:
        """What is stored beside the samples, such as the name of a stain; assign a mapping to replace all of it."""
        with self._handle as image:
            return types.MappingProxyType(_attributes.load(_library.descriptor(image), self.path))

    @attrs.setter
    def attrs(self, attributes: Mapping[str, Any]) -> None:
        self._check_writable()
        with self._handle as image:
            _attributes.store(_library.descriptor(image), attributes)

    @property
    def generation(self) -> int:
        """Grows with each change of the samples; asked of the volume each time."""
        return int(self._info().data_generation)

    def __len__(self) -> int:
        return int(self._shape[0])

    def __repr__(self) -> str:
        lengths = "x".join(map(str, self._shape))
        level = f" level {self._level}" if self._level > 0 else ""
        return f"<mdfs.Image {self.path!r}{level}: {self.axes} {lengths} {self._dtype.name}, extents of {self._chunks}>"

    def __dask_tokenize__(self) -> Tuple[Any, ...]:
        return "mdfs.Image", self.path, self._level, self._shape, self._dtype.str, self.generation

    # ---- reading

    def __getitem__(self, index: Any) -> Any:
        simple = simple_window(index, self._shape, self._rank)
        if simple is None:
            return self._read(self._select(index), None)
        starts, lengths, shape = simple
        samples = np.empty(shape, self._dtype)
        with self._handle as image:
            read_window(image, window_fields(starts, lengths, -1, self._level), samples, samples.nbytes, None)
        return samples if shape else samples[()]

    def __array__(self, dtype: Optional[npt.DTypeLike] = None, copy: Optional[bool] = None) -> Array:
        if copy is False:
            raise ValueError("an image is copied into an array")
        return np.asarray(self._whole(), dtype=dtype)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def _whole(self) -> Array:
        """All samples, in boxes of whole extents: the order of the samples would decode extents again and again where
        a layer of them is larger than the cache. What is written meanwhile may be in some boxes only."""
        samples = np.empty(self._shape, self._dtype)
        for place in _chunks.places(self._shape, self._chunks, BOX_BYTES // self._dtype.itemsize):
            self.read(place, out=samples[place])
        return samples

    def level(self, number: int) -> "Image":
        """A resolution level as an image of its own, which is only read; level 0 is the image itself.

        Each level halves the axes of the plane of the one below. A level that is not stored is computed when it is
        read: OSError with EFBIG if that takes more than 256 MiB of samples. IndexError: the image has fewer levels."""
        image = Image.__new__(Image)
        image._begin(self.path, "r", _levels.number(number), self._handle.another())  # pylint: disable=protected-access
        return image

    def read(self, window: Spec = Ellipsis, out: Optional[Array] = None, level: Optional[int] = None) -> Any:
        """Reads a window; one of a single box is of one version of the image.

        Parameters
        ----------
        window : str or index
            A specification such as "y50+30,x100+40" or "l2,y0+512", or an index as in brackets. As in the files under
            win/, an axis with one index, such as "z3", is no axis of the result; "z3+1" keeps it.
        out : numpy.ndarray, optional
            Where the samples go: of the result's shape and type, with any strides. It is returned. One of empty()
            is filled fastest.
        level : int, optional
            The resolution level in whose samples the window is. Default: that of this image.
        """
        of, index = self._located(window, level)
        return of._read(of._select(index), out)  # pylint: disable=protected-access

    def cut(self, origin: Sequence[float], u: Sequence[float], v: Sequence[float],  # pylint: disable=too-many-arguments
            size: Tuple[int, int], near: bool = False, at: str = "") -> Array:
        """An oblique plane of an image with axes x, y and z, of one version of it: mdfs(1) defines the samples.

        Parameters
        ----------
        origin, u, v : three numbers
            Where the first sample lies, and the steps to the next column and to the next row: along x, y, z, in samples
            of this image or level. They are rounded to 12 places.
        size : (int, int)
            Columns and rows.
        near : bool
            Take the nearest sample, such as a label, instead of interpolating.
        at : str
            One index along each other axis, and a channel: "t3,c1".

        The cut is read by the path, also by a new one after a rename. OSError with ESTALE: no path leads to this image
        any more.
        """
        numbers = [np.format_float_positional(np.round(float(number), 12) + 0.0, trim="-")
                   for triple in (origin, u, v) for number in triple]
        items = ["cut", *numbers, *(str(operator.index(length)) for length in size)]
        items += ["near"] * near + [f"l{self._level}"] * (self._level > 0) + [at] * bool(at)
        spec = ",".join(items)
        with contextlib.ExitStack() as stack:
            file, path = None, self._current_path()
            with contextlib.suppress(FileNotFoundError):
                file = stack.enter_context(open(f"{path}@/win/{spec}.npy", "rb"))
            self._check_path(path)
            if file is not None:
                samples: Array = np.load(file)
                return samples
        with self._handle as image:  # says why
            library().mdfs_parse_window(image, _library.encoded(spec), ctypes.byref(Window()))
        raise ValueError(f"{spec}: no cut of this image: {library().mdfs_last_error().decode('utf-8', 'replace')}")

    def empty(self, shape: Union[int, Sequence[int]]) -> Array:
        """An array of the image's type for `out=`, in memory that the daemon shares, so that it puts samples there
        itself. Worth it for arrays of 1 MiB and more that are read into often. They are arrays as any other, but a
        process that is forked shares them with its parent. Where the daemon has no room for more, the array lies in
        memory of this process alone."""
        lengths = tuple(operator.index(length) for length in (shape if isinstance(shape, Sequence) else (shape,)))
        if any(length < 0 for length in lengths):
            raise ValueError("negative dimensions are not allowed")
        with self._handle as image:
            return shared_array(image, lengths, self._dtype)

    def read_many(self, windows: Iterable[Spec], out: Optional[Sequence[Array]] = None,
                  level: Optional[int] = None) -> List[Any]:
        """Reads many windows at once, so that all disks are busy.

        Parameters
        ----------
        windows : iterable of str or index
            As for read().
        out : sequence of numpy.ndarray, optional
            An array for each window, or one with all of them.
        level : int, optional
            As for read().
        """
        located = [self._located(window, level) for window in windows]
        chosen = [(of, of._select(index)) for of, index in located]  # pylint: disable=protected-access
        into: Sequence[Optional[Array]] = [None] * len(chosen) if out is None else list(out)
        if len(into) != len(chosen):
            raise ValueError(f"{len(into)} arrays in out for {len(chosen)} windows")
        buffers = [self._buffer(selection, target) for (_, selection), target in zip(chosen, into)]
        self._fill((*both, buffer) for both, buffer in zip(chosen, buffers))
        return [self._result(buffer, selection, target)
                for (_, selection), buffer, target in zip(chosen, buffers, into)]

    async def aread(self, window: Spec = Ellipsis, out: Optional[Array] = None, level: Optional[int] = None) -> Any:
        """read(), awaited."""
        return await asyncio.get_running_loop().run_in_executor(_pool(), lambda: self.read(window, out, level))

    def blocks(self) -> Iterator[Tuple[Tuple[slice, ...], Array]]:
        """All extents, as (place, samples), the fastest axis first. Some are read ahead."""
        counts = [-(-length // chunk) for length, chunk in zip(self._shape, self._chunks)]
        places = (tuple(slice(at * chunk, min((at + 1) * chunk, length))
                        for at, chunk, length in zip(cell, self._chunks, self._shape)) for cell in np.ndindex(*counts))
        waiting: List[Tuple[Tuple[slice, ...], "concurrent.futures.Future[Any]"]] = []
        for place in places:
            waiting.append((place, _pool().submit(self._read, self._select(place), None)))
            if len(waiting) > READERS:
                done, samples = waiting.pop(0)
                yield done, samples.result()
        for done, samples in waiting:
            yield done, samples.result()

    def plan(self, window: Spec = Ellipsis) -> Dict[str, Any]:
        """What a read of one box would ask of the disks: extents, holes, cached extents, and for each disk the bytes,
        the requests and their contiguous runs."""
        of, index = self._located(window)
        selection = of._select(index)  # pylint: disable=protected-access
        if selection.box_count != 1:
            raise IndexError("a plan is of one box")
        fields = of._fields([runs[0] for runs in selection.runs])  # pylint: disable=protected-access
        with self._handle as image:
            return _layout.plan(image, _library.pack_window(*fields))

    def layout(self) -> Array:
        """Where the image lies: an array with a row for each extent, strip, copy and parity, and the fields "index" (in
        the grid of extents), "disk", "kind", "offset" and "nbytes" (there). ValueError: of a level."""
        if self._level > 0:
            raise ValueError("the layout of an image is that of its level 0")
        with self._handle as image:
            return _layout.layout(image, self._geometry.rank)

    def stream(self, window: Spec = Ellipsis, axis: Optional[str] = None, *,  # pylint: disable=too-many-arguments
               rate: float, step: int = 1, lookahead: int = 0, drop: bool = False, coarser: bool = False,
               unchecked: bool = False) -> Stream:
        """A stream of frames along an axis at a reserved rate (mdfs(1), stream open); begins with `window`. With
        `coarser`, frames that are short of time are made from a coarser stored level. RateRefused: the disks have no
        time for the rate."""
        of, index = self._located(window)
        flags = (DROP if drop else 0) | (COARSER if coarser else 0) | (UNCHECKED if unchecked else 0)
        with self._handle as image:
            return open_stream(image, of, index, axis, spec=window, rate=rate, step=step, lookahead=lookahead,
                               flags=flags)

    def to_dask(self, chunks: Any = "auto") -> Any:
        """The image as a dask array. `chunks`: as for dask; "auto" takes whole extents up to dask's array.chunk-size.

        Tasks read windows when they run, so the array follows changes until then. dask.array.store writes into an
        image of mode "r+", also with lock=False.
        """
        try:
            import dask.array  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise ImportError("to_dask() needs dask: pip install 'mdfs[dask]'") from error
        return dask.array.from_array(self, chunks=chunks)

    # ---- writing

    def __setitem__(self, index: Any, value: Any) -> None:
        """Replaces what the index selects; NumPy's rules of shapes hold. A single box is replaced atomically.

        What steps or arrays select is replaced box by box."""
        self._check_writable()
        selection = select(index, self._shape, [1] * self.ndim)
        if selection.arrays > 1:
            raise IndexError("assignment through more than one array is not supported")
        boxes = self._writable_boxes(selection)
        given = as_samples(value, self._dtype)
        lengths = selection.lengths
        if selection.plain and given.shape == result_shape(selection):
            buffer = np.ascontiguousarray(given).reshape(lengths)
        else:
            buffer = np.empty(lengths, self._dtype)
            buffer[selection.residual] = given
        for place, box in boxes:
            part = np.ascontiguousarray(buffer[place])
            window = _library.pack_window(*self._fields(box))
            with self._handle as image:
                check(library().mdfs_write_window(image, window, part.ctypes.data, part.nbytes, None))

    def write(self, window: Spec, value: Any) -> None:
        """Replaces a window, as an assignment does."""
        of, index = self._located(window)
        of[index] = value

    def set_levels(self, levels: _levels.Count = "auto", reduce: Optional[str] = None) -> None:
        """Stores resolution levels, which an idle volume builds, and a read of them before.

        Parameters
        ----------
        levels : int, "auto" or None
            How many. "auto": up to the first level of which one extent holds a plane. None or 0 removes the levels.
        reduce : {"mean", "nearest", "max"}, optional
            How a sample is made of those below. Default: as at present, at first the mean.
        """
        self._check_writable()
        request = _levels.asked(levels, reduce)
        with self._handle as image:
            _levels.store(image, request)
        self.refresh()

    def append(self, frames: Any) -> None:
        """Adds one place, or several, at the end of the slowest axis.

        Programs that append with this package take turns. What is left of a frame of one that was killed is cut off
        before, and what fails, such as for lack of space, adds nothing.

        Parameters
        ----------
        frames : array
            Of the image's type, and of shape[1:] or (n, *shape[1:]).
        """
        self._check_writable()
        given = as_samples(frames, self._dtype)
        if given.shape[1:] != self._shape[1:] and given.shape != self._shape[1:]:
            raise ValueError(f"frames of {given.shape} do not fit an image of {self._shape}")
        frames_bytes = memoryview(np.ascontiguousarray(given).tobytes())
        with self._handle as image:  # a description of its own, because appenders lock it
            file = os.open(f"/proc/self/fd/{_library.descriptor(image)}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            append_whole(file, frames_bytes, self._frame_bytes())
        finally:
            os.close(file)
        self.refresh()

    def _frame_bytes(self) -> int:
        """Of one place on the slowest axis."""
        return int(np.prod(self._shape[1:], dtype=object)) * self._dtype.itemsize

    def sync(self) -> None:
        """Returns when all that was written is on the disks."""
        with self._handle as image:
            check(library().mdfs_sync(image))

    # ---- inside

    def _check_writable(self) -> None:
        if self._level > 0:
            raise ValueError(f"{self.path}: a level is only read")
        if self.mode == "r":
            raise ValueError(f"{self.path}: opened for reading; open it with mode 'r+'")

    def _current_path(self) -> str:
        """The path of the open file, after renames as well. That of an unlinked file leads nowhere."""
        with self._handle as image:
            return os.readlink(f"/proc/self/fd/{_library.descriptor(image)}")

    def _check_path(self, path: str) -> None:
        """OSError: the path does not lead to this image."""
        with self._handle as image, contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(_library.descriptor(image)), os.stat(path)):
                return
        raise OSError(errno.ESTALE, "the path leads to another image, or to none; open the image again", self.path)

    def _at_level(self, level: Optional[int]) -> "Image":
        """This image, or another one of its levels, which stays open for the next read."""
        if level is None or level == self._level:
            return self
        with self._handle:  # ValueError once this image is closed
            opened = self._opened
        if level not in opened:
            opened[level] = self.level(level)
        return opened[level]

    def _located(self, window: Spec, level: Optional[int] = None) -> Tuple["Image", Any]:
        """The level that a window is of, and the index there."""
        if not isinstance(window, str):
            return self._at_level(level), window
        if level is None and not any(item.startswith("l") for item in window.split(",")):
            level = self._level
        spec = window if not level else f"l{level}" if window == "all" else f"l{level},{window}"
        parsed = Window(struct_bytes=ctypes.sizeof(Window))
        with self._handle as image:
            result = library().mdfs_parse_window(image, _library.encoded(spec), ctypes.byref(parsed))
        if result in WRONG_WINDOW:
            raise ValueError(library().mdfs_last_error().decode("utf-8", "replace"))
        check(result)
        # Valid items of digits alone behind their letter have one index.
        single = {item[0] for item in window.split(",") if item[1:].isdigit()}
        index: Tuple[Any, ...] = tuple(
            int(parsed.start[axis]) if letter in single
            else slice(parsed.start[axis], parsed.start[axis] + parsed.length[axis])
            for axis, letter in enumerate(self._geometry.axes.decode()))
        if self._channels > 1 and parsed.channel >= 0:
            index += (int(parsed.channel),)
        return self._at_level(parsed.level), index

    def _select(self, index: Any) -> Selection:
        whole = self._rank if self._channels > 1 else None
        selection = select(index, self._shape, self._chunks, whole)
        if selection.box_count > MOST_BOXES:
            return select(index, self._shape, self._shape, whole)  # one box around all
        return selection

    def _writable_boxes(self, selection: Selection) -> List[Tuple[Tuple[slice, ...], Tuple[Tuple[int, int], ...]]]:
        """The boxes of which each has one channel, or all."""
        found = []
        for place, box in selection.boxes():
            if self._channels == 1 or box[-1] == (0, self._channels):
                found.append((place, box))
                continue
            at = place[-1].start
            for channel in range(*box[-1]):
                found.append((place[:-1] + (slice(at, at + 1),), box[:-1] + ((channel, channel + 1),)))
                at += 1
        if len(found) > MOST_BOXES:
            raise IndexError(f"the index selects {len(found)} separate boxes; at most {MOST_BOXES} are written at once")
        return found

    def _fields(self, box: Sequence[Tuple[int, int]]) -> Tuple[int, ...]:
        """Those of the window that is the box: of one channel, or of all."""
        one = self._channels > 1 and box[-1][1] - box[-1][0] == 1
        return window_fields([start for start, _ in box[:self._rank]],
                             [stop - start for start, stop in box[:self._rank]], box[-1][0] if one else -1, self._level)

    def _read(self, selection: Selection, out: Optional[Array]) -> Any:
        buffer = self._buffer(selection, out)
        self._fill([(self, selection, buffer)])
        return self._result(buffer, selection, out)

    def _buffer(self, selection: Selection, out: Optional[Array]) -> Array:
        """Where the boxes of a selection go: into `out` itself if they can."""
        if out is not None:
            wanted = result_shape(selection)
            if not isinstance(out, np.ndarray):
                raise TypeError(f"out: a {type(out).__name__}; must be an array of NumPy")
            if out.shape != wanted or out.dtype != self._dtype:
                raise ValueError(f"out: {out.dtype} of shape {out.shape}; must be {self._dtype} of shape {wanted}")
            if not out.flags.writeable:
                raise ValueError("out cannot be written")
            if selection.plain:
                target = out[tuple(slice(None) if kept else None for kept in selection.kept)]
                if fits(target, self._channels > 1):
                    return target
        return np.empty(selection.lengths, self._dtype)

    @staticmethod
    def _result(buffer: Array, selection: Selection, out: Optional[Array]) -> Any:
        """What the selection means, of its boxes."""
        if out is not None and buffer.base is not None:  # a view of it
            return out
        result = buffer[selection.residual]
        if out is not None:
            out[...] = result
            return out
        if isinstance(result, np.ndarray) and result.nbytes < buffer.nbytes // 2:
            return result.copy()  # so that the rest is freed
        return result

    def _fill(self, wanted: Iterable[Tuple["Image", Selection, Array]]) -> None:
        """Reads all boxes of the selections, each of a level, into their buffers."""
        reads = []
        for of, selection, buffer in wanted:
            for place, box in selection.boxes():
                target = buffer[place]
                if target.size == 0:
                    continue
                strides, reach = None, target.nbytes
                if not target.flags.c_contiguous:
                    strides = Strides(*target.strides[:self._rank])
                    reach = target.itemsize + sum((length - 1) * step
                                                  for length, step in zip(target.shape, target.strides))
                reads.append((of._fields(box), target, reach, strides))  # pylint: disable=protected-access
        if not reads:
            return
        with self._handle as image:
            if len(reads) == 1:
                read_window(image, *reads[0])
            else:
                read_windows(image, reads)


__all__ = ["Image"]
