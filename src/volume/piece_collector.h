// Collects the data of all files and images from the tree, as pieces on the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "format/extents.h"
#include "format/operation.h"
#include "store/check/stored_data.h"
#include "store/store.h"
#include "store/verifier.h"

namespace mdfs::volume {

// An extent, or consecutive blocks of a file, as the tree described it at the time of the read.
struct StoredPiece : store::StoredData {
  std::optional<std::uint64_t> strip;  // the key's offset of the strip item, if the extent's bytes are in a strip
};

// Takes pieces from the tree in the order of its keys. One thread. Other threads may change the tree meanwhile.
class PieceCollector {
 public:
  // `copies_apart`: a second copy is a piece of its own, whose `copy` is the first piece. Else a piece has both.
  PieceCollector(store::Store& store, store::Verifier& verifier, bool copies_apart)
      : store_(store), verifier_(verifier), copies_apart_(copies_apart) {}

  // Takes some more items from `next` on, and advances `next`; false when there are no more. Items that cannot be read
  // are noted in the record.
  bool collect(format::Key& next, std::vector<StoredPiece>& pieces, format::OperationRecord& record);
  // True if the tree still describes the piece like this, or cannot be read.
  bool is_current(const StoredPiece& piece);

 private:
  void take(const std::vector<store::Item>& items, std::vector<StoredPiece>& pieces, format::OperationRecord& record);
  Result<std::optional<format::ExtentTableShape>> shape_of(std::uint64_t object);
  Status take_extents(const store::Item& item, std::vector<StoredPiece>& pieces);
  Status take_strip(const store::Item& item, std::vector<StoredPiece>& pieces);
  Status take_cell(const store::Item& item, std::vector<StoredPiece>& pieces) const;

  store::Store& store_;
  store::Verifier& verifier_;
  const bool copies_apart_;
  std::uint64_t shape_object_ = 0;  // whose shape is kept
  std::optional<format::ExtentTableShape> shape_;
};

}  // namespace mdfs::volume
