// Defragmentation, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/defrag.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "maintenance/moves.h"
#include "maintenance/objects.h"

namespace mdfs::maintenance {

void Defrag::forget() {
  surveying_ = true;
  listed_ = false;
  next_ = 0;
  in_strips_.clear();
  candidates_.clear();
  current_ = {};
  moves_.clear();
  uncommitted_bytes_ = 0;
  tried_ = false;
  waiting_.clear();
  waiting_units_ = 0;
  measured_later_.clear();
  clearing_.forget();
  clear_ = Clear::kChoose;
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
  forget();
  return {};
}

// The list is made anew: what has been relocated is not in it any more.
Status Defrag::resume(OperationRun& run) {
  forget();
  run.record.bytes_total = run.record.bytes_done;
  run.record.items_total = run.record.items_done;
  return {};
}

Result<bool> Defrag::step(OperationRun& run) {
  if (!in_strips_.empty()) {
    MDFS_TRY(settle_some(run));
    return false;
  }
  if (surveying_) {
    if (listed_)
      end_survey(run);
    else
      MDFS_TRY(survey(run));
    return false;
  }
  if (current_.ino == 0) {
    if (candidates_.empty()) {
      if (!waiting_.empty()) return clear(run);
      if (run.may_write()) MDFS_TRY(volume_.store().commit());
      for (const auto& [ino, before] : std::exchange(measured_later_, {})) measure(run, ino, before);
      return true;
    }
    MDFS_TRY(open_next(run));
    return false;
  }
  Status status;
  if (!moves_.empty())
    status = move_group(run);
  else if (!planned_)
    status = plan_part(run);
  else
    close_current(run);
  if (!status.ok() && !is_passed_over(status.error())) return std::move(status).error();
  if (!status.ok()) close_current(run);  // removed meanwhile, or its records are damaged: the next one
  return false;
}

// ---- the list

Status Defrag::list(OperationRun& run, Ino ino, std::uint64_t stored_bytes) {
  if (run.may_write()) {
    const Result<bool> strips = has_strips(volume_, ino);
    if (!strips.ok()) return is_passed_over(strips.error()) ? Status{} : Status(strips.error());
    if (*strips) {
      in_strips_.push_back({ino, 0, stored_bytes});
      return {};
    }
  }
  return look_at(run, ino, stored_bytes);
}

// Extents are written whole, also those that are not full: nobody knows whether more will come.
Status Defrag::settle_some(OperationRun& run) {
  const Candidate& image = in_strips_.front();
  run.yield();
  const Result<std::uint64_t> settled = volume_.settle(image.ino, Operation::kStepBytes, true);
  if (settled.ok() && *settled > 0) {
    run.spend(2 * *settled);
    uncommitted_bytes_ += *settled;
    if (uncommitted_bytes_ < kBytesPerCommit) return {};
    uncommitted_bytes_ = 0;
    return volume_.store().commit();
  }
  // Nothing is left, or what is left is being written to, or there is no room.
  Status status = settled.ok() || is_passed_over(settled.error()) || settled.error().code == Errc::kNoSpace
                      ? Status{}
                      : Status(settled.error());
  if (settled.ok() || settled.error().code == Errc::kNoSpace) status = look_at(run, image.ino, image.bytes);
  in_strips_.pop_front();
  return status;
}

Status Defrag::look_at(OperationRun& run, Ino ino, std::uint64_t stored_bytes) {
  const Result<layout::Fragmentation> fragmentation = data_fragmentation(volume_, ino);
  if (!fragmentation.ok()) return is_passed_over(fragmentation.error()) ? Status{} : Status(fragmentation.error());
  ++run.record.figures[kSeen];
  const double factor = std::max(fragmentation->factor(), fragmentation->imbalance());
  if (factor * 1000 <= static_cast<double>(run.record.threshold)) return {};
  candidates_.push_back({ino, factor, stored_bytes});
  return {};
}

Status Defrag::survey(OperationRun& run) {
  if (run.record.object != 0) {
    const Result<volume::Attributes> attributes = volume_.attributes(run.record.object);
    if (attributes.ok()) MDFS_TRY(list(run, run.record.object, attributes->stored_bytes));
    listed_ = true;
    return {};
  }
  const std::int64_t until_ns = volume_.environment().monotonic_ns() + kSurveyNs;
  do {
    MDFS_TRY_ASSIGN(const auto files, volume::next_files(volume_.store(), next_));
    for (const volume::FileItem& file : files) {
      if (file.inode.is_image() ? file.inode.stored_bytes == 0 : file.inode.stored_bytes < kLeastFileBytes) continue;
      MDFS_TRY(list(run, file.ino, file.inode.stored_bytes));
    }
    listed_ = next_ == 0;
  } while (!listed_ && in_strips_.empty() && !run.stopping() && volume_.environment().monotonic_ns() < until_ns);
  if (!listed_ && candidates_.size() > 2 * kMostCandidates) keep_worst();
  return {};
}

void Defrag::keep_worst() {
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.factor > b.factor; });
  if (candidates_.size() > kMostCandidates) candidates_.resize(kMostCandidates);
}

