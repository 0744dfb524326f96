"""Writes an array into the Zarr view of an image with a client that users have.

usage: write_zarr.py CLIENT GROUP INPUT.npy
The whole array, then sevens into a box inside it, then zeros into its first chunk; the result replaces INPUT.npy.
"""
# SPDX-License-Identifier: Apache-2.0
import sys

import numpy as np


def inner_box(shape):
    return tuple(slice(min(1, side - 1), max(1, side - 2)) for side in shape)


def by_zarr(group, samples):
    import zarr
    array = zarr.open(f"{group}/0", mode="r+")
    array[...] = samples
    return array, array.chunks


def by_zarr_group(group, samples):
    import zarr
    array = zarr.open_group(group, mode="a")["0"]
    array[...] = samples
    return array, array.chunks


def by_zarrs(group, samples):
    import zarr
    import zarrs  # noqa: F401  its pipeline is named below
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    return by_zarr(group, samples)


def by_dask(group, samples):
    import dask.array
    import zarr
    array = zarr.open_array(f"{group}/0", mode="r+")
    chunks = tuple(side * 2 for side in array.chunks)
    with dask.config.set({"array.chunk-size": samples.nbytes + 1}):
        dask.array.to_zarr(dask.array.from_array(samples, chunks=chunks), array)
        region = tuple(slice(0, min(2 * part, side)) for part, side in zip(array.chunks, array.shape))
        part = dask.array.from_array(samples[region], chunks=array.chunks)
        dask.array.to_zarr(part, array, region=region)
    return array, array.chunks


def by_tensorstore(group, samples):
    import tensorstore
    array = tensorstore.open({"driver": "zarr3", "kvstore": f"file://{group}/0/"}, open=True, read=True,
                             write=True).result()
    array.write(samples).result()
    return array, array.chunk_layout.read_chunk.shape


CLIENTS = {"zarr": by_zarr, "zarr-group": by_zarr_group, "zarrs": by_zarrs, "dask": by_dask,
           "tensorstore": by_tensorstore}

if __name__ == "__main__":
    client, path, file = sys.argv[1:]
    expected = np.load(file)
    written, chunk = CLIENTS[client](path, expected)
    box = inner_box(expected.shape)
    first = tuple(slice(0, min(part, side)) for part, side in zip(chunk, expected.shape))
    for where, value in ((box, 7), (first, 0)):
        written[where] = np.full(expected[where].shape, value, expected.dtype)
        expected[where] = value
    np.save(file, expected)
