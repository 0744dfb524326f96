// Stored levels: a read of a level is the reduction of the present samples of its image, whatever came between.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "device/disk_counters.h"
#include "fixture.h"
#include "geometry/decompose.h"
#include "geometry/default_extent.h"
#include "geometry/level.h"
#include "geometry/reduce.h"
#include "store/check/check.h"
#include "volume/maintained_volume.h"

namespace mdfs::volume {
namespace {

using geometry::Geometry;
using geometry::Reduction;

Geometry made(std::vector<std::uint64_t> shape, std::vector<std::uint64_t> extent, std::string axes,
              geometry::ElementType type = geometry::ElementType::kU8, unsigned channels = 1,
              geometry::Codec codec = geometry::Codec::kZstd) {
  Geometry geometry;
  geometry.rank = static_cast<unsigned>(shape.size());
  std::copy(shape.begin(), shape.end(), geometry.shape.begin());
  std::copy(extent.begin(), extent.end(), geometry.extent.begin());
  geometry.axes = std::move(axes);
  geometry.type = type;
  geometry.channels = channels;
  geometry.codec = codec;
  return geometry;
}

// The whole level above an array, from its bytes.
ByteVector reduced(const Geometry& below, Reduction reduction, ConstBytes bytes) {
  geometry::ReducedBox box{{1, 1, 1}, {1, 1, 1}, below.channels};
  const geometry::HalvedAxes halved = geometry::halved_axes(below);
  std::uint64_t outer = 1;  // of volumes that are reduced each for itself
  for (unsigned axis = 0; axis < below.rank; ++axis) {
    if (axis < geometry::first_axis_in_box(below.rank)) {
      outer *= below.shape[axis];
      continue;
    }
    box.length[geometry::place_in_box(below.rank, axis)] = below.shape[axis];
    box.step[geometry::place_in_box(below.rank, axis)] = halved[axis] ? 2 : 1;
  }
  ByteVector result(geometry::geometry_above(below).size_bytes());
  const std::size_t from = bytes.size() / outer, into = result.size() / outer;
  for (std::uint64_t i = 0; i < outer; ++i)
    geometry::reduce(reduction, below.type, box, bytes.subspan(i * from, from),
                     MutableBytes(result).subspan(i * into, into));
  return result;
}

ByteVector whole_image(Volume& volume, Ino ino, Geometry& geometry) {
  const auto now = volume.image_geometry(ino);
  EXPECT_OK(now);
  geometry = *now;
  ByteVector bytes(geometry.size_bytes());
  if (!bytes.empty()) EXPECT_OK(volume.read_window(ino, geometry::whole(geometry), 0, bytes));
  return bytes;
}

// Compares all levels of the image with the reductions of its bytes.
void expect_levels(Volume& volume, Ino ino, const std::string& when) {
  Geometry geometry;
  ByteVector bytes = whole_image(volume, ino, geometry);
  const auto stored = volume.stored_levels(ino);
  ASSERT_OK(stored);
  for (unsigned level = 1; level <= stored->first && geometry.shape[0] > 0; ++level) {
    bytes = reduced(geometry, stored->second, bytes);
    geometry = geometry::geometry_above(geometry);
    ByteVector found(bytes.size());
    const auto read = read_level(volume, ino, level, geometry::whole(geometry), found);
    ASSERT_OK(read);
    ASSERT_TRUE(*read) << when;
    ASSERT_TRUE(found == bytes) << when << ": level " << level;
  }
}

class LevelsTest : public VolumeTest {
 protected:
  explicit LevelsTest(std::uint64_t disk_bytes = 256u << 20) : VolumeTest(disk_bytes) {}
  Ino make_image(std::string_view name, const Geometry& geometry, unsigned levels,
                 Reduction reduction = Reduction::kMean) {
    const Ino ino = make_file(name);
    ImageOptions options;
    options.geometry = geometry;
    EXPECT_OK(volume().make_image(ino, options));
    EXPECT_OK(volume().set_levels(ino, levels, reduction));
    return ino;
  }
  void write_random(Ino ino, std::uint64_t offset, std::size_t bytes) {
    EXPECT_OK(volume().write(ino, offset, random_bytes(bytes), false));
  }
  ByteVector random_bytes(std::size_t count) {
    ByteVector bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : random_() % end; }
  std::string check() {
    std::vector<std::unique_ptr<device::Disk>> disks;
    for (const auto& disk : disks_) disks.push_back(disk->clone());
    store::CheckOptions options;
    options.data = true;
    const auto report = store::check_volume(std::move(disks), options, environment_);
    if (!report.ok()) return report.error().message();
    for (const store::Finding& finding : report->findings)
      if (store::info(finding.id).severity != store::Severity::kNote)
        return std::string(store::info(finding.id).name) + ": " + finding.where;
    return "";
  }
  void change_at_random(Ino ino);
  // As an idle volume does.
  bool build(const engine::Stop& pause) {
    return dynamic_cast<MaintainedVolume&>(volume()).build_levels(pause, engine::Stop());
  }

