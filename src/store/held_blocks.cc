// Blocks that wait for their readers.
// SPDX-License-Identifier: Apache-2.0
#include "store/held_blocks.h"

#include <iterator>

namespace mdfs::store {

std::shared_ptr<const HeldBlocks::State> HeldBlocks::add(std::vector<Run> runs) {
  auto state = std::make_shared<State>();
  state->number = next_number_++;
  state->runs = std::move(runs);
  for (const Run& run : state->runs) held_.insert({{run.disk, run.block}, {run.blocks, state->number}});
  holds_[state->number] = state;
  return state;
}

std::vector<std::uint64_t> HeldBlocks::holders_of(const Run& run) const {
  std::vector<std::uint64_t> numbers;
  // Runs before this one may reach into it: those that begin at the same block as the last of them.
  auto first = held_.lower_bound({run.disk, run.block});
  if (first != held_.begin()) {
    const auto before = std::prev(first);
    if (before->first.first == run.disk && before->first.second + before->second.blocks > run.block)
      first = held_.lower_bound(before->first);
  }
  for (; first != held_.end() && first->first < Place{run.disk, run.block + run.blocks}; ++first)
    numbers.push_back(first->second.number);
  return numbers;
}

std::vector<Run> HeldBlocks::end(std::uint64_t number, bool broken) {
  const auto found = holds_.find(number);
  if (found == holds_.end()) return {};
  const std::shared_ptr<State> state = std::move(found->second);
  holds_.erase(found);
  if (broken) state->broken.store(true, std::memory_order_release);
  for (const Run& run : state->runs) {
    const auto [first, last] = held_.equal_range({run.disk, run.block});
    for (auto holder = first; holder != last; ++holder)
      if (holder->second.number == number) {
        held_.erase(holder);
        break;
      }
  }
  std::vector<Run> free;
  for (const Run& run : state->runs) {
    auto waits = waiting_.lower_bound({run.disk, run.block});
    if (waits != waiting_.begin()) {
      const auto before = std::prev(waits);
      if (before->first.first == run.disk && before->first.second + before->second > run.block) waits = before;
    }
    while (waits != waiting_.end() && waits->first < Place{run.disk, run.block + run.blocks}) {
      const Run waiting{waits->first.first, waits->first.second, waits->second};
      if (!holders_of(waiting).empty()) {
        ++waits;
        continue;
      }
      free.push_back(waiting);
      waiting_blocks_ -= waiting.blocks;
      waits = waiting_.erase(waits);
    }
  }
  return free;
}

std::vector<Run> HeldBlocks::drop(const State& hold) { return end(hold.number, false); }

void HeldBlocks::keep_back(std::vector<Run>& free) {
  if (held_.empty()) return;
  std::erase_if(free, [&](const Run& run) {
    if (holders_of(run).empty()) return false;
    waiting_[{run.disk, run.block}] = run.blocks;
    waiting_blocks_ += run.blocks;
    return true;
  });
}

std::vector<Run> HeldBlocks::break_oldest() {
  return holds_.empty() ? std::vector<Run>{} : end(holds_.begin()->first, true);
}

void HeldBlocks::break_those_of(std::vector<Run>& runs) {
  const std::vector<Run> asked = runs;
  for (const Run& run : asked)
    for (const std::uint64_t number : holders_of(run)) {
      const std::vector<Run> free = end(number, true);
      runs.insert(runs.end(), free.begin(), free.end());
    }
}

}  // namespace mdfs::store
