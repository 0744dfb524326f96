// SPDX-License-Identifier: Apache-2.0
#include "imagefile/geo_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "views/metadata_blocks.h"

namespace mdfs::imagefile {
namespace {

constexpr std::string_view kFieldsMagic{"II\x2a\0\x08\0\0\0", 8};  // the directory follows

void put_number(ByteVector& into, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) into.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// A directory at `at`, in classic or wide form, and behind it the values that do not fit it. `entries` come as they are
// before the fields, sorted with them.
ByteVector directory_with(std::uint64_t at, bool wide, const std::vector<std::pair<std::uint16_t, ByteVector>>& entries,
                          const std::vector<TiffValues>& fields, std::uint64_t next) {
  const auto [before, each, width] = tiff_form(wide);
  const std::uint64_t behind = at + before + (entries.size() + fields.size()) * each + width;
  std::vector<std::pair<std::uint16_t, ByteVector>> all = entries;
  ByteVector values;
  for (const TiffValues& field : fields) {
    ByteVector entry;
    put_number(entry, field.tag, 2);
    put_number(entry, field.type, 2);
    put_number(entry, field.count, width);
    if (field.bytes.size() <= width) {
      entry.insert(entry.end(), field.bytes.begin(), field.bytes.end());
      entry.resize(each);
    } else {
      if (values.size() % 2 == 1) values.push_back(std::byte{0});
      put_number(entry, behind + values.size(), width);
      values.insert(values.end(), field.bytes.begin(), field.bytes.end());
    }
    all.emplace_back(field.tag, std::move(entry));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  ByteVector result;
  put_number(result, all.size(), before);
  for (const auto& [tag, entry] : all) result.insert(result.end(), entry.begin(), entry.end());
  put_number(result, next, width);
  result.insert(result.end(), values.begin(), values.end());
  return result;
}

}  // namespace

Result<std::string> read_geo_fields(ByteSource& bytes, const TiffFile& file, std::uint64_t page) {
  MDFS_TRY_ASSIGN(const std::vector<TiffValues> fields, read_tiff_values(bytes, file, page, views::kGeoTags));
  if (fields.empty()) return std::string();
  const ByteVector made = directory_with(kFieldsMagic.size(), false, {}, fields, 0);
  return std::string(kFieldsMagic) + std::string(as_text(made));
}

Status add_geo_fields(tools::File& file, const std::string& text) {
  if (!text.starts_with(kFieldsMagic)) return {};
  MemoryBytes block(as_bytes(text));
  TiffFile made;
  made.directories = {kFieldsMagic.size()};
  MDFS_TRY_ASSIGN(const std::vector<TiffValues> fields, read_tiff_values(block, made, 0, views::kGeoTags));
  if (fields.empty()) return {};

  MDFS_TRY_ASSIGN(const std::uint64_t size, file.size_bytes());
  FileBytes bytes(file, size);
  MDFS_TRY_ASSIGN(const TiffFile tiff, parse_tiff(bytes, file.name()));
  if (tiff.big_endian) return {Errc::kNotSupported, file.name() + ": big-endian TIFF"};
  const auto [before, each, width] = tiff_form(tiff.wide);
  ByteVector old(before);
  const std::uint64_t first = tiff.directories.front();
  MDFS_TRY(bytes.read_at(first, old));
  const std::uint64_t count = to_integer(old, false);
  std::vector<std::pair<std::uint16_t, ByteVector>> entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    ByteVector entry(each);
    MDFS_TRY(bytes.read_at(first + before + i * each, entry));
    const auto tag = static_cast<std::uint16_t>(to_integer(ConstBytes(entry).first(2), false));
    if (std::find(views::kGeoTags.begin(), views::kGeoTags.end(), tag) == views::kGeoTags.end())
      entries.emplace_back(tag, std::move(entry));
  }
  ByteVector next(width);
  MDFS_TRY(bytes.read_at(first + before + count * each, next));
  const std::uint64_t at = size + size % 2;  // directories begin at even bytes
  const ByteVector added = directory_with(at, tiff.wide, entries, fields, to_integer(next, false));
  if (!tiff.wide && at + added.size() > UINT32_MAX)
    return {Errc::kTooBig, file.name() + ": no room for the GeoTIFF keys below 4 GiB"};
  MDFS_TRY(file.write_at(at, added));
  ByteVector place;
  put_number(place, at, width);
  return file.write_at(tiff.wide ? 8 : 4, place);
}

}  // namespace mdfs::imagefile
