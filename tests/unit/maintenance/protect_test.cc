// Protection of a volume in memory, step by step, and the other operations on protected images.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/protect.h"

#include <algorithm>
#include <map>
#include <random>

#include "base/log.h"
#include "fixture.h"
#include "maintenance/objects.h"
#include "store/check/check.h"
#include "volume/operations.h"

namespace mdfs::maintenance {
namespace {

using namespace volume;  // NOLINT: the fixture and what it prints errors with

constexpr std::uint64_t kSide = 1024;

// What is protected: it has so many extents, or cells.
struct Protected {
  const char* name;
  bool is_image;
  std::size_t extents;
};

class ProtectTest : public VolumeTest, public ::testing::WithParamInterface<Protected> {
 protected:
  ProtectTest() : VolumeTest(32u << 20) {
    EXPECT_OK(set_log_level("off"));
    image_ = GetParam().is_image ? make_raw_image("image", kSide) : make_file("image");
    std::minstd_rand random(9);
    bytes_.resize(GetParam().is_image ? kSide * kSide : GetParam().extents * MDFS_FILE_CELL);
    for (char& byte : bytes_) byte = static_cast<char>(random() >> 8);
    write(image_, 0, bytes_);
    EXPECT_OK(volume().sync());
  }

  std::size_t extents() const { return GetParam().extents; }
  MaintainedVolume& maintained() { return dynamic_cast<MaintainedVolume&>(volume()); }
  OperationRecord status(OperationKind kind) {
    const auto record = volume().operations().status(kind);
    EXPECT_OK(record);
    return record.ok() ? *record : OperationRecord();
  }
  void run(OperationKind kind, unsigned most = 100'000) {
    while (most-- > 0 && status(kind).running()) volume().operations().turn();
  }
  void start(OperationKind kind, std::uint64_t parameter = 0) {
    OperationRequest request{.kind = kind};
    request.parameters[0] = parameter;
    ASSERT_OK(volume().operations().start(request));
  }
  void protect() {
    ASSERT_OK(volume().set_copies(image_, true));
    run(OperationKind::kProtect);
    EXPECT_EQ(status(OperationKind::kProtect).figures[Protect::kMade], extents());
  }
  engine::ProtectionState state() {
    const auto protection = volume().protection(image_, {});
    EXPECT_OK(protection);
    return protection.ok() ? protection->state : engine::ProtectionState();
  }
  std::vector<layout::ExtentPlace> rows() {
    const auto found = layout_rows(maintained(), image_, {.of = engine::LayoutOf::kPieces});
    EXPECT_OK(found);
    return found.ok() ? found->rows : std::vector<layout::ExtentPlace>();
  }
  void expect_apart() {
    std::map<geometry::Coord, std::vector<unsigned>> disks;
    for (const layout::ExtentPlace& row : rows()) disks[row.index].push_back(row.disk);
    for (const auto& [extent, of_extent] : disks) {
      ASSERT_EQ(of_extent.size(), 2u);
      EXPECT_NE(of_extent[0], of_extent[1]);
    }
  }
  void expect_clean() {
    ASSERT_OK(volume_->close());
    volume_.reset();
    std::vector<std::unique_ptr<device::Disk>> doors;
    for (const auto& disk : disks_) doors.push_back(std::make_unique<test::BorrowedDisk>(*disk));
    store::CheckOptions options;
    options.data = true;
    const auto report = store::check_volume(std::move(doors), options, environment_);
    ASSERT_OK(report);
    for (const store::Finding& finding : report->findings) ADD_FAILURE() << finding.where;
    mount();
  }

