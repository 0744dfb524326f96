"""Streams: windows that advance along an axis at a reserved rate."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import errno
import operator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, NamedTuple, Optional, Sequence, Tuple, Type

import numpy as np

from mdfs import _library
from mdfs._library import MAX_DISKS, Window, check, library

if TYPE_CHECKING:
    from mdfs._samples import Array

MOST_STEP = 2**62
MOST_LOOKAHEAD = 256
SHOW, PAUSE, RESUME, SEEK, PACE = 0, 3, 4, 5, 6
DROP, UNCHECKED, ENDED, COARSER = 1, 2, 8, 16


class _State(ctypes.Structure):
    """struct mdfs_ioc_stream."""
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("action", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("axis", ctypes.c_uint32), ("window", Window), ("step", ctypes.c_int64), ("rate", ctypes.c_double),
                ("frame", ctypes.c_uint64), ("frames", ctypes.c_uint64), ("id", ctypes.c_uint64),
                ("lookahead", ctypes.c_uint32), ("busiest", ctypes.c_uint32), ("rate_that_fits", ctypes.c_double),
                ("load", ctypes.c_double), ("in_time", ctypes.c_uint64), ("late", ctypes.c_uint64),
                ("dropped", ctypes.c_uint64), ("failed", ctypes.c_uint64), ("latest_ns", ctypes.c_int64),
                ("inode", ctypes.c_uint64), ("uid", ctypes.c_uint32), ("pid", ctypes.c_uint32),
                ("coarser", ctypes.c_uint64), ("reserved", ctypes.c_uint64 * 5),
                ("reserved_load", ctypes.c_double * MAX_DISKS),
                ("used_load", ctypes.c_double * MAX_DISKS)]


class _Frame(ctypes.Structure):
    """struct mdfs_ioc_frame."""
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("frame", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("dropped", ctypes.c_uint64), ("deadline_ns", ctypes.c_int64),
                ("ready_ns", ctypes.c_int64), ("level", ctypes.c_uint32), ("reserved0", ctypes.c_uint32),
                ("reserved", ctypes.c_uint64 * 3)]


class Frame(NamedTuple):
    """A frame of a stream. Times are those of time.monotonic_ns()."""
    samples: "Array"
    number: int  # along the axis
    deadline_ns: int
    ready_ns: int  # when it had been read
    dropped: int  # frames before it that were left out
    level: int  # from which it was made

    @property
    def in_time(self) -> bool:
        """It had been read by its deadline."""
        return self.ready_ns <= self.deadline_ns


class RateRefused(OSError):
    """The disks have no time for a rate: `rate_that_fits` is the highest one that is accepted."""

    def __init__(self, message: str, rate_that_fits: float) -> None:
        super().__init__(errno.EBUSY, message)
        self.rate_that_fits = rate_that_fits


def _whole(name: str, value: Any, least: int, most: int) -> int:
    """The value, which the library would cut to the bits of its field."""
    number = operator.index(value)
    if not least <= number <= most:
        raise ValueError(f"{name} {number}: must be {least} to {most}")
    return number


def _step(value: Any) -> int:
    number = _whole("step", value, -MOST_STEP, MOST_STEP)
    if number == 0:
        raise ValueError("step 0: must be a number of frames other than 0")
    return number


def _checked(result: int, state: _State, rate: float) -> None:
    """`rate`: what was asked for; 0 for none."""
    if result == -errno.EBUSY and state.rate_that_fits < rate:
        raise RateRefused(library().mdfs_last_error().decode("utf-8", "replace"), state.rate_that_fits)
    check(result)


class Stream:
    """An iterator over the frames of a stream, each as soon as it has been read, which is up to `lookahead` frames
    before its time. One thread at a time uses it. The end of a `with` block, close() and the end of the process free
    what is reserved."""

    def __init__(self, image: Any, fields: Tuple[int, ...], axis: int, *,  # pylint: disable=too-many-arguments
                 rate: float, step: int, lookahead: int, flags: int, shape: Sequence[int],
                 dtype: "np.dtype[Any]") -> None:
        library()
        self._shape, self._dtype = tuple(shape), dtype
        self._stream = ctypes.c_void_p()
        state = _State(window=Window.from_buffer_copy(_library.pack_window(*fields)), axis=axis, rate=float(rate),
                       step=_step(step), lookahead=_whole("lookahead", lookahead, 0, MOST_LOOKAHEAD), flags=flags)
        _checked(library().mdfs_stream_open(image, ctypes.byref(state), ctypes.byref(self._stream)), state,
                 float(rate))

    def __iter__(self) -> Iterator[Frame]:
        return self

    def __next__(self) -> Frame:
        """The next frame. OSError: it cannot be read, and the next call returns the one behind it; or the stream is
        paused (EBUSY), or was closed from outside (EINTR)."""
        samples = np.empty(self._shape, self._dtype)
        frame = _Frame()
        count = library().mdfs_stream_next(self._open(), samples.ctypes.data, samples.nbytes, ctypes.byref(frame))
        check(count)
        if frame.flags & ENDED:
            raise StopIteration
        return Frame(samples, frame.frame, frame.deadline_ns, frame.ready_ns, frame.dropped, frame.level)

    def _open(self) -> ctypes.c_void_p:
        if not self._stream:
            raise ValueError("the stream is closed")
        return self._stream

    def _change(self, action: int, **fields: Any) -> _State:
        state = _State(action=action, **fields)
        _checked(library().mdfs_stream_change(self._open(), ctypes.byref(state)), state,
                 fields.get("rate", 0.0))
        return state

    def seek(self, number: int) -> None:
        """Continues with this frame."""
        self._change(SEEK, frame=_whole("frame", number, 0, 2**64 - 1))

    def pause(self) -> None:
        """No frames come until resume(); what is reserved stays so."""
        self._change(PAUSE)

    def resume(self) -> None:
        """Continues with the frame that is next."""
        self._change(RESUME)

    def set_pace(self, rate: float, step: Optional[int] = None) -> None:
        """Another rate, and step if one is given. RateRefused: the old ones stay."""
        self._change(PACE, rate=float(rate), step=self._change(SHOW).step if step is None else _step(step))

    @property
    def state(self) -> Dict[str, Any]:
        """Rate, step, the next frame, frames in time, late, dropped, failed and from a coarser level, and for each disk
        the share of its time that is reserved and that is used."""
        found = self._change(SHOW)
        disks = max((disk + 1 for disk in range(MAX_DISKS) if found.reserved_load[disk] > 0), default=0)
        return {"id": found.id, "rate": found.rate, "step": found.step, "frame": found.frame, "frames": found.frames,
                "lookahead": found.lookahead, "in_time": found.in_time, "late": found.late, "dropped": found.dropped,
                "failed": found.failed, "from_coarser_level": found.coarser, "latest_ns": found.latest_ns,
                "reserved_load": list(found.reserved_load[:disks]), "used_load": list(found.used_load[:disks])}

    def close(self) -> None:
        """Frees what is reserved."""
        stream, self._stream = self._stream, ctypes.c_void_p()
        if stream:
            library().mdfs_stream_close(stream)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_stream"):
            self.close()


def _names(spec: Any, letters: str, along: int) -> bool:
    """The window's text names the axis, or its index has there more than a colon."""
    if isinstance(spec, str):
        return letters[along] in {item[0] for item in spec.split(",") if item and item != "all"}
    items = list(spec) if isinstance(spec, tuple) else [spec]
    dots = [place for place, item in enumerate(items) if item is Ellipsis]
    if dots:
        items[dots[0]:dots[0] + 1] = [slice(None)] * (len(letters) - len(items) + 1)
    return along < len(items) and not (isinstance(items[along], slice) and items[along] == slice(None))


