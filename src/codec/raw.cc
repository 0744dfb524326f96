// The codec that stores the bytes of an extent as they are.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codec/codec_table.h"

namespace mdfs::codec {
namespace {

std::size_t raw_bound(std::size_t decoded_bytes) { return decoded_bytes; }
std::size_t raw_encoder_bytes(int, std::size_t) { return 0; }

Result<std::size_t> encode_raw(int, ConstBytes decoded, MutableBytes out, EncoderState*) {
  std::copy(decoded.begin(), decoded.end(), out.begin());
  return decoded.size();
}

Status decode_raw(ConstBytes stored, MutableBytes decoded) {
  if (stored.size() != decoded.size()) return Error{Errc::kCorrupt, "codec.raw-size"};
  std::copy(stored.begin(), stored.end(), decoded.begin());
  return {};
}

Result<bool> decode_foreign_raw(ConstBytes encoded, MutableBytes decoded) {
  MDFS_TRY(decode_raw(encoded, decoded));
  return true;
}

}  // namespace

extern const CodecFunctions kRawFunctions;
const CodecFunctions kRawFunctions = {raw_bound,  raw_encoder_bytes, nullptr,
                                      encode_raw, decode_raw,        decode_foreign_raw};

}  // namespace mdfs::codec
