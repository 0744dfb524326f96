// Disks that fail during a commit: the commit continues without them.
//
// A commit that cannot be written is withdrawn from the disks that work, and begun again with a higher generation. In
// its table the failed disks are marked as out. Nothing that was acknowledged is lost by that: the last durable commit
// reaches no byte that the failed disks had not flushed. Data that were published since are another matter. They may
// have taken the place of acknowledged data. If a failed disk may lack some that no other disk has, the marks are
// written to a commit with the contents of the last one, and the volume becomes read-only: all changes since then are
// reported as lost.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "format/limits.h"
#include "format/member.h"
#include "store/majority.h"
#include "store/out_disks.h"
#include "store/store_impl.h"

namespace mdfs::store {
namespace {

using format::disk_bit;

constexpr const char* kMountAgain = "; unmount, and mount again to continue without the disk";
constexpr const char* kCopyBack = "; copy the disk back as mdfs volume status says, then unmount and mount again";

bool has_copy(const format::Pointer& node, std::uint64_t disks) {
  const auto places = node.places();
  return std::any_of(places.begin(), places.end(),
                     [&](const format::Address& address) { return (disks & disk_bit(address.disk)) != 0; });
}

Error too_few() { return {Errc::kIo, "too few disks are left"}; }

}  // namespace

// A write may be repeated once on the same disk. A flush may not: a disk that fails it may drop what it had accepted,
// and report success the next time.
struct StoreImpl::Failing {
  std::uint64_t out = 0;      // left out
  std::uint64_t flushes = 0;  // of these: a flush failed
  std::uint64_t once = 0;     // a write failed

