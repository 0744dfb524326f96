// Extents of levels that cannot be read are built again: nothing is lost, and nothing keeps a disk.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "base/log.h"
#include "fixture.h"
#include "geometry/level.h"
#include "geometry/reduce.h"
#include "maintenance/objects.h"
#include "volume/operations.h"

namespace mdfs::maintenance {
namespace {

using namespace volume;  // NOLINT: the fixture and what it prints errors with

constexpr std::uint64_t kSide = 512;
constexpr unsigned kLevels = 3;

class LevelRepairTest : public VolumeTest {
 protected:
  LevelRepairTest() : VolumeTest(32u << 20) {
    EXPECT_OK(set_log_level("off"));
    image_ = make_raw_image("image", kSide);
    std::minstd_rand random(5);
    std::string bytes(kSide * kSide, 0);
    for (char& byte : bytes) byte = static_cast<char>(random() >> 8);
    write(image_, 0, bytes);
    EXPECT_OK(volume().set_levels(image_, kLevels, geometry::Reduction::kMean));
    while (maintained().build_levels({}, {})) {
    }
    EXPECT_OK(volume().sync());
    for (unsigned level = 1; level <= kLevels; ++level) expected_.push_back(*read_level(level));
    expect_whole();
  }

  MaintainedVolume& maintained() { return dynamic_cast<MaintainedVolume&>(volume()); }
  LevelsInfo levels() { return *volume().levels_info(image_, {}); }
  // Nothing: it is not stored, and cannot be.
  Result<std::optional<ByteVector>> try_level(unsigned level) {
    geometry::Window window;
    for (unsigned axis = 0; axis < 2; ++axis) window.length[axis] = kSide >> level;
    ByteVector bytes((kSide >> level) * (kSide >> level));
    MDFS_TRY_ASSIGN(const bool read, volume::read_level(volume(), image_, level, window, bytes));
    return read ? std::optional(std::move(bytes)) : std::nullopt;
  }
  std::optional<ByteVector> read_level(unsigned level) {
    const auto read = try_level(level);
    EXPECT_OK(read);
    return read.ok() ? *read : std::nullopt;
  }
  void expect_levels() {
    for (unsigned level = 1; level <= kLevels; ++level) EXPECT_EQ(read_level(level), expected_[level - 1]) << level;
  }
  void expect_whole() {
    for (const auto& level : levels().levels) EXPECT_EQ(level.built, level.extents);
  }
  std::vector<layout::ExtentPlace> places(Ino object) {
    const auto rows = layout_rows(maintained(), object, {});
    EXPECT_OK(rows);
    return rows.ok() ? rows->rows : std::vector<layout::ExtentPlace>();
  }
  // Changes a byte of each extent, and mounts again: the cache knows none of them.
  void damage(Ino object) {
    for (const layout::ExtentPlace& place : places(object)) {
      const std::uint64_t at = place.block * store().block_size() + place.stored_bytes / 2;
      std::byte byte{};
      disks_[place.disk]->peek(at, {&byte, 1});
      byte ^= std::byte{0x11};
      disks_[place.disk]->poke(at, {&byte, 1});
    }
    mount();
  }
  OperationRecord run(OperationRequest request) {
    EXPECT_OK(volume().operations().start(request));
    for (unsigned turns = 0; turns < 100'000; ++turns) {
      const auto record = volume().operations().status(request.kind);
      if (!record.ok() || !record->running()) return record.ok() ? *record : OperationRecord();
      volume().operations().turn();
    }
    return {};
  }

