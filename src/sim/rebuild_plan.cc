// The requests of a piece of a rebuild.
// SPDX-License-Identifier: Apache-2.0
#include "sim/rebuild_plan.h"

#include "base/check.h"

namespace mdfs::sim {
namespace {

// `count` is called with each disk and the bytes of its requests.
template <typename Count>
std::vector<Request> requests_for(const System& system, const std::vector<geometry::PlanPart>& parts, Count count) {
  const std::vector<geometry::DiskLimits> limits(system.setup().disks,
                                                 {.max_request_bytes = ReadRules{}.max_request_bytes});
  auto plan = geometry::plan_requests(parts, limits);
  MDFS_CHECK(plan.ok());
  std::vector<Request> requests;
  for (const geometry::DiskPlan& disk : plan->disks) {
    count(disk.disk, disk.bytes);
    for (const geometry::PlanRequest& request : disk.requests)
      requests.push_back(system.request_of(disk.disk, request.offset_bytes, request.length_bytes));
  }
  return requests;
}

}  // namespace

RebuildPiece piece_of(const System& system, const std::vector<geometry::PlanPart>& reads,
                      const std::vector<geometry::PlanPart>& writes, std::vector<DiskShare>& shares) {
  return {
      requests_for(system, reads, [&](unsigned disk, std::uint64_t bytes) { shares[disk].read_bytes += bytes; }),
      requests_for(system, writes, [&](unsigned disk, std::uint64_t bytes) { shares[disk].written_bytes += bytes; }),
      false};
}

}  // namespace mdfs::sim
