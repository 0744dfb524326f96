// The blocks of a volume that are free, and how writers get them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "alloc/run.h"
#include "base/result.h"
#include "geometry/geometry.h"
#include "store/reservation.h"

namespace mdfs::store {

using alloc::Run;

struct AllocationRequest {
  std::uint16_t disk = 0;             // where placement puts them
  std::uint32_t blocks = 0;           // 1..; contiguous
  std::uint64_t owner = 0;            // object: blocks of one owner on one disk are kept together in groups
  std::uint64_t near_block = 0;       // continue at this block if it is free; 0 = the owner's group, or a new one
  std::uint64_t around_block = 0;     // first of all as near as can be to this block, which is replaced; 0 = none is
  std::uint64_t expected_blocks = 0;  // that the owner will want on this disk from now on, these included; 0: not known
  bool fits = false;                  // no group: into the smallest hole that holds them all
  std::uint64_t at_block = 0;         // exactly here, also in a frozen range; 0 = anywhere
  bool may_fall_back = true;          // to another disk if this one is full or missing
  geometry::AllocationPolicy policy =
      geometry::AllocationPolicy::kDefault;  // where a new group begins; default: the store's
};

// Blocks that have left the volume, or are about to, and that somebody still reads: as long as the hold lasts they are
// not allocated again. Where nothing else is free the store breaks the hold: what is read of its blocks from then on
// does not count. Any thread; released before the store ends.
class BlockHold {
 public:
  BlockHold() = default;
  BlockHold(const BlockHold&) = delete;
  BlockHold& operator=(const BlockHold&) = delete;
  virtual ~BlockHold() = default;
  virtual bool is_broken() const { return false; }
};

struct SpaceInfo {
  std::uint64_t total_blocks = 0;      // for data, on the disks that are there
  std::uint64_t free_blocks = 0;       // of them: used neither by data nor by nodes beyond the metadata regions
  std::uint64_t available_blocks = 0;  // free, less the reserve and all reservations
  std::uint64_t objects = 0;
};

// A zone of a disk: its blocks for data, none in a zone that is all metadata, and those in use after the last change.
struct ZoneUse {
  std::uint64_t blocks = 0;
  std::uint64_t used_blocks = 0;
};

// All methods may be called from any thread.
class BlockSpace {
 public:
  virtual ~BlockSpace() = default;
  virtual std::uint32_t block_size() const = 0;
  // Of what has none of its own; never kDefault.
  virtual geometry::AllocationPolicy policy() const = 0;

  // Contiguous blocks, which no reader sees until they are published. kNoSpace if no disk has such a run (try fewer
  // blocks). May be called inside a transaction. A run never crosses a bitmap page (32768 blocks).
  virtual Result<Run> allocate(const AllocationRequest& request, Reservation* reservation) = 0;
  // Allocated, never published: free again.
  virtual void abandon(const Run& run) = 0;
  // A range of so many blocks of a disk, chosen so that little lies in it, that new blocks keep away from until it is
  // opened again: so that it can be cleared, and filled by at_block. Not one that overlaps `keep`. kNoSpace: there is
  // none with room elsewhere on the disk for what lies in it. Forgotten with the store.
  virtual Result<Run> freeze_range(unsigned disk, std::uint32_t blocks, const std::vector<Run>& keep) = 0;
  virtual void thaw_range(const Run& range) = 0;
  // Reserves blocks, in use or free: other requests get them last, a request with at_block gets them. False: they are
  // not reserved, as enough is. Until release_run(), which does nothing if they are not reserved any more. Forgotten
  // with the store.
  virtual bool reserve_run(const Run& place) = 0;
  virtual void release_run(const Run& place) = 0;
  // Holds blocks that are published, or are held by a hold that is not broken. A store that cannot hold any returns a
  // hold that never breaks: its caller finds by the checksums that the blocks have been written over.
  virtual std::shared_ptr<BlockHold> hold(std::vector<Run> runs);
  // Free, on a disk that new blocks are given out of.
  virtual bool is_free(const Run& run) = 0;
  // The owner is deleted or closed: what was preallocated for it behind its blocks is available to all.
  virtual void release_preallocations(std::uint64_t owner) = 0;
  // kReserved may take blocks of the reserve as well, to write anew what gives as many back, and kFreeing all of
  // it, for what is left of something that is cut.
  virtual Result<Reservation> reserve(const SpaceAmount& amount, Purpose purpose) = 0;
  Result<Reservation> reserve(std::uint64_t blocks, Purpose purpose = Purpose::kNormal) {
    return reserve(SpaceAmount{blocks, 0, 0}, purpose);
  }
  virtual SpaceInfo space() const = 0;
  // Zones [first, first + count) of a disk, fewer at its end; none of a disk that is not healthy. Waits for the disk
  // where zones do not end with bitmap pages.
  virtual Result<std::vector<ZoneUse>> zone_use(unsigned disk, std::uint64_t first, std::size_t count) = 0;

 protected:
  static Reservation make_reservation(BlockSpace* space, const SpaceAmount& amount) { return {space, amount}; }
  static void take_from(Reservation& reservation, std::uint64_t blocks) { reservation.amount_.blocks -= blocks; }
  friend class Reservation;
  virtual void give_back(const SpaceAmount& amount) = 0;
};

inline Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  if (!amount_.empty()) space_->give_back(amount_);
  space_ = std::exchange(other.space_, nullptr);
  amount_ = std::exchange(other.amount_, {});
  return *this;
}

inline Reservation::~Reservation() {
  if (!amount_.empty()) space_->give_back(amount_);
}

}  // namespace mdfs::store
