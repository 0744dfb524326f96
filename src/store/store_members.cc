// Members of the store that come, go and change their weight: each change is one commit.
//
// Who the members are stands in the commit, so recovery decides about a change as about any other: before a committed
// slot is on one of the disks the old table holds, then the new one. Labels carry the table too, for finding disks;
// they are written before disks come and after disks have gone, so that what is found is never too little, and are put
// right by the next mount.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "format/limits.h"
#include "store/format_volume.h"
#include "store/store_impl.h"

namespace mdfs::store {
namespace {

constexpr unsigned kCommitsUntilFree = 4;  // of what was freed last
constexpr std::size_t kNodesAtOnce = 64;

}  // namespace

std::vector<format::Member> StoreImpl::table() const {
  std::vector<format::Member> members;
  for (unsigned i = 0; i < disk_count_; ++i) members.push_back(members_[i].member);
  return members;
}

Status StoreImpl::check_member(unsigned index) const {
  if (index < disk_count_ && !members_[index].member.is_hole()) return {};
  return {Errc::kInvalidArgument, fmt::format("the volume has no disk {}", index)};
}

std::vector<LabelWrite> StoreImpl::labels_with(const std::vector<format::Member>& table,
                                               std::uint32_t membership) const {
  std::vector<LabelWrite> writes;
  for (unsigned i = 0; i < disk_count_; ++i) {
    if (!members_[i].healthy()) continue;
    LabelWrite& write = writes.emplace_back();
    write.disk = members_[i].disk.get();
    write.label = *members_[i].label;
    write.label.members = table;
    write.label.membership = membership;
  }
  return writes;
}

void StoreImpl::write_tables(const std::vector<format::Member>& table, std::uint32_t membership) {
  const Status written = write_labels(labels_with(table, membership));
  if (!written.ok()) spdlog::warn("the next mount rewrites labels: {}", written.error().message());
}

Status StoreImpl::check_membership() const {
  if (membership_ < format::kMaxMembership) return {};
  return {Errc::kReadOnly, fmt::format("commit.membership is {}: the members cannot change any more", membership_)};
}

Status StoreImpl::commit_members(const std::function<Status()>& change) {
  MDFS_TRY(begin_writing());
  for (;;) {
    {
      std::unique_lock lock(commit_mutex_);
      committed_.wait(lock, [&] { return !in_flight_; });
      if (failed_) return {Errc::kIo, read_only_reason_};
      if (read_only_) return {Errc::kReadOnly, read_only_reason_};
    }
    std::unique_lock writer(writer_);
    {
      const std::lock_guard lock(commit_mutex_);
      if (in_flight_ || failed_) continue;
      in_flight_ = true;
    }
    take_over_out();
    Status status = check_membership();
    if (status.ok()) status = change();
    if (status.ok()) {
      ++membership_;
      status = lead_commit(writer, Change::kMembers);
      // Without its commit the change must not be built on.
      if (!status.ok() && !read_only_) fail(status.error(), generation_ + 1);
    }
    const std::lock_guard lock(commit_mutex_);
    in_flight_ = false;
    committed_.notify_all();
    return status;
  }
}

// Formats the disks up to their labels, and enters them into the table.
Result<std::vector<StoreImpl::Formatted>> StoreImpl::format_new(const std::vector<JoiningDisk>& disks,
                                                                std::vector<format::Member>& table) {
  FormatOptions options;
  options.block_size = label_.block_size;
  options.name = label_.name;
  std::vector<Formatted> formatted;
  for (const JoiningDisk& joining : disks) {
    if (!joining.disk->writable()) return Error{Errc::kReadOnly, joining.disk->name()};
    Formatted& made = formatted.emplace_back();
    MDFS_TRY_ASSIGN(made.label,
                    plan_label({joining.disk->name(), joining.disk->size_bytes()}, options, joining.weight > 0));
    const auto hole = std::find_if(table.begin(), table.end(), [](const auto& member) { return member.is_hole(); });
    made.index = static_cast<unsigned>(hole - table.begin());
    if (made.index >= MDFS_MAX_DISKS)
      return Error{Errc::kInvalidArgument, fmt::format("a volume has at most {} disks", MDFS_MAX_DISKS)};
    made.label.volume_uuid = label_.volume_uuid;
    made.label.disk_uuid = environment_.new_uuid();
    made.label.disk_index = static_cast<std::uint16_t>(made.index);
    made.label.created_ns = environment_.now_ns();
    made.label.policy = label_.policy;
    made.label.features = label_.features;
    if (hole == table.end()) table.emplace_back();
    table[made.index] = {made.label.disk_uuid, made.label.disk_blocks, joining.weight, 0};
  }
  for (std::size_t i = 0; i < disks.size(); ++i) {
    MDFS_TRY_ASSIGN(formatted[i].top, write_blank_disk(*disks[i].disk, formatted[i].label));
  }
  return formatted;
}

Result<std::vector<unsigned>> StoreImpl::add_disks(std::vector<JoiningDisk> disks) {
  const std::lock_guard one_at_a_time(members_mutex_);
  if (read_only_) return read_only_error().error();
  if (disks.empty()) return Error{Errc::kInvalidArgument, "no disk to add"};
  MDFS_TRY(check_membership());
  const std::vector<format::Member> old = table();
  std::vector<format::Member> members = old;
  MDFS_TRY_ASSIGN(std::vector<Formatted> formatted, format_new(disks, members));
  std::vector<LabelWrite> labels;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    formatted[i].label.members = members;
    formatted[i].label.membership = membership_ + 1;
    labels.push_back({disks[i].disk.get(), formatted[i].label});
  }
  MDFS_TRY(begin_writing());
  MDFS_TRY(write_labels(labels));
  if (const Status written = write_labels(labels_with(members, membership_ + 1)); !written.ok()) {
    write_tables(old, membership_);
    return written.error();
  }
  std::vector<unsigned> indexes;
  const Status joined = commit_members([&]() -> Status {
    for (std::size_t i = 0; i < disks.size(); ++i) {
      const Formatted& made = formatted[i];
      MemberDisk& member = members_[made.index];
      disk_slot(made.index).attach(std::move(disks[i].disk));
      disk_slot(made.index).require(layout_of(made.label).bytes());
      {
        const std::lock_guard lock(table_mutex_);
        member.member = members[made.index];
        member.label = made.label;
        member.state = DiskState::kHealthy;
        member.error.clear();
      }
      disk_count_ = std::max(disk_count_.load(), made.index + 1);
      MDFS_TRY(space_.add_disk(static_cast<std::uint16_t>(made.index), made.top));
      participants_.push_back(participant(made.index));
      indexes.push_back(made.index);
    }
    prefer_node_disks();
    return {};
  });
  if (!joined.ok()) return joined.error();
  spread_again_ = true;
  spread_wanted_ = true;
  return indexes;
}

