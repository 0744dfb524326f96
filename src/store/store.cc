// Opening a store, and what it tells about itself.
// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "device/disk_counters.h"
#include "format/limits.h"
#include "store/freed_blocks.h"
#include "store/store_impl.h"

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

// Why the volume must not be written, or nothing.
std::string why_read_only(const Recovered& recovered, const StoreOptions& options) {
  if (options.read_only) return "opened read-only";
  if (recovered.highest_generation >= format::kMaxGeneration)
    return fmt::format("commit.generation is {}: there is no number for another commit", recovered.highest_generation);
  if (recovered.features_read_only()) return "the volume has features that this version may only read";
  for (const MemberDisk& member : recovered.members)
    if (member.healthy() && !member.disk->writable()) return member.disk->name() + " is open for reading only";
  if (!recovered.awaited.empty() && !options.degraded) return recovered.awaited_text();
  if (!recovered.majority() && !options.degraded)
    return fmt::format("only {} of {} disks are current, fewer than a majority", recovered.healthy(),
                       recovered.members.size());
  return {};
}

geometry::AllocationPolicy chosen_policy(const format::Label& label, const StoreOptions& options) {
  if (options.policy != geometry::AllocationPolicy::kDefault) return options.policy;
  const auto made = static_cast<geometry::AllocationPolicy>(label.policy);
  return made != geometry::AllocationPolicy::kDefault ? made : geometry::AllocationPolicy::kScatter;
}

}  // namespace

void Store::note_checksum_error(unsigned disk) {
  if (device::DiskCounters* counted = disk < disk_count() ? counters(disk) : nullptr) ++counted->checksum_errors;
}

Result<std::unique_ptr<Store>> Store::open(std::vector<std::unique_ptr<device::Disk>> disks,
                                           const StoreOptions& options, Environment& environment) {
  // So early, that what goes wrong in recovery counts.
  for (auto& disk : disks) disk = std::make_unique<DiskSlot>(disk->name(), std::move(disk));
  if (options.rollback && !options.read_only)
    return Error{Errc::kInvalidArgument, "rollback: an older commit is only read; mount with -o ro,rollback"};
  MDFS_TRY_ASSIGN(Recovered recovered, recover(std::move(disks), options.rollback));
  std::string reason = why_read_only(recovered, options);
  if (reason.empty()) {
    const Status present = make_present(recovered);
    if (!present.ok()) reason = "recovery could not be completed: " + present.error().message();
  }
  auto store = std::make_unique<StoreImpl>(std::move(recovered), options, environment);
  if (reason.empty())
    store->keep_fallback();
  else
    store->set_read_only(std::move(reason));
  MDFS_TRY(store->check_root());
  return std::unique_ptr<Store>(std::move(store));
}

namespace {

Error fixed_members() { return {Errc::kNotSupported, "the members of this store are fixed"}; }

}  // namespace

Result<std::vector<unsigned>> Store::add_disks(std::vector<JoiningDisk> /*disks*/) { return fixed_members(); }
bool Store::is_whole() const {
  for (unsigned i = 0; i < disk_count(); ++i) {
    const DiskInfo disk = disk_info(i);
    if (disk.state != DiskState::kNone && !disk.is_there()) return false;
  }
  return true;
}

std::uint64_t Store::lost_disks() const {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < disk_count(); ++i)
    if (disk_info(i).is_lost()) bits |= std::uint64_t{1} << i;
  return bits;
}

Status Store::set_weight(unsigned /*index*/, std::uint16_t /*weight*/) { return fixed_members(); }
Status Store::set_draining(unsigned /*index*/, bool /*draining*/, std::uint64_t* /*missing_blocks*/) {
  return fixed_members();
}
std::uint64_t Store::used_blocks(unsigned /*index*/) const { return 0; }
Result<bool> Store::move_nodes_off(unsigned /*index*/, std::uint16_t& /*level*/, Key& /*next*/) {
  return fixed_members();
}
Status Store::remove_disk(unsigned /*index*/) { return fixed_members(); }
Result<SizeRange> Store::size_range(unsigned /*index*/) { return fixed_members(); }
Status Store::set_disk_end(unsigned /*index*/, std::uint64_t /*blocks*/, std::uint64_t* /*missing_blocks*/) {
  return fixed_members();
}
std::uint64_t Store::used_behind_end(unsigned /*index*/) const { return 0; }
Status Store::resize_disk(unsigned /*index*/, std::uint64_t /*blocks*/) { return fixed_members(); }

