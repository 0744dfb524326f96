// Placing: a contiguous group of blocks for the extents of each disk, and the disks of second copies.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "base/log.h"
#include "format/extents.h"

namespace mdfs::engine {

namespace {

constexpr std::uint64_t kNoOwner = 0;  // owner of what has no group

constexpr std::uint64_t all_disks_but(std::uint16_t disk) { return ~(std::uint64_t{1} << disk); }

// Extents that the image has when it is full, 0 if it grows beyond the shape it was opened with, or is a file.
std::uint64_t planned_extents(const OpenObject& object) {
  if (!object.is_image()) return 0;
  const std::uint64_t planned = object.array().shape[0];
  if (object.shape_for(object.size.load(std::memory_order_relaxed)).shape[0] > planned) return 0;
  return ceil_div(planned, object.array().extent[0]) * object.extents_in_row();
}

// Gives blocks to the extents of one disk, in order, in contiguous groups as large as can be had.
class Placer {
 public:
  // `piece`: what gets the blocks. `avoided`: disks, a bit each, where writes failed, or where no copy may lie.
  Placer(Core& core, OpenObject& object, std::uint16_t disk, store::Reservation& reservation, std::uint64_t avoided,
         format::Runs format::StoredExtent::*piece)
      : core_(core), object_(object), disk_(disk), reservation_(reservation), avoided_(avoided), piece_(piece) {}

  Status place(const std::vector<Staged*>& extents) {
    std::size_t next = 0;
    std::uint64_t group_blocks = std::max<std::uint64_t>(1, kBytesAskedAtOnce / object_.block_size);
    bool together = true;  // what is replaced of several groups
    while (next < extents.size()) {
      // Replacements stay near their group. New extents continue where the last group ended.
      const std::uint64_t replaced = replaced_block(*extents[next]);
      std::uint64_t blocks = blocks_of(object_, *extents[next]);
      std::size_t end = next + 1;
      while (core_.options.grouping && end < extents.size() &&
             blocks + blocks_of(object_, *extents[end]) <= group_blocks &&
             (replaced == 0 || together || same_group(*extents[next], *extents[end])))
        blocks += blocks_of(object_, *extents[end++]);
      // A group that has no room as a whole is divided before any of it goes to another disk.
      const Fallback fallback = end - next == 1 ? Fallback::kMay : Fallback::kNot;
      Result<store::Run> run =
          allocate(static_cast<std::uint32_t>(blocks), fallback, replaced, expected_blocks(blocks, end - next));
      if (run.ok()) {
        hand_out(*run, extents, next, end);
        next = end;
      } else if (run.error().code != Errc::kNoSpace) {
        return std::move(run).error();
      } else if (replaced != 0 && together) {
        together = false;
      } else if (end - next > 1) {
        group_blocks = blocks / 2;
      } else {
        MDFS_TRY(scatter(*extents[next], static_cast<std::uint32_t>(blocks)));
        ++next;
      }
    }
    return {};
  }

 private:
  enum class Fallback : std::uint8_t { kNot, kMay };  // to another disk

  bool same_group(const Staged& one, const Staged& two) const {
    return object_.groups.group_of(one.coord) == object_.groups.group_of(two.coord);
  }

  // The block where the extent is stored now on this disk. 0: not here, or unknown (publishing finds out why).
  std::uint64_t replaced_block(const Staged& staged) {
    if (!object_.is_image()) return 0;
    const Result<MappedExtent> stored = core_.extent_map.extent(object_, staged.coord, false);
    if (!stored.ok()) return 0;
    const format::Runs& piece = stored->record.*piece_;
    return piece.empty() || piece.front().disk != disk_ ? 0 : piece.front().block;
  }

  // The blocks that an image of known shape will still need on this disk, if all its extents are like these.
  std::uint64_t expected_blocks(std::uint64_t blocks, std::size_t extents) {
    const std::uint64_t planned = planned_extents(object_) / std::max(1u, object_.placement->disks);
    if (planned == 0) return 0;
    const std::uint64_t all = ceil_div(planned * blocks, extents);
    if (is_copy()) return all;
    const std::lock_guard lock(object_.state_mutex);
    const std::uint64_t given = disk_ < object_.disk_given.size() ? object_.disk_given[disk_] : 0;
    return std::max(blocks, all - std::min(all, given));
  }

