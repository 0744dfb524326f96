// Encodes and decodes the bytes of an extent: raw, or one zstd frame.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

struct ZSTD_CCtx_s;

namespace mdfs::codec {

using geometry::Codec;

// Levels of zstd; raw ignores the level.
int min_level();
int max_level();

// Largest output of encode() for this many bytes.
std::size_t compress_bound(Codec codec, std::size_t decoded_bytes);

// zstd's tables. They grow with the encoded bytes and are kept for the next call.
class Encoder {
 public:
  Encoder();
  Encoder(Encoder&&) = default;
  Encoder& operator=(Encoder&&) = default;
  ~Encoder();
  std::size_t bytes() const;

 private:
  friend Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out, Encoder& encoder);
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;  // null: no memory
};

// The memory of encoders is bounded: levels from 20 on use smaller tables than zstd's for extents of some MiB, and
// compress a little less.
constexpr std::size_t kMostEncoderBytes = 82u << 20;  // zstd:19 takes 81.3 MiB for 16 MiB
// Largest memory of encode() beside its arguments.
std::size_t encoder_bytes(Codec codec, int level, std::size_t decoded_bytes);

// Encodes all of `decoded` (1 byte at least) into `out`, which has room for compress_bound(); returns the bytes used.
// zstd: exactly one frame with its content size, without dictionary and checksum. Errors: kOutOfRange (level),
// kNoMemory. Any thread, with an encoder of its own.
Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out, Encoder& encoder);
// The same, with an encoder for this call only.
Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out);

// Decodes `stored` into exactly all of `decoded`. Total on any bytes; never writes elsewhere and allocates nothing
// that depends on them. Checks (kCorrupt): codec.raw-size, codec.frame (not exactly one frame, or a frame with a
// dictionary), codec.content-size (before anything is decoded), codec.content.
Status decode(Codec codec, ConstBytes stored, MutableBytes decoded);

}  // namespace mdfs::codec
