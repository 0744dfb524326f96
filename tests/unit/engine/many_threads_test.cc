// Sixty-four threads that read and write windows of one image, held against an array: each read is one that could have
// happened, and sees each window write whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "engine_fixture.h"
#include "tried.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using geometry::Geometry;
using geometry::Window;

constexpr unsigned kGrid = 8;
constexpr unsigned kThreads = kGrid * kGrid;
constexpr std::uint64_t kTileHeight = 65, kTileWidth = 85;  // against the extents, which are of 64 x 96

struct Tile {
  // A write of a version begins after `started` says so; it has returned before `ended` does.
  std::atomic<unsigned> started{0};
  std::atomic<unsigned> ended{0};
};

// No byte of one version is a byte of another of the same tile in the same place, among the next 256.
std::byte byte_of(unsigned tile, unsigned version, std::uint64_t y, std::uint64_t x) {
  if (version == 0) return std::byte{0};  // as a hole reads
  return static_cast<std::byte>(version * 7 + tile * 29 + y / 5 + x / 9);
}

Window window_of(unsigned first_row, unsigned first_column, unsigned rows, unsigned columns) {
  Window window;
  window.start = {first_row * kTileHeight, first_column * kTileWidth};
  window.length = {rows * kTileHeight, columns * kTileWidth};
  return window;
}

// An image of tiles. Each is written by one thread, as a whole, and read by all.
class Board {
 public:
  explicit Board(Bench& bench) : bench_(bench) {}

  Status write(unsigned tile) {
    const unsigned version = tiles_[tile].started.load() + 1;
    ByteVector bytes(kTileHeight * kTileWidth);
    for (std::uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(tile, version, i / kTileWidth, i % kTileWidth);
    tiles_[tile].started.store(version);
    MDFS_TRY(bench_.write_window(window_of(tile / kGrid, tile % kGrid, 1, 1), bytes));
    tiles_[tile].ended.store(version);
    return {};
  }

  // A window over some tiles, not from edge to edge of them. "" or what no order of the calls explains.
  std::string read(std::mt19937_64& random) {
    const auto row = static_cast<unsigned>(random() % kGrid), column = static_cast<unsigned>(random() % kGrid);
    const auto rows = static_cast<unsigned>(1 + random() % std::min(2u, kGrid - row));
    const auto columns = static_cast<unsigned>(1 + random() % std::min(3u, kGrid - column));
    Window window = window_of(row, column, rows, columns);
    const std::uint64_t inset_y = random() % 30, inset_x = random() % 40;
    window.start[0] += inset_y;
    window.start[1] += inset_x;
    window.length[0] -= inset_y;
    window.length[1] -= inset_x;
    std::array<unsigned, kThreads> ended{};
    for (unsigned i = 0; i < kThreads; ++i) ended[i] = tiles_[i].ended.load();
    const ByteVector got = bench_.read_window(window);
    for (unsigned y = row; y < row + rows; ++y)
      for (unsigned x = column; x < column + columns; ++x) {
        const unsigned tile = y * kGrid + x;
        const unsigned last = tiles_[tile].started.load();
        bool found = false;
        for (unsigned version = ended[tile]; version <= last && !found; ++version)
          found = shows(got, window, tile, version);
        if (!found)
          return "tile " + std::to_string(tile) + " is of no version from " + std::to_string(ended[tile]) + " to " +
                 std::to_string(last);
      }
    return "";
  }

  // What the whole image must be while no thread writes.
  ByteVector expected() const {
    ByteVector all(kThreads * kTileHeight * kTileWidth);
    for (std::uint64_t i = 0; i < all.size(); ++i) {
      const std::uint64_t y = i / (kGrid * kTileWidth), x = i % (kGrid * kTileWidth);
      const auto tile = static_cast<unsigned>(y / kTileHeight * kGrid + x / kTileWidth);
      all[i] = byte_of(tile, tiles_[tile].ended.load(), y % kTileHeight, x % kTileWidth);
    }
    return all;
  }

 private:
  // Are all bytes of the tile that lie in the window of this version?
  static bool shows(const ByteVector& got, const Window& window, unsigned tile, unsigned version) {
    const std::uint64_t top = tile / kGrid * kTileHeight, left = tile % kGrid * kTileWidth;
    for (std::uint64_t y = std::max(top, window.start[0]); y < top + kTileHeight; ++y)
      for (std::uint64_t x = std::max(left, window.start[1]); x < left + kTileWidth; ++x) {
        const std::uint64_t at = (y - window.start[0]) * window.length[1] + x - window.start[1];
        if (got[at] != byte_of(tile, version, y - top, x - left)) return false;
      }
    return true;
  }

  Bench& bench_;
  std::array<Tile, kThreads> tiles_;
};

class ManyThreadsTest : public ::testing::TestWithParam<Codec> {};

TEST_P(ManyThreadsTest, EveryReadOfSixtyFourReadersAndWritersIsExplainedByAnArray) {
  constexpr unsigned kRounds = 15;
  Setting setting;
  setting.geometry = image_of(2, {kGrid * kTileHeight, kGrid * kTileWidth}, {64, 96}, GetParam());
  setting.cache_bytes = 1u << 20;
  setting.on_disks = true;
  Bench bench(setting);
  Board board(bench);
  std::atomic<unsigned> reads{0}, writes{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (unsigned round = 0; round < kRounds && !HasFailure(); ++round) {
        ASSERT_TRUE(board.write(thread).ok());
        ++writes;
        for (unsigned i = 0; i < 3; ++i, ++reads) ASSERT_EQ(board.read(random), "") << "thread " << thread;
        if (random() % 16 == 0) {
          ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(writes, kThreads * kRounds);
  const ByteVector expected = board.expected();
  EXPECT_TRUE(bench.read_all() == expected) << "after it";
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_TRUE(bench.read_all() == expected) << "opened again";
  test::tried("{} windows read and {} written by {} threads at once in one {} image", reads.load(), writes.load(),
              kThreads, GetParam() == Codec::kRaw ? "raw" : "zstd");
}

// The judge itself: two versions of one tile at once, and a version that was over, are seen.
TEST(ManyThreadsCanaryTest, ATornTileAndAnOldOneAreSeen) {
  Setting setting;
  setting.geometry = image_of(2, {kGrid * kTileHeight, kGrid * kTileWidth}, {64, 96}, Codec::kRaw);
  Bench bench(setting);
  Board board(bench);
  const auto complaints = [&] {
    std::mt19937_64 random(1);
    unsigned count = 0;
    for (unsigned i = 0; i < 200; ++i) count += !board.read(random).empty();
    return count;
  };
  for (unsigned tile = 0; tile < kThreads; ++tile) ASSERT_TRUE(board.write(tile).ok());
  EXPECT_EQ(complaints(), 0u);
  const Window old = window_of(3, 3, 1, 1);
  const ByteVector before = bench.read_window(old);
  ASSERT_TRUE(board.write(3 * kGrid + 3).ok());
  EXPECT_EQ(complaints(), 0u);
  Window half = old;
  half.length[0] = 60;
  ASSERT_TRUE(bench.write_window(half, ByteVector(before.begin(), before.begin() + 60 * kTileWidth)).ok());
  EXPECT_GT(complaints(), 0u);
  ASSERT_TRUE(bench.write_window(old, before).ok());
  EXPECT_GT(complaints(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Codecs, ManyThreadsTest, ::testing::Values(Codec::kRaw, Codec::kZstd));

}  // namespace
}  // namespace mdfs::engine::testing
