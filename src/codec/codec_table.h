// The codecs: one table of ids, names, levels and functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::codec {

using geometry::Codec;

// Working memory of one encoder, kept from call to call.
class EncoderState {
 public:
  virtual ~EncoderState() = default;
  virtual std::size_t bytes() const = 0;
};

// The functions of a codec. All of them may be called by any thread.
struct CodecFunctions {
  // Bytes that an encoded extent has at most.
  std::size_t (*compress_bound)(std::size_t decoded_bytes);
  // Bytes that encode() allocates at most, in its state.
  std::size_t (*encoder_bytes)(int level, std::size_t decoded_bytes);
  // Null pointer: the codec keeps no state. A null result: no memory.
  std::unique_ptr<EncoderState> (*make_state)();
  // As encode() and decode() of codec.h. The level is in the range of the codec. `state`: what make_state() made.
  Result<std::size_t> (*encode)(int level, ConstBytes decoded, MutableBytes out, EncoderState* state);
  Status (*decode)(ConstBytes stored, MutableBytes decoded);
  // As decode_foreign() of codec.h.
  Result<bool> (*decode_foreign)(ConstBytes encoded, MutableBytes decoded);
};

// A range of levels, both ends included.
struct Levels {
  int lowest = 0;
  int highest = 0;
  bool contain(int level) const { return level >= lowest && level <= highest; }
};

// A row of the table.
struct CodecInfo {
  Codec id;               // MDFS_CODEC_* of ondisk.h
  std::string_view name;  // in options, JSON and messages; never changes
  bool has_levels;        // else levels are ignored, and shown nowhere
  Levels levels;          // that images may have
  Levels offered;         // that options of programs take
  int default_level;
  const CodecFunctions* functions;
};

// In the order of the ids, which are 0, 1, 2, ..
std::span<const CodecInfo> codec_table();
// The id is one of the table (abort).
const CodecInfo& info(Codec id);

// A codec and its level, as an option of a program names them.
struct Choice {
  Codec codec = Codec::kZstd;
  int level = 0;
};
// "raw", "zstd", "zstd:7": the values of --codec. kUsage says which there are.
Result<Choice> parse_choice(std::string_view text);
// "raw", "zstd:7"; "codec 9" for an id that is in no row.
std::string choice_text(Codec codec, int level);
// For help texts and messages: "raw or zstd[:LEVEL] (1 to 19, default 3)".
std::string choices_text();
// For completion: "raw,zstd,zstd:LEVEL".
std::string choice_list();
// "raw or zstd".
std::string names_text();
// The codec with this name; kInvalidArgument says which there are.
Result<Codec> parse_name(std::string_view name);
// The level is one that images with this codec may have, else kOutOfRange. The id is one of the table.
Status check_level(Codec codec, int level);

}  // namespace mdfs::codec
