// Planning a rebuild piece by piece, and running it beside readers.
// SPDX-License-Identifier: Apache-2.0
#include "sim/rebuild.h"

#include <algorithm>
#include <utility>

#include "base/background_pace.h"
#include "base/check.h"
#include "base/checked.h"
#include "geometry/extent_grid.h"
#include "geometry/page.h"
#include "sim/experiment.h"
#include "sim/parity_rebuild.h"

namespace mdfs::sim {
namespace {

constexpr double kYieldS = static_cast<double>(kMostYieldNs) * 1e-9;
constexpr double kNapS = static_cast<double>(kYieldNapNs) * 1e-9;

// An extent that has lost a copy.
struct Lost {
  geometry::PagePlace at;
  unsigned source = 0;
  std::uint64_t source_offset = 0;
  bool is_first = false;  // the copy that is lost
};

class Planner {
 public:
  explicit Planner(const System& system)
      : system_(system),
        image_(system.setup().image),
        lost_(*system.setup().lost_disk),
        stored_(system.setup().disks),
        rebuilt_first_(system.setup().disks),
        rebuilt_second_(system.setup().disks) {}

  RebuildPlan plan() {
    RebuildPlan plan;
    plan.disks.resize(system_.setup().disks);
    const std::vector<Lost> lost = find_lost();
    plan.extents = lost.size();
    plan.bytes = lost.size() * system_.step_bytes();
    for (std::size_t first = 0; first < lost.size();) {
      const std::size_t last = end_of_step(lost, first);
      bool begins_step = true;
      for (std::size_t begin = first; begin < last;) {
        const std::size_t end = std::min(last, begin + of_a_piece());
        plan.pieces.push_back(piece({lost.begin() + static_cast<std::ptrdiff_t>(begin), end - begin}, plan.disks));
        plan.pieces.back().begins_step = std::exchange(begins_step, false);
        begin = end;
      }
      first = last;
    }
    return plan;
  }

 private:
  std::size_t of_a_piece() const { return ceil_div(kRebuildPieceBytes, system_.step_bytes()); }

  // In the order of their records. Counts what each disk holds.
  std::vector<Lost> find_lost() {
    const geometry::ByteGeometry bytes = geometry::byte_geometry(image_);
    const geometry::Coord grid = image_.grid();
    const geometry::PageBox box =
        geometry::page_box(image_.rank, geometry::record_bytes(system_.checksums_of_extent()));
    std::vector<Lost> lost;
    for (std::uint64_t number = 0; number < geometry::extent_count(image_.rank, grid); ++number) {
      const geometry::Coord extent = geometry::extent_coord(bytes, number);
      const unsigned first = system_.layout().disk_of(extent, 0), second = system_.second_copies().disk_of(extent, 0);
      ++stored_[first];
      ++stored_[second];
      if (first != lost_ && second != lost_) continue;
      const bool is_first = first == lost_;
      lost.push_back({geometry::page_place(image_.rank, grid, box, extent), is_first ? second : first,
                      (is_first ? system_.second_copies() : system_.layout()).offset_of(number), is_first});
    }
    std::sort(lost.begin(), lost.end(), [](const Lost& one, const Lost& other) {
      return std::pair(one.at.page, one.at.place) < std::pair(other.at.page, other.at.place);
    });
    return lost;
  }

  static std::size_t end_of_step(const std::vector<Lost>& lost, std::size_t first) {
    std::size_t end = std::min(lost.size(), first + kRebuildExtents);
    while (end < lost.size() && lost[end].at.page == lost[end - 1].at.page) ++end;
    return end;
  }

  // The disk with the most room of those that do not have the other copy.
  unsigned target_of(const Lost& extent) const {
    unsigned best = system_.setup().disks;
    for (unsigned disk = 0; disk < system_.setup().disks; ++disk) {
      if (disk == lost_ || disk == extent.source) continue;
      if (best == system_.setup().disks || stored_[disk] < stored_[best]) best = disk;
    }
    return best;
  }

  RebuildPiece piece(std::span<const Lost> extents, std::vector<DiskShare>& shares) {
    const std::uint64_t step = system_.step_bytes(), copies_of_disk = system_.second_copies().first_rank();
    std::vector<geometry::PlanPart> reads, writes;
    for (const Lost& extent : extents) {
      const unsigned target = target_of(extent);
      ++stored_[target];
      // Behind both copies of the image; first and second copies are allocated apart.
      const std::uint64_t rank = extent.is_first ? 2 * copies_of_disk + rebuilt_first_[target]++
                                                 : 3 * copies_of_disk + rebuilt_second_[target]++;
      reads.push_back({extent.source, extent.source_offset, step});
      writes.push_back({target, system_.layout().offset_of_rank(rank), step});
    }
    return piece_of(system_, reads, writes, shares);
  }

  const System& system_;
  const geometry::Geometry& image_;
  const unsigned lost_;
  std::vector<std::uint64_t> stored_;                          // extents, by disk
  std::vector<std::uint64_t> rebuilt_first_, rebuilt_second_;  // likewise
};

class Rebuild final : public Workload {
 public:
  Rebuild(const System& system, const RebuildPlan& plan, const std::optional<RebuildLoad>& load, std::uint64_t seed)
      : system_(system), plan_(plan), load_(load), random_(seed) {}

