// The codec that stores an extent as one zstd frame.
// SPDX-License-Identifier: Apache-2.0
#define ZSTD_STATIC_LINKING_ONLY  // for what a context takes
#include <zstd.h>
#include <zstd_errors.h>

#include <memory>
#include <string>
#include <utility>

#include "codec/codec.h"
#include "codec/codec_table.h"
#include "mdfs/ondisk.h"

namespace mdfs::codec {
namespace {

constexpr std::uint32_t kFrameMagic = 0xFD2FB528;

struct FreeDecoder {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

struct FreeEncoder {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// zstd's tables, which grow with what is encoded.
class ZstdState final : public EncoderState {
 public:
  explicit ZstdState(ZSTD_CCtx* context) : context_(context) {}
  std::size_t bytes() const override { return ZSTD_sizeof_CCtx(context_.get()); }
  ZSTD_CCtx* context() { return context_.get(); }

 private:
  const std::unique_ptr<ZSTD_CCtx, FreeEncoder> context_;
};

std::unique_ptr<EncoderState> make_zstd_state() {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  return context == nullptr ? nullptr : std::make_unique<ZstdState>(context);
}

// The default level keeps the tables of zstd's level and searches with its fast strategy: pictures are stored 1.4 to 4
// times as fast and 0 to 3 % larger (bench/micro/codec_bench.cc).
constexpr unsigned kShortestMatch = 5;  // bytes; 4 is slower and hardly smaller

// What zstd chooses, with the strategy of the default level, and with smaller tables where they would be beyond the
// bound.
ZSTD_compressionParameters parameters_for(int level, std::size_t decoded_bytes) {
  ZSTD_compressionParameters chosen = ZSTD_getCParams(level, decoded_bytes, 0);
  if (level == info(Codec::kZstd).default_level) {
    chosen.strategy = ZSTD_fast;
    chosen.minMatch = kShortestMatch;
  }
  while (ZSTD_estimateCCtxSize_usingCParams(chosen) > kMostEncoderBytes)
    --(chosen.chainLog >= chosen.hashLog ? chosen.chainLog : chosen.hashLog);
  return chosen;
}

// Of this thread, some 100 KiB; null while there is no memory for one.
ZSTD_DCtx* decompressor() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeDecoder> context;
  if (!context) context.reset(ZSTD_createDCtx());
  return context.get();
}

Error damaged(const char* check) { return Error{Errc::kCorrupt, check}; }

Error zstd_error(std::size_t result, const char* what) {
  const bool memory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
  return Error{memory ? Errc::kNoMemory : Errc::kIo, std::string(what) + ": " + ZSTD_getErrorName(result)};
}

std::size_t zstd_bound(std::size_t decoded_bytes) { return ZSTD_compressBound(decoded_bytes); }

std::size_t zstd_encoder_bytes(int level, std::size_t decoded_bytes) {
  return ZSTD_estimateCCtxSize_usingCParams(parameters_for(level, decoded_bytes));
}

Result<std::size_t> encode_zstd(int level, ConstBytes decoded, MutableBytes out, EncoderState* state) {
  ZSTD_CCtx* context = static_cast<ZstdState*>(state)->context();
  const ZSTD_compressionParameters tables = parameters_for(level, decoded.size());
  for (const auto& [parameter, value] : {std::pair{ZSTD_c_compressionLevel, level},
                                         {ZSTD_c_hashLog, static_cast<int>(tables.hashLog)},
                                         {ZSTD_c_chainLog, static_cast<int>(tables.chainLog)},
                                         {ZSTD_c_minMatch, static_cast<int>(tables.minMatch)},
                                         {ZSTD_c_strategy, static_cast<int>(tables.strategy)},
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

// Exactly one frame, without a dictionary.
Status check_frame(ConstBytes stored) {
  if (stored.size() < sizeof kFrameMagic || load_le<std::uint32_t>(stored, 0) != kFrameMagic)
    return damaged("codec.frame");
  const std::size_t frame = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame) || frame != stored.size()) return damaged("codec.frame");
  if (ZSTD_getDictID_fromFrame(stored.data(), stored.size()) != 0) return damaged("codec.frame");
  return {};
}

Status decode_content(ConstBytes stored, MutableBytes decoded) {
  ZSTD_DCtx* context = decompressor();
  if (context == nullptr) return {Errc::kNoMemory, "zstd context"};
  const std::size_t made = ZSTD_decompressDCtx(context, decoded.data(), decoded.size(), stored.data(), stored.size());
  if (ZSTD_isError(made) || made != decoded.size()) return damaged("codec.content");
  return {};
}

Status decode_zstd(ConstBytes stored, MutableBytes decoded) {
  MDFS_TRY(check_frame(stored));
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != decoded.size()) return damaged("codec.content-size");
  return decode_content(stored, decoded);
}

Result<bool> decode_foreign_zstd(ConstBytes encoded, MutableBytes decoded) {
  MDFS_TRY(check_frame(encoded));
  ZSTD_frameHeader header;
  if (ZSTD_getFrameHeader(&header, encoded.data(), encoded.size()) != 0) return damaged("codec.frame");
  const bool has_size = header.frameContentSize != ZSTD_CONTENTSIZE_UNKNOWN;
  if (has_size && header.frameContentSize != decoded.size()) return damaged("codec.content-size");
  if (header.windowSize > kMostForeignWindow) return damaged("codec.window");
  MDFS_TRY(decode_content(encoded, decoded));
  // Other readers of the format need no larger window than for a frame of encode(). A frame that saves nothing may be
  // a plain one (plain_frame.h), of samples that encode() makes smaller.
  return has_size && header.checksumFlag == 0 && header.windowSize <= MDFS_MAX_EXTENT &&
         encoded.size() < decoded.size();
}

}  // namespace

extern const CodecFunctions kZstdFunctions;
const CodecFunctions kZstdFunctions = {zstd_bound,  zstd_encoder_bytes, make_zstd_state,
                                       encode_zstd, decode_zstd,        decode_foreign_zstd};

}  // namespace mdfs::codec
