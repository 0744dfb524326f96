// Fields of the DPX header.
// SPDX-License-Identifier: Apache-2.0
#include "views/dpx.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/check.h"

namespace mdfs::views {
namespace {

// Offsets of SMPTE 268M.
constexpr std::size_t kDpxHeaderBytes = 2048, kGenericBytes = 1664, kIndustryBytes = 384;
constexpr std::size_t kImageOffset = 4, kVersion = 8, kFileSize = 16, kDittoKey = 20, kGenericSize = 24;
constexpr std::size_t kIndustrySize = 28, kCreator = 160, kEncryptionKey = 660;
constexpr std::size_t kElementCount = 770, kPixelsPerLine = 772, kLines = 776;
constexpr std::size_t kLowQuantity = 788, kHighCode = 792, kHighQuantity = 796, kDescriptor = 800, kTransfer = 801;
constexpr std::size_t kColorimetry = 802, kBitSize = 803, kElementOffset = 808;
// Unknown numbers have all bits set: of the source, the film and the television headers.
struct Unknown {
  std::size_t first, bytes;
};
constexpr Unknown kUnknown[] = {{kEncryptionKey, 4}, {kLowQuantity, 4}, {kHighQuantity, 4}, {1408, 24},
                                {1620, 24},          {1712, 20},        {1920, 52}};
constexpr std::uint8_t kRgb = 50, kUserDefined = 0;

void put_big(ByteVector& header, std::size_t at, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) header[at + i] = static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
}

void put_text(ByteVector& header, std::size_t at, std::string_view text) {
  std::transform(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at),
                 [](char c) { return static_cast<std::byte>(c); });
}

}  // namespace

ByteVector dpx_header(const Raster& raster) {
  MDFS_CHECK(raster.channels == 3 && raster.width <= kMaxDpxSide && raster.height <= kMaxDpxSide);
  ByteVector header(kDpxHeaderBytes);
  put_text(header, 0, "SDPX");
  put_big(header, kImageOffset, kDpxHeaderBytes, 4);
  put_text(header, kVersion, "V2.0");
  const std::uint64_t size = kDpxHeaderBytes + raster.row_bytes() * raster.height;
  put_big(header, kFileSize, std::min<std::uint64_t>(size, std::numeric_limits<std::uint32_t>::max()), 4);
  put_big(header, kDittoKey, 1, 4);  // not the same as the frame before
  put_big(header, kGenericSize, kGenericBytes, 4);
  put_big(header, kIndustrySize, kIndustryBytes, 4);
  put_text(header, kCreator, "MDFS");
  put_big(header, kElementCount, 1, 2);
  put_big(header, kPixelsPerLine, raster.width, 4);
  put_big(header, kLines, raster.height, 4);
  for (const Unknown& field : kUnknown)
    std::fill_n(header.begin() + static_cast<std::ptrdiff_t>(field.first), field.bytes, std::byte{0xFF});
  put_big(header, kHighCode, (std::uint64_t{1} << (8 * raster.sample_bytes)) - 1, 4);
  put_big(header, kDescriptor, kRgb, 1);
  put_big(header, kTransfer, kUserDefined, 1);
  put_big(header, kColorimetry, kUserDefined, 1);
  put_big(header, kBitSize, 8 * raster.sample_bytes, 1);
  put_big(header, kElementOffset, kDpxHeaderBytes, 4);
  return header;
}

}  // namespace mdfs::views
