// Second copies of stored extents: makes missing ones, writes bad ones anew, and removes those that are not wanted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/options.h"
#include "engine/relocate/mover.h"
#include "format/stored_extent.h"
#include "geometry/geometry.h"
#include "store/store.h"

namespace mdfs::engine {

class OpenObject;
struct Core;

struct ProtectRequest {
  // Each once; holes are skipped.
  std::vector<geometry::Coord> extents;
  // False: no extent keeps a second copy.
  bool copies = true;
  // Reads both pieces of each extent, and writes a bad one anew. Otherwise only pieces on absent disks are bad.
  bool verifies = false;
  // Before each piece of the work, as in MoveRequest.
  Pace pace;
};

struct ProtectOutcome {
  std::uint64_t made = 0;      // copies of extents that had none
  std::uint64_t repaired = 0;  // pieces written anew in place of bad ones
  std::uint64_t removed = 0;   // copies that are not wanted
  std::uint64_t bytes = 0;     // written, of whole blocks
  std::uint64_t changed = 0;   // written by others meanwhile, who made their copies themselves
  std::uint64_t no_room = 0;   // no other disk has room
  bool again = false;  // an extent lay on an absent disk alone, and has a copy now: one more call makes a second
  std::vector<MoveOutcome::Damaged> damaged;  // no piece is good

  ProtectOutcome& operator+=(ProtectOutcome&& other);
};

// The pieces of an image's stored extents.
struct ProtectionState {
  std::uint64_t extents = 0;       // that are stored
  std::uint64_t copied = 0;        // of these, with two pieces on two disks that are there
  std::uint64_t stored_bytes = 0;  // of the extents, once
  std::uint64_t copied_bytes = 0;
  std::uint64_t lost = 0;  // no piece lies on a disk that can be read
  std::uint64_t lost_bytes = 0;
  std::uint64_t in_strips = 0;  // parts of extents in strips, which have no copies

  ProtectionState& operator+=(const ProtectionState& other);
};

// As a move, a new piece is read from a good one, verified, written to free blocks and published if the extent has not
// changed meanwhile. A concurrent writer wins. Does not commit. Any thread.
class Protector {
 public:
  explicit Protector(Core& core) : core_(core) {}

  Result<ProtectOutcome> run(OpenObject& object, const ProtectRequest& request);
  // Of the stored extents from a page on, some pages in each call. `page` becomes the next one, UINT64_MAX at the end.
  Result<ProtectionState> look(const OpenObject& object, std::uint64_t& page, const Stop& stop);
  // The stored extents from a page on that do not have the pieces that they should have, at most `most`, and not many
  // more than a page holds. `page` as in look().
  Result<std::vector<geometry::Coord>> find(const OpenObject& object, bool copies, std::uint64_t& page,
                                            std::size_t most);

 private:
  static constexpr std::uint64_t kPieceBytes = 4u << 20;  // read and written at once; at least an extent
  static constexpr std::size_t kPagesAtOnce = 16;

  struct Part;
  struct Job;
  // Disks that are not there, a bit each.
  std::uint64_t gone_disks() const;
  bool is_as_wanted(const format::StoredExtent& extent, bool copies, std::uint64_t gone) const;
  Status look_up(OpenObject& object, Job& job, const geometry::Coord& extent);
  Status run_batch(OpenObject& object, Job& job);
  Status read(OpenObject& object, Job& job);
  Status judge(OpenObject& object, Job& job, Part& part);
  bool place(const OpenObject& object, Job& job, Part& part);
  bool allocate(store::AllocationRequest request, Job& job, std::uint64_t blocks, format::Runs& to);
  Status write(OpenObject& object, Job& job);
  Status publish(OpenObject& object, Job& job);
  template <typename Visit, typename IsOver>
  Status each_page(const OpenObject& object, std::uint64_t& page, const Visit& visit, const IsOver& is_over);

  Core& core_;
};

}  // namespace mdfs::engine
