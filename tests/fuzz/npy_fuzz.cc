// Fuzz target: both readers of NPY headers, that of imports and that of windows written as .npy.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "imagefile/header.h"
#include "views/npy.h"

using namespace mdfs;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ConstBytes bytes = fuzz::input(data, size);
  if (const auto header = imagefile::parse_npy(bytes.first(std::min(size, imagefile::kMaxHeaderBytes)), "input");
      header.ok()) {
    MDFS_CHECK(!header->array.lengths.empty() && header->array.lengths.size() <= imagefile::kMaxDimensions);
    MDFS_CHECK(header->data_offset <= size);
    if (imagefile::array_bytes(header->array).ok()) {
      for (const char* axes : {"", "yx", "zyx", "tyxc"})
        if (const auto geometry = imagefile::choose_geometry(header->array, axes); geometry.ok())
          MDFS_CHECK(geometry->rank >= 1 && geometry->rank <= geometry::kMaxRank);
      const std::string text = imagefile::npy_header(header->array);
      const auto again = imagefile::parse_npy(as_bytes(text), "output");
      MDFS_CHECK(again.ok() && again->array == header->array && again->data_offset == text.size());
    }
  }
  if (const auto header = views::parse_npy_header(bytes); header.ok()) {
    MDFS_CHECK(header->header_bytes <= size);
    (void)header->data_bytes();
  }
  return 0;
}
