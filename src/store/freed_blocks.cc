// Which blocks a commit freed.
// SPDX-License-Identifier: Apache-2.0
#include "store/freed_blocks.h"

#include <algorithm>
#include <utility>

#include "format/space.h"

namespace mdfs::store {
namespace {

constexpr std::size_t kPagesAtOnce = 256;

// A page that the two commits do not share.
struct Changed {
  std::uint64_t page = 0;
  format::SpaceEntry before;
  format::SpaceEntry after;
};

const format::CommitSlot* find_slot(const std::vector<MemberDisk>& members, const Uuid& commit_id) {
  for (const MemberDisk& member : members)
    for (const format::CommitSlot& slot : member.labels.slots)
      if (member.healthy() && slot.commit_id == commit_id) return &slot;
  return nullptr;
}

// Appends the runs that are set in `before` and clear in `after`; none goes beyond block `end` of the metadata region.
void append_freed(std::uint16_t disk, std::uint64_t page, std::uint64_t end, ConstBytes before, ConstBytes after,
                  std::vector<alloc::Run>& runs) {
  const std::uint64_t first = page * MDFS_BITS_PER_PAGE;
  bool inside = false;
  for (std::uint64_t bit = 0; bit < MDFS_BITS_PER_PAGE; ++bit) {
    if (bit % 8 == 0 && before[bit / 8] == after[bit / 8]) {
      inside = false;
      bit += 7;
      continue;
    }
    const bool freed = format::bitmap_get(before, bit) && !format::bitmap_get(after, bit);
    if (freed && inside) ++runs.back().blocks;
    if (freed && !inside) runs.push_back({disk, first + bit, 1});
    inside = freed && first + bit + 1 != end;
  }
}

// Compares the space pages of one disk, level by level from the top.
class Comparison {
 public:
  Comparison(const MemberDisk& member, std::uint16_t index, std::vector<alloc::Run>& runs)
      : disk_(*member.disk), layout_(layout_of(*member.label)), index_(index), runs_(runs) {}

  // False: it cannot be told. `budget` is what may still be read.
  bool run(const format::SpaceEntry& before, const format::SpaceEntry& after, std::uint64_t& budget) {
    std::vector<Changed> changed;
    if (before != after) changed.push_back({0, before, after});
    for (unsigned level = layout_.space_levels(); level-- > 0;) {
      if (changed.size() > budget) return false;
      budget -= changed.size();
      std::vector<Changed> below;
      for (std::size_t i = 0; i < changed.size(); i += kPagesAtOnce) {
        const std::size_t count = std::min(kPagesAtOnce, changed.size() - i);
        if (!compare(level, {changed.data() + i, count}, below)) return false;
      }
      changed = std::move(below);
    }
    return true;
  }

 private:
  bool compare(unsigned level, std::span<const Changed> changed, std::vector<Changed>& below) {
    AlignedBuffer buffer(changed.size() * 2 * MDFS_SECTOR);
    std::vector<device::Io> ios(changed.size() * 2);
    std::vector<device::Addressed> requests;
    for (std::size_t i = 0; i < ios.size(); ++i) {
      const Changed& page = changed[i / 2];
      const format::SpaceEntry& entry = i % 2 == 0 ? page.before : page.after;
      ios[i].offset = layout_.space_offset({level, page.page}, entry.place);
      ios[i].buffers = {buffer.bytes().subspan(i * MDFS_SECTOR, MDFS_SECTOR)};
      requests.push_back({&disk_, &ios[i]});
    }
    (void)device::run(requests);  // each request's own status counts
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const device::Io& before = ios[2 * i];
      const device::Io& after = ios[2 * i + 1];
      if (!after.status.ok()) continue;
      if (!before.status.ok()) return false;
      const bool told = level == 0 ? compare_bitmaps(changed[i], before.buffers[0], after.buffers[0])
                                   : compare_entries(level, changed[i], before.buffers[0], after.buffers[0], below);
      if (!told) return false;
    }
    return true;
  }

  bool compare_bitmaps(const Changed& changed, ConstBytes before, ConstBytes after) {
    if (!format::check_bitmap(layout_, changed.page, changed.after, after).ok()) return true;
    if (!format::check_bitmap(layout_, changed.page, changed.before, before).ok()) return false;
    append_freed(index_, changed.page, layout_.metadata_end(), before, after, runs_);
    return true;
  }

  bool compare_entries(unsigned level, const Changed& changed, ConstBytes before, ConstBytes after,
                       std::vector<Changed>& below) const {
    const format::SpacePage page{level, changed.page};
    const auto now = format::decode_space_page(layout_, page, changed.after, after);
    if (!now.ok()) return true;
    const auto then = format::decode_space_page(layout_, page, changed.before, before);
    if (!then.ok()) return false;
    for (std::size_t i = 0; i < now->size(); ++i)
      if ((*then)[i] != (*now)[i]) below.push_back({changed.page * MDFS_ENTRIES_PER_PAGE + i, (*then)[i], (*now)[i]});
    return true;
  }

  device::Disk& disk_;
  const format::DiskLayout layout_;
  const std::uint16_t index_;
  std::vector<alloc::Run>& runs_;
};

}  // namespace

std::optional<std::vector<alloc::Run>> blocks_freed_by(const format::CommitSlot& winner,
                                                       const std::vector<MemberDisk>& members) {
  std::vector<alloc::Run> runs;
  if (winner.parent_id.is_nil()) return runs;  // the first commit
  const format::CommitSlot* parent = find_slot(members, winner.parent_id);
  if (parent == nullptr) return std::nullopt;
  std::uint64_t budget = kComparedPagesLimit;
  for (std::size_t i = 0; i < std::min(parent->members.size(), winner.members.size()); ++i) {
    // A disk that came with the winner holds nothing of its parent.
    if (!members[i].healthy() || parent->members[i].uuid != winner.members[i].uuid) continue;
    // Its last bitmaps stand for other blocks.
    if (parent->members[i].blocks != winner.members[i].blocks) return std::nullopt;
    Comparison comparison(members[i], static_cast<std::uint16_t>(i), runs);
    if (!comparison.run(parent->space[i], winner.space[i], budget)) return std::nullopt;
  }
  return runs;
}

}  // namespace mdfs::store
