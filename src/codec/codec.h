// Encodes and decodes the bytes of an extent with a codec of the table. Another id aborts. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "codec/codec_table.h"

namespace mdfs::codec {

// Largest output of encode() for this many bytes.
std::size_t compress_bound(Codec codec, std::size_t decoded_bytes);

// Working memory of the codec that was used last, kept for the next call. Owned by one thread at a time.
class Encoder {
 public:
  // Bytes that it holds.
  std::size_t bytes() const;

 private:
  friend Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out, Encoder& encoder);
  // Null for a codec without state.
  Result<EncoderState*> state_for(Codec codec);

  std::unique_ptr<EncoderState> state_;
  Codec made_for_ = Codec::kRaw;
};

// The memory of encoders is bounded: zstd's levels from 20 on use smaller tables than zstd's own for extents of some
// MiB, and compress a little less.
constexpr std::size_t kMostEncoderBytes = 82u << 20;  // zstd:19 takes 81.3 MiB for 16 MiB
// Largest memory of encode() beside its arguments, in bytes; at most kMostEncoderBytes.
std::size_t encoder_bytes(Codec codec, int level, std::size_t decoded_bytes);

// Encodes all of `decoded` (1 byte at least) into `out`, which has room for compress_bound(); returns the bytes used.
// zstd: exactly one frame with its content size, without dictionary and checksum; the default level uses zstd's fast
// strategy. Errors: kOutOfRange (level), kNoMemory. Any thread, with an encoder of its own.
Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out, Encoder& encoder);
// The same, with an encoder for this call only.
Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out);

// Decodes `stored` into exactly all of `decoded`. Any thread. Total on any bytes; never writes elsewhere and allocates
// nothing that depends on them. Checks (kCorrupt): codec.raw-size, codec.frame (not exactly one frame, or a frame with
// a dictionary), codec.content-size (before anything is decoded), codec.content.
Status decode(Codec codec, ConstBytes stored, MutableBytes decoded);

// Largest window of a foreign frame: what zstd's own decoder allows by default.
constexpr std::uint64_t kMostForeignWindow = std::uint64_t{1} << 27;
// Decodes bytes that another program has encoded, as decode(). A zstd frame may have a content checksum, which is
// verified, and lack its content size. True: they are smaller than the content, and may be stored as they are
// (FORMAT.md, section 9). Checks beside those of decode(): codec.window (larger than kMostForeignWindow).
Result<bool> decode_foreign(Codec codec, ConstBytes encoded, MutableBytes decoded);

}  // namespace mdfs::codec
