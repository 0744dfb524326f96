// Encoding and decoding with the functions of the table.
// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <string>

#include "base/check.h"

namespace mdfs::codec {

std::size_t compress_bound(Codec codec, std::size_t decoded_bytes) {
  return info(codec).functions->compress_bound(decoded_bytes);
}

std::size_t encoder_bytes(Codec codec, int level, std::size_t decoded_bytes) {
  return info(codec).functions->encoder_bytes(level, decoded_bytes);
}

std::size_t Encoder::bytes() const { return state_ ? state_->bytes() : 0; }

Result<EncoderState*> Encoder::state_for(Codec codec) {
  if (info(codec).functions->make_state == nullptr) return nullptr;
  if (!state_ || made_for_ != codec) {
    state_ = info(codec).functions->make_state();
    made_for_ = codec;
  }
  if (!state_) return {Errc::kNoMemory, std::string(info(codec).name) + " encoder"};
  return state_.get();
}

Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out, Encoder& encoder) {
  MDFS_CHECK(!decoded.empty() && out.size() >= compress_bound(codec, decoded.size()));
  MDFS_TRY(check_level(codec, level));
  MDFS_TRY_ASSIGN(EncoderState* const state, encoder.state_for(codec));
  return info(codec).functions->encode(level, decoded, out, state);
}

Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out) {
  Encoder encoder;
  return encode(codec, level, decoded, out, encoder);
}

Status decode(Codec codec, ConstBytes stored, MutableBytes decoded) {
  return info(codec).functions->decode(stored, decoded);
}

Result<bool> decode_foreign(Codec codec, ConstBytes encoded, MutableBytes decoded) {
  return info(codec).functions->decode_foreign(encoded, decoded);
}

}  // namespace mdfs::codec
