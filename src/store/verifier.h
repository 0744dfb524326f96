// Verifies all metadata on the disks of a store in use, every copy, and repairs bad copies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "format/key.h"
#include "format/operation.h"

namespace mdfs::store {

// Each call verifies about a MiB, beside transactions and commits. Metadata that were freed or rewritten meanwhile are
// no damage. `repair`: a bad copy is rewritten from a good one or from memory, and is on the disks when the call
// returns. `record` counts by disk: bytes, verified copies, repaired ones, and as errors those that stay bad. Missing
// disks are skipped. Errors: those of a commit that the repair needs.
class Verifier {
 public:
  virtual ~Verifier() = default;
  // The labels of a disk, and the newest commit in their rings.
  virtual Status verify_labels(unsigned disk, bool repair, format::OperationRecord& record) = 0;
  // The number of space pages of all levels, one level after another; 0 if the disk is missing.
  virtual std::uint64_t space_pages(unsigned disk) const = 0;
  virtual Status verify_space(unsigned disk, std::uint64_t first, std::uint64_t count, bool repair,
                              format::OperationRecord& record) = 0;
  // Verifies tree nodes with keys from `from` on. Returns the start of the next call, or nothing after the last node.
  virtual Result<std::optional<format::Key>> verify_nodes(const format::Key& from, bool repair,
                                                          format::OperationRecord& record) = 0;
  // The smallest key of the leaf after the one for `key`, which need not be readable; nothing after the last leaf.
  virtual std::optional<format::Key> next_leaf(const format::Key& key) = 0;
};

}  // namespace mdfs::store
