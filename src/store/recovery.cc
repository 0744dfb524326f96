// Recovery: the newest valid commit.
// SPDX-License-Identifier: Apache-2.0
#include "store/recovery.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "store/majority.h"
#include "store/missing_disk.h"
#include "store/stale_disk.h"
#include "store/validation.h"

namespace mdfs::store {
namespace {

Status check_features(const Candidate& candidate) {
  const format::Label& label = *candidate.labels.label;
  if (format::access_allowed(label.features).ok()) return {};
  std::string bits;
  for (unsigned bit = 0; bit < 64; ++bit)
    if ((label.features.unknown_incompat() >> bit) & 1) bits += fmt::format(" {}", bit);
  return {Errc::kNewerFormat, fmt::format("{}: unknown incompatible feature bit{}", candidate.disk->name(), bits)};
}

Result<std::vector<Candidate>> read_all(std::vector<std::unique_ptr<device::Disk>> disks) {
  std::vector<Candidate> candidates;
  std::string unreadable;
  for (auto& disk : disks) {
    DiskLabels labels = read_labels(*disk);
    if (!labels.label && labels.other_version)
      return Error{labels.other_version->code, disk->name() + ": " + labels.other_version->where};
    // A device that had a label when it was found may be detached since: its size is 0.
    const std::uint64_t bytes = disk->size_bytes();
    if (!labels.label && (bytes == 0 || (!labels.readable && bytes >= MDFS_MIN_DISK_SIZE))) {
      spdlog::warn("{}: no label can be read; the disk counts as missing", disk->name());
      unreadable += (unreadable.empty() ? "" : ", ") + disk->name();
      continue;
    }
    if (!labels.label)
      return Error{Errc::kForeignDisk, fmt::format("{}: no valid MDFS label{}", disk->name(),
                                                   labels.damage.empty() ? "" : " (" + labels.damage + ")")};
    candidates.push_back({std::move(disk), std::move(labels), false});
    MDFS_TRY(check_features(candidates.back()));
  }
  if (candidates.empty() && !unreadable.empty())
    return Error{Errc::kIo,
                 unreadable + ": no label can be read; examine the disk, and name another disk of the volume"};
  if (candidates.empty()) return Error{Errc::kInvalidArgument, "no disk of a volume is given"};
  return candidates;
}

// The commit before a newest slot that this version cannot use must not be taken for the newest.
Status check_slots(const std::vector<Candidate>& candidates, std::uint64_t generation) {
  for (const Candidate& candidate : candidates)
    for (const DiskLabels::UnusableSlot& slot : candidate.labels.unusable)
      if (slot.generation >= generation)
        return {slot.error.code,
                fmt::format("{}: this version cannot use the newest commit slot, of generation {} "
                            "({}); nothing was changed",
                            candidate.disk->name(), slot.generation, slot.error.within(slot.error.code))};
  return {};
}

// Disks that were written apart from those that have the winner are refused together with them.
Status check_diverged(const std::vector<Candidate>& candidates, const format::CommitSlot& winner) {
  std::uint64_t current = 0;
  std::string names;
  for (const Candidate& candidate : candidates) {
    if (!candidate.current) continue;
    current |= std::uint64_t{1} << candidate.labels.label->disk_index;
    names += (names.empty() ? "" : ", ") + candidate.disk->name();
  }
  for (const Candidate& candidate : candidates) {
    const format::Label& label = *candidate.labels.label;
    const bool member =
        label.disk_index < winner.members.size() && winner.members[label.disk_index].uuid == label.disk_uuid;
    if (!member || candidate.current) continue;
    if (const auto generation = diverged(candidates, candidate, winner, current))
      return {Errc::kFork,
              fmt::format("{} was written apart from {}: up to generation {} there, {} here. Each side may hold files "
                          "that the other lacks. Mount one side with the disks of the other detached (-o degraded), "
                          "copy the files that only it has, and then decide which side to keep",
                          candidate.disk->name(), names, *generation, winner.generation)};
  }
  return {};
}

Status check_one_volume(const std::vector<Candidate>& candidates) {
  std::map<Uuid, const Candidate*> seen;
  const Candidate& first = candidates.front();
  for (const Candidate& candidate : candidates) {
    const format::Label& label = *candidate.labels.label;
    if (label.volume_uuid != first.labels.label->volume_uuid)
      return {Errc::kForeignDisk,
              fmt::format("{} belongs to volume {}, {} to {}", candidate.disk->name(), label.volume_uuid.to_string(),
                          first.disk->name(), first.labels.label->volume_uuid.to_string())};
    const auto [same, is_new] = seen.emplace(label.disk_uuid, &candidate);
    if (!is_new)
      return {Errc::kForeignDisk, fmt::format("{} and {} are the same disk {}", same->second->disk->name(),
                                              candidate.disk->name(), label.disk_uuid.to_string())};
  }
  return {};
}

// Was a commit after the winner begun here in which a disk takes part that is not here, or only as an older copy?
bool is_perhaps_older(const std::vector<Candidate>& candidates, const format::CommitSlot& winner) {
  std::set<Uuid> here;
  for (const Candidate& candidate : candidates)
    if (candidate.current) here.insert(candidate.labels.label->disk_uuid);
  const auto lacks_one = [&](const format::CommitSlot& slot) {
    for (std::size_t i = 0; i < slot.members.size(); ++i)
      if (((slot.participants >> i) & 1) != 0 && !here.contains(slot.members[i].uuid)) return true;
    return false;
  };
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
    const auto& slots = candidate.labels.slots;
    return std::any_of(slots.begin(), slots.end(), [&](const format::CommitSlot& slot) {
      return slot.generation > winner.generation && lacks_one(slot);
    });
  });
}

