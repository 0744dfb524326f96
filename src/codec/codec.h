// How the bytes of an extent are stored: raw, or as one zstd frame.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::codec {

using geometry::Codec;

// Levels of zstd; raw knows none and ignores it.
int min_level();
int max_level();

// Room that encode() needs at most for this many bytes.
std::size_t compress_bound(Codec codec, std::size_t decoded_bytes);

// Encodes all of `decoded` (1 byte at least) into `out`, which has room for compress_bound(); returns the bytes used.
// zstd: exactly one frame with its content size, without dictionary and checksum. Errors: kOutOfRange (level),
// kNoMemory. Any thread; each keeps its own context until it ends.
Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out);

// Decodes `stored` into exactly all of `decoded`. Total on any bytes; never writes elsewhere and allocates nothing
// that depends on them. Checks (kCorrupt): codec.raw-size, codec.frame (not exactly one frame, or it asks for a
// dictionary), codec.content-size (before anything is decoded), codec.content.
Status decode(Codec codec, ConstBytes stored, MutableBytes decoded);

}  // namespace mdfs::codec