  std::mt19937_64 random_{11};
};

// One change of any kind.
void LevelsTest::change_at_random(Ino ino) {
  const Geometry geometry = *volume().image_geometry(ino);
  const std::uint64_t size = volume().attributes(ino)->size_bytes;
  const std::uint64_t most = geometry.slab_bytes() * 60;
  switch (random_() % 9) {
    case 0:
    case 1:
      return write_random(ino, below(size), 1 + below(700));
    case 2:
      if (size < most) return write_random(ino, size + below(geometry.slab_bytes()), 1 + below(300));
      return;
    case 3: {
      geometry::Window window;
      for (unsigned axis = 0; axis < geometry.rank; ++axis) {
        if (geometry.shape[axis] == 0) return;
        window.start[axis] = below(geometry.shape[axis]);
        window.length[axis] = 1 + below(geometry.shape[axis] - window.start[axis]);
      }
      const ByteVector bytes = random_bytes(geometry::window_bytes(geometry, window));
      EXPECT_OK(volume().write_window(ino, window, [&](std::uint64_t offset, MutableBytes into) -> Status {
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
        return {};
      }));
      return;
    }
    case 4:
      EXPECT_OK(volume().set_attributes(ino, {.size_bytes = below(most)}));
      return;
    case 5:
      if (size > 0) {
        EXPECT_OK(volume().allocate(ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, below(size), 1 + below(size)));
      }
      return;
    case 6:
      if (size < most) {
        EXPECT_OK(volume().allocate(ino, 0, size, 1 + below(3 * geometry.slab_bytes())));
      }
      return;
    case 7:
      EXPECT_OK(volume().fsync(ino, true));
      return;
    default:
      if (size > 4) {
        const std::uint64_t length = 1 + below(size / 2);
        EXPECT_OK(volume().copy_range(ino, below(size / 2 - length + 1), ino, size / 2, length));
      }
      return;
  }
}

struct Case {
  const char* name;
  Geometry geometry;
  unsigned levels;
  Reduction reduction;
};
Geometry with_spacing(Geometry geometry, const std::vector<double>& spacing) {
  std::copy_n(spacing.begin(), geometry.rank, geometry.spacing.begin());
  return geometry;
}

TEST_F(LevelsTest, AnyInterleavingOfChangesCommitsCutsAndReadsGivesTheReductionOfThePlainBytes) {
  const std::vector<Case> cases = {
      {"plane", made({37, 41}, {8, 8}, "yx"), 4, Reduction::kMean},
      {"raw", made({50, 33}, {16, 8}, "yx", geometry::ElementType::kU16, 1, geometry::Codec::kRaw), 3, Reduction::kMax},
      {"colour", made({20, 31}, {8, 8}, "yx", geometry::ElementType::kU8, 3), 3, Reduction::kNearest},
      {"volume", with_spacing(made({21, 17, 15}, {4, 8, 8}, "zyx"), {2, 1, 1}), 3, Reduction::kMean},
      {"volumes", with_spacing(made({3, 9, 11, 13}, {1, 4, 8, 8}, "tzyx"), {1, 1, 1, 1}), 3, Reduction::kMean},
      {"microscope", made({2, 3, 5, 9, 11}, {2, 1, 2, 8, 8}, "tczyx", geometry::ElementType::kU16), 2, Reduction::kMax},
      {"film", made({9, 16, 15}, {2, 8, 8}, "tyx", geometry::ElementType::kI16), 2, Reduction::kMean},
      {"signal", made({500}, {64}, "x", geometry::ElementType::kF32), 5, Reduction::kMean},
  };
  for (const Case& one : cases) {
    const Ino ino = make_image(one.name, one.geometry, one.levels, one.reduction);
    write_random(ino, 0, one.geometry.size_bytes());
    for (int step = 0; step < 60; ++step) {
      const std::string when = std::string(one.name) + ", step " + std::to_string(step);
      change_at_random(ino);
      if (random_() % 4 == 0) {
        std::atomic<std::uint64_t> asked = random_();  // several threads ask
        build([&] { return ++asked % 8 == 0; });
      }
      if (random_() % 3 == 0) expect_levels(volume(), ino, when);
      if (random_() % 10 == 0) {
        mount();
        expect_levels(volume(), ino, when + ", mounted again");
      }
      if (random_() % 4 == 0) {  // as a cut of the power leaves it now
        test::MemoryDisks cut;
        for (const auto& disk : disks_) cut.push_back(disk->clone());
        auto after = test::open_volume(test::borrowed(cut), test::quiet_options(), environment_);
        ASSERT_OK(after);
        const auto found = (*after)->lookup(kRootIno, one.name);
        if (!found.ok()) continue;  // not committed yet
        expect_levels(**after, ino, when + ", after a cut");
        EXPECT_OK((*after)->close());
      }
      if (HasFatalFailure()) return;
    }
    EXPECT_OK(volume().sync());
    EXPECT_EQ(check(), "");
  }
}

TEST_F(LevelsTest, WritersAndReadersAtTheSameTimeSeeOneState) {
  // Every state has one value everywhere: a mixture would show in the mean.
  const Geometry geometry = made({64, 64}, {8, 8}, "yx");
  const Ino ino = make_image("i", geometry, 3);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (unsigned value = 1; value <= 60; ++value)
      EXPECT_OK(volume().write_window(ino, geometry::whole(geometry), [&](std::uint64_t, MutableBytes into) -> Status {
        std::fill(into.begin(), into.end(), static_cast<std::byte>(value));
        return {};
      }));
    done = true;
  });
  std::thread builder([&] {
    while (!done) build([&] { return done.load(); });
  });
  std::byte last{0};
  while (!done) {
    for (unsigned level = 1; level <= 3; ++level) {
      const Geometry shape = geometry::level_geometry(geometry, level);
      ByteVector found(shape.size_bytes());
      const auto read = read_level(volume(), ino, level, geometry::whole(shape), found);
      EXPECT_OK(read);
      EXPECT_EQ(std::count(found.begin(), found.end(), found[0]), std::ptrdiff_t(found.size()));
      EXPECT_GE(found[0], last);
      last = found[0];
    }
  }
  writer.join();
  builder.join();
  expect_levels(volume(), ino, "in the end");
}

