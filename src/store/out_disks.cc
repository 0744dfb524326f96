// Slots of commits without disks that failed.
// SPDX-License-Identifier: Apache-2.0
#include "store/out_disks.h"

#include "base/check.h"

namespace mdfs::store {

format::CommitSlot without_disks(format::CommitSlot slot, const format::CommitSlot& parent, std::uint64_t failed,
                                 const CommitName& name) {
  slot.state = MDFS_SLOT_PREPARED;
  slot.generation = name.generation;
  slot.commit_id = name.commit_id;
  slot.time_ns = name.time_ns;
  slot.parent_id = parent.commit_id;
  slot.participants &= ~failed;
  if (failed != 0) ++slot.membership;
  slot.checksum_records.clear();
  for (std::size_t i = 0; i < slot.members.size(); ++i) {
    if ((failed >> i & 1) == 0) continue;
    MDFS_CHECK(i < parent.members.size() && parent.members[i].uuid == slot.members[i].uuid);
    slot.members[i].marks |= MDFS_MARK_OUT;
    slot.space[i] = parent.space[i];
  }
  slot.states = format::member_states(slot, &parent);
  for (std::size_t i = 0; i < slot.states.size() && i < parent.members.size(); ++i)
    if (slot.members[i].is_out() && !parent.members[i].is_out())
      slot.states[i].out_ns = static_cast<std::uint64_t>(name.time_ns);
  return slot;
}

}  // namespace mdfs::store
