// Small images and their views, for tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "geometry/geometry.h"
#include "support/fake_volume.h"
#include "support/temp_dir.h"
#include "views/staging.h"
#include "views/view.h"

namespace mdfs::views {

// Extents have 16 samples along each axis.
inline geometry::Geometry make(std::string axes, geometry::Coord shape, unsigned channels, geometry::ElementType type) {
  geometry::Geometry geometry;
  geometry.rank = static_cast<unsigned>(axes.size());
  geometry.axes = std::move(axes);
  geometry.shape = shape;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) geometry.extent[axis] = 16;
  geometry.channels = channels;
  geometry.type = type;
  return geometry;
}

// A volume of such images.
class ImagesTest : public ::testing::Test {
 protected:
  volume::Ino add(const geometry::Geometry& geometry) {
    return volume_.add_image("image" + std::to_string(++images_), geometry);
  }
  std::unique_ptr<StagingPool> pool(const StagingLimits& limits = {}) {
    auto opened = StagingPool::open(directory_.path(), limits);
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  static ByteVector bytes_of(View& view) {
    ByteVector bytes(view.size_bytes() + 7);
    const auto count = view.read(0, bytes);
    EXPECT_TRUE(count.ok() && *count == view.size_bytes());
    bytes.resize(view.size_bytes());
    return bytes;
  }

  test::TempDir directory_;
  test::FakeVolume volume_;

 private:
  int images_ = 0;
};

}  // namespace mdfs::views
