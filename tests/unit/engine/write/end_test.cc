// The end of an object: whatever happens, nothing in the tree lies at or beyond the size that the tree has.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/checked.h"
#include "device/testing/faulty_disk.h"
#include "engine/open_object.h"
#include "engine_fixture.h"
#include "format/file_cell.h"
#include "format/strip.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine::testing {
namespace {

using device::Fault;
using device::FaultKind;
using device::FaultyDisk;
using device::Op;
using geometry::Codec;

constexpr std::uint64_t kSide = 64, kDepth = 8, kFrame = kSide * kSide;

Setting stack(Codec codec) {
  Setting setting;
  setting.geometry = image_of(3, {0, kSide, kSide}, {kDepth, 32, 32}, codec);
  setting.disks = 1;
  return setting;
}

// "", or the first record, strip or run of a cell beyond the size that the inode has.
std::string beyond_end(const OpenObject& object, const std::map<format::Key, ByteVector>& items, std::uint64_t size) {
  const auto found = [&](const format::Key& key, std::uint64_t begin) {
    return "kind " + std::to_string(key.kind) + ", item " + std::to_string(key.offset) + " holds byte " +
           std::to_string(begin) + " of " + std::to_string(size);
  };
  for (const auto& [key, value] : items) {
    if (key.kind == MDFS_KIND_EXTENTS) {
      const auto page = *format::ExtentPage::decode(value, object.table);
      for (unsigned place = 0; place < object.page_box.places; ++place) {
        if (!page.has(place)) continue;
        const std::uint64_t begin = object.first_byte_of(object.extent_index(object.extent_of({key.offset, place})));
        if (begin >= size) return found(key, begin);
      }
    } else if (key.kind == MDFS_KIND_STRIP) {
      const auto strip = *format::decode_strip(value, object.table, object.block_size);
      for (unsigned place = 0; place < object.page_box.places; ++place) {
        if (!strip.has(place)) continue;
        const auto extent = object.extent_of({key.offset / MDFS_STRIPS_PER_PAGE, place});
        const std::uint64_t begin = object.canonical_offset(extent, strip.begin);
        if (begin >= size) return found(key, begin);
      }
    } else if (key.kind == MDFS_KIND_FILE_CELL) {
      const auto cell = *format::decode_file_cell(value, object.block_size);
      if (cell.empty()) continue;
      const std::uint64_t end = key.offset * MDFS_FILE_CELL + std::uint64_t{cell.runs.back().end()} * object.block_size;
      if (end > align_up(size, object.block_size)) return found(key, end - 1);
    }
  }
  return "";
}

// Watches every transaction of a bench.
class Watch {
 public:
  explicit Watch(Bench& bench) : bench_(bench), object_(bench.shared()) {
    bench.store().after_transactions([this] {
      ++transactions_;
      const std::string wrong = beyond_end(*object_, bench_.store().items(), bench_.inode().size_bytes);
      if (!wrong.empty() && wrong_.empty()) wrong_ = wrong;
    });
  }
  ~Watch() { bench_.store().after_transactions({}); }
  // "", or what was beyond the end first. Nothing is under way.
  const std::string& wrong() const { return wrong_; }
  unsigned transactions() const { return transactions_; }

 private:
  Bench& bench_;
  const std::shared_ptr<OpenObject> object_;
  std::string wrong_;  // these two are guarded by the transaction
  unsigned transactions_ = 0;
};

// The frames of a row of extents that is full are written whole, the one behind them goes to strips.
TEST(EndTest, AFailedWriteLinksNoFramesBeyondTheSize) {
  for (unsigned nth = 0; nth < 4; ++nth) {
    Bench bench(stack(Codec::kRaw));
    FaultyDisk disk(bench.store().memory_disk(0), {});
    bench.store().put_in_front(0, disk);
    {
      const Watch watch(bench);
      std::mt19937_64 random(nth);
      const ByteVector frames = noise(random, (kDepth + 1) * kFrame);
      ASSERT_TRUE(bench.engine().write(bench.object(), 0, frames).ok());
      disk.add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, nth, 1});
      (void)bench.engine().write_back(bench.object());
      EXPECT_EQ(watch.wrong(), "") << nth;
      disk.work_again();
      ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
      EXPECT_EQ(watch.wrong(), "") << nth;
      EXPECT_EQ(bench.inode().size_bytes, frames.size());
      EXPECT_EQ(bench.read_all(), frames);
    }
    bench.stop_engine();  // before the disk in front of the store's own
  }
}

class EndTest : public ::testing::TestWithParam<Kind> {};