  Result<store::Run> allocate(std::uint32_t blocks, Fallback fallback, std::uint64_t replaced, std::uint64_t expected) {
    store::AllocationRequest request;
    request.disk = disk_;
    request.blocks = blocks;
    request.owner = core_.options.grouping ? object_.number | (is_copy() ? kCopyOwner : 0) : kNoOwner;
    if (core_.options.grouping) {
      request.around_block = replaced;
      request.expected_blocks = expected;
    }
    request.may_fall_back = fallback == Fallback::kMay || (avoided_ >> disk_ & 1) != 0;
    request.avoided_disks = avoided_;
    if (object_.is_image()) request.policy = object_.image->policy;
    if (core_.options.grouping && !is_copy()) {
      const std::lock_guard lock(object_.state_mutex);
      if (disk_ < object_.disk_end.size()) request.near_block = object_.disk_end[disk_];
    }
    MDFS_TRY_ASSIGN(const store::Run run,
                    core_.store.allocate(request, reservation_.blocks() >= blocks ? &reservation_ : nullptr));
    if (is_copy()) return run;
    const std::lock_guard lock(object_.state_mutex);
    if (object_.disk_end.size() <= run.disk) object_.disk_end.resize(run.disk + 1u);
    object_.disk_end[run.disk] = run.block + run.blocks;
    if (object_.disk_given.size() <= run.disk) object_.disk_given.resize(run.disk + 1u);
    object_.disk_given[run.disk] += run.blocks;
    return run;
  }

  void hand_out(store::Run run, const std::vector<Staged*>& extents, std::size_t next, std::size_t end) {
    for (; next < end; ++next) {
      const std::uint32_t blocks = blocks_of(object_, *extents[next]);
      (extents[next]->extent.*piece_).push_back({run.disk, run.block, blocks});
      run.block += blocks;
    }
  }

  // No contiguous room is left for this extent: smaller and smaller runs. If a copy is wanted they lie on one disk, as
  // long as one has room: the copy lies on none of theirs.
  Status scatter(Staged& staged, std::uint32_t blocks) {
    if (!is_copy() && object_.wants_copies.load(std::memory_order_relaxed)) {
      const unsigned disks = core_.store.disk_count();
      for (unsigned i = 0; i < disks; ++i) {
        const auto disk = static_cast<std::uint16_t>((disk_ + i) % disks);
        if ((avoided_ >> disk & 1) != 0) continue;
        const Status alone =
            Placer(core_, object_, disk, reservation_, all_disks_but(disk), piece_).scatter_over_disks(staged, blocks);
        if (alone.ok() || alone.error().code != Errc::kNoSpace) return alone;
        for (const store::Run& run : staged.extent.runs) core_.store.abandon(run);
        staged.extent.runs.clear();
      }
    }
    return scatter_over_disks(staged, blocks);
  }

  Status scatter_over_disks(Staged& staged, std::uint32_t blocks) {
    std::uint32_t piece = std::max(1u, blocks / 2);
    while (blocks > 0) {
      Result<store::Run> run = allocate(std::min(piece, blocks), Fallback::kMay, 0, 0);
      if (run.ok()) {
        format::append_run(staged.extent.*piece_, *run);
        blocks -= run->blocks;
        if ((staged.extent.*piece_).size() > format::kMaxExtentRuns)
          return {Errc::kNoSpace, fmt::format("no {} free blocks for an extent in {} pieces or fewer",
                                              blocks_of(object_, staged), format::kMaxExtentRuns)};
      } else if (run.error().code != Errc::kNoSpace || piece == 1) {
        return std::move(run).error();
      } else {
        piece /= 2;
      }
    }
    return {};
  }

  bool is_copy() const { return piece_ == &format::StoredExtent::copy; }

  Core& core_;
  OpenObject& object_;
  const std::uint16_t disk_;
  store::Reservation& reservation_;
  const std::uint64_t avoided_;
  format::Runs format::StoredExtent::*const piece_;
};

void sort_by_group(const Core& core, const OpenObject& object, std::vector<Staged*>& list) {
  std::stable_sort(list.begin(), list.end(), [&](const Staged* a, const Staged* b) {
    if (!core.options.grouping) return a->index < b->index;
    return object.groups.order_of(a->coord) < object.groups.order_of(b->coord);
  });
}

void give_back_copy(Core& core, Staged& staged) {
  for (const store::Run& run : staged.extent.copy) core.store.abandon(run);
  staged.extent.copy.clear();
}

// Where the second copies of extents should go, by what the disks have left before each.
class CopyTargets {
 public:
  CopyTargets(const Core& core, const OpenObject& object, std::uint64_t avoided)
      : object_(object), avoided_(avoided), free_blocks_(core.store.free_of_disks()) {}

