// The table of codecs.
// SPDX-License-Identifier: Apache-2.0
#include "codec/codec_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "mdfs/ondisk.h"

namespace mdfs::codec {

// Each in a file of its own: raw.cc, zstd.cc.
extern const CodecFunctions kRawFunctions;
extern const CodecFunctions kZstdFunctions;

namespace {

constexpr CodecInfo kTable[] = {
    {Codec::kRaw, "raw", false, {}, {}, 0, &kRawFunctions},
    {Codec::kZstd, "zstd", true, {-100, 22}, {1, 19}, 3, &kZstdFunctions},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kTable); ++i)
    if (static_cast<std::size_t>(kTable[i].id) != i) return false;
  return std::size(kTable) == geometry::kCodecs;
}
static_assert(in_order());
static_assert(static_cast<unsigned>(Codec::kRaw) == MDFS_CODEC_RAW);
static_assert(static_cast<unsigned>(Codec::kZstd) == MDFS_CODEC_ZSTD);

// "a, b or c".
template <typename TextOf>
std::string listed(TextOf text_of) {
  std::string list;
  for (const CodecInfo& row : kTable) {
    if (&row != std::begin(kTable)) list += &row + 1 == std::end(kTable) ? " or " : ", ";
    list += text_of(row);
  }
  return list;
}

std::string choice_of(const CodecInfo& row) {
  if (!row.has_levels) return std::string(row.name);
  return fmt::format("{0}[:LEVEL] ({1} to {2}, default {3})", row.name, row.offered.lowest, row.offered.highest,
                     row.default_level);
}

const CodecInfo* find(std::string_view name) {
  const auto row =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const auto& one) { return one.name == name; });
  return row == std::end(kTable) ? nullptr : &*row;
}

}  // namespace

std::span<const CodecInfo> codec_table() { return kTable; }

const CodecInfo& info(Codec id) {
  MDFS_CHECK(static_cast<std::size_t>(id) < std::size(kTable));
  return kTable[static_cast<std::size_t>(id)];
}

Result<Choice> parse_choice(std::string_view text) {
  const std::size_t colon = text.find(':');
  const CodecInfo* row = find(text.substr(0, colon));
  if (row != nullptr && colon == text.npos) return Choice{row->id, row->default_level};
  if (row != nullptr && row->has_levels) {
    const auto level = parse_number(text.substr(colon + 1), "level");
    if (level.ok() && *level <= INT8_MAX && row->offered.contain(static_cast<int>(*level)))
      return Choice{row->id, static_cast<int>(*level)};
  }
  return Error{Errc::kUsage, fmt::format("'{}': must be {}", printable(text), choices_text())};
}

std::string choice_text(Codec codec, int level) {
  if (static_cast<std::size_t>(codec) >= std::size(kTable))
    return fmt::format("codec {}", static_cast<unsigned>(codec));
  const CodecInfo& row = info(codec);
  return row.has_levels ? fmt::format("{}:{}", row.name, level) : std::string(row.name);
}

std::string choices_text() { return listed(choice_of); }

std::string choice_list() {
  std::string list;
  for (const CodecInfo& row : kTable) {
    list += fmt::format("{}{}", list.empty() ? "" : ",", row.name);
    if (row.has_levels) list += fmt::format(",{}:LEVEL", row.name);
  }
  return list;
}

std::string names_text() {
  return listed([](const CodecInfo& row) { return row.name; });
}

Result<Codec> parse_name(std::string_view name) {
  if (const CodecInfo* row = find(name)) return row->id;
  return Error{Errc::kInvalidArgument, fmt::format("codec '{}' is unknown: must be {}", printable(name), names_text())};
}

Status check_level(Codec codec, int level) {
  const CodecInfo& row = info(codec);
  if (!row.has_levels || row.levels.contain(level)) return {};
  return {Errc::kOutOfRange,
          fmt::format("{} level {} is not in {}..{}", row.name, level, row.levels.lowest, row.levels.highest)};
}

}  // namespace mdfs::codec