Status Store::commit_discardable() { return {Errc::kNotSupported, "a store without disks"}; }
Status Store::trim_some(std::vector<DiskTrim>& /*disks*/, std::uint64_t /*smallest_blocks*/) {
  return commit_discardable();
}

StoreImpl::StoreImpl(Recovered recovered, const StoreOptions& options, Environment& environment)
    : environment_(environment),
      options_(options),
      label_(std::move(recovered.label)),
      policy_(chosen_policy(label_, options)),
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
  for (unsigned i = 0; i < disk_count_; ++i) {
    const bool current = last_commit_.states[i].commit_id == last_commit_.commit_id;
    if (members_[i].healthy()) participants_.push_back(participant(i));
    if (disk_info(i).is_lost() && current && !members_[i].member.is_draining()) awaits_disks_ = true;
  }
  note_tree();
  set_discard(options.discard);
}

Participant StoreImpl::participant(unsigned index) {
  return {static_cast<std::uint16_t>(index), &disk_slot(index).for_commits(), layout_of(*members_[index].label)};
}

void StoreImpl::keep_fallback() {
  space_.keep_fallback(last_commit_.generation, blocks_freed_by(last_commit_, members_));
}

Status StoreImpl::check_root() {
  const Status read = TreeReader(shared_).check_root();
  if (read.ok()) return {};
  return {read.error().code, fmt::format("the root of generation {}: {}", generation(), read.error().message())};
}

void StoreImpl::set_read_only(std::string reason) {
  const std::lock_guard lock(commit_mutex_);
  read_only_ = true;
  if (read_only_reason_.empty()) read_only_reason_ = std::move(reason);
}

std::string StoreImpl::read_only_reason() const {
  const std::lock_guard lock(commit_mutex_);
  return read_only_reason_;
}

DiskInfo StoreImpl::disk_info(unsigned index) const {
  const MemberDisk& member = members_[index];
  DiskInfo info;
  const std::lock_guard lock(table_mutex_);
  const bool present = member.state != DiskState::kMissing && member.state != DiskState::kNone;
  info.name = present ? member.disk->name() : std::string();
  info.uuid = member.member.uuid;
  info.state = member.state;
  info.blocks = member.member.blocks;
  info.weight = member.member.weight;
  space_.describe(index, info);
  if (member.healthy() && member.member.is_draining()) info.state = DiskState::kDraining;
  return info;
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
  return space_.zone_use(disk, first, count);
}

Result<Run> StoreImpl::allocate(const AllocationRequest& request, Reservation* reservation) {
  if (read_only_) return read_only_error().error();
  const std::uint64_t promised = reservation != nullptr ? reservation->blocks() : 0;
  auto run = space_.allocate(request, promised);
  if (!run.ok() && run.error().code == Errc::kNoSpace && space_.gated() > 0) {
    MDFS_TRY(release_gated());
    run = space_.allocate(request, promised);
  }
  // A caller that cannot take anything else is more important than readers of what is gone.
  const bool last_choice = request.may_spill && request.at_block == 0;
  if (!run.ok() && run.error().code == Errc::kNoSpace && last_choice && space_.break_holds())
    run = space_.allocate(request, promised);
  if (run.ok() && reservation != nullptr) take_from(*reservation, std::min<std::uint64_t>(promised, request.blocks));
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

std::shared_ptr<BlockHold> Store::hold(std::vector<Run>) { return std::make_shared<BlockHold>(); }

std::shared_ptr<BlockHold> StoreImpl::hold(std::vector<Run> runs) {
  return std::make_shared<HoldOfSpace>(space_, space_.hold(std::move(runs)));
}

Result<Reservation> StoreImpl::reserve(const Room& room, Purpose purpose) {
  if (read_only_) return read_only_error().error();
  Status promised = space_.promise(room, purpose);
  if (!promised.ok() && space_.gated() > 0) {
    MDFS_TRY(release_gated());
    promised = space_.promise(room, purpose);
  }
  if (!promised.ok() && space_.break_holds()) promised = space_.promise(room, purpose);
  if (!promised.ok()) return promised.error();
  return make_reservation(this, room);
}

}  // namespace mdfs::store
