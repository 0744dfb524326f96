// State of the store for its callers, and the allocation of its space.
// SPDX-License-Identifier: Apache-2.0
#include "store/store_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "store/freed_blocks.h"

namespace mdfs::store {
namespace {

// Entries for all disks that may come.
std::vector<MemberDisk> with_slots(std::vector<MemberDisk> members) {
  members.resize(MDFS_MAX_DISKS);
  for (unsigned i = 0; i < members.size(); ++i) {
    if (members[i].disk == nullptr || members[i].state == DiskState::kNone) {
      members[i] = {};
      members[i].state = DiskState::kNone;
      members[i].member = format::Member::hole();
    }
    if (dynamic_cast<DiskSlot*>(members[i].disk.get()) == nullptr)
      members[i].disk = std::make_unique<DiskSlot>(fmt::format("disk {}", i), std::move(members[i].disk));
  }
  return members;
}

std::vector<device::Disk*> disks_of(const std::vector<MemberDisk>& members) {
  std::vector<device::Disk*> disks;
  for (const MemberDisk& member : members) disks.push_back(member.disk.get());
  return disks;
}

geometry::AllocationPolicy chosen_policy(const format::Label& label, const StoreOptions& options) {
  if (options.policy != geometry::AllocationPolicy::kDefault) return options.policy;
  const auto made = static_cast<geometry::AllocationPolicy>(label.policy);
  return made != geometry::AllocationPolicy::kDefault ? made : geometry::AllocationPolicy::kScatter;
}

}  // namespace

StoreImpl::StoreImpl(Recovered recovered, const StoreOptions& options, Environment& environment)
    : environment_(environment),
      options_(options),
      label_(std::move(recovered.label)),
      policy_(chosen_policy(label_, options)),
      awaits_disks_(recovered.holds_still()),
      damage_(std::move(recovered.damage)),
      members_(with_slots(std::move(recovered.members))),
      disk_count_(static_cast<unsigned>(recovered.winner.space.size())),
      features_(recovered.features),
      membership_(label_.membership),
      shared_(label_.volume_uuid, *recovered.winner.root(MDFS_ROOT_MAIN), options.node_cache_bytes, label_.block_size,
              disks_of(members_), environment.random()),
      space_(members_, recovered.winner, label_.block_size, environment.random(), policy_),
      next_generation_(recovered.highest_generation + 1),
      next_object_(recovered.winner.next_object),
      objects_(recovered.winner.objects),
      generation_(recovered.winner.generation),
      last_commit_(std::move(recovered.winner)) {
  for (unsigned i = 0; i < disk_count_; ++i)
    if (members_[i].healthy()) participants_.push_back(participant(i));
  for (unsigned i = 0; i < disk_count_; ++i)
    if (members_[i].is_readable()) disk_slot(i).require(layout_of(*members_[i].label).bytes());
  prefer_node_disks();
  note_tree();
  set_discard(options.discard);
}

void StoreImpl::prefer_node_disks() {
  std::uint64_t alone = 0;
  for (unsigned i = 0; i < disk_count_; ++i)
    if (members_[i].state != DiskState::kNone && !members_[i].member.takes_data()) alone |= format::disk_bit(i);
  shared_.io.prefer(alone);
}

bool StoreImpl::is_healthy(unsigned index) const {
  const std::lock_guard lock(table_mutex_);
  return index < disk_count_ && members_[index].healthy();
}

Participant StoreImpl::participant(unsigned index) {
  return {static_cast<std::uint16_t>(index), &disk_slot(index).for_commits(), layout_of(*members_[index].label)};
}

void StoreImpl::prepare_writing() {
  space_.keep_fallback(last_commit_.generation, blocks_freed_by(last_commit_, members_));
  recovery_waits_ = awaits_disks_;
  if (!awaits_disks_) return;
  for (unsigned i = 0; i < disk_count_; ++i) disk_slot(i).forbid_writes(true);
}

Status StoreImpl::begin_writing() {
  if (!recovery_waits_) return {};
  const std::lock_guard one_at_a_time(recovery_mutex_);
  if (!recovery_waits_) return {};
  if (read_only_) return read_only_error();
  format::CommitSlot winner;
  {
    const std::lock_guard lock(commit_mutex_);
    winner = last_commit_;
  }
  for (unsigned i = 0; i < disk_count_; ++i) disk_slot(i).forbid_writes(false);
  const Status present = make_present({members_, label_, winner, damage_});
  if (present.ok()) {
    recovery_waits_ = false;
    return {};
  }
  const std::string reason = "recovery could not be completed: " + present.error().message();
  spdlog::critical("{}; the volume is now read-only", reason);
  set_read_only(reason);
  return present;
}

Status StoreImpl::check_root() {
  const Status read = TreeReader(shared_).check_root();
  if (read.ok()) return {};
  return {read.error().code,
          fmt::format("the root of generation {}: {}", generation(), read.error().within(read.error().code))};
}

void StoreImpl::set_read_only(std::string reason) {
  const std::lock_guard lock(commit_mutex_);
  read_only_ = true;
  if (read_only_reason_.empty()) read_only_reason_ = std::move(reason);
}

bool StoreImpl::has_failed() const {
  const std::lock_guard lock(commit_mutex_);
  return failed_;
}

std::string StoreImpl::read_only_reason() const {
  const std::lock_guard lock(commit_mutex_);
  return read_only_reason_;
}

void StoreImpl::keep_schedules(bool wanted) {
  for (unsigned i = 0; i < members_.size(); ++i) static_cast<DiskSlot&>(*members_[i].disk).keep_schedule(wanted, i);
}

void StoreImpl::note_trial(unsigned index, double ns_per_byte) {
  static_cast<DiskSlot&>(disk(index)).note_trial(ns_per_byte);
}

void StoreImpl::hurry(const alloc::Run& run, const device::Urgency& urgency) {
  if (run.disk >= disk_count()) return;
  static_cast<DiskSlot&>(disk(run.disk))
      .hurry(run.block * block_size(), std::uint64_t{run.blocks} * block_size(), urgency);
}

DiskInfo StoreImpl::disk_info(unsigned index) const {
  const MemberDisk& member = members_[index];
  DiskInfo info;
  {
    const std::lock_guard lock(commit_mutex_);
    info.is_out = index < last_commit_.members.size() && last_commit_.members[index].is_out();
    if (info.is_out) {
      info.out_generation = last_commit_.states[index].generation;
      info.out_ns = static_cast<std::int64_t>(last_commit_.states[index].out_ns);
    }
  }
  const std::lock_guard lock(table_mutex_);
  const bool present = member.state != DiskState::kMissing && member.state != DiskState::kNone;
  info.name = present ? member.disk->name() : std::string();
  info.uuid = member.member.uuid;
  info.state = member.state;
  info.blocks = member.member.blocks;
  info.weight = member.member.weight;
  space_.describe(index, info);
  if (member.healthy() && member.member.is_draining()) info.state = DiskState::kDraining;
  if (!present) return info;
  const auto& slot = static_cast<const DiskSlot&>(*member.disk);
  info.device_bytes = slot.truncated_to().value_or(slot.size_bytes());
  if (slot.truncated_to()) info.state = DiskState::kFailed;
  if (slot.deleted() && info.state != DiskState::kFailed) info.state = DiskState::kDeleted;
  if (info.is_out && (info.state == DiskState::kHealthy || info.state == DiskState::kDraining))
    info.state = DiskState::kOut;
  return info;
}

Status StoreImpl::examine_disks() {
  Status first;
  for (unsigned i = 0; i < disk_count_; ++i) {
    Status status = disk_slot(i).check_condition();
    if (!status.ok() && status.error().code == Errc::kIo && first.ok()) first = std::move(status);
  }
  return first;
}

Result<std::optional<ByteVector>> StoreImpl::get(const Key& key) { return TreeReader(shared_).get(key); }

Result<std::vector<Item>> StoreImpl::scan(const Key& first, const Key& last, std::size_t limit) {
  return TreeReader(shared_).scan(first, last, limit);
}

SpaceInfo StoreImpl::space() const {
  SpaceInfo info = space_.info();
  info.objects = objects_;
  return info;
}

Result<std::vector<ZoneUse>> StoreImpl::zone_use(unsigned disk, std::uint64_t first, std::size_t count) {
  if (disk >= members_.size()) return Error{Errc::kInvalidArgument, fmt::format("disk {}", disk)};
  // A disk that has nothing to do is not asked for more than the pages that are needed.
  const device::DiskCounters* const counted = counters(disk);
  const bool is_awaited = counted != nullptr && counted->waiting.load(std::memory_order_relaxed) > 0;
  if (first == 0 && is_awaited && !answers(disk))
    return Error{Errc::kBusy, fmt::format("disk {} does not answer", disk)};
  return space_.zone_use(disk, first, count, [&] { return answers(disk); });
}

bool StoreImpl::answers(unsigned index) {
  constexpr std::chrono::seconds kPatience(1);
  const device::StoppableReads::Wanted wanted{&disk(index), 0, MDFS_SECTOR};
  const device::StoppableReads::Done done = trial_reads_.read({&wanted, 1}, kPatience);
  return done.reads.front().status.ok() || done.reads.front().status.error().code != Errc::kBusy;
}

Result<Run> StoreImpl::allocate(const AllocationRequest& request, Reservation* reservation) {
  if (read_only_) return read_only_error().error();
  MDFS_TRY(begin_writing());
  const std::uint64_t reserved = reservation != nullptr ? reservation->blocks() : 0;
  auto run = space_.allocate(request, reserved);
  if (!run.ok() && run.error().code == Errc::kNoSpace && space_.pending_free() > 0) {
    MDFS_TRY(commit_pending_free());
    run = space_.allocate(request, reserved);
  }
  // A caller that cannot take anything else is more important than readers of what is gone.
  const bool last_choice = request.may_fall_back && request.at_block == 0;
  if (!run.ok() && run.error().code == Errc::kNoSpace && last_choice && space_.break_holds())
    run = space_.allocate(request, reserved);
  if (run.ok() && reservation != nullptr) take_from(*reservation, std::min<std::uint64_t>(reserved, request.blocks));
  return run;
}

namespace {

// A hold as its holder has it; the space knows the blocks.
class HoldOfSpace final : public BlockHold {
 public:
  HoldOfSpace(Space& space, std::shared_ptr<const HeldBlocks::State> state) : space_(space), state_(std::move(state)) {}
  HoldOfSpace(const HoldOfSpace&) = delete;
  HoldOfSpace& operator=(const HoldOfSpace&) = delete;
  ~HoldOfSpace() override { space_.drop_hold(*state_); }
  bool is_broken() const override { return state_->broken.load(std::memory_order_acquire); }

 private:
  Space& space_;
  const std::shared_ptr<const HeldBlocks::State> state_;
};

}  // namespace

std::shared_ptr<BlockHold> StoreImpl::hold(std::vector<Run> runs) {
  return std::make_shared<HoldOfSpace>(space_, space_.hold(std::move(runs)));
}

Result<Reservation> StoreImpl::reserve(const SpaceAmount& amount, Purpose purpose) {
  if (read_only_) return read_only_error().error();
  Status status = space_.reserve(amount, purpose);
  if (!status.ok() && space_.pending_free() > 0) {
    MDFS_TRY(commit_pending_free());
    status = space_.reserve(amount, purpose);
  }
  if (!status.ok() && space_.break_holds()) status = space_.reserve(amount, purpose);
  if (!status.ok()) return status.error();
  return make_reservation(this, amount);
}

}  // namespace mdfs::store
