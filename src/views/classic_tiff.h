// A classic TIFF file in memory, as blocks of metadata are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "views/tiff_field.h"

namespace mdfs::views {

// Reads bytes of any contents, in either order of bytes. Does not own them.
class ClassicTiff {
 public:
  static constexpr std::uint64_t kHeadBytes = 8, kEntryBytes = 12;

  explicit ClassicTiff(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}

  // Does it begin as such a file? All below is of one that does.
  bool is_one() const;
  std::uint64_t size_bytes() const { return bytes_.size(); }
  std::uint64_t first_directory() const { return number(4, 4); }
  // At most 8 bytes that lie inside.
  std::uint64_t number(std::uint64_t at, unsigned bytes) const;
  // Of the entry at this place, which lies inside, with its values in little endian. Nothing if its type is none of
  // classic TIFF, or if it has no values, or not all of them lie inside.
  std::optional<TiffField> field(std::uint64_t entry) const;

 private:
  std::string_view bytes_;
  bool little_;
};

}  // namespace mdfs::views
