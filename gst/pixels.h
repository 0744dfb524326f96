// Which format of GStreamer shows the samples of an image, and the conversions that some of them need. Pure.
//
// Samples are little endian, as windows of libmdfs have them; so is the machine. Any thread may call any function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "geometry/display.h"

namespace mdfs::gst {

enum class Conversion {
  kNone,      // the samples as they are
  kAddAlpha,  // three samples of 16 bits, which stay as they are, and an alpha of 65535
  kDisplay,   // 8 bits through the display range of the image
};

struct PixelFormat {
  const char* name;             // of GStreamer, such as "GRAY8"
  std::uint32_t bytes;          // of a pixel that GStreamer gets
  std::uint32_t stored_bytes;   // of a pixel of the image
  std::uint32_t element_bytes;  // of a sample of the image
  Conversion conversion;
  bool operator==(const PixelFormat&) const = default;
};

// All names that choose_format() returns, in a list of GStreamer.
inline constexpr const char* kFormatNames = "{ GRAY8, GRAY16_LE, RGB, RGBA, RGBA64_LE }";

// type: MDFS_TYPE_*. Exact for 1, 3 and 4 channels of u8 and u16; the other types need a display range. Nothing: no
// format shows these samples.
std::optional<PixelFormat> choose_format(std::uint8_t type, std::uint32_t channels, bool has_display_range);
// "u8", "f32"; "?" for an unknown type.
std::string_view type_name(std::uint8_t type);

// Parses the attribute user.mdfs.display; nothing unless it is a range.
std::optional<geometry::DisplayRange> parse_display_range(std::string_view text);

// Appends an alpha of 65535 to each pixel of three samples. to.size() is 8 / 6 of from.size().
void add_alpha(std::span<const std::byte> from, std::span<std::byte> to);
// As geometry::to_8_bits(). `type` is a known one.
void show_in_8_bits(std::uint8_t type, const geometry::DisplayRange& range, std::span<const std::byte> from,
                    std::span<std::byte> to);

}  // namespace mdfs::gst
