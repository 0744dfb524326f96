// Second copies of extents: encoded, decoded with all checks, and joined with the records that they belong to.
// SPDX-License-Identifier: Apache-2.0
#include "format/extent_copies.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "samples.h"

namespace mdfs::format {
namespace {

constexpr std::uint32_t kBlockSize = 4096;
const ExtentTableShape kZstd{MDFS_CODEC_ZSTD, 65536};

struct ItemMap {
  std::map<Key, ByteVector> items;
  Result<std::optional<ByteVector>> get(const Key& key) const {
    const auto found = items.find(key);
    return found == items.end() ? std::optional<ByteVector>() : std::optional(found->second);
  }
};

RC_GTEST_PROP(ExtentCopiesTest, ReadBackAsTheyWereWritten, (std::uint64_t seed)) {
  Samples samples(seed);
  const ExtentTableShape shape = samples.table_shape();
  const CopyPage page = samples.copies(shape);
  const ByteVector bytes = page.encode(shape);
  RC_ASSERT(bytes.size() <= MDFS_MAX_ITEM);
  RC_ASSERT(*CopyPage::decode(bytes, shape) == page);
  ByteVector changed = bytes;
  changed[samples.number(0, changed.size() - 1)] ^= static_cast<std::byte>(samples.number(1, 255));
  if (const auto read = CopyPage::decode(changed, shape); read.ok())
    RC_ASSERT(*CopyPage::decode(read->encode(shape), shape) == *read);
  RC_ASSERT(!CopyPage::decode(ConstBytes(bytes).first(samples.number(0, bytes.size() - 1)), shape).ok());
}

TEST(ExtentCopiesTest, TheLargestPageIsAnItem) {
  CopyPage page;
  for (unsigned place = 0; place < kMaxPlaces; ++place) page.set(place, {place, 1, 1});
  EXPECT_EQ(page.encode(kZstd).size(), 16u + 64 * 40);
  EXPECT_EQ(page.count(), 64u);
}

TEST(ExtentCopiesTest, EachCheckIsReportedByItsName) {
  CopyPage page;
  page.set(3, {Address{1, 500}.packed(), 7, 4000});
  page.set(9, {Address{2, 600}.packed(), 8, 5000});
  const ByteVector good = page.encode(kZstd);
  const auto with = [&](std::size_t offset, std::uint8_t value, const ExtentTableShape& shape = kZstd) {
    ByteVector bytes = good;
    bytes[offset] = std::byte{value};
    const auto read = CopyPage::decode(bytes, shape);
    return read.ok() ? std::string() : read.error().where;
  };
  EXPECT_EQ(with(15, 9), "");  // reserved
  EXPECT_EQ(with(0, 0), "copies.group");
  EXPECT_EQ(with(0, 1), "copies.length");
  EXPECT_EQ(with(0, 3), "copies.length");
  EXPECT_EQ(with(0, 65), "copies.group");
  EXPECT_EQ(with(2, 2), "copies.checksum-type");
  EXPECT_EQ(with(16, 0), "copies.group");
  EXPECT_EQ(with(16, 12), "copies.length");  // two members, and no checksum
  EXPECT_EQ(with(24, 0), "copies.group");
  EXPECT_EQ(with(24, 2), "copies.parities");
  EXPECT_EQ(with(38, 64), "copies.copy");
  EXPECT_EQ(with(40, 0), "copies.copy");
  EXPECT_EQ(with(51, 255), "copies.copy");
  EXPECT_EQ(with(57, 0), "copies.group");
  const ExtentTableShape few{MDFS_CODEC_RAW, 4u << 20};  // 256 checksums: 2 places
  EXPECT_EQ(with(15, 9, few), "copies.group");
  ByteVector backwards;
  backwards.assign(good.begin(), good.begin() + 16);
  backwards.insert(backwards.end(), good.begin() + 56, good.end());
  backwards.insert(backwards.end(), good.begin() + 16, good.begin() + 56);
  EXPECT_EQ(CopyPage::decode(backwards, kZstd).error().where, "copies.group");
  EXPECT_EQ(CopyPage::decode({}, kZstd).error().where, "copies.length");
}

TEST(ExtentCopiesTest, EachCheckOfAGroupIsReportedByItsName) {
  CopyPage page;
  ParityGroup group;
  group.members = 0b1100;
  group.parity = {Address{1, 500}.packed(), 7, 7, 4000, {99}};
  group.leavers = {{Address{2, 600}.packed(), 6, 6, 3000, {}}};
  page.add_group(group);
  const ByteVector good = page.encode(kZstd);
  ASSERT_EQ(good.size(), 16u + 16 + 2 * 24 + 8);
  EXPECT_EQ(*CopyPage::decode(good, kZstd), page);
  const auto with = [&](std::size_t offset, std::uint8_t value, const ExtentTableShape& shape = kZstd) {
    ByteVector bytes = good;
    bytes[offset] = std::byte{value};
    const auto read = CopyPage::decode(bytes, shape);
    return read.ok() ? std::string() : read.error().where;
  };
  EXPECT_EQ(with(16, 0), "copies.group");
  EXPECT_EQ(with(16, 0xff), "copies.group");  // nine pieces
  EXPECT_EQ(with(24, 0), "copies.group");
  EXPECT_EQ(with(24, 2), "copies.parities");
  EXPECT_EQ(with(25, 2), "copies.length");
  EXPECT_EQ(with(25, 7), "copies.group");
  EXPECT_EQ(with(38, 64), "copies.parity");
  EXPECT_EQ(with(40, 0), "copies.parity");
  EXPECT_EQ(with(62, 64), "copies.parity");
  EXPECT_EQ(with(84, 1), "copies.parity");                               // padding
  EXPECT_EQ(with(16, 0b1100, {MDFS_CODEC_RAW, 4096}), "copies.parity");  // not the bytes of an extent
}

TEST(ExtentCopiesTest, AMemberThatLeavesStaysAPieceOfItsGroup) {
  CopyPage page;
  ParityGroup group;
  group.members = 0b1100;
  group.parity = {Address{1, 500}.packed(), 7, 7, 4000, {99}};
  page.add_group(group);
  page.leave_group(2, {Address{2, 600}.packed(), 6, 5, 3000, {1}});
  EXPECT_EQ(page.group_of(2), nullptr);
  ASSERT_NE(page.group_of(3), nullptr);
  page.set(2, {Address{3, 10}.packed(), 9, 1000});  // what was written has a copy
  ExtentPage records(kZstd);
  records.set(2, {Address{0, 50}.packed(), 9, 9, 1000, {5}});
  records.set(3, {Address{4, 70}.packed(), 3, 3, 4000, {6}});
  ItemMap items;
  constexpr Key key{20, MDFS_KIND_EXTENTS, 5};
  const auto member = **read_pieces(items, key, records, &page, 3, kBlockSize);
  EXPECT_TRUE(member.is_protected() && !member.has_copy());
  EXPECT_EQ(member.others.pieces(), (std::vector<GroupPiece>{{{2, 600, 1}, 3000}, {{1, 500, 1}, 4000}}));
  EXPECT_EQ(member.other_disks(), 0b110u);
  EXPECT_EQ(member.disks(), 0b10000u);
  const auto writer = **read_pieces(items, key, records, &page, 2, kBlockSize);
  EXPECT_TRUE(writer.has_copy() && !writer.others);
  const auto parity = page.groups().front().stored_parity(records, kBlockSize);
  ASSERT_TRUE(parity.has_value());
  EXPECT_EQ(parity->others.pieces(), (std::vector<GroupPiece>{{{4, 70, 1}, 4000}, {{2, 600, 1}, 3000}}));
  EXPECT_EQ(page.groups().front().own_runs(kBlockSize).size(), 2u);
  records.erase(3);
  EXPECT_FALSE(page.groups().front().stored_parity(records, kBlockSize).has_value());
}

RC_GTEST_PROP(ParityGroupTest, AnyPieceIsTheSumOfTheOthers, (std::uint64_t seed)) {
  Samples samples(seed);
  std::vector<ByteVector> pieces(samples.number(2, 8));
  std::size_t longest = 0;
  for (ByteVector& piece : pieces) {
    piece.resize(samples.number(1, 300));
    for (std::byte& byte : piece) byte = static_cast<std::byte>(samples.number(0, 255));
    longest = std::max(longest, piece.size());
  }
  ByteVector parity(longest);
  for (const ByteVector& piece : pieces) add_to_parity(parity, piece);
  for (std::size_t lost = 0; lost < pieces.size(); ++lost) {
    ByteVector again = parity;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (i != lost) add_to_parity(again, pieces[i]);
    again.resize(pieces[lost].size());
    RC_ASSERT(again == pieces[lost]);
  }
}

// The page of records `kPage`, with a record at place 4.
constexpr Key kPage{20, MDFS_KIND_EXTENTS, 5};
ExtentPage page_of_one() {
  ExtentPage page(kZstd);
  page.set(4, {Address{0, 100}.packed(), 3, 2, 9000, {77}});
  return page;
}

TEST(ExtentCopiesTest, APieceIsWhatTheRecordAndTheCopySay) {
  const ExtentPage page = page_of_one();
  CopyPage copies;
  copies.set(4, {Address{1, 800}.packed(), 6, 9000});
  ItemMap items;
  const auto both = read_pieces(items, kPage, page, &copies, 4, kBlockSize);
  ASSERT_TRUE(both.ok() && both->has_value());
  const StoredExtent extent = **both;
  EXPECT_TRUE(extent.has_copy());
  EXPECT_EQ(extent.blocks(), 6u);
  EXPECT_EQ(extent.piece_blocks(), 3u);
  EXPECT_EQ(extent.disks(), 0b11u);
  EXPECT_EQ(extent.all_runs().size(), 2u);
  const StoredExtent other = extent.by_copy();
  EXPECT_EQ(other.first(), (format::Run{1, 800, 3}));
  EXPECT_EQ(other.birth, 6u);
  EXPECT_EQ(other.written, 2u);
  EXPECT_EQ(other.crc32c, extent.crc32c);
  EXPECT_EQ(other.by_copy(), extent);
  EXPECT_EQ(ExtentCopy::of(extent), *copies.get(4));
  EXPECT_FALSE((*read_pieces(items, kPage, page, nullptr, 4, kBlockSize))->has_copy());
  EXPECT_FALSE((*read_pieces(items, kPage, page, &copies, 5, kBlockSize))->is_stored());
}

TEST(ExtentCopiesTest, AScatteredCopyHasItsRunsInAnItemOfItsOwn) {
  const ExtentPage page = page_of_one();
  CopyPage copies;
  copies.set(4, {MDFS_SCATTERED, 6, 9000});
  ItemMap items;
  EXPECT_FALSE((*read_pieces(items, kPage, page, &copies, 4, kBlockSize)).has_value());
  const Key runs = copy_runs_key(kPage, 4);
  EXPECT_EQ(runs, (Key{20, MDFS_KIND_PARITY_RUNS, 5 * 64 + 4}));
  items.items[runs] = encode_extent_runs({{1, 800, 2}, {1, 900, 2}});
  EXPECT_FALSE(read_pieces(items, kPage, page, &copies, 4, kBlockSize).ok());  // a block too many
  items.items[runs] = encode_extent_runs({{1, 800, 2}, {1, 900, 1}});
  const StoredExtent extent = **read_pieces(items, kPage, page, &copies, 4, kBlockSize);
  EXPECT_TRUE(extent.copy_has_runs_item && !extent.has_runs_item);
  EXPECT_EQ(extent.blocks(), 6u);
  EXPECT_EQ(ExtentCopy::of(extent), *copies.get(4));
}

TEST(ExtentCopiesTest, ACopyOfOtherBytesDoesNotBelongToTheExtent) {
  const ExtentPage page = page_of_one();
  CopyPage copies;
  copies.set(4, {Address{1, 800}.packed(), 6, 9001});
  ItemMap items;
  const auto pieces = read_pieces(items, kPage, page, &copies, 4, kBlockSize);
  ASSERT_TRUE(pieces.ok());
  EXPECT_FALSE(pieces->has_value());
}

}  // namespace
}  // namespace mdfs::format
