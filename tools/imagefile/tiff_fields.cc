// SPDX-License-Identifier: Apache-2.0
#include "imagefile/tiff_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "views/metadata_blocks.h"

namespace mdfs::imagefile {
namespace {

constexpr std::array<std::uint16_t, 2> kExifPointers = {views::kExifDirectory, views::kGpsDirectory};
// Make, Model, Orientation, Software, DateTime, Artist, HostComputer, Copyright.
constexpr std::array<std::uint16_t, 8> kCameraTags = {271, 272, 274, 305, 306, 315, 316, 33432};
constexpr std::uint64_t kMostExifBytes = 16u << 20;
constexpr std::uint16_t kLongType = 4, kLong8Type = 16;

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

TiffValues number_field(std::uint16_t tag, std::uint64_t value, bool wide) {
  TiffValues field{tag, wide ? kLong8Type : kLongType, 1, {}};
  put_number(field.bytes, value, tiff_form(wide).offset);
  return field;
}

std::uint64_t even(std::uint64_t at) { return at + at % 2; }

// A directory to which a field leads.
struct Directory {
  std::uint16_t tag = 0;  // of that field
  std::vector<TiffValues> fields;
};

// Those of EXIF and GPS with all of their fields; nothing if these are longer than files have them. A directory within
// one of them is left out: its place would be another one.
Result<std::vector<Directory>> exif_directories(ByteSource& bytes, const TiffFile& file, std::uint64_t page) {
  MDFS_TRY_ASSIGN(const std::vector<TiffValues> pointers, read_tiff_values(bytes, file, page, kExifPointers));
  std::vector<Directory> found;
  std::uint64_t total = 0;
  for (const TiffValues& pointer : pointers) {
    if (pointer.count != 1) continue;
    TiffFile inner = file;
    inner.directories = {to_integer(pointer.bytes, false)};
    MDFS_TRY_ASSIGN(std::vector<TiffValues> fields, read_all_tiff_values(bytes, inner, 0, kMostExifBytes));
    std::erase_if(fields, [](const TiffValues& field) { return field.tag == views::kInteroperabilityDirectory; });
    for (const TiffValues& field : fields) total += field.bytes.size();
    if (total > kMostExifBytes) return std::vector<Directory>();
    if (!fields.empty()) found.push_back({pointer.tag, std::move(fields)});
  }
  return found;
}

}  // namespace

Result<std::string> read_geo_fields(ByteSource& bytes, const TiffFile& file, std::uint64_t page) {
  MDFS_TRY_ASSIGN(const std::vector<TiffValues> fields, read_tiff_values(bytes, file, page, views::kGeoTags));
  if (fields.empty()) return std::string();
  const ByteVector made = directory_with(kFieldsMagic.size(), false, {}, fields, 0);
  return std::string(kFieldsMagic) + std::string(as_text(made));
}

Result<std::string> read_exif_fields(ByteSource& bytes, const TiffFile& file, std::uint64_t page) {
  MDFS_TRY_ASSIGN(const std::vector<Directory> directories, exif_directories(bytes, file, page));
  if (directories.empty()) return std::string();
  MDFS_TRY_ASSIGN(std::vector<TiffValues> fields, read_tiff_values(bytes, file, page, kCameraTags));
  for (const Directory& directory : directories) fields.push_back(number_field(directory.tag, 0, false));
  // No length depends on where the directories lie.
  std::uint64_t at = even(kFieldsMagic.size() + directory_with(kFieldsMagic.size(), false, {}, fields, 0).size());
  for (std::size_t i = 0; i < directories.size(); ++i) {
    fields[fields.size() - directories.size() + i] = number_field(directories[i].tag, at, false);
    at = even(at + directory_with(at, false, {}, directories[i].fields, 0).size());
  }
  std::string block(kFieldsMagic);
  block += as_text(directory_with(block.size(), false, {}, fields, 0));
  for (const Directory& directory : directories) {
    block.resize(even(block.size()));
    block += as_text(directory_with(block.size(), false, {}, directory.fields, 0));
  }
  return block;
}

namespace {

// The entries of the first directory but those with these tags, and where the next directory lies.
struct OldDirectory {
  std::vector<std::pair<std::uint16_t, ByteVector>> entries;
  std::uint64_t next = 0;
};
Result<OldDirectory> read_old(ByteSource& bytes, const TiffFile& tiff, const std::vector<TiffValues>& without) {
  const auto [before, each, width] = tiff_form(tiff.wide);
  const std::uint64_t first = tiff.directories.front();
  OldDirectory old;
  ByteVector number(before);
  MDFS_TRY(bytes.read_at(first, number));
  const std::uint64_t count = to_integer(number, false);
  for (std::uint64_t i = 0; i < count; ++i) {
    ByteVector entry(each);
    MDFS_TRY(bytes.read_at(first + before + i * each, entry));
    const auto tag = static_cast<std::uint16_t>(to_integer(ConstBytes(entry).first(2), false));
    if (std::none_of(without.begin(), without.end(), [&](const TiffValues& field) { return field.tag == tag; }))
      old.entries.emplace_back(tag, std::move(entry));
  }
  ByteVector next(width);
  MDFS_TRY(bytes.read_at(first + before + count * each, next));
  old.next = to_integer(next, false);
  return old;
}

Result<std::vector<TiffValues>> geo_values(const std::string& text) {
  if (!text.starts_with(kFieldsMagic)) return std::vector<TiffValues>();
  MemoryBytes block(as_bytes(text));
  TiffFile made;
  made.directories = {kFieldsMagic.size()};
  return read_tiff_values(block, made, 0, views::kGeoTags);
}

// Of an EXIF block.
Result<std::vector<Directory>> directories_of(const std::string& exif) {
  if (exif.size() < kFieldsMagic.size() || !(exif.starts_with("II") || exif.starts_with("MM")))
    return std::vector<Directory>();
  MemoryBytes block(as_bytes(exif));
  TiffFile file;
  file.big_endian = exif.starts_with("MM");
  file.directories = {to_integer(as_bytes(exif).subspan(4, 4), file.big_endian)};
  return exif_directories(block, file, 0);
}

}  // namespace

Status add_fields(tools::File& file, const std::string& geo_fields, const std::string& exif) {
  MDFS_TRY_ASSIGN(std::vector<TiffValues> fields, geo_values(geo_fields));
  MDFS_TRY_ASSIGN(const std::vector<Directory> directories, directories_of(exif));
  if (fields.empty() && directories.empty()) return {};
  MDFS_TRY_ASSIGN(const std::uint64_t size, file.size_bytes());
  FileBytes bytes(file, size);
  MDFS_TRY_ASSIGN(const TiffFile tiff, parse_tiff(bytes, file.name()));
  if (tiff.big_endian) return {Errc::kNotSupported, file.name() + ": big-endian TIFF"};
  const std::uint64_t at = even(size);  // directories begin at even bytes
  ByteVector added;
  for (const Directory& directory : directories) {
    added.resize(even(added.size()));
    fields.push_back(number_field(directory.tag, at + added.size(), tiff.wide));
    const ByteVector made = directory_with(at + added.size(), tiff.wide, {}, directory.fields, 0);
    added.insert(added.end(), made.begin(), made.end());
  }
  MDFS_TRY_ASSIGN(const OldDirectory old, read_old(bytes, tiff, fields));
  added.resize(even(added.size()));
  const std::uint64_t first = at + added.size();
  const ByteVector directory = directory_with(first, tiff.wide, old.entries, fields, old.next);
  added.insert(added.end(), directory.begin(), directory.end());
  if (!tiff.wide && at + added.size() > UINT32_MAX)
    return {Errc::kTooBig, file.name() + ": no room for the GeoTIFF keys and EXIF below 4 GiB"};
  MDFS_TRY(file.write_at(at, added));
  ByteVector place;
  put_number(place, first, tiff_form(tiff.wide).offset);
  return file.write_at(tiff.wide ? 8 : 4, place);
}

}  // namespace mdfs::imagefile