TEST_F(LevelsTest, AWriterElsewhereUnderAnExtentOfALevelTakesNothingFromItsReaders) {
  const Geometry geometry = made({64, 64}, {16, 16}, "yx");
  const Ino ino = make_image("i", geometry, 2);
  const auto work = [&](std::uint64_t first_row) {
    geometry::Window rows = geometry::whole(geometry);
    rows.start[0] = first_row;
    rows.length[0] = 8;
    for (unsigned value = 1; value <= 200; ++value) {
      ASSERT_OK(volume().write_window(ino, rows, [&](std::uint64_t, MutableBytes into) -> Status {
        std::fill(into.begin(), into.end(), static_cast<std::byte>(value));
        return {};
      }));
      for (unsigned level = 1; level <= 2; ++level) {
        geometry::Window own = geometry::whole(geometry::level_geometry(geometry, level));
        own.start[0] = first_row >> level;
        own.length[0] = 8 >> level;
        ByteVector found(geometry::window_bytes(geometry::level_geometry(geometry, level), own));
        const auto read = read_level(volume(), ino, level, own, found);
        ASSERT_OK(read);
        ASSERT_EQ(std::count(found.begin(), found.end(), static_cast<std::byte>(value)), std::ptrdiff_t(found.size()))
            << "row " << first_row << ", level " << level << ", value " << value;
      }
    }
  };
  std::vector<std::thread> writers;
  for (const std::uint64_t row : {0, 8, 16}) writers.emplace_back(work, row);
  for (std::thread& writer : writers) writer.join();
}