  void begin(Simulation& simulation) {
    if (load_) next_window(simulation);
    begin_piece(simulation);
  }
  void window_done(Simulation& simulation, std::size_t record) override {
    if (simulation.records()[record].client == kRebuilder) {
      if (std::exchange(reading_, false)) {
        submit(simulation, plan_.pieces[piece_].writes);
        return;
      }
      end_piece(simulation);
      return;
    }
    --readers_;
    ++windows_;
    if (load_ && !load_->windows_per_s && !over_) simulation.alarm_at(simulation.now_s() + load_->think_s, kWindow);
  }
  void alarm(Simulation& simulation, std::uint64_t token) override {
    if (token == kNap) {
      nap(simulation);
    } else if (!over_) {
      request(simulation);
      if (load_->windows_per_s) next_window(simulation);
    }
  }
  void take(const Simulation& simulation, RebuildResult& result) const {
    result.passes = passes_;
    result.rebuild_s = passes_ > 0 ? ended_s_ / static_cast<double>(passes_) : 0;
    result.use = use_;
    for (const WindowRecord& record : simulation.records())
      if (record.client == kReader) result.delays_s.push_back(record.delay_s());
  }

 private:
  static constexpr unsigned kReader = 0, kRebuilder = 1;
  enum Token : std::uint64_t { kNap, kWindow };

  // One after another from the first moment on, or at random times.
  void next_window(Simulation& simulation) {
    if (load_->windows_per_s)
      simulation.alarm_at(simulation.now_s() + random_.exponential(1 / *load_->windows_per_s), kWindow);
    else
      request(simulation);
  }
  void request(Simulation& simulation) {
    ++readers_;
    simulation.submit_at(simulation.now_s(), random_window(system_.setup().image, load_->length, random_), kReader);
  }

  void submit(Simulation& simulation, const std::vector<Request>& requests) {
    simulation.submit_requests_at(simulation.now_s(), requests, kRebuilder);
  }
  void begin_piece(Simulation& simulation) {
    waits_left_ = plan_.pieces[piece_].begins_step ? 2 : 1;
    napped_s_ = 0;
    nap(simulation);
  }
  void nap(Simulation& simulation) {
    while (readers_ == 0 || napped_s_ >= kYieldS - kNapS / 2) {
      napped_s_ = 0;
      if (--waits_left_ > 0) continue;
      reading_ = true;
      submit(simulation, plan_.pieces[piece_].reads);
      return;
    }
    napped_s_ += kNapS;
    simulation.alarm_at(simulation.now_s() + kNapS, kNap);
  }
  void end_piece(Simulation& simulation) {
    if (++piece_ == plan_.pieces.size()) {
      piece_ = 0;
      ++passes_;
      ended_s_ = simulation.now_s();
      over_ = !load_ || windows_ >= load_->windows;
      if (over_) {
        use_ = simulation.use();
        return;
      }
    }
    begin_piece(simulation);
  }

  const System& system_;
  const RebuildPlan& plan_;
  const std::optional<RebuildLoad>& load_;
  Random random_;
  std::size_t piece_ = 0;
  bool reading_ = false;
  int waits_left_ = 0;
  double napped_s_ = 0, ended_s_ = 0;
  std::uint64_t readers_ = 0, windows_ = 0, passes_ = 0;
  bool over_ = false;
  std::vector<ResourceUse> use_;
};

double imbalance_of(const RebuildPlan& plan) {
  std::uint64_t most = 0, sum = 0;
  for (const DiskShare& share : plan.disks) {
    most = std::max(most, share.bytes());
    sum += share.bytes();
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(plan.disks.size() - 1);
  return mean > 0 ? static_cast<double>(most) / mean : 1;
}

}  // namespace

Result<RebuildPlan> plan_rebuild(const System& degraded) {
  const Setup& setup = degraded.setup();
  if (!degraded.is_protected() || !setup.lost_disk)
    return Error{Errc::kInvalidArgument, "a rebuild needs two copies or parities, and a lost disk"};
  if (setup.disks < 3)
    return Error{Errc::kInvalidArgument, "a rebuild needs 3 disks or more: no other disk can take a second copy"};
  RebuildPlan plan = setup.width > 1 ? plan_parity_rebuild(degraded) : Planner(degraded).plan();
  plan.imbalance = imbalance_of(plan);
  return plan;
}

RebuildResult run_rebuild(const System& degraded, const RebuildPlan& plan, const std::optional<RebuildLoad>& load,
                          std::uint64_t seed) {
  RebuildResult result;
  if (plan.pieces.empty()) return result;
  Simulation simulation(degraded, seed);
  Rebuild rebuild(degraded, plan, load, seed + 1);
  rebuild.begin(simulation);
  simulation.run(&rebuild);
  rebuild.take(simulation, result);
  return result;
}

}  // namespace mdfs::sim
