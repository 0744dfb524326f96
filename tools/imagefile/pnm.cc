// The header of PGM and PPM files: two letters and three decimal numbers with white space and comments between them.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <string_view>

#include "imagefile/header.h"

namespace mdfs::imagefile {
namespace {

constexpr std::uint64_t kMaxSide = std::uint64_t{1} << 31;
constexpr std::uint64_t kMaxValue = 65535;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Skips white space and comments from `at` on; where the header ends first, text.size().
std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && (is_space(text[at]) || text[at] == '#')) {
    if (text[at] == '#') {
      at = text.find('\n', at);
      if (at == std::string_view::npos) return text.size();
    }
    ++at;
  }
  return at;
}

// One number of 1..limit; `at` moves behind it.
Result<std::uint64_t> take_number(std::string_view text, std::size_t& at, std::string_view field, std::uint64_t limit,
                                  const std::string& name) {
  const std::size_t begin = skip_space(text, at);
  std::uint64_t value = 0;
  std::size_t i = begin;
  for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])); ++i) {
    value = value * 10 + static_cast<std::uint64_t>(text[i] - '0');
    if (value > limit) break;
  }
  if (begin == text.size()) return Error{Errc::kBadData, fmt::format("{}: PNM header ends before the {}", name, field)};
  if (i == begin || value < 1 || value > limit || begin == at)
    return Error{Errc::kBadData, fmt::format("{}: PNM {} must be a number from 1 to {}", name, field, limit)};
  at = i;
  return value;
}

}  // namespace

bool is_pnm(ConstBytes start) {
  const std::string_view text = as_text(start);
  return text.size() >= 3 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' &&
         (is_space(text[2]) || text[2] == '#');
}

Result<PackedHeader> parse_pnm(ConstBytes start, const std::string& name) {
  if (!is_pnm(start)) return Error{Errc::kBadData, name + ": not a PNM file"};
  const std::string_view text = as_text(start);
  if (text[1] != '5' && text[1] != '6')
    return Error{Errc::kNotSupported,
                 fmt::format("{}: PNM kind P{}: must be P5 (binary grey) or P6 (binary colour)", name, text[1])};
  std::size_t at = 2;
  MDFS_TRY_ASSIGN(const std::uint64_t width, take_number(text, at, "width", kMaxSide, name));
  MDFS_TRY_ASSIGN(const std::uint64_t height, take_number(text, at, "height", kMaxSide, name));
  MDFS_TRY_ASSIGN(const std::uint64_t maximum, take_number(text, at, "maximum value", kMaxValue, name));
  if (at >= text.size() || !is_space(text[at]))
    return Error{Errc::kBadData, name + ": PNM header does not end with white space"};
  PackedHeader header;
  header.data_offset = at + 1;
  header.array.lengths = {height, width};
  header.array.axes = "yx";
  if (text[1] == '6') {
    header.array.lengths.push_back(3);
    header.array.axes = "yxc";
  }
  header.big_endian = maximum > 255;
  header.array.type = maximum > 255 ? geometry::ElementType::kU16 : geometry::ElementType::kU8;
  return header;
}

Result<std::string> pnm_header(const ArrayInfo& array, const std::string& name) {
  const bool colour = array.lengths.size() == 3 && array.lengths[2] == 3 && array.axes.ends_with('c');
  if (!colour && array.lengths.size() != 2)
    return Error{Errc::kNotSupported, name + ": PNM requires two axes with 1 or 3 channels"};
  if (array.type != geometry::ElementType::kU8 && array.type != geometry::ElementType::kU16)
    return Error{Errc::kNotSupported,
                 fmt::format("{}: PNM requires u8 or u16, not {}", name, geometry::name(array.type))};
  if (name.ends_with(".pgm") && colour)
    return Error{Errc::kNotSupported, name + ": PGM requires one channel; name the file .ppm"};
  if (name.ends_with(".ppm") && !colour)
    return Error{Errc::kNotSupported, name + ": PPM requires three channels; name the file .pgm"};
  if (array.lengths[0] == 0) return Error{Errc::kNotSupported, name + ": PNM cannot hold an empty image"};
  return fmt::format("P{}\n{} {}\n{}\n", colour ? 6 : 5, array.lengths[1], array.lengths[0],
                     array.type == geometry::ElementType::kU8 ? 255 : 65535);
}

}  // namespace mdfs::imagefile
