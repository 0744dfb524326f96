// Protection, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/protect.h"

#include <algorithm>
#include <utility>

#include "base/background_pace.h"
#include "base/log.h"
#include "format/inode.h"
#include "maintenance/objects.h"
#include "maintenance/relocation.h"
#include "volume/records.h"

namespace mdfs::maintenance {

Status Protect::begin(OperationRun& run) {
  if (run.record.object != 0) return {Errc::kNotSupported, "protection is of the whole volume, and takes no file"};
  if (run.record.threshold != 0 || run.record.parameters != decltype(run.record.parameters){})
    return {Errc::kInvalidArgument, "protection has no parameters"};
  return resume(run);
}

Status Protect::resume(OperationRun& run) {
  passes_ = 0;
  uncommitted_bytes_ = 0;
  if (run.may_write()) MDFS_TRY(volume_.store().commit_freed());  // what has been deleted is room
  begin_pass(run);
  return {};
}

bool Protect::has_new_work() const { return changes_ != volume_.protection_changes(); }

// A pass looks again at what an earlier one could not do.
void Protect::begin_pass(OperationRun& run) {
  ++passes_;
  again_ = false;
  next_ = 0;
  image_.reset();
  changes_ = volume_.protection_changes();
  gone_ = volume_.store().gone_disks();
  run.record.figures[kNoRoom] = 0;
  run.record.items_failed = 0;
  run.record.errors.clear();
}

Status Protect::note_written(std::uint64_t bytes) {
  uncommitted_bytes_ += bytes;
  if (uncommitted_bytes_ < kBytesPerCommit) return {};
  uncommitted_bytes_ = 0;
  return volume_.store().commit();
}

void Protect::pass_over(OperationRun& run, const Error& error) {
  if (error.code != Errc::kNotFound) {  // deleted meanwhile
    spdlog::error("protection: inode {}: {}", image_->ino, error.message());
    run.record.note_error({image_->ino, 0, 0, 0, MDFS_ERROR_SKIPPED});
  }
  image_.reset();
}

Result<bool> Protect::find(OperationRun& run) {
  store::Store& store = volume_.store();
  run.record.cursor[0] = next_;
  MDFS_TRY_ASSIGN(const auto items, store.scan({next_, 0, 0}, format::kMaxKey, 1));
  if (items.empty()) return false;
  const format::Key key = items.front().key;
  next_ = key.object + 1;
  if (key.kind != MDFS_KIND_INODE) return true;
  const Result<format::Inode> inode = format::decode_inode(items.front().value);
  if (!inode.ok() || !inode->is_regular()) return true;
  const std::uint64_t kind = inode->is_image() ? MDFS_KIND_PARITY : MDFS_KIND_FILE_PARITY;
  MDFS_TRY_ASSIGN(const auto copies, store.scan({key.object, kind, 0}, {key.object, kind, UINT64_MAX}, 1));
  bool in_strips = false;
  if (inode->is_image()) {
    MDFS_TRY_ASSIGN(in_strips, has_strips(volume_, key.object));
  }
  if (!inode->has_copies() && copies.empty() && !in_strips) return true;
  ++run.record.items_done;
  image_ = Image{key.object, {}, inode->has_copies(), inode->group_width(), false, 0};
  Result<std::shared_ptr<engine::OpenObject>> open = volume_.open_object(key.object);
  if (!open.ok()) {
    pass_over(run, open.error());
    return true;
  }
  image_->open = std::move(*open);
  if (in_strips) {
    MDFS_TRY_ASSIGN(const std::uint64_t strips, strips_left());
    image_->consolidates = strips > 0;
  }
  return true;
}

// Of the image.
Result<std::uint64_t> Protect::strips_left() {
  return volume_.engine().strips_to_consolidate(*image_->open, image_->copies, {});
}

Status Protect::work(OperationRun& run) {
  if (image_->consolidates && run.may_write()) {
    run.yield();
    // What is dirty is not consolidated.
    MDFS_TRY(volume_.engine().write_back(*image_->open));
    MDFS_TRY_ASSIGN(const std::uint64_t bytes, volume_.consolidate(image_->ino, kStepBytes, true));
    image_->consolidates = bytes > 0;
    run.spend(2 * bytes);
    if (!image_->consolidates) {
      MDFS_TRY_ASSIGN(const std::uint64_t left, strips_left());
      run.record.figures[kNoRoom] += left;
      again_ = again_ || left > 0;
    }
    return note_written(bytes);
  }
  MDFS_TRY(protect_some(run));
  if (image_->page == UINT64_MAX) image_.reset();
  return {};
}

// All together may ask for more room for tree nodes than is left, or for blocks that are free after a commit.
Result<engine::ProtectOutcome> Protect::protect_as_fits(const engine::ProtectRequest& request) {
  MDFS_TRY_ASSIGN(engine::ProtectOutcome outcome, volume_.engine().protect(*image_->open, request));
  if (outcome.no_room == 0) return outcome;
  if (volume_.store().dirty()) {
    uncommitted_bytes_ = 0;
    MDFS_TRY(volume_.store().commit());
  } else if (request.extents.size() == 1) {
    return outcome;
  }
  outcome.no_room = outcome.changed = 0;
  outcome.damaged.clear();
  const std::size_t half = (request.extents.size() + 1) / 2;
  for (std::size_t first = 0; first < request.extents.size(); first += half) {
    engine::ProtectRequest some = request;
    const auto begin = request.extents.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t count = std::min(half, request.extents.size() - first);
    some.extents.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    MDFS_TRY_ASSIGN(engine::ProtectOutcome more, protect_as_fits(some));
    outcome += std::move(more);
  }
  return outcome;
}

Status Protect::protect_some(OperationRun& run) {
  OperationRecord& record = run.record;
  engine::ProtectRequest request;
  request.copies = image_->copies;
  request.width = image_->group_members;
  std::uint64_t page = image_->page;
  MDFS_TRY_ASSIGN(request.extents, volume_.engine().find_unprotected(*image_->open, request, page, kRebuildExtents));
  if (!run.may_write()) {
    record.items_changed += request.extents.size();
    image_->page = page;
    return {};
  }
  bool stopped = false;
  request.pace = [&](std::uint64_t bytes) -> Status {
    run.spend(2 * bytes);
    run.yield();
    stopped = run.stopping();
    return stopped ? Status(Error{Errc::kBusy, "told to stop"}) : Status{};
  };
  Result<engine::ProtectOutcome> outcome = protect_as_fits(request);
  if (stopped) return {};  // the next step finds the rest
  MDFS_TRY(outcome);
  image_->page = page;
  record.items_changed += outcome->made + outcome->repaired + outcome->removed;
  record.bytes_done += outcome->bytes;
  record.bytes_total = std::max(record.bytes_total, record.bytes_done);
  record.figures[kMade] += outcome->made;
  record.figures[kRepaired] += outcome->repaired;
  record.figures[kRemoved] += outcome->removed;
  record.figures[kNoRoom] += outcome->no_room;
  record.figures[kWrittenBytes] += outcome->bytes;
  for (std::size_t disk = 0; disk < record.disks.size(); ++disk)
    record.disks[disk].written_bytes += outcome->bytes_of_disks[disk];
  again_ = again_ || outcome->again || outcome->changed > 0;
  engine::MoveOutcome damaged;
  damaged.damaged = std::move(outcome->damaged);
  note_damaged(record, image_->ino, damaged);
  return note_written(outcome->bytes + (outcome->removed > 0 ? kStepBytes : 0));
}

Result<bool> Protect::step(OperationRun& run) {
  const std::int64_t until_ns = volume_.environment().monotonic_ns() + kFindNs;
  while (!image_) {
    MDFS_TRY_ASSIGN(const bool more, find(run));
    if (!more) {
      if (run.may_write()) MDFS_TRY(volume_.store().commit());
      if (!run.may_write()) return true;
      if (has_new_work() || volume_.store().gone_disks() != gone_) {  // another disk was lost, or has come
        passes_ = 0;
      } else if (!again_ || passes_ >= kMostPasses) {
        if (run.record.figures[kNoRoom] == 0 && run.record.items_failed == 0) volume_.store().note_rebuilt(gone_);
        return true;
      }
      begin_pass(run);
      return false;
    }
    if (!image_ && (run.stopping() || volume_.environment().monotonic_ns() > until_ns)) return false;
  }
  const Status worked = work(run);
  if (worked.ok() || worked.error().code == Errc::kDiskOut) return false;  // once more, on other disks
  if (worked.error().code == Errc::kNoSpace) {
    spdlog::warn("protection: inode {}: {}", image_->ino, worked.error().message());
    ++run.record.figures[kNoRoom];
    image_.reset();
    return false;
  }
  if (!volume::is_passed_over(worked.error())) return worked.error();
  pass_over(run, worked.error());
  return false;
}

}  // namespace mdfs::maintenance