  Ino image_ = 0;
  std::string bytes_;
};

TEST_P(ProtectTest, AnImageGetsCopiesAndLosesThemAgain) {
  const std::uint64_t stored = stat(image_).stored_bytes;
  protect();
  EXPECT_EQ(state().copied, extents());
  EXPECT_EQ(stat(image_).stored_bytes, 2 * stored);
  expect_apart();
  expect_clean();
  ASSERT_OK(volume().set_copies(image_, false));
  run(OperationKind::kProtect);
  EXPECT_EQ(status(OperationKind::kProtect).figures[Protect::kRemoved], extents());
  EXPECT_EQ(stat(image_).stored_bytes, stored);
  EXPECT_EQ(read(image_, 0, bytes_.size()), bytes_);
  expect_clean();
}

TEST_P(ProtectTest, AConversionThatWasInterruptedResumesAtTheNextMount) {
  ASSERT_OK(volume().set_copies(image_, true));
  run(OperationKind::kProtect, GetParam().is_image ? 2 : 1);
  EXPECT_LT(state().copied, extents());
  mount();
  EXPECT_TRUE(status(OperationKind::kProtect).running());
  run(OperationKind::kProtect);
  EXPECT_EQ(state().copied, extents());
  expect_clean();
}

TEST_P(ProtectTest, AnImageThatIsProtectedMeanwhileIsConvertedInAnotherPass) {
  ASSERT_OK(volume().set_copies(image_, true));
  volume().operations().turn();
  const Ino other = make_raw_image("other", 128);
  write(other, 0, std::string(128 * 128, 'x'));
  ASSERT_OK(volume().sync());
  ASSERT_OK(volume().set_copies(other, true));
  run(OperationKind::kProtect);
  EXPECT_EQ(volume().protection(other, {})->state.copied, 4u);
}

TEST_P(ProtectTest, StripsOfAnImageThatIsBeingAppendedToGetTheirCopies) {
  ImageOptions options;
  options.geometry.rank = 3;
  options.geometry.shape = {0, 64, 64};
  options.geometry.extent = {16, 64, 64};
  options.geometry.codec = geometry::Codec::kRaw;
  options.geometry.axes = "zyx";
  const Ino movie = make_file("movie");
  ASSERT_OK(volume().make_image(movie, options));
  for (std::uint64_t frame = 0; frame < 5; ++frame) {
    write(movie, frame * 4096, std::string(4096, static_cast<char>('a' + frame)));
    ASSERT_OK(volume().fsync(movie, true));
  }
  ASSERT_OK(volume().set_copies(movie, true));
  write(movie, 5 * 4096, std::string(4096, 'f'));  // dirty
  run(OperationKind::kProtect);
  EXPECT_EQ(volume().protection(movie, {})->state.in_strips, 0u);
  expect_clean();
  EXPECT_EQ(read(movie, 4 * 4096, 8192), std::string(4096, 'e') + std::string(4096, 'f'));
}

TEST_P(ProtectTest, NewImagesInheritFromTheirDirectory) {
  const Ino directory = make_directory("directory");
  ASSERT_OK(volume().set_copies(directory, true));
  const Ino below = make_directory("below", directory);
  EXPECT_TRUE(volume().protection(below, {})->copies);
  const Ino file = make_file("file", below);
  ImageOptions options;
  options.geometry.rank = 2;
  options.geometry.shape = {128, 128};
  options.geometry.extent = {64, 64};
  options.geometry.codec = geometry::Codec::kRaw;
  options.geometry.axes = "yx";
  ASSERT_OK(volume().make_image(file, options));
  write(file, 0, std::string(128 * 128, 'x'));
  ASSERT_OK(volume().sync());
  EXPECT_EQ(volume().protection(file, {})->state.copied, 4u);
  const Ino bytes = make_file("bytes", below);
  write(bytes, 0, std::string(128 * 128, 'y'));
  ASSERT_OK(volume().become_image(bytes, options, {}));
  ASSERT_OK(volume().sync());
  EXPECT_EQ(volume().protection(bytes, {})->state.copied, 4u);
  EXPECT_FALSE(volume().protection(make_file("outside"), {})->copies);
  expect_clean();
}

TEST_P(ProtectTest, ADrainedDiskKeepsNoPieceAndPiecesStayApart) {
  protect();
  start(OperationKind::kDrain, 1);
  run(OperationKind::kDrain);
  EXPECT_EQ(status(OperationKind::kDrain).state, MDFS_OPERATION_DONE);
  for (const layout::ExtentPlace& row : rows()) EXPECT_NE(row.disk, 1u);
  expect_apart();
  EXPECT_EQ(read(image_, 0, bytes_.size()), bytes_);
}

TEST_P(ProtectTest, ADiskThatJoinedGetsItsShareOfTheCopies) {
  protect();
  disks_.push_back(std::make_unique<device::MemoryDisk>("joining", 32u << 20));
  std::vector<store::JoiningDisk> joining;
  joining.push_back({std::make_unique<test::BorrowedDisk>(*disks_.back()), 1});
  const auto added = volume().add_disks(std::move(joining));
  ASSERT_OK(added);
  start(OperationKind::kBalance, std::uint64_t{1} << added->front());
  run(OperationKind::kBalance);
  const auto all = rows();
  const auto on_new = [&](bool copy) {
    return std::count_if(all.begin(), all.end(), [&](const layout::ExtentPlace& row) {
      return row.disk == added->front() && row.is_copy == copy;
    });
  };
  EXPECT_GT(on_new(false), 0);
  EXPECT_GT(on_new(true), 0);
  expect_apart();
  EXPECT_EQ(read(image_, 0, bytes_.size()), bytes_);
}

TEST_P(ProtectTest, TheScrubRepairsABitInEitherPiece) {
  protect();
  for (const bool copy : {false, true}) {
    const auto all = rows();
    const auto row = *std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.is_copy == copy; });
    ByteVector block(4096);
    disks_[row.disk]->peek(row.block * 4096, block);
    block[5] ^= std::byte{8};
    disks_[row.disk]->poke(row.block * 4096, block);
    start(OperationKind::kScrub);
    run(OperationKind::kScrub);
    const OperationRecord record = status(OperationKind::kScrub);
    EXPECT_EQ(record.items_failed, 0u);
    EXPECT_EQ(record.disks[row.disk].repaired, 1u);
    expect_clean();
    EXPECT_EQ(read(image_, 0, bytes_.size()), bytes_);
  }
}

