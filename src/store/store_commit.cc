// Commits of the store: sealed under the writer's lock, written beside the next transactions.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "format/limits.h"
#include "store/checksum_records.h"
#include "store/majority.h"
#include "store/store_impl.h"

namespace mdfs::store {
namespace {

constexpr unsigned kPendingFreeCommits = 2;

}  // namespace

Status StoreImpl::read_only_error() const { return {Errc::kReadOnly, read_only_reason()}; }

bool StoreImpl::repairs_itself() const {
  if (read_only_ || holds_still()) return false;
  return shared_.io.has_bad_copies() || (has_far_nodes_ && space_.has_room_at_home(Space::When::kSoon));
}

bool StoreImpl::dirty() const {
  if (shared_.io.has_bad_copies() && !read_only_ && !holds_still()) return true;
  const std::lock_guard lock(commit_mutex_);
  return applied_ > durable_;
}

Status StoreImpl::commit() { return commit_until(applied_, repairs_itself()); }

Status StoreImpl::commit_freed() { return holds_still() ? Status() : commit_pending_free(); }

Status StoreImpl::commit_pending_free() {
  for (unsigned i = 0; i < kPendingFreeCommits && space_.pending_free() > 0; ++i)
    MDFS_TRY(commit_until(applied_, true));
  return {};
}

unsigned StoreImpl::waiting_for_commit() const {
  const std::lock_guard lock(commit_mutex_);
  return waiting_;
}

// A forced commit is one that begins after the call. Callers share it, as they share others.
Status StoreImpl::commit_until(std::uint64_t sequence, bool forced) {
  std::optional<std::uint64_t> goal;
  const auto is_done = [&] { return forced ? ended_commits_ >= *goal : durable_ >= sequence; };
  for (;;) {
    {
      std::unique_lock lock(commit_mutex_);
      if (!goal) goal = begun_commits_ + 1;
      ++waiting_;
      committed_.wait(lock, [&] { return !in_flight_ || is_done(); });
      --waiting_;
      if (failed_) return {Errc::kIo, read_only_reason_};
      if (is_done()) return {};
      if (read_only_) return {Errc::kReadOnly, read_only_reason_};
    }
    std::unique_lock writer(writer_);
    {
      const std::lock_guard lock(commit_mutex_);
      if (in_flight_ || failed_ || is_done()) continue;
      in_flight_ = true;
    }
    take_over_out();
    const Status status = lead_commit(writer, Change::kContents);
    {
      const std::lock_guard lock(commit_mutex_);
      in_flight_ = false;
      committed_.notify_all();
    }
    return status;
  }
}

Status StoreImpl::lead_commit(std::unique_lock<std::recursive_mutex>& writer, Change change) {
  MDFS_TRY(begin_writing());
  {
    const std::lock_guard lock(commit_mutex_);
    ++begun_commits_;
  }
  MDFS_TRY(prepare_commit());
  SealedCommit sealed = seal(change);
  writer.unlock();
  const std::uint64_t generation = sealed.slot.generation;
  std::uint64_t unmarked = 0;
  const Status written = write_sealed(sealed, unmarked);
  if (!written.ok()) {
    fail(written.error(), generation);
    return written;
  }
  space_.renumber(generation, sealed.slot.generation);
  note_committed(sealed);
  if (unmarked == 0) return {};
  const Status marked = mark_out(unmarked);
  if (!marked.ok()) fail(marked.error(), sealed.slot.generation);
  return {};
}

std::uint64_t StoreImpl::next_generation() const {
  const auto place = [](std::uint64_t generation) { return format::ring_slot(generation, MDFS_SLOT_PREPARED); };
  const std::uint64_t next = next_generation_;
  return place(next) == place(generation_) ? next + 1 : next;
}

std::uint64_t StoreImpl::take_generation() {
  const std::uint64_t generation = next_generation();
  next_generation_ = generation + 1;
  return generation;
}

// A commit that fails halfway stops all writing. So none begins where the filesystem below a disk has no room for its
// nodes and pages, and for the data that others write meanwhile.
Status StoreImpl::check_room_below() {
  const std::uint64_t needed = shared_.tree.changed_nodes() * std::uint64_t{MDFS_NODE_SIZE} + kCommitRoomBytes;
  for (const Participant& participant : participants_)
    if (const std::uint64_t room = disk_slot(participant.index).room_bytes(); room < needed)
      return {Errc::kNoSpace, fmt::format("the filesystem or pool of {} has {} left; a commit needs {} there",
                                          participant.disk->name(), format_size(room), format_size(needed))};
  return {};
}

// Loads all that sealing needs: the bitmap pages of replaced nodes, and a place for every changed node.
Status StoreImpl::prepare_commit() {
  MDFS_TRY(check_room_below());
  if (next_generation() > format::kMaxGeneration) return {Errc::kReadOnly, "there is no number for another commit"};
  if (space_.gives_out()) {
    rewrite_bad_copies();
    bring_nodes_home();
  }
  free_nodes();
  space_.renew_places();
  // Room for them was made when they changed.
  if (space_.places() >= shared_.tree.changed_nodes()) return {};
  return {Errc::kNoSpace, "no room for the changed nodes of the tree"};
}

void StoreImpl::free_nodes() {
  std::vector<Run> runs;
  for (const format::Pointer& pointer : replaced_)
    for (const Run& run : space_.runs_of(pointer.places())) runs.push_back(run);
  replaced_.clear();
  space_.pin(runs);
  // One after another: on a damaged volume two nodes may lie on each other.
  for (const Run& run : runs) {
    const Status checked = space_.check({}, {&run, 1});
    if (checked.ok())
      space_.free({&run, 1}, Space::Holds::kNodes);
    else
      spdlog::error("a replaced tree node: {}", checked.error().message());
  }
  space_.unpin(runs);
}

StoreImpl::Rewrite StoreImpl::rewrite(const Key& key, std::uint16_t level, const format::Pointer& pointer) {
  TreeReader reader(shared_, true);
  const auto held = reader.hold_node(key, level, pointer);
  if (!held.ok() || !*held) return Rewrite::kNotThere;
  if (!space_.fill_pool(shared_.tree.changed_nodes() + format::kMaxTreeLevel + 1, Purpose::kNormal, {}).ok())
    return Rewrite::kNoRoom;
  std::vector<format::Pointer> freed;
  {
    const std::unique_lock lock(shared_.mutex);
    shared_.tree.touch(key, level, reader, freed);
  }
  for (const format::Pointer& old : freed) shared_.cache.forget(old);
  replaced_.insert(replaced_.end(), freed.begin(), freed.end());
  return Rewrite::kDone;
}

// A node with a bad copy is written anew by this commit, with all its copies. Left for the next one where there is no
// room for that.
void StoreImpl::rewrite_bad_copies() {
  for (const BadCopy& bad : shared_.io.take_bad_copies()) {
    if (rewrite(bad.key, bad.level, bad.pointer) != Rewrite::kDone) continue;
    const std::uint16_t disk = bad.pointer.address[bad.copy].disk;
    if (!bad.unreadable) note_checksum_error(disk);
    count_repaired(disk);
    spdlog::warn("disk {} block {}: a copy of a tree node is bad ({}); rewritten", disk,
                 bad.pointer.address[bad.copy].block, bad.why);
  }
}

// Nodes that a full volume has put among the data give their blocks back when there is room for them elsewhere.
void StoreImpl::bring_nodes_home() {
  constexpr unsigned kAtOnce = 64;
  for (unsigned i = 0; i < kAtOnce && !far_nodes_.empty() && space_.has_room_at_home(Space::When::kNow); ++i) {
    const FarNode node = far_nodes_.back();
    if (rewrite(node.key, node.level, node.pointer) == Rewrite::kNoRoom) break;
    far_nodes_.pop_back();
  }
  has_far_nodes_ = !far_nodes_.empty();
}

SealedCommit StoreImpl::seal(Change change) {
  SealedCommit sealed;
  sealed.sequence = applied_;
  format::CommitSlot& slot = sealed.slot;
  slot.generation = take_generation();
  const std::unique_lock lock(shared_.mutex);
  const std::size_t count = shared_.tree.changed_nodes();
  sealed.nodes = AlignedBuffer(count * MDFS_NODE_SIZE);
  const format::Root root = shared_.tree.seal([&](const NodePtr& node) {
    const NodePlace place = space_.take_place();
    const MutableBytes bytes = sealed.nodes.bytes().subspan(sealed.pointers.size() * MDFS_NODE_SIZE, MDFS_NODE_SIZE);
    node->body.generation = slot.generation;
    node->body.address = place.address;
    format::encode(node->body, bytes);
    const format::Pointer pointer = format::make_pointer(bytes, slot.generation, place.places());
    shared_.cache.insert(pointer, node, true);
    sealed.pointers.push_back(pointer);
    if (space_.is_far(place) && far_nodes_.size() < kMaxFarNodes && !is_empty(*node)) {
      far_nodes_.push_back({first_key(*node), node->body.level, pointer});
      has_far_nodes_ = true;
    }
    return pointer;
  });
  note_tree();
  space_.seal(slot.generation, sealed.sectors, slot.space);
  slot.volume_uuid = label_.volume_uuid;
  slot.commit_id = environment_.new_uuid();
  slot.time_ns = environment_.now_ns();
  for (const Participant& participant : participants_) slot.participants |= std::uint64_t{1} << participant.index;
  slot.next_object = next_object_;
  slot.objects = objects_;
  slot.membership = membership_;
  slot.members = table();
  slot.flags = is_majority(format::counted_disks(slot.members), slot.participants) ? 0 : MDFS_COMMIT_DEGRADED;
  slot.roots = {root};
  slot.features = format::united(features_, {0, added_ro_compat_, added_incompat_});
  sealed.published_data = space_.take_published_data();
  sealed.loses_data = space_.loses(sealed.published_data);
  sealed.published = space_.take_published();
  sealed.checksum_records = list_checksum_records(sealed, change);
  const std::lock_guard commit_lock(commit_mutex_);
  slot.parent_id = last_commit_.commit_id;
  slot.states = format::member_states(slot, &last_commit_);
  slot.reserve = last_commit_.reserve;
  slot.roots.front().reserve = last_commit_.root(MDFS_ROOT_MAIN)->reserve;
  return sealed;
}

std::optional<std::vector<format::ChecksumRecord>> StoreImpl::list_checksum_records(const SealedCommit& sealed,
                                                                                    Change change) {
  bool known = sealed.published && (features_.incompat & MDFS_INCOMPAT_CHECKSUM_RECORDS) != 0 &&
               sealed.slot.flags == 0 && change == Change::kContents;
  std::vector<format::ChecksumRecord> checksum_records;
  for (const Participant& participant : participants_) {
    const auto writes = disk_slot(participant.index).unflushed().take();
    known = known && writes &&
            add_checksum_records(participant.index, *writes, *sealed.published, label_.block_size, checksum_records);
  }
  if (!known) return std::nullopt;
  return checksum_records;
}

Status StoreImpl::write_committed_slots() {
  std::optional<format::CommitSlot> slot;
  {
    const std::lock_guard lock(commit_mutex_);
    slot = unfinalized_;
  }
  if (!slot || read_only_) return {};
  const Status written = finalize_last(*slot);
  if (!written.ok()) fail({written.error().code, "finalizing it: " + written.error().where}, slot->generation);
  return written;
}

Status StoreImpl::finalize() {
  for (;;) {
    {
      std::unique_lock lock(commit_mutex_);
      committed_.wait(lock, [&] { return !in_flight_; });
      if (failed_) return {Errc::kIo, read_only_reason_};
      if (!unfinalized_) return {};
    }
    {
      const std::lock_guard writer(writer_);
      const std::lock_guard lock(commit_mutex_);
      if (in_flight_) continue;
      in_flight_ = true;
    }
    const Status finalized = write_committed_slots();
    const std::lock_guard lock(commit_mutex_);
    in_flight_ = false;
    committed_.notify_all();
    return finalized;
  }
}

bool StoreImpl::wait_for_unfinalized(std::chrono::nanoseconds idle) {
  std::unique_lock lock(commit_mutex_);
  const auto stopped = [&] { return stop_waiting_ || failed_; };
  for (;;) {
    committed_.wait(lock, [&] { return stop_waiting_ || (unfinalized_ && !in_flight_ && !failed_); });
    if (stop_waiting_) return false;
    const Uuid commit_id = unfinalized_->commit_id;
    if (committed_.wait_for(lock, idle, stopped)) continue;
    if (!in_flight_ && unfinalized_ && unfinalized_->commit_id == commit_id) return true;
  }
}

void StoreImpl::stop_waiting() {
  const std::lock_guard lock(commit_mutex_);
  stop_waiting_ = true;
  committed_.notify_all();
}

void StoreImpl::note_committed(const SealedCommit& sealed) {
  for (const format::Pointer& pointer : sealed.pointers) shared_.cache.unpin(pointer);
  generation_ = sealed.slot.generation;
  has_committed_ = true;
  {
    const std::lock_guard lock(commit_mutex_);
    durable_ = sealed.sequence;
    ended_commits_ = begun_commits_;
    last_commit_ = sealed.slot;
    unfinalized_.reset();
    if (!sealed.slot.checksum_records.empty()) unfinalized_ = sealed.slot;
    committed_.notify_all();
  }
  space_.release(space_.note_committed(sealed.slot.generation));
  if (!discards_freed_) return;
  const std::lock_guard lock(commit_mutex_);
  has_discardable_ = true;
  committed_.notify_all();
}

void StoreImpl::fail(const Error& error, std::uint64_t generation) {
  const std::string reason = fmt::format("the commit of generation {} failed: {}", generation, error.within(Errc::kIo));
  spdlog::critical("{}; the volume is now read-only", reason);
  const std::lock_guard lock(commit_mutex_);
  failed_ = true;
  read_only_ = true;
  read_only_reason_ = reason;
}

}  // namespace mdfs::store
