// Second copies of the blocks of files: counted, compared with their cells, and used for repairs.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "damages.h"
#include "lab.h"

namespace mdfs::store {
namespace {

using Names = std::vector<std::string>;
using OptionalPages = std::optional<std::uint64_t>;

// The volume is clean after the repair, data and all.
void expect_repaired(Lab& lab, RepairMode mode, const Names& names, bool data = false) {
  const CheckReport look = lab.check(RepairMode::kNothing, data);
  EXPECT_EQ(look.exit_code(), 4) << text_of(look);
  const CheckReport report = lab.check(mode, data);
  EXPECT_EQ(names_of(report), names) << text_of(report);
  EXPECT_EQ(report.exit_code(), 1) << text_of(report);
  const CheckReport after = lab.check(RepairMode::kNothing, true);
  EXPECT_TRUE(after.findings.empty()) << text_of(after);
}

// Takes blocks of the cell away, as a program would that leaves their copies.
void punch(Lab& lab, unsigned first, unsigned count) {
  format::FileCell cell = lab.cell_pieces().first;
  lab.change([&](Transaction& t) {
    for (const format::Run& run : cell.punch(first, count)) t.free(run);
    t.put(Lab::kCell, format::encode(cell));
    auto inode = *format::decode_inode(**t.get(Lab::inode_key(Lab::kCells)));
    inode.stored_bytes -= count * 4096;
    t.put(Lab::inode_key(Lab::kCells), format::encode(inode));
  });
}

TEST(CheckCellCopiesTest, AProtectedFileIsCleanAndItsCopiesAreVerified) {
  Lab lab;
  lab.protect_cells();
  for (const auto pages : {OptionalPages(), OptionalPages(1)}) {
    const CheckReport report = lab.check(RepairMode::kNothing, true, pages);
    EXPECT_TRUE(report.findings.empty()) << text_of(report);
    EXPECT_EQ(report.data_bytes, lab.data_bytes + 3 * 4096u);
  }
}

TEST(CheckCellCopiesTest, AFileWithCopiesOfSomeBlocksIsClean) {
  Lab lab;
  lab.protect_cells();
  lab.change([&](Transaction& t) { t.free({2, lab.cell_copy_runs[0].block + 1, 1}); });
  lab.edit_cell_copies([](format::CellPieces& pieces) { pieces.copy.punch(1, 1); });
  lab.edit_inode(Lab::kCells, [](format::Inode& inode) { inode.stored_bytes -= 4096; });
  const CheckReport report = lab.check(RepairMode::kNothing, true);
  EXPECT_TRUE(report.findings.empty()) << text_of(report);
  EXPECT_EQ(report.data_bytes, lab.data_bytes + 2 * 4096u);
}

TEST(CheckCellCopiesTest, ItemsOfAVolumeWithoutTheFeatureAreLeftAlone) {
  Lab lab;
  lab.change([](Transaction& t) { t.put(Lab::kCellCopies, ByteVector(50, std::byte{1})); });
  const CheckReport report = lab.check(RepairMode::kAll, true);
  EXPECT_TRUE(report.findings.empty()) << text_of(report);
  EXPECT_EQ(lab.get(Lab::kCellCopies), ByteVector(50, std::byte{1}));
}

TEST(CheckCellCopiesTest, CopiesCountAsBytesOfTheFile) {
  Lab lab;
  lab.protect_cells();
  lab.edit_inode(Lab::kCells, [](format::Inode& inode) { inode.stored_bytes = 3 * 4096; });
  expect_repaired(lab, RepairMode::kPreen, {"stored-bytes"});
  EXPECT_EQ(format::decode_inode(lab.get(Lab::inode_key(Lab::kCells)))->stored_bytes, 6 * 4096u);
}

TEST(CheckCellCopiesTest, CopiesOutsideTheDisksAreNeverRead) {
  for (const format::Address& outside : {format::Address{2, 1u << 30}, format::Address{40, 1u << 20}}) {
    Lab lab;
    lab.protect_cells();
    lab.edit_cell_copies([&](format::CellPieces& pieces) { pieces.copy.runs[0].address = outside; });
    const Names names = {"address-outside", "stored-bytes", "block-leaked"};
    EXPECT_EQ(names_of(lab.check(RepairMode::kNothing, true)), names);
    lab.damage(lab.cells_run.disk, lab.cells_run.block * 4096 + 100, 1);
    const CheckReport report = lab.check(RepairMode::kAll, true);
    EXPECT_EQ(names_of(report).size(), 4u) << text_of(report);
    EXPECT_EQ(names_of(report).back(), "data-damaged") << text_of(report);
    EXPECT_EQ(lab.cell_pieces().copy.block_mask(), 0b100u);
  }
}

// Of each block of the file, its first piece and its copy.
TEST(CheckCellCopiesTest, ABadBlockIsRewrittenFromTheOtherOneWhicheverItIs) {
  for (unsigned block = 0; block < 3; ++block) {
    for (const bool copy : {false, true}) {
      Lab lab;
      lab.protect_cells();
      const format::CellPieces pieces = lab.cell_pieces();
      const format::Address place = (copy ? pieces.copy : pieces.first).find(block)->address;
      ByteVector before(4096), after(4096);
      lab.disks[place.disk]->peek(place.block * 4096, before);
      lab.damage(place.disk, place.block * 4096 + 100, 1);
      expect_repaired(lab, RepairMode::kPreen, {"piece-damaged"}, true);
      lab.disks[place.disk]->peek(place.block * 4096, after);
      EXPECT_EQ(after, before);
    }
  }
}

TEST(CheckCellCopiesTest, DamageOfBothPiecesIsRepairedIfNoBlockIsBadInBoth) {
  Lab lab;
  lab.protect_cells();
  lab.damage(lab.cells_run.disk, lab.cells_run.block * 4096 + 100, 1);
  lab.damage(2, (lab.cell_copy_runs[0].block + 1) * 4096 + 100, 1);
  expect_repaired(lab, RepairMode::kPreen, {"piece-damaged"}, true);
}

TEST(CheckCellCopiesTest, ABlockThatIsBadInBothPiecesStaysAndTheOthersAreRepaired) {
  Lab lab;
  lab.protect_cells();
  for (const unsigned block : {0u, 1u}) lab.damage(1, (lab.cells_run.block + block) * 4096 + 100, 1);
  lab.damage(2, lab.cell_copy_runs[0].block * 4096 + 200, 1);
  const CheckReport report = lab.check(RepairMode::kAll, true);
  EXPECT_EQ(names_of(report), (Names{"piece-damaged", "data-damaged"})) << text_of(report);
  EXPECT_EQ(report.findings.size(), 3u) << text_of(report);
  EXPECT_EQ(report.remaining(), 2u) << text_of(report);
  EXPECT_EQ(report.exit_code(), 4);
  ByteVector first(4096), copy(4096);
  for (const unsigned block : {0u, 1u}) {
    lab.disks[1]->peek((lab.cells_run.block + block) * 4096, first);
    lab.disks[2]->peek((lab.cell_copy_runs[0].block + block) * 4096, copy);
    EXPECT_EQ(first == copy, block == 1) << block;
  }
}

TEST(CheckCellCopiesTest, ABadBlockWithoutACopyIsLostAsBefore) {
  Lab lab;
  lab.protect_cells();
  lab.protect_image();  // so that there are copies all the same
  lab.change([&](Transaction& t) {
    for (const format::Run& run : lab.cell_copy_runs) t.free(run);
    t.erase(Lab::kCellCopies);
  });
  lab.edit_inode(Lab::kCells, [](format::Inode& inode) { inode.stored_bytes /= 2; });
  lab.damage(lab.cells_run.disk, lab.cells_run.block * 4096 + 100, 1);
  const CheckReport report = lab.check(RepairMode::kAll, true);
  EXPECT_EQ(names_of(report), Names{"data-damaged"}) << text_of(report);
  EXPECT_EQ(report.exit_code(), 4);
}

TEST(CheckCellCopiesTest, CopiesOfABlockThatIsNotThereGo) {
  Lab lab;
  lab.protect_cells();
  punch(lab, 1, 2);
  const CheckReport look = lab.check(RepairMode::kNothing);
  EXPECT_EQ(look.findings.size(), 1u) << text_of(look);  // of both blocks, which follow each other
  expect_repaired(lab, RepairMode::kPreen, {"copy-stray", "stored-bytes"});
  EXPECT_EQ(lab.cell_pieces().copy.block_mask(), 0b001u);
}

TEST(CheckCellCopiesTest, CopiesOfABlockWithOtherBytesGo) {
  for (const bool other_generation : {false, true}) {
    Lab lab;
    lab.protect_cells();
    lab.edit_cell_copies([&](format::CellPieces& pieces) {
      if (other_generation) --pieces.copy.runs[0].written;
      if (!other_generation) pieces.copy.runs[0].crc32c[1] ^= 1;
    });
    expect_repaired(lab, RepairMode::kPreen, {"copy-stray", "stored-bytes"});
    EXPECT_EQ(lab.cell_pieces().copy.block_mask(), other_generation ? 0b100u : 0b101u);
  }
}

TEST(CheckCellCopiesTest, CopiesWithoutTheirCellGo) {
  Lab lab;
  lab.protect_cells();
  lab.change([&](Transaction& t) {
    t.free(lab.cells_run);
    t.erase(Lab::kCell);
  });
  lab.edit_inode(Lab::kCells, [](format::Inode& inode) { inode.stored_bytes /= 2; });
  expect_repaired(lab, RepairMode::kPreen, {"copy-stray", "stored-bytes"});
  EXPECT_TRUE(lab.get(Lab::kCellCopies).empty());
}

TEST(CheckCellCopiesTest, TwoPiecesOnOneDiskAreReportedAndTheSecondGoes) {
  Lab lab;
  lab.protect_cells(1);
  const format::FileCell before = lab.cell_pieces().first;
  EXPECT_EQ(lab.check(RepairMode::kNothing, true).data_bytes, lab.data_bytes + 2 * 4096u);
  expect_repaired(lab, RepairMode::kPreen, {"pieces-together", "stored-bytes"});
  EXPECT_EQ(lab.cell_pieces().copy.block_mask(), 0b011u);
  EXPECT_EQ(lab.cell_pieces().first, before);
}

TEST(CheckCellCopiesTest, CopiesBeyondTheEndGoWithTheirBlocks) {
  Lab lab;
  lab.protect_cells();
  lab.edit_inode(Lab::kCells, [](format::Inode& inode) { inode.size = 4096; });
  expect_repaired(lab, RepairMode::kPreen, {"beyond-end", "stored-bytes"});
  EXPECT_EQ(lab.cell_pieces().first.block_mask(), 0b001u);
  EXPECT_EQ(lab.cell_pieces().copy.block_mask(), 0b001u);
}

TEST(CheckCellCopiesTest, ARunThatIsRemovedLeavesNoCopies) {
  Lab lab;
  lab.protect_cells();
  format::FileCell cell = lab.cell_pieces().first;
  cell.runs[0].address.block = 0;  // a label
  lab.change([&](Transaction& t) { t.put(Lab::kCell, format::encode(cell)); });
  expect_repaired(lab, RepairMode::kAll, {"address-outside", "stored-bytes", "block-leaked", "copy-stray"});
  EXPECT_TRUE(lab.get(Lab::kCellCopies).empty());
}

// The second owner of the blocks has copies, too, on the blocks of the first one's.
TEST(CheckCellCopiesTest, BlocksThatMoveKeepTheirCopiesAndCopiesThatWouldMoveAreGivenUp) {
  Lab lab;
  lab.protect_cells();
  const format::CellPieces before = lab.cell_pieces();
  const Key cell{Lab::kFirstFile, MDFS_KIND_FILE_CELL, 0};
  const auto give_cell = [&](const format::CellPieces& pieces) {
    lab.change([&](Transaction& t) {
      t.put(cell, format::encode(pieces.first));
      t.put(format::cell_copies_key(cell), format::encode_cell_copies(pieces));
      auto inode = *format::decode_inode(**t.get(Lab::inode_key(Lab::kFirstFile)));
      inode.size = 3 * 4096 - 100;
      t.put(Lab::inode_key(Lab::kFirstFile), format::encode(inode));
    });
  };
  give_cell(before);
  expect_repaired(lab, RepairMode::kAll, {"block-used-twice", "stored-bytes"});
  EXPECT_EQ(lab.cell_pieces(), before);
  EXPECT_TRUE(lab.get(format::cell_copies_key(cell)).empty());
  format::CellPieces moved{*format::decode_file_cell(lab.get(cell), 4096), {}};
  EXPECT_NE(moved.first.runs[0].address, before.first.runs[0].address);

  // The copies of the first file, which loses them, become those of the second one, which shares its cell.
  lab.change([&](Transaction& t) { t.erase(Lab::kCellCopies); });
  lab.edit_inode(Lab::kCells, [](format::Inode& inode) { inode.stored_bytes /= 2; });
  lab.change([&](Transaction& t) { t.free(moved.first.runs[0].place()); });
  give_cell(before);
  EXPECT_EQ(names_of(lab.check(RepairMode::kAll)), (Names{"block-used-twice", "stored-bytes"}));
  moved.first = *format::decode_file_cell(lab.get(cell), 4096);
  EXPECT_NE(moved.first.runs[0].address, before.first.runs[0].address);
  EXPECT_EQ(lab.get(format::cell_copies_key(cell)), format::encode_cell_copies(before));
  const CheckReport after = lab.check(RepairMode::kNothing, true);
  EXPECT_TRUE(after.findings.empty()) << text_of(after);
}

// The copy of the last block lies on an extent, which passes later and moves.
TEST(CheckCellCopiesTest, APieceOnBlocksOfOthersIsNotWrittenOver) {
  Lab lab;
  lab.protect_cells();
  ASSERT_EQ(lab.extent_run.disk, 0);
  lab.change([&](Transaction& t) { t.free(lab.cell_copy_runs[1]); });
  lab.edit_cell_copies([&](format::CellPieces& pieces) { pieces.copy.runs[1].address = lab.extent_run.address(); });
  const CheckReport report = lab.check(RepairMode::kAll, true);
  EXPECT_EQ(names_of(report), (Names{"block-used-twice", "piece-damaged"})) << text_of(report);
  EXPECT_EQ(report.exit_code(), 4) << text_of(report);
  // The extent is whole at its new place, and now the old one is the copy's alone.
  expect_repaired(lab, RepairMode::kPreen, {"piece-damaged"}, true);
}

// In every other cell, in more items than one leaf holds.
TEST(CheckCellCopiesTest, EveryStrayOfAFileOfManyCellsIsFound) {
  constexpr unsigned kMany = 500;
  Lab lab;
  lab.protect_cells();
  lab.change([&](Transaction& t) {
    for (unsigned cell = 1; cell <= kMany; ++cell) {
      format::CellPieces pieces;
      pieces.copy.replace({{2, lab.layout().end_usable() - cell}, 1, 1, 0, {cell}});
      t.put({Lab::kCells, MDFS_KIND_FILE_PARITY, 2 * cell}, format::encode_cell_copies(pieces));
    }
  });
  lab.edit_inode(Lab::kCells,
                 [](format::Inode& inode) { inode.size = (2 * kMany + 1) * std::uint64_t{MDFS_FILE_CELL}; });
  const std::vector<NodeRef> leaves = lab.leaves();
  const auto within = std::count_if(leaves.begin(), leaves.end(), [](const NodeRef& leaf) {
    return leaf.lower.object == Lab::kCells && leaf.lower.kind == MDFS_KIND_FILE_PARITY;
  });
  ASSERT_GE(within, 2);
  const CheckReport report = lab.check(RepairMode::kNothing);
  EXPECT_EQ(std::count_if(report.findings.begin(), report.findings.end(),
                          [](const Finding& finding) { return finding.id == FindingId::kCopyStray; }),
            kMany);
  EXPECT_EQ(lab.check(RepairMode::kPreen).exit_code(), 1);
  EXPECT_EQ(lab.cell_pieces().copy.block_mask(), 0b111u);
  const CheckReport after = lab.check(RepairMode::kNothing, true);
  EXPECT_TRUE(after.findings.empty()) << text_of(after);
}

TEST(CheckCellCopiesTest, ALostLeafLeavesNoCopiesWithoutTheirBlocks) {
  Lab whole;
  whole.protect_cells();
  const std::size_t leaves = whole.leaves().size();
  unsigned lost = 0;
  for (std::size_t i = 0; i < leaves; ++i) {
    Lab lab;
    lab.protect_cells();
    const NodeRef leaf = lab.leaves()[i];
    if (leaf.upper < Lab::kCell || Lab::kCellCopies < leaf.lower) continue;
    ++lost;
    for (std::size_t copy = 0; copy < leaf.pointer.copies; ++copy) lab.damage_node(leaf.pointer, copy);
    EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
    const CheckReport clean = lab.check(RepairMode::kNothing, true);
    EXPECT_TRUE(clean.findings.empty()) << i << text_of(clean);
  }
  EXPECT_GE(lost, 1u);
}

}  // namespace
}  // namespace mdfs::store
