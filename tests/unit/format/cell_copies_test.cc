// Second copies of the blocks of a cell: encoded, decoded with all checks, and joined with the cell.
// SPDX-License-Identifier: Apache-2.0
#include "format/cell_copies.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "format/cell_parts.h"
#include "samples.h"

namespace mdfs::format {
namespace {

constexpr std::uint32_t kBlockSize = 4096;
constexpr Key kCell{18, MDFS_KIND_FILE_CELL, 7};

struct ItemMap {
  std::map<Key, ByteVector> items;
  Result<std::optional<ByteVector>> get(const Key& key) const {
    const auto found = items.find(key);
    return found == items.end() ? std::optional<ByteVector>() : std::optional(found->second);
  }
};

// Blocks 0 to 3 on disk 0, and copies of the blocks 1 and 2 on disk 1.
CellPieces two_copies() {
  CellPieces pieces;
  pieces.first.replace({{0, 100}, 5, 3, 0, {10, 11, 12, 13}});
  pieces.copy.replace({{1, 200}, 6, 3, 1, {11, 12}});
  return pieces;
}

std::string check_of(ConstBytes value) {
  CellPieces pieces;
  const Status status = decode_cell_copies(value, kBlockSize, pieces);
  return status.ok() ? std::string() : status.error().where;
}

RC_GTEST_PROP(CellCopiesTest, ReadBackAsTheyWereWritten, (std::uint64_t seed)) {
  Samples samples(seed);
  const std::uint32_t block_size = 4096u << samples.number(0, 4);
  const CellPieces pieces = samples.cell_pieces(block_size);
  const ByteVector bytes = encode_cell_copies(pieces);
  RC_ASSERT(bytes.size() <= MDFS_MAX_ITEM);
  CellPieces read{pieces.first, {}};
  RC_ASSERT(decode_cell_copies(bytes, block_size, read).ok());
  RC_ASSERT(read == pieces);
  RC_ASSERT(!decode_cell_copies(ConstBytes(bytes).first(samples.number(0, bytes.size() - 1)), block_size, read).ok());
}

RC_GTEST_PROP(CellCopiesTest, DamagedValuesAreRefusedOrReadBackAsTheyAreWritten, (std::uint64_t seed)) {
  Samples samples(seed);
  ByteVector bytes = encode_cell_copies(samples.cell_pieces(kBlockSize));
  for (std::size_t i = samples.number(1, 4); i-- > 0;)
    bytes[samples.number(0, std::min<std::size_t>(bytes.size(), samples.coin() ? 60 : 4096) - 1)] =
        static_cast<std::byte>(samples.number(0, 255));
  if (samples.number(0, 4) == 0) bytes.resize(samples.number(0, bytes.size() + 20));
  CellPieces pieces;
  if (!decode_cell_copies(bytes, kBlockSize, pieces).ok()) return;
  CellPieces again;
  RC_ASSERT(decode_cell_copies(encode_cell_copies(pieces), kBlockSize, again).ok());
  RC_ASSERT(again == pieces);
}

TEST(CellCopiesTest, NoByteOutsideOfTheRunsThatDecodingAcceptsIsLost) {
  const ByteVector good = encode_cell_copies(two_copies());
  const Rewritten rewritten = change_each_byte(good, sizeof(mdfs_group) + sizeof(mdfs_file_cell),
                                               [](ConstBytes bytes) -> std::optional<ByteVector> {
                                                 CellPieces pieces;
                                                 if (!decode_cell_copies(bytes, kBlockSize, pieces).ok())
                                                   return std::nullopt;
                                                 return encode_cell_copies(pieces);
                                               });
  // Two bits of each reserved byte of the group and of the cell.
  EXPECT_GE(rewritten.accepted, 2 * (sizeof(mdfs_group::reserved) + sizeof(mdfs_file_cell::reserved)));
  EXPECT_EQ(rewritten.lost, std::vector<std::size_t>{});
}

TEST(CellCopiesTest, ACellWithACopyOfEachBlockInARunOfItsOwnIsAnItem) {
  CellPieces pieces;
  for (unsigned block = 0; block < 32; ++block)
    pieces.copy.replace(
        {{static_cast<std::uint16_t>(block % 2), 100}, 1, 1, static_cast<std::uint16_t>(block), {block}});
  ASSERT_EQ(pieces.copy.runs.size(), 32u);
  EXPECT_EQ(encode_cell_copies(pieces).size(), 16u + 8 + 32 * 40);
}

TEST(CellCopiesTest, EachCheckIsReportedByItsName) {
  const ByteVector good = encode_cell_copies(two_copies());
  const auto with = [&](std::size_t offset, std::uint8_t value) {
    ByteVector bytes = good;
    bytes[offset] = std::byte{value};
    return check_of(bytes);
  };
  EXPECT_EQ(with(15, 9), "");  // reserved
  EXPECT_EQ(with(0, 0), "cell-copies.group");
  EXPECT_EQ(with(0, 2), "cell-copies.group");
  EXPECT_EQ(with(8, 0), "cell-copies.group");
  EXPECT_EQ(with(16, 0), "file-cell.run-count");
  EXPECT_EQ(with(16, 2), "file-cell.length");
  EXPECT_EQ(with(24 + 6, 64), "file-cell.run");
  EXPECT_EQ(check_of({}), "cell-copies.length");
  EXPECT_EQ(check_of(ConstBytes(good).first(sizeof(mdfs_group) - 1)), "cell-copies.length");
  EXPECT_EQ(check_of(ConstBytes(good).first(sizeof(mdfs_group))), "file-cell.length");
}

TEST(CellCopiesTest, AGroupOfSeveralMembersOrParitiesIsOfANewerVersion) {
  for (const auto& [offset, value] : {std::pair<std::size_t, unsigned>{0, 3}, {7, 128}, {8, 2}}) {
    ByteVector bytes = encode_cell_copies(two_copies());
    bytes[offset] = static_cast<std::byte>(value);
    CellPieces pieces;
    const Status status = decode_cell_copies(bytes, kBlockSize, pieces);
    ASSERT_FALSE(status.ok()) << offset;
    EXPECT_EQ(status.error().code, Errc::kNewerFormat) << offset;
    EXPECT_EQ(status.error().where, "cell-copies.group-of-many") << offset;
  }
}

// Block by block, against the definition.
RC_GTEST_PROP(CellCopiesTest, StraysAreCopiesOfBlocksThatAreNotThereOrHoldOtherBytes, (std::uint64_t seed)) {
  Samples samples(seed);
  CellPieces pieces = samples.cell_pieces(kBlockSize);
  for (int i = 0; i < 3; ++i) pieces.first.replace(samples.run(32, static_cast<unsigned>(samples.number(0, 31))));
  if (samples.coin()) pieces.first.punch(static_cast<unsigned>(samples.number(0, 31)), 1);
  const CellPieces before = pieces;
  pieces.drop_strays();
  RC_ASSERT(pieces.first == before.first);
  for (unsigned block = 0; block < 32; ++block) {
    const auto first = before.first.find(block), copy = before.copy.find(block);
    const bool belongs = first && copy && first->crc32c == copy->crc32c && first->written == copy->written;
    RC_ASSERT(pieces.copy.find(block) == (belongs ? copy : std::nullopt));
  }
}

TEST(CellCopiesTest, ABlockIsProtectedByTwoPiecesOnTwoDisksThatAreThere) {
  CellPieces pieces = two_copies();
  EXPECT_EQ(pieces.protected_blocks(0), 0b110u);
  EXPECT_EQ(pieces.protected_blocks(0b01), 0u);
  EXPECT_EQ(pieces.protected_blocks(0b10), 0u);
  EXPECT_EQ(pieces.protected_blocks(0b100), 0b110u);
  pieces.copy.replace({{0, 300}, 6, 3, 2, {12}});  // on the disk of the block itself
  EXPECT_EQ(pieces.protected_blocks(0), 0b010u);
  pieces.first.punch(1, 1);
  EXPECT_EQ(pieces.protected_blocks(0), 0u);
}

TEST(CellCopiesTest, TheDisksOfBlocksAreThoseOfTheirRuns) {
  CellPieces pieces = two_copies();
  pieces.copy.replace({{5, 300}, 6, 3, 3, {13}});
  EXPECT_EQ(CellPieces::disks_of(pieces.copy, 0b0110), 0b10u);
  EXPECT_EQ(CellPieces::disks_of(pieces.copy, 0b1000), 0b100000u);
  EXPECT_EQ(CellPieces::disks_of(pieces.copy, 0b0001), 0u);
  EXPECT_EQ(CellPieces::disks_of(pieces.copy, UINT32_MAX), 0b100010u);
}

TEST(CellCopiesTest, ACellIsReadWithTheCopiesThatBelongToIt) {
  CellPieces pieces = two_copies();
  ItemMap items;
  EXPECT_EQ(*read_cell(items, kCell, kBlockSize, true), CellPieces());
  items.items[kCell] = encode(pieces.first);
  EXPECT_FALSE(read_cell(items, kCell, kBlockSize, true)->has_copies());
  items.items[{18, MDFS_KIND_FILE_PARITY, 7}] = encode_cell_copies(pieces);
  EXPECT_EQ(*read_cell(items, kCell, kBlockSize, true), pieces);
  EXPECT_FALSE(read_cell(items, kCell, kBlockSize, false)->has_copies());
  pieces.first.replace({{0, 400}, 9, 9, 2, {99}});
  items.items[kCell] = encode(pieces.first);
  EXPECT_EQ(read_cell(items, kCell, kBlockSize, true)->copy.block_mask(), 0b010u);
}

TEST(CellCopiesTest, ItemsThatCannotBeReadAreErrors) {
  ItemMap items;
  items.items[kCell] = encode(two_copies().first);
  items.items[cell_copies_key(kCell)] = ByteVector(5);
  EXPECT_EQ(check_name(read_cell(items, kCell, kBlockSize, true)), "cell-copies.length");
  EXPECT_TRUE(read_cell(items, kCell, kBlockSize, false).ok());
  items.items[kCell] = ByteVector(5);
  EXPECT_EQ(check_name(read_cell(items, kCell, kBlockSize, false)), "file-cell.length");
}

// Against the blocks one by one.
RC_GTEST_PROP(CellPartsTest, GiveEachBlockItsTwoPlacesAndItsChecksum, (std::uint64_t seed)) {
  Samples samples(seed);
  const CellPieces pieces = samples.cell_pieces(kBlockSize);
  std::uint32_t seen = 0;
  for (const CellPart& part : cell_parts(pieces.first, pieces.copy, kBlockSize)) {
    const StoredExtent& bytes = part.bytes;
    RC_ASSERT(bytes.runs.size() == 1u);
    RC_ASSERT(bytes.copy.size() <= 1u);
    RC_ASSERT(bytes.stored_bytes == bytes.piece_blocks() * kBlockSize);
    RC_ASSERT(bytes.crc32c.size() == bytes.piece_blocks());
    RC_ASSERT((!bytes.has_copy() || bytes.copy[0].blocks == bytes.runs[0].blocks));
    for (unsigned i = 0; i < bytes.piece_blocks(); ++i) {
      const unsigned block = part.first + i;
      RC_ASSERT((block < 32 && (seen >> block) == 0u));
      seen |= 1u << block;
      const Address place{bytes.runs[0].disk, bytes.runs[0].block + i};
      RC_ASSERT(pieces.first.find(block) == (BlockPlace{place, bytes.crc32c[i], bytes.written}));
      const auto copy = pieces.copy.find(block);
      RC_ASSERT(copy.has_value() == bytes.has_copy());
      if (copy) RC_ASSERT(copy->address == (Address{bytes.copy[0].disk, bytes.copy[0].block + i}));
    }
  }
  RC_ASSERT(seen == pieces.first.block_mask());
}

TEST(CellPartsTest, APartEndsWhereTheCopiesDo) {
  const CellPieces pieces = two_copies();
  const std::vector<CellPart> parts = cell_parts(pieces.first, pieces.copy, kBlockSize);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].first, 1u);
  const StoredExtent expected{{{0, 101, 2}}, 5, 3, 2 * kBlockSize, kBlockSize, {11, 12}, false, {{1, 200, 2}}, 6};
  EXPECT_EQ(parts[1].bytes, expected);
  EXPECT_FALSE(parts[0].bytes.has_copy() || parts[2].bytes.has_copy());
  const std::vector<CellPart> copies = cell_parts(pieces.copy, pieces.first, kBlockSize);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].bytes, expected.by_copy());
}

}  // namespace
}  // namespace mdfs::format
