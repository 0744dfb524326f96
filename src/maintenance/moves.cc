// What long operations that move data share.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/moves.h"

#include <utility>
#include <vector>

#include "maintenance/objects.h"

namespace mdfs::maintenance {

Result<std::optional<engine::MoveOutcome>> move_for(OperationRun& run, MaintainedVolume& volume, Ino ino,
                                                    engine::MoveRequest request) {
  bool stopped = false;
  request.pace = [&](std::uint64_t bytes) -> Status {
    run.spend(2 * bytes);
    run.yield();
    stopped = run.stopping();
    return stopped ? Status(Error{Errc::kBusy, "told to stop"}) : Status{};
  };
  Result<engine::MoveOutcome> moved = volume.move_data(ino, request);
  if (stopped) return std::optional<engine::MoveOutcome>();
  if (!moved.ok()) return moved.error();
  return std::optional(std::move(*moved));
}

void note_damaged(OperationRecord& record, Ino ino, const engine::MoveOutcome& moved) {
  for (const engine::MoveOutcome::Damaged& damaged : moved.damaged)
    record.note_trouble({ino, damaged.number, damaged.place.block, damaged.place.disk,
                         static_cast<std::uint16_t>(damaged.error.code == Errc::kCorrupt ? MDFS_TROUBLE_DATA
                                                                                         : MDFS_TROUBLE_UNREADABLE)});
}

Result<bool> look_at_objects(OperationRun& run, store::Store& store, std::uint64_t& next,
                             const std::function<bool(std::uint64_t object)>& look) {
  constexpr std::size_t kAtOnce = 256;
  for (std::size_t looked = 0; looked < kAtOnce && !run.stopping(); ++looked) {
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items, store.scan({next, 0, 0}, format::kMaxKey, 1));
    if (items.empty()) return false;
    next = items.front().key.object;
    ++run.record.items_done;
    if (look(next)) return true;
    if (next == UINT64_MAX) return false;
    ++next;
  }
  return true;
}

}  // namespace mdfs::maintenance
