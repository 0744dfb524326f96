// The ioctl structures: what is refused, and what comes through unchanged.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ioctl_structs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <span>

#include "fuse/coherence.h"

namespace mdfs::fuse {
namespace {

mdfs_ioc_geometry photo() {
  mdfs_ioc_geometry in{};
  in.struct_bytes = sizeof in;
  in.rank = 2;
  in.type = 2;
  in.channels = 3;
  in.codec = 1;
  in.codec_level = 3;
  in.shape[0] = 100;
  in.shape[1] = 200;
  in.row_offset = -1;
  in.plane_offset = -1;
  return in;
}

geometry::Geometry photo_geometry() { return to_image_options(photo())->geometry; }

mdfs_ioc_window some_window() {
  mdfs_ioc_window in{};
  in.struct_bytes = sizeof in;
  in.rank = 2;
  in.start[0] = 10;
  in.length[0] = 20;
  in.length[1] = 200;
  in.channel = -1;
  return in;
}

TEST(IoctlStructs, AnOperationTakesOnlyWhatItsActionNeeds) {
  mdfs_ioc_operation in{};
  in.struct_bytes = sizeof in;
  in.kind = MDFS_OPERATION_DEFRAG;
  in.action = MDFS_IOC_OPERATION_START;
  in.flags = MDFS_OPERATION_DRY_RUN | MDFS_OPERATION_OBJECT;
  in.budget_bytes_s = 5000;
  in.threshold = 7;
  in.parameters[3] = 9;
  const auto request = to_operation_request(in, 17);
  ASSERT_TRUE(request.ok()) << request.error().message();
  EXPECT_EQ(request->kind, volume::OperationKind::kDefrag);
  EXPECT_TRUE(request->dry_run);
  EXPECT_EQ(request->object, 17u);
  EXPECT_EQ(request->budget_bytes_s, 5000u);
  EXPECT_EQ(request->threshold, 7u);
  EXPECT_EQ(request->parameters[3], 9u);
  const auto refused = [&](const std::function<void(mdfs_ioc_operation&)>& change) {
    mdfs_ioc_operation other = in;
    change(other);
    const auto answer = to_operation_request(other, 17);
    return !answer.ok() && answer.error().code == Errc::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](auto& o) { o.struct_bytes = 8; }));
  EXPECT_TRUE(refused([](auto& o) { o.kind = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.kind = MDFS_OPERATION_PROTECT + 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.action = 4; }));
  EXPECT_TRUE(refused([](auto& o) { o.flags = 4; }));
  EXPECT_TRUE(refused([](auto& o) { o.action = MDFS_IOC_OPERATION_STATUS; }));
  EXPECT_TRUE(refused([](auto& o) { o.action = MDFS_IOC_OPERATION_RESUME; }));
  EXPECT_TRUE(refused([](auto& o) { o.bytes_done = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.errors[63].reserved = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.reserved[7] = 1; }));
}

TEST(IoctlStructs, ZeroFieldsMeanTheDefaults) {
  const auto options = to_image_options(photo());
  ASSERT_TRUE(options.ok()) << options.error().message();
  EXPECT_EQ(options->geometry.axes, "yx");
  EXPECT_GT(options->geometry.extent[0], 0u);
  EXPECT_FALSE(options->disks || options->row_offset || options->plane_offset);
}

