// What is asked of the second copies of an object, what was done, and what there is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/options.h"
#include "engine/relocate/mover.h"
#include "geometry/geometry.h"

namespace mdfs::engine {

class OpenObject;

struct ProtectRequest {
  // What the object should have, of no extents yet.
  static ProtectRequest wanted_by(const OpenObject& object);

  // Each once; holes are skipped. Of a file: cells, as in OpenObject::extent_coord().
  std::vector<geometry::Coord> extents;
  // False: no extent keeps a second piece.
  bool copies = true;
  // Extents of an image that may share one piece, a parity. 1: each has a copy.
  unsigned width = 1;
  // Disks, a bit each, from which all pieces are to go.
  std::uint64_t drained_disks = 0;
  // Reads both pieces of each extent, and writes a bad one anew. Otherwise only pieces on absent disks are bad.
  bool verifies = false;
  // Before each piece of the work, as in MoveRequest.
  Pace pace;
};

struct ProtectOutcome {
  std::uint64_t made = 0;                                      // copies of extents that had none
  std::uint64_t repaired = 0;                                  // pieces written anew in place of bad ones
  std::uint64_t removed = 0;                                   // copies that are not wanted
  std::uint64_t bytes = 0;                                     // written, of whole blocks
  std::array<std::uint64_t, MDFS_MAX_DISKS> bytes_of_disks{};  // of these, by disk
  std::uint64_t changed = 0;  // written by others meanwhile, who made their copies themselves
  std::uint64_t no_room = 0;  // no other disk has room
  bool again = false;         // an extent lay on an absent disk alone, and has a copy now: one more call makes a second
  std::vector<MoveOutcome::Damaged> damaged;  // no piece is good

  ProtectOutcome& operator+=(ProtectOutcome&& other);
};

// The pieces of an image's stored extents, or a file's cells.
struct ProtectionState {
  std::uint64_t extents = 0;       // that are stored
  std::uint64_t copied = 0;        // of these, with a copy or in a group, all of whose disks are there
  std::uint64_t grouped = 0;       // of these, in a group
  std::uint64_t stored_bytes = 0;  // of the extents, once
  std::uint64_t copied_bytes = 0;
  std::uint64_t grouped_bytes = 0;
  std::uint64_t lost = 0;  // no piece lies on a disk that can be read
  std::uint64_t lost_bytes = 0;
  std::uint64_t in_strips = 0;  // strips that do not have the copies that they should have

  ProtectionState& operator+=(const ProtectionState& other);
};

}  // namespace mdfs::engine
