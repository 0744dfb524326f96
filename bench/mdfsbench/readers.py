"""One image in the hands of each program that reads windows: MDFS by libmdfs, HDF5 by h5py, TensorStore, GDAL. And a
plain file, row by row.

All are called from Python with the same boxes. A store is written once, then opened by as many readers as needed.
"""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import pathlib

import numpy as np

from mdfsbench.context import run, say

CHUNKS = {2: (128, 128, 3), 3: (64, 64, 64), 4: (4, 128, 128, 3)}  # by rank; those of the picture with its channels
SHARD = 16  # chunks along each axis of the picture, of a sharded store
CACHE_BYTES = 2 << 30  # of HDF5 and TensorStore; GDAL takes a twentieth of the memory
ZSTD_LEVEL = 3
BAND_ROWS = 512  # at a time, of a picture that is stored
TILE = 256  # of a TIFF


class Absent(Exception):
    """What this program cannot store."""


class Window(ctypes.Structure):
    """struct mdfs_ioc_window of mdfs/ioctl.h."""
    _fields_ = [("size", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("start", ctypes.c_uint64 * 5),
                ("length", ctypes.c_uint64 * 5), ("channel", ctypes.c_int32), ("flags", ctypes.c_uint32),
                ("bytes", ctypes.c_uint64), ("level", ctypes.c_uint32), ("reserved0", ctypes.c_uint32),
                ("reserved1", ctypes.c_uint64 * 3)]


class Mdfs:
    name = "MDFS"

    def __init__(self, path, shape, flags=os.O_RDONLY):
        self.library, self.image = library(), ctypes.c_void_p()
        self.check(self.library.mdfs_open(os.fsencode(path), flags, ctypes.byref(self.image)))
        self.rank = len(shape) - (1 if shape[-1] <= 4 else 0)

    def check(self, result):
        if result < 0:
            raise OSError(self.library.mdfs_last_error().decode())

    def window(self, box):
        window = Window(ctypes.sizeof(Window), self.rank)
        for axis, (start, stop) in enumerate(box[:self.rank]):
            window.start[axis], window.length[axis] = start, stop - start
        window.channel = -1
        return ctypes.byref(window)

    def read(self, box):
        out = np.empty([stop - start for start, stop in box], np.uint8)
        self.check(self.library.mdfs_read_window(self.image, self.window(box), out.ctypes.data, out.nbytes, None))
        return out

    def write(self, box, samples):
        """Contiguous samples. Readers see them; sync() makes them durable."""
        self.check(self.library.mdfs_write_window(self.image, self.window(box), samples.ctypes.data, samples.nbytes,
                                                  None))

    def sync(self):
        self.check(self.library.mdfs_sync(self.image))

    def close(self):
        self.library.mdfs_close(self.image)


def library(path=None, _loaded={}):
    """libmdfs of the build; its path is given once."""
    if path is not None:
        loaded = ctypes.CDLL(str(path))
        loaded.mdfs_read_window.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                            ctypes.c_void_p]
        loaded.mdfs_read_window.restype = ctypes.c_ssize_t
        loaded.mdfs_write_window.argtypes = loaded.mdfs_read_window.argtypes
        loaded.mdfs_write_window.restype = ctypes.c_ssize_t
        loaded.mdfs_sync.argtypes = [ctypes.c_void_p]
        loaded.mdfs_last_error.restype = ctypes.c_char_p
        loaded.mdfs_close.argtypes = [ctypes.c_void_p]
        _loaded["libmdfs"] = loaded
    return _loaded["libmdfs"]


class RowMajor:
    """A plain file of the canonical bytes: each row of a window by a call of its own, one after another."""
    name = "rows of a plain file"

    def __init__(self, path, shape, flags=os.O_RDONLY):
        self.file, self.shape = os.open(path, flags), shape

    def offsets(self, box):
        """Where each row of the window begins in the file."""
        (top, bottom), (left, _), _ = box
        _, width, channels = self.shape
        return [(y * width + left) * channels for y in range(top, bottom)]

    def read(self, box):
        out = np.empty([stop - start for start, stop in box], np.uint8)
        for row, offset in zip(out, self.offsets(box)):
            if os.preadv(self.file, [row], offset) != row.nbytes:
                raise OSError("the file ends within a window")
        return out

    def write(self, box, samples):
        for row, offset in zip(samples, self.offsets(box)):
            if os.pwrite(self.file, row, offset) != row.nbytes:
                raise OSError("a row was not written as a whole")

    def sync(self):
        os.fsync(self.file)

    def close(self):
        os.close(self.file)


class Hdf5:
    name, codecs = "HDF5", ("raw",)

    def __init__(self, path, shape):
        import h5py
        self.file = h5py.File(path, "r", rdcc_nbytes=CACHE_BYTES, rdcc_nslots=1_000_003)
        self.data = self.file["data"]

    @classmethod
    def store(cls, source, path, codec):
        import h5py
        array, chunks = np.load(source.npy, mmap_mode="r"), chunks_of(source)
        with h5py.File(path, "w", rdcc_nbytes=64 << 20) as file:
            data = file.create_dataset("data", shape=array.shape, dtype=array.dtype, chunks=chunks)
            for begin in range(0, len(array), chunks[0] * 4):
                data[begin:begin + chunks[0] * 4] = array[begin:begin + chunks[0] * 4]

    def read(self, box):
        return self.data[tuple(slice(*side) for side in box)]

    def close(self):
        self.file.close()