Status StoreImpl::set_weight(unsigned index, std::uint16_t weight) {
  const std::lock_guard one_at_a_time(members_mutex_);
  MDFS_TRY(check_member(index));
  if (weight < 1) return {Errc::kInvalidArgument, "weight 0: at least 1"};
  if (!members_[index].member.takes_data())
    return {Errc::kNotSupported, members_[index].disk->name() + ": is for metadata alone, and has no room for data"};
  const Status changed = commit_members([&]() -> Status {
    const std::lock_guard lock(table_mutex_);
    members_[index].member.weight = weight;
    return {};
  });
  MDFS_TRY(changed);
  write_tables(table(), membership_);
  return {};
}

Status StoreImpl::set_draining(unsigned index, bool draining, std::uint64_t* missing_blocks) {
  const std::lock_guard one_at_a_time(members_mutex_);
  MDFS_TRY(check_member(index));
  if (members_[index].member.is_draining() == draining) return {};
  const Status changed = commit_members([&]() -> Status {
    MDFS_TRY(prepare_commit());
    if (members_[index].healthy())
      MDFS_TRY(space_.set_avoided(static_cast<std::uint16_t>(index), draining, missing_blocks));
    const std::lock_guard lock(table_mutex_);
    members_[index].member.flags = draining ? MDFS_MEMBER_DRAINING : 0;
    return {};
  });
  MDFS_TRY(changed);
  write_tables(table(), membership_);
  return {};
}

std::uint64_t StoreImpl::used_blocks(unsigned index) const {
  return space_.used_blocks(static_cast<std::uint16_t>(index));
}