TEST_F(LevelsTest, AReaderMayEndItsAttemptsWhileWritersGoOn) {
  const Geometry geometry = made({64, 64}, {16, 16}, "yx");
  const Ino ino = make_image("i", geometry, 1);
  const geometry::Window window = geometry::whole(geometry::level_geometry(geometry, 1));
  const auto none = [](std::uint64_t, ConstBytes) -> Status { return {}; };
  unsigned attempts = 0;  // a write in the middle of each attempt
  const auto write_again = [&](std::uint64_t, ConstBytes) -> Status {
    ++attempts;
    write_random(ino, 0, 64);
    return {};
  };
  write_random(ino, 0, 4096);
  const auto read = volume().read_level(ino, 1, window, 0, 1024, write_again, 3, {});
  ASSERT_OK(read);
  EXPECT_FALSE(*read);
  EXPECT_EQ(attempts, 3u);
  const auto quiet = volume().read_level(ino, 1, window, 0, 1024, none, 1, {});
  ASSERT_OK(quiet);
  EXPECT_TRUE(*quiet);
}

TEST_F(LevelsTest, AnExtentThatHasBeenBuiltIsReadFromTheDisksAfterAMount) {
  const Ino ino = make_image("i", made({64, 64}, {16, 16}, "yx"), 2);
  write_random(ino, 0, 4096);
  expect_levels(volume(), ino, "first");
  mount();
  const auto info = volume().levels_info(ino, {});
  ASSERT_OK(info);
  ASSERT_EQ(info->levels.size(), 2u);
  EXPECT_EQ(info->levels[0].extents, 4u);
  EXPECT_EQ(info->levels[0].built, 4u);
  EXPECT_EQ(info->levels[1].built, 1u);
  EXPECT_GT(info->levels[1].stored_bytes, 0u);
  write_random(ino, 0, 1);  // the corner: one extent of each level stands above it
  EXPECT_EQ(volume().levels_info(ino, {})->levels[0].built, 3u);
  EXPECT_EQ(volume().levels_info(ino, {})->levels[1].built, 0u);
}

TEST_F(LevelsTest, AnIdleVolumeBuildsExtentByExtentUntilAllAreBuilt) {
  const Ino ino = make_image("i", made({200, 300}, {16, 16}, "yx"), 3);
  write_random(ino, 0, 200 * 300);
  const engine::Stop at_once = [] { return true; };
  const auto count_turns = [&] {
    unsigned turns = 1;
    while (build(at_once)) ++turns;
    return turns;
  };
  EXPECT_EQ(count_turns(), 70u + 20u + 6u);
  const auto info = volume().levels_info(ino, {});
  ASSERT_OK(info);
  for (const auto& level : info->levels) EXPECT_EQ(level.built, level.extents);
  expect_levels(volume(), ino, "built");
  write_random(ino, 0, 1);
  EXPECT_EQ(count_turns(), 3u);
  mount();
  EXPECT_FALSE(build({}));
  EXPECT_OK(volume().stored_levels(ino));  // looked at
  EXPECT_FALSE(build({}));
  expect_levels(volume(), ino, "mounted again");
}

