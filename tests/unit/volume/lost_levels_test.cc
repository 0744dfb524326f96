// Stored levels while a disk is missing: readers compute the extents on that disk, which are never zeros.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/log.h"
#include "fixture.h"
#include "geometry/decompose.h"

namespace mdfs::volume {
namespace {

using geometry::Codec;
using geometry::Coord;

constexpr std::uint64_t kSide = 512, kExtent = 64, kLevelSide = kSide / 2;
constexpr unsigned kMissing = 1;
constexpr std::byte kSample{9};

class LostLevelsTest : public VolumeTest {
 protected:
  LostLevelsTest() : VolumeTest(32u << 20) { EXPECT_OK(set_log_level("off")); }

  // An image with one stored level. All samples are the same.
  Ino make_image(const std::string& name, Codec codec) {
    const Ino ino = make_file(name);
    ImageOptions options;
    options.geometry.rank = 2;
    options.geometry.shape = {kSide, kSide};
    options.geometry.extent = {kExtent, kExtent};
    options.geometry.codec = codec;
    options.geometry.axes = "yx";
    EXPECT_OK(volume().make_image(ino, options));
    write(ino, 0, std::string(kSide * kSide, static_cast<char>(kSample)));
    EXPECT_OK(volume().set_levels(ino, 1, geometry::Reduction::kMean));
    geometry::Window window;
    window.length = {kLevelSide, kLevelSide};
    ByteVector whole(kLevelSide * kLevelSide);
    EXPECT_TRUE(*read_level(volume(), ino, 1, window, whole));
    EXPECT_OK(volume().sync());
    return ino;
  }
  // Extents of the level.
  std::vector<Coord> extents_on(unsigned disk, Ino ino) {
    const auto rows = test::whole_layout(volume(), volume().levels_info(ino, {})->levels.front().ino);
    EXPECT_OK(rows);
    std::vector<Coord> extents;
    for (const layout::ExtentPlace& row : rows->rows)
      if (row.disk == disk) extents.push_back(row.index);
    return extents;
  }
  void mount_without_a_disk(bool zeros_for_lost) {
    EXPECT_OK(volume_->close());
    volume_.reset();
    VolumeOptions options = test::quiet_options();
    options.engine.zeros_for_lost = zeros_for_lost;
    std::vector<device::Disk*> disks = test::borrowed(disks_);
    disks.erase(disks.begin() + kMissing);
    auto opened = test::open_volume(disks, options, environment_, {.read_only = true});
    ASSERT_OK(opened);
    volume_ = std::move(*opened);
  }
  template <typename Visit>
  static void each_extent(const Visit& visit) {
    for (Coord extent{}; extent[0] < kLevelSide / kExtent; ++extent[0])
      for (extent[1] = 0; extent[1] < kLevelSide / kExtent; ++extent[1]) visit(extent);
  }
  static bool contains(const std::vector<Coord>& extents, const Coord& extent) {
    return std::find(extents.begin(), extents.end(), extent) != extents.end();
  }
};

TEST_F(LostLevelsTest, AnExtentOnTheMissingDiskIsLeftToItsReaderAndIsNotZeros) {
  for (const bool zeros_for_lost : {false, true})
    for (const Codec codec : {Codec::kRaw, Codec::kZstd}) {
      mount();
      const Ino ino = make_image(std::to_string(zeros_for_lost) + std::to_string(static_cast<int>(codec)), codec);
      const std::vector<Coord> lost = extents_on(kMissing, ino);
      ASSERT_FALSE(lost.empty());
      mount_without_a_disk(zeros_for_lost);
      each_extent([&](const Coord& extent) {
        geometry::Window window;
        window.start = {extent[0] * kExtent, extent[1] * kExtent};
        window.length = {kExtent, kExtent};
        ByteVector samples(kExtent * kExtent);
        const auto read = read_level(volume(), ino, 1, window, samples);
        ASSERT_OK(read);
        EXPECT_EQ(*read, !contains(lost, extent));
        if (*read) {
          EXPECT_EQ(samples, ByteVector(samples.size(), kSample));
        }
      });
    }
}

TEST_F(LostLevelsTest, AnExtentOnTheMissingDiskHasNoFrame) {
  for (const bool zeros_for_lost : {false, true}) {
    mount();
    const Ino ino = make_image(std::to_string(zeros_for_lost), Codec::kZstd);
    const std::vector<Coord> lost = extents_on(kMissing, ino);
    ASSERT_FALSE(lost.empty());
    mount_without_a_disk(zeros_for_lost);
    each_extent([&](const Coord& extent) {
      const auto frame = volume().pin_frame(ino, 1, extent, {});
      ASSERT_OK(frame);
      EXPECT_EQ(*frame == nullptr, contains(lost, extent));
    });
  }
}

}  // namespace
}  // namespace mdfs::volume
