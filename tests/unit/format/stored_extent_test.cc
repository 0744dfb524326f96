// Stored bytes of extents: verified whole or piece by piece, and read from pages, strips and cells.
// SPDX-License-Identifier: Apache-2.0
#include "format/stored_extent.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "base/crc32c.h"
#include "samples.h"

namespace mdfs::format {
namespace {

constexpr std::uint32_t kBlock = 4096;

// In place of a tree.
struct FewItems {
  std::map<Key, ByteVector> items;
  Result<std::optional<ByteVector>> get(const Key& key) const {
    const auto found = items.find(key);
    return found == items.end() ? std::optional<ByteVector>() : std::optional(found->second);
  }
};

StoredExtent extent_of(ConstBytes bytes, std::uint32_t part_bytes) {
  StoredExtent extent;
  extent.runs = {{1, 100, static_cast<std::uint32_t>(ceil_div(bytes.size(), kBlock))}};
  extent.stored_bytes = static_cast<std::uint32_t>(bytes.size());
  extent.part_bytes = part_bytes;
  for (std::size_t at = 0; at < bytes.size(); at += part_bytes)
    extent.crc32c.push_back(crc32c(bytes.subspan(at, std::min<std::size_t>(part_bytes, bytes.size() - at))));
  return extent;
}

RC_GTEST_PROP(StoredExtentTest, BytesMatchInWhateverPiecesTheyPass, (std::uint64_t seed)) {
  Samples samples(seed);
  const ByteVector bytes = samples.bytes(samples.number(1, 40000));
  const auto part_bytes = static_cast<std::uint32_t>(samples.coin() ? bytes.size() : samples.number(1, bytes.size()));
  const StoredExtent extent = extent_of(bytes, part_bytes);
  ByteVector block = bytes;
  block.resize(align_up(bytes.size(), kBlock), std::byte{0x5a});
  RC_ASSERT(extent.matches(block));
  PassingBytes passing(extent);
  for (std::size_t done = 0; done < block.size();) {
    RC_ASSERT(passing.match() == (done >= bytes.size()));
    const std::size_t step = std::min<std::size_t>(samples.number(1, 9000), block.size() - done);
    passing.take(ConstBytes(block).subspan(done, step));
    done += step;
  }
  RC_ASSERT(passing.match());
  block[samples.number(0, bytes.size() - 1)] ^= std::byte{1};
  RC_ASSERT(!extent.matches(block));
}

TEST(StoredExtentTest, BytesThatEndEarlyDoNotMatch) {
  const ByteVector bytes(10000, std::byte{7});
  const StoredExtent extent = extent_of(bytes, 10000);
  EXPECT_TRUE(extent.matches(bytes));
  EXPECT_FALSE(extent.matches(ConstBytes(bytes).first(9999)));
  EXPECT_FALSE(extent.matches({}));
}

TEST(StoredExtentTest, PartsAreVerifiedByThemselves) {
  const ByteVector bytes(10000, std::byte{7});
  const StoredExtent extent = extent_of(bytes, 4096);
  EXPECT_TRUE(extent.matches_part(1, ConstBytes(bytes).first(4096)));
  EXPECT_TRUE(extent.matches_part(2, ConstBytes(bytes).first(10000 - 8192)));
  EXPECT_FALSE(extent.matches_part(2, ConstBytes(bytes).first(4096)));
  EXPECT_FALSE(extent.matches_part(3, {}));
}

TEST(StoredExtentTest, CountsItsBlocksAndNamesItsDisks) {
  StoredExtent extent;
  EXPECT_FALSE(extent.is_stored());
  EXPECT_EQ(extent.disks(), 0u);
  extent.runs = {{3, 50, 2}};
  EXPECT_TRUE(extent.is_contiguous());
  extent.runs.push_back({0, 10, 5});
  extent.runs.push_back({64, 10, 1});  // only damage names this disk
  EXPECT_FALSE(extent.is_contiguous());
  EXPECT_EQ(extent.blocks(), 8u);
  EXPECT_EQ(extent.disks(), 0b1001u);
  EXPECT_EQ(extent.first(), (format::Run{3, 50, 2}));
}

RC_GTEST_PROP(StoredExtentTest, IsWhatItsRecordAndItsRunsSay, (std::uint64_t seed)) {
  Samples samples(seed);
  const ExtentTableShape shape = samples.table_shape();
  const Key key{9, MDFS_KIND_EXTENTS, samples.number(0, 1000)};
  ExtentPage page(shape);
  FewItems items;
  const auto place = static_cast<unsigned>(samples.number(0, shape.places() - 1));
  RC_ASSERT(!(*read_extent(items, key, page, place, kBlock))->is_stored());
  ExtentRecord record = samples.record(shape);
  const bool scattered = samples.coin();
  record.address = scattered ? MDFS_SCATTERED : samples.address().packed();
  page.set(place, record);
  const auto blocks = static_cast<std::uint32_t>(ceil_div(record.stored_bytes, kBlock));
  if (scattered) {
    RC_ASSERT(!*read_extent(items, key, page, place, kBlock));
    items.items[extent_runs_key(key, place)] = encode_extent_runs({{5, 77, blocks + 1}});
    RC_ASSERT(!read_extent(items, key, page, place, kBlock).ok());
    items.items[extent_runs_key(key, place)] = encode_extent_runs({{5, 77, blocks}});
  }
  const StoredExtent extent = **read_extent(items, key, page, place, kBlock);
  RC_ASSERT(extent.blocks() == blocks);
  RC_ASSERT(extent.has_runs_item == scattered);
  RC_ASSERT((scattered || extent.first().address() == Address::unpack(record.address)));
  RC_ASSERT(ceil_div(extent.stored_bytes, extent.part_bytes) == extent.crc32c.size());
  ExtentRecord again = ExtentRecord::of(extent);
  if (scattered) again.address = MDFS_SCATTERED;  // one run would also have room in the record
  RC_ASSERT(again == record);
}

TEST(StoredExtentTest, IsThePartOfAStripAndTheRunOfACell) {
  Strip strip;
  strip.address = {2, 1000};
  strip.birth = 8;
  strip.written = 7;
  strip.places = strip.live = 0b101;
  strip.bytes = kBlock + 1;
  strip.crc32c = {1, 2, 3, 4};
  const StoredExtent part = strip.stored_part(2, kBlock);
  EXPECT_EQ(part, (StoredExtent{{{2, 1002, 2}}, 8, 7, 2 * kBlock, kBlock, {3, 4}}));
  const FileRun run{{1, 30}, 6, 5, 4, {7, 8, 9}};
  EXPECT_EQ(run.stored(kBlock), (StoredExtent{{{1, 30, 3}}, 6, 5, 3 * kBlock, kBlock, {7, 8, 9}}));
}

}  // namespace
}  // namespace mdfs::format
