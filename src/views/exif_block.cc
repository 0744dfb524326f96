// Directories of an EXIF block.
// SPDX-License-Identifier: Apache-2.0
#include "views/exif_block.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "views/classic_tiff.h"
#include "views/metadata_blocks.h"

namespace mdfs::views {
namespace {

constexpr std::array<std::uint16_t, 6> kPageTexts = {271, 272, 305, 306, 315, 33432};

// Reads directories, which need not be whole, and counts the bytes of their values.
class Directories {
 public:
  explicit Directories(std::string_view block) : block_(block) {}

  bool are_there() const { return block_.is_one(); }
  std::uint64_t first() const { return block_.first_directory(); }
  bool have_values_twice() const { return read_ > block_.size_bytes(); }

  // The fields of a directory by ascending tag, the first one of each.
  std::vector<TiffField> fields(std::uint64_t directory) {
    std::vector<TiffField> fields;
    if (!inside(directory, 2, block_.size_bytes())) return fields;
    const std::uint64_t room = (block_.size_bytes() - directory - 2) / ClassicTiff::kEntryBytes;
    const std::uint64_t count = std::min(block_.number(directory, 2), room);
    for (std::uint64_t i = 0; i < count && !have_values_twice(); ++i) {
      auto field = block_.field(directory + 2 + i * ClassicTiff::kEntryBytes);
      if (!field) continue;
      read_ += field->bytes.size();
      fields.push_back(std::move(*field));
    }
    const auto tag = [](const TiffField& a, const TiffField& b) { return a.tag < b.tag; };
    std::stable_sort(fields.begin(), fields.end(), tag);
    const auto same = [](const TiffField& a, const TiffField& b) { return a.tag == b.tag; };
    fields.erase(std::unique(fields.begin(), fields.end(), same), fields.end());
    return fields;
  }

 private:
  const ClassicTiff block_;
  std::uint64_t read_ = 0;
};

// Where a field of the first directory leads to; 0: nowhere.
std::uint64_t place_in(const TiffField& field) {
  if (field.count != 1 || field.bytes.size() != 4) return 0;
  return load_le<std::uint32_t>(field.bytes, 0);
}

}  // namespace

ExifFields parse_exif(std::string_view block) {
  ExifFields found;
  Directories directories(block);
  if (!directories.are_there()) return found;
  for (TiffField& field : directories.fields(directories.first())) {
    if (field.tag == kExifDirectory || field.tag == kGpsDirectory) {
      TiffDirectory directory{field.tag, directories.fields(place_in(field))};
      std::erase_if(directory.fields, [](const auto& one) { return one.tag == kInteroperabilityDirectory; });
      if (!directory.fields.empty()) found.directories.push_back(std::move(directory));
    } else if (field.type == static_cast<std::uint16_t>(TiffType::kAscii) &&
               std::find(kPageTexts.begin(), kPageTexts.end(), field.tag) != kPageTexts.end()) {
      found.page.push_back(std::move(field));
    }
  }
  return directories.have_values_twice() ? ExifFields() : found;
}

}  // namespace mdfs::views