// A writable mount wipes the slots of the commit.
void log_dropped(const std::vector<DroppedCommit>& dropped, const format::CommitSlot& winner) {
  for (const DroppedCommit& commit : dropped)
    spdlog::warn(
        "{}: {}; generation {} of {:%F %T} UTC therefore counts as incomplete, and generation {} is used. After a "
        "power cut this is normal, and no fsync had returned. If the disk was replaced by an older copy of itself, or "
        "has bad sectors, an fsync may have returned: until the next writable mount, -o ro with that disk detached "
        "shows "
        "generation {}",
        commit.disk, commit.why, commit.slot.generation,
        fmt::gmtime(static_cast<std::time_t>(commit.slot.time_ns / 1'000'000'000)), winner.generation,
        commit.slot.generation);
}

// The size that the winner gives a disk need not be that of its labels, but must fit what else they say.
Status check_blocks(const Candidate& candidate, std::uint64_t blocks) {
  const format::Label& label = *candidate.labels.label;
  if (blocks == label.disk_blocks) return {};
  const std::uint64_t change = std::max(blocks, label.disk_blocks) - std::min(blocks, label.disk_blocks);
  const bool fits = change >= 2 * MDFS_LABEL_AREA / label.block_size && blocks <= label.room_blocks &&
                    label.zone_blocks <= blocks && layout_of(label).resized(blocks).consistent();
  if (fits) return {};
  return {Errc::kCorrupt, fmt::format("{}: label.disk-blocks: {}, in the commit {}", candidate.disk->name(),
                                      label.disk_blocks, blocks)};
}

// A change of size was cut: the labels at the end, and their rings, are not where they will be.
void take_size(MemberDisk& member) {
  member.labels_at = layout_of(*member.label);
  member.label->disk_blocks = member.member.blocks;
  for (unsigned i = 2; i < MDFS_LABELS_PER_DISK; ++i) {
    member.labels.good[i] = false;
    member.labels.membership[i].reset();
    member.labels.ring[i].fill(std::nullopt);
  }
}

Status place(std::vector<Candidate>& candidates, Recovered& recovered) {
  for (Candidate& candidate : candidates) {
    const format::Label& label = *candidate.labels.label;
    const std::size_t index = label.disk_index;
    if (index >= recovered.members.size() || recovered.members[index].member.uuid != label.disk_uuid) {
      spdlog::warn("{}: disk {} is not a member of the volume; it is left alone", candidate.disk->name(),
                   label.disk_uuid.to_string());
      continue;
    }
    if (label.block_size != recovered.label.block_size)
      return {Errc::kCorrupt, fmt::format("{}: label.block-size: {}, elsewhere {}", candidate.disk->name(),
                                          label.block_size, recovered.label.block_size)};
    MemberDisk& member = recovered.members[index];
    MDFS_TRY(check_blocks(candidate, member.member.blocks));
    member.state = DiskState::kHealthy;
    const bool fits = member.member.blocks * label.block_size <= candidate.disk->size_bytes();
    // As it was before it was made larger, it is read as it is.
    const bool own_size =
        !fits && !candidate.current && label.disk_blocks * label.block_size <= candidate.disk->size_bytes();
    if (!fits && !own_size) {
      member.state = DiskState::kFailed;
      member.error =
          fmt::format("smaller than its label says, which is {}", format_size(member.member.blocks * label.block_size));
    } else if (member.member.is_out()) {
      member.state = DiskState::kOut;
      member.error = fmt::format("is out: it failed, and commits continue without it since generation {}",
                                 recovered.winner.states[index].generation);
    } else if (!candidate.current) {
      member.state = DiskState::kStale;
      member.error = fmt::format("does not hold generation {}", recovered.winner.generation);
    }
    member.label = label;
    member.label->membership = recovered.label.membership;
    member.label->members = recovered.label.members;
    member.disk = std::move(candidate.disk);
    member.labels = std::move(candidate.labels);
    if (label.disk_blocks != member.member.blocks && !own_size) take_size(member);
    if (member.state == DiskState::kOut)
      spdlog::warn("{}: {}; it is only read", member.disk->name(), member.error);
    else if (!member.healthy())
      spdlog::warn("{}: {}; it counts as missing", member.disk->name(), member.error);
  }
  return {};
}

// The table of the winner.
Status take_table(const std::vector<Candidate>& candidates, Recovered& recovered) {
  const format::CommitSlot& winner = recovered.winner;
  const format::Label* newest = nullptr;
  for (const Candidate& candidate : candidates) {
    const format::Label& label = *candidate.labels.label;
    if (candidate.current && (newest == nullptr || label.membership > newest->membership)) newest = &label;
    recovered.features = format::united(recovered.features, label.features);
  }
  MDFS_CHECK(newest != nullptr);
  recovered.label = *newest;
  recovered.label.membership = winner.membership;
  recovered.label.members = winner.members;
  recovered.features = format::united(recovered.features, winner.features);
  for (std::size_t i = 0; i < recovered.label.members.size(); ++i) {
    MemberDisk& member = recovered.members.emplace_back();
    member.member = recovered.label.members[i];
    if (member.member.is_hole()) {
      member.state = DiskState::kNone;
    } else if (!format::valid_disk_blocks(recovered.label.block_size, member.member.blocks)) {
      return Error{Errc::kCorrupt, fmt::format("commit.members: disk {} has {} blocks", i, member.member.blocks)};
    }
  }
  return {};
}

}  // namespace

std::size_t Recovered::disks() const {
  return static_cast<std::size_t>(std::count_if(
      members.begin(), members.end(), [](const MemberDisk& member) { return member.state != DiskState::kNone; }));
}

std::size_t Recovered::healthy() const {
  return static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(), [](const MemberDisk& member) { return member.healthy(); }));
}

