// Formats of pixels.
// SPDX-License-Identifier: Apache-2.0
#include "pixels.h"

#include <mdfs/ondisk.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace mdfs::gst {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Half {
  std::uint16_t bits;
};

double value_of(Half half) {
  const int exponent = (half.bits >> 10) & 0x1f, fraction = half.bits & 0x3ff;
  double value = 0;
  if (exponent == 0x1f)
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 0x400, exponent - 25);
  return (half.bits & 0x8000) != 0 ? -value : value;
}
template <typename T>
double value_of(T sample) {
  return static_cast<double>(sample);
}

template <typename T>
void show(const DisplayRange& range, std::span<const std::byte> from, std::span<std::byte> to) {
  constexpr double kWhite = 255;
  // Halves first: the difference of two finite numbers need not be finite.
  const double half_width = range.white / 2 - range.black / 2;
  for (std::size_t i = 0; i < to.size(); ++i) {
    T sample;
    std::memcpy(&sample, from.data() + i * sizeof sample, sizeof sample);
    const double share = (value_of(sample) / 2 - range.black / 2) / half_width;
    // A NaN is neither above 0 nor below.
    to[i] = static_cast<std::byte>(share > 0 ? static_cast<int>(std::lround(std::min(share, 1.0) * kWhite)) : 0);
  }
}

struct Type {
  std::uint8_t id;
  const char* name;
  std::uint32_t bytes;
  void (*show)(const DisplayRange&, std::span<const std::byte>, std::span<std::byte>);
};
constexpr Type kTypes[] = {
    {MDFS_TYPE_U8, "u8", 1, show<std::uint8_t>},    {MDFS_TYPE_U16, "u16", 2, show<std::uint16_t>},
    {MDFS_TYPE_U32, "u32", 4, show<std::uint32_t>}, {MDFS_TYPE_U64, "u64", 8, show<std::uint64_t>},
    {MDFS_TYPE_I8, "i8", 1, show<std::int8_t>},     {MDFS_TYPE_I16, "i16", 2, show<std::int16_t>},
    {MDFS_TYPE_I32, "i32", 4, show<std::int32_t>},  {MDFS_TYPE_I64, "i64", 8, show<std::int64_t>},
    {MDFS_TYPE_F16, "f16", 2, show<Half>},          {MDFS_TYPE_F32, "f32", 4, show<float>},
    {MDFS_TYPE_F64, "f64", 8, show<double>},
};

const Type* find_type(std::uint8_t id) {
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& type) { return type.id == id; });
  return found == std::end(kTypes) ? nullptr : found;
}

bool parse_finite(std::string_view text, double& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

const char* type_name(std::uint8_t type) {
  const Type* found = find_type(type);
  return found == nullptr ? "?" : found->name;
}

std::optional<PixelFormat> choose_format(std::uint8_t type, std::uint32_t channels, bool has_display_range) {
  const Type* found = find_type(type);
  if (found == nullptr || (channels != 1 && channels != 3 && channels != 4)) return std::nullopt;
  const std::uint32_t stored_bytes = channels * found->bytes;
  if (type == MDFS_TYPE_U16) {
    if (channels == 1) return PixelFormat{"GRAY16_LE", 2, stored_bytes, 2, Conversion::kNone};
    return PixelFormat{"RGBA64_LE", 8, stored_bytes, 2, channels == 4 ? Conversion::kNone : Conversion::kAddAlpha};
  }
  if (type != MDFS_TYPE_U8 && !has_display_range) return std::nullopt;
  return PixelFormat{channels == 1   ? "GRAY8"
                     : channels == 3 ? "RGB"
                                     : "RGBA",
                     channels, stored_bytes, found->bytes,
                     type == MDFS_TYPE_U8 ? Conversion::kNone : Conversion::kDisplay};
}

std::optional<DisplayRange> parse_display_range(std::string_view text) {
  const std::size_t comma = std::min(text.find(','), text.size());
  DisplayRange range;
  if (comma < text.size() && parse_finite(text.substr(0, comma), range.black) &&
      parse_finite(text.substr(comma + 1), range.white) && range.black != range.white)
    return range;
  return std::nullopt;
}

void add_alpha(std::span<const std::byte> from, std::span<std::byte> to) {
  constexpr std::size_t kColours = 6, kPixel = 8;
  for (std::size_t pixel = 0; pixel < to.size() / kPixel; ++pixel) {
    std::memcpy(to.data() + pixel * kPixel, from.data() + pixel * kColours, kColours);
    std::memset(to.data() + pixel * kPixel + kColours, 0xff, kPixel - kColours);
  }
}

void show_in_8_bits(std::uint8_t type, const DisplayRange& range, std::span<const std::byte> from,
                    std::span<std::byte> to) {
  if (const Type* found = find_type(type); found != nullptr) found->show(range, from, to);
}

}  // namespace mdfs::gst
