// Volumes that are filled to the last block, again and again, by every kind of operation: ENOSPC and nothing else,
// nothing acknowledged is lost, what frees still works, and the space comes back to the block. Promise 9 of
// doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "base/log.h"
#include "filler.h"
#include "small_volume.h"
#include "store/format_volume.h"
#include "tried.h"

namespace mdfs::safety {
namespace {

constexpr std::uint64_t kDiskBytes = 4u << 20;
const Status quiet = set_log_level("off");

Status remove_all(volume::Volume& volume, Ino directory) {
  for (;;) {
    MDFS_TRY_ASSIGN(const auto entries, volume.read_directory(directory, 0, 64));
    bool any = false;
    for (const auto& entry : entries) {
      if (entry.name == "." || entry.name == "..") continue;
      any = true;
      MDFS_TRY(entry.type == 4 ? volume.remove_directory(directory, entry.name) : volume.unlink(directory, entry.name));
    }
    if (!any) return {};
  }
}

class FullVolumeTest : public testing::TestWithParam<unsigned> {
 protected:
  FullVolumeTest() : environment_(11), disks_(test::format_memory_disks(GetParam(), kDiskBytes, environment_)) {}

  static void expect_sound(const store::SpaceInfo& space, const std::string& what) {
    ASSERT_LE(space.free_blocks, space.total_blocks) << what;
    ASSERT_LE(space.available_blocks, space.free_blocks) << what;
  }

  // The disks as a power cut would leave them now: clean, and all that was synced is there.
  void expect_safe(const Filler& filler, const std::string& what) const {
    const MemoryDisks cut = clone(disks_);
    ASSERT_EQ(findings(cut), std::set<std::string>()) << what;
    SeededEnvironment environment(12);
    auto volume = mount(cut, environment);
    ASSERT_TRUE(volume.ok()) << what << ": " << volume.error().message();
    ASSERT_EQ(filler.look(**volume), "") << what;
  }

  void fill_and_empty(unsigned cycle);
  // Of all that lies in more pieces than it must, to its end; as it needs room to move things, it may leave them.
  void defragment(volume::Volume& volume, const std::string& what);