// Appends, writes over, truncates and writes windows, while others write back over disks that fail now and then.
TEST_P(EndTest, NothingIsPublishedBeyondTheSizeThatIsPublishedWithIt) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Setting setting{GetParam().geometry};
    setting.disks = 1;
    setting.cache_bytes = 1u << 20;
    Bench bench(setting);
    FaultyDisk disk(bench.store().memory_disk(0), {});
    bench.store().put_in_front(0, disk);
    {
      const Watch watch(bench);
      std::atomic<bool> done{false};
      std::vector<std::thread> others;
      for (unsigned i = 0; i < 2; ++i)
        others.emplace_back([&] {
          while (!done) (void)bench.engine().write_back(bench.object());  // what fails is tried again
        });
      std::mt19937_64 random(seed);
      for (unsigned turn = 0; turn < 150; ++turn) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));  // for the others to write
        if (turn % 10 == 0) disk.add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, random() % 5, 1});
        const std::uint64_t size = bench.size();
        const ByteVector bytes = noise(random, 1 + random() % 30'000);
        Status status;
        if (const auto what = random() % 12; what < 7)
          status = bench.engine().write(bench.object(), size, bytes);
        else if (what < 9)
          status = bench.engine().write(bench.object(), random() % (size + 50'000), bytes);
        else if (what < 10)
          status = bench.engine().truncate(bench.object(), random() % (size + 1));
        else if (what < 11)
          status = random() % 2 == 0 ? bench.engine().grow(bench.object(), size + random() % 100'000)
                                     : bench.engine().truncate(bench.object(), size + random() % 100'000);
        else if (setting.geometry && size > 0) {
          const geometry::Window window = random_window(random, bench.geometry_now());
          (void)bench.write_window(window, noise(random, geometry::window_bytes(*setting.geometry, window)));
        }
        ASSERT_TRUE(status.ok() || status.error().code == Errc::kIo);
      }
      done = true;
      for (std::thread& other : others) other.join();
      disk.work_again();
      (void)bench.engine().write_back(bench.object());  // may report what the background has met
      ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
      EXPECT_EQ(watch.wrong(), "") << "seed " << seed;
      EXPECT_GT(watch.transactions(), 5u);
      EXPECT_EQ(bench.inode().size_bytes, bench.size());
    }
    bench.stop_engine();
  }
}

// As a crash of a version that published more than its size has left it.
TEST_P(EndTest, WhatLiesBeyondTheEndIsNotSeenWhenTheContentGrows) {
  for (const std::uint64_t kept : {std::uint64_t{0}, std::uint64_t{5000}, 8 * kFrame, 9 * kFrame}) {
    for (const bool by_write : {false, true}) {
      Setting setting{GetParam().geometry};
      setting.disks = 1;
      Bench bench(setting);
      std::mt19937_64 random(3);
      const ByteVector bytes = noise(random, 40 * kFrame);
      for (std::uint64_t at = 0; at < bytes.size(); at += 5 * kFrame) {
        ASSERT_TRUE(bench.engine().write(bench.object(), at, ConstBytes(bytes).subspan(at, 5 * kFrame)).ok());
        ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
      }
      const std::uint64_t row = bench.object().grid_row_bytes();
      const std::uint64_t end = kept / row * row;  // what lies in the row of the end is its own
      ASSERT_TRUE(bench.forget_end(end).ok());
      const Watch watch(bench);
      if (by_write)
        ASSERT_TRUE(bench.engine().write(bench.object(), 40 * kFrame - 1, ConstBytes(bytes).first(1)).ok());
      else
        ASSERT_TRUE(bench.engine().truncate(bench.object(), 40 * kFrame).ok());
      ByteVector expected(40 * kFrame);
      std::copy_n(bytes.begin(), end, expected.begin());
      if (by_write) expected.back() = bytes.front();
      EXPECT_EQ(bench.read_all(), expected) << kept;
      ASSERT_TRUE(bench.reopen().ok());
      EXPECT_EQ(bench.read_all(), expected) << kept;
      EXPECT_EQ(beyond_end(bench.object(), bench.store().items(), bench.inode().size_bytes), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Objects, EndTest,
    ::testing::Values(Kind{"file", std::nullopt}, Kind{"raw", image_of(2, {0, 600}, {64, 96}, Codec::kRaw)},
                      Kind{"zstd", image_of(2, {0, 600}, {64, 96}, Codec::kZstd)},
                      Kind{"frames", image_of(3, {0, kSide, kSide}, {kDepth, 32, 32}, Codec::kRaw)}),
    kNameOf);

// The size without what lies before it would be seen after a crash.
TEST(ExtendTest, ASizeIsPublishedWithWhatIsDirtyBeforeIt) {
  for (const bool image : {false, true}) {
    Setting setting;
    if (image) setting = stack(Codec::kRaw);
    Bench bench(setting);
    std::mt19937_64 random(1);
    const ByteVector bytes = noise(random, 3 * kFrame);
    ASSERT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
    ASSERT_TRUE(bench.engine().grow(bench.object(), 50 * kFrame).ok());
    EXPECT_EQ(bench.inode().size_bytes, 0u);
    EXPECT_EQ(bench.size(), 50 * kFrame);
    ASSERT_TRUE(bench.engine().write_back_all(0).ok());
    EXPECT_EQ(bench.inode().size_bytes, 50 * kFrame);
    EXPECT_FALSE(bench.engine().is_dirty(bench.object()));
    ASSERT_TRUE(bench.reopen().ok());
    ByteVector expected = bytes;
    expected.resize(50 * kFrame);
    EXPECT_EQ(bench.read_all(), expected);
  }
}

// Bytes before the end that become dirty while others are written are no reason to leave the size out.
TEST(ExtendTest, TheSizeOfBeforeIsPublishedWhoeverWritesMeanwhile) {
  Setting setting;
  setting.disks = 1;
  Bench bench(setting);
  FaultyDisk disk(bench.store().memory_disk(0), {});
  bench.store().put_in_front(0, disk);
  std::mt19937_64 random(1);
  const ByteVector bytes = noise(random, 300'000);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  const ConstBytes few = ConstBytes(bytes).first(10);
  ASSERT_TRUE(bench.engine().write(bench.object(), 290'000, few).ok());
  ASSERT_TRUE(bench.engine().grow(bench.object(), 400'000).ok());
  disk.add({FaultKind::kStuck, Op::kWrite, 0, UINT64_MAX, 0, 1});
  Status written;
  std::thread writer([&] { written = bench.engine().write_back(bench.object()); });
  while (disk.injections().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(bench.engine().write(bench.object(), 0, few).ok());
  disk.release();
  writer.join();
  EXPECT_TRUE(written.ok());
  EXPECT_EQ(bench.inode().size_bytes, 400'000u);
  bench.stop_engine();  // before the disk in front of the store's own
}

}  // namespace
}  // namespace mdfs::engine::testing
