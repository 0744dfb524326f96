// What long operations that move data share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "engine/relocate/mover.h"
#include "maintenance/operation.h"
#include "volume/records.h"

namespace mdfs::maintenance {

using volume::is_passed_over;

// MaintainedVolume::move_data within the budget of the run, and behind readers: request.pace is set here. Nothing, if
// the run was told to stop; then nothing has been moved.
Result<std::optional<engine::MoveOutcome>> move_for(OperationRun& run, MaintainedVolume& volume, Ino ino,
                                                    engine::MoveRequest request);

// What could not be read, or does not match its checksum, stays where it is and is trouble of the run.
void note_damaged(OperationRecord& record, Ino ino, const engine::MoveOutcome& moved);

// Calls `look` with one object after the other from `next` on, until it is true, some have been looked at, or the run
// is to stop; `next` is the one for which it was true, or the one to resume with. False: there are no more of them.
Result<bool> look_at_objects(OperationRun& run, store::Store& store, std::uint64_t& next,
                             const std::function<bool(std::uint64_t object)>& look);

}  // namespace mdfs::maintenance
