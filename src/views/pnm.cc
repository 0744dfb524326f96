// PGM and PPM.
// SPDX-License-Identifier: Apache-2.0
#include "views/pnm.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace mdfs::views {

ByteVector pnm_header(std::uint64_t width, std::uint64_t height, unsigned channels, unsigned sample_bytes) {
  MDFS_CHECK(channels == 1 || channels == 3);
  MDFS_CHECK(sample_bytes == 1 || sample_bytes == 2);
  const std::string text =
      fmt::format("P{}\n{} {}\n{}\n", channels == 1 ? 5 : 6, width, height, sample_bytes == 1 ? 255 : 65535);
  const ConstBytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

void swap_samples_16(MutableBytes bytes) {
  MDFS_CHECK(bytes.size() % 2 == 0);
  for (std::size_t i = 0; i < bytes.size(); i += 2) std::swap(bytes[i], bytes[i + 1]);
}

}  // namespace mdfs::views
