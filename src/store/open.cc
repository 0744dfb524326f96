// Opening a store: recovery, and whether it may be written.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "format/limits.h"
#include "store/store_impl.h"

namespace mdfs::store {
namespace {

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
    return fmt::format("only {} of {} disks{} are current, fewer than a majority", recovered.healthy(),
                       recovered.counted(), recovered.counted() < recovered.disks() ? " that are not out" : "");
  return {};
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(std::vector<std::unique_ptr<device::Disk>> disks,
                                           const StoreOptions& options, Environment& environment) {
  // So early, that what goes wrong in recovery counts.
  for (auto& disk : disks) disk = std::make_unique<DiskSlot>(disk->name(), std::move(disk));
  if (options.rollback && !options.read_only)
    return Error{Errc::kInvalidArgument, "rollback: an older commit is only read; mount with -o ro,rollback"};
  MDFS_TRY_ASSIGN(Recovered recovered, recover(std::move(disks), options.rollback));
  std::string reason = why_read_only(recovered, options);
  if (reason.empty()) {
    // The state that is read from now on must survive a power cut, even if recovery writes nothing yet.
    const Status present = recovered.holds_still() ? flush_current(recovered.members) : make_present(recovered);
    if (!present.ok()) reason = "recovery could not be completed: " + present.error().message();
  }
  auto store = std::make_unique<StoreImpl>(std::move(recovered), options, environment);
  if (reason.empty())
    store->prepare_writing();
  else
    store->set_read_only(std::move(reason));
  MDFS_TRY(store->check_root());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace mdfs::store
