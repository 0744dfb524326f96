// Images and their windows.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "fixture.h"

namespace mdfs::volume {
namespace {

geometry::Geometry plane(std::uint64_t height, std::uint64_t width, unsigned channels = 1,
                         geometry::Codec codec = geometry::Codec::kZstd) {
  geometry::Geometry geometry;
  geometry.rank = 2;
  geometry.shape = {height, width};
  geometry.extent = {16, 16};
  geometry.channels = channels;
  geometry.codec = codec;
  geometry.axes = "yx";
  return geometry;
}

geometry::Window window(std::uint64_t y, std::uint64_t height, std::uint64_t x, std::uint64_t width) {
  geometry::Window window;
  window.start = {y, x};
  window.length = {height, width};
  return window;
}

engine::WindowSource source(const std::string& text) {
  return [&text](std::uint64_t offset, MutableBytes into) -> Status {
    MDFS_CHECK(offset + into.size() <= text.size());
    std::copy_n(as_bytes(text).begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  };
}

class ImagesTest : public VolumeTest {
 protected:
  Ino make_image(std::string_view name, const geometry::Geometry& geometry, ImageOptions options = {}) {
    const Ino ino = make_file(name);
    options.geometry = geometry;
    EXPECT_OK(volume().make_image(ino, options));
    return ino;
  }
  std::string read_window(Ino ino, const geometry::Window& part) {
    const auto info = volume().image_info(ino);
    EXPECT_OK(info);
    ByteVector bytes(geometry::window_bytes(info->geometry, part));
    EXPECT_OK(volume().read_window(ino, part, 0, bytes));
    return to_string(bytes);
  }
};

TEST_F(ImagesTest, ANewImageIsAHoleOfItsCanonicalSize) {
  const Ino ino = make_image("i", plane(40, 50, 3));
  const Attributes attributes = stat(ino);
  EXPECT_TRUE(attributes.is_image);
  EXPECT_EQ(attributes.size_bytes, 6000u);
  EXPECT_EQ(attributes.stored_bytes, 0u);
  EXPECT_EQ(read(ino), std::string(6000, '\0'));
  const auto info = volume().image_info(ino);
  ASSERT_OK(info);
  EXPECT_EQ(info->geometry, plane(40, 50, 3));
  EXPECT_EQ(info->placement.disks, 4u);
  mount();
  EXPECT_EQ(volume().image_info(ino)->geometry, plane(40, 50, 3));
  EXPECT_EQ(read(ino), std::string(6000, '\0'));
}

TEST_F(ImagesTest, OnlyAnEmptyOrdinaryFileBecomesAnImage) {
  const Ino full = make_file("full");
  write(full, 0, "x");
  ImageOptions options;
  options.geometry = plane(40, 50);
  EXPECT_ERROR(Errc::kInvalidArgument, volume().make_image(full, options));
  EXPECT_EQ(read(full), "x");
  EXPECT_ERROR(Errc::kIsDirectory, volume().make_image(make_directory("d"), options));
  const Ino image = make_image("i", plane(40, 50));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().make_image(image, options));
  EXPECT_ERROR(Errc::kNotImage, volume().image_info(full));
  ByteVector byte(1);
  EXPECT_ERROR(Errc::kNotImage, volume().read_window(full, window(0, 1, 0, 1), 0, byte));
  EXPECT_ERROR(Errc::kNotImage, test::whole_layout(volume(), full));
}

TEST_F(ImagesTest, TheGeometryAloneIsThatOfTheInformation) {
  EXPECT_ERROR(Errc::kNotImage, volume().image_geometry(make_file("f")));
  const Ino ino = make_image("i", plane(40, 50, 3));
  EXPECT_EQ(*volume().image_geometry(ino), plane(40, 50, 3));
  write(ino, 6000, "x");  // begins one more row
  EXPECT_EQ(volume().image_geometry(ino)->shape[0], 41u);
  EXPECT_EQ(*volume().image_geometry(ino), volume().image_info(ino)->geometry);
  mount();
  EXPECT_EQ(*volume().image_geometry(ino), volume().image_info(ino)->geometry);
}

TEST_F(ImagesTest, NonsenseIsRefusedAndChangesNothing) {
  const Ino ino = make_file("f");
  const auto refused = [&](geometry::Geometry geometry, ImageOptions options = {}) {
    options.geometry = std::move(geometry);
    return volume().make_image(ino, options);
  };
  EXPECT_FALSE(refused(plane(40, 0)).ok());
  EXPECT_FALSE(refused(plane(1ull << 40, 1ull << 40)).ok());
  EXPECT_FALSE(refused(plane(40, 50, 0)).ok());
  geometry::Geometry huge = plane(40, 50);
  huge.extent = {1 << 20, 1 << 20};
  EXPECT_FALSE(refused(huge).ok());
  EXPECT_ERROR(Errc::kInvalidArgument, refused(plane(40, 50), {.disks = 5}));
  EXPECT_ERROR(Errc::kInvalidArgument, refused(plane(40, 50), {.disks = 0}));
  EXPECT_ERROR(Errc::kInvalidArgument, refused(plane(40, 50), {.row_offset = 4}));
  EXPECT_FALSE(stat(ino).is_image);
  const Ino image = make_image("i", plane(40, 50));
  ByteVector byte(1);
  for (const geometry::Window& bad : {window(40, 1, 0, 1), window(0, 0, 0, 1), window(0, 41, 0, 1),
                                      window(1, UINT64_MAX, 0, 1), window(0, 1, 49, 2)}) {
    EXPECT_FALSE(volume().read_window(image, bad, 0, byte).ok());
    EXPECT_FALSE(volume().write_window(image, bad, source("")).ok());
    EXPECT_FALSE(volume().start_window(image, bad).ok());
    EXPECT_FALSE(volume().plan_window(image, bad, {}).ok());
  }
  EXPECT_ERROR(Errc::kInvalidArgument, volume().read_window(image, window(0, 1, 0, 1), 1, byte));
  EXPECT_EQ(stat(image).stored_bytes, 0u);
}

TEST_F(ImagesTest, WindowsAndPlainBytesAreTheSameBytes) {
  const Ino ino = make_image("i", plane(40, 50));
  const std::string text(20 * 30, 'w');
  const Attributes before = stat(ino);
  Ino told = 0;
  std::uint64_t told_offset = 0, told_length = 0;
  volume().set_change_listener([&](Ino changed, std::uint64_t offset, std::uint64_t length) {
    told = changed, told_offset = offset, told_length = length;
  });
  EXPECT_OK(volume().write_window(ino, window(10, 20, 5, 30), source(text)));
  EXPECT_EQ(told, ino);
  EXPECT_EQ(told_offset, 10u * 50 + 5);
  EXPECT_EQ(told_offset + told_length, 29u * 50 + 35);
  EXPECT_NE(stat(ino).data_generation, before.data_generation);
  EXPECT_GT(stat(ino).mtime_ns, before.mtime_ns);
  std::string expected(2000, '\0');
  for (int y = 10; y < 30; ++y) expected.replace(y * 50 + 5, 30, std::string(30, 'w'));
  EXPECT_EQ(read(ino), expected);
  write(ino, 10 * 50 + 5, "plain");
  EXPECT_EQ(read_window(ino, window(10, 1, 5, 6)), "plainw");
  mount();
  EXPECT_EQ(read_window(ino, window(10, 1, 5, 6)), "plainw");
  EXPECT_EQ(read_window(ino, window(29, 1, 4, 2)), std::string("\0w", 2));
}

TEST_F(ImagesTest, TruncationMovesTheSlowestAxis) {
  const Ino ino = make_image("i", plane(40, 50));
  EXPECT_OK(volume().write_window(ino, window(0, 40, 0, 50), source(std::string(2000, 'w'))));
  EXPECT_OK(volume().set_attributes(ino, {.size_bytes = 1025}));
  EXPECT_EQ(volume().image_info(ino)->geometry.shape[0], 21u);
  EXPECT_EQ(read_window(ino, window(20, 1, 0, 50)), std::string(25, 'w') + std::string(25, '\0'));
  ByteVector byte(1);
  EXPECT_FALSE(volume().read_window(ino, window(21, 1, 0, 1), 0, byte).ok());
  EXPECT_OK(volume().set_attributes(ino, {.size_bytes = 5000}));
  EXPECT_EQ(volume().image_info(ino)->geometry.shape[0], 100u);
  EXPECT_EQ(read_window(ino, window(30, 1, 0, 50)), std::string(50, '\0'));
  EXPECT_OK(volume().write_window(ino, window(99, 1, 0, 50), source(std::string(50, 'z'))));
  mount();
  EXPECT_EQ(volume().image_info(ino)->geometry.shape[0], 100u);
  EXPECT_EQ(read(ino, 4950), std::string(50, 'z'));
}

TEST_F(ImagesTest, AWindowBeyondAnEndWithinTheLastRowMovesTheEnd) {
  const Ino ino = make_image("i", plane(40, 50));
  EXPECT_OK(volume().set_attributes(ino, {.size_bytes = 1010}));
  EXPECT_OK(volume().write_window(ino, window(20, 1, 20, 10), source(std::string(10, 'w'))));
  EXPECT_EQ(stat(ino).size_bytes, 1030u);
  EXPECT_EQ(read(ino, 1000), std::string(20, '\0') + std::string(10, 'w'));
}

TEST_F(ImagesTest, PlainWritesAppendFrames) {
  const Ino ino = make_image("i", plane(0, 50));
  EXPECT_EQ(stat(ino).size_bytes, 0u);
  for (int frame = 0; frame < 5; ++frame)
    EXPECT_OK(volume().write(ino, 0, as_bytes(std::string(50, static_cast<char>('0' + frame))), true));
  EXPECT_EQ(volume().image_info(ino)->geometry.shape[0], 5u);
  EXPECT_EQ(read_window(ino, window(3, 1, 0, 50)), std::string(50, '3'));
}

TEST_F(ImagesTest, EqualPlacementsAreShared) {
  const auto placements = [&] {
    return store()
        .scan({MDFS_OBJECT_VOLUME, MDFS_KIND_PLACEMENT, 0}, {MDFS_OBJECT_VOLUME, MDFS_KIND_PLACEMENT, UINT64_MAX}, 999)
        ->size();
  };
  make_image("a", plane(400, 500));
  const std::size_t one = placements();
  make_image("b", plane(800, 300));
  EXPECT_EQ(placements(), one);
  make_image("c", plane(800, 300), {.row_offset = 2});
  EXPECT_EQ(placements(), one + 1);
  const auto info = volume().image_info(stat(kRootIno, "c").ino);
  EXPECT_EQ(info->placement.row, (std::vector<std::uint16_t>{0, 2, 0, 2}));
}

TEST_F(ImagesTest, AnImageOfFewDisksLiesOnThose) {
  const Ino ino = make_image("i", plane(160, 160, 1, geometry::Codec::kRaw), {.disks = 2});
  EXPECT_OK(volume().write_window(ino, window(0, 160, 0, 160), source(std::string(25600, 'w'))));
  const auto layout = test::whole_layout(volume(), ino);
  ASSERT_OK(layout);
  EXPECT_EQ(layout->rows.size(), 100u);
  EXPECT_EQ(layout->block_size, 4096u);
  std::set<unsigned> disks;
  for (const layout::ExtentPlace& place : layout->rows) disks.insert(place.disk);
  EXPECT_EQ(disks.size(), 2u);
  EXPECT_EQ(layout->disk_count, 4u);
}

TEST_F(ImagesTest, ManySmallImagesSpreadOverTheDisks) {
  std::vector<std::uint64_t> bytes(4);
  for (int i = 0; i < 40; ++i) {
    const Ino ino = make_image("i" + std::to_string(i), plane(16, 16, 1, geometry::Codec::kRaw));
    EXPECT_OK(volume().write_window(ino, window(0, 16, 0, 16), source(std::string(256, 'w'))));
    const auto layout = test::whole_layout(volume(), ino);
    for (const layout::ExtentPlace& place : layout->rows) bytes.at(place.disk) += place.stored_bytes;
  }
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), *std::min_element(bytes.begin(), bytes.end()));
}

