// Validating commits.
// SPDX-License-Identifier: Apache-2.0
#include "store/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "base/checked.h"
#include "store/checksum_records.h"

namespace mdfs::store {
namespace {

using format::ChecksumRecord;
using format::CommitSlot;

struct Validity {
  bool valid = false;                  // as far as the disks that are here can tell
  std::vector<std::uint16_t> awaited;  // that must be here to tell
  CommitDamage damage;
  std::string disk, why;  // that contradicts a commit that is not valid
};

struct ValidCommit {
  const CommitSlot* slot = nullptr;
  Validity validity;
};

// By generation, the newest first.
using ByGeneration = std::map<std::uint64_t, ValidCommit, std::greater<>>;

struct Validated {
  ByGeneration valid;
  std::vector<DroppedCommit> dropped;
};

std::string disks_with(const std::vector<Candidate>& candidates, const Uuid& commit_id) {
  std::string names;
  for (const Candidate& candidate : candidates)
    if (candidate.labels.holds(commit_id)) names += (names.empty() ? "" : ", ") + candidate.disk->name();
  return names;
}

Status add(ByGeneration& valid, ValidCommit commit, const std::vector<Candidate>& candidates) {
  const CommitSlot& slot = *commit.slot;
  const auto [other, is_new] = valid.emplace(slot.generation, std::move(commit));
  if (is_new || other->second.slot->commit_id == slot.commit_id) return {};
  return {
      Errc::kFork,
      fmt::format("generation {} is one commit on {} and another on {}: they were written apart. Each side may hold "
                  "files that the other lacks. Mount one side with the disks of the other detached (-o degraded), copy "
                  "the files that only it has, and then decide which side to keep",
                  slot.generation, disks_with(candidates, other->second.slot->commit_id),
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
  return slot.members[index].uuid == label.disk_uuid;
}

// A later commit, or another one of the same generation, was made on this disk without this one.
bool continues_without(const Candidate& candidate, const CommitSlot& slot) {
  const auto& slots = candidate.labels.slots;
  return !candidate.labels.holds(slot.commit_id) &&
         std::any_of(slots.begin(), slots.end(),
                     [&](const CommitSlot& other) { return other.generation >= slot.generation; });
}

std::vector<ChecksumRecord> mismatches(const Candidate& candidate, const CommitSlot& slot) {
  return mismatching_records(*candidate.disk, candidate.labels.label->disk_index, slot);
}

bool has_records(const Candidate& candidate, const CommitSlot& slot) {
  return std::any_of(slot.checksum_records.begin(), slot.checksum_records.end(),
                     [&](const ChecksumRecord& record) { return record.disk == candidate.labels.label->disk_index; });
}

// Its blocks lie within these runs, which are merged.
bool covered(const ChecksumRecord& record, const std::vector<alloc::Run>& runs, std::uint32_t block_size) {
  return std::any_of(runs.begin(), runs.end(), [&](const alloc::Run& run) {
    return run.disk == record.disk && run.block * block_size <= record.offset() &&
           record.offset() + record.bytes() <= run.end() * block_size;
  });
}

alloc::Run run_of(const ChecksumRecord& record, std::uint32_t block_size) {
  const std::uint64_t first = record.offset() / block_size;
  const std::uint64_t end = ceil_div(record.offset() + record.bytes(), std::uint64_t{block_size});
  return {record.disk, first, static_cast<std::uint32_t>(end - first)};
}

// Are all of these records of nodes and pieces of data that have a good copy elsewhere? Then what is bad
// is kept.
bool excused(const std::vector<Candidate>& candidates, const CommitSlot& slot, const std::vector<ChecksumRecord>& bad,
             Validity& validity) {
  const std::uint32_t block_size = candidates.front().labels.label->block_size;
  std::array<device::Disk*, MDFS_MAX_DISKS> disks{};
  for (const Candidate& candidate : candidates)
    if (takes_part(candidate, slot)) disks[candidate.labels.label->disk_index] = candidate.disk.get();
  auto nodes = read_commit_nodes(slot, disks, block_size);
  if (!nodes.ok()) return false;
  std::vector<alloc::Run> bad_runs;
  for (const ChecksumRecord& record : bad) bad_runs.push_back(run_of(record, block_size));
  PiecesElsewhere pieces = pieces_good_elsewhere(slot, std::move(nodes->items), bad_runs, disks, block_size);
  nodes->runs.insert(nodes->runs.end(), pieces.runs.begin(), pieces.runs.end());
  const std::vector<alloc::Run> runs = alloc::merged(std::move(nodes->runs));
  if (!std::all_of(bad.begin(), bad.end(),
                   [&](const ChecksumRecord& record) { return covered(record, runs, block_size); }))
    return false;
  validity.damage = {std::move(nodes->bad), std::move(pieces.bad)};
  return true;
}

// Validates a commit by its checksum records.
Validity validate(const std::vector<Candidate>& candidates, const CommitSlot& slot) {
  const auto give_up = [&](std::string disk, std::string why) {
    return Validity{false, {}, {}, std::move(disk), std::move(why)};
  };
  Validity validity;
  std::uint64_t awaited = slot.participants;
  std::vector<ChecksumRecord> bad;
  std::string bad_disk;
  for (const Candidate& candidate : candidates) {
    if (!takes_part(candidate, slot) || candidate.labels.truncated) continue;
    if (continues_without(candidate, slot)) return give_up(candidate.disk->name(), "the disk has advanced without it");
    const std::vector<ChecksumRecord> here = mismatches(candidate, slot);
    if (!candidate.labels.holds(slot.commit_id)) {
      const bool holds_parent = candidate.labels.holds(slot.parent_id);
      if (holds_parent && !here.empty())
        return give_up(candidate.disk->name(), "the disk holds neither its slot nor its blocks");
      // An older state than the disk took part in, unless what the commit wrote is there.
      if (!holds_parent && (!here.empty() || !has_records(candidate, slot))) continue;
    }
    if (bad.empty() && !here.empty()) bad_disk = candidate.disk->name();
    bad.insert(bad.end(), here.begin(), here.end());
    awaited &= ~(std::uint64_t{1} << candidate.labels.label->disk_index);
  }
  if (!bad.empty() && !excused(candidates, slot, bad, validity))
    return give_up(std::move(bad_disk), "what it wrote does not match its checksums");
  validity.valid = true;
  for (std::uint16_t i = 0; i < MDFS_MAX_DISKS; ++i)
    if ((awaited >> i) & 1) validity.awaited.push_back(i);
  return validity;
}

// May a caller have learned that the commit is durable? A commit without records was not durable before its committed
// slot was written.
bool may_be_acknowledged(const std::vector<Candidate>& candidates, const CommitSlot& slot) {
  if (slot.state == MDFS_SLOT_COMMITTED) return true;
  return !slot.checksum_records.empty() && (has_successor(candidates, slot) || validate(candidates, slot).valid);
}

// Every valid commit; of those older than the newest committed one, those that it validates.
Result<Validated> find_valid(const std::vector<Candidate>& candidates) {
  Validated found;
  for (const Candidate& candidate : candidates)
    for (const CommitSlot& slot : candidate.labels.slots)
      if (slot.state == MDFS_SLOT_COMMITTED) MDFS_TRY(add(found.valid, {&slot, {true, {}, {}, {}, {}}}, candidates));
  const std::uint64_t committed = found.valid.empty() ? 0 : found.valid.begin()->first;
  std::set<Uuid> asked;  // every disk holds a slot of the same commit
  for (const Candidate& candidate : candidates)
    for (const CommitSlot& slot : candidate.labels.slots) {
      if (slot.state == MDFS_SLOT_COMMITTED || slot.checksum_records.empty()) continue;
      if (!asked.insert(slot.commit_id).second) continue;
      Validity validity;
      if (has_successor(candidates, slot))
        validity.valid = true;
      else if (slot.generation > committed)
        validity = validate(candidates, slot);
      if (validity.valid)
        MDFS_TRY(add(found.valid, {&slot, std::move(validity)}, candidates));
      else if (slot.generation > committed)
        found.dropped.push_back({slot, std::move(validity.disk), std::move(validity.why)});
    }
  if (found.valid.empty()) return Error{Errc::kCorrupt, "no disk holds a complete commit"};
  return found;
}

std::string generations(const ByGeneration& commits) {
  std::string text;
  for (const auto& [generation, commit] : commits) text += fmt::format("{}{}", text.empty() ? "" : ", ", generation);
  return text;
}

}  // namespace

Result<Winner> find_winner(const std::vector<Candidate>& candidates, std::optional<std::uint64_t> generation) {
  MDFS_TRY_ASSIGN(Validated found, find_valid(candidates));
  ByGeneration& valid = found.valid;
  const auto chosen = generation ? valid.find(*generation) : valid.begin();
  if (chosen == valid.end())
    return Error{Errc::kNotFound, fmt::format("there is no complete commit of generation {}; the disks hold {}",
                                              *generation, generations(valid))};
  Winner winner{};
  for (const Candidate& candidate : candidates)
    for (const CommitSlot& slot : candidate.labels.slots)
      winner.highest_generation = std::max(winner.highest_generation, slot.generation);
  winner.slot = *chosen->second.slot;
  winner.awaited = std::move(chosen->second.validity.awaited);
  winner.damage = std::move(chosen->second.validity.damage);
  winner.dropped = std::move(found.dropped);
  std::erase_if(winner.dropped, [&](const auto& one) { return one.slot.generation <= winner.slot.generation; });
  return winner;
}

Result<std::uint64_t> commit_before_newest(const std::vector<Candidate>& candidates) {
  MDFS_TRY_ASSIGN(const Validated found, find_valid(candidates));
  const ByGeneration& valid = found.valid;
  if (valid.size() < 2)
    return Error{Errc::kNotFound,
                 fmt::format("the disks hold no complete commit but that of generation {}", valid.begin()->first)};
  return std::next(valid.begin())->first;
}

std::vector<FoundCommit> list_commits(const std::vector<Candidate>& candidates) {
  std::map<std::pair<std::uint64_t, Uuid>, FoundCommit, std::greater<>> found;
  for (const Candidate& candidate : candidates) {
    std::set<Uuid> here;
    for (const CommitSlot& slot : candidate.labels.slots) {
      FoundCommit& commit = found[{slot.generation, slot.commit_id}];
      if (commit.disks == 0 || slot.state == MDFS_SLOT_COMMITTED) commit.slot = slot;
      commit.disks += here.insert(slot.commit_id).second ? 1 : 0;
    }
  }
  const auto validated = find_valid(candidates);
  std::vector<FoundCommit> commits;
  for (auto& [key, commit] : found) {
    if (validated.ok()) {
      const auto known = validated->valid.find(commit.slot.generation);
      commit.valid = known != validated->valid.end() && known->second.slot->commit_id == commit.slot.commit_id;
    }
    commits.push_back(std::move(commit));
  }
  return commits;
}

std::optional<std::uint64_t> diverged(const std::vector<Candidate>& candidates, const Candidate& candidate,
                                      const CommitSlot& winner, std::uint64_t current) {
  const CommitSlot* newest = nullptr;
  for (const CommitSlot& slot : candidate.labels.slots)
    if ((newest == nullptr || slot.generation > newest->generation) && may_be_acknowledged(candidates, slot))
      newest = &slot;
  if (newest == nullptr) return std::nullopt;
  // The others know the newest commit that they made together with this disk: it has nothing that they do not build on.
  const std::size_t index = candidate.labels.label->disk_index;
  const format::MemberState known = index < winner.states.size() ? winner.states[index] : format::MemberState{};
  if (known.commit_id == newest->commit_id) return std::nullopt;
  // A power cut leaves a disk at most one commit ahead of what the others know of it, and not by a committed slot with
  // checksum records: those follow a flush of every participant. A disk that was put back from an older copy lies
  // behind that.
  const bool cut_explains = newest->parent_id == known.commit_id &&
                            (newest->state != MDFS_SLOT_COMMITTED || newest->checksum_records.empty());
  if (newest->generation > known.generation && !cut_explains) return newest->generation;
  for (std::size_t i = 0; i < std::min(newest->members.size(), winner.members.size()); ++i)
    if (newest->members[i].uuid == winner.members[i].uuid && ((newest->participants & current) >> i & 1) != 0)
      return std::nullopt;
  return newest->generation;
}

bool has_commit(const Candidate& candidate, const CommitSlot& slot) {
  if (candidate.labels.holds(slot.commit_id)) return true;
  if (!takes_part(candidate, slot) || slot.checksum_records.empty() || continues_without(candidate, slot)) return false;
  return (candidate.labels.holds(slot.parent_id) || has_records(candidate, slot)) &&
         mismatches(candidate, slot).empty();
}

}  // namespace mdfs::store