  void note(const DiskFaults& faults) {
    out |= faults.flushes | (faults.writes & once);
    flushes |= faults.flushes;
    once |= faults.writes;
  }
};

std::vector<Participant> StoreImpl::participants_in(std::uint64_t disks) const {
  std::vector<Participant> some;
  for (const Participant& participant : participants_)
    if ((disks & disk_bit(participant.index)) != 0) some.push_back(participant);
  return some;
}

Status StoreImpl::write_sealed(SealedCommit& sealed, std::uint64_t& unmarked) {
  format::CommitSlot parent;
  {
    const std::lock_guard lock(commit_mutex_);
    parent = last_commit_;
  }
  if (sealed.loses_data) return {Errc::kIo, fmt::format("data were published on a disk that is out{}", kMountAgain)};
  const format::CommitSlot wanted = sealed.slot;
  Failing failing;
  for (;;) {
    DiskFaults faults;
    const Status written = write_commit(sealed, participants_in(sealed.slot.participants), label_.block_size, &faults);
    if (written.ok()) break;
    if (faults.all() == 0) return written;
    failing.note(faults);
    if (sealed.slot.state == MDFS_SLOT_COMMITTED) {
      if (!finalize_where_possible(sealed.slot, failing).ok()) return written;
      break;
    }
    spdlog::error("the commit of generation {} failed: {}", sealed.slot.generation,
                  written.error().within(written.error().code));
    if (!withdraw(sealed.slot, parent, wanted.participants, failing).ok()) return written;
    // A tree that lies on the failed disks alone, as after a drain.
    const std::uint64_t rest = wanted.participants & ~failing.out;
    if (!has_copy(parent.root(MDFS_ROOT_MAIN)->pointer, rest) || !has_copy(wanted.root(MDFS_ROOT_MAIN)->pointer, rest))
      return written;
    if (may_lose(sealed, failing)) {
      MDFS_TRY_ASSIGN(const SealedCommit marks, write_marks(failing.out));
      const std::lock_guard lock(commit_mutex_);
      last_commit_ = marks.slot;
      generation_ = marks.slot.generation;
      bool deleted = false;
      for (unsigned disk = 0; disk < disk_count_; ++disk)
        deleted = deleted || ((failing.out & disk_bit(disk)) != 0 && disk_slot(disk).deleted());
      return {written.error().code, written.error().where + (deleted ? kCopyBack : kMountAgain)};
    }
    if (next_generation() > format::kMaxGeneration || wanted.membership >= format::kMaxMembership) return written;
    sealed.slot =
        without_disks(wanted, parent, failing.out, {take_generation(), environment_.new_uuid(), environment_.now_ns()});
    sealed.checksum_records.reset();
  }
  unmarked = failing.out & sealed.slot.participants;
  note_out(sealed.slot, parent);
  return {};
}

Status StoreImpl::withdraw(const format::CommitSlot& slot, const format::CommitSlot& parent, std::uint64_t present,
                           Failing& failing) {
  std::optional<format::CommitSlot> unfinalized;
  {
    const std::lock_guard lock(commit_mutex_);
    unfinalized = unfinalized_;
  }
  const std::uint64_t counted = format::counted_disks(parent.members);
  for (;;) {
    const std::uint64_t rest = present & ~failing.out;
    if (failing.out != 0 &&
        ((failing.out & ~counted) != 0 || !may_continue(counted, present & counted, rest & counted))) {
      (void)abandon_commit(slot, unfinalized, participants_in(slot.participants));
      return too_few();
    }
    DiskFaults faults;
    Status abandoned = abandon_commit(slot, unfinalized, participants_in(rest & slot.participants), &faults);
    if (!abandoned.ok() && faults.all() == 0) return abandoned;
    if (abandoned.ok()) break;
    failing.note(faults);
  }
  const std::lock_guard lock(commit_mutex_);
  unfinalized_.reset();
  return {};
}

Status StoreImpl::finalize_where_possible(const format::CommitSlot& slot, Failing& failing) {
  const std::uint64_t counted = format::counted_disks(slot.members);
  for (;;) {
    const std::uint64_t rest = slot.participants & ~failing.out;
    if (failing.out != 0 &&
        (!may_continue(counted, slot.participants, rest) || !has_copy(slot.root(MDFS_ROOT_MAIN)->pointer, rest)))
      return too_few();
    DiskFaults faults;
    Status finalized = finalize_commit(slot, participants_in(rest), &faults);
    if (finalized.ok() || faults.all() == 0) return finalized;
    failing.note(faults);
  }
}

Status StoreImpl::finalize_last(const format::CommitSlot& slot) {
  Failing failing;
  MDFS_TRY(finalize_where_possible(slot, failing));
  {
    const std::lock_guard lock(commit_mutex_);
    unfinalized_.reset();
  }
  return failing.out == 0 ? Status() : mark_out(failing.out);
}

// Would the commit without the failed disks lack something that it publishes? A disk that fails writes only may still
// flush the data that it has accepted.
bool StoreImpl::may_lose(const SealedCommit& sealed, const Failing& failing) {
  if (failing.out == 0) return false;
  const std::uint64_t rest = sealed.slot.participants & ~failing.out;
  if (!std::all_of(sealed.pointers.begin(), sealed.pointers.end(),
                   [&](const format::Pointer& node) { return has_copy(node, rest); }))
    return true;
  const std::uint64_t needed = sealed.published_data.needed_of(failing.out, rest);
  if ((needed & failing.flushes) != 0) return true;
  return needed != 0 && !flush_all(participants_in(needed)).ok();
}

Result<SealedCommit> StoreImpl::write_marks(std::uint64_t failed) {
  SealedCommit marks;
  marks.published.emplace();
  format::CommitSlot parent;
  {
    const std::lock_guard lock(commit_mutex_);
    parent = last_commit_;
    marks.sequence = durable_;
  }
  if (next_generation() > format::kMaxGeneration || parent.membership >= format::kMaxMembership)
    return Error{Errc::kReadOnly, "there is no number for another commit"};
  format::CommitSlot slot = parent;
  slot.flags = 0;
  slot.participants = 0;
  for (const Participant& participant : participants_) slot.participants |= disk_bit(participant.index);
  slot.participants &= format::counted_disks(parent.members);  // the others have just been marked
  marks.slot = without_disks(slot, parent, failed, {take_generation(), environment_.new_uuid(), environment_.now_ns()});
  std::uint64_t unmarked = 0;
  MDFS_TRY(write_sealed(marks, unmarked));
  if (unmarked != 0) return Error{Errc::kIo, "another disk failed"};
  return marks;
}

Status StoreImpl::mark_out(std::uint64_t failed) {
  MDFS_TRY_ASSIGN(const SealedCommit marks, write_marks(failed));
  note_committed(marks);
  return {};
}

void StoreImpl::note_out(const format::CommitSlot& slot, const format::CommitSlot& parent) {
  std::uint64_t out = 0;
  for (unsigned i = 0; i < slot.members.size() && i < parent.members.size(); ++i)
    if (slot.members[i].is_out() && !parent.members[i].is_out()) out |= disk_bit(i);
  if (out == 0) return;
  for (unsigned i = 0; i < slot.members.size(); ++i) {
    if ((out & disk_bit(i)) == 0) continue;
    disk_slot(i).leave_out();
    space_.leave_out(static_cast<std::uint16_t>(i), slot.space[i]);
    spdlog::critical("{} failed and is out: the volume continues without it; run 'mdfs disk replace'",
                     disk_slot(i).name());
  }
  const std::lock_guard lock(commit_mutex_);
  newly_out_ |= out;
  unwalked_out_ |= out;
}

Status StoreImpl::check_walked(unsigned index) {
  const std::lock_guard lock(commit_mutex_);
  if ((unwalked_out_ & disk_bit(index)) == 0) return {};
  unwalked_out_ &= ~disk_bit(index);
  return {Errc::kNotEmpty, fmt::format("disk {} failed meanwhile", index)};
}

void StoreImpl::take_over_out() {
  std::uint64_t out = 0;
  {
    const std::lock_guard lock(commit_mutex_);
    out = std::exchange(newly_out_, 0);
    if (out != 0) membership_ = std::max(membership_, last_commit_.membership);
  }
  if (out == 0) return;
  std::erase_if(participants_,
                [&](const Participant& participant) { return (out & disk_bit(participant.index)) != 0; });
  const std::lock_guard lock(table_mutex_);
  for (unsigned i = 0; i < disk_count_; ++i) {
    if ((out & disk_bit(i)) == 0) continue;
    members_[i].member.marks |= MDFS_MARK_OUT;
    members_[i].state = DiskState::kOut;
    members_[i].error = "is out: it failed";
  }
}

}  // namespace mdfs::store
