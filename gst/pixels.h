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
const char* type_name(std::uint8_t type);

// The samples that are shown as black and as white. White may be the smaller one.
struct DisplayRange {
  double black = 0;
  double white = 0;
};
// Parses the attribute user.mdfs.display, "BLACK,WHITE": two finite numbers that differ, else nothing.
std::optional<DisplayRange> parse_display_range(std::string_view text);

// Appends an alpha of 65535 to each pixel of three samples. to.size() is 8 / 6 of from.size().
void add_alpha(std::span<const std::byte> from, std::span<std::byte> to);
// One byte for each sample: 0 is black, 255 is white, rounded to the nearest, as the PNG windows of MDFS. A NaN is
// black. `from` holds to.size() samples of the type, which is a known one.
void show_in_8_bits(std::uint8_t type, const DisplayRange& range, std::span<const std::byte> from,
                    std::span<std::byte> to);

}  // namespace mdfs::gst
