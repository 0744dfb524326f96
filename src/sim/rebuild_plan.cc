// The requests of a piece of a rebuild.
// SPDX-License-Identifier: Apache-2.0
#include "sim/rebuild_plan.h"

#include <utility>

#include "base/check.h"

namespace mdfs::sim {
namespace {

std::vector<Request> requests_for(const System& system, const std::vector<geometry::PlanPart>& parts) {
  const std::vector<geometry::DiskLimits> limits(system.setup().disks,
                                                 {.max_request_bytes = ReadRules{}.max_request_bytes});
  auto plan = geometry::plan_requests(parts, limits);
  MDFS_CHECK(plan.ok());
  std::vector<Request> requests;
  for (geometry::DiskPlan& planned : plan->disks) {
    const geometry::DiskPlan disk = geometry::with_own_bytes(std::move(planned));
    for (const geometry::PlanRequest& request : disk.requests)
      requests.push_back(system.request_of(disk.disk, request.offset_bytes, request.length_bytes));
  }
  return requests;
}

}  // namespace

RebuildPiece piece_of(const System& system, const std::vector<geometry::PlanPart>& reads,
                      const std::vector<geometry::PlanPart>& writes, std::vector<DiskShare>& shares) {
  for (const geometry::PlanPart& part : reads) shares[part.disk].read_bytes += part.length_bytes;
  for (const geometry::PlanPart& part : writes) shares[part.disk].written_bytes += part.length_bytes;
  return {requests_for(system, reads), requests_for(system, writes), false};
}

}  // namespace mdfs::sim
