// A piece of work on second copies, of extents or of cells: its parts, and how they end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/core.h"
#include "engine/relocate/protection.h"
#include "store/store.h"

namespace mdfs::engine {

enum class ProtectState : std::uint8_t { kOpen, kNoRoom, kDamaged, kReady, kChanged, kDone };

// A part has a state; `drops_copy`; and says by has_copy() and gets_copy() what it had and gets, and by new_runs() the
// runs that were allocated for it. One thread.
template <typename Part>
struct ProtectJob {
  const ProtectRequest& request;
  std::uint64_t gone = 0;  // disks, a bit each
  std::vector<Part> parts{};
  store::Reservation reservation{};
  ProtectOutcome outcome{};

  // Pieces that were lost come before the room that new copies leave alone.
  store::Purpose purpose() const {
    if (!request.copies) return store::Purpose::kFreeing;
    const bool had_both = std::any_of(parts.begin(), parts.end(), [](const Part& part) {
      return part.state == ProtectState::kOpen && part.has_copy();
    });
    return had_both ? store::Purpose::kReserved : store::Purpose::kNormal;
  }
  // After publishing: parts that were ready and are not among these have changed meanwhile.
  void note_published(const std::vector<Part*>& published, std::uint32_t block_size) {
    for (Part& part : parts)
      if (part.state == ProtectState::kReady) part.state = ProtectState::kChanged;
    for (Part* const part : published) {
      part->state = ProtectState::kDone;
      for (const store::Run& run : part->new_runs()) {
        const std::uint64_t bytes = std::uint64_t{run.blocks} * block_size;
        outcome.bytes += bytes;
        outcome.bytes_of_disks[run.disk] += bytes;
      }
      if (part->drops_copy)
        ++outcome.removed;
      else if (part->has_copy())
        ++outcome.repaired;
      else if (part->gets_copy())
        ++outcome.made;
    }
  }
  // Gives back what was not published, counts, and forgets the parts. Without room that is no error.
  Status end(Core& core, Status status) {
    for (const Part& part : parts) {
      if (part.state != ProtectState::kDone)
        for (const store::Run& run : part.new_runs()) core.store.abandon(run);
      if (part.state == ProtectState::kNoRoom) ++outcome.no_room;
      if (part.state == ProtectState::kChanged) ++outcome.changed;
    }
    reservation = store::Reservation();
    const bool no_room = !status.ok() && status.error().code == Errc::kNoSpace;
    if (no_room) outcome.no_room += parts.size();
    parts.clear();
    return no_room ? Status() : std::move(status);
  }
};

}  // namespace mdfs::engine
