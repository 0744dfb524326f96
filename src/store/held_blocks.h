// Blocks that have left the volume and wait, since somebody still reads them.
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

// Knows which blocks are held, and which of them would be free otherwise: those wait. A block that waits is given back
// by the call that ends its last hold. Runs that are held are equal or disjoint. Pure; the owner keeps threads apart.
class HeldBlocks {
 public:
  struct State {
    std::uint64_t number = 0;  // ascending with age
    std::vector<Run> runs;
    std::atomic<bool> broken{false};
  };

  std::shared_ptr<const State> add(std::vector<Run> runs);
  // The hold ends; a broken one has ended before. Returns what waited for it alone.
  std::vector<Run> drop(const State& hold);
  // Takes those out of `free` that are held: they wait.
  void keep_back(std::vector<Run>& free);
  // Breaks the oldest hold, if there is one. Returns what waited for it alone.
  std::vector<Run> break_oldest();
  // Breaks all holds of these blocks, which do not wait. What waited for those holds alone is added to `runs`.
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