std::size_t Recovered::counted() const {
  return static_cast<std::size_t>(std::popcount(format::counted_disks(winner.members)));
}

bool Recovered::majority() const {
  std::uint64_t present = 0;
  for (std::size_t i = 0; i < members.size(); ++i) present |= std::uint64_t{members[i].healthy()} << i;
  return is_majority(format::counted_disks(winner.members), present);
}

bool Recovered::holds_still() const {
  bool current_is_absent = false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    // A stale one of them is an older copy: the disk itself may be elsewhere.
    const bool absent = members[i].state != DiskState::kNone && !members[i].healthy();
    current_is_absent |= absent && winner.states[i].commit_id == winner.commit_id;
  }
  return current_is_absent || may_be_older;
}

std::string Recovered::awaited_text() const {
  std::string disks;
  for (const std::uint16_t index : awaited) {
    disks += fmt::format("{}disk {}", disks.empty() ? "" : ", ", index);
    if (index >= members.size()) continue;
    const bool old = members[index].state == DiskState::kStale;
    disks += fmt::format(" ({}{})", members[index].member.uuid.to_string(), old ? ", found in an older state" : "");
  }
  return fmt::format(
      "generation {} was written just before a power cut or kill, and is complete only if {} has it, too: attach that "
      "disk and mount again, or continue without it with -o degraded",
      winner.generation, disks);
}

