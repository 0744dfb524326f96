// The scrub: everything on all disks is read and compared with its checksum, and what has a good copy is repaired.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "maintenance/operation.h"
#include "maintenance/piece_reader.h"
#include "store/verifier.h"

namespace mdfs::maintenance {

// Labels and commits of each disk, pages of the map of free space, all copies of all tree nodes, then the data in
// batches of keys of the tree, each in the order of the disks and on all disks at once. The cursor: what (kLabels ..
// kData) and 2^32 times a kind of item; the disk, or an object; a number of a page, or an offset.
// Takes no parameters. Data that are damaged are reported and stay: reading them is an error.
class Scrub final : public Operation {
 public:
  Scrub(store::Store& store, store::Verifier& verifier)
      : store_(store), verifier_(verifier), collector_(store, verifier), reader_(store, collector_) {}

  bool works_read_only() const override { return true; }
  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;
  Result<bool> step(OperationRun& run) override;
  bool at_checkpoint() const override { return checkpoint_; }

 private:
  enum What : std::uint32_t { kLabels, kSpace, kNodes, kData };
  // So much is collected from the tree before it is read, which bounds memory at some 30 MiB.
  static constexpr std::size_t kBatchPieces = 1u << 16;
  static constexpr std::uint64_t kBatchBytes = 1u << 30;
  static constexpr std::uint64_t kPagesAtOnce = 64;

  static void move_on(OperationRecord& record, What what, const format::Key& key);
  static format::Key key_of(const OperationRecord& record);
  void forget();
  Status step_labels(OperationRun& run);
  Status step_space(OperationRun& run);
  Status step_nodes(OperationRun& run);
  Result<bool> step_data(OperationRun& run);

  store::Store& store_;
  store::Verifier& verifier_;
  PieceCollector collector_;
  PieceReader reader_;
  // The batch of data at hand.
  std::vector<StoredPiece> pieces_;
  std::uint64_t piece_bytes_ = 0;
  format::Key next_;  // where the next batch begins
  bool collecting_ = true;
  bool last_batch_ = false;
  bool checkpoint_ = true;
};

}  // namespace mdfs::maintenance