TEST_F(LevelsTest, BuildingAllLevelsReadsEachStoredSampleOnce) {
  const auto read_bytes = [&] {
    std::uint64_t bytes = 0;
    for (unsigned disk = 0; disk < disks_.size(); ++disk) bytes += store().counters(disk)->read_bytes;
    return bytes;
  };
  const std::vector<std::pair<std::string, Geometry>> images = {
      {"picture", made({2048, 2048}, {64, 64}, "yx", geometry::ElementType::kU8, 1, geometry::Codec::kRaw)},
      {"volume",
       with_spacing(made({128, 128, 256}, {16, 32, 32}, "zyx", geometry::ElementType::kU8, 1, geometry::Codec::kRaw),
                    {1, 1, 1})}};
  for (const auto& [name, geometry] : images) {
    const unsigned levels = geometry::useful_level_count(geometry);
    Ino ino = make_image(name, geometry, levels);
    write_random(ino, 0, geometry.size_bytes());
    mount();
    ino = volume().lookup(kRootIno, name)->ino;
    const std::uint64_t before = read_bytes();
    const Geometry coarsest = geometry::level_geometry(geometry, levels);
    ByteVector found(coarsest.size_bytes());
    EXPECT_TRUE(*read_level(volume(), ino, levels, geometry::whole(coarsest), found));
    const std::uint64_t read = read_bytes() - before;
    EXPECT_GE(read, geometry.size_bytes()) << name;
    EXPECT_LE(read, geometry.size_bytes() * 11 / 10) << name;  // and nodes of the tree
    const auto info = volume().levels_info(ino, {});
    ASSERT_OK(info);
    for (const auto& level : info->levels) EXPECT_EQ(level.built, level.extents) << name;
    expect_levels(volume(), ino, name);
  }
}

class LevelsOfAFullVolumeTest : public LevelsTest {
 protected:
  LevelsOfAFullVolumeTest() : LevelsTest(16u << 20) {}
};

TEST_F(LevelsOfAFullVolumeTest, LevelsThatMetAFullVolumeAreBuiltWhenThereIsRoom) {
  const Ino ino =
      make_image("i", made({1024, 1024}, {64, 64}, "yx", geometry::ElementType::kU8, 1, geometry::Codec::kRaw), 3);
  write_random(ino, 0, 1024 * 1024);
  EXPECT_OK(volume().sync());
  const Ino filler = make_file("filler");
  std::uint64_t filled = 0;
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{4096}})
    while (volume().write(filler, filled, random_bytes(bytes), false).ok()) filled += bytes;
  EXPECT_OK(volume().sync());
  const auto built = [&] {
    const auto info = volume().levels_info(ino, {});
    EXPECT_OK(info);
    std::uint64_t extents = 0;
    for (const auto& level : info->levels) extents += level.built;
    return extents;
  };
  EXPECT_FALSE(build({}));
  const std::uint64_t few = built();
  EXPECT_LT(few, 64u + 16u + 4u);
  EXPECT_FALSE(build({}));  // nothing is tried again for nothing
  EXPECT_EQ(built(), few);
  EXPECT_OK(volume().unlink(kRootIno, "filler"));
  volume().forget(filler, 1);
  for (int i = 0; i < 4; ++i) {  // deleted blocks are free two commits later
    make_file("tick" + std::to_string(i));
    EXPECT_OK(volume().sync());
  }
  EXPECT_FALSE(build({}));
  EXPECT_EQ(built(), 64u + 16u + 4u);
  expect_levels(volume(), ino, "with room");
}

// Of more extents than could be looked at one by one.
TEST_F(LevelsTest, WhatIsNotThereCostsNothing) {
  for (const auto& shape :
       {std::vector<std::uint64_t>{1, std::uint64_t{1} << 61, 2}, std::vector<std::uint64_t>{1u << 31, 1u << 29},
        std::vector<std::uint64_t>{1u << 20, 1u << 20, 1, 1u << 10, 1u << 10}}) {
    const auto rank = static_cast<unsigned>(shape.size());
    Geometry geometry = made(shape, shape, geometry::default_axes(rank));
    geometry.extent = geometry::default_extent(rank, geometry.shape, 1, geometry.axes);
    const unsigned levels = std::min<unsigned>(geometry::level_count(geometry), MDFS_MAX_LEVELS);
    const std::string name = "image of rank " + std::to_string(rank);
    const Ino ino = make_image(name, geometry, levels, Reduction::kMax);
    EXPECT_OK(volume().write(ino, geometry.size_bytes() - 1, ByteVector(1, std::byte{7}), false));
    EXPECT_FALSE(build({}));
    Geometry top = geometry;
    for (unsigned level = 0; level < levels; ++level) top = geometry::geometry_above(top);
    geometry::Window last;
    for (unsigned axis = 0; axis < rank; ++axis) {
      last.start[axis] = top.shape[axis] - 1;
      last.length[axis] = 1;
    }
    ByteVector sample(1);
    EXPECT_TRUE(*read_level(volume(), ino, levels, last, sample));
    EXPECT_EQ(sample[0], std::byte{7});
    EXPECT_OK(volume().allocate(ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, geometry.size_bytes() - 2));
    SetAttributes smaller;
    smaller.size_bytes = 10;
    EXPECT_OK(volume().set_attributes(ino, smaller));
    EXPECT_FALSE(build({}));
    EXPECT_OK(volume().unlink(kRootIno, name));
    volume().forget(ino, 1);
  }
}