Result<bool> StoreImpl::rewrite_nodes(const Tree::PointerTest& test, NodePosition& at) {
  std::size_t rewritten = 0;
  bool is_full = false, at_end = false;
  while (rewritten < kNodesAtOnce && !is_full) {
    const std::lock_guard writer(writer_);
    at_end = at.level > shared_.tree.level();
    if (at_end) break;
    TreeReader reader(shared_);
    MDFS_TRY_ASSIGN(const Tree::NodesWhere found, reader.nodes_where(test, at.level, at.next));
    for (const Tree::NodesWhere::Found& node : found.nodes) {
      if (node.key < at.next) continue;  // looked at before
      const Rewrite outcome = rewrite(node.key, at.level, node.pointer);
      is_full = outcome == Rewrite::kNoRoom;
      if (is_full && rewritten == 0) return Error{Errc::kNoSpace, "no room for copies of tree nodes"};
      if (is_full) {
        at.next = node.key;
        break;
      }
      ++rewritten;
    }
    note_tree();
    if (rewritten > 0) ++applied_;
    if (is_full) break;
    if (found.next) {
      at.next = *found.next;
    } else {
      at.next = format::kMinKey;
      ++at.level;
    }
    if (shared_.tree.changed_nodes() >= options_.dirty_node_limit) break;
  }
  if (rewritten > 0) MDFS_TRY(commit());
  return at_end && rewritten == 0;
}

Result<bool> StoreImpl::move_nodes_off(unsigned index, NodePosition& at) {
  if (read_only_) return read_only_error().error();
  const auto disk = static_cast<std::uint16_t>(index);
  auto done = rewrite_nodes([&](const format::Pointer& node) { return space_.must_move(disk, node); }, at);
  if (!done.ok() && done.error().code == Errc::kNoSpace)
    return Error{Errc::kNoSpace, fmt::format("no room for the tree nodes of disk {}", index)};
  return done;
}

bool StoreImpl::wants_spread() const { return spread_wanted_ && !read_only_; }

Result<bool> StoreImpl::spread_nodes() {
  if (read_only_) return read_only_error().error();
  const std::lock_guard spreading(spread_mutex_);
  if (spread_again_.exchange(false)) spread_at_ = {};
  auto done = rewrite_nodes([&](const format::Pointer& node) { return space_.is_crowded(node); }, spread_at_);
  if ((!done.ok() || *done) && !spread_again_) spread_wanted_ = false;
  return done;
}

Status StoreImpl::remove_disk(unsigned index) {
  const std::lock_guard one_at_a_time(members_mutex_);
  MDFS_TRY(check_member(index));
  MemberDisk& member = members_[index];
  if (!member.member.is_draining()) return {Errc::kInvalidArgument, fmt::format("disk {} is not being drained", index)};
  MDFS_TRY(check_walked(index));
  const bool healthy = member.healthy();
  for (unsigned i = 0; i < kCommitsUntilFree && space_.used_blocks(static_cast<std::uint16_t>(index)) > 0; ++i)
    MDFS_TRY(commit_until(applied_, true));
  const Status changed = commit_members([&]() -> Status {
    MDFS_TRY(check_walked(index));
    if (std::none_of(participants_.begin(), participants_.end(),
                     [&](const Participant& participant) { return participant.index != index; }))
      return {Errc::kInvalidArgument, fmt::format("disk {}: no other disk takes part in commits", index)};
    MDFS_TRY(space_.remove_disk(static_cast<std::uint16_t>(index)));
    std::erase_if(participants_, [&](const Participant& participant) { return participant.index == index; });
    const std::lock_guard lock(table_mutex_);
    member.member = format::Member::hole();
    member.state = DiskState::kNone;
    space_.count_again();
    return {};
  });
  MDFS_TRY(changed);
  write_tables(table(), membership_);
  Status wiped;
  if (healthy) wiped = wipe_labels(*member.disk, layout_of(*member.label));
  disk_slot(index).detach();
  member.label.reset();
  if (!wiped.ok()) spdlog::warn("disk {} was removed, but still has labels: {}", index, wiped.error().message());
  return {};
}

}  // namespace mdfs::store
