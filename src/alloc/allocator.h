// Where new blocks go: scatter and groups for data, the metadata region for tree nodes.
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

// A run, nothing, or the bitmap page (of run.disk) that must be loaded before the question can be answered.
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
  std::uint64_t around_block = 0;     // first of all near this block, which these replace; 0: they replace none
  std::uint64_t near_block = 0;       // else exactly at this block; 0: nowhere
  std::uint64_t expected_blocks = 0;  // that the owner will want on this disk from now on, these included; 0: not known
  bool fits = false;                  // no preallocation: into the smallest hole that holds them, near around_block
  std::uint64_t at_block = 0;         // exactly here, in a frozen range or not; 0: anywhere
  AllocationPolicy policy = AllocationPolicy::kDefault;  // of a new group
};

// Where data and tree nodes go in the free space of all disks of a volume. Deterministic for a seed and a sequence of
// calls.
// Data: an object's first small blocks on a disk go to a preallocation shared by small objects. Then the object gets
// preallocations of its own: as long as it is known to need, up to 4 MiB and a sixteenth of the disk; less on small
// disks where that is not known. Each lies right behind the last one if that is free, else where the allocation policy
// says (policy.h). Where less than a quarter of the disk is free, or no whole preallocation fits near there, it lies in
// the smallest hole near there that holds it whole. Failing that, preallocations that were not used lately are
// released, and then the largest hole is taken. Other objects avoid unused preallocations while other free space
// remains. Blocks that replace others of their object stay near these. The table of preallocations is bounded: the
// least recently used one is released.
// Data never come from a metadata region. Tree nodes come from the metadata region of their disk, two copies on one
// disk from its two halves, or, when the owner says so, from the rest of the disk. Pure, no thread contract (the owner
// locks).
class Allocator {
 public:
  using Policy = AllocationPolicy;

  // maps[i]: disk i, null if it is missing. block_size in bytes.
  Allocator(std::vector<std::unique_ptr<SpaceMap>> maps, std::uint32_t block_size, std::uint64_t seed);

  std::size_t disk_count() const { return maps_.size(); }
  SpaceMap* map(std::size_t disk) { return maps_[disk].get(); }
  const SpaceMap* map(std::size_t disk) const { return maps_[disk].get(); }

  // Another disk, at the end of the table or in the place of one that is not there; or none any more (null).
  // Preallocations on it are released.
  void set_map(std::size_t disk, std::unique_ptr<SpaceMap> map);
  // After the map of a disk got another end: preallocations, frozen ranges and reserved runs are released.
  void end_changed(std::size_t disk);
  // Whether new blocks of this disk are given out; data_free() and metadata_free() count those that are only.
  void set_avoided(std::size_t disk, bool avoided);
  bool usable(std::size_t disk) const { return maps_[disk] != nullptr && !avoided_[disk]; }

  // A found run has been taken.
  Answer allocate_data(const DataRequest& request);
  Answer allocate_data(std::uint16_t disk, std::uint32_t blocks, std::uint64_t owner, std::uint64_t near_block,
                       Policy policy = Policy::kDefault) {
    return allocate_data({.disk = disk, .blocks = blocks, .owner = owner, .near_block = near_block, .policy = policy});
  }
  // In the metadata region, `half` (0 or 1) of it first; or outside of it.
  Answer allocate_node(std::uint16_t disk, std::uint32_t blocks, unsigned half, bool outside);
  // The disk with the most free data blocks, other than `except`; disk_count() if there is none with any.
  std::size_t emptiest_disk(std::size_t except) const;
  // Of an object that will get no more blocks.
  void release_preallocations(std::uint64_t owner);

  // A range of so many blocks in one bitmap page, with as few of them in use as can be had and room for these
  // elsewhere on the disk, that overlaps no other one and none of `keep`. Until it is thawed nothing is allocated
  // in it but by at_block, and what finds no room anywhere else. At most half of a disk's free blocks lie in such
  // ranges.
  Answer freeze_range(std::uint16_t disk, std::uint32_t blocks, const AvoidedRanges& keep);
  void thaw_range(const Run& range);

