// Chooses places for new blocks: groups for data, the metadata region for tree nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "alloc/policy.h"
#include "alloc/run.h"
#include "alloc/space_map.h"
#include "geometry/geometry.h"

namespace mdfs::alloc {

// The answer of a search: a run, nothing, or the bitmap page (of run.disk) that must be loaded before the call is
// repeated.
struct Answer {
  Search::Kind kind = Search::Kind::kNone;
  Run run;
  std::uint64_t page = 0;
};

// A request for data blocks.
struct DataRequest {
  std::uint16_t disk = 0;
  std::uint32_t blocks = 0;  // 1..; contiguous
  std::uint64_t owner = 0;
  std::uint64_t around_block = 0;     // preferably near this block, which the new ones replace; 0: they replace none
  std::uint64_t near_block = 0;       // else exactly at this block; 0: anywhere
  std::uint64_t expected_blocks = 0;  // an estimate of the owner's demand on this disk, with these blocks; 0: unknown
  bool fits = false;                  // no preallocation: the smallest hole that holds the blocks, near around_block
  std::uint64_t at_block = 0;         // exactly here, also in a frozen range; 0: anywhere
  AllocationPolicy policy = AllocationPolicy::kDefault;  // of a new group
};

// Allocates data and tree nodes in the free space of all disks of a volume. Equal seeds and equal sequences of calls
// give equal results.
// Data: the first small blocks of an object on a disk go to a preallocation that small objects share. Then the object
// gets preallocations of its own. Their length is the expected demand, at most 4 MiB and a sixteenth of the disk; small
// disks give less when the demand is unknown. A preallocation lies right behind the last one if that place is free.
// Otherwise it lies where the allocation policy names (policy.h).
// Where less than a quarter of the disk is free, or no whole preallocation fits there, the allocator takes the smallest
// hole nearby that holds one. Without such a hole it releases preallocations that were not used lately, and then takes
// the largest hole. Other objects avoid unused preallocations while other free space remains. Blocks that replace
// others of their object stay near them. The table of preallocations is bounded; the least recently used one is
// released.
// Data never come from a metadata region. Tree nodes come from the metadata region of their disk, and two copies on one
// disk from its two halves. On request they come from the rest of the disk. Pure; the owner locks.
class Allocator {
 public:
  using Policy = AllocationPolicy;

  // maps[i] is for disk i, null if the disk is missing. block_size in bytes.
  Allocator(std::vector<std::unique_ptr<SpaceMap>> maps, std::uint32_t block_size, std::uint64_t seed);

  std::size_t disk_count() const { return maps_.size(); }
  SpaceMap* map(std::size_t disk) { return maps_[disk].get(); }
  const SpaceMap* map(std::size_t disk) const { return maps_[disk].get(); }

  // Sets the map of a disk: at the end of the table, in the place of an absent disk, or null for a disk that is gone.
  // Releases the preallocations on the disk.
  void set_map(std::size_t disk, std::unique_ptr<SpaceMap> map);
  // Called after the end of a disk has changed. Releases preallocations, frozen ranges and reserved runs.
  void end_changed(std::size_t disk);
  // An avoided disk gets no new blocks. data_free() and metadata_free() leave avoided disks out.
  void set_avoided(std::size_t disk, bool avoided);
  bool usable(std::size_t disk) const { return maps_[disk] != nullptr && !avoided_[disk]; }

  // A found run has been taken.
  Answer allocate_data(const DataRequest& request);
  Answer allocate_data(std::uint16_t disk, std::uint32_t blocks, std::uint64_t owner, std::uint64_t near_block,
                       Policy policy = Policy::kDefault) {
    return allocate_data({.disk = disk, .blocks = blocks, .owner = owner, .near_block = near_block, .policy = policy});
  }
  // In the metadata region, first in half 0 or 1 of it; or outside of the region.
  Answer allocate_node(std::uint16_t disk, std::uint32_t blocks, unsigned half, bool outside);
  // The disk with the most free data blocks, other than `except`; disk_count() if no disk has any.
  std::size_t emptiest_disk(std::size_t except) const;
  // For an object that will get no more blocks.
  void release_preallocations(std::uint64_t owner);

  // Freezes a range of so many blocks in one bitmap page. The range has few blocks in use, for which the rest of the
  // disk has space. It overlaps no other frozen range and none of `keep`. Until it is thawed, new blocks go there only
  // with at_block, or when no other space is left. At most half of a disk's free blocks lie in frozen ranges.
  Answer freeze_range(std::uint16_t disk, std::uint32_t blocks, const AvoidedRanges& keep);
  void thaw_range(const Run& range);

  // Reserves blocks, in use or free: other requests get them last, a request with at_block gets them. False if nothing
  // is reserved: a part of the run is preallocated, frozen or reserved, or half of the disk's free blocks are reserved.
  bool reserve_run(const Run& place);
  // Releases a run of reserve_run(). Does nothing for a run that is no longer reserved.
  void release_run(const Run& place);

