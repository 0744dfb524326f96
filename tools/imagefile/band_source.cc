// Reading from bands.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/band_source.h"

#include <algorithm>

namespace mdfs::imagefile {

Status BandSource::read(MutableBytes into) {
  while (!into.empty()) {
    if (used_ == band_.size()) {
      MDFS_TRY(next_band());
      used_ = 0;
    }
    const std::size_t part = std::min(into.size(), band_.size() - used_);
    std::copy_n(band_.begin() + static_cast<std::ptrdiff_t>(used_), part, into.begin());
    used_ += part;
    into = into.subspan(part);
  }
  return {};
}

}  // namespace mdfs::imagefile
