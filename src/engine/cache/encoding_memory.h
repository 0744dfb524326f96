// Memory for encoding: the demand of each batch, and the budgets that bound the sum.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "codec/codec.h"
#include "engine/cache/byte_budget.h"
#include "engine/cache/idle_encoders.h"
#include "engine/open_object.h"

namespace mdfs::engine {

// Of one encoder for the object's extents.
inline std::size_t encoder_bytes(const OpenObject& object) {
  if (!object.is_image()) return 0;
  return codec::encoder_bytes(object.image->codec, object.image->codec_level, object.extent_bytes);
}

// Memory for the encoded bytes of one cache block: the frame of an extent, or so many blocks of a cell.
inline std::size_t frame_bytes(const OpenObject& object, std::size_t blocks) {
  if (!object.is_image()) return blocks * object.block_size;
  if (object.is_raw()) return 0;
  const std::size_t bound = codec::compress_bound(object.image->codec, object.extent_bytes);
  return (bound + object.block_size - 1) / object.block_size * object.block_size;
}

// The number of encoders of a batch that work at once; at least one.
constexpr std::size_t encoders_at_once(std::size_t limit_bytes, std::size_t each_bytes, std::size_t extents,
                                       std::size_t threads) {
  const std::size_t fitting = each_bytes == 0 ? threads : limit_bytes / each_bytes;
  return std::max<std::size_t>(1, std::min({fitting, extents, threads}));
}

// Small demands have budgets of their own: the fsync of a small file must not wait while an extent of 16 MiB is
// compressed for seconds. A thread takes a share of frames first and then one of encoders, and waits for nothing while
// it holds both.
class EncodingBudgets {
 public:
  static constexpr std::size_t kSmallEncoder = 2u << 20;
  static constexpr std::size_t kSmallEncoders = 32u << 20;
  static constexpr std::size_t kIdleEncoders = 8u << 20;
  static constexpr std::size_t kSmallFrames = 1u << 20;  // of one batch
  static constexpr std::size_t kAllSmallFrames = 8u << 20;
  static constexpr std::size_t kLeastFrames = 34u << 20;  // two frames of the largest extents, or two batches
  static constexpr std::size_t kMostFrames = 128u << 20;

  explicit EncodingBudgets(std::size_t cache_bytes) : frames_(std::clamp(cache_bytes / 8, kLeastFrames, kMostFrames)) {}

  IdleEncoders& idle() { return idle_; }
  ByteBudget& encoders_of(std::size_t each) { return each <= kSmallEncoder ? small_encoders_ : encoders_; }
  ByteBudget& frames_of(std::size_t batch) { return batch <= kSmallFrames ? small_frames_ : frames_; }

 private:
  ByteBudget small_frames_{kAllSmallFrames};
  ByteBudget frames_;
  ByteBudget small_encoders_{kSmallEncoders};
  ByteBudget encoders_{codec::kMostEncoderBytes};
  IdleEncoders idle_{kSmallEncoder, kIdleEncoders};
};

}  // namespace mdfs::engine
