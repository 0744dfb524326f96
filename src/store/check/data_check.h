// Verifies checksums of data in the order of the disks, on all disks at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "store/check/findings.h"
#include "store/check/objects.h"
#include "store/recovery.h"

namespace mdfs::store {

// Data that do not match their checksum, or cannot be read.
struct BadData {
  FindingId id = FindingId::kDataDamaged;
  StoredData data;
  std::string where;  // what a finding says of it
};

// Collects the places of data and reads them in large batches, one thread for each disk. Used by one thread.
class DataChecker {
 public:
  // Called from any thread with the bytes verified since the last call.
  using OnBytes = std::function<void(std::uint64_t bytes)>;
  static constexpr std::size_t kReadBytes = 4u << 20;

  // Collects pieces up to `most_bytes` of memory before it reads them. Bad data beyond Findings::kLimit become findings
  // at once.
  DataChecker(const Recovered& volume, std::uint32_t block_size, std::uint64_t most_bytes, Findings& findings,
              OnBytes on_bytes)
      : volume_(volume),
        block_size_(block_size),
        most_bytes_(most_bytes),
        findings_(findings),
        on_bytes_(std::move(on_bytes)) {}

  void add(StoredData data);
  void finish();
  // The bad data so far, which the caller reports.
  const std::vector<BadData>& bad() const { return bad_; }
  // The first piece as it is on the disks, run by run, in whole blocks; kCorrupt if it does not match.
  Result<ByteVector> read_piece(const format::StoredExtent& extent) const;
  // The same bytes from elsewhere: the copy, or the other pieces of the group. The extent has some.
  Result<ByteVector> read_elsewhere(const format::StoredExtent& extent) const;

 private:
  struct Verdict {
    FindingId id;
    const StoredData* data;
    std::string where;
  };
  void check_disk(std::size_t disk, std::vector<const StoredData*> pieces, std::vector<Verdict>& verdicts) const;
  Status check_piece(const StoredData& data) const;

  const Recovered& volume_;
  const std::uint32_t block_size_;
  const std::uint64_t most_bytes_;
  Findings& findings_;
  OnBytes on_bytes_;
  std::vector<StoredData> pieces_;
  std::vector<BadData> bad_;
  std::uint64_t bytes_ = 0;  // of memory for the pieces
};

}  // namespace mdfs::store
