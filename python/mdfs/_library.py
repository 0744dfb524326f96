"""libmdfs through its C interface (mdfs/mdfs.h). ctypes releases the interpreter's lock in each call."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import functools
import os
import struct
from typing import TYPE_CHECKING, Any, Sequence, Tuple

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_RANK, MAX_DISKS, MAX_LEVELS = 5, 64, 62
# Values of MDFS_TYPE_* in mdfs/ondisk.h.
TYPES = {"uint8": 1, "uint16": 2, "uint32": 3, "uint64": 4, "int8": 5, "int16": 6, "int32": 7, "int64": 8,
         "float16": 9, "float32": 10, "float64": 11}
REDUCTIONS = {"mean": 1, "nearest": 2, "max": 3}
LEVELS_SET, LEVELS_AUTO = 1, 0xffffffff


class Geometry(ctypes.Structure):
    """struct mdfs_ioc_geometry."""
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("rank", ctypes.c_uint8), ("type", ctypes.c_uint8),
                ("channels", ctypes.c_uint16), ("codec", ctypes.c_uint8), ("codec_level", ctypes.c_int8),
                ("policy", ctypes.c_uint8), ("reserved0", ctypes.c_uint8 * 5), ("shape", ctypes.c_uint64 * MAX_RANK),
                ("extent", ctypes.c_uint32 * MAX_RANK), ("placed_disks", ctypes.c_uint32),
                ("axes", ctypes.c_char * 8), ("spacing", ctypes.c_double * MAX_RANK),
                ("unit", (ctypes.c_char * 8) * MAX_RANK), ("row_offset", ctypes.c_int32),
                ("plane_offset", ctypes.c_int32), ("size_bytes", ctypes.c_uint64), ("stored_bytes", ctypes.c_uint64),
                ("data_generation", ctypes.c_uint64), ("placement_base", ctypes.c_uint64),
                ("reserved1", ctypes.c_uint64 * 8)]


class Window(ctypes.Structure):
    """struct mdfs_ioc_window."""
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("start", ctypes.c_uint64 * MAX_RANK),
                ("length", ctypes.c_uint64 * MAX_RANK), ("channel", ctypes.c_int32), ("flags", ctypes.c_uint32),
                ("bytes", ctypes.c_uint64), ("level", ctypes.c_uint32), ("reserved0", ctypes.c_uint32),
                ("reserved1", ctypes.c_uint64 * 3)]


class StoredLevel(ctypes.Structure):
    """How much of a level is stored."""
    _fields_ = [("extents", ctypes.c_uint64), ("built", ctypes.c_uint64), ("stored_bytes", ctypes.c_uint64),
                ("inode", ctypes.c_uint64)]


class Levels(ctypes.Structure):
    """struct mdfs_ioc_levels."""
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("action", ctypes.c_uint32), ("count", ctypes.c_uint32),
                ("reduction", ctypes.c_uint32), ("reserved", ctypes.c_uint64 * 4),
                ("levels", StoredLevel * MAX_LEVELS)]


class DiskPlan(ctypes.Structure):
    """The requests to one disk."""
    _fields_ = [("bytes", ctypes.c_uint64), ("requests", ctypes.c_uint64), ("runs", ctypes.c_uint64)]


class Plan(ctypes.Structure):
    """struct mdfs_ioc_plan."""
    _fields_ = [("window", Window), ("extents", ctypes.c_uint64), ("holes", ctypes.c_uint64),
                ("cached", ctypes.c_uint64), ("disk_count", ctypes.c_uint32), ("reserved0", ctypes.c_uint32),
                ("largest_request_bytes", ctypes.c_uint64), ("disks", DiskPlan * MAX_DISKS)]


Strides = ctypes.c_int64 * MAX_RANK
_WINDOW = f"=II{MAX_RANK}Q{MAX_RANK}QiIQII3Q"  # struct mdfs_ioc_window
pack_window = struct.Struct(_WINDOW).pack  # of window_fields(), for calls that only read it
_pack_read = struct.Struct("@" + _WINDOW[1:] + "PNPn").pack  # struct mdfs_window_read


def window_fields(starts: Sequence[int], lengths: Sequence[int], channel: int, level: int) -> Tuple[int, ...]:
    """Those of a struct mdfs_ioc_window. `channel`: -1 for all."""
    beyond = (0,) * (MAX_RANK - len(starts))
    return (ctypes.sizeof(Window), len(starts), *starts, *beyond, *lengths, *beyond, channel, 0, 0, level, 0, 0, 0, 0)


def read_window(image: Any, fields: Tuple[int, ...], target: "npt.NDArray[Any]", reach: int, strides: Any) -> None:
    """mdfs_read_window() into an array of which `reach` bytes may be touched."""
    check(library().mdfs_read_window(image, pack_window(*fields), target.ctypes.data, reach, strides))


def read_windows(image: Any, reads: Sequence[Tuple[Tuple[int, ...], "npt.NDArray[Any]", int, Any]]) -> None:
    """mdfs_read_windows(): for each the arguments of read_window()."""
    packed = b"".join(
        _pack_read(*fields, target.ctypes.data, reach, 0 if strides is None else ctypes.addressof(strides), 0)
        for fields, target, reach, strides in reads)
    check(library().mdfs_read_windows(image, ctypes.create_string_buffer(packed, len(packed)), len(reads)))


@functools.lru_cache(maxsize=None)
def library() -> Any:
    """libmdfs, loaded at the first call."""
    name = os.environ.get("MDFS_LIBRARY", "libmdfs.so.0")
    try:
        lib = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"libmdfs cannot be loaded: {error}; install it, or name it in MDFS_LIBRARY") from error
    lib.mdfs_version.restype = ctypes.c_char_p
    lib.mdfs_last_error.restype = ctypes.c_char_p
    lib.mdfs_codec_text.argtypes, lib.mdfs_codec_text.restype = [ctypes.c_uint8, ctypes.c_int8], ctypes.c_char_p
    lib.mdfs_parse_codec.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint8), ctypes.POINTER(ctypes.c_int8)]
    image, window = ctypes.c_void_p, ctypes.c_void_p  # a struct mdfs_ioc_window, by reference or packed
    lib.mdfs_open.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(image)]
    lib.mdfs_close.argtypes = lib.mdfs_fd.argtypes = [image]
    lib.mdfs_create.argtypes = [ctypes.c_char_p, ctypes.POINTER(Geometry), ctypes.c_uint]
    lib.mdfs_info.argtypes = [image, ctypes.POINTER(Geometry)]
    lib.mdfs_level_info.argtypes = [image, ctypes.c_uint32, ctypes.POINTER(Geometry)]
    lib.mdfs_levels.argtypes = [image, ctypes.POINTER(Levels)]
    lib.mdfs_parse_window.argtypes = [image, ctypes.c_char_p, ctypes.POINTER(Window)]
    for call in (lib.mdfs_read_window, lib.mdfs_write_window):
        call.argtypes = [image, window, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int64)]
        call.restype = ctypes.c_ssize_t
    lib.mdfs_read_windows.argtypes = [image, ctypes.c_void_p, ctypes.c_size_t]
    lib.mdfs_plan.argtypes = [image, window, ctypes.POINTER(Plan)]
    lib.mdfs_sync.argtypes = [image]
    stream, any_struct = ctypes.c_void_p, ctypes.c_void_p
    lib.mdfs_stream_open.argtypes = [image, any_struct, ctypes.POINTER(stream)]
    lib.mdfs_stream_next.argtypes = [stream, ctypes.c_void_p, ctypes.c_size_t, any_struct]
    lib.mdfs_stream_next.restype = ctypes.c_ssize_t
    lib.mdfs_stream_change.argtypes, lib.mdfs_stream_close.argtypes = [stream, any_struct], [stream]
    lib.mdfs_buffer_new.argtypes = [image, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
    lib.mdfs_buffer_data.argtypes = lib.mdfs_buffer_free.argtypes = [ctypes.c_void_p]
    lib.mdfs_buffer_data.restype = ctypes.c_void_p
    return lib


def library_version() -> str:
    """The version of libmdfs, such as "0.1.0"."""
    return str(library().mdfs_version().decode())


def codec_text(codec: int, level: int) -> str:
    """"raw", "zstd:7", or "codec 9" for one that libmdfs does not know."""
    return str(library().mdfs_codec_text(codec, level).decode())


def parse_codec(text: str) -> Tuple[int, int]:
    """The codec and the level that a text names. ValueError if it names none."""
    codec, level = ctypes.c_uint8(), ctypes.c_int8()
    if library().mdfs_parse_codec(encoded(text), ctypes.byref(codec), ctypes.byref(level)) < 0:
        raise ValueError(library().mdfs_last_error().decode("utf-8", "replace"))
    return codec.value, level.value


def encoded(text: Any) -> bytes:
    """A path or a window for libmdfs, where a null byte would end it. ValueError if it has one."""
    name = os.fsencode(text)
    if b"\0" in name:
        raise ValueError("embedded null byte")
    return name


def descriptor(image: Any) -> int:
    """Of the open image, which owns it."""
    return check(library().mdfs_fd(image))


def check(result: int) -> int:
    """The result of a call; OSError with the library's message if it is negative."""
    if result < 0:
        raise OSError(-result, library().mdfs_last_error().decode("utf-8", "replace"))
    return result