Result<std::vector<FoundCommit>> find_commits(std::vector<std::unique_ptr<device::Disk>> disks) {
  MDFS_TRY_ASSIGN(const std::vector<Candidate> candidates, read_all(std::move(disks)));
  MDFS_TRY(check_one_volume(candidates));
  return list_commits(candidates);
}

Result<Recovered> recover(std::vector<std::unique_ptr<device::Disk>> disks, std::optional<std::uint64_t> rollback) {
  MDFS_TRY_ASSIGN(std::vector<Candidate> candidates, read_all(std::move(disks)));
  MDFS_TRY(check_one_volume(candidates));
  Recovered recovered;
  if (rollback == 0) {
    MDFS_TRY_ASSIGN(rollback, commit_before_newest(candidates));
  }
  auto found = find_winner(candidates, rollback);
  const Status usable = check_slots(candidates, found.ok() ? found->slot.generation : 0);
  if (!usable.ok() && !rollback) return usable.error();
  if (!usable.ok()) recovered.unusable = usable.error();
  MDFS_TRY_ASSIGN(Winner winner, std::move(found));
  for (Candidate& candidate : candidates) candidate.current = has_commit(candidate, winner.slot);
  if (!rollback) MDFS_TRY(check_diverged(candidates, winner.slot));
  recovered.may_be_older = is_perhaps_older(candidates, winner.slot);
  if (recovered.may_be_older)
    spdlog::warn("a commit after generation {} was begun with a disk that is absent, and may be complete there",
                 winner.slot.generation);
  if (!rollback) log_dropped(winner.dropped, winner.slot);
  recovered.dropped = std::move(winner.dropped);
  recovered.winner = std::move(winner.slot);
  recovered.highest_generation = winner.highest_generation;
  recovered.awaited = std::move(winner.awaited);
  recovered.damage = std::move(winner.damage);
  MDFS_TRY(take_table(candidates, recovered));
  MDFS_TRY(place(candidates, recovered));
  for (std::size_t i = 0; i < recovered.members.size(); ++i) {
    MemberDisk& member = recovered.members[i];
    if (!member.healthy()) {
      const std::string name =
          member.disk ? member.disk->name() : fmt::format("disk {} ({})", i, member.member.uuid.to_string());
      const std::uint64_t bytes = member.member.blocks * recovered.label.block_size;
      if (!member.disk && member.state != DiskState::kNone) member.error = "missing";
      if (member.is_readable())
        member.disk = std::make_unique<StaleDisk>(std::move(member.disk));
      else
        member.disk = std::make_unique<MissingDisk>(name, bytes, std::move(member.disk));
    }
  }
  if (recovered.healthy() == 0) {
    std::string failed;
    for (const MemberDisk& member : recovered.members)
      if (member.state == DiskState::kFailed)
        failed += fmt::format("{} {} is {}", failed.empty() ? ":" : ",", member.disk->name(), member.error);
    return Error{Errc::kMissingDisk, "every disk that holds the newest commit has failed" + failed};
  }
  return recovered;
}