TEST_F(LevelsTest, ABoxOfTheGridHasAWrittenExtentIfOneOfItIsWritten) {
  const std::string_view axes = "vwzyx";
  for (unsigned times = 0; times < 40; ++times) {
    const unsigned rank = 1 + static_cast<unsigned>(below(5));
    Geometry geometry = made(std::vector<std::uint64_t>(rank, 1), std::vector<std::uint64_t>(rank, 4),
                             std::string(axes.substr(0, rank)));
    geometry.extent[0] = 64;
    for (unsigned axis = 0; axis < rank; ++axis)
      geometry.shape[axis] = geometry.extent[axis] * (1 + below(rank == 1 ? 500 : rank == 2 ? 30 : 6));
    const Ino ino = make_image("grid " + std::to_string(times), geometry, 0);
    for (std::uint64_t count = below(6); count > 0; --count) {
      write_random(ino, below(geometry.size_bytes()), 1);
      if (below(2) == 0) EXPECT_OK(volume().fsync(ino, true));
    }
    auto& maintained = dynamic_cast<MaintainedVolume&>(volume());
    const auto object = maintained.open_object(ino);
    ASSERT_OK(object);
    const geometry::Coord grid = geometry.grid();
    for (unsigned boxes = 0; boxes < 60; ++boxes) {
      engine::GridBox box;
      for (unsigned axis = 0; axis < rank; ++axis) {
        box.first[axis] = below(grid[axis]);
        box.last[axis] = box.first[axis] + 1 + below(grid[axis] - box.first[axis] + 2);
      }
      bool expected = false;
      geometry::Coord at = box.first;
      do {
        bool inside = true;
        for (unsigned axis = 0; axis < rank; ++axis) inside = inside && at[axis] < grid[axis];
        expected = expected || (inside && *maintained.engine().is_written(**object, at));
      } while (geometry::step_in(rank, box.first, box.last, at));
      ASSERT_EQ(*maintained.engine().any_written(**object, box, {}), expected) << "rank " << rank;
    }
  }
}

TEST_F(LevelsTest, LevelsGoWithTheirImageAndLeaveNoBlocks) {
  EXPECT_OK(volume().sync());
  const auto free_blocks = [&] {
    for (int i = 0; i < 4; ++i) {
      make_file("tick" + std::to_string(random_()));
      EXPECT_OK(volume().sync());
    }
    return volume().space().free_blocks;
  };
  const std::uint64_t objects = volume().space().objects;
  const Ino ino = make_image("i", made({640, 640}, {64, 64}, "yx"), 3);
  write_random(ino, 0, 640 * 640);
  expect_levels(volume(), ino, "built");
  EXPECT_EQ(volume().space().objects, objects + 4);
  const std::uint64_t full = free_blocks();
  EXPECT_OK(volume().unlink(kRootIno, "i"));
  volume().forget(ino, 1);
  EXPECT_GT(free_blocks(), full + 100);
  EXPECT_EQ(volume().space().objects, objects + 8);  // the files
  EXPECT_OK(volume().sync());
  EXPECT_EQ(check(), "");
}