RC_GTEST_PROP(ImagesPropertyTest, WindowsOfAVolumeDoWhatAByteArrayDoes, ()) {
  SeededEnvironment environment(3);
  const test::MemoryDisks disks = test::format_memory_disks(3, 16u << 20, environment);
  auto volume = std::move(test::open_volume(test::borrowed(disks), test::quiet_options(), environment)).value();
  const Ino ino = volume->make_node(kRootIno, "i", S_IFREG | 0644, 0, {})->ino;
  ImageOptions options;
  options.geometry.rank = 3;
  options.geometry.shape = {10, 24, 30};
  options.geometry.extent = {4, 8, 8};
  options.geometry.axes = "zyx";
  options.geometry.codec = *rc::gen::element(geometry::Codec::kRaw, geometry::Codec::kZstd);
  RC_ASSERT(volume->make_image(ino, options).ok());
  std::string model(10 * 24 * 30, '\0');
  const auto steps = *rc::gen::resize(25, rc::gen::arbitrary<std::vector<std::array<std::uint8_t, 8>>>());
  for (const auto& step : steps) {
    geometry::Window part;
    for (unsigned axis = 0; axis < 3; ++axis) {
      part.start[axis] = step[axis] % options.geometry.shape[axis];
      part.length[axis] = 1 + step[axis + 3] % (options.geometry.shape[axis] - part.start[axis]);
    }
    const std::string text(part.length[0] * part.length[1] * part.length[2], static_cast<char>(step[6]));
    if (step[7] % 8 == 0) {
      RC_ASSERT(volume->close().ok());
      volume.reset();
      volume = std::move(test::open_volume(test::borrowed(disks), test::quiet_options(), environment)).value();
    }
    std::string expected;
    for (std::uint64_t z = 0; z < part.length[0]; ++z)
      for (std::uint64_t y = 0; y < part.length[1]; ++y) {
        const std::size_t at = ((part.start[0] + z) * 24 + part.start[1] + y) * 30 + part.start[2];
        if (step[7] % 2 == 1) model.replace(at, part.length[2], part.length[2], static_cast<char>(step[6]));
        expected += model.substr(at, part.length[2]);
      }
    if (step[7] % 2 == 1) RC_ASSERT(volume->write_window(ino, part, source(text)).ok());
    ByteVector bytes(text.size());
    RC_ASSERT(volume->read_window(ino, part, 0, bytes).ok());
    RC_ASSERT(as_text(bytes) == expected);
  }
  ByteVector bytes(model.size());
  RC_ASSERT(*volume->read(ino, 0, bytes) == model.size());
  RC_ASSERT(as_text(bytes) == model);
}

}  // namespace
}  // namespace mdfs::volume
