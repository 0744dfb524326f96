// Second copies of extents: counted, compared with their records, and used for repairs.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lab.h"

namespace mdfs::store {
namespace {

using Names = std::vector<std::string>;

// The volume is clean after the repair.
void expect_repaired(Lab& lab, RepairMode mode, const Names& names, bool data = false) {
  const CheckReport report = lab.check(mode, data);
  EXPECT_EQ(names_of(report), names) << text_of(report);
  EXPECT_EQ(report.exit_code(), 1) << text_of(report);
  const CheckReport after = lab.check(RepairMode::kNothing, data);
  EXPECT_EQ(after.exit_code(), 0) << text_of(after);
}

TEST(CheckCopiesTest, AProtectedImageIsCleanAndItsCopiesAreVerified) {
  Lab lab;
  lab.protect_image();
  for (const auto pages : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1)}) {
    const CheckReport report = lab.check(RepairMode::kNothing, true, pages);
    EXPECT_TRUE(report.findings.empty()) << text_of(report);
    EXPECT_EQ(report.data_bytes, lab.data_bytes + 4 * 4096u);
  }
}

TEST(CheckCopiesTest, ItemsOfAVolumeWithoutTheFeatureAreLeftAlone) {
  Lab lab;
  lab.change([](Transaction& t) { t.put(Lab::kCopies, ByteVector(50, std::byte{1})); });
  const CheckReport report = lab.check(RepairMode::kNothing, true);
  EXPECT_TRUE(report.findings.empty()) << text_of(report);
}

TEST(CheckCopiesTest, ABadPieceIsRewrittenFromTheOtherOneWhicheverItIs) {
  for (const bool copy : {false, true}) {
    Lab lab;
    lab.protect_image();
    const format::Run& run = copy ? lab.copy_run : lab.extent_run;
    lab.damage(run.disk, run.block * 4096 + 100, 1);
    const CheckReport look = lab.check(RepairMode::kNothing, true);
    EXPECT_EQ(names_of(look), Names{"piece-damaged"}) << text_of(look);
    EXPECT_EQ(look.exit_code(), 4);
    expect_repaired(lab, RepairMode::kPreen, {"piece-damaged"}, true);
  }
}

TEST(CheckCopiesTest, DamageOfBothPiecesStays) {
  Lab lab;
  lab.protect_image();
  lab.damage(lab.extent_run.disk, lab.extent_run.block * 4096 + 100, 1);
  lab.damage(lab.copy_run.disk, lab.copy_run.block * 4096 + 200, 1);
  const CheckReport report = lab.check(RepairMode::kAll, true);
  EXPECT_EQ(names_of(report), Names{"data-damaged"}) << text_of(report);
  EXPECT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.exit_code(), 4);
}

TEST(CheckCopiesTest, TwoPiecesOnOneDiskAreReportedAndTheSecondGoes) {
  Lab lab;
  lab.protect_image();
  const format::Address first = format::Address::unpack(lab.copies().get(0)->address);
  const format::Address second = format::Address::unpack(lab.copies().get(1)->address);
  // Place 1 lies on disk 1, as the copy of place 0 does. The bytes of the copies are not looked at.
  ASSERT_EQ(first.disk, 1u);
  lab.edit_copies([&](format::CopyPage& page) {
    page.set(0, {second.packed(), 1, 4096});
    page.set(1, {first.packed(), 1, 4096});
  });
  expect_repaired(lab, RepairMode::kPreen, {"pieces-together", "stored-bytes"});
  EXPECT_TRUE(lab.copies().get(0));
  EXPECT_FALSE(lab.copies().get(1));
}