TEST_P(ProtectTest, AReaderLetsABadPieceBeRepairedInTheBackground) {
  protect();
  const auto all = rows();
  const auto row = *std::find_if(all.begin(), all.end(), [](const auto& one) { return !one.is_copy; });
  ByteVector block(4096);
  disks_[row.disk]->peek(row.block * 4096, block);
  block[5] ^= std::byte{8};
  disks_[row.disk]->poke(row.block * 4096, block);
  mount();
  EXPECT_EQ(read(image_, 0, bytes_.size()), bytes_);
  const auto candidates = volume().engine().relocation_candidates();
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates.front().reason, engine::RelocationReason::kDamaged);
  {
    // The object has to be closed before the check ends its volume.
    const auto open = maintained().open_object(image_);
    ASSERT_OK(open);
    ASSERT_OK(volume().engine().relocate(**open, engine::RelocationReason::kDamaged, {}));
  }
  expect_clean();
}

TEST_P(ProtectTest, ADryRunCountsAndChangesNothing) {
  ASSERT_OK(volume().set_copies(image_, true));
  ASSERT_OK(volume().operations().cancel(OperationKind::kProtect));
  ASSERT_OK(volume().operations().start({.kind = OperationKind::kProtect, .dry_run = true}));
  run(OperationKind::kProtect);
  EXPECT_EQ(status(OperationKind::kProtect).items_changed, extents());
  EXPECT_EQ(state().copied, 0u);
}

TEST_P(ProtectTest, AFileThatIsRemovedGivesBackBothCopies) {
  protect();
  ASSERT_OK(volume().unlink(kRootIno, "image"));
  volume().forget(image_, 1);
  ASSERT_OK(volume().free_deleted());
  ASSERT_OK(volume().sync());
  expect_clean();
}

INSTANTIATE_TEST_SUITE_P(Of, ProtectTest,
                         ::testing::Values(Protected{"Image", true, 16 * 16}, Protected{"File", false, 40}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace mdfs::maintenance
