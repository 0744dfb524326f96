// Proving commits.
// SPDX-License-Identifier: Apache-2.0
#include "store/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/log.h"
#include "store/witnesses.h"

namespace mdfs::store {
namespace {

using format::CommitSlot;

// By generation, the newest first.
using ByGeneration = std::map<std::uint64_t, const CommitSlot*, std::greater<>>;

std::string disks_with(const std::vector<Candidate>& candidates, const Uuid& commit_id) {
  std::string names;
  for (const Candidate& candidate : candidates)
    if (candidate.labels.holds(commit_id)) names += (names.empty() ? "" : ", ") + candidate.disk->name();
  return names;
}

Status add(ByGeneration& proven, const CommitSlot& slot, const std::vector<Candidate>& candidates) {
  const auto [other, is_new] = proven.emplace(slot.generation, &slot);
  if (is_new || other->second->commit_id == slot.commit_id) return {};
  return {Errc::kFork,
          fmt::format("generation {} is one commit on {} and another on {}: mount one side with the disks of the other "
                      "out of reach (-o degraded), remove those from it, and add them again with --force; what was "
                      "written to them apart is lost",
                      slot.generation, disks_with(candidates, other->second->commit_id),
                      disks_with(candidates, slot.commit_id))};
}

bool has_successor(const std::vector<Candidate>& candidates, const CommitSlot& slot) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
    const auto& slots = candidate.labels.slots;
    return std::any_of(slots.begin(), slots.end(),
                       [&](const CommitSlot& other) { return other.parent_id == slot.commit_id; });
  });
}

// Does the disk belong to the members that the commit names?
bool takes_part(const Candidate& candidate, const CommitSlot& slot) {
  const format::Label& label = *candidate.labels.label;
  const std::size_t index = label.disk_index;
  if (index >= slot.space.size() || ((slot.participants >> index) & 1) == 0) return false;
  return slot.membership == 0 || slot.members[index].uuid == label.disk_uuid;
}

bool speaks_against(const Candidate& candidate, const CommitSlot& slot) {
  if (!takes_part(candidate, slot) || candidate.labels.truncated) return false;
  if (!candidate.labels.holds(slot.commit_id)) return candidate.labels.holds(slot.parent_id);
  return !witnesses_hold(*candidate.disk, candidate.labels.label->disk_index, slot);
}

bool is_proven(const std::vector<Candidate>& candidates, const CommitSlot& slot) {
  if (slot.witnesses.empty()) return false;
  if (has_successor(candidates, slot)) return true;
  for (const Candidate& candidate : candidates)
    if (speaks_against(candidate, slot)) {
      spdlog::info("{}: generation {} was not brought to its end; it is as if it had not been", candidate.disk->name(),
                   slot.generation);
      return false;
    }
  return true;
}

}  // namespace

Result<CommitSlot> find_winner(const std::vector<Candidate>& candidates, std::uint64_t& highest) {
  ByGeneration proven;
  for (const Candidate& candidate : candidates)
    for (const CommitSlot& slot : candidate.labels.slots) {
      highest = std::max(highest, slot.generation);
      if (slot.state == MDFS_SLOT_COMMITTED) MDFS_TRY(add(proven, slot, candidates));
    }
  const std::uint64_t committed = proven.empty() ? 0 : proven.begin()->first;
  std::set<Uuid> asked;  // every disk holds a slot of the same commit
  for (const Candidate& candidate : candidates)
    for (const CommitSlot& slot : candidate.labels.slots) {
      if (slot.state == MDFS_SLOT_COMMITTED || slot.generation <= committed) continue;
      if (!asked.insert(slot.commit_id).second) continue;
      if (is_proven(candidates, slot)) MDFS_TRY(add(proven, slot, candidates));
    }
  if (proven.empty()) return Error{Errc::kCorrupt, "no disk holds a commit that is proven"};
  return *proven.begin()->second;
}

}  // namespace mdfs::store