namespace {

// Slots of later commits, which are not valid: once something else is written they must not be found to be.
void append_wipes(const MemberDisk& member, std::uint64_t generation, MutableBytes zeros,
                  std::vector<std::pair<device::Disk*, device::Io>>& writes) {
  const format::DiskLayout layout = layout_of(*member.label);
  for (const format::CommitSlot& slot : member.labels.slots) {
    if (slot.generation <= generation) continue;
    const unsigned ring_slot = format::ring_slot(slot.generation, slot.state);
    for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
      if (member.labels.ring[i][ring_slot] != slot.commit_id) continue;
      device::Io io;
      io.op = device::Op::kWrite;
      io.offset = layout.slot_offset(i, ring_slot);
      io.buffers = {zeros};
      writes.emplace_back(member.disk.get(), std::move(io));
    }
  }
}

}  // namespace

Status flush_current(const std::vector<MemberDisk>& members) {
  std::vector<device::Io> flushes(members.size());
  std::vector<device::Addressed> requests;
  for (std::size_t i = 0; i < flushes.size(); ++i) {
    flushes[i].op = device::Op::kFlush;
    if (members[i].healthy()) requests.push_back({members[i].disk.get(), &flushes[i]});
  }
  return device::run(requests);
}

Status make_present(const RecoveryWrites& recovery) {
  // A daemon that was killed may have left what was just read in the caches of the disks. The winner must be durable
  // before a slot says that it is, and before a block that it freed is written again.
  MDFS_TRY(flush_current(recovery.members));
  std::vector<device::Disk*> disks;
  for (MemberDisk& member : recovery.members) disks.push_back(member.healthy() ? member.disk.get() : nullptr);
  MDFS_TRY(repair(recovery.damage, disks, recovery.label.block_size));
  if (!recovery.damage.empty()) MDFS_TRY(flush_current(recovery.members));
  format::CommitSlot committed = recovery.winner;
  committed.state = MDFS_SLOT_COMMITTED;
  const AlignedBuffer slot = encode_slot(committed);
  AlignedBuffer zeros(MDFS_SLOT_SIZE);
  std::fill(zeros.bytes().begin(), zeros.bytes().end(), std::byte{0});
  const unsigned ring_slot = format::ring_slot(committed.generation, committed.state);
  std::vector<LabelWrite> labels;
  std::vector<std::pair<device::Disk*, device::Io>> writes;
  for (MemberDisk& member : recovery.members) {
    if (!member.healthy()) continue;
    std::vector<device::Io> slots = slot_writes(layout_of(*member.label), committed, slot);
    if (member.labels_at) {
      spdlog::warn("{}: a change of its size was cut; its labels are moved", member.disk->name());
      MDFS_TRY(move_labels(*member.disk, *member.label, *member.labels_at, committed));
      for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
        member.labels.membership[i] = recovery.label.membership;
        member.labels.good[i] = true;
        if (i >= 2) member.labels.ring[i][ring_slot] = committed.commit_id;
      }
      member.labels_at.reset();
    }
    LabelWrite label{member.disk.get(), *member.label, {}};
    for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
      if (member.labels.ring[i][ring_slot] != committed.commit_id)
        writes.emplace_back(member.disk.get(), std::move(slots[i]));
      if (!member.labels.good[i]) spdlog::warn("{}: label {} is damaged; rewritten", member.disk->name(), i);
      label.wanted[i] = member.labels.membership[i] != recovery.label.membership;
    }
    append_wipes(member, committed.generation, zeros.bytes(), writes);
    if (label.wanted != std::array<bool, MDFS_LABELS_PER_DISK>{}) labels.push_back(std::move(label));
  }
  if (!labels.empty()) MDFS_TRY(write_labels(labels));
  if (writes.empty()) return {};
  std::vector<device::Addressed> requests;
  for (auto& [disk, io] : writes) requests.push_back({disk, &io});
  MDFS_TRY(device::run(requests));
  return flush_current(recovery.members);
}

}  // namespace mdfs::store
