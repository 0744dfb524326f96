// Facts about the pages of a file that OpenImageIO does not provide.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mdfs::imagefile {

struct PageFacts {
  std::optional<std::uint64_t> pages;  // their number, if known
  bool inks = false;                   // CMYK, which is not converted
  bool flatten = false;                // pages become one axis whatever their meaning
  char axis = 'z';                     // the axis that they become
  double spacing = 0;                  // of pages, in `unit`; 0 = unknown
  std::string unit;
  double rows_per_cm = 0, columns_per_cm = 0;  // from the description of the file; 0 = use its fields
};

}  // namespace mdfs::imagefile
