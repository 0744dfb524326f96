// The scrub: reads everything on all disks, compares checksums, and repairs metadata from good copies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "maintenance/operation.h"
#include "maintenance/piece_reader.h"
#include "store/verifier.h"
#include "volume/maintained_volume.h"

namespace mdfs::maintenance {

// Reads the labels and commits of each disk, the space pages, all copies of all tree nodes, and then the data. Data are
// read in batches of keys of the tree, each in the order of the disks and on all disks at once. The cursor: what
// (kLabels .. kData) and 2^32 times a kind of item; the disk, or an object; a number of a page, or an offset.
// Takes no parameters. A damaged copy of an extent or block is written anew from the other one. Other damaged data are
// reported and stay, and reading them is an error; extents of levels are forgotten instead, because they are built
// again.
class Scrub final : public Operation {
 public:
  Scrub(volume::MaintainedVolume& volume, store::Verifier& verifier)
      : volume_(volume),
        store_(volume.store()),
        verifier_(verifier),
        collector_(store_, verifier, true),
        reader_(store_, store_.block_size(), collector_) {}

  bool works_read_only() const override { return true; }
  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;
  Result<bool> step(OperationRun& run) override;
  bool at_checkpoint() const override { return checkpoint_; }

 private:
  enum What : std::uint32_t { kLabels, kSpace, kNodes, kData };
  // A batch is collected from the tree before it is read; this bounds memory at some 30 MiB.
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

  volume::MaintainedVolume& volume_;
  store::Store& store_;
  store::Verifier& verifier_;
  PieceCollector collector_;
  PieceReader reader_;
  // The current batch of data.
  std::vector<StoredPiece> pieces_;
  std::uint64_t piece_bytes_ = 0;
  format::Key next_;  // start of the next batch
  bool collecting_ = true;
  bool last_batch_ = false;
  bool checkpoint_ = true;
};

}  // namespace mdfs::maintenance