class Tensorstore:
    """Zarr, one file a chunk."""
    name, codecs = "TensorStore", ("raw", "zstd")

    def __init__(self, path, shape):
        import tensorstore
        context = tensorstore.Context({"cache_pool": {"total_bytes_limit": CACHE_BYTES}})
        self.data = tensorstore.open(self.spec(path), context=context, recheck_cached_data="open",
                                     recheck_cached_metadata="open").result()

    @classmethod
    def spec(cls, path):
        return {"driver": "zarr", "kvstore": {"driver": "file", "path": str(path)}}

    @classmethod
    def metadata(cls, source, codec):
        compressor = {"id": "zstd", "level": ZSTD_LEVEL} if codec == "zstd" else None
        return {"shape": list(source.shape), "chunks": list(chunks_of(source)), "dtype": "|u1",
                "compressor": compressor}

    @classmethod
    def store(cls, source, path, codec):
        import tensorstore
        spec = cls.spec(path) | {"metadata": cls.metadata(source, codec), "create": True}
        tensorstore.open(spec).result().write(np.load(source.npy, mmap_mode="r")).result()

    def read(self, box):
        return self.data[tuple(slice(*side) for side in box)].read().result()

    def close(self):
        self.data = None


class Sharded(Tensorstore):
    """Zarr version 3, many chunks in one file."""
    name = "TensorStore sharded"

    @classmethod
    def spec(cls, path):
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}

    @classmethod
    def metadata(cls, source, codec):
        chunks = chunks_of(source)
        if len(chunks) != 3 or source.shape[-1] > 4:
            raise Absent("only the picture is stored in shards")
        codecs = [{"name": "bytes"}] + ([{"name": "zstd", "configuration": {"level": ZSTD_LEVEL}}]
                                        if codec == "zstd" else [])
        shard = [min(chunks[0] * SHARD, source.shape[0]), min(chunks[1] * SHARD, source.shape[1]), chunks[2]]
        return {"shape": list(source.shape), "data_type": "uint8",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}},
                "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": list(chunks),
                                                                          "codecs": codecs}}]}


class Gdal:
    """A tiled TIFF of pixels, for pictures."""
    name, codecs = "GDAL", ("raw", "zstd")

    def __init__(self, path, shape):
        from osgeo import gdal
        gdal.UseExceptions()
        self.data = gdal.Open(str(path))

    @classmethod
    def store(cls, source, path, codec):
        from osgeo import gdal
        gdal.UseExceptions()
        if len(source.shape) != 3 or source.shape[-1] > 4:
            raise Absent("only the picture is stored as TIFF")
        height, width, channels = source.shape
        options = ["TILED=YES", f"BLOCKXSIZE={TILE}", f"BLOCKYSIZE={TILE}", "INTERLEAVE=PIXEL", "BIGTIFF=IF_SAFER"]
        options += ["COMPRESS=ZSTD", f"ZSTD_LEVEL={ZSTD_LEVEL}"] if codec == "zstd" else []
        made = gdal.GetDriverByName("GTiff").Create(str(path), width, height, channels, gdal.GDT_Byte, options)
        array = np.load(source.npy, mmap_mode="r")
        for begin in range(0, height, BAND_ROWS):
            rows = np.ascontiguousarray(array[begin:begin + BAND_ROWS])
            made.WriteRaster(0, begin, width, len(rows), rows.tobytes(), buf_pixel_space=channels,
                             buf_line_space=channels * width, buf_band_space=1)
        made.FlushCache()

    def read(self, box):
        (y, y_end), (x, x_end), (_, channels) = box
        read = self.data.ReadRaster(x, y, x_end - x, y_end - y, buf_pixel_space=channels,
                                    buf_line_space=channels * (x_end - x), buf_band_space=1)
        return np.frombuffer(read, np.uint8).reshape(y_end - y, x_end - x, channels)

    def close(self):
        self.data = None


def chunks_of(source):
    channels = source.shape[-1] <= 4
    return CHUNKS[4 if channels and len(source.shape) == 4 else 2 if channels else len(source.shape)]


def available():
    """The programs that this Python finds."""
    found = []
    for module, readers in (("h5py", [Hdf5]), ("tensorstore", [Tensorstore, Sharded]), ("osgeo.gdal", [Gdal])):
        try:
            __import__(module)
            found += readers
        except ImportError as error:
            say(f"LEFT OUT {readers[0].name}: {error}")
    return found


def store(context, reader, source, path, codec, axes):
    """Stores a source until the disk has it. Absent if the program does not store such images."""
    if reader is Mdfs:
        context.mdfs("image", "import", "--quiet", "--codec", codec, *axes, source.npy, path)
        return
    if codec not in reader.codecs:
        raise Absent(f"{reader.name} has no codec {codec}")
    reader.store(source, path, codec)
    run("sync", "-f", path)


def forget_pages():
    """What the kernel holds of files, so that the next reads come from the disks."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def boxes(source, lengths, count, seed=7):
    """Boxes at random; a length of 0 is the whole axis."""
    random = np.random.default_rng(seed)
    lengths = [whole if wanted == 0 else wanted for wanted, whole in zip(lengths, source.shape)]
    lengths += list(source.shape[len(lengths):])
    corners = [[int(random.integers(0, whole - side + 1)) for side, whole in zip(lengths, source.shape)]
               for _ in range(count)]
    return [[(start, start + side) for start, side in zip(corner, lengths)] for corner in corners]


def cut(array, box):
    return array[tuple(slice(*side) for side in box)]
