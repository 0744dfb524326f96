// Discards of the store: tells its disks about free blocks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/log.h"
#include "store/store_impl.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kSmallestDiscardBytes = 64u << 10;  // of what is freed
constexpr std::uint64_t kLargestDiscardBytes = 64u << 20;   // so long others may wait

Status would_leave_behind() {
  return {Errc::kBusy,
          "a missing disk has the newest commit, and the commits of a trim would make it stale: attach it first"};
}

}  // namespace

std::uint64_t StoreImpl::smallest_discard() const {
  return std::max<std::uint64_t>(kSmallestDiscardBytes / label_.block_size, 1);
}

std::uint32_t StoreImpl::largest_discard() const {
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(kLargestDiscardBytes / label_.block_size, 1));
}

Status StoreImpl::commit_discardable() {
  if (read_only_) return read_only_error();
  if (holds_still()) return would_leave_behind();
  for (std::uint64_t i = 0; i < Space::kKeptCommits && space_.wants_commits_to_discard(); ++i)
    MDFS_TRY(commit_until(applied_, true));
  return {};
}

void StoreImpl::discard(std::vector<Discard>& discards) {
  std::vector<device::Io> ios(discards.size());
  std::vector<device::Addressed> requests;
  for (std::size_t i = 0; i < discards.size(); ++i) {
    const Run& run = discards[i].run;
    ios[i].op = device::Op::kDiscard;
    ios[i].offset = run.block * label_.block_size;
    ios[i].discard_bytes = std::uint64_t{run.blocks} * label_.block_size;
    requests.push_back({&disk(run.disk), &ios[i]});
  }
  (void)device::run(requests);  // each request's own status counts
  for (std::size_t i = 0; i < discards.size(); ++i) {
    space_.end_discard(discards[i].run);
    discards[i].status = ios[i].status;
  }
}

Status StoreImpl::trim_some(std::vector<DiskTrim>& disks, std::uint64_t smallest_blocks) {
  const std::lock_guard no_change_of_members(members_mutex_);
  if (read_only_) return read_only_error();
  if (holds_still()) return would_leave_behind();
  while (!space_.may_discard()) MDFS_TRY(commit_until(applied_, true));
  space_.let_waiters_go();
  std::vector<Discard> discards;
  for (unsigned i = 0; i < disks.size(); ++i) {
    DiskTrim& trim = disks[i];
    if (trim.state != DiskTrim::State::kMore) continue;
    if (!is_healthy(i)) {
      trim.state = DiskTrim::State::kNotThere;
      continue;
    }
    const auto run = space_.begin_discard(static_cast<std::uint16_t>(i), trim.position, trim.end,
                                          std::max<std::uint64_t>(smallest_blocks, 1), largest_discard());
    if (run) discards.push_back({*run, {}});
    if (!run && trim.position.next >= trim.end) trim.state = DiskTrim::State::kDone;
  }
  discard(discards);
  for (const Discard& done : discards) {
    DiskTrim& trim = disks[done.run.disk];
    if (done.status.ok()) {
      trim.discarded_blocks += done.run.blocks;
    } else if (done.status.error().code == Errc::kNotSupported) {
      trim.state = DiskTrim::State::kRefused;
    } else {
      trim.state = DiskTrim::State::kFailed;
      trim.why = done.status.error().within(Errc::kIo);
    }
  }
  return {};
}

void StoreImpl::set_discard(bool wanted) {
  refuses_discards_ = 0;
  discards_freed_ = wanted;
  space_.collect_discardable(wanted);
}

bool StoreImpl::discard_freed() {
  {
    std::unique_lock lock(commit_mutex_);
    committed_.wait(lock, [this] { return stop_waiting_ || has_discardable_; });
    if (stop_waiting_) return false;
    has_discardable_ = false;
  }
  for (const Run& freed : space_.take_discardable(smallest_discard())) {
    {
      const std::lock_guard lock(commit_mutex_);
      if (stop_waiting_) return false;
    }
    const std::lock_guard no_change_of_members(members_mutex_);
    if (read_only_) return true;
    discard_freed(freed);
  }
  return true;
}

// Some of it may be in use again.
void StoreImpl::discard_freed(const Run& freed) {
  DiscardPosition position{freed.block, 0};
  const auto may = [&] { return is_healthy(freed.disk) && (refuses_discards_ & format::disk_bit(freed.disk)) == 0; };
  while (may()) {
    space_.let_waiters_go();
    if (!space_.may_discard()) return;
    const auto run = space_.begin_discard(freed.disk, position, freed.end(), smallest_discard(), largest_discard());
    if (!run && position.next >= freed.end()) return;
    if (!run) continue;
    std::vector<Discard> discards = {{*run, {}}};
    discard(discards);
    const Status& status = discards[0].status;
    if (status.ok()) continue;
    refuses_discards_ |= format::disk_bit(freed.disk);
    spdlog::warn("{}: discards are disabled: {}", disk(freed.disk).name(), status.error().message());
  }
}

}  // namespace mdfs::store