def open_stream(image: Any, of: Any, index: Any, axis: Optional[str], *,  # pylint: disable=too-many-arguments
                spec: Any, rate: float, step: int, lookahead: int, flags: int) -> Stream:
    """A stream of an image or level `of`, whose handle `image` is. The window of `index` is the first frame. An
    axis that `spec` does not name means one place: the first, or backwards the last."""
    if 0 in of.shape:
        raise ValueError("the image is empty")
    letters = of.axes[:of.ndim - (1 if of.channels > 1 else 0)]
    along = 0 if axis is None and "t" not in letters else letters.find("t" if axis is None else axis)
    if along < 0 or (axis is not None and len(axis) != 1):
        raise ValueError(f"axis {axis!r}: the image has the axes {letters!r}")
    selection = of._select(index)  # pylint: disable=protected-access
    if selection.box_count != 1 or not selection.plain:
        raise IndexError("a frame is one box")
    runs = [runs[0] for runs in selection.runs]
    if not _names(spec, letters, along):
        first = of.shape[along] - 1 if step < 0 else 0
        runs[along] = (first, first + 1)
    lengths = [stop - start for start, stop in runs]
    if of.channels > 1 and lengths[-1] not in (1, of.channels):
        raise IndexError("a frame has one channel, or all")
    shape = [length for place, length in enumerate(lengths)
             if not (place == along and length == 1) and not (place == len(letters) and length == 1)]
    return Stream(image, of._fields(runs), along, rate=rate, step=step,  # pylint: disable=protected-access
                  lookahead=lookahead, flags=flags, shape=shape, dtype=of.dtype)