  // Where no copy of the extent may lie.
  std::uint64_t taken(const Staged& staged) const {
    return format::StoredExtent::disks_of(staged.extent.runs) | avoided_;
  }
  // May be taken.
  std::uint16_t next(const Staged& staged) {
    const std::uint64_t blocks = blocks_of(object_, staged);
    const std::uint16_t disk = object_.disk_for_copy(staged.coord, blocks, taken(staged), free_blocks_);
    if (disk < free_blocks_.size()) free_blocks_[disk] -= std::min(free_blocks_[disk], blocks);
    return disk;
  }

 private:
  const OpenObject& object_;
  const std::uint64_t avoided_;
  std::vector<std::uint64_t> free_blocks_;
};

// The second copies of extents, one by one, where no piece of the extent lies. Returns the number of those for which no
// disk has room. They go without, until Protector finds room in the background or in a rebuild, because the data may
// have been acknowledged.
Result<std::size_t> place_copies_apart(Core& core, OpenObject& object, const std::vector<Staged*>& extents,
                                       store::Reservation& reservation, std::uint64_t avoided) {
  std::size_t without = 0;
  CopyTargets targets(core, object, avoided);
  for (Staged* const staged : extents) {
    if (format::StoredExtent::blocks_of(staged->extent.copy) == blocks_of(object, *staged)) continue;
    give_back_copy(core, *staged);
    const std::uint16_t disk = targets.next(*staged);
    const Status placed =
        Placer(core, object, disk, reservation, targets.taken(*staged), &format::StoredExtent::copy).place({staged});
    if (placed.ok()) continue;
    give_back_copy(core, *staged);
    if (placed.error().code != Errc::kNoSpace) return placed.error();
    core.relocations.note_damaged(object.number, staged->index);  // there may be room when replaced blocks are free
    ++without;
  }
  return without;
}

// Now and then: a volume that has lost its last disk but one stores all of them so.
void say_without_copies(Core& core, std::size_t extents) {
  constexpr std::int64_t kBetweenNs = 60'000'000'000;
  core.without_copies.fetch_add(extents, std::memory_order_relaxed);
  const std::int64_t now = core.environment.monotonic_ns();
  std::int64_t last = core.said_without_copies_ns.load(std::memory_order_relaxed);
  if (now - last < kBetweenNs || !core.said_without_copies_ns.compare_exchange_strong(last, now)) return;
  spdlog::warn("{} extents or cells are stored once: no other disk has room for their second copies",
               core.without_copies.exchange(0, std::memory_order_relaxed));
}

Status place_copies(Core& core, OpenObject& object, const std::vector<Staged*>& extents,
                    store::Reservation& reservation, std::uint64_t avoided) {
  if (!object.wants_copies.load(std::memory_order_relaxed) || core.store.disk_count() < 2) return {};
  CopyTargets targets(core, object, avoided);
  std::map<std::uint16_t, std::vector<Staged*>> by_disk;
  std::vector<Staged*> apart;
  for (Staged* const staged : extents) {
    if (!staged->extent.is_stored()) continue;
    const std::uint16_t disk = targets.next(*staged);
    ((targets.taken(*staged) >> disk & 1) != 0 ? apart : by_disk[disk]).push_back(staged);
  }
  for (auto& [disk, list] : by_disk) {
    sort_by_group(core, object, list);
    const Status placed =
        Placer(core, object, disk, reservation, all_disks_but(disk), &format::StoredExtent::copy).place(list);
    if (!placed.ok() && placed.error().code != Errc::kNoSpace) return placed;
    if (!placed.ok()) apart.insert(apart.end(), list.begin(), list.end());
  }
  MDFS_TRY_ASSIGN(const std::size_t without, place_copies_apart(core, object, apart, reservation, avoided));
  if (without > 0) say_without_copies(core, without);
  return {};
}

}  // namespace

Status place(Core& core, OpenObject& object, const std::vector<Staged*>& extents, store::Reservation& reservation,
             std::uint64_t avoided) {
  std::map<std::uint16_t, std::vector<Staged*>> by_disk;
  for (Staged* const staged : extents)
    if (blocks_of(object, *staged) > 0)
      by_disk[static_cast<std::uint16_t>(object.placement_disk(staged->coord))].push_back(staged);
  for (auto& [disk, list] : by_disk) {
    sort_by_group(core, object, list);
    MDFS_TRY(Placer(core, object, disk, reservation, avoided, &format::StoredExtent::runs).place(list));
  }
  return place_copies(core, object, extents, reservation, avoided);
}

}  // namespace mdfs::engine