TEST(CheckCopiesTest, ACopyWithoutItsExtentGoes) {
  Lab lab;
  lab.protect_image();
  auto page = *format::ExtentPage::decode(lab.get({Lab::kImage, MDFS_KIND_EXTENTS, 0}), {MDFS_CODEC_RAW, 4096});
  page.erase(8);
  lab.change([&](Transaction& t) {
    const auto run = format::Address::unpack(
        format::ExtentPage::decode(**t.get({Lab::kImage, MDFS_KIND_EXTENTS, 0}), {MDFS_CODEC_RAW, 4096})
            ->get(8)
            ->address);
    t.free({run.disk, run.block, 1});
    t.put({Lab::kImage, MDFS_KIND_EXTENTS, 0}, page.encode());
    auto inode = *format::decode_inode(**t.get(Lab::inode_key(Lab::kImage)));
    inode.stored_bytes -= 4096;
    t.put(Lab::inode_key(Lab::kImage), format::encode(inode));
  });
  expect_repaired(lab, RepairMode::kPreen, {"copy-stray", "stored-bytes"});
  EXPECT_EQ(lab.copies().count(), 3u);
}

TEST(CheckCopiesTest, ACopyOfOtherBytesOrWithoutItsRunsGoes) {
  Lab lab;
  lab.protect_image();
  lab.edit_copies([](format::CopyPage& page) {
    const auto copy = *page.get(0);
    page.set(0, {copy.address, copy.birth, 4095});
  });
  lab.change([](Transaction& t) { t.erase({Lab::kImage, MDFS_KIND_PARITY_RUNS, 9}); });
  const CheckReport report = lab.check(RepairMode::kPreen);
  EXPECT_EQ(names_of(report), (Names{"copy-stray", "stored-bytes", "block-leaked"})) << text_of(report);
  EXPECT_EQ(report.exit_code(), 1) << text_of(report);
  EXPECT_EQ(lab.check(RepairMode::kNothing, true).exit_code(), 0);
  EXPECT_EQ(lab.copies().count(), 2u);
}

TEST(CheckCopiesTest, ACopyThatLiesOnBlocksOfOthersIsGivenUp) {
  Lab lab;
  lab.protect_image();
  lab.edit_copies([&](format::CopyPage& page) { page.set(8, {lab.cells_run.address().packed(), 1, 4096}); });
  const CheckReport report = lab.check(RepairMode::kAll);
  EXPECT_EQ(report.exit_code(), 1) << text_of(report);
  const CheckReport after = lab.check(RepairMode::kNothing, true);
  EXPECT_EQ(after.exit_code(), 0) << text_of(after);
  EXPECT_FALSE(lab.copies().get(8));
}

TEST(CheckCopiesTest, ACopyOutsideTheDisksIsGivenUpAndItsBlocksAreNeverRead) {
  for (const format::Address& outside : {format::Address{1, 1u << 30}, format::Address{40, 1u << 20}}) {
    Lab lab;
    lab.protect_image();
    lab.edit_copies([&](format::CopyPage& page) { page.set(0, {outside.packed(), 1, 4096}); });
    const Names names = {"address-outside", "stored-bytes", "block-leaked"};
    EXPECT_EQ(names_of(lab.check(RepairMode::kNothing, true)), names);
    lab.damage(lab.extent_run.disk, lab.extent_run.block * 4096 + 100, 1);
    const CheckReport report = lab.check(RepairMode::kAll, true);
    EXPECT_EQ(names_of(report).size(), 4u) << text_of(report);
    EXPECT_EQ(names_of(report).back(), "data-damaged") << text_of(report);
    EXPECT_FALSE(lab.copies().get(0));
  }
}

TEST(CheckCopiesTest, ADamagedItemGoesAndTheExtentsStay) {
  Lab lab;
  lab.protect_image();
  lab.change([](Transaction& t) { t.put(Lab::kCopies, ByteVector(50, std::byte{1})); });
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
  const CheckReport after = lab.check(RepairMode::kNothing, true);
  EXPECT_EQ(after.exit_code(), 0) << text_of(after);
  EXPECT_EQ(lab.copies().count(), 0u);
}

}  // namespace
}  // namespace mdfs::store
