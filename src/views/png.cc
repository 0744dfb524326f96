// PNG through libspng.
// SPDX-License-Identifier: Apache-2.0
#include "views/png.h"

#include <fmt/format.h>
#include <spng.h>

#include <array>
#include <memory>

#include "base/check.h"

namespace mdfs::views {
namespace {

// Of zlib: the higher levels take several times as long for a few percent.
constexpr int kCompressionLevel = 3;

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, FreeContext>;

// What the write callback uses; the first error stays.
struct Output {
  const ByteSink& sink;
  Status status;
};

int write_some(spng_ctx*, void* user, void* bytes, std::size_t length) {
  Output& output = *static_cast<Output*>(user);
  output.status = output.sink({static_cast<const std::byte*>(bytes), length});
  return output.status.ok() ? 0 : SPNG_IO_ERROR;
}

Status to_status(int code, const Output& output) {
  if (!output.status.ok()) return output.status;
  if (code == 0) return {};
  return Error{code == SPNG_EMEM ? Errc::kNoMemory : Errc::kInvalidArgument,
               fmt::format("PNG: {}", spng_strerror(code))};
}

}  // namespace

std::uint64_t max_png_bytes(const Raster& raster) {
  // A filter byte a row; deflate's bound for any setting of it; chunk headers; signature, IHDR and IEND.
  const std::uint64_t raw = (raster.row_bytes() + 1) * raster.height;
  const std::uint64_t deflated = raw + raw / 8 + raw / 64 + 64;
  return deflated + deflated / 256 + 4096;
}

Status encode_png(const Raster& raster, const RowSource& rows, const ByteSink& sink) {
  constexpr std::array<std::uint8_t, 4> kColorTypes = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                                       SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
  MDFS_CHECK(raster.channels >= 1 && raster.channels <= kColorTypes.size());
  MDFS_CHECK(raster.sample_bytes == 1 || raster.sample_bytes == 2);
  MDFS_CHECK(raster.width >= 1 && raster.width <= kMaxPngSide && raster.height >= 1 && raster.height <= kMaxPngSide);
  const Context context(spng_ctx_new(SPNG_CTX_ENCODER));
  if (!context) return Error{Errc::kNoMemory, "PNG"};
  Output output{sink, {}};
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(raster.width);
  header.height = static_cast<std::uint32_t>(raster.height);
  header.bit_depth = static_cast<std::uint8_t>(8 * raster.sample_bytes);
  header.color_type = kColorTypes[raster.channels - 1];
  int code = spng_set_png_stream(context.get(), write_some, &output);
  if (code == 0) code = spng_set_ihdr(context.get(), &header);
  if (code == 0) code = spng_set_option(context.get(), SPNG_IMG_COMPRESSION_LEVEL, kCompressionLevel);
  if (code == 0)
    code = spng_encode_image(context.get(), nullptr, 0, SPNG_FMT_PNG, SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE);
  MDFS_TRY(to_status(code, output));
  ByteVector row(static_cast<std::size_t>(raster.row_bytes()));
  for (std::uint64_t y = 0; y < raster.height; ++y) {
    MDFS_TRY(rows(row));
    code = spng_encode_row(context.get(), row.data(), row.size());
    if (code == SPNG_EOI && y + 1 == raster.height) code = 0;  // the last row
    MDFS_TRY(to_status(code, output));
  }
  return {};
}

}  // namespace mdfs::views
