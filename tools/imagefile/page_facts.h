// What the pages of a file are to each other, where OpenImageIO does not say it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mdfs::imagefile {

struct PageFacts {
  std::optional<std::uint64_t> pages;  // how many there are, where that was seen
  bool inks = false;                   // CMYK, which stays what it is
  bool flatten = false;                // pages become one axis whatever they are to each other
  char axis = 'z';                     // the axis that they become
  double spacing = 0;                  // of pages, in `unit`; 0 = not known
  std::string unit;
  double rows_per_cm = 0, columns_per_cm = 0;  // where the file says so in words; 0 = as its fields say
};

}  // namespace mdfs::imagefile
