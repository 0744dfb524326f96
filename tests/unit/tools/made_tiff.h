// TIFF files made to measure: the directories behind the samples, as writers of stacks lay them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tiff_number.h"

namespace mdfs::imagefile {

struct MadeTiff {
  bool big = false;                                     // BigTIFF
  bool big_endian = false;                              // MM
  unsigned pages = 1, width = 4, height = 6, rows = 2;  // of samples u8; of rows a strip, or a tile, has
  bool tiled = false;                                   // tiles as wide as the page
  std::vector<unsigned> palette;                        // all red, green, blue values; empty: none
  std::string description;
  // Field `tag` of the page says so instead.
  struct Change {
    unsigned page, tag;
    std::uint64_t value;
  };
  std::vector<Change> changes;
  std::pair<unsigned, unsigned> renamed = {};  // field `first` gets the number `second`
  int next_of_last = -1;                       // the page that follows the last one

  std::string bytes() const {
    std::string out = big_endian ? "MM" : "II";
    out += num(big ? 43 : 42, 2);
    if (big) out += num(8, 2) + num(0, 2);
    std::size_t link = out.size();
    out += num(0, word());
    std::vector<std::size_t> starts;
    for (unsigned page = 0; page < pages; ++page) {
      std::vector<std::uint64_t> offsets, counts;
      for (unsigned row = 0; row < height; row += rows) {
        const unsigned there = tiled || height - row >= rows ? rows : height - row;
        offsets.push_back(out.size());
        counts.push_back(std::uint64_t{there} * width);
        out.append(counts.back(), static_cast<char>('a' + page + row));
      }
      const std::size_t arrays = out.size();
      for (const std::uint64_t value : offsets) out += num(value, word());
      for (const std::uint64_t value : counts) out += num(value, word());
      const std::size_t text = out.size();
      if (page == 0) out += description;
      for (const unsigned value : palette) out += num(value, 2);
      starts.push_back(out.size());
      out.replace(link, word(), num(out.size(), word()));
      const std::string fields = fields_of(page, offsets, counts, arrays, text);
      out += num(fields.size() / (4 + 2 * word()), big ? 8 : 2) + fields;
      link = out.size();
      out += num(0, word());
    }
    if (next_of_last >= 0) out.replace(link, word(), num(starts[static_cast<unsigned>(next_of_last)], word()));
    return out;
  }

 private:
  std::size_t word() const { return big ? 8 : 4; }
  std::string num(std::uint64_t value, std::size_t width_bytes) const {
    return tiff_number(value, width_bytes, big_endian);
  }
  std::string fields_of(unsigned page, const std::vector<std::uint64_t>& offsets,
                        const std::vector<std::uint64_t>& counts, std::uint64_t arrays, std::uint64_t text) const {
    constexpr std::uint64_t kAscii = 2, kShort = 3, kLong = 4, kLong8 = 16;
    const std::uint64_t wide = big ? kLong8 : kLong, n = offsets.size(), behind = arrays + n * word();
    struct Row {
      std::uint64_t tag, type, count, value;
    };
    std::vector<Row> table = {{256, kLong, 1, width},
                              {257, kLong, 1, height},
                              {258, kShort, 1, 8},
                              {259, kShort, 1, 1},
                              {262, kShort, 1, palette.empty() ? 1u : 3u}};
    if (page == 0 && !description.empty()) table.push_back({270, kAscii, description.size(), text});
    if (!tiled) table.push_back({273, wide, n, n == 1 ? offsets[0] : arrays});
    table.push_back({277, kShort, 1, 1});
    if (!tiled) table.push_back({278, kLong, 1, rows});
    if (!tiled) table.push_back({279, wide, n, n == 1 ? counts[0] : behind});
    if (!palette.empty()) table.push_back({320, kShort, palette.size(), text + (page == 0 ? description.size() : 0)});
    if (tiled) table.push_back({322, kLong, 1, width});
    if (tiled) table.push_back({323, kLong, 1, rows});
    if (tiled) table.push_back({324, wide, n, n == 1 ? offsets[0] : arrays});
    if (tiled) table.push_back({325, wide, n, n == 1 ? counts[0] : behind});
    std::string fields;
    for (Row row : table) {
      for (const Change& change : changes)
        if (change.page == page && change.tag == row.tag) row.value = change.value;
      const std::size_t size = row.type == kShort && row.count == 1  ? 2
                               : row.type == kLong && row.count == 1 ? 4
                                                                     : word();
      fields += num(row.tag == renamed.first ? renamed.second : row.tag, 2) + num(row.type, 2) +
                num(row.count, word()) + num(row.value, size);
      fields.append(word() - size, '\0');
    }
    return fields;
  }
};

}  // namespace mdfs::imagefile
