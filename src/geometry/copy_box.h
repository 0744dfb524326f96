// Copies boxes between arrays: the inner loop of every window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// Copies a box of `length` from one row-major array to another. A shape is that of the whole array, a start is where
// the box begins in it; all are slowest axis first, with the fastest axis in bytes. The arrays do not overlap. Aborts
// unless the box lies in both shapes, and its last byte in both buffers. A buffer may end before its array does (an
// incomplete last slab). A box with a zero length copies nothing.
void copy_box(unsigned rank, const Coord& length, ConstBytes from, const Coord& from_shape, const Coord& from_start,
              MutableBytes to, const Coord& to_shape, const Coord& to_start);
// Sets each byte of a box to `value`, as copy_box() writes it.
void fill_box(unsigned rank, const Coord& length, std::byte value, MutableBytes to, const Coord& to_shape,
              const Coord& to_start);

// Copies one channel of interleaved samples to or from a plane. samples.size() == plane.size() * channels (abort).
void take_channel(ConstBytes samples, unsigned channels, unsigned channel, unsigned element_bytes, MutableBytes plane);
void put_channel(ConstBytes plane, unsigned channels, unsigned channel, unsigned element_bytes, MutableBytes samples);

}  // namespace mdfs::geometry
