"""Reads the Zarr view of an image with a client that users have, and saves what the client sees.

usage: read_zarr.py CLIENT GROUP OUTPUT.npy
Prints what else the client says of the image, as one line of JSON.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import sys

import numpy as np


def by_zarr(group):
    import zarr
    array = zarr.open_group(group, mode="r")["0"]
    return array[...], {"dimensions": list(array.metadata.dimension_names), "chunks": list(array.chunks),
                        "stored": array.nchunks_initialized}


def by_tensorstore(group):
    import tensorstore
    array = tensorstore.open({"driver": "zarr3", "kvstore": f"file://{group}/0/"}, open=True, read=True).result()
    return array.read().result(), {"dimensions": list(array.domain.labels)}


def by_dask(group):
    import dask.array
    array = dask.array.from_zarr(f"{group}/0")
    return array.compute(), {"chunks": list(array.chunksize)}


def by_ome_zarr(group):
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader
    node = next(iter(Reader(parse_url(group))()))
    return np.asarray(node.data[0]), {"axes": node.metadata["axes"],
                                      "scale": node.metadata["coordinateTransformations"][0][0]["scale"]}


CLIENTS = {"zarr": by_zarr, "tensorstore": by_tensorstore, "dask": by_dask, "ome-zarr": by_ome_zarr}

if __name__ == "__main__":
    client, path, output = sys.argv[1:]
    samples, said = CLIENTS[client](path)
    np.save(output, samples)
    print(json.dumps(said))
