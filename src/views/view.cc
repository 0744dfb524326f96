// Views of short texts, and what reads of all views fill.
// SPDX-License-Identifier: Apache-2.0
#include "views/view.h"

#include <algorithm>

namespace mdfs::views {

MutableBytes cut_to_size(MutableBytes into, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t left = offset < size ? size - offset : 0;
  return into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left)));
}

Result<std::size_t> TextView::read(std::uint64_t offset, MutableBytes into, const engine::Stop&) {
  into = cut_to_size(into, offset, text_.size());
  if (!into.empty())
    std::copy_n(as_bytes(text_).begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
  return into.size();
}

}  // namespace mdfs::views
