// Raw and zstd.
// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#define ZSTD_STATIC_LINKING_ONLY  // for what a context takes
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace mdfs::codec {
namespace {

constexpr std::uint32_t kFrameMagic = 0xFD2FB528;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// What zstd chooses, with smaller tables where they would be beyond the bound.
ZSTD_compressionParameters parameters_for(int level, std::size_t decoded_bytes) {
  ZSTD_compressionParameters chosen = ZSTD_getCParams(level, decoded_bytes, 0);
  while (ZSTD_estimateCCtxSize_usingCParams(chosen) > kMostEncoderBytes)
    --(chosen.chainLog >= chosen.hashLog ? chosen.chainLog : chosen.hashLog);
  return chosen;
}

// Of this thread, some 100 KiB; null while there is no memory for one.
ZSTD_DCtx* decompressor() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context;
  if (!context) context.reset(ZSTD_createDCtx());
  return context.get();
}

Error damaged(const char* check) { return Error{Errc::kCorrupt, check}; }

Error zstd_error(std::size_t result, const char* what) {
  const bool memory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
  return Error{memory ? Errc::kNoMemory : Errc::kIo, std::string(what) + ": " + ZSTD_getErrorName(result)};
}

Result<std::size_t> encode_zstd(int level, ConstBytes decoded, MutableBytes out, ZSTD_CCtx* context) {
  if (level < min_level() || level > max_level())
    return {Errc::kOutOfRange, "zstd level " + std::to_string(level) + " is not in " + std::to_string(min_level()) +
                                   ".." + std::to_string(max_level())};
  if (context == nullptr) return {Errc::kNoMemory, "zstd context"};
  const ZSTD_compressionParameters tables = parameters_for(level, decoded.size());
  for (const auto& [parameter, value] : {std::pair{ZSTD_c_compressionLevel, level},
                                         {ZSTD_c_hashLog, static_cast<int>(tables.hashLog)},
                                         {ZSTD_c_chainLog, static_cast<int>(tables.chainLog)},
                                         {ZSTD_c_contentSizeFlag, 1},
                                         {ZSTD_c_checksumFlag, 0},
                                         {ZSTD_c_dictIDFlag, 0}}) {
    const std::size_t set = ZSTD_CCtx_setParameter(context, parameter, value);
    if (ZSTD_isError(set)) return zstd_error(set, "zstd parameter");
  }
  const std::size_t used = ZSTD_compress2(context, out.data(), out.size(), decoded.data(), decoded.size());
  if (ZSTD_isError(used)) return zstd_error(used, "zstd");
  return used;
}

Status decode_zstd(ConstBytes stored, MutableBytes decoded) {
  if (stored.size() < sizeof kFrameMagic || load_le<std::uint32_t>(stored, 0) != kFrameMagic)
    return damaged("codec.frame");
  const std::size_t frame = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame) || frame != stored.size()) return damaged("codec.frame");
  if (ZSTD_getDictID_fromFrame(stored.data(), stored.size()) != 0) return damaged("codec.frame");
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != decoded.size()) return damaged("codec.content-size");
  ZSTD_DCtx* context = decompressor();
  if (context == nullptr) return {Errc::kNoMemory, "zstd context"};
  const std::size_t made = ZSTD_decompressDCtx(context, decoded.data(), decoded.size(), stored.data(), stored.size());
  if (ZSTD_isError(made) || made != decoded.size()) return damaged("codec.content");
  return {};
}

}  // namespace

int min_level() { return std::max(ZSTD_minCLevel(), -128); }
int max_level() { return ZSTD_maxCLevel(); }

std::size_t compress_bound(Codec codec, std::size_t decoded_bytes) {
  return codec == Codec::kRaw ? decoded_bytes : ZSTD_compressBound(decoded_bytes);
}

std::size_t encoder_bytes(Codec codec, int level, std::size_t decoded_bytes) {
  if (codec == Codec::kRaw) return 0;
  return ZSTD_estimateCCtxSize_usingCParams(parameters_for(level, decoded_bytes));
}

Encoder::Encoder() : context_(ZSTD_createCCtx()) {}
Encoder::~Encoder() = default;
void Encoder::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
std::size_t Encoder::bytes() const { return context_ ? ZSTD_sizeof_CCtx(context_.get()) : 0; }

Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out, Encoder& encoder) {
  MDFS_CHECK(!decoded.empty() && out.size() >= compress_bound(codec, decoded.size()));
  if (codec == Codec::kZstd) return encode_zstd(level, decoded, out, encoder.context_.get());
  std::copy(decoded.begin(), decoded.end(), out.begin());
  return decoded.size();
}

Result<std::size_t> encode(Codec codec, int level, ConstBytes decoded, MutableBytes out) {
  Encoder encoder;
  return encode(codec, level, decoded, out, encoder);
}

Status decode(Codec codec, ConstBytes stored, MutableBytes decoded) {
  if (codec == Codec::kZstd) return decode_zstd(stored, decoded);
  if (stored.size() != decoded.size()) return damaged("codec.raw-size");
  std::copy(stored.begin(), stored.end(), decoded.begin());
  return {};
}

}  // namespace mdfs::codec