void Defrag::end_survey(OperationRun& run) {
  keep_worst();
  surveying_ = false;
  for (const Candidate& candidate : candidates_) run.record.bytes_total += candidate.bytes;
  run.record.items_total += candidates_.size();
}

// ---- one image or file

Status Defrag::open_next(OperationRun& run) {
  current_ = candidates_.front();
  candidates_.pop_front();
  from_ = 0;
  counted_ = 0;
  planned_ = improved_ = false;
  before_ = {};
  const Result<layout::Fragmentation> fragmentation = data_fragmentation(volume_, current_.ino);
  if (fragmentation.ok())
    before_ = *fragmentation;
  else
    close_current(run);
  return {};
}

Status Defrag::plan_part(OperationRun& run) {
  MDFS_TRY_ASSIGN(layout::DefragPlan plan, plan_defrag(volume_, current_.ino, from_));
  std::uint64_t moving = 0;
  for (layout::GroupMove& move : plan.moves) {
    moving += move.bytes;
    moves_.push_back(std::move(move));
  }
  const std::uint64_t resting = plan.stored_bytes - std::min(plan.stored_bytes, moving);
  counted_ += resting;
  run.record.bytes_done += resting;
  from_ = plan.next;
  planned_ = plan.next == 0;
  return {};
}

Result<std::optional<engine::MoveOutcome>> Defrag::move(OperationRun& run, Ino ino, const layout::GroupMove& group,
                                                        std::uint64_t at_block) {
  engine::MoveRequest request;
  request.units = group.units;
  request.disk = [disk = group.disk](const geometry::Coord&) { return disk; };
  request.at_block = at_block;
  return move_for(run, volume_, ino, std::move(request));
}

void Defrag::note(OperationRun& run, Ino ino, const layout::GroupMove& group, const engine::MoveOutcome& moved) {
  OperationRecord& record = run.record;
  if (moved.moved > 0) ++record.items_changed;
  record.figures[kMovedBytes] += moved.moved_bytes;
  record.figures[kChanged] += moved.changed;
  note_damaged(record, ino, moved);
  if (group.disk >= record.disks.size()) return;
  record.disks[group.disk].written_bytes += moved.moved_bytes;
  record.disks[group.disk].repaired += moved.moved > 0 ? 1 : 0;
}

Status Defrag::move_group(OperationRun& run) {
  OperationRecord& record = run.record;
  const layout::GroupMove& group = moves_.front();
  const auto end = [&] {
    counted_ += group.bytes;
    record.bytes_done += group.bytes;
    tried_ = false;
    moves_.pop_front();
  };
  if (!run.may_write()) {
    record.figures[kMovedBytes] += group.bytes;
    ++record.items_changed;
    if (group.disk < record.disks.size()) ++record.disks[group.disk].repaired;
    end();
    return {};
  }
  const auto outcome = move(run, current_.ino, group, 0);
  if (!outcome.ok()) return outcome.error();
  if (!*outcome) return {};
  const engine::MoveOutcome& moved = **outcome;
  if (moved.no_room > 0) {
    // What earlier moves have left is free two commits later.
    if (uncommitted_bytes_ > 0 && !std::exchange(tried_, true)) {
      uncommitted_bytes_ = 0;
      return volume_.store().commit_unlinked();
    }
    if (let_wait({current_.ino, group, {}, false})) {
      counted_ += group.bytes;
      tried_ = false;
      measured_later_.emplace(current_.ino, before_);
      moves_.pop_front();
      return {};
    }
    ++record.figures[kNoRoom];
  }
  if (moved.moved > 0) improved_ = true;
  note(run, current_.ino, group, moved);
  uncommitted_bytes_ += moved.moved_bytes;
  end();
  if (uncommitted_bytes_ < kBytesPerCommit) return {};
  uncommitted_bytes_ = 0;
  return volume_.store().commit();
}

void Defrag::measure(OperationRun& run, Ino ino, const layout::Fragmentation& before) {
  const Result<layout::Fragmentation> after = data_fragmentation(volume_, ino);
  if (!after.ok()) return;
  run.record.figures[kRunsBefore] += before.runs;
  run.record.figures[kRunsAfter] += after->runs;
  run.record.figures[kRunsFresh] += before.fresh_runs;
}

void Defrag::close_current(OperationRun& run) {
  OperationRecord& record = run.record;
  record.bytes_done += current_.bytes - std::min(current_.bytes, counted_);
  ++record.items_done;
  if (improved_ && !measured_later_.contains(current_.ino)) measure(run, current_.ino, before_);
  moves_.clear();
  tried_ = false;
  current_ = {};
}

