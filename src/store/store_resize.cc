// Disks that are given another size.
//
// What counts is the size in the table of members, so a change of it is one commit. A larger disk gets blank bitmaps
// first, where there was room for them, and the caller drains a smaller one behind its new end. The labels at
// the end of the disk follow the commit; until they have moved, recovery finds those at the front, and moves the
// others.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/log.h"
#include "format/space.h"
#include "store/store_impl.h"

namespace mdfs::store {
namespace {

using format::DiskLayout;

constexpr unsigned kCommitsUntilEmpty = 4;      // of what was freed last
constexpr unsigned kCommitsUntilForgotten = 2;  // so that no commit that may still be needed has these space pages
constexpr std::uint64_t kPagesMovedAtOnce = 128;
constexpr std::uint64_t kEndBytes = 2 * MDFS_LABEL_AREA;

}  // namespace

DiskLayout StoreImpl::layout(unsigned index) const {
  const std::lock_guard lock(table_mutex_);
  return layout_of(*members_[index].label);
}

Result<SizeRange> StoreImpl::size_range(unsigned index) {
  const std::lock_guard one_at_a_time(members_mutex_);
  MDFS_TRY(check_member(index));
  if (!is_healthy(index)) return Error{Errc::kMissingDisk, fmt::format("disk {} is absent", index)};
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, members_[index].disk->measure());
  const DiskLayout now = layout(index);
  SizeRange range;
  range.room_blocks = now.room_blocks();
  range.device_blocks = format::disk_blocks(now.block_size(), bytes);
  range.most_blocks = std::min(range.room_blocks, range.device_blocks);
  range.least_blocks = format::least_blocks(*members_[index].label);
  return range;
}

Status StoreImpl::check_size(unsigned index, std::uint64_t blocks) {
  MDFS_TRY(check_member(index));
  if (read_only_) return read_only_error();
  if (!is_healthy(index)) return {Errc::kMissingDisk, fmt::format("disk {} is absent", index)};
  if (members_[index].member.is_draining())
    return {Errc::kInvalidArgument, fmt::format("disk {} is being drained", index)};
  const DiskLayout now = layout(index);
  const std::uint64_t least = format::least_blocks(*members_[index].label);
  if (!format::valid_disk_blocks(now.block_size(), blocks) || blocks > now.room_blocks() || blocks < least)
    return {Errc::kInvalidArgument, fmt::format("disk {}: a size of {} blocks; {} to {} are possible", index, blocks,
                                                least, now.room_blocks())};
  const std::uint64_t change = blocks > now.blocks() ? blocks - now.blocks() : now.blocks() - blocks;
  if (change < kEndBytes / now.block_size())
    return {Errc::kInvalidArgument, fmt::format("disk {}: the new size differs by {} blocks, must be at least {}",
                                                index, change, kEndBytes / now.block_size())};
  return check_membership();
}

Status StoreImpl::set_disk_end(unsigned index, std::uint64_t blocks, std::uint64_t* missing_blocks) {
  const std::lock_guard one_at_a_time(members_mutex_);
  MDFS_TRY(check_member(index));
  const DiskLayout now = layout(index);
  if (blocks > now.blocks())
    return {Errc::kInvalidArgument,
            fmt::format("disk {}: a new end at {} blocks; at most {} are possible", index, blocks, now.blocks())};
  if (blocks < now.blocks()) MDFS_TRY(check_size(index, blocks));
  const auto set = [&] {
    return at_rest([&]() -> Status {
      MDFS_TRY(prepare_commit());  // the pool has just the places that it needs
      return space_.set_end(static_cast<std::uint16_t>(index), now.resized(blocks), missing_blocks);
    });
  };
  const Status done = set();
  if (done.ok() || done.error().code != Errc::kNoSpace || space_.pending_free() == 0) return done;
  MDFS_TRY(commit_pending_free());
  return set();
}

std::uint64_t StoreImpl::used_behind_end(unsigned index) const {
  return is_healthy(index) ? space_.used_behind(static_cast<std::uint16_t>(index)) : 0;
}

