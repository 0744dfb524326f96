// What long operations that move data share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "engine/relocate/mover.h"
#include "volume/operation.h"
#include "volume/volume.h"

namespace mdfs::volume {

class VolumeImpl;

// VolumeImpl::move_data within the budget of the run, and behind readers: request.pace is set here. Nothing, if the run
// was told to stop; then nothing has been moved.
Result<std::optional<engine::MoveOutcome>> move_for(OperationRun& run, VolumeImpl& volume, Ino ino,
                                                    engine::MoveRequest request);

// Is this the error of an object that has been removed meanwhile, or made anew as something without data, or whose
// records are damaged? The operation goes on with the next object: damage of one is no reason to leave the others.
bool is_passed_over(const Error& error);

// What could not be read, or does not match its checksum, stays where it is and is trouble of the run.
void note_damaged(OperationRecord& record, Ino ino, const engine::MoveOutcome& moved);

// Calls `look` with one object after the other from `next` on, until it is true, some have been looked at, or the run
// is to stop; `next` is the one for which it was true, or the one to go on with. False: there are no more of them.
Result<bool> look_at_objects(OperationRun& run, store::Store& store, std::uint64_t& next,
                             const std::function<bool(std::uint64_t object)>& look);

}  // namespace mdfs::volume
