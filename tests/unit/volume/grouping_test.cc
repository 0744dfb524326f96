// Extents of an image lie together whoever else writes, and stay together when parts of it are written anew.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "fixture.h"

namespace mdfs::volume {
namespace {

constexpr std::uint64_t kSide = 1536;
constexpr std::uint64_t kExtentSide = 128;  // 16 KiB, 4 blocks
constexpr std::uint64_t kImageBytes = kSide * kSide;
constexpr unsigned kWriters = 10;
constexpr std::int64_t kCommitNs = 5'000'000'000;

geometry::Geometry plane() {
  geometry::Geometry geometry;
  geometry.rank = 2;
  geometry.shape = {kSide, kSide};
  geometry.extent = {kExtentSide, kExtentSide};
  geometry.codec = geometry::Codec::kRaw;
  geometry.axes = "yx";
  return geometry;
}

class GroupingTest : public VolumeTest {
 protected:
  GroupingTest() : noise_(kImageBytes) {
    std::mt19937_64 random(3);
    for (std::byte& byte : noise_) byte = static_cast<std::byte>(random() | 1);
  }

  Ino make_image(const std::string& name) {
    const Ino ino = make_file(name);
    ImageOptions options;
    options.geometry = plane();
    EXPECT_OK(volume().make_image(ino, options));
    EXPECT_OK(volume().open_file(ino, false));
    return ino;
  }
  void write_part(Ino ino, std::uint64_t offset, std::uint64_t bytes) {
    EXPECT_OK(volume().write(ino, offset, ConstBytes(noise_).subspan(offset, bytes), false));
  }
  // What the background does every five seconds.
  void tick() {
    environment_.advance_ns(kCommitNs);
    EXPECT_OK(volume().engine().write_back_all(kCommitNs / 2));
    EXPECT_OK(volume().sync());
  }
  // Contiguous runs on each disk, summed over the disks.
  std::size_t physical_runs(Ino ino) {
    const auto layout = test::whole_layout(volume(), ino);
    EXPECT_OK(layout);
    std::map<unsigned, std::map<std::uint64_t, std::uint64_t>> places;
    for (const layout::ExtentPlace& place : layout->rows)
      places[place.disk][place.block] = place.block + place.stored_bytes / layout->block_size;
    std::size_t runs = 0;
    for (const auto& [disk, list] : places) {
      std::uint64_t end = 0;
      for (const auto& [block, after] : list) runs += block != std::exchange(end, after);
    }
    return runs;
  }
  // Along the disks, how often does an extent follow that of another image?
  std::size_t owner_changes(const std::vector<Ino>& images) {
    std::map<std::pair<unsigned, std::uint64_t>, Ino> owners;
    for (const Ino ino : images) {
      const auto layout = test::whole_layout(volume(), ino);
      EXPECT_OK(layout);
      for (const layout::ExtentPlace& place : layout->rows) owners[{place.disk, place.block}] = ino;
    }
    std::size_t changes = 0;
    Ino last = 0;
    for (const auto& [place, ino] : owners) changes += ino != std::exchange(last, ino);
    return changes;
  }
  // From the first block of an image to its last, on the disk where that is the most.
  std::uint64_t span_blocks(Ino ino) {
    const auto layout = test::whole_layout(volume(), ino);
    EXPECT_OK(layout);
    std::map<unsigned, std::pair<std::uint64_t, std::uint64_t>> ends;
    for (const layout::ExtentPlace& place : layout->rows) {
      auto [found, made] = ends.try_emplace(place.disk, place.block, place.block);
      found->second = {std::min(found->second.first, place.block), std::max(found->second.second, place.block)};
    }
    std::uint64_t most = 0;
    for (const auto& [disk, end] : ends) most = std::max(most, end.second - end.first);
    return most;
  }
  // Runs that reading windows of 3x3 extents takes, on average over all of them.
  double runs_of_windows(Ino ino) {
    double runs = 0;
    int windows = 0;
    for (std::uint64_t y = 0; y + 3 * kExtentSide <= kSide; y += kExtentSide)
      for (std::uint64_t x = 0; x + 3 * kExtentSide <= kSide; x += kExtentSide, ++windows) {
        geometry::Window window;
        window.start = {y, x};
        window.length = {3 * kExtentSide, 3 * kExtentSide};
        const auto plan = volume().plan_window(ino, window, {});
        EXPECT_OK(plan);
        for (const auto& disk : plan->disks) runs += static_cast<double>(disk.runs);
      }
    return runs / windows;
  }
  std::vector<Ino> fresh_images(unsigned count) {
    std::vector<Ino> images;
    for (unsigned i = 0; i < count; ++i) {
      images.push_back(make_image("fresh" + std::to_string(i)));
      write_part(images.back(), 0, kImageBytes);
      tick();
    }
    return images;
  }
  // What a read plan shows is in the cache otherwise.
  void forget_cache() {
    environment_.advance_ns(kCommitNs);
    mount();
  }

