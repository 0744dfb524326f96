// Parity groups of stored extents: makes them, writes bad pieces anew, and turns them into copies or nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "engine/relocate/group_planner.h"
#include "engine/relocate/protection.h"

namespace mdfs::engine {

class OpenObject;
struct Core;

// Protector for images whose extents share parities, or did so (engine/relocate/protector.h). The extents of a box
// (geometry/parity_box.h) and of all groups that have some of them are one unit of work: they are read, and what
// becomes of all of them is published at once, unless one has changed meanwhile. Any thread.
class GroupProtector {
 public:
  explicit GroupProtector(Core& core) : core_(core), planner_(core) {}

  Result<ProtectOutcome> run(OpenObject& object, const ProtectRequest& request);
  const GroupPlanner& planner() const { return planner_; }

 private:
  struct Job;
  Status run_batch(OpenObject& object, Job& job);
  Status read(OpenObject& object, Job& job);
  Status judge(OpenObject& object, Job& job, GroupUnit& unit);
  void sum_up(const OpenObject& object, GroupUnit& unit);
  bool place(const OpenObject& object, Job& job, GroupUnit& unit);
  Status write(OpenObject& object, Job& job);
  Status publish(OpenObject& object, Job& job);
  void note_published(const OpenObject& object, Job& job, const std::vector<GroupUnit*>& published);

  Core& core_;
  GroupPlanner planner_;
};

}  // namespace mdfs::engine
