// Space of the volume: discards of free blocks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/space.h"

namespace mdfs::store {
namespace {

using Kind = alloc::Search::Kind;

constexpr std::uint64_t kTakenShare = 8;   // of the free blocks, at most this part at a time
constexpr std::uint64_t kTakenFloor = 16;  // blocks

std::uint64_t overlap(alloc::BlockRange a, alloc::BlockRange b) {
  const std::uint64_t begin = std::max(a.begin, b.begin);
  const std::uint64_t end = std::min(a.end, b.end);
  return end > begin ? end - begin : 0;
}

}  // namespace

std::optional<Run> Space::begin_discard(std::uint16_t disk, DiscardPosition& position, std::uint64_t end,
                                        std::uint64_t smallest, std::uint32_t most) {
  MDFS_CHECK(smallest > 0 && most > 0);
  std::unique_lock lock(mutex_);
  if (discard_waiters_ > 0 || !knows_recent()) return std::nullopt;
  const auto load = [&](std::uint64_t page) {
    lock.unlock();
    load_page(disk, page);
    lock.lock();
  };
  while (disk < allocator_->disk_count() && allocator_->map(disk) != nullptr && position.next < end) {
    alloc::SpaceMap& map = *allocator_->map(disk);
    const bool inside = position.next < position.hole_end;
    const alloc::BlockRange range{position.next, inside ? std::min(end, position.hole_end) : end};
    const alloc::Search hole = allocator_->next_hole(disk, range, inside ? 1 : smallest);
    if (hole.kind == Kind::kNeedPage) {
      load(hole.value);
      shrink();
      continue;
    }
    if (hole.kind == Kind::kNone) {
      position.next = range.end;
      continue;
    }
    if (!inside) position.hole_end = hole.value + hole.blocks;
    position.next = hole.value;
    const std::uint64_t page = format::DiskLayout::bitmap_page(hole.value);
    if (!map.loaded(page)) {
      load(page);
      continue;
    }
    const bool metadata = hole.value < map.layout().metadata_end();
    const std::uint64_t free = metadata ? map.metadata_free() : map.data_free();
    std::uint64_t stop = std::min(hole.value + hole.blocks, (page + 1) * MDFS_BITS_PER_PAGE);
    if (metadata) stop = std::min(stop, map.layout().metadata_end());
    const std::uint64_t limit = std::min<std::uint64_t>(most, std::max(free / kTakenShare, kTakenFloor));
    const Run piece{disk, hole.value, static_cast<std::uint32_t>(std::min(stop - hole.value, limit))};
    const Run run = discardable_part(piece, smallest);
    position.next = run.blocks > 0 ? run.end() : piece.end();
    if (run.blocks == 0) continue;
    map.take(run.block, run.blocks);
    discarding_.push_back(run);
    return run;
  }
  position.next = std::max(position.next, end);
  return std::nullopt;
}

Run Space::discardable_part(const Run& run, std::uint64_t smallest) const {
  const alloc::AvoidedRanges recent = recent_.within(run.disk, {run.block, run.end()});
  if (recent.empty()) return run;
  std::uint64_t begin = run.block;
  const auto part = [&](std::uint64_t end) {
    return Run{run.disk, begin, static_cast<std::uint32_t>(std::max(begin, end) - begin)};
  };
  for (const auto& [first, last] : recent) {
    if (part(first).blocks >= smallest) return part(first);
    begin = std::max(begin, last);
  }
  const Run rest = part(run.end());
  return rest.blocks >= smallest ? rest : Run{run.disk, run.block, 0};
}

void Space::end_discard(const Run& run) {
  const std::lock_guard lock(mutex_);
  const auto taken = std::find(discarding_.begin(), discarding_.end(), run);
  MDFS_CHECK(taken != discarding_.end());
  discarding_.erase(taken);
  allocator_->map(run.disk)->release(run.block, run.blocks);
  shrink();
  discard_ended_.notify_all();
}

void Space::let_waiters_go() {
  std::unique_lock lock(mutex_);
  MDFS_CHECK(discarding_.empty());
  discard_ended_.wait(lock, [this] { return discard_waiters_ == 0; });
}

bool Space::may_discard() const {
  const std::lock_guard lock(mutex_);
  return knows_recent();
}

bool Space::wait_for_discards(std::unique_lock<std::mutex>& lock, const AllocationRequest* request) {
  if (discarding_.empty()) return false;
  if (request != nullptr && request->at_block != 0) {
    const alloc::BlockRange wanted{request->at_block, request->at_block + request->blocks};
    if (discarding_blocks(request->disk, wanted) == 0) return false;
  }
  ++discard_waiters_;
  discard_ended_.wait(lock, [this] { return discarding_.empty(); });
  --discard_waiters_;
  discard_ended_.notify_all();
  return true;
}

std::uint64_t Space::discarding_blocks(std::uint16_t disk, alloc::BlockRange range) const {
  std::uint64_t blocks = 0;
  for (const Run& run : discarding_)
    if (run.disk == disk) blocks += overlap(range, {run.block, run.end()});
  return blocks;
}

std::uint64_t Space::discarding_data() const {
  std::uint64_t blocks = 0;
  for (const Run& run : discarding_)
    if (allocator_->usable(run.disk))
      blocks += overlap(allocator_->map(run.disk)->data_range(), {run.block, run.end()});
  return blocks;
}

bool Space::wants_commits_to_discard() const {
  const std::lock_guard lock(mutex_);
  return !knows_recent() || pending_free_ > held_.waiting_blocks() || !recent_.empty();
}

void Space::collect_discardable(bool wanted) {
  const std::lock_guard lock(mutex_);
  collects_discardable_ = wanted;
  if (!wanted) discardable_.clear();
}

std::vector<Run> Space::take_discardable(std::uint64_t smallest) {
  std::vector<Run> runs;
  {
    const std::lock_guard lock(mutex_);
    runs = alloc::merged(std::exchange(discardable_, {}));
  }
  std::erase_if(runs, [&](const Run& run) { return run.blocks < smallest; });
  return runs;
}

}  // namespace mdfs::store
