// Parity groups of extents: counted, compared with their records, and used for repairs.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lab.h"

namespace mdfs::store {
namespace {

using Names = std::vector<std::string>;

void expect_repaired(Lab& lab, RepairMode mode, const Names& names, bool data = false) {
  const CheckReport report = lab.check(mode, data);
  EXPECT_EQ(names_of(report), names) << text_of(report);
  EXPECT_EQ(report.exit_code(), 1) << text_of(report);
  const CheckReport after = lab.check(RepairMode::kNothing, data);
  EXPECT_EQ(after.exit_code(), 0) << text_of(after);
}

TEST(CheckGroupsTest, GroupsAreCleanAndTheirParitiesAreVerified) {
  Lab lab;
  lab.group_image();
  for (const auto pages : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1)}) {
    const CheckReport report = lab.check(RepairMode::kNothing, true, pages);
    EXPECT_TRUE(report.findings.empty()) << text_of(report);
    EXPECT_EQ(report.data_bytes, lab.data_bytes + 3 * 4096u) << "two parities and a copy";
  }
}

TEST(CheckGroupsTest, ABadPieceIsRewrittenFromTheOthersWhicheverItIs) {
  for (const bool parity : {false, true}) {
    Lab lab;
    lab.group_image();
    const format::Run& run = parity ? lab.parity_run : lab.extent_run;
    lab.damage(run.disk, run.block * 4096 + 100, 1);
    const CheckReport look = lab.check(RepairMode::kNothing, true);
    EXPECT_EQ(names_of(look), Names{"piece-damaged"}) << text_of(look);
    expect_repaired(lab, RepairMode::kPreen, {"piece-damaged"}, true);
  }
}

TEST(CheckGroupsTest, TwoBadPiecesOfAGroupStay) {
  Lab lab;
  lab.group_image();
  lab.damage(lab.extent_run.disk, lab.extent_run.block * 4096 + 100, 1);
  lab.damage(lab.parity_run.disk, lab.parity_run.block * 4096 + 200, 1);
  const CheckReport report = lab.check(RepairMode::kAll, true);
  EXPECT_EQ(names_of(report), Names{"data-damaged"}) << text_of(report);
  EXPECT_EQ(report.findings.size(), 2u);
}

TEST(CheckGroupsTest, TwoPiecesOnOneDiskAreReportedAndTheParityGoes) {
  Lab lab;
  lab.group_image();
  lab.edit_copies([](format::CopyPage& page) {  // places 8 and 9 change parities: each lies on a disk of its group then
    auto groups = page.groups();
    page.erase_group(0);
    page.erase_group(8);
    std::swap(groups[0].parity, groups[1].parity);
    for (auto& group : groups) page.add_group(group);
  });
  expect_repaired(lab, RepairMode::kPreen, {"pieces-together", "stored-bytes"});
  EXPECT_TRUE(lab.copies().groups().empty());
  EXPECT_TRUE(lab.copies().get(9));
}

TEST(CheckGroupsTest, AGroupWhoseMemberIsNoExtentGoes) {
  Lab lab;
  lab.group_image();
  lab.edit_copies([](format::CopyPage& page) {
    auto group = page.groups().front();
    page.erase_group(0);
    group.members |= 1u << 2;
    page.add_group(group);
  });
  expect_repaired(lab, RepairMode::kPreen, {"copy-stray", "stored-bytes"});
  EXPECT_EQ(lab.copies().groups().size(), 1u);
}

TEST(CheckGroupsTest, BlocksOfAGroupThatOthersHaveOrThatAreNowhereGiveItUp) {
  for (const bool nowhere : {false, true}) {
    for (const bool leaver : {false, true}) {
      Lab lab;
      lab.group_image();
      const std::uint64_t address = nowhere ? format::Address{1, 1u << 30}.packed() : lab.cells_run.address().packed();
      lab.edit_copies([&](format::CopyPage& page) {
        auto group = *page.group_of(8);
        page.erase_group(8);
        (leaver ? group.leavers.front() : group.parity).address = address;
        page.add_group(group);
      });
      const CheckReport report = lab.check(RepairMode::kAll);
      EXPECT_EQ(report.exit_code(), 1) << text_of(report);
      const CheckReport after = lab.check(RepairMode::kNothing, true);
      EXPECT_EQ(after.exit_code(), 0) << text_of(after);
      EXPECT_EQ(lab.copies().group_of(8), nullptr);
      EXPECT_NE(lab.copies().group_of(0), nullptr);
    }
  }
}

}  // namespace
}  // namespace mdfs::store
