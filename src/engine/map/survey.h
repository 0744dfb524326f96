// Reads of the extent map that change nothing: layouts, plans, data and holes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core.h"
#include "engine/map/layout.h"
#include "engine/map/window_plan.h"
#include "layout/defrag_plan.h"

namespace mdfs::engine {

// Any thread.
class Survey {
 public:
  explicit Survey(Core& core) : core_(core) {}

  Result<LayoutRows> layout(OpenObject& object, const LayoutRequest& request, const Stop& stop);
  Result<layout::Fragmentation> fragmentation(OpenObject& object, const Stop& stop);
  Result<layout::DefragPlan> plan_defrag(OpenObject& object, std::uint64_t from);
  Result<WindowPlan> plan(OpenObject& object, const geometry::Window& window, const Stop& stop);
  Result<std::uint64_t> next_data(OpenObject& object, std::uint64_t offset);
  Result<std::uint64_t> next_hole(OpenObject& object, std::uint64_t offset);

 private:
  static constexpr std::size_t kItemsAtOnce = 256;

  static layout::ImageLayout describe(const OpenObject& object);
  // All extents of an image that has at most kMostWhole, or the first cells of a file, as extents.
  Result<std::vector<layout::ExtentPlace>> extents(OpenObject& object, const layout::ImageLayout& image,
                                                   const Stop& stop);
  Status add_extent(OpenObject& object, const geometry::Coord& extent, std::vector<layout::ExtentPlace>& places);
  Result<layout::Fragmentation> fragmentation_of_samples(OpenObject& object, const layout::ImageLayout& image,
                                                         const Stop& stop);
  // The blocks of a file's cell that hold data: bit i = block i.
  Result<std::uint32_t> data_blocks(OpenObject& object, std::uint64_t cell);
  // The first row of extents at or after `row` that holds data; UINT64_MAX if there is none.
  Result<std::uint64_t> next_row_with_data(OpenObject& object, std::uint64_t row);
  Result<std::uint64_t> next_published_row(OpenObject& object, std::uint64_t row);
  Result<std::uint64_t> next_row_with_strips(OpenObject& object, std::uint64_t row);

  Core& core_;
};

}  // namespace mdfs::engine
