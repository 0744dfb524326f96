// The extents of one piece of work on parity groups, what they have, and what is to become of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/cache/buffer_pool.h"
#include "engine/relocate/read_piece.h"
#include "format/parity_group.h"
#include "format/stored_extent.h"
#include "geometry/geometry.h"

namespace mdfs::engine {

inline std::uint64_t place_bit(unsigned place) { return std::uint64_t{1} << place; }

// One stored extent.
struct GroupExtent {
  geometry::Coord coord{};
  unsigned place = 0;
  StoredExtent from;         // as it was looked up
  bool by_copy = false;      // the copy becomes its first piece, because that is bad
  bool makes_first = false;  // written anew, because it is bad
  bool makes_copy = false, drops_copy = false;
  bool needs_bytes = false;
  std::uint16_t disk = 0;  // that gets the new first piece
  BufferRef bytes;         // whole blocks
  OtherBytes others;       // while they are read
  bool is_read = false;
  format::Runs first, copy;  // new ones

  const format::Runs& runs_now() const { return by_copy ? from.copy : from.runs; }
  // Where the first piece will be: before it is allocated, where it should be.
  std::uint64_t disks_then() const {
    if (!makes_first) return StoredExtent::disks_of(runs_now());
    return first.empty() ? std::uint64_t{1} << disk : StoredExtent::disks_of(first);
  }
};

struct NewParity {
  std::uint64_t members = 0;  // places
  BufferRef bytes;
  StoredExtent parity;

  bool has(unsigned place) const { return (members & place_bit(place)) != 0; }
};

struct GroupUnit {
  enum class State : std::uint8_t { kOpen, kNoRoom, kDamaged, kReady, kChanged, kDone };
  std::uint64_t page = 0;
  std::vector<GroupExtent> extents;
  std::vector<format::ParityGroup> groups;  // that there are
  std::uint64_t bad_parities = 0;           // of these, a bit each: absent, or not as they should be
  std::uint64_t dissolved = 0;              // places of groups that end
  std::vector<NewParity> parities;
  std::size_t planned_pieces = 0;  // copies and parities
  State state = State::kOpen;

  std::uint64_t bytes(std::uint32_t block_size) const {
    std::uint64_t sum = 0;
    for (const GroupExtent& extent : extents) sum += extent.needs_bytes ? extent.from.piece_blocks() * block_size : 0;
    return sum;
  }
  // With parities, and the other pieces of what is made from them.
  std::uint64_t memory_bytes(std::uint32_t block_size) const {
    std::uint64_t sum = 2 * bytes(block_size);
    for (const GroupExtent& extent : extents)
      if (extent.makes_first) sum += extent.from.others.pieces().size() * extent.from.piece_blocks() * block_size;
    return sum;
  }
  std::vector<format::Runs*> new_runs() {
    std::vector<format::Runs*> all;
    for (GroupExtent& extent : extents)
      for (format::Runs* const runs : {&extent.first, &extent.copy})
        if (!runs->empty()) all.push_back(runs);
    for (NewParity& parity : parities)
      if (!parity.parity.runs.empty()) all.push_back(&parity.parity.runs);
    return all;
  }
};

}  // namespace mdfs::engine
