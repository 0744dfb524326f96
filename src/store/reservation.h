// What a write that is not yet on the disks has been promised of the space.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mdfs::store {

// What a transaction or a promise leaves alone, so that what matters more still finds room on a full volume.
// kNormal: whatever has been promised; room for the nodes that linking written data and freeing change at a time; the
// reserve of data blocks. kPromised (linking data of writes that were acknowledged, writing blocks anew that will be
// free again): promises, room for freeing, half of the reserve. kFreeing (unlink, truncate, punch): promises.
enum class Purpose : std::uint8_t { kNormal, kPromised, kFreeing };

// What some data take at most: blocks to hold them, and what linking them puts into the tree.
struct Room {
  std::uint64_t blocks = 0;
  std::uint64_t puts = 0;   // of items that are new or become larger
  std::uint64_t bytes = 0;  // by which they become larger, in sum

  bool empty() const { return blocks == 0 && puts == 0 && bytes == 0; }
  Room& operator+=(const Room& other);
  // What is missing beside `there`.
  Room less(const Room& there) const;
};

// What a delayed write has been promised. Blocks allocated with it come out of the promise; the rest goes back when
// it ends. Movable; returned to the store it came from, which outlives it.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : space_(std::exchange(other.space_, nullptr)), room_(std::exchange(other.room_, {})) {}
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();
  const Room& room() const { return room_; }
  std::uint64_t blocks() const { return room_.blocks; }
  // Takes over the promise of `other`, which is of the same store.
  void absorb(Reservation&& other) {
    if (space_ == nullptr) space_ = other.space_;
    room_ += std::exchange(other.room_, {});
  }
  // Parts with at most so much of the promise.
  Reservation split(const Room& wanted) {
    const Room left = room_.less(wanted);
    const Room taken = room_.less(left);
    room_ = left;
    return {space_, taken};
  }

 private:
  friend class BlockSpace;
  Reservation(class BlockSpace* space, const Room& room) : space_(space), room_(room) {}
  class BlockSpace* space_ = nullptr;
  Room room_;
};

inline Room& Room::operator+=(const Room& other) {
  blocks += other.blocks;
  puts += other.puts;
  bytes += other.bytes;
  return *this;
}

inline Room Room::less(const Room& there) const {
  return {blocks - std::min(blocks, there.blocks), puts - std::min(puts, there.puts),
          bytes - std::min(bytes, there.bytes)};
}

}  // namespace mdfs::store