// ---- groups without room

Result<bool> Defrag::clear(OperationRun& run) {
  switch (clear_) {
    case Clear::kChoose: {
      MDFS_TRY_ASSIGN(const bool chosen, choose_ranges(run));
      if (!chosen && !clearing_.forget_obstacles())
        while (!waiting_.empty()) end_waiting(run, false);
      clear_ = chosen ? Clear::kClear : Clear::kChoose;
      has_progress_ = false;
      break;
    }
    case Clear::kClear: {
      MDFS_TRY_ASSIGN(const bool cleared, clearing_.step(run));
      run.record.figures[kCleared] += clearing_.take_moved_bytes();
      if (cleared) end_clearing(run);
      filled_ = 0;
      break;
    }
    case Clear::kFill: {
      if (filled_ < waiting_.size()) {
        MDFS_TRY(fill_range(run));
        break;
      }
      // So that what the groups have left is free for the next ones.
      MDFS_TRY(volume_.store().commit_unlinked());
      clear_ = Clear::kChoose;
      vain_rounds_ = has_progress_ ? 0 : vain_rounds_ + 1;
      if (vain_rounds_ >= kMostVainRounds)
        while (!waiting_.empty()) end_waiting(run, false);
    }
  }
  return false;
}

// One for each group that waits, as long as there are any.
Result<bool> Defrag::choose_ranges(OperationRun& run) {
  std::set<unsigned> exhausted;
  bool chosen = false;
  for (Waiting& waiting : waiting_) {
    if (run.stopping()) break;
    if (exhausted.contains(waiting.group.disk)) continue;
    const std::uint64_t blocks = waiting.group.bytes / volume_.store().block_size();
    if (blocks > MDFS_BITS_PER_PAGE) continue;
    MDFS_TRY_ASSIGN(waiting.range, clearing_.freeze(waiting.group.disk, static_cast<std::uint32_t>(blocks)));
    if (waiting.range)
      chosen = true;
    else
      exhausted.insert(waiting.group.disk);
  }
  Clearing::Units units;
  for (const Waiting& waiting : waiting_)
    if (!waiting.lies_well) units[waiting.ino].insert(waiting.group.units.begin(), waiting.group.units.end());
  clearing_.begin(std::move(units));
  return chosen;
}

// What was too large for any hole gets a range of its own in turn; then the blocks around it are one hole.
void Defrag::end_clearing(OperationRun& run) {
  clear_ = Clear::kFill;
  for (Clearing::Piece& piece : clearing_.take_too_large()) {
    const std::uint64_t bytes = std::uint64_t{piece.run.blocks} * volume_.store().block_size();
    if (!let_wait({piece.ino, {std::move(piece.units), piece.run.disk, bytes}, {}, true})) break;
    run.record.bytes_total += bytes;
    has_progress_ = true;  // there is something new to try
  }
}

// The next one that waits moves to where there is room for it now.
Status Defrag::fill_range(OperationRun& run) {
  Waiting& waiting = waiting_[filled_];
  if (!waiting.range) {
    ++filled_;
    return {};
  }
  const store::Run range = *waiting.range;
  bool is_over = false;
  if (clearing_.is_frozen(range)) {
    const auto moved = move(run, waiting.ino, waiting.group, range.block);
    if (moved.ok() && !*moved) return {};
    const Status status = moved.ok() ? Status() : Status(moved.error());
    if (!status.ok() && !is_passed_over(status.error()) && status.error().code != Errc::kNoSpace) return status;
    clearing_.thaw(range);
    is_over = moved.ok() ? (*moved)->no_room == 0 : is_passed_over(status.error());
    if (moved.ok() && is_over) {
      note(run, waiting.ino, waiting.group, **moved);
      clearing_.keep(range);
    }
  }
  waiting.range.reset();
  if (!is_over) {
    ++filled_;
    return {};
  }
  has_progress_ = true;
  std::swap(waiting_[filled_], waiting_.front());
  end_waiting(run, true);
  return {};
}

bool Defrag::let_wait(Waiting waiting) {
  if (waiting_.size() >= kMostWaiting || waiting_units_ + waiting.group.units.size() > kMostWaitingUnits) return false;
  waiting_units_ += waiting.group.units.size();
  waiting_.push_back(std::move(waiting));
  return true;
}

// The first one that waits does so no longer.
void Defrag::end_waiting(OperationRun& run, bool moved) {
  run.record.bytes_done += waiting_.front().group.bytes;
  if (!moved && !waiting_.front().lies_well) ++run.record.figures[kNoRoom];
  waiting_units_ -= waiting_.front().group.units.size();
  waiting_.pop_front();
}

}  // namespace mdfs::maintenance
