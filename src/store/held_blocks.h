// Held blocks: they are freed, but wait because a reader still needs them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "alloc/run.h"

namespace mdfs::store {

using alloc::Run;

// Knows the held blocks, and which of them wait to become free. The call that ends the last hold of a waiting block
// returns the block. Held runs are equal or disjoint. Pure; the owner locks.
class HeldBlocks {
 public:
  struct State {
    std::uint64_t number = 0;  // ascending with age
    std::vector<Run> runs;
    std::atomic<bool> broken{false};
  };

  std::shared_ptr<const State> add(std::vector<Run> runs);
  // Ends the hold; a broken hold has ended before. Returns the blocks that waited for this hold alone.
  std::vector<Run> drop(const State& hold);
  // Takes held blocks out of `free`; they wait.
  void keep_back(std::vector<Run>& free);
  // Breaks the oldest hold, if there is one. Returns the blocks that waited for it alone.
  std::vector<Run> break_oldest();
  // Breaks all holds of these blocks, so that they do not wait. Adds other blocks that waited for those holds alone to
  // `runs`.
  void break_those_of(std::vector<Run>& runs);

  std::uint64_t waiting_blocks() const { return waiting_blocks_; }

 private:
  using Place = std::pair<std::uint16_t, std::uint64_t>;  // disk, first block
  struct Holder {
    std::uint32_t blocks = 0;
    std::uint64_t number = 0;
  };
  // The numbers of the holds that hold some of the run.
  std::vector<std::uint64_t> holders_of(const Run& run) const;
  std::vector<Run> end(std::uint64_t number, bool broken);

  std::uint64_t next_number_ = 1;
  std::map<std::uint64_t, std::shared_ptr<State>> holds_;
  std::multimap<Place, Holder> held_;
  std::map<Place, std::uint32_t> waiting_;
  std::uint64_t waiting_blocks_ = 0;
};

}  // namespace mdfs::store