// Pages that no commit reads: they stand for blocks that the disk does not have yet.
Result<std::vector<format::SpaceEntry>> StoreImpl::write_new_bitmaps(unsigned index, const DiskLayout& layout) {
  std::vector<format::SpaceEntry> entries;
  const std::uint64_t end = layout.space_pages(0);
  std::uint64_t first = std::min(this->layout(index).space_pages(0), end);
  while (first < end) {
    const std::uint64_t count = std::min(kPagesMovedAtOnce, end - first);
    AlignedBuffer pages(count * 2 * MDFS_SECTOR);  // both places of each
    std::fill(pages.bytes().begin(), pages.bytes().end(), std::byte{0});
    for (std::uint64_t i = 0; i < count; ++i) {
      const MutableBytes page = pages.bytes().subspan(2 * i * MDFS_SECTOR, MDFS_SECTOR);
      format::make_empty_bitmap(layout, first + i, page);
      entries.push_back(format::make_space_entry(page, 0, format::bitmap_free(page)));
    }
    MDFS_TRY(device::write(*members_[index].disk, layout.space_offset({0, first}, 0), pages.bytes()));
    first += count;
  }
  return entries;
}

// A sparse file may have no space there. The write shows that before the commit. The blocks are not in use yet.
Status StoreImpl::take_label_room(unsigned index, const DiskLayout& wanted) {
  AlignedBuffer zeros(MDFS_LABEL_AREA);
  std::fill(zeros.bytes().begin(), zeros.bytes().end(), std::byte{0});
  for (const unsigned number : {2u, 3u})
    MDFS_TRY(device::write(*members_[index].disk, wanted.label_offset(number), zeros.bytes()));
  return {};
}

Status StoreImpl::move_labels_of(unsigned index, const DiskLayout& old) {
  return at_rest([&]() -> Status {
    format::CommitSlot committed;
    {
      const std::lock_guard lock(commit_mutex_);
      committed = last_commit_;
    }
    format::Label label = *members_[index].label;
    label.disk_blocks = members_[index].member.blocks;
    label.members = table();
    label.membership = membership_;
    committed.state = MDFS_SLOT_COMMITTED;
    MDFS_TRY(move_labels(*members_[index].disk, label, old, committed));
    {
      const std::lock_guard lock(table_mutex_);
      members_[index].label = std::move(label);
    }
    for (Participant& participant : participants_)
      if (participant.index == index) participant.layout = layout(index);
    return {};
  });
}

Status StoreImpl::resize_disk(unsigned index, std::uint64_t blocks) {
  const std::lock_guard one_at_a_time(members_mutex_);
  MDFS_TRY(check_size(index, blocks));
  if (!members_[index].member.takes_data())
    return {Errc::kNotSupported, members_[index].disk->name() + ": is for metadata alone, and keeps its size"};
  const auto disk = static_cast<std::uint16_t>(index);
  const DiskLayout old = layout(index);
  const DiskLayout wanted = old.resized(blocks);
  MDFS_TRY_ASSIGN(const std::uint64_t device_bytes, members_[index].disk->measure());
  if (wanted.bytes() > device_bytes)
    return {Errc::kInvalidArgument,
            fmt::format("{}: {} bytes: the device has {}", members_[index].disk->name(), wanted.bytes(), device_bytes)};
  const bool larger = blocks > old.blocks();
  MDFS_TRY(begin_writing());
  if (larger) MDFS_TRY(take_label_room(index, wanted));
  for (unsigned i = 0; i < (larger ? kCommitsUntilForgotten : kCommitsUntilEmpty); ++i)
    if (larger || space_.used_behind(disk) > 0) MDFS_TRY(commit_until(applied_, true));
  MDFS_TRY_ASSIGN(const std::vector<format::SpaceEntry> new_bitmaps, write_new_bitmaps(index, wanted));
  if (!larger) {
    MDFS_TRY(space_.check_empty_behind(disk, wanted));  // else the labels would lie on data
    MDFS_TRY(take_label_room(index, wanted));
  }
  if (larger) MDFS_TRY(device::flush(*members_[index].disk));
  const Status changed = commit_members([&]() -> Status {
    MDFS_TRY(space_.resize(disk, wanted, new_bitmaps));
    const std::lock_guard lock(table_mutex_);
    members_[index].member.blocks = blocks;
    return {};
  });
  MDFS_TRY(changed);
  disk_slot(index).require(wanted.bytes());
  MDFS_TRY(move_labels_of(index, old));
  write_tables(table(), membership_);
  if (larger) space_.free_labels(disk, old);
  return {};
}

}  // namespace mdfs::store
