// A full volume that keeps room for a lost disk: any disk is lost, everything gets two copies again, and then another
// disk is lost.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "base/log.h"
#include "small_volume.h"
#include "store/format_volume.h"
#include "tried.h"
#include "volume/operations.h"

namespace mdfs::safety {
namespace {

using volume::Ino;
using volume::kRootIno;
using volume::Volume;

const Status quiet = set_log_level("off");

MemoryDisks format(const std::vector<std::uint64_t>& mebibytes, Environment& environment) {
  MemoryDisks disks;
  std::vector<device::Disk*> borrowed;
  store::FormatOptions options;
  options.copies = true;
  options.spare_disks = 1;
  for (std::size_t i = 0; i < mebibytes.size(); ++i) {
    disks.push_back(std::make_unique<device::MemoryDisk>(fmt::format("disk{}", i), mebibytes[i] << 20));
    borrowed.push_back(disks.back().get());
    options.weights.push_back(static_cast<std::uint16_t>(mebibytes[i]));
  }
  const auto made = store::format_volume(borrowed, options, environment);
  EXPECT_TRUE(made.ok());
  return disks;
}

// Files and images until nothing more fits. `lengths`: files of these bytes in turn instead.
void fill(Volume& volume, std::uint64_t seed, const std::string& name, const std::vector<std::size_t>& lengths = {}) {
  std::mt19937_64 random(seed);
  ByteVector bytes(320u << 10);
  for (std::byte& one : bytes) one = static_cast<std::byte>(random());
  unsigned full = 0;
  for (unsigned number = 0; full < 4; ++number) {
    ASSERT_LT(number, 10'000u);
    const auto made = volume.make_node(kRootIno, fmt::format("{}{}", name, number), S_IFREG | 0644, 0, {});
    if (!made.ok()) break;
    volume::ImageOptions options;
    options.geometry.rank = 2;
    options.geometry.shape = {400, 400};
    options.geometry.extent = {64, 64};
    options.geometry.codec = geometry::Codec::kRaw;
    options.geometry.axes = "yx";
    const bool is_image = lengths.empty() && number % 2 == 1;
    if (is_image && !volume.make_image(made->ino, options).ok()) break;
    const std::size_t length = is_image           ? 400 * 400
                               : !lengths.empty() ? lengths[number % lengths.size()]
                                                  : (bytes.size() / 2) >> random() % 6;
    auto written = volume.write(made->ino, 0, ConstBytes(bytes).first(length), false);
    if (written.ok() && volume.sync().ok() && *written == length) continue;
    ++full;
    EXPECT_TRUE(volume.unlink(kRootIno, fmt::format("{}{}", name, number)).ok());
    EXPECT_TRUE(volume.sync().ok());
  }
}

void rebuild(Volume& volume) {
  ASSERT_TRUE(volume.operations().start({.kind = volume::OperationKind::kProtect}).ok());
  for (unsigned i = 0; i < 100'000; ++i) {
    const auto now = volume.operations().status(volume::OperationKind::kProtect);
    ASSERT_TRUE(now.ok());
    if (!now->running()) {
      EXPECT_EQ(now->state, std::uint32_t{MDFS_OPERATION_DONE}) << now->reason;
      return;
    }
    (void)volume.operations().turn();
  }
  FAIL() << "the rebuild does not end";
}

// Files without two copies of everything.
unsigned with_one_copy(Volume& volume, const test::Tree& tree) {
  unsigned count = 0;
  for (const auto& [path, seen] : tree) {
    if (!S_ISREG(seen.mode)) continue;
    const auto protection = volume.protection(seen.ino, {});
    EXPECT_TRUE(protection.ok()) << path;
    if (protection.ok() && (protection->state.copied != protection->state.extents || protection->state.in_strips > 0))
      ++count;
  }
  return count;
}

void expect_all_there(const MemoryDisks& disks, const test::Tree& expected, const std::string& what) {
  SeededEnvironment environment(9);
  store::StoreOptions options;
  options.degraded = true;
  auto volume = mount(disks, environment, options);
  ASSERT_TRUE(volume.ok()) << what << ": " << volume.error().message();
  const auto tree = test::read_tree(**volume);
  ASSERT_TRUE(tree.ok()) << what << ": " << tree.error().message();
  EXPECT_TRUE(*tree == expected) << what;
}

struct Case {
  std::vector<std::uint64_t> mebibytes;  // of the disks
  std::vector<std::size_t> lengths = {};
};

TEST(SpareTest, AFullVolumeThatKeepsRoomForOneDiskIsWholeAgainAfterAnyDiskAndThenSurvivesAnother) {
  unsigned losses = 0;
  for (const Case& one : std::vector<Case>{{{8, 8, 8}},
                                           {{8, 8, 8, 8, 8}},
                                           {{16, 8, 8, 8}},
                                           {{16, 16, 8, 8}},
                                           {{12, 8, 6, 5}},
                                           {{16, 16, 16, 16}, {300'000, 5000}},
                                           {{16, 16, 16, 16}, {131'073}}}) {
    const std::vector<std::uint64_t>& sizes = one.mebibytes;
    const std::string shape = fmt::format("disks of {} MiB", fmt::join(sizes, ", "));
    SeededEnvironment environment(8);
    const MemoryDisks disks = format(sizes, environment);
    {
      auto volume = mount(disks, environment);
      ASSERT_TRUE(volume.ok());
      fill(**volume, sizes.size(), "f", one.lengths);
      const store::SpaceInfo space = (*volume)->space();
      EXPECT_GE(space.free_blocks, space.spare_blocks) << shape;
      EXPECT_LT(space.available_blocks * 10, space.total_blocks) << shape << ": it is not full";
      auto tree = test::read_tree(**volume);
      ASSERT_TRUE(tree.ok());
      EXPECT_EQ(with_one_copy(**volume, *tree), 0u) << shape;
      ASSERT_TRUE((*volume)->close().ok());
    }
    for (std::size_t lost = 0; lost < sizes.size(); ++lost, ++losses) {
      const std::string what = fmt::format("{}, without disk {}", shape, lost);
      MemoryDisks now = clone(disks);
      now[lost].reset();
      test::Tree expected;
      {
        auto volume = mount(now, environment);
        ASSERT_TRUE(volume.ok()) << what << ": " << volume.error().message();
        fill(**volume, lost, "before");  // others go on writing until the rebuild begins
        rebuild(**volume);
        auto tree = test::read_tree(**volume);
        ASSERT_TRUE(tree.ok());
        expected = std::move(*tree);
        EXPECT_EQ(with_one_copy(**volume, expected), 0u) << what;
        EXPECT_TRUE((*volume)->space().is_rebuilt) << what;
        ASSERT_TRUE((*volume)->close().ok());
      }
      for (std::size_t next = 0; next < sizes.size(); ++next) {
        if (next == lost) continue;
        MemoryDisks rest = clone(now);
        rest[next].reset();
        expect_all_there(rest, expected, fmt::format("{} and then without disk {}", what, next));
      }
    }
  }
  test::tried("{} disks lost on full volumes that keep room for one", losses);
}

}  // namespace
}  // namespace mdfs::safety
