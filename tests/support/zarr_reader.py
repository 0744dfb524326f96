"""A small reader of Zarr v3 arrays, written from the specification alone: what a client sees of a directory.

It knows the codecs transpose, bytes and zstd, refuses all others, and reads the files that the keys name.
"""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import itertools
import json
import math
import os
import time

import numpy as np


def load_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


ZSTD = ctypes.CDLL("libzstd.so.1")
for function in ("ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress", "ZSTD_findFrameCompressedSize"):
    getattr(ZSTD, function).restype = ctypes.c_size_t
ZSTD.ZSTD_getFrameContentSize.restype = ctypes.c_uint64


def without_zstd(data, size):
    """The content, of so many bytes, of exactly one frame with its content size, without dictionary and checksum."""
    length = ctypes.c_size_t(len(data))
    assert data[:4] == b"\x28\xb5\x2f\xfd" and data[4] & 0x07 == 0, data[:8]
    assert ZSTD.ZSTD_findFrameCompressedSize(data, length) == len(data)
    assert ZSTD.ZSTD_getFrameContentSize(data, length) == size
    content = ctypes.create_string_buffer(size)
    assert ZSTD.ZSTD_decompress(content, ctypes.c_size_t(size), data, length) == size
    return content.raw


def with_zstd(data, level=3):
    """One frame with its content size, without a checksum."""
    room = ZSTD.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    frame = ctypes.create_string_buffer(room)
    size = ZSTD.ZSTD_compress(frame, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), level)
    assert size <= room
    return frame.raw[:size]


class ZarrArray:
    """The array in a directory, as its zarr.json describes it now."""

    def __init__(self, path):
        self.path = path
        self.metadata = load_json(f"{path}/zarr.json")
        assert self.metadata["zarr_format"] == 3 and self.metadata["node_type"] == "array"
        assert self.metadata["chunk_key_encoding"] == {"name": "default", "configuration": {"separator": "/"}}
        assert self.metadata["chunk_grid"]["name"] == "regular"
        self.shape = tuple(self.metadata["shape"])
        self.chunk = tuple(self.metadata["chunk_grid"]["configuration"]["chunk_shape"])
        self.names = self.metadata["dimension_names"]
        self.codecs = self.metadata["codecs"]
        self.type = np.dtype(self.metadata["data_type"]).newbyteorder("<")
        assert len(self.shape) == len(self.chunk) == len(self.names)

    def keys(self):
        """The indices of all chunks of the grid."""
        return itertools.product(*(range(-(-side // part)) for side, part in zip(self.shape, self.chunk)))

    def file_of(self, key):
        return "/".join([self.path, "c", *map(str, key)])

    def decoded(self, data):
        """The samples of one chunk."""
        order = tuple(range(len(self.chunk)))
        for codec in reversed(self.codecs):
            name, configuration = codec["name"], codec.get("configuration", {})
            if name == "zstd":
                data = without_zstd(data, math.prod(self.chunk) * self.type.itemsize)
            elif name == "bytes":
                assert self.type.itemsize == 1 or configuration == {"endian": "little"}
                data = np.frombuffer(data, self.type)
            elif name == "transpose":
                order = tuple(configuration["order"])
                assert self.codecs[0] is codec
            else:
                raise ValueError(f"codec {name}")
        stored = data.reshape([self.chunk[axis] for axis in order])  # fails unless the chunk is whole
        return stored.transpose(np.argsort(order))

    def encoded(self, chunk):
        """The bytes of a whole chunk with these samples, as a client writes it."""
        order = tuple(range(len(self.chunk)))
        data = b""
        for codec in self.codecs:
            if codec["name"] == "transpose":
                order = tuple(codec["configuration"]["order"])
            elif codec["name"] == "bytes":
                data = np.ascontiguousarray(chunk.astype(self.type).transpose(order)).tobytes()
            elif codec["name"] == "zstd":
                data = with_zstd(data)
            else:
                raise ValueError(f"codec {codec['name']}")
        return data

    def stored(self, key, seconds=30):
        """The bytes of a chunk once its file is the frame that is stored."""
        size = math.prod(self.chunk) * self.type.itemsize
        plain = 9 + 3 * -(-size // (128 << 10)) + size
        end = time.monotonic() + seconds
        while os.stat(self.file_of(key)).st_size == plain:
            assert time.monotonic() < end, key
            time.sleep(0.1)
        with open(self.file_of(key), "rb") as file:
            return file.read()

    def load(self, key):
        """One chunk, or None if it is missing. Checks that the sizes by name and of the open file are those of the
        bytes."""
        try:
            size = os.stat(self.file_of(key)).st_size
            with open(self.file_of(key), "rb") as file:
                assert os.fstat(file.fileno()).st_size == size, key
                data = file.read()
        except FileNotFoundError:
            return None
        assert len(data) == size, (key, len(data), size)
        return self.decoded(data)

    def read(self):
        """The whole array."""
        whole = np.full(self.shape, self.metadata["fill_value"], self.type)
        for key in self.keys():
            chunk = self.load(key)
            if chunk is None:
                continue
            where = tuple(slice(i * part, (i + 1) * part) for i, part in zip(key, self.chunk))
            part = whole[where]
            part[...] = chunk[tuple(slice(0, length) for length in part.shape)]
            outside = chunk.copy()
            outside[tuple(slice(0, length) for length in part.shape)] = 0
            assert not outside.any(), key  # padding is the fill value
        return whole

    def listed(self):
        """The keys that the directories list."""
        found = []
        for folder, _, files in os.walk(f"{self.path}/c"):
            found += [tuple(map(int, os.path.relpath(f"{folder}/{name}", f"{self.path}/c").split("/")))
                      for name in files]
        return sorted(found)


def in_array_order(samples, axes, channels):
    """Samples of an image, channels last, in the order of the axes of its array; and the names of those."""
    if channels == 1:
        return samples, list(axes)
    at = next((i for i, axis in enumerate(axes) if axis in "xyz"), len(axes))
    return np.moveaxis(samples, -1, at), [*axes[:at], "c", *axes[at:]]
