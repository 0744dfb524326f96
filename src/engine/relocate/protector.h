// Second copies of stored extents and cells: makes missing ones, writes bad ones anew, and removes those that are not
// wanted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/relocate/cell_protector.h"
#include "engine/relocate/group_protector.h"
#include "engine/relocate/protection.h"
#include "format/stored_extent.h"
#include "geometry/geometry.h"
#include "store/store.h"

namespace mdfs::engine {

class OpenObject;
struct Core;

// As a move, a new piece is read from a good one, verified, written to free blocks and published if the extent has not
// changed meanwhile. A concurrent writer wins. Does not commit. Any thread.
class Protector {
 public:
  explicit Protector(Core& core) : core_(core), cells_(core), groups_(core) {}

  Result<ProtectOutcome> run(OpenObject& object, const ProtectRequest& request);
  // Of the stored extents from a page on, some pages in each call. `page` becomes the next one, UINT64_MAX at the end.
  Result<ProtectionState> look(const OpenObject& object, std::uint64_t& page, const Stop& stop);
  Result<std::uint64_t> strips_to_consolidate(const OpenObject& object, bool copies, const Stop& stop);
  // The stored extents from a page on that do not have the pieces that they should have, at most `most`, and not many
  // more than a page holds. `page` as in look().
  Result<std::vector<geometry::Coord>> find(const OpenObject& object, const ProtectRequest& wanted, std::uint64_t& page,
                                            std::size_t most);

 private:
  static constexpr std::size_t kPagesAtOnce = 16;

  struct Part;
  struct Job;
  Result<ProtectOutcome> run_copies(OpenObject& object, const ProtectRequest& request);
  // Extents of these are the work of GroupProtector.
  static bool has_groups(const KnownPage& known) { return known.copies != nullptr && !known.copies->groups().empty(); }
  bool is_as_wanted(const format::StoredExtent& extent, bool copies, std::uint64_t gone) const;
  Status look_up(OpenObject& object, Job& job, const geometry::Coord& extent);
  Status run_batch(OpenObject& object, Job& job);
  Status read(OpenObject& object, Job& job);
  Status judge(OpenObject& object, Job& job, Part& part);
  bool place(const OpenObject& object, Job& job, Part& part);
  Status write(OpenObject& object, Job& job);
  Status publish(OpenObject& object, Job& job);
  template <typename Visit, typename IsOver>
  Status each_page(const OpenObject& object, std::uint64_t& page, const Visit& visit, const IsOver& is_over);
  template <typename Visit>
  Status each_extent(const OpenObject& object, std::uint64_t page, const KnownPage& known, const Visit& visit);

  Core& core_;
  CellProtector cells_;
  GroupProtector groups_;
};

}  // namespace mdfs::engine