TEST_F(LevelsTest, AnImageTakesTheBlocksOfItsLevelsToo) {
  const Ino ino = make_image("i", made({640, 640}, {64, 64}, "yx"), 2);
  write_random(ino, 0, 640 * 640);
  EXPECT_OK(volume().sync());
  const auto stored = [&] { return volume().attributes(ino)->stored_bytes; };
  const std::uint64_t of_image = volume().image_info(ino)->stored_bytes;
  EXPECT_EQ(stored(), of_image);
  expect_levels(volume(), ino, "built");
  EXPECT_OK(volume().sync());
  std::uint64_t of_levels = 0;
  const auto info = volume().levels_info(ino, {});
  ASSERT_OK(info);
  for (const auto& level : info->levels) of_levels += level.stored_bytes;
  EXPECT_GT(of_levels, 640u * 640 / 4);
  EXPECT_EQ(stored(), of_image + of_levels);
  EXPECT_OK(volume().set_levels(ino, 0, Reduction::kMean));
  EXPECT_EQ(stored(), of_image);
}

TEST_F(LevelsTest, TheCheckerFreesTheLevelsOfAnImageThatWaitsToBeFreed) {
  const Ino ino = make_image("i", made({64, 64}, {16, 16}, "yx"), 2);
  write_random(ino, 0, 4096);
  expect_levels(volume(), ino, "built");
  EXPECT_OK(volume().unlink(kRootIno, "i"));  // still held
  EXPECT_OK(volume().sync());
  test::MemoryDisks cut;
  for (const auto& disk : disks_) cut.push_back(disk->clone());
  for (const bool again : {false, true}) {
    std::vector<std::unique_ptr<device::Disk>> disks;
    for (const auto& disk : cut) disks.push_back(std::make_unique<test::BorrowedDisk>(*disk));
    store::CheckOptions options;
    options.repair = store::RepairMode::kAll;
    const auto report = store::check_volume(std::move(disks), options, environment_);
    ASSERT_OK(report);
    for (const store::Finding& finding : report->findings) EXPECT_EQ(store::info(finding.id).name, "orphan");
    EXPECT_EQ(report->findings.empty(), again);
  }
}

TEST_F(LevelsTest, TheNumberOfLevelsAndTheirReductionCanBeChanged) {
  const Ino ino = make_image("i", made({64, 64}, {16, 16}, "yx"), 3);
  write_random(ino, 0, 4096);
  expect_levels(volume(), ino, "mean");
  EXPECT_OK(volume().set_levels(ino, 1, Reduction::kMean));
  EXPECT_EQ(volume().levels_info(ino, {})->levels.size(), 1u);
  EXPECT_EQ(volume().levels_info(ino, {})->levels[0].built, 4u);  // is what it was
  EXPECT_OK(volume().set_levels(ino, 2, Reduction::kMax));
  EXPECT_EQ(volume().levels_info(ino, {})->levels[0].built, 0u);
  expect_levels(volume(), ino, "max");
  EXPECT_ERROR(Errc::kOutOfRange, volume().set_levels(ino, 7, Reduction::kMax));
  EXPECT_ERROR(Errc::kNotImage, volume().set_levels(make_file("f"), 1, Reduction::kMax));
  EXPECT_OK(volume().set_levels(ino, 0, Reduction::kMean));
  EXPECT_EQ(volume().stored_levels(ino)->first, 0u);
  EXPECT_OK(volume().sync());
  EXPECT_EQ(check(), "");
}

TEST_F(LevelsTest, AReadOnlyVolumeGivesWhatIsBuiltAndSaysWhatIsNot) {
  const Ino built = make_image("built", made({64, 64}, {16, 16}, "yx"), 2);
  const Ino not_built = make_image("not", made({64, 64}, {16, 16}, "yx"), 2);
  for (const Ino ino : {built, not_built}) write_random(ino, 0, 4096);
  expect_levels(volume(), built, "first");
  EXPECT_OK(volume().sync());
  test::MemoryDisks copy;
  for (const auto& disk : disks_) copy.push_back(disk->clone());
  store::StoreOptions options;
  options.read_only = true;
  auto reader = test::open_volume(test::borrowed(copy), test::quiet_options(), environment_, options);
  ASSERT_OK(reader);
  expect_levels(**reader, built, "read-only");
  ByteVector bytes(32 * 32);
  geometry::Window window;
  window.length = {32, 32};
  const auto read = read_level(**reader, not_built, 1, window, bytes);
  ASSERT_OK(read);
  EXPECT_FALSE(*read);
}

}  // namespace
}  // namespace mdfs::volume