  // SpaceMap::next_hole() outside of preallocations, frozen ranges and reserved runs.
  Search next_hole(std::uint16_t disk, BlockRange range, std::uint64_t blocks) const {
    return maps_[disk]->next_hole(range, blocks, avoided_on(disk));
  }

  std::uint64_t data_free() const;
  std::uint64_t metadata_free() const;
  std::size_t preallocations() const { return table_.size(); }
  static constexpr std::size_t kMaxPreallocations = 1024;

 private:
  struct Slot {
    std::uint64_t owner = 0;
    std::uint16_t disk = 0;
    BlockRange range;                // preallocated; empty: none yet
    std::uint64_t next = 0;          // in the range: the next block; other objects avoid the blocks behind it
    std::uint64_t small_blocks = 0;  // that came from the shared preallocation so far
    std::uint64_t draw = 0;  // start chosen for the next preallocation, kept while pages are loaded; 0: none yet
  };
  using Table = std::list<Slot>;
  struct SlotKey {
    std::uint64_t owner;
    std::uint16_t disk;
    bool operator==(const SlotKey&) const = default;
  };
  struct HashKey {
    std::size_t operator()(const SlotKey& key) const {
      return static_cast<std::size_t>((key.owner * 64 + key.disk) * 0x9e3779b97f4a7c15u >> 7);
    }
  };

  Slot& slot_of(std::uint64_t owner, std::uint16_t disk);
  void release_preallocation(Slot& slot);
  void begin_preallocation(Slot& slot, BlockRange range);
  void use_preallocation(Slot& slot, std::uint64_t next);
  Answer from_preallocation(Slot& slot, std::uint32_t blocks);
  Answer extend_preallocation(Slot& slot, const DataRequest& request);
  Answer new_preallocation(Slot& slot, const DataRequest& request);
  // Near the draw, in the smallest hole for a whole preallocation, or in the largest hole.
  Answer preallocate_in_hole(Slot& slot, const DataRequest& request, SpaceMap::Fit fit);
  void release_idle_preallocations(std::uint16_t disk);
  Answer preallocate_at(Slot& slot, BlockRange range, std::uint32_t blocks);
  // The first run of `blocks` in the range that is free and not preallocated to another object. Nothing if the range
  // lies outside of the data.
  Answer from_range(const Slot& slot, BlockRange range, std::uint32_t blocks);
  Answer around(const Slot& slot, const DataRequest& request);
  Answer fitting(const DataRequest& request);
  // A range of so many data blocks from `begin` on, or the last ones of the disk.
  BlockRange near(std::uint16_t disk, std::uint64_t begin, std::uint64_t blocks) const;
  const AvoidedRanges* avoided_on(std::uint16_t disk) const { return &avoided_ranges_[disk]; }
  const AvoidedRanges* reserved_or_frozen_on(std::uint16_t disk) const { return &reserved_or_frozen_[disk]; }
  const AvoidedRanges* frozen_on(std::uint16_t disk) const { return frozen_[disk].empty() ? nullptr : &frozen_[disk]; }
  // The start of the search for a new preallocation, and its length.
  std::uint64_t start_of_preallocation(const DataRequest& request);
  std::uint64_t preallocation_length(const DataRequest& request) const;
  Answer taken(std::uint16_t disk, std::uint64_t block, std::uint32_t blocks);
  Search find_from(std::uint16_t disk, std::uint64_t start, std::uint64_t blocks, const AvoidedRanges* avoid,
                   std::uint64_t reach) const;
  std::uint64_t default_preallocation(std::uint16_t disk) const;

  void release_runs_in(std::size_t disk, BlockRange range);
  // Releases preallocations, frozen ranges and reserved runs.
  void release_all_on(std::size_t disk);

  std::vector<std::unique_ptr<SpaceMap>> maps_;
  std::vector<bool> avoided_;
  std::uint32_t block_size_;
  SplitMix random_;
  Table table_;  // most recently used first
  std::unordered_map<SlotKey, Table::iterator, HashKey> by_key_;
  std::vector<AvoidedRanges> avoided_ranges_;  // by disk: unused parts of preallocations, frozen ranges, reserved runs
  std::vector<AvoidedRanges> frozen_;          // by disk; also in avoided_ranges_
  // By disk and first block of a range: its blocks that were free when it was frozen.
  std::vector<std::map<std::uint64_t, std::uint64_t>> frozen_free_;
  std::vector<AvoidedRanges> reserved_;                  // by disk; also in avoided_ranges_
  std::vector<AvoidedRanges> reserved_or_frozen_;        // by disk
  std::vector<std::uint64_t> reserved_blocks_;           // by disk, in sum
  std::vector<std::uint64_t> last_end_;                  // by disk: end of the data that were stored last
  std::vector<std::array<std::uint64_t, 2>> node_next_;  // start of the next search for a node, by disk and half
  std::vector<std::uint64_t> node_next_outside_;         // the same outside of the metadata region
};

}  // namespace mdfs::alloc
