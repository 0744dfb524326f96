// Ways to damage a small volume, and what the checker says of each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "format/file_cell.h"
#include "format/strip.h"
#include "lab.h"

namespace mdfs::store {

inline constexpr std::uint64_t kRoot = MDFS_OBJECT_ROOT_DIRECTORY;

inline void erase(Lab& lab, const Key& key) {
  lab.change([&](Transaction& t) { t.erase(key); });
}
// Of the file that has cells.
inline format::FileCell cell_of(Lab& lab) {
  return *format::decode_file_cell(lab.get({Lab::kCells, MDFS_KIND_FILE_CELL, 0}), 4096);
}
// Of the movie.
inline format::Strip strip_of(Lab& lab) {
  return *format::decode_strip(lab.get(lab.movie_strip_key), lab.movie_shape, 4096);
}

struct Case {
  std::string name;                   // of the test
  std::vector<std::string> findings;  // all of these, and no others
  bool preen;                         // -p repairs it
  std::function<void(Lab&)> damage;
  bool data_survive = true;
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases();

}  // namespace mdfs::store
