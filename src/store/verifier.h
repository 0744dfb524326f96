// Looking at all metadata on the disks of a store that is in use, every copy of it, and repairing what is bad.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "format/key.h"
#include "format/operation.h"

namespace mdfs::store {

// Each call looks at about a MiB, beside transactions and commits; what only seems bad because it was freed or written
// anew meanwhile is no damage. `repair`: what has a good copy, or is known, is written anew, and is on the disks when
// the call returns. Counted in `record`, by disk: bytes, copies looked at, repaired, and as errors those that stay
// bad. Disks that are missing are passed over. Errors: those of a commit that the repair needs.
class Verifier {
 public:
  virtual ~Verifier() = default;
  // The labels of a disk, and the newest commit in their rings.
  virtual Status verify_labels(unsigned disk, bool repair, format::OperationRecord& record) = 0;
  // Pages of the map of free space, those of all levels one after another; 0 if the disk is missing.
  virtual std::uint64_t space_pages(unsigned disk) const = 0;
  virtual Status verify_space(unsigned disk, std::uint64_t first, std::uint64_t count, bool repair,
                              format::OperationRecord& record) = 0;
  // Tree nodes that hold keys from `from` on; where to go on, or nothing after the last.
  virtual Result<std::optional<format::Key>> verify_nodes(const format::Key& from, bool repair,
                                                          format::OperationRecord& record) = 0;
  // The smallest key that belongs to the leaf after the one for `key` (which need not be readable); nothing if that is
  // the last.
  virtual std::optional<format::Key> next_leaf(const format::Key& key) = 0;
};

}  // namespace mdfs::store