  SeededEnvironment environment_;
  const MemoryDisks disks_;
  std::uint64_t operations_ = 0;
  std::uint64_t defragmented_ = 0, moved_bytes_ = 0;
};

void FullVolumeTest::defragment(volume::Volume& volume, const std::string& what) {
  volume::OperationRequest request;
  request.kind = volume::OperationKind::kDefrag;
  request.threshold = 1000;
  const Status started = volume.operations().start(request);
  ASSERT_TRUE(started.ok()) << what << ": " << started.error().message();
  const auto record = run_to_end(volume, volume::OperationKind::kDefrag);
  ASSERT_TRUE(record.ok()) << what << ": " << record.error().message();
  ASSERT_EQ(record->state, MDFS_OPERATION_DONE) << what << ": " << record->reason;
  ASSERT_EQ(record->items_failed, 0u) << what;
  ++defragmented_;
  moved_bytes_ += record->bytes_done;
}

void FullVolumeTest::fill_and_empty(unsigned cycle) {
  auto volume = mount(disks_, environment_);
  ASSERT_TRUE(volume.ok()) << volume.error().message();
  const auto directory = (*volume)->make_directory(kRootIno, "d", 0755, kRoot);
  ASSERT_TRUE(directory.ok()) << "cycle " << cycle << ": " << directory.error().message();
  Filler filler(**volume, directory->ino, cycle);
  std::mt19937_64 generator(cycle);
  // Two ways, one after the other: what one leaves over the other takes. Then some room is made, and used again.
  for (unsigned turn = 0; turn < 3; ++turn) {
    const unsigned way = turn == 0 ? cycle % kWays : static_cast<unsigned>(generator() % kWays);
    const std::string what = fmt::format("cycle {}, turn {}, way {}", cycle, turn, way);
    const Error end = filler.fill(static_cast<Way>(way));
    ASSERT_EQ(end.code, Errc::kNoSpace) << what << ": " << end.message();
    ASSERT_EQ(filler.look(**volume), "") << what;
    expect_sound((*volume)->space(), what);
    if (turn == 0) continue;
    const Status synced = (*volume)->sync();
    ASSERT_TRUE(synced.ok()) << what << ": " << synced.error().message();
    ASSERT_EQ(filler.look(**volume), "") << what << ", synced";
    ASSERT_NO_FATAL_FAILURE(defragment(**volume, what + ", full"));
    ASSERT_EQ(filler.look(**volume), "") << what << ", defragmented";
    expect_sound((*volume)->space(), what + ", defragmented");
    if (cycle % 4 == turn) {
      ASSERT_NO_FATAL_FAILURE(expect_safe(filler, what + ", full"));
    }
    for (unsigned i = 0; i < 12 && filler.holds_any(); ++i) {
      const Status gave = filler.give_room();
      ASSERT_TRUE(gave.ok()) << what << ", room " << i << ", " << filler.last() << ": " << gave.error().message();
    }
    ASSERT_EQ(filler.look(**volume), "") << what << ", after room was made";
    ASSERT_NO_FATAL_FAILURE(defragment(**volume, what + ", with some room"));
    ASSERT_EQ(filler.look(**volume), "") << what << ", after room was made, defragmented";
    ASSERT_TRUE((*volume)->sync().ok()) << what;
    if (cycle % 4 == turn) {
      ASSERT_NO_FATAL_FAILURE(expect_safe(filler, what + ", with some room"));
    }
  }
  operations_ += filler.operations();
  filler.forget_all();
  const Status emptied = remove_all(**volume, directory->ino);
  ASSERT_TRUE(emptied.ok()) << "cycle " << cycle << ": " << emptied.error().message();
  (*volume)->forget(directory->ino, 1);
  ASSERT_TRUE((*volume)->remove_directory(kRootIno, "d").ok()) << "cycle " << cycle;
  ASSERT_TRUE((*volume)->close().ok()) << "cycle " << cycle;
}

TEST_P(FullVolumeTest, FilledAndEmptiedForManyCyclesItLosesNothingAndTheSpaceComesBackToTheBlock) {
  std::optional<store::SpaceInfo> empty;
  const unsigned cycles = whole_run() ? 1000 : 2 * kWays;
  for (unsigned cycle = 0; cycle < cycles; ++cycle) {
    ASSERT_NO_FATAL_FAILURE(fill_and_empty(cycle));
    // The bitmaps say what a fresh count of the tree says, and as many blocks are free as at first.
    ASSERT_EQ(findings(disks_), std::set<std::string>()) << "cycle " << cycle;
    auto again = mount(disks_, environment_);
    ASSERT_TRUE(again.ok());
    const store::SpaceInfo now = (*again)->space();
    expect_sound(now, fmt::format("cycle {}, empty", cycle));
    if (!empty) empty = now;
    ASSERT_EQ(now.free_blocks, empty->free_blocks) << "cycle " << cycle;
    ASSERT_EQ(now.available_blocks, empty->available_blocks) << "cycle " << cycle;
    ASSERT_EQ(now.objects, empty->objects) << "cycle " << cycle;
    ASSERT_TRUE((*again)->close().ok());
  }
  EXPECT_EQ(empty->free_blocks, empty->total_blocks);
  EXPECT_GT(moved_bytes_, 0u);
  test::tried("filled and emptied {} times on {} disks, {} operations, defragmented {} times ({} bytes moved)", cycles,
              GetParam(), operations_, defragmented_, moved_bytes_);
}

// An image whose row of extents is more than the reserve: to cut it inside at once takes more room than there is.
TEST_P(FullVolumeTest, ATruncateIsDoneInStepsThatFreeTheRoomForTheNext) {
  constexpr std::uint64_t kColumns = 8192, kRows = 128;
  auto volume = mount(disks_, environment_);
  ASSERT_TRUE(volume.ok());
  const auto image = (*volume)->make_node(kRootIno, "image", S_IFREG | 0644, 0, kRoot);
  ASSERT_TRUE(image.ok());
  ASSERT_TRUE((*volume)->make_image(image->ino, square_image(geometry::Codec::kRaw, kRows, kColumns)).ok());
  std::mt19937_64 generator(GetParam());
  std::string text(kRows * kColumns, '\0');
  for (char& c : text) c = static_cast<char>(generator());
  const auto wrote = (*volume)->write(image->ino, 0, as_bytes(text), false);
  ASSERT_TRUE(wrote.ok()) << wrote.error().message();
  ASSERT_EQ(*wrote, text.size());
  Filler filler(**volume, kRootIno, 1);
  ASSERT_EQ(filler.fill(Way::kLargeFiles).code, Errc::kNoSpace);
  ASSERT_EQ(filler.fill(Way::kSmallFiles).code, Errc::kNoSpace);
  ASSERT_TRUE((*volume)->sync().ok());

  const auto cut_to = [&](std::uint64_t bytes) {
    volume::SetAttributes change;
    change.size_bytes = bytes;
    return (*volume)->set_attributes(image->ino, change);
  };
  for (const std::uint64_t bytes : {kColumns * 100 + 77, kColumns * 63, std::uint64_t{1}}) {
    const auto cut = cut_to(bytes);
    ASSERT_TRUE(cut.ok()) << cut.error().message();
    text.resize(bytes);
    ByteVector got(text.size() + 1);
    ASSERT_EQ((*volume)->read(image->ino, 0, got).value(), text.size()) << bytes;
    ASSERT_EQ(as_text(got).substr(0, text.size()), text) << bytes;
  }
  ASSERT_TRUE(cut_to(kColumns * 64).ok());
  ASSERT_TRUE(cut_to(0).ok());
  ASSERT_TRUE((*volume)->sync().ok());
  ASSERT_EQ(filler.look(**volume), "");
}

TEST(UnequalDisksTest, WhenTheSmallDiskIsFullTheVolumeGoesOnWithTheRest) {
  SystemEnvironment environment;
  MemoryDisks disks;
  for (const std::uint64_t bytes : {4 * kDiskBytes, kDiskBytes, 4 * kDiskBytes})
    disks.push_back(std::make_unique<device::MemoryDisk>(fmt::format("disk{}", disks.size()), bytes));
  ASSERT_TRUE(store::format_volume(test::borrowed(disks), {.weights = {1, 2, 1}}, environment).ok());
  auto volume = mount(disks, environment);
  ASSERT_TRUE(volume.ok());
  Filler filler(**volume, kRootIno, 7);
  ASSERT_EQ(filler.fill(Way::kRawImages).code, Errc::kNoSpace);
  ASSERT_EQ(filler.fill(Way::kLargeFiles).code, Errc::kNoSpace);
  ASSERT_TRUE((*volume)->sync().ok());
  for (unsigned i = 0; i < 3; ++i) {
    const store::DiskInfo info = (*volume)->store().disk_info(i);
    EXPECT_EQ(info.weight, i == 1 ? 2 : 1);
    EXPECT_LT(info.free_blocks, info.blocks / 4) << i;  // the metadata region
  }
  EXPECT_EQ(filler.look(**volume), "");
  filler.forget_all();
  ASSERT_TRUE((*volume)->close().ok());
  EXPECT_EQ(findings(disks), std::set<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Disks, FullVolumeTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace mdfs::safety
