// Defragmentation: images whose typical windows lie in many runs are relocated contiguously, group by group, the worst
// ones first. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "maintenance/clearing.h"
#include "maintenance/operation.h"

namespace mdfs::maintenance {

// Looks at all images, and at files of several cells (their cells count as extents), keeps those whose factor or load
// (layout/fragmentation.h) is above the threshold, and moves their groups (layout/defrag_plan.h) by copy-on-write moves
// of one group each. Extents with bytes in strips are written whole before they are looked at. Groups for which their
// disk has no hole wait until all others have been moved; then ranges of the disks are cleared for them
// (maintenance/clearing.h), as many at a time as the free space allows, until they all have been moved or nothing can
// be cleared any more. What has been relocated is below the threshold: a run that resumes after a crash looks
// again and finds the rest. The record's threshold is a factor in thousandths, 0 the default; its cursor is not used.
// The figures are those of Figure.
class Defrag final : public Operation {
 public:
  enum Figure : std::uint8_t {
    kSeen,        // images and files looked at
    kMovedBytes,  // in a dry run: that would move
    kNoRoom,      // groups for which their disk has no run, and none can be cleared
    kChanged,     // extents and cells that others wrote while they were being moved
    kRunsBefore,  // of typical windows of what has been relocated, summed, as are the next two
    kRunsAfter,
    kRunsFresh,  // of a fresh copy
    kCleared,    // bytes of others that were moved out of the way
  };
  static constexpr std::uint64_t kDefaultThreshold = 1100;
  static constexpr std::uint64_t kLeastThreshold = 1000, kMostThreshold = 1'000'000;

  explicit Defrag(MaintainedVolume& volume) : volume_(volume), clearing_(volume) {}

  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;
  Result<bool> step(OperationRun& run) override;
  void rest() override { forget(); }

 private:
  static constexpr std::int64_t kSurveyNs = 50'000'000;          // of a step
  static constexpr std::size_t kMostCandidates = 1u << 16;       // the worst ones; the others wait for the next run
  static constexpr std::uint64_t kBytesPerCommit = 64ull << 20;  // moved, so that what is freed can be used again
  static constexpr std::size_t kMostWaiting = 1u << 12;
  static constexpr std::size_t kMostWaitingUnits = 1u
                                                   << 17;  // of all groups that wait: a group of tiny extents has many
  static constexpr unsigned kMostVainRounds = 8;
  static constexpr std::uint64_t kLeastFileBytes = 256u << 10;  // smaller ones have no window to speak of

  struct Candidate {
    Ino ino = 0;
    double factor = 0;        // or load, whichever is more
    std::uint64_t bytes = 0;  // stored
  };
  // A group that needs a range cleared.
  struct Waiting {
    Ino ino = 0;
    layout::GroupMove group;
    std::optional<store::Run> range;
    bool lies_well = false;  // it is only in the way of others
  };
  enum class Clear : std::uint8_t { kChoose, kClear, kFill };
  void forget();
  Status survey(OperationRun& run);
  // One of the survey: looked at at once, or when its strips are settled.
  Status list(OperationRun& run, Ino ino, std::uint64_t stored_bytes);
  Status look_at(OperationRun& run, Ino ino, std::uint64_t stored_bytes);
  Status settle_some(OperationRun& run);
  void keep_worst();
  void end_survey(OperationRun& run);
  Status open_next(OperationRun& run);
  Status plan_part(OperationRun& run);
  Status move_group(OperationRun& run);
  Result<std::optional<engine::MoveOutcome>> move(OperationRun& run, Ino ino, const layout::GroupMove& group,
                                                  std::uint64_t at_block);
  void note(OperationRun& run, Ino ino, const layout::GroupMove& group, const engine::MoveOutcome& moved);
  Result<bool> clear(OperationRun& run);
  Result<bool> choose_ranges(OperationRun& run);
  void end_clearing(OperationRun& run);
  Status fill_range(OperationRun& run);
  // False if too many wait already.
  bool let_wait(Waiting waiting);
  void end_waiting(OperationRun& run, bool moved);
  void measure(OperationRun& run, Ino ino, const layout::Fragmentation& before);
  void close_current(OperationRun& run);

  MaintainedVolume& volume_;
  bool surveying_ = true;
  bool listed_ = false;                  // the survey has seen all
  Ino next_ = 0;                         // where the survey resumes
  std::deque<Candidate> in_strips_;      // to be settled before they are looked at
  std::deque<Candidate> candidates_;     // the worst one first, once the survey has ended
  Candidate current_;                    // ino 0: none
  layout::Fragmentation before_;         // of the current one
  std::uint64_t from_ = 0;               // where planning resumes
  bool planned_ = false;                 // all of it
  bool improved_ = false;                // something of it has been moved
  std::deque<layout::GroupMove> moves_;  // of the part that was planned last
  std::uint64_t counted_ = 0;            // bytes of the current one in bytes_done
  bool tried_ = false;                   // the first of the moves, before the last commit
  std::uint64_t uncommitted_bytes_ = 0;
  std::deque<Waiting> waiting_;
  std::size_t waiting_units_ = 0;
  std::map<Ino, layout::Fragmentation> measured_later_;  // of images with groups that wait: before anything was moved
  Clearing clearing_;
  Clear clear_ = Clear::kChoose;
  std::size_t filled_ = 0;     // of waiting_, in this round
  bool has_progress_ = false;  // in this round
  unsigned vain_rounds_ = 0;   // one after another
};

}  // namespace mdfs::maintenance
