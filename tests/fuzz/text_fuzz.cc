// Fuzz target: everything that people write in options: numbers, sizes, shapes, axes, spacings, quantities, mount
// options.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/text.h"
#include "fuse/mount_options.h"
#include "fuzz.h"
#include "geometry/shape_text.h"
#include "model/quantity.h"

using namespace mdfs;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text(fuzz::input(data, size));
  if (const auto number = parse_number(text, "number"); number.ok()) (void)format_size(*number);
  if (const auto bytes = parse_size(text, "size"); bytes.ok()) (void)format_size(*bytes);
  if (const auto shape = geometry::parse_shape(text); shape.ok()) {
    const auto again = geometry::parse_shape(geometry::shape_text(shape->rank, shape->length));
    MDFS_CHECK(again.ok() && *again == *shape);
  }
  if (const auto axes = geometry::parse_axes(text); axes.ok())
    MDFS_CHECK(!axes->axes.empty() && axes->axes.size() <= geometry::kMaxRank);
  for (unsigned rank = 1; rank <= geometry::kMaxRank; ++rank)
    if (const auto spacing = geometry::parse_spacing(text, rank); spacing.ok())
      for (const double distance : spacing->distance) MDFS_CHECK(std::isfinite(distance) && distance >= 0);
  for (const auto parse : {model::parse_time_s, model::parse_size_bytes, model::parse_rate_bytes_per_s})
    if (const auto value = parse(text); value.ok()) MDFS_CHECK(std::isfinite(*value) && *value >= 0);
  (void)geometry::parse_element_type(text).ok();
  fuse::MountOptions options;
  if (fuse::parse_mount_options(text, options).ok())
    MDFS_CHECK((!options.cache_bytes || *options.cache_bytes > 0) && options.commit_interval_ns > 0 &&
               options.max_window_bytes > 0);
  return 0;
}
