// Formats of pixels.
// SPDX-License-Identifier: Apache-2.0
#include "pixels.h"

#include <mdfs/ondisk.h>

#include <bit>
#include <cstring>

namespace mdfs::gst {
namespace {

using geometry::ElementType;

static_assert(std::endian::native == std::endian::little);
static_assert(static_cast<unsigned>(ElementType::kU8) == MDFS_TYPE_U8 &&
              static_cast<unsigned>(ElementType::kF64) == MDFS_TYPE_F64);

std::optional<ElementType> element_type(std::uint8_t type) {
  if (type < MDFS_TYPE_U8 || type > MDFS_TYPE_F64) return std::nullopt;
  return static_cast<ElementType>(type);
}

}  // namespace

std::string_view type_name(std::uint8_t type) {
  const auto known = element_type(type);
  return known ? geometry::name(*known) : "?";
}

std::optional<PixelFormat> choose_format(std::uint8_t type, std::uint32_t channels, bool has_display_range) {
  const auto known = element_type(type);
  if (!known || (channels != 1 && channels != 3 && channels != 4)) return std::nullopt;
  const std::uint32_t element_bytes = geometry::element_bytes(*known), stored_bytes = channels * element_bytes;
  if (type == MDFS_TYPE_U16) {
    if (channels == 1) return PixelFormat{"GRAY16_LE", 2, stored_bytes, 2, Conversion::kNone};
    return PixelFormat{"RGBA64_LE", 8, stored_bytes, 2, channels == 4 ? Conversion::kNone : Conversion::kAddAlpha};
  }
  if (type != MDFS_TYPE_U8 && !has_display_range) return std::nullopt;
  return PixelFormat{channels == 1   ? "GRAY8"
                     : channels == 3 ? "RGB"
                                     : "RGBA",
                     channels, stored_bytes, element_bytes,
                     type == MDFS_TYPE_U8 ? Conversion::kNone : Conversion::kDisplay};
}

std::optional<geometry::DisplayRange> parse_display_range(std::string_view text) {
  const auto range = geometry::parse_display(text);
  if (!range.ok()) return std::nullopt;
  return *range;
}

void add_alpha(std::span<const std::byte> from, std::span<std::byte> to) {
  constexpr std::size_t kColours = 6, kPixel = 8;
  for (std::size_t pixel = 0; pixel < to.size() / kPixel; ++pixel) {
    std::memcpy(to.data() + pixel * kPixel, from.data() + pixel * kColours, kColours);
    std::memset(to.data() + pixel * kPixel + kColours, 0xff, kPixel - kColours);
  }
}

void show_in_8_bits(std::uint8_t type, const geometry::DisplayRange& range, std::span<const std::byte> from,
                    std::span<std::byte> to) {
  if (const auto known = element_type(type)) geometry::to_8_bits(*known, range, from, to);
}

}  // namespace mdfs::gst
