// Views of short texts.
// SPDX-License-Identifier: Apache-2.0
#include "views/view.h"

#include <algorithm>

namespace mdfs::views {

Result<std::size_t> TextView::read(std::uint64_t offset, MutableBytes into, const engine::Stop&) {
  if (offset >= text_.size()) return std::size_t{0};
  const ConstBytes rest = as_bytes(text_).subspan(static_cast<std::size_t>(offset));
  const std::size_t count = std::min(into.size(), rest.size());
  std::copy_n(rest.begin(), count, into.begin());
  return count;
}

}  // namespace mdfs::views
