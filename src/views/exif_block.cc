// Directories of an EXIF block.
// SPDX-License-Identifier: Apache-2.0
#include "views/exif_block.h"

#include <algorithm>
#include <array>

#include "base/checked.h"

namespace mdfs::views {
namespace {

constexpr std::uint16_t kExifDirectory = 34665, kGpsDirectory = 34853, kInteroperabilityDirectory = 40965;
constexpr std::array<std::uint16_t, 6> kPageTexts = {271, 272, 305, 306, 315, 33432};
constexpr std::uint64_t kTiffMagic = 42, kExifEntryBytes = 12, kExifInlineBytes = 4;

// A classic TIFF file in memory, whose directories need not be whole.
class ExifSource {
 public:
  explicit ExifSource(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}

  bool is_tiff() const {
    return bytes_.size() >= 8 && (little_ || bytes_.starts_with("MM")) && number(2, 2) == kTiffMagic;
  }
  std::uint64_t first_directory() const { return number(4, 4); }
  bool has_values_twice() const { return read_ > bytes_.size(); }

  // The fields of a directory by ascending tag, the first one of each.
  std::vector<TiffField> fields(std::uint64_t directory) {
    std::vector<TiffField> fields;
    if (!inside(directory, 2, bytes_.size())) return fields;
    const std::uint64_t room = (bytes_.size() - directory - 2) / kExifEntryBytes;
    const std::uint64_t count = std::min(number(directory, 2), room);
    for (std::uint64_t i = 0; i < count && !has_values_twice(); ++i) add(directory + 2 + i * kExifEntryBytes, fields);
    const auto tag = [](const TiffField& a, const TiffField& b) { return a.tag < b.tag; };
    std::stable_sort(fields.begin(), fields.end(), tag);
    const auto same = [](const TiffField& a, const TiffField& b) { return a.tag == b.tag; };
    fields.erase(std::unique(fields.begin(), fields.end(), same), fields.end());
    return fields;
  }

 private:
  std::uint64_t number(std::uint64_t at, unsigned bytes) const {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[at + (little_ ? bytes - 1 - i : i)]);
      value = value << 8 | byte;
    }
    return value;
  }

  void add(std::uint64_t entry, std::vector<TiffField>& fields) {
    TiffField field{static_cast<std::uint16_t>(number(entry, 2)),
                    static_cast<std::uint16_t>(number(entry + 2, 2)),
                    number(entry + 4, 4),
                    {}};
    const ClassicType type = classic_type(field.type);
    const std::uint64_t bytes = field.count * type.value_bytes;
    const std::uint64_t place = bytes <= kExifInlineBytes ? entry + 8 : number(entry + 8, 4);
    if (bytes == 0 || !inside(place, bytes, bytes_.size())) return;
    read_ += bytes;
    if (has_values_twice()) return;
    for (std::uint64_t at = place; at < place + bytes; at += type.number_bytes)
      put_number(field.bytes, number(at, type.number_bytes), type.number_bytes);
    fields.push_back(std::move(field));
  }

  std::string_view bytes_;
  bool little_;
  std::uint64_t read_ = 0;  // bytes of values
};

// Where a field of the first directory leads to; 0: nowhere.
std::uint64_t place_in(const TiffField& field) {
  if (field.count != 1 || field.bytes.size() != 4) return 0;
  std::uint64_t place = 0;
  for (unsigned i = 4; i-- > 0;) place = place << 8 | std::to_integer<std::uint64_t>(field.bytes[i]);
  return place;
}

}  // namespace

ExifFields parse_exif(std::string_view bytes) {
  ExifFields found;
  ExifSource block(bytes);
  if (!block.is_tiff()) return found;
  for (TiffField& field : block.fields(block.first_directory())) {
    if (field.tag == kExifDirectory || field.tag == kGpsDirectory) {
      TiffDirectory directory{field.tag, block.fields(place_in(field))};
      std::erase_if(directory.fields, [](const auto& one) { return one.tag == kInteroperabilityDirectory; });
      if (!directory.fields.empty()) found.directories.push_back(std::move(directory));
    } else if (field.type == static_cast<std::uint16_t>(TiffType::kAscii) &&
               std::find(kPageTexts.begin(), kPageTexts.end(), field.tag) != kPageTexts.end()) {
      found.page.push_back(std::move(field));
    }
  }
  return block.has_values_twice() ? ExifFields() : found;
}

}  // namespace mdfs::views
