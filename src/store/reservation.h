// Reservations: space that is set aside for a write that is not yet on the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mdfs::store {

// The purpose of a transaction or reservation. It decides which space is left alone, so that more important work still
// finds space on a full volume.
// kNormal leaves alone: all reservations; space for the nodes that publishing and freeing change at a time; the reserve
// of data blocks; the room for the rebuild of lost disks. kMoving, for data whose old blocks will be free, may use that
// room. kReserved is for publishing acknowledged writes, and for rewriting blocks that will be free again. It
// leaves alone: reservations, space for freeing, half of the reserve. kFreeing (unlink, truncate, punch) leaves alone:
// reservations.
enum class Purpose : std::uint8_t { kNormal, kMoving, kReserved, kFreeing };
// Leaves the space alone that is kept for working.
constexpr bool is_ordinary(Purpose purpose) { return purpose == Purpose::kNormal || purpose == Purpose::kMoving; }

// An upper bound of the space for some data: blocks for the data, and growth of the tree when they are published.
struct SpaceAmount {
  std::uint64_t blocks = 0;
  std::uint64_t items = 0;  // of the tree that are new or grow
  std::uint64_t bytes = 0;  // by which they grow, in sum
  std::uint64_t pairs = 0;  // of `blocks`, those that need a twin on another disk, which is counted in `blocks`, too

  bool empty() const { return blocks == 0 && items == 0 && bytes == 0 && pairs == 0; }
  SpaceAmount& operator+=(const SpaceAmount& other);
  // The part of this amount that `there` does not cover.
  SpaceAmount less(const SpaceAmount& there) const;
};

// Space that the store has reserved for a delayed write. Blocks allocated with a reservation come out of it. The
// destructor gives the rest back to the store, which outlives the reservation. Movable.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : space_(std::exchange(other.space_, nullptr)), amount_(std::exchange(other.amount_, {})) {}
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();
  const SpaceAmount& amount() const { return amount_; }
  std::uint64_t blocks() const { return amount_.blocks; }
  // Takes over all of `other`, which is of the same store.
  void absorb(Reservation&& other) {
    if (space_ == nullptr) space_ = other.space_;
    amount_ += std::exchange(other.amount_, {});
  }
  // Parts with at most `wanted`.
  Reservation split(const SpaceAmount& wanted) {
    const SpaceAmount left = amount_.less(wanted);
    const SpaceAmount taken = amount_.less(left);
    amount_ = left;
    return {space_, taken};
  }

 private:
  friend class BlockSpace;
  Reservation(class BlockSpace* space, const SpaceAmount& amount) : space_(space), amount_(amount) {}
  class BlockSpace* space_ = nullptr;
  SpaceAmount amount_;
};

inline SpaceAmount& SpaceAmount::operator+=(const SpaceAmount& other) {
  blocks += other.blocks;
  items += other.items;
  bytes += other.bytes;
  pairs += other.pairs;
  return *this;
}

inline SpaceAmount SpaceAmount::less(const SpaceAmount& there) const {
  return {blocks - std::min(blocks, there.blocks), items - std::min(items, there.items),
          bytes - std::min(bytes, there.bytes), pairs - std::min(pairs, there.pairs)};
}

}  // namespace mdfs::store
