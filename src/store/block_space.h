// The free blocks of a volume, and their allocation.
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
  std::uint16_t disk = 0;             // that placement names
  std::uint32_t blocks = 0;           // 1..; contiguous
  std::uint64_t owner = 0;            // object: blocks of one owner on one disk lie together in groups
  std::uint64_t near_block = 0;       // continue at this block if it is free; 0: the owner's group, or a new one
  std::uint64_t around_block = 0;     // preferably near this block, which is replaced; 0: none is replaced
  std::uint64_t expected_blocks = 0;  // an estimate of the owner's demand on this disk, with these blocks; 0: unknown
  bool fits = false;                  // no group: the smallest hole that holds all blocks
  std::uint64_t at_block = 0;         // exactly here, also in a frozen range; 0: anywhere
  bool may_fall_back = true;          // fallback allocation: on another disk if this one is full or missing
  geometry::AllocationPolicy policy =
      geometry::AllocationPolicy::kDefault;  // for the start of a new group; default: the store's
  std::uint64_t avoided_disks = 0;           // a bit each: writes to these failed just now
};

// A hold on blocks that are freed, or soon will be, while a reader still needs them. The blocks are not allocated again
// as long as the hold lasts. The store breaks a hold when no other blocks are free; later reads of the blocks are
// invalid. Any thread. A hold must end before the store.
class BlockHold {
 public:
  BlockHold() = default;
  BlockHold(const BlockHold&) = delete;
  BlockHold& operator=(const BlockHold&) = delete;
  virtual ~BlockHold() = default;
  virtual bool is_broken() const { return false; }
};

struct SpaceInfo {
  std::uint64_t total_blocks = 0;      // for data, on the present disks
  std::uint64_t free_blocks = 0;       // of these: used neither by data nor by nodes beyond the metadata regions
  std::uint64_t available_blocks = 0;  // free, less the reserve and all reservations
  std::uint64_t available_pairs = 0;   // of data that are stored twice; with one disk available_blocks, as they are not
  std::uint64_t objects = 0;
  unsigned spare_disks = 0;        // for the loss of so many disks room is kept, as Members::set_spare_disks() says
  std::uint64_t spare_blocks = 0;  // that are kept now. `free_blocks` may be less
  bool is_rebuilt = true;          // the pieces of all lost disks have been made anew since the store was opened
};

// A zone of a disk: its data blocks (none in a zone that is all metadata), and its blocks in use after the last change.
struct ZoneUse {
  std::uint64_t blocks = 0;
  std::uint64_t used_blocks = 0;
};

// All methods may be called from any thread.
class BlockSpace {
 public:
  virtual ~BlockSpace() = default;
  virtual std::uint32_t block_size() const = 0;
  // The policy of requests that name none; never kDefault.
  virtual geometry::AllocationPolicy policy() const = 0;

  // Allocates contiguous blocks. No reader sees them until they are published. kNoSpace: no disk has such a run; the
  // caller tries fewer blocks. May be called inside a transaction. A run never crosses a bitmap page (32768 blocks).
  virtual Result<Run> allocate(const AllocationRequest& request, Reservation* reservation) = 0;
  // Frees a run that was allocated and never published.
  virtual void abandon(const Run& run) = 0;
  // Chooses a range of so many blocks of a disk with few blocks in use, and keeps new blocks out of it until it is
  // thawed. The caller clears the range and fills it with at_block. The range does not overlap `keep`. kNoSpace: no
  // range has space elsewhere on the disk for its blocks in use. Frozen ranges are forgotten with the store.
  virtual Result<Run> freeze_range(unsigned disk, std::uint32_t blocks, const std::vector<Run>& keep) = 0;
  virtual void thaw_range(const Run& range) = 0;
  // Reserves blocks, in use or free, until release_run(): other requests get them last, a request with at_block gets
  // them. False: not reserved, because enough blocks are. release_run() does nothing for a run that is no longer
  // reserved. Reserved runs are forgotten with the store.
  virtual bool reserve_run(const Run& place) = 0;
  virtual void release_run(const Run& place) = 0;
  // Holds blocks that are published, or that an unbroken hold holds. A store that cannot hold blocks returns a hold
  // that never breaks; the caller then notices by checksums that blocks have been overwritten.
  virtual std::shared_ptr<BlockHold> hold(std::vector<Run> runs);
  // True if all blocks are free, on a disk that gets new blocks.
  virtual bool is_free(const Run& run) = 0;
  // Makes the owner's preallocations available to all objects. Called when the owner is deleted or closed.
  virtual void release_preallocations(std::uint64_t owner) = 0;
  // Sets space aside for a delayed write. kReserved may use the reserve, for writes that free as many blocks. kFreeing
  // may use all of it, for the rest of an extent that is cut. kNoSpace: too little is free.
  virtual Result<Reservation> reserve(const SpaceAmount& amount, Purpose purpose) = 0;
  Result<Reservation> reserve(std::uint64_t blocks, Purpose purpose = Purpose::kNormal) {
    return reserve(SpaceAmount{blocks, 0, 0}, purpose);
  }
  virtual SpaceInfo space() const = 0;
  // Data blocks that each disk can give out now; 0 of disks that take none.
  virtual std::vector<std::uint64_t> free_of_disks() const = 0;
  // Zones [first, first + count) of a disk, fewer at its end; none of a disk that is not healthy. Reads the disk where
  // zones do not end with bitmap pages.
  // kBusy: the disk does not answer.
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
