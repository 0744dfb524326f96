// Long work that meets a full volume, consolidation and draining: it reports the error, nothing acknowledged is lost,
// and it is resumed when there is room. Promise 9 of doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "filler.h"
#include "small_volume.h"
#include "tried.h"

namespace mdfs::safety {
namespace {

using volume::OperationKind;

constexpr std::uint64_t kDiskBytes = 4u << 20;
constexpr std::uint64_t kFrameBytes = 4096;
constexpr unsigned kStacks = 16;
const Status quiet = set_log_level("off");

ByteVector frame_of(std::uint64_t number) {
  std::mt19937_64 generator(number + 1);
  ByteVector bytes(kFrameBytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
  return bytes;
}

// Images to which frames are appended, each synced: they lie in strips.
class Stacks {
 public:
  Stacks(volume::Volume& volume, unsigned count) : volume_(volume) {
    volume::ImageOptions options;
    options.geometry.rank = 3;
    options.geometry.shape = {0, 64, 64};
    options.geometry.extent = {8, 32, 32};
    options.geometry.axes = "zyx";
    for (unsigned i = 0; i < count; ++i) {
      options.geometry.codec = i % 2 == 0 ? geometry::Codec::kRaw : geometry::Codec::kZstd;
      const auto made = volume.make_node(kRootIno, fmt::format("stack{}", i), S_IFREG | 0644, 0, kRoot);
      MDFS_CHECK(made.ok() && volume.make_image(made->ino, options).ok());
      inos_.push_back(made->ino);
    }
  }

  // One frame for each, acknowledged and synced, or the error that ended it.
  Status append() {
    for (const Ino ino : inos_) {
      MDFS_TRY_ASSIGN(const std::size_t count, volume_.write(ino, 0, frame_of(ino * 1000 + frames_[ino]), true));
      if (count != kFrameBytes) return {Errc::kNoSpace, "a short write"};
      ++frames_[ino];
      MDFS_TRY(volume_.fsync(ino, false));
    }
    return {};
  }

  // Writes extents whole. How many bytes, or the error; on an error the next image is tried, too.
  Result<std::uint64_t> consolidate() {
    std::uint64_t bytes = 0;
    Status status;
    for (const Ino ino : inos_) {
      const auto consolidated = volume_.consolidate(ino, UINT64_MAX, true);
      if (consolidated.ok())
        bytes += *consolidated;
      else
        status = consolidated.error();
    }
    if (!status.ok()) return std::move(status).error();
    return bytes;
  }

  bool any_strips() {
    for (const Ino ino : inos_) {
      const auto layout = volume_.layout(ino, {}, SIZE_MAX, {});
      MDFS_CHECK(layout.ok());
      for (const layout::ExtentPlace& place : layout->rows)
        if (place.in_strip) return true;
    }
    return false;
  }

  std::string look(volume::Volume& volume) const {
    for (const Ino ino : inos_)
      for (std::uint64_t frame = 0; frame < frames_.at(ino); ++frame) {
        ByteVector got(kFrameBytes);
        const Status read = volume.read_window(ino, {{frame, 0, 0}, {1, 64, 64}}, 0, got);
        if (!read.ok()) return fmt::format("frame {} of {}: {}", frame, ino, read.error().message());
        if (got != frame_of(ino * 1000 + frame)) return fmt::format("frame {} of {} is wrong", frame, ino);
      }
    return "";
  }

  std::uint64_t frames() const {
    std::uint64_t all = 0;
    for (const auto& [ino, count] : frames_) all += count;
    return all;
  }

 private:
  volume::Volume& volume_;
  std::vector<Ino> inos_;
  std::map<Ino, std::uint64_t> frames_;  // acknowledged
};

// As a power cut leaves the disks now.
template <typename... Held>
void expect_safe(const MemoryDisks& disks, const std::string& what, const Held&... held) {
  const MemoryDisks cut = clone(disks);
  ASSERT_EQ(findings(cut), std::set<std::string>()) << what;
  SeededEnvironment environment(12);
  auto volume = mount(cut, environment);
  ASSERT_TRUE(volume.ok()) << what << ": " << volume.error().message();
  for (const std::string& wrong : {held.look(**volume)...}) ASSERT_EQ(wrong, "") << what << ", after a cut";
}

class FullVolumeWorkTest : public testing::TestWithParam<unsigned> {
 protected:
  FullVolumeWorkTest() : disks_(test::format_memory_disks(GetParam(), kDiskBytes, environment_)) {}
  SeededEnvironment environment_{11};
  const MemoryDisks disks_;
};

TEST_P(FullVolumeWorkTest, ConsolidatingWithoutRoomLosesNothingAndIsDoneWhenThereIsRoom) {
  auto volume = mount(disks_, environment_);
  ASSERT_TRUE(volume.ok());
  const std::uint64_t free_at_first = (*volume)->space().free_blocks;
  Filler filler(**volume, kRootIno, 3);
  std::uint64_t refused = 0;
  {
    Stacks stacks(**volume, kStacks);
    for (unsigned i = 0; i < 13; ++i) ASSERT_TRUE(stacks.append().ok());
    ASSERT_EQ(filler.fill(Way::kLargeFiles).code, Errc::kNoSpace);
    // To the last block, by what is in strips itself.
    for (unsigned i = 0;; ++i) {
      const Status appended = stacks.append();
      if (!appended.ok()) {
        ASSERT_EQ(appended.error().code, Errc::kNoSpace) << appended.error().message();
        break;
      }
      ASSERT_LT(i, 1000u);
    }
    ASSERT_EQ(filler.fill(Way::kSmallFiles).code, Errc::kNoSpace);
    ASSERT_TRUE((*volume)->sync().ok());
    ASSERT_TRUE(stacks.any_strips());
    for (unsigned i = 0; i < 5; ++i) {
      const auto consolidated = stacks.consolidate();
      if (!consolidated.ok()) {
        ASSERT_EQ(consolidated.error().code, Errc::kNoSpace) << consolidated.error().message();
        ++refused;
      }
      ASSERT_EQ(stacks.look(**volume), "") << i;
      ASSERT_EQ(filler.look(**volume), "") << i;
      ASSERT_TRUE((*volume)->sync().ok());
      ASSERT_FALSE((*volume)->store().read_only());
      ASSERT_NO_FATAL_FAILURE(expect_safe(disks_, fmt::format("full, consolidated {} times", i), stacks, filler));
    }
    // With room it is done to the end.
    for (unsigned i = 0; i < 40 && filler.holds_any(); ++i) ASSERT_TRUE(filler.give_room().ok()) << filler.last();
    filler.unlink_all();
    ASSERT_TRUE((*volume)->sync().ok());
    ASSERT_TRUE((*volume)->sync().ok());
    for (unsigned i = 0; i < 100 && stacks.any_strips(); ++i) {
      const auto consolidated = stacks.consolidate();
      ASSERT_TRUE(consolidated.ok()) << consolidated.error().message();
      ASSERT_TRUE((*volume)->sync().ok());
    }
    EXPECT_FALSE(stacks.any_strips());
    ASSERT_EQ(stacks.look(**volume), "");
    ASSERT_NO_FATAL_FAILURE(expect_safe(disks_, "consolidated", stacks));
    test::tried("{} frames in strips on a full volume of {} disks, consolidation refused {} times", stacks.frames(),
                GetParam(), refused);
  }
  for (unsigned i = 0; i < kStacks; ++i) ASSERT_TRUE((*volume)->unlink(kRootIno, fmt::format("stack{}", i)).ok());
  ASSERT_TRUE((*volume)->close().ok());
  EXPECT_EQ(findings(disks_), std::set<std::string>());
  auto again = mount(disks_, environment_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->space().free_blocks, free_at_first);
}

INSTANTIATE_TEST_SUITE_P(Disks, FullVolumeWorkTest, testing::Values(1, 2, 3));

// There is room when it begins; then others take it.
TEST(FullVolumeDrainTest, ADiskThatCannotBeEmptiedAnyMoreKeepsWhatIsLeftUntilThereIsRoom) {
  unsigned refused = 0, cases = 0;
  for (const unsigned steps : {0u, 1u, 2u, 4u, 7u, 12u}) {
    const std::string what = fmt::format("filled after {} steps", steps);
    SystemEnvironment environment;
    const MemoryDisks disks = test::format_memory_disks(3, kDiskBytes, environment);
    auto volume = mount(disks, environment);
    ASSERT_TRUE(volume.ok());
    Filler lasting(**volume, kRootIno, 5);
    ASSERT_TRUE(lasting.repeat(Way::kLargeFiles, 4).ok());
    ASSERT_TRUE(lasting.repeat(Way::kRawImages, 12).ok());
    ASSERT_TRUE(lasting.repeat(Way::kSmallFiles, 100).ok());
    const auto directory = (*volume)->make_directory(kRootIno, "d", 0755, kRoot);
    ASSERT_TRUE(directory.ok());
    ASSERT_TRUE((*volume)->sync().ok());
    volume::OperationRequest request;
    request.kind = OperationKind::kDrain;
    request.parameters = {0, 0, 0, 0};
    const Status started = (*volume)->operations().start(request);
    ASSERT_TRUE(started.ok()) << started.error().message();
    for (unsigned i = 0; i < steps; ++i) (void)(*volume)->operations().turn();
    Filler filler(**volume, directory->ino, 6);
    for (const Way way : {Way::kLargeFiles, Way::kRawImages, Way::kSmallFiles})
      ASSERT_EQ(filler.fill(way).code, Errc::kNoSpace) << what;
    ASSERT_TRUE((*volume)->sync().ok()) << what;
    auto record = run_to_end(**volume, OperationKind::kDrain);
    ASSERT_TRUE(record.ok()) << what;
    ASSERT_FALSE(record->running()) << what << ": comes to no end";
    ASSERT_FALSE((*volume)->store().read_only()) << what << ": " << (*volume)->store().read_only_reason();
    ASSERT_EQ(lasting.look(**volume), "") << what;
    ASSERT_EQ(filler.look(**volume), "") << what;
    ASSERT_NO_FATAL_FAILURE(expect_safe(disks, what, lasting, filler));
    ++cases;
    if (record->state != MDFS_OPERATION_DONE) {
      ++refused;
      EXPECT_EQ(record->state, MDFS_OPERATION_FAILED) << what;
      EXPECT_NE(record->reason.find("no space"), std::string::npos) << what << ": " << record->reason;
      EXPECT_TRUE((*volume)->store().disk_info(0).is_there()) << what;
      // Room is made, and the rest goes.
      filler.unlink_all();
      ASSERT_TRUE((*volume)->sync().ok()) << what;
      ASSERT_TRUE((*volume)->sync().ok()) << what;
      const Status resumed = (*volume)->operations().resume(OperationKind::kDrain, std::nullopt);
      ASSERT_TRUE(resumed.ok()) << what << ": " << resumed.error().message();
      record = run_to_end(**volume, OperationKind::kDrain);
      ASSERT_TRUE(record.ok()) << what;
    }
    EXPECT_EQ(record->state, MDFS_OPERATION_DONE) << what << ": " << record->reason;
    EXPECT_EQ((*volume)->store().disk_info(0).state, store::DiskState::kNone) << what;
    ASSERT_EQ(lasting.look(**volume), "") << what;
    ASSERT_TRUE((*volume)->close().ok()) << what;
    MemoryDisks rest;
    for (const std::size_t i : {1u, 2u}) rest.push_back(disks[i]->clone());
    ASSERT_NO_FATAL_FAILURE(expect_safe(rest, what + ", left", lasting));
  }
  EXPECT_GT(refused, 0u);
  test::tried("{} disks drained into a volume that was filled meanwhile, {} of them not before room was made", cases,
              refused);
}

}  // namespace
}  // namespace mdfs::safety
