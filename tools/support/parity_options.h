// The options --parity and --width: how many extents of an image share a parity, on so many disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mdfs::tools {

struct ParityOptions {
  unsigned parity = 0;
  std::optional<unsigned> width;  // absent: by the number of disks

  // Extents that share a parity, by default where a lost disk is rebuilt at the same width if that can be. Without
  // --parity 1: one. kUsage: there are too few disks for data, or --width is not one of its values.
  Result<unsigned> width_for(std::size_t data_disks) const;
};
// `copies`: the option that --parity excludes.
void add_parity_options(CLI::App& command, ParityOptions& options, const std::string& text, CLI::Option* copies);

}  // namespace mdfs::tools