  Ino image_ = 0;
  std::vector<ByteVector> expected_;
};

TEST_F(LevelRepairTest, AReaderOfADamagedLevelGetsTheLevelAndLeavesItWhole) {
  damage(levels().levels[0].ino);
  EXPECT_EQ(read_level(1), expected_[0]);
  expect_whole();
  mount();
  expect_levels();
}

TEST_F(LevelRepairTest, AWindowOfADamagedLevelIsBuiltAgainBeforeItIsPinned) {
  damage(levels().levels[0].ino);
  geometry::Window window;
  for (unsigned axis = 0; axis < 2; ++axis) window.length[axis] = kSide / 2;
  const auto pinned = volume().pin_level(image_, 1, window, 3, {});
  ASSERT_OK(pinned);
  ASSERT_TRUE(*pinned);
  ByteVector bytes(expected_[0].size());
  ASSERT_OK((*pinned)->read(0, bytes, {}));
  EXPECT_EQ(bytes, expected_[0]);
  expect_whole();
}

TEST_F(LevelRepairTest, ALevelIsBuiltFromADamagedOneBelow) {
  damage(levels().levels[1].ino);
  damage(levels().levels[2].ino);
  EXPECT_EQ(read_level(3), expected_[2]);
  expect_levels();
  expect_whole();
}

TEST_F(LevelRepairTest, ADamagedImageIsAnErrorOfItsReadersAndALevelIsNot) {
  damage(image_);
  expect_levels();
  damage(levels().levels[0].ino);
  EXPECT_ERROR(Errc::kCorrupt, try_level(1));
  EXPECT_EQ(read_level(2), expected_[1]);
}

TEST_F(LevelRepairTest, AScrubForgetsWhatIsDamagedInALevelAndReportsWhatIsDamagedInAnImage) {
  const std::uint64_t extents = levels().levels[0].extents;
  damage(levels().levels[0].ino);
  OperationRecord record = run({.kind = OperationKind::kScrub});
  EXPECT_EQ(record.items_failed, 0u);
  std::uint64_t repaired = 0;
  for (const auto& disk : record.disks) repaired += disk.repaired;
  EXPECT_EQ(repaired, extents);
  EXPECT_EQ(levels().levels[0].built, 0u);
  expect_levels();
  EXPECT_OK(volume().sync());
  EXPECT_EQ(run({.kind = OperationKind::kScrub}).items_failed, 0u);
  damage(image_);
  record = run({.kind = OperationKind::kScrub});
  EXPECT_EQ(record.items_failed, (kSide / 64) * (kSide / 64));
  EXPECT_EQ(record.errors.front().object, image_);
}

TEST_F(LevelRepairTest, ADiskWithDamagedExtentsOfLevelsCanBeRemoved) {
  for (const auto& level : levels().levels) damage(level.ino);
  const OperationRecord record = run({.kind = OperationKind::kDrain, .parameters = {1}});
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_EQ(record.items_failed, 0u);
  expect_levels();
}

TEST_F(LevelRepairTest, ADamagedImageKeepsItsDiskAndNothingOfItIsForgotten) {
  damage(image_);
  EXPECT_EQ(run({.kind = OperationKind::kDrain, .parameters = {1}}).state, MDFS_OPERATION_FAILED);
  EXPECT_EQ(places(image_).size(), (kSide / 64) * (kSide / 64));
}

TEST_F(LevelRepairTest, OnlyLevelsThatAreStoredNowAreForgotten) {
  const Ino level = levels().levels[0].ino;
  const auto forget = [&](Ino object) { return maintained().forget_level_extents(object, {0, 1}); };
  EXPECT_EQ(*forget(image_), false);
  EXPECT_EQ(*forget(level + 100), false);
  EXPECT_EQ(*forget(level), true);
  EXPECT_EQ(levels().levels[0].built, levels().levels[0].extents - 2);
  expect_levels();
  EXPECT_OK(volume().set_levels(image_, 0, geometry::Reduction::kMean));
  EXPECT_EQ(*forget(level), false);
  const Ino later = make_raw_image("later", kSide);
  write(later, 0, std::string(kSide * kSide, 'x'));
  EXPECT_OK(volume().set_levels(later, 1, geometry::Reduction::kMean));
  EXPECT_EQ(*forget(volume().levels_info(later, {})->levels[0].ino), true);
}

}  // namespace
}  // namespace mdfs::maintenance
