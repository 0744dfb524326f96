// Reading --parity and --width.
// SPDX-License-Identifier: Apache-2.0
#include "support/parity_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "geometry/parity_box.h"
#include "support/ranges.h"

namespace mdfs::tools {

Result<unsigned> ParityOptions::width_for(std::size_t data_disks) const {
  if (width && parity == 0) return Error{Errc::kUsage, "--width is of --parity"};
  if (parity == 0) return 1u;
  const unsigned extents = width.value_or(std::max(2u, geometry::usual_parity_width(data_disks)));
  if (extents < 2 || !geometry::is_parity_width(extents))
    return Error{Errc::kUsage, fmt::format("--width {}: must be 2, 4 or 8", extents)};
  if (data_disks <= extents)
    return Error{Errc::kUsage, fmt::format("--parity 1 --width {}: needs {} disks for data or more, not {}", extents,
                                           extents + 1, data_disks)};
  return extents;
}

void add_parity_options(CLI::App& command, ParityOptions& options, const std::string& text, CLI::Option* copies) {
  command.add_option("--parity", options.parity, text)->check(whole_number(0, 1))->excludes(copies);
  command
      .add_option("--width", options.width,
                  "Extents that share a parity: 2, 4 or 8 (default: 4, or 2 on fewer than 6 disks)")
      ->check(whole_number(2, geometry::kMostParityWidth));
}

}  // namespace mdfs::tools