  ByteVector noise_;
};

TEST_F(GroupingTest, TenSlowWritersInTurnsLeaveTheirImagesAsIfEachHadWrittenAlone) {
  const std::size_t alone = physical_runs(fresh_images(1)[0]);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Ino> images;
    std::vector<std::uint64_t> written(kWriters);
    for (unsigned i = 0; i < kWriters; ++i)
      images.push_back(make_image("s" + std::to_string(seed) + "-" + std::to_string(i)));
    for (unsigned left = kWriters; left > 0;) {
      const std::size_t i = random() % kWriters;
      if (written[i] == kImageBytes) continue;
      const std::uint64_t bytes = std::min(kImageBytes - written[i], 1 + random() % (64u << 10));
      write_part(images[i], written[i], bytes);
      written[i] += bytes;
      left -= written[i] == kImageBytes;
      if (random() % 60 == 0) tick();
    }
    tick();
    std::size_t runs = 0;
    for (const Ino image : images) runs += physical_runs(image);
    std::printf("owner changes %zu, runs of an image %.1f, alone %zu\n", owner_changes(images),
                static_cast<double>(runs) / kWriters, alone);
    // Each image has its place on each of the four disks, and at most another one beside it.
    EXPECT_LE(owner_changes(images), 2 * 4 * kWriters);
    // What the engine does by itself when the writers pause.
    runs = 0;
    for (const Ino image : images) {
      ASSERT_OK(volume().consolidate(image, UINT64_MAX, false));
      runs += physical_runs(image);
    }
    std::printf("consolidated: owner changes %zu, runs of an image %.1f\n", owner_changes(images),
                static_cast<double>(runs) / kWriters);
    for (const Ino image : images) {
      ByteVector bytes(kImageBytes);
      ASSERT_OK(volume().read(image, 0, bytes));
      EXPECT_TRUE(bytes == noise_);
    }
  }
}

TEST_F(GroupingTest, WindowsWrittenAnewStayNearTheirGroup) {
  std::vector<Ino> images = fresh_images(4);
  const std::uint64_t span = span_blocks(images[0]);
  forget_cache();
  const double fresh = runs_of_windows(images[0]);
  std::mt19937_64 random(5);
  for (int i = 0; i < 400; ++i) {
    geometry::Window window;
    for (unsigned axis = 0; axis < 2; ++axis) {
      window.length[axis] = kExtentSide * (1 + random() % 3);
      window.start[axis] = random() % (kSide - window.length[axis]);
    }
    const auto from = [&](std::uint64_t offset, MutableBytes into) -> Status {
      std::copy_n(noise_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return {};
    };
    ASSERT_OK(volume().write_window(images[random() % images.size()], window, from));
    if (i % 20 == 0) tick();
    if (i == 200) forget_cache();  // the next mount knows the groups by their records only
  }
  tick();
  forget_cache();
  constexpr std::uint64_t kNearBlocks = (16u << 20) / 4096;
  double aged = 0;
  for (const Ino image : images) {
    EXPECT_LE(span_blocks(image), span + kNearBlocks);
    aged += runs_of_windows(image) / static_cast<double>(images.size());
  }
  EXPECT_LE(aged, 2.5 * fresh) << "runs of a window, fresh: " << fresh;
  RecordProperty("fresh", std::to_string(fresh));
  RecordProperty("aged", std::to_string(aged));
  std::printf("runs of a window: fresh %.2f, aged %.2f\n", fresh, aged);
}

}  // namespace
}  // namespace mdfs::volume