  // Reserves blocks, in use or free: other requests get them last, a request with at_block gets them. False, and
  // nothing is reserved: a part of the run is preallocated, frozen or reserved, or half of what is free on the disk is
  // reserved.
  bool reserve_run(const Run& place);
  // A run that reserve_run() reserved; does nothing if it is not reserved any more.
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
    std::uint64_t next = 0;          // in the range: where the next block goes; others avoid what is behind
    std::uint64_t small_blocks = 0;  // given out of the shared preallocation so far
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
  // Near the draw, in the smallest hole that has room for a whole preallocation, or in the largest one.
  Answer preallocate_in_hole(Slot& slot, const DataRequest& request, SpaceMap::Fit fit);
  void release_idle_preallocations(std::uint16_t disk);
  Answer preallocate_at(Slot& slot, BlockRange range, std::uint32_t blocks);
  // The first run of `blocks` in the range that is free and not preallocated to another object; nothing if the range
  // lies outside of the data.
  Answer from_range(const Slot& slot, BlockRange range, std::uint32_t blocks);
  Answer around(const Slot& slot, const DataRequest& request);
  Answer fitting(const DataRequest& request);
  // So many blocks of data from `begin` on, or the last ones of the disk.
  BlockRange near(std::uint16_t disk, std::uint64_t begin, std::uint64_t blocks) const;
  const AvoidedRanges* avoided_on(std::uint16_t disk) const { return &avoided_ranges_[disk]; }
  const AvoidedRanges* reserved_or_frozen_on(std::uint16_t disk) const { return &reserved_or_frozen_[disk]; }
  const AvoidedRanges* frozen_on(std::uint16_t disk) const { return frozen_[disk].empty() ? nullptr : &frozen_[disk]; }
  // Where the search for a new preallocation begins, and how long it should be.
  std::uint64_t start_of_preallocation(const DataRequest& request);
  std::uint64_t preallocation_length(const DataRequest& request) const;
  Answer taken(std::uint16_t disk, std::uint64_t block, std::uint32_t blocks);
  Search find_from(std::uint16_t disk, std::uint64_t start, std::uint64_t blocks, const AvoidedRanges* avoid,
                   std::uint64_t reach) const;
  std::uint64_t default_preallocation(std::uint16_t disk) const;

  void release_runs_in(std::size_t disk, BlockRange range);
  // Preallocations, frozen ranges and reserved runs.
  void release_all_on(std::size_t disk);

  std::vector<std::unique_ptr<SpaceMap>> maps_;
  std::vector<bool> avoided_;
  std::uint32_t block_size_;
  SplitMix random_;
  Table table_;  // most recently used first
  std::unordered_map<SlotKey, Table::iterator, HashKey> by_key_;
  std::vector<AvoidedRanges> avoided_ranges_;  // by disk: of preallocations what is not used yet
  std::vector<AvoidedRanges> frozen_;          // by disk; they are in avoided_ranges_ as well
  // By disk and first block of a range: blocks of it that were free when it was frozen.
  std::vector<std::map<std::uint64_t, std::uint64_t>> frozen_free_;
  std::vector<AvoidedRanges> reserved_;                  // by disk: they are in avoided_ranges_ as well
  std::vector<AvoidedRanges> reserved_or_frozen_;        // by disk
  std::vector<std::uint64_t> reserved_blocks_;           // by disk, in sum
  std::vector<std::uint64_t> last_end_;                  // by disk: behind the data that were stored last
  std::vector<std::array<std::uint64_t, 2>> node_next_;  // where the search for a node goes on, by disk and half
  std::vector<std::uint64_t> node_next_outside_;         // the same outside of the metadata region
};

}  // namespace mdfs::alloc