TEST(IoctlStructs, AGeometryThatMakesNoSenseIsRefused) {
  using Change = std::function<void(mdfs_ioc_geometry&)>;
  const std::vector<Change> changes = {
      [](auto& in) { in.struct_bytes = 0; },
      [](auto& in) { in.struct_bytes += 8; },
      [](auto& in) { in.rank = 0; },
      [](auto& in) { in.rank = 4; },
      [](auto& in) { in.rank = 255; },
      [](auto& in) { in.type = 0; },
      [](auto& in) { in.type = 12; },
      [](auto& in) { in.channels = 0; },
      [](auto& in) { in.codec = 2; },
      [](auto& in) { in.codec_level = 100; },
      [](auto& in) { in.reserved0[4] = 1; },
      [](auto& in) { in.policy = 4; },
      [](auto& in) { in.reserved1[7] = 1; },
      [](auto& in) { in.size_bytes = 1; },
      [](auto& in) { in.placement_base = 1; },
      [](auto& in) { in.shape[1] = 0; },
      [](auto& in) { in.shape[2] = 1; },
      [](auto& in) { in.shape[0] = in.shape[1] = std::uint64_t{1} << 63; },
      [](auto& in) { in.extent[0] = 16; },
      [](auto& in) { in.extent[0] = in.extent[1] = 0xffffffff; },
      [](auto& in) { in.extent[0] = in.extent[1] = in.extent[2] = 16; },
      [](auto& in) { in.placed_disks = 65; },
      [](auto& in) { std::memcpy(in.axes, "xx", 3); },
      [](auto& in) { std::memcpy(in.axes, "yxz", 4); },
      [](auto& in) { std::memset(in.axes, 'y', 8); },
      [](auto& in) { in.axes[3] = 'q'; },
      [](auto& in) { in.spacing[0] = -1; },
      [](auto& in) { in.spacing[1] = std::numeric_limits<double>::quiet_NaN(); },
      [](auto& in) { std::memset(in.unit[0], 'u', 8); },
      [](auto& in) { std::memcpy(in.unit[0], "\xff\xff", 3); },
      [](auto& in) { std::memcpy(in.unit[1], "\x1b[31m", 6); },
      [](auto& in) { in.row_offset = -2; },
      [](auto& in) { in.plane_offset = std::numeric_limits<std::int32_t>::min(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    mdfs_ioc_geometry in = photo();
    changes[i](in);
    EXPECT_FALSE(to_image_options(in).ok()) << "change " << i;
  }
}

TEST(IoctlStructs, AWindowThatMakesNoSenseIsRefused) {
  const geometry::Geometry geometry = photo_geometry();
  ASSERT_TRUE(to_window(geometry, some_window()).ok());
  using Change = std::function<void(mdfs_ioc_window&)>;
  const std::vector<Change> changes = {
      [](auto& in) { in.struct_bytes = 0; },
      [](auto& in) { in.rank = 1; },
      [](auto& in) { in.rank = 3; },
      [](auto& in) { in.rank = 0xffffffff; },
      [](auto& in) { in.flags = 1; },
      [](auto& in) { in.reserved0 = 1; },
      [](auto& in) { in.reserved1[2] = 1; },
      [](auto& in) { in.level = 1; },
      [](auto& in) { in.level = 0xffffffff; },
      [](auto& in) { in.length[0] = 0; },
      [](auto& in) { in.length[0] = 91; },
      [](auto& in) { in.start[0] = 100; },
      [](auto& in) { in.start[0] = std::uint64_t{0} - 5; },
      [](auto& in) { in.length[1] = ~std::uint64_t{0}; },
      [](auto& in) { in.start[2] = 1; },
      [](auto& in) { in.length[4] = 1; },
      [](auto& in) { in.channel = 3; },
      [](auto& in) { in.channel = -2; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    mdfs_ioc_window in = some_window();
    changes[i](in);
    EXPECT_FALSE(to_window(geometry, in).ok()) << "change " << i;
  }
}

TEST(IoctlStructs, AWindowOfALevelIsInTheSamplesOfTheLevel) {
  mdfs_ioc_window in = some_window();
  in.level = 2;
  in.length[0] = 15;
  in.length[1] = 50;
  const auto name = to_window(photo_geometry(), in);
  ASSERT_TRUE(name.ok()) << name.error().message();
  EXPECT_EQ(name->level, 2u);
  EXPECT_EQ(name->window.length[1], 50u);
  in.length[0] = 16;
  EXPECT_EQ(to_window(photo_geometry(), in).error().code, Errc::kOutOfRange);
  in.level = 9;
  in.length[0] = in.length[1] = 1;
  EXPECT_EQ(to_window(photo_geometry(), in).error().code, Errc::kOutOfRange);
}

RC_GTEST_PROP(IoctlStructs, NoBytesCrashTheDecoders, ()) {
  const auto fill = [](auto& value) {
    auto bytes = std::as_writable_bytes(std::span(&value, 1));
    for (int i = *rc::gen::inRange(0, 6); i > 0; --i)
      bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] =
          static_cast<std::byte>(*rc::gen::arbitrary<unsigned char>());
  };
  mdfs_ioc_geometry geometry = photo();
  fill(geometry);
  if (const auto options = to_image_options(geometry); options.ok()) RC_ASSERT(geometry::check(options->geometry).ok());
  mdfs_ioc_window window = some_window();
  fill(window);
  const geometry::Geometry image = photo_geometry();
  if (const auto found = to_window(image, window); found.ok()) {
    const auto level = views::level_of(image, *found);
    RC_ASSERT((level.ok() && geometry::check(*level, found->window).ok()));
  }
}

TEST(IoctlStructs, AGeometryComesBackAsItWasSet) {
  mdfs_ioc_geometry in = photo();
  in.spacing[1] = 0.25;
  std::memcpy(in.unit[1], "um", 3);
  volume::ImageInfo info;
  info.geometry = to_image_options(in)->geometry;
  info.size_bytes = 5;
  const mdfs_ioc_geometry out = to_ioc_geometry(info);
  EXPECT_EQ(out.rank, in.rank);
  EXPECT_EQ(out.type, in.type);
  EXPECT_EQ(out.channels, in.channels);
  EXPECT_EQ(out.shape[1], 200u);
  EXPECT_EQ(out.spacing[1], 0.25);
  EXPECT_STREQ(out.unit[1], "um");
  EXPECT_STREQ(out.axes, "yx");
  EXPECT_EQ(out.size_bytes, 5u);
}

TEST(PlainRange, HoldsTheFirstAndTheLastByteOfTheWindow) {
  const geometry::Geometry geometry = photo_geometry();
  const auto window = to_window(geometry, some_window());
  const PlainRange range = plain_range(geometry, window->window);
  EXPECT_EQ(range.offset, 10u * 200 * 6);
  EXPECT_EQ(range.length, 20u * 200 * 6);
}

}  // namespace
}  // namespace mdfs::fuse
