// Defragmentation: relocates images contiguously, group by group, the most fragmented images first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "layout/defrag_plan.h"
#include "layout/fragmentation.h"
#include "maintenance/clearing.h"
#include "maintenance/relocation.h"

namespace mdfs::maintenance {

// Surveys all images, and files of several cells (cells count as extents). Takes those whose factor or imbalance
// (layout/fragmentation.h) is above the threshold. Moves their groups (layout/defrag_plan.h), each with one
// copy-on-write move. Extents with bytes in strips are consolidated before their image is judged.
// Groups without a hole on their disk wait until all others have been moved. Then ranges of the disks are cleared for
// them (maintenance/clearing.h), as many at a time as the free space allows. That ends when all groups have been moved
// or nothing more can be cleared.
// Relocated images are below the threshold, so an operation that resumes after a crash surveys again and finds the
// rest. The record's threshold is a factor in thousandths, 0 the default. Its cursor is not used. The figures are those
// of Figure.
class Defrag final : public Relocation {
 public:
  enum Figure : std::uint8_t {
    kSeen,        // images and files surveyed
    kMovedBytes,  // in a dry run: that would move
    kNoRoom,      // groups without a hole on their disk, where none can be cleared
    kChanged,     // extents and cells that were written during their move
    kRunsBefore,  // of typical windows in relocated images, summed, as are the next two
    kRunsAfter,
    kRunsFresh,  // of a fresh copy
    kCleared,    // bytes of other extents that were moved out of the way
  };
  static constexpr std::uint64_t kDefaultThreshold = 1100;
  static constexpr std::uint64_t kLeastThreshold = 1000, kMostThreshold = 1'000'000;

  explicit Defrag(MaintainedVolume& volume)
      : Relocation(volume), walk_(volume, engine::LayoutOf::kExtents), clearing_(volume.store()) {}

  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;
  void rest() override { forget_all(); }

 private:
  static constexpr std::size_t kMostImages = 1u << 16;  // the most fragmented ones; the others wait for the next run
  // Waiting groups, and their extents: a group of tiny extents has many.
  static constexpr std::size_t kMostWaiting = 1u << 12, kMostWaitingExtents = 1u << 17;
  static constexpr unsigned kMostVainRounds = 8;
  static constexpr std::uint64_t kLeastFileBytes = 256u << 10;  // smaller files have too few cells for windows

  struct Image {  // or file
    Ino ino = 0;
    double factor = 0;        // or imbalance, whichever is larger
    std::uint64_t bytes = 0;  // stored
  };
  enum class Phase : std::uint8_t { kSurvey, kPlan, kChoose, kClear, kFill };

  Result<bool> find(OperationRun& run) override;
  Status done(OperationRun& run, Candidate candidate, const Status& status) override;

  void forget_all();
  Status survey(OperationRun& run);
  // An image of the survey: judged at once, or after its strips are consolidated.
  Status list(OperationRun& run, Ino ino, std::uint64_t stored_bytes);
  Status look_at(OperationRun& run, Ino ino, std::uint64_t stored_bytes);
  void keep_worst();
  Result<bool> plan(OperationRun& run);
  Status plan_part(OperationRun& run);
  Status note_consolidated(OperationRun& run, const Candidate& image, const Status& status);
  void note_group(OperationRun& run, Candidate group, const Status& status);
  void note_filled(OperationRun& run, Candidate group, const Status& status);
  void note_cleared(OperationRun& run, Candidate piece, const Status& status);
  static unsigned disk_of(const Candidate& group);
  static void note_moved(OperationRun& run, const Candidate& group);
  void measure(OperationRun& run, Ino ino, const layout::Fragmentation& before);
  void close_current(OperationRun& run);
  Status choose_ranges(OperationRun& run);
  Status clear_some();
  Status begin_filling();
  Status end_round(OperationRun& run);
  // False if too many groups wait already.
  bool let_wait(Candidate group);
  void end_waiting(OperationRun& run, const Candidate& group, bool has_moved);
  void give_up_waiting(OperationRun& run);

  Phase phase_ = Phase::kSurvey;
  bool listed_ = false;           // the survey has seen all objects
  Ino next_ = 0;                  // start of the next part of the survey
  std::deque<Image> images_;      // the worst one first, once the survey has ended
  Image current_;                 // ino 0: none
  layout::Fragmentation before_;  // of the current one
  std::uint64_t from_ = 0;        // start of the next part of the plan
  bool planned_ = false;          // all parts
  bool improved_ = false;         // a group of it has been moved
  std::uint64_t counted_ = 0;     // bytes of the current image that bytes_done includes
  // Groups without a hole, and pieces in the way without one.
  std::deque<Candidate> waiting_;
  std::size_t waiting_extents_ = 0;
  std::set<std::pair<Ino, geometry::Coord>> told_;       // pieces that have waited, by their first extent
  std::map<Ino, layout::Fragmentation> measured_later_;  // of images with waiting groups: before any move
  ObjectWalk walk_;                                      // of the clearing
  std::vector<layout::ExtentPlace> near_;                // extents near a range, of the object at the walk
  Clearing clearing_;
  bool has_progress_ = false;  // in this round
  unsigned vain_rounds_ = 0;   // in a row
};

}  // namespace mdfs::maintenance
