"""Sources with the statistics of real images, made once from a seed: smooth structures, edges, photon noise."""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib

import numpy as np

VERSION = 1  # of the content; part of the names of kept files
SEED = 20240229
NPY_HEADER_BYTES = 4096
CELLS = 37  # of the coarse structure, along each axis
PHOTONS_DARK, PHOTONS_BRIGHT = 3.0, 60.0
GAIN = 1.0  # grey levels a photon


class Source:
    """An array in two files: `npy`, and `raw` with the canonical bytes alone."""

    def __init__(self, folder, name, shape):
        self.shape = shape
        stem = f"{name}-{'x'.join(map(str, shape))}-v{VERSION}"
        self.npy, self.raw = pathlib.Path(folder) / f"{stem}.npy", pathlib.Path(folder) / f"{stem}.raw"
        self.bytes = int(np.prod(shape))

    def made(self):
        return (self.npy.exists() and self.npy.stat().st_size == self.bytes + NPY_HEADER_BYTES and self.raw.exists()
                and self.raw.stat().st_size == self.bytes)


def npy_header(shape):
    """Padded to a page, so that the samples can be read with O_DIRECT."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head = b"\x93NUMPY\x02\x00" + (NPY_HEADER_BYTES - 12).to_bytes(4, "little")
    return head + text.ljust(NPY_HEADER_BYTES - 13).encode() + b"\n"


def smooth(values, count):
    """`count` samples along the first axis, interpolated between `values`."""
    at = np.linspace(0, len(values) - 1.001, count, dtype=np.float32)
    low = at.astype(np.int64)
    part = (at - low).reshape((-1,) + (1,) * (values.ndim - 1))
    return values[low] * (1 - part) + values[low + 1] * part


class Photons:
    """Turns brightness into samples: sensor counts with noise of the square root of the light."""

    def __init__(self, random):
        # A bank of noise and a random place to begin in it are as good as fresh noise, and much faster.
        self.random = random
        self.bank = random.standard_normal(1 << 24, dtype=np.float32)

    def __call__(self, brightness):
        photons = PHOTONS_DARK + (PHOTONS_BRIGHT - PHOTONS_DARK) * brightness
        begin = int(self.random.integers(0, len(self.bank) - photons.shape[-1] * photons.shape[-2]))
        noise = np.empty(photons.size, np.float32)
        for done in range(0, photons.size, len(self.bank) - begin):
            part = self.bank[begin:begin + photons.size - done]
            noise[done:done + len(part)] = part
        np.sqrt(photons, out=(root := np.empty_like(photons)))
        root *= noise.reshape(photons.shape)
        root += photons
        root *= GAIN
        return np.clip(root, 0, 255, out=root).astype(np.uint8)


def structure(random, axes):
    """Coarse brightness, 0 to 1: mostly dark, with bright regions that end in edges."""
    field = random.random((CELLS,) * axes + (3,), dtype=np.float32)
    dark = np.clip(field * 1.6 - 0.6, 0, 1) * 0.35
    return np.where(field > 0.8, dark + 0.4, dark).astype(np.float32)


def picture_bands(shape, random):
    """y,x,c: bands of rows."""
    height, width, channels = shape
    photons, coarse = Photons(random), structure(random, 2)
    rows = smooth(coarse, height)
    for begin in range(0, height, 64):
        band = rows[begin:begin + 64, :, :channels].transpose(1, 0, 2)
        wide = np.ascontiguousarray(smooth(band, width).transpose(1, 0, 2))
        # Edges: grains of a quarter of the brightness with sharp borders.
        y, x = np.mgrid[begin:begin + len(wide), 0:width].astype(np.float32)
        wide[(np.sin(x * 0.021 + y * 0.004) * np.sin(y * 0.017 - x * 0.003)) > 0.55] *= 0.25
        yield photons(wide.reshape(len(wide), -1))


def volume_bands(shape, random):
    """z,y,x: planes."""
    depth, height, width = shape
    photons, coarse = Photons(random), structure(random, 3)[..., 0]
    planes = smooth(coarse, depth)
    for plane in planes:
        yield photons(np.ascontiguousarray(smooth(smooth(plane, height).T, width).T))


def movie_bands(shape, random):
    """t,y,x,c: frames of a scene that drifts."""
    frames, height, width, channels = shape
    photons = Photons(random)
    coarse = structure(random, 2)[..., :channels]
    scene = smooth(smooth(coarse, height + frames).transpose(1, 0, 2), width + frames).transpose(1, 0, 2)
    for t in range(frames):
        yield photons(np.ascontiguousarray(scene[t:t + height, t:t + width]).reshape(height, -1))


BANDS = {"picture": picture_bands, "volume": volume_bands, "movie": movie_bands}


def make(folder, kind, shape):
    """The source of that kind and shape, made unless it is there."""
    source = Source(folder, kind, shape)
    if source.made():
        return source
    random = np.random.Generator(np.random.SFC64(SEED))
    with open(source.npy, "wb") as npy, open(source.raw, "wb") as raw:
        npy.write(npy_header(shape))
        for band in BANDS[kind](shape, random):
            npy.write(band)
            raw.write(band)
        for file in (npy, raw):
            file.flush()
            os.fsync(file.fileno())
    return source
