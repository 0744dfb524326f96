// Detached headers: small files that describe the samples in another file to programs that read raw data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::views {

enum class HeaderFormat : std::uint8_t { kNrrd, kMetaImage, kEnvi, kVrt };
inline constexpr std::array kHeaderFormats = {HeaderFormat::kNrrd, HeaderFormat::kMetaImage, HeaderFormat::kEnvi,
                                              HeaderFormat::kVrt};

std::string_view suffix(HeaderFormat format);  // "nhdr", "mhd", "hdr", "vrt"
std::optional<HeaderFormat> parse_header_suffix(std::string_view suffix);

// Most bands of a VRT header, which describes each of them, and of an ENVI header, which GDAL reads.
inline constexpr std::uint64_t kMaxVrtBands = 4096, kMaxEnviBands = 65536;

// Checks that a header can describe an image whose canonical bytes are the file `data_file` beside it. Errors
// (kInvalidArgument): the format has no such type or number of bands, the image is empty, an axis or a line is too long
// for readers of the format, or the format cannot name the file. Any thread.
//   NRRD: https://teem.sourceforge.net/nrrd/format.html; all types but f16. Channels are the fastest axis.
//   MetaImage: ITK's MetaIO; all types but f16, axes below 2^31. Spacing in millimetres where every axis has a length
//   as its unit. ENVI: types but i8 and f16; planes of one channel are bands, or the channels of a single plane. Axes
//   and the bytes of a line below 2^31, up to kMaxEnviBands. VRT: GDAL's raw bands; types but f16, i64 and u64; each
//   channel of each plane is a band, up to kMaxVrtBands. Axes and the bytes of a line below 2^31.
Status check_header(const geometry::Geometry& geometry, HeaderFormat format, std::string_view data_file);
// The header. Axes fastest first, as these formats have them. Errors as check_header().
Result<std::string> detached_header(const geometry::Geometry& geometry, HeaderFormat format,
                                    std::string_view data_file);

}  // namespace mdfs::views
