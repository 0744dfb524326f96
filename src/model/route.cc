// Compiling the stages of a machine, and drawing the steps of a request.
// SPDX-License-Identifier: Apache-2.0
#include "model/route.h"

#include <algorithm>

#include "base/check.h"

namespace mdfs::model {
namespace {

double draw_s(const Cost& cost, Random& random) {
  if (cost.kind == Cost::Kind::kUniform) return random.uniform(cost.low_s, cost.high_s);
  return random.exponential(cost.low_s);
}

}  // namespace

void Route::add_cost(const Cost& cost, bool uniform_seeks, Plan& plan) {
  switch (cost.kind) {
    case Cost::Kind::kFixed:
      plan.fixed_s += cost.low_s;
      break;
    case Cost::Kind::kSeek:
      if (uniform_seeks) {
        plan.drawn.push_back({.kind = Cost::Kind::kUniform, .low_s = 0, .high_s = 2 * cost.low_s});
      } else {
        plan.fixed_s += cost.low_s;
      }
      break;
    case Cost::Kind::kTransfer:
      if (cost.has_zones()) {
        plan.zoned.push_back(cost);
        break;
      }
      plan.fixed_s += cost.bytes / cost.bytes_per_s;
      plan.full_s_per_byte += cost.full / cost.bytes_per_s;
      plan.part_s_per_byte += cost.part / cost.bytes_per_s;
      break;
    case Cost::Kind::kHead:
      plan.head = true;
      break;
    case Cost::Kind::kUniform:
    case Cost::Kind::kExponential:
      plan.drawn.push_back(cost);
      break;
  }
}

Route::Route(Machine machine, unsigned disks, bool uniform_seeks) : machine_(std::move(machine)), disks_(disks) {
  MDFS_CHECK(disks >= 1 && disks <= kMaxDisks);
  topology_ = model::topology(machine_, disks);
  std::uint32_t next = 0;
  for (const unsigned count : topology_.count) {
    first_station_.push_back(next);
    next += count;
  }
  bool extents_seen = false;
  for (const Stage& stage : machine_.stages) {
    Plan plan;
    plan.resource = stage.resource;
    plan.when = stage.when;
    extents_seen |= !stage.per_window;
    plan.phase = !stage.per_window ? Phase::kExtent : extents_seen ? Phase::kAfter : Phase::kBefore;
    for (const Cost& cost : stage.costs) add_cost(cost, uniform_seeks, plan);
    plans_.push_back(std::move(plan));
  }
}

bool Route::has(Phase phase) const {
  return std::any_of(plans_.begin(), plans_.end(), [phase](const Plan& plan) { return plan.phase == phase; });
}

bool Route::is_random() const {
  return machine_.hit_ratio > 0 || std::any_of(plans_.begin(), plans_.end(), [this](const Plan& plan) {
           return !plan.drawn.empty() || (plan.head && machine_.resources[plan.resource].head->rotation_s > 0);
         });
}

void Route::add_stations(Engine& engine) const {
  for (std::size_t i = 0; i < topology_.count.size(); ++i)
    for (unsigned instance = 0; instance < topology_.count[i]; ++instance) {
      const Resource& resource = machine_.resources[i];
      [[maybe_unused]] const std::uint32_t index = engine.add_station(resource.servers, resource.head);
      MDFS_CHECK(index == station(i, instance));
    }
}

void Route::steps(Phase phase, const Request& request, Random& random, std::vector<Step>& steps) const {
  steps.clear();
  const bool hit = phase == Phase::kExtent && machine_.hit_ratio > 0 && random.unit() < machine_.hit_ratio;
  for (const Plan& plan : plans_) {
    if (plan.phase != phase) continue;
    if (plan.when != When::kAlways && (plan.when == When::kHit) != hit) continue;
    Step step;
    step.station = station(plan.resource, topology_.of_disk[plan.resource][request.disk]);
    step.service_s =
        plan.fixed_s + plan.full_s_per_byte * request.full_bytes + plan.part_s_per_byte * request.part_bytes;
    for (const Cost& cost : plan.drawn) step.service_s += draw_s(cost, random);
    for (const Cost& cost : plan.zoned)
      step.service_s += cost.transfer_s(request.full_bytes, request.part_bytes,
                                        machine_.resources[plan.resource].head->place_of(request.address_bytes));
    if (plan.head) {
      step.address_bytes = request.address_bytes;
      step.length_bytes = request.span_bytes < 0 ? request.full_bytes : request.span_bytes;
    }
    steps.push_back(step);
  }
}

}  // namespace mdfs::model
