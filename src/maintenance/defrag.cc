// Defragmentation: the survey, the plans, and the room for what has none.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/defrag.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "maintenance/objects.h"
#include "volume/records.h"

namespace mdfs::maintenance {

using volume::is_passed_over;

void Defrag::forget_all() {
  forget();
  phase_ = Phase::kSurvey;
  listed_ = false;
  next_ = 0;
  images_.clear();
  current_ = {};
  waiting_.clear();
  waiting_extents_ = 0;
  told_.clear();
  measured_later_.clear();
  near_.clear();
  clearing_.forget();
  vain_rounds_ = 0;
}

Status Defrag::begin(OperationRun& run) {
  OperationRecord& record = run.record;
  if (record.threshold == 0) record.threshold = kDefaultThreshold;
  if (record.threshold < kLeastThreshold || record.threshold > kMostThreshold)
    return {Errc::kInvalidArgument,
            fmt::format("threshold {}: must be from 1 to 1000", static_cast<double>(record.threshold) / 1000)};
  if (record.object != 0) {
    MDFS_TRY_ASSIGN(const volume::Attributes attributes, volume_.attributes(record.object));
    if ((attributes.mode & S_IFMT) != S_IFREG)
      return {Errc::kInvalidArgument, "only images and files can be defragmented"};
  }
  forget_all();
  return {};
}

// The list is made anew: what has been relocated is not in it any more.
Status Defrag::resume(OperationRun& run) {
  forget_all();
  run.record.bytes_total = run.record.bytes_done;
  run.record.items_total = run.record.items_done;
  return {};
}

Result<bool> Defrag::find(OperationRun& run) {
  Status status;
  switch (phase_) {
    case Phase::kSurvey:
      status = survey(run);
      break;
    case Phase::kPlan:
      return plan(run);
    case Phase::kChoose:
      status = choose_ranges(run);
      break;
    case Phase::kClear:
      status = clear_some();
      break;
    case Phase::kFill:
      status = end_round(run);
  }
  if (!status.ok()) return std::move(status).error();
  return true;
}

Status Defrag::done(OperationRun& run, Candidate candidate, const Status& status) {
  if (candidate.reason == MoveReason::kInStrips) return note_consolidated(run, candidate, status);
  if (candidate.request.at_block != 0)
    note_filled(run, std::move(candidate), status);
  else if (candidate.reason == MoveReason::kInTheWay)
    note_cleared(run, std::move(candidate), status);
  else
    note_group(run, std::move(candidate), status);
  return {};
}

// ---- the list

Status Defrag::survey(OperationRun& run) {
  if (listed_) {
    keep_worst();
    phase_ = Phase::kPlan;
    for (const Image& image : images_) run.record.bytes_total += image.bytes;
    run.record.items_total += images_.size();
    return {};
  }
  if (run.record.object != 0) {
    listed_ = true;
    const Result<volume::Attributes> attributes = volume_.attributes(run.record.object);
    return attributes.ok() ? list(run, run.record.object, attributes->stored_bytes) : Status();
  }
  MDFS_TRY_ASSIGN(const auto files, volume::next_files(volume_.store(), next_));
  for (const volume::FileItem& file : files) {
    if (file.inode.is_image() ? file.inode.stored_bytes == 0 : file.inode.stored_bytes < kLeastFileBytes) continue;
    MDFS_TRY(list(run, file.ino, file.inode.stored_bytes));
  }
  listed_ = next_ == 0;
  if (images_.size() > 2 * kMostImages) keep_worst();
  return {};
}

Status Defrag::list(OperationRun& run, Ino ino, std::uint64_t stored_bytes) {
  if (run.may_write()) {
    const Result<bool> strips = has_strips(volume_, ino);
    if (!strips.ok()) return is_passed_over(strips.error()) ? Status{} : Status(strips.error());
    if (*strips) {
      queue({.object = ino, .reason = MoveReason::kInStrips, .bytes = stored_bytes});
      return {};
    }
  }
  return look_at(run, ino, stored_bytes);
}

Status Defrag::note_consolidated(OperationRun& run, const Candidate& image, const Status& status) {
  if (status.ok() || status.error().code == Errc::kNoSpace) return look_at(run, image.object, image.bytes);
  return is_passed_over(status.error()) ? Status() : status;
}

Status Defrag::look_at(OperationRun& run, Ino ino, std::uint64_t stored_bytes) {
  const Result<layout::Fragmentation> fragmentation = data_fragmentation(volume_, ino);
  if (!fragmentation.ok()) return is_passed_over(fragmentation.error()) ? Status{} : Status(fragmentation.error());
  ++run.record.figures[kSeen];
  const double factor = std::max(fragmentation->factor(), fragmentation->imbalance());
  if (factor * 1000 > static_cast<double>(run.record.threshold)) images_.push_back({ino, factor, stored_bytes});
  return {};
}

void Defrag::keep_worst() {
  std::ranges::sort(images_, std::ranges::greater(), &Image::factor);
  if (images_.size() > kMostImages) images_.resize(kMostImages);
}

// ---- one image or file

Result<bool> Defrag::plan(OperationRun& run) {
  if (current_.ino == 0 && images_.empty()) {
    if (!waiting_.empty()) {
      phase_ = Phase::kChoose;
      return true;
    }
    if (run.may_write()) MDFS_TRY(volume_.store().commit());
    for (const auto& [ino, before] : std::exchange(measured_later_, {})) measure(run, ino, before);
    return false;
  }
  if (current_.ino == 0) {
    current_ = images_.front();
    images_.pop_front();
    from_ = 0;
    counted_ = 0;
    planned_ = improved_ = false;
    const Result<layout::Fragmentation> fragmentation = data_fragmentation(volume_, current_.ino);
    before_ = fragmentation.ok() ? *fragmentation : layout::Fragmentation();
    planned_ = !fragmentation.ok();
  }
  Status status = planned_ ? Status() : plan_part(run);
  if (!status.ok() && !is_passed_over(status.error())) return std::move(status).error();
  // Or removed meanwhile, or its records are damaged: the next one.
  if (!status.ok() || (planned_ && queued().empty())) close_current(run);
  return true;
}

Status Defrag::plan_part(OperationRun& run) {
  MDFS_TRY_ASSIGN(layout::DefragPlan plan, plan_defrag(volume_, current_.ino, from_));
  std::uint64_t resting = plan.stored_bytes;
  for (layout::GroupMove& move : plan.moves) {
    resting -= std::min(resting, move.bytes);
    Candidate group{.object = current_.ino, .reason = MoveReason::kFragmented, .bytes = move.bytes};
    group.request.extents = std::move(move.extents);
    group.request.disk = [disk = move.disk](const geometry::Coord&) { return disk; };
    queue(std::move(group));
  }
  counted_ += resting;
  run.record.bytes_done += resting;
  from_ = plan.next;
  planned_ = plan.next == 0;
  return {};
}

unsigned Defrag::disk_of(const Candidate& group) { return group.request.disk(group.request.extents.front()); }

void Defrag::note_moved(OperationRun& run, const Candidate& group) {
  OperationRecord& record = run.record;
  const engine::MoveOutcome& moved = group.outcome;
  if (moved.moved > 0) ++record.items_changed;
  record.figures[kMovedBytes] += moved.moved_bytes;
  record.figures[kChanged] += moved.changed;
  note_damaged(record, group.object, moved);
  const unsigned disk = disk_of(group);
  if (disk >= record.disks.size()) return;
  record.disks[disk].written_bytes += run.may_write() ? moved.moved_bytes : 0;
  record.disks[disk].repaired += moved.moved > 0 ? 1 : 0;
}

void Defrag::note_group(OperationRun& run, Candidate group, const Status& status) {
  if (!status.ok()) {
    queued().clear();
    close_current(run);
    return;
  }
  counted_ += group.bytes;
  const bool has_room = group.outcome.no_room.empty();
  if (!has_room && let_wait(group)) {
    measured_later_.emplace(current_.ino, before_);
    return;
  }
  run.record.bytes_done += group.bytes;
  run.record.figures[kNoRoom] += has_room ? 0 : 1;
  improved_ = improved_ || (run.may_write() && group.outcome.moved > 0);
  note_moved(run, group);
}

void Defrag::measure(OperationRun& run, Ino ino, const layout::Fragmentation& before) {
  const Result<layout::Fragmentation> after = data_fragmentation(volume_, ino);
  if (!after.ok()) return;
  run.record.figures[kRunsBefore] += before.runs;
  run.record.figures[kRunsAfter] += after->runs;
  run.record.figures[kRunsFresh] += before.fresh_runs;
}

void Defrag::close_current(OperationRun& run) {
  run.record.bytes_done += current_.bytes - std::min(current_.bytes, counted_);
  ++run.record.items_done;
  if (improved_ && !measured_later_.contains(current_.ino)) measure(run, current_.ino, before_);
  current_ = {};
}

// ---- groups without room

// A range for each group that waits, as long as there are any.
Status Defrag::choose_ranges(OperationRun& run) {
  std::set<unsigned> exhausted;
  bool chosen = false;
  for (Candidate& group : waiting_) {
    if (run.stopping()) break;
    const std::uint64_t blocks = group.bytes / volume_.store().block_size();
    if (exhausted.contains(disk_of(group)) || blocks > MDFS_BITS_PER_PAGE) continue;
    MDFS_TRY_ASSIGN(const auto range, clearing_.freeze(disk_of(group), static_cast<std::uint32_t>(blocks)));
    group.range = range.value_or(store::Run());
    chosen = chosen || range;
    if (!range) exhausted.insert(disk_of(group));
  }
  has_progress_ = false;
  if (!chosen && !clearing_.forget_obstacles()) give_up_waiting(run);
  phase_ = chosen ? Phase::kClear : waiting_.empty() ? Phase::kPlan : Phase::kChoose;
  Clearing::Extents extents;
  for (const Candidate& group : waiting_)
    if (group.reason == MoveReason::kFragmented)
      extents[group.object].insert(group.request.extents.begin(), group.request.extents.end());
  clearing_.begin(std::move(extents));
  walk_.begin(0);
  return {};
}

// Looks for pieces in the way, in some more rows of an object. A piece that cannot be listed stays, and its range is
// not cleared.
Status Defrag::clear_some() {
  MDFS_TRY_ASSIGN(const std::optional<ObjectPart> part, walk_.next());
  if (!part) return begin_filling();
  if (part->is_first || !part->listed.ok()) near_.clear();
  std::ranges::copy_if(part->rows, std::back_inserter(near_),
                       [&](const layout::ExtentPlace& place) { return clearing_.is_near(place); });
  if (!part->is_last && near_.size() < Clearing::kMostPlaces) return {};
  for (Candidate& piece : clearing_.in_the_way(part->object, std::exchange(near_, {}))) queue(std::move(piece));
  return {};
}

// A piece that was removed, or written elsewhere meanwhile, is out of the way as well. A damaged piece stays.
void Defrag::note_cleared(OperationRun& run, Candidate piece, const Status& status) {
  const engine::MoveOutcome moved = std::exchange(piece.outcome, {});
  run.record.figures[kCleared] += moved.moved_bytes;
  if (piece.run.disk < run.record.disks.size()) run.record.disks[piece.run.disk].written_bytes += moved.moved_bytes;
  const bool is_damaged = !moved.damaged.empty() || (!status.ok() && status.error().code == Errc::kCorrupt);
  if (moved.no_room.empty() && !is_damaged) return;
  const store::Run range = std::exchange(piece.range, {});
  clearing_.keep_for_now(piece.run);
  clearing_.thaw(range);
  std::erase_if(queued(), [&](const Candidate& other) { return other.range == range; });
  // A piece too large for any hole gets a range of its own in turn. The blocks around it then form one hole.
  if (moved.no_room.empty() || piece.request.most_runs > 1) return;
  if (!told_.emplace(piece.object, piece.request.extents.front()).second) return;
  const std::uint64_t bytes = piece.bytes;
  if (!let_wait(std::move(piece))) return;
  run.record.bytes_total += bytes;
  has_progress_ = true;  // there is something new to try
}

// Each group that waits moves to where there is room for it now.
Status Defrag::begin_filling() {
  MDFS_TRY(commit());
  phase_ = Phase::kFill;
  for (Candidate& group : std::exchange(waiting_, {})) {
    if (!clearing_.is_frozen(group.range)) {
      group.range = {};
      waiting_.push_back(std::move(group));
      continue;
    }
    group.request.at_block = group.range.block;
    queue(std::move(group));
  }
  return {};
}

void Defrag::note_filled(OperationRun& run, Candidate group, const Status& status) {
  clearing_.thaw(group.range);
  if (status.ok() && !group.outcome.no_room.empty()) {
    group.range = {};
    group.request.at_block = 0;
    group.outcome = {};
    waiting_.push_back(std::move(group));
    return;
  }
  if (status.ok()) {
    note_moved(run, group);
    clearing_.keep(group.range);
  }
  has_progress_ = true;
  end_waiting(run, group, true);
}

Status Defrag::end_round(OperationRun& run) {
  MDFS_TRY(commit());  // so that what the groups have left is free for the next ones
  phase_ = Phase::kChoose;
  vain_rounds_ = has_progress_ ? 0 : vain_rounds_ + 1;
  if (vain_rounds_ >= kMostVainRounds) give_up_waiting(run);
  if (waiting_.empty()) phase_ = Phase::kPlan;
  return {};
}

bool Defrag::let_wait(Candidate group) {
  const std::size_t extents = group.request.extents.size();
  if (waiting_.size() >= kMostWaiting || waiting_extents_ + extents > kMostWaitingExtents) return false;
  waiting_extents_ += extents;
  group.outcome = {};
  waiting_.push_back(std::move(group));
  return true;
}

void Defrag::end_waiting(OperationRun& run, const Candidate& group, bool has_moved) {
  run.record.bytes_done += group.bytes;
  if (!has_moved && group.reason == MoveReason::kFragmented) ++run.record.figures[kNoRoom];
  waiting_extents_ -= group.request.extents.size();
}

void Defrag::give_up_waiting(OperationRun& run) {
  for (const Candidate& group : std::exchange(waiting_, {})) end_waiting(run, group, false);
}

}  // namespace mdfs::maintenance
