// Sorting, merging and cutting requests.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace mdfs::geometry {
namespace {

using Order = std::vector<std::size_t>;  // indices of one disk's parts, by offset

struct Run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Status check_input(std::span<const PlanPart> parts, std::span<const DiskLimits> limits) {
  for (std::size_t disk = 0; disk < limits.size(); ++disk)
    if (limits[disk].max_request_bytes == 0)
      return Error{Errc::kInvalidArgument, fmt::format("plan: the largest request of disk {} is 0 bytes", disk)};
  for (const PlanPart& part : parts) {
    if (part.disk >= limits.size())
      return Error{Errc::kInvalidArgument, fmt::format("plan: disk {} of {}", part.disk, limits.size())};
    if (!checked_add(part.offset_bytes, part.length_bytes))
      return Error{Errc::kInvalidArgument,
                   fmt::format("plan: {} bytes at {} wrap around", part.length_bytes, part.offset_bytes)};
  }
  return {};
}

class DiskPlanner {
 public:
  DiskPlanner(std::span<const PlanPart> parts, const Order& order, const DiskLimits& limits)
      : parts_(parts), order_(order), limits_(limits) {}

  DiskPlan plan(unsigned disk) {
    plan_.disk = disk;
    for (const Run& run : merged_runs()) cut(run);
    read_through_gaps();
    hand_out_pieces();
    for (const PlanRequest& request : plan_.requests) plan_.bytes += request.length_bytes;
    return std::move(plan_);
  }

 private:
  const PlanPart& part(std::size_t i) const { return parts_[order_[i]]; }

  std::vector<Run> merged_runs() {
    std::vector<Run> runs;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::uint64_t begin = part(i).offset_bytes, end = begin + part(i).length_bytes;
      if (!runs.empty() && begin <= runs.back().end)
        runs.back().end = std::max(runs.back().end, end);
      else
        runs.push_back({begin, end});
    }
    plan_.runs = runs.size();
    return runs;
  }

  // The start of the last part in [low, high], or `high` if none starts there.
  std::uint64_t last_start(std::uint64_t low, std::uint64_t high) const {
    const auto behind = std::upper_bound(order_.begin(), order_.end(), high, [&](std::uint64_t at, std::size_t index) {
      return at < parts_[index].offset_bytes;
    });
    if (behind == order_.begin()) return high;
    const std::uint64_t start = parts_[*std::prev(behind)].offset_bytes;
    return start >= low ? start : high;
  }

  void cut(Run run) {
    const std::uint64_t most = limits_.max_request_bytes;
    while (run.begin < run.end) {
      const std::uint64_t requests = ceil_div(run.end - run.begin, most);
      std::uint64_t end = run.end;
      // A cut at or behind `low` leaves no more than requests - 1 requests for the rest.
      if (requests > 1) end = last_start(run.end - (requests - 1) * most, run.begin + most);
      plan_.requests.push_back({run.begin, end - run.begin, 0, 0});
      run.begin = end;
    }
  }

  void read_through_gaps() {
    if (limits_.max_gap_bytes == 0) return;
    std::vector<PlanRequest> merged;
    for (const PlanRequest& request : plan_.requests) {
      if (!merged.empty()) {
        PlanRequest& before = merged.back();
        const std::uint64_t gap = request.offset_bytes - (before.offset_bytes + before.length_bytes);
        const std::uint64_t together = request.offset_bytes + request.length_bytes - before.offset_bytes;
        if (gap <= limits_.max_gap_bytes && together <= limits_.max_request_bytes) {
          before.length_bytes = together;
          continue;
        }
      }
      merged.push_back(request);
    }
    plan_.requests = std::move(merged);
  }

  void hand_out_pieces() {
    struct Placed {
      std::size_t request;
      RequestPiece piece;
    };
    std::vector<Placed> placed;
    placed.reserve(order_.size());
    std::size_t first = 0;  // requests before end before the part at hand
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::uint64_t begin = part(i).offset_bytes, end = begin + part(i).length_bytes;
      const auto request_end = [&](std::size_t r) {
        return plan_.requests[r].offset_bytes + plan_.requests[r].length_bytes;
      };
      while (request_end(first) <= begin) ++first;
      for (std::size_t r = first; r < plan_.requests.size() && plan_.requests[r].offset_bytes < end; ++r) {
        const std::uint64_t low = std::max(begin, plan_.requests[r].offset_bytes);
        const std::uint64_t high = std::min(end, request_end(r));
        placed.push_back({r, {order_[i], low - begin, low - plan_.requests[r].offset_bytes, high - low}});
      }
    }
    // Out of order only where parts overlap.
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.request < b.request; });
    plan_.pieces.reserve(placed.size());
    for (const Placed& one : placed) {
      PlanRequest& request = plan_.requests[one.request];
      if (request.piece_count++ == 0) request.first_piece = plan_.pieces.size();
      plan_.pieces.push_back(one.piece);
    }
  }

  std::span<const PlanPart> parts_;
  const Order& order_;
  const DiskLimits& limits_;
  DiskPlan plan_;
};

}  // namespace

Result<Plan> plan_requests(std::span<const PlanPart> parts, std::span<const DiskLimits> limits) {
  MDFS_TRY(check_input(parts, limits));
  std::vector<Order> orders(limits.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].length_bytes > 0) orders[parts[i].disk].push_back(i);
  Plan plan;
  for (unsigned disk = 0; disk < orders.size(); ++disk) {
    Order& order = orders[disk];
    if (order.empty()) continue;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return parts[a].offset_bytes < parts[b].offset_bytes; });
    plan.disks.push_back(DiskPlanner(parts, order, limits[disk]).plan(disk));
  }
  return plan;
}

}  // namespace mdfs::geometry
