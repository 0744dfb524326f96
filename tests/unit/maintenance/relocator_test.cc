// Rewritten extents that relocate home.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/relocator.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "fixture.h"
#include "maintenance/objects.h"

namespace mdfs::maintenance {
namespace {

using namespace volume;  // NOLINT: the fixture and what it prints errors with

constexpr std::uint64_t kSide = 512, kExtent = 32;
constexpr auto kLongest = std::chrono::seconds(60);

class ReturningTest : public VolumeTest {
 protected:
  explicit ReturningTest(std::uint64_t disk_bytes = 64u << 20) : VolumeTest(disk_bytes) {}

  Ino stored_image(std::string_view name, geometry::Codec codec = geometry::Codec::kRaw) {
    const Ino ino = make_file(name);
    ImageOptions options;
    options.geometry.rank = 2;
    options.geometry.shape = {kSide, kSide};
    options.geometry.extent = {kExtent, 4 * kExtent};
    options.geometry.codec = codec;
    options.geometry.axes = "yx";
    EXPECT_OK(volume().make_image(ino, options));
    put(ino, {0, 0}, {kSide, kSide}, 1);
    EXPECT_OK(volume().sync());
    return ino;
  }
  // Noise of that seed.
  void put(Ino ino, std::array<std::uint64_t, 2> start, std::array<std::uint64_t, 2> length, unsigned seed) {
    std::minstd_rand noise(seed);
    std::string bytes(length[0] * length[1], 0);
    for (char& byte : bytes) byte = static_cast<char>(noise() >> 8);
    geometry::Window window;
    window.start = {start[0], start[1]};
    window.length = {length[0], length[1]};
    EXPECT_OK(volume().write_window(ino, window, [&](std::uint64_t offset, MutableBytes into) -> Status {
      std::copy_n(as_bytes(bytes).begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return {};
    }));
  }
  std::vector<std::pair<unsigned, std::uint64_t>> places(Ino ino) {
    const auto layout = test::whole_layout(volume(), ino);
    EXPECT_OK(layout);
    std::vector<std::pair<unsigned, std::uint64_t>> found;
    if (layout.ok())
      for (const layout::ExtentPlace& place : layout->rows) found.emplace_back(place.disk, place.block);
    return found;
  }
  std::uint64_t relocated() {
    const auto outcome = volume().operations().relocate_home();
    EXPECT_OK(outcome);
    return outcome.ok() ? outcome->extents : 0;
  }
  std::uint64_t away_from_home() { return volume().operations().home_state().away_from_home; }
};

TEST_F(ReturningTest, ARewrittenWindowReturnsToWhereItWas) {
  const Ino ino = stored_image("image");
  const auto before = places(ino);
  put(ino, {40, 100}, {50, 60}, 2);
  ASSERT_OK(volume().sync());
  const std::string bytes = read(ino, 0, kSide * kSide);
  ASSERT_NE(places(ino), before);
  EXPECT_GT(away_from_home(), 0u);
  EXPECT_GT(relocated(), 0u);
  EXPECT_EQ(places(ino), before);
  EXPECT_EQ(away_from_home(), 0u);
  EXPECT_EQ(volume().operations().home_state().relocated_bytes, volume().operations().home_state().relocated * 4096);
  EXPECT_EQ(read(ino, 0, kSide * kSide), bytes);
  mount();
  EXPECT_EQ(places(ino), before);
  EXPECT_EQ(read(ino, 0, kSide * kSide), bytes);
}

TEST_F(ReturningTest, WhatIsRewrittenSeveralTimesReturnsToItsFirstPlace) {
  const Ino ino = stored_image("image");
  const auto before = places(ino);
  for (unsigned i = 0; i < 7; ++i) {
    put(ino, {32, 128}, {32, 128}, 2 + i);
    ASSERT_OK(volume().sync());
    ASSERT_NE(places(ino), before);
  }
  EXPECT_EQ(away_from_home(), 1u);
  EXPECT_EQ(relocated(), 1u);
  EXPECT_EQ(places(ino), before);
}

TEST_F(ReturningTest, WhatLiesTogetherElsewhereStaysThere) {
  const Ino ino = stored_image("image");
  put(ino, {0, 0}, {kSide, kSide}, 2);
  ASSERT_OK(volume().sync());
  const auto before = places(ino);
  EXPECT_GT(away_from_home(), 0u);
  EXPECT_EQ(relocated(), 0u) << "all of it was written anew, in as few runs as before";
  EXPECT_EQ(places(ino), before);
  EXPECT_EQ(away_from_home(), 0u);
}

TEST_F(ReturningTest, WhatIsDirtyOrUncommittedWaits) {
  const Ino ino = stored_image("image");
  const auto before = places(ino);
  put(ino, {32, 128}, {32, 128}, 2);
  EXPECT_EQ(away_from_home(), 1u);
  write(ino, 33 * kSide + 130, "dirty");
  EXPECT_EQ(relocated(), 0u);
  EXPECT_EQ(away_from_home(), 1u);
  ASSERT_OK(volume().sync());
  EXPECT_EQ(relocated(), 1u);
  EXPECT_EQ(places(ino), before);
}

TEST_F(ReturningTest, WhatIsGoneIsForgotten) {
  const Ino removed = stored_image("removed"), cut = stored_image("cut");
  put(removed, {32, 128}, {32, 128}, 2);
  put(cut, {32, 128}, {32, 128}, 2);
  ASSERT_OK(volume().sync());
  EXPECT_EQ(away_from_home(), 2u);
  ASSERT_OK(volume().unlink(kRootIno, "removed"));
  volume().forget(removed, 1);
  SetAttributes change;
  change.size_bytes = 0;
  ASSERT_OK(volume().set_attributes(cut, change));
  ASSERT_OK(volume().sync());
  EXPECT_EQ(relocated(), 0u);
  EXPECT_EQ(away_from_home(), 0u);
}

TEST_F(ReturningTest, CompressedExtentsReturnWhereTheyFit) {
  const Ino ino = stored_image("image", geometry::Codec::kZstd);
  const auto before = places(ino);
  put(ino, {32, 128}, {32, 128}, 2);
  ASSERT_OK(volume().sync());
  EXPECT_EQ(relocated(), 1u);
  EXPECT_EQ(places(ino), before);
}

TEST_F(ReturningTest, WithoutGroupingNothingReturns) {
  mount(false);
  const Ino ino = stored_image("image");
  put(ino, {32, 128}, {32, 128}, 2);
  ASSERT_OK(volume().sync());
  EXPECT_EQ(away_from_home(), 0u);
}

TEST_F(ReturningTest, ItHappensByItselfOnAnIdleVolume) {
  SystemEnvironment clock;  // the volume is closed before it goes
  VolumeOptions options = test::quiet_options();
  options.commit_interval_ns = 100'000'000;
  ASSERT_OK(volume().close());
  volume_.reset();
  auto opened = test::open_volume(test::borrowed(disks_), options, clock);
  ASSERT_OK(opened);
  volume_ = std::move(*opened);
  const Ino ino = stored_image("image");
  const auto before = places(ino);
  put(ino, {40, 100}, {50, 60}, 2);
  const auto until = std::chrono::steady_clock::now() + kLongest;
  while ((away_from_home() > 0 || volume().operations().home_state().relocated == 0) &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(away_from_home(), 0u);
  EXPECT_EQ(places(ino), before);
  EXPECT_OK(volume().close());
  volume_.reset();
}

// Without a thread: turns on a clock that the test moves.
class RelocatorTest : public VolumeTest {
 protected:
  static constexpr std::uint64_t kDepth = 16, kFrameSide = 64;

  // An image whose frames lie in strips.
  Ino streamed_image() {
    const Ino ino = make_file("stack");
    ImageOptions options;
    options.geometry.rank = 3;
    options.geometry.shape = {0, kFrameSide, kFrameSide};
    options.geometry.extent = {kDepth, kFrameSide, kFrameSide};
    options.geometry.axes = "zyx";
    EXPECT_OK(volume().make_image(ino, options));
    std::minstd_rand noise(3);
    for (std::uint64_t frame = 0; frame < kDepth; ++frame) {
      std::string bytes(kFrameSide * kFrameSide, 0);
      for (char& byte : bytes) byte = static_cast<char>(noise() >> 8);
      write(ino, frame * bytes.size(), bytes);
      EXPECT_OK(volume().fsync(ino, true));
    }
    return ino;
  }
  bool is_in_strips(Ino ino) {
    const auto found = has_strips(maintained(), ino);
    EXPECT_OK(found);
    return found.ok() && *found;
  }
  MaintainedVolume& maintained() { return dynamic_cast<MaintainedVolume&>(volume()); }
  Turn turn() {
    return Relocator(maintained(), [] { return false; }).turn();
  }
};

TEST_F(RelocatorTest, StripsAreConsolidatedOnceTheVolumeIsIdle) {
  const Ino ino = streamed_image();
  ASSERT_TRUE(is_in_strips(ino));
  const std::string before = read(ino);
  EXPECT_FALSE(turn().worked) << "somebody has just read";
  EXPECT_TRUE(is_in_strips(ino));
  environment_.advance_ns(1'000'000'000);
  EXPECT_TRUE(turn().worked);
  EXPECT_FALSE(is_in_strips(ino));
  EXPECT_EQ(read(ino), before);
}

TEST_F(RelocatorTest, WhileADiskIsMissingNothingIsConsolidated) {
  const Ino ino = streamed_image();
  EXPECT_OK(volume().close());
  volume_.reset();
  auto disks = test::borrowed(disks_);
  disks.pop_back();
  auto opened = test::open_volume(disks, test::quiet_options(), environment_);
  ASSERT_OK(opened);
  volume_ = std::move(*opened);
  ByteVector some(1);
  (void)volume().read(ino, 0, some);  // opens it; the disk may be the one that is missing
  ASSERT_FALSE(volume().engine().relocation_candidates().empty());
  environment_.advance_ns(1'000'000'000);
  EXPECT_FALSE(turn().worked);
  EXPECT_TRUE(is_in_strips(ino));
  mount();  // it is back
  (void)read(ino, 0, 1);
  environment_.advance_ns(1'000'000'000);
  EXPECT_TRUE(turn().worked);
  EXPECT_FALSE(is_in_strips(ino));
}

class FullReturningTest : public ReturningTest {
 protected:
  FullReturningTest() : ReturningTest(8u << 20) {}
};

// Images and files against plain arrays, on disks that are nearly full all the time, so that places are taken by
// others.
TEST_F(FullReturningTest, NoByteChangesWhateverHappensToThePlaces) {
  std::mt19937_64 random(11);
  std::vector<Ino> images;
  while (volume().space().available_blocks > volume().space().total_blocks / 6)
    images.push_back(stored_image("image" + std::to_string(images.size())));
  std::vector<std::string> expected;
  for (const Ino ino : images) expected.push_back(read(ino, 0, kSide * kSide));
  std::uint64_t all = 0;
  unsigned files = 0;
  for (unsigned step = 0; step < 400; ++step) {
    const std::size_t i = random() % images.size();
    switch (random() % 6) {
      case 0:
        all += relocated();
        break;
      case 1: {
        const std::string name = "file" + std::to_string(files++ % 4);
        if (const auto old = volume().lookup(kRootIno, name); old.ok()) {
          volume().forget(old->ino, 1);
          EXPECT_OK(volume().unlink(kRootIno, name));
        }
        const Ino file = make_file(name);
        const std::string bytes(random() % 300'000, 'f');
        (void)volume().write(file, 0, as_bytes(bytes), false);  // there may be no room
        volume().forget(file, 1);
        break;
      }
      case 2:
        EXPECT_OK(volume().sync());
        break;
      default: {
        const std::uint64_t rows = 1 + random() % 100, columns = 1 + random() % 200;
        const std::uint64_t y = random() % (kSide - rows), x = random() % (kSide - columns);
        put(images[i], {y, x}, {rows, columns}, 100 + step);
        std::minstd_rand noise(100 + step);
        for (std::uint64_t row = 0; row < rows; ++row)
          for (std::uint64_t column = 0; column < columns; ++column)
            expected[i][(y + row) * kSide + x + column] = static_cast<char>(noise() >> 8);
      }
    }
    ASSERT_EQ(read(images[i], 0, kSide * kSide), expected[i]) << "step " << step;
  }
  EXPECT_GT(all, 20u);
  mount();
  for (std::size_t i = 0; i < images.size(); ++i) EXPECT_EQ(read(images[i], 0, kSide * kSide), expected[i]);
}

}  // namespace
}  // namespace mdfs::maintenance
