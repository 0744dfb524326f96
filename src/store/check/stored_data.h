// Data on the disks with their checksums, as the tree's items describe them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "format/run.h"

namespace mdfs::store {

// Bytes on a disk with their checksums: one for each `part_bytes` of them.
struct StoredData {
  std::uint64_t object = 0;
  std::uint64_t where = 0;  // page * 64 + place of an extent, first byte of a file run
  bool is_extent = false;
  std::uint32_t stored_bytes = 0;
  std::uint32_t part_bytes = 0;
  std::vector<format::Run> runs;
  std::vector<std::uint32_t> crc32c;
};

// Verifies the parts of a piece of data while its bytes pass.
class PartChecker {
 public:
  explicit PartChecker(const StoredData& data) : data_(data) {}

  // The next bytes of the piece. Bytes behind stored_bytes are ignored.
  void take(ConstBytes bytes) {
    bytes = bytes.first(std::min<std::size_t>(bytes.size(), data_.stored_bytes - done_));
    while (!bytes.empty()) {
      const std::size_t in_part = done_ % data_.part_bytes;
      const std::size_t step = std::min<std::size_t>(bytes.size(), data_.part_bytes - in_part);
      crc_ = crc32c(bytes.first(step), in_part == 0 ? 0 : crc_);
      done_ += static_cast<std::uint32_t>(step);
      bytes = bytes.subspan(step);
      if (done_ % data_.part_bytes == 0 || done_ == data_.stored_bytes)
        good_ = good_ && data_.crc32c[(done_ - 1) / data_.part_bytes] == crc_;
    }
  }
  bool good() const { return good_ && done_ == data_.stored_bytes; }

 private:
  const StoredData& data_;
  std::uint32_t done_ = 0;
  std::uint32_t crc_ = 0;
  bool good_ = true;
};

}  // namespace mdfs::store
