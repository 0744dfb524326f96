// The checker: every structure damaged in turn is found, repaired, and clean afterwards, in one pass and in several.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/check.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/crc32c.h"
#include "damages.h"
#include "format/dirent.h"
#include "format/extents.h"
#include "format/geometry_item.h"
#include "store/labels.h"

namespace mdfs::store {
namespace {

class DamageTest : public testing::TestWithParam<Case> {};

TEST_P(DamageTest, IsFoundByItsNameAndRepairedAndNothingIsWrittenBefore) {
  Lab lab;
  GetParam().damage(lab);
  const auto before = lab.digests();
  const CheckReport found = lab.check(RepairMode::kNothing);
  EXPECT_EQ(lab.digests(), before);
  std::vector<std::string> names = names_of(found), expected = GetParam().findings;
  std::sort(names.begin(), names.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected) << text_of(found);
  EXPECT_EQ(found.exit_code(), 4) << text_of(found);

  const CheckReport preened = lab.check(RepairMode::kPreen);
  EXPECT_EQ(preened.exit_code(), GetParam().preen ? 1 : 4) << text_of(preened);
  if (!GetParam().preen) {
    const CheckReport repaired = lab.check(RepairMode::kAll);
    EXPECT_EQ(repaired.exit_code(), 1) << text_of(repaired);
  }
  const CheckReport clean = lab.check(RepairMode::kNothing, GetParam().data_survive);
  EXPECT_EQ(clean.exit_code(), 0) << text_of(clean);
  EXPECT_TRUE(clean.findings.empty()) << text_of(clean);
  const auto repaired = lab.digests();
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 0);
  EXPECT_EQ(lab.digests(), repaired);  // nothing left to write
}

std::vector<Finding> sorted(std::vector<Finding> findings) {
  std::sort(findings.begin(), findings.end());
  return findings;
}

// The map of blocks has room for one disk of three at a time.
TEST_P(DamageTest, SeveralPassesFindWhatOneFinds) {
  Lab lab;
  GetParam().damage(lab);
  const CheckReport once = lab.check(RepairMode::kNothing);
  const CheckReport thrice = lab.check(RepairMode::kNothing, false, 1);
  EXPECT_EQ(once.passes, 1u);
  EXPECT_EQ(thrice.passes, 3u);
  EXPECT_EQ(sorted(thrice.findings), sorted(once.findings)) << text_of(thrice) << text_of(once);
  EXPECT_EQ(thrice.total_findings, once.total_findings);
  EXPECT_EQ(thrice.used_blocks, once.used_blocks);
}

INSTANTIATE_TEST_SUITE_P(EveryStructure, DamageTest, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST(CheckTest, BothOwnersOfABlockKeepItsBytes) {
  Lab lab;
  for (const Case& damage : cases())
    if (damage.name == "BlockUsedTwiceByAnotherFile") damage.damage(lab);
  EXPECT_EQ(lab.check(RepairMode::kAll, true).exit_code(), 1);
  const auto first = cell_of(lab);
  const auto second = *format::decode_file_cell(lab.get({Lab::kFirstFile, MDFS_KIND_FILE_CELL, 0}), 4096);
  EXPECT_NE(first.runs[0].address, second.runs[0].address);
  const CheckReport clean = lab.check(RepairMode::kNothing, true);
  EXPECT_TRUE(clean.findings.empty()) << text_of(clean);
  EXPECT_EQ(clean.data_bytes, lab.data_bytes + 3 * 4096);
}

TEST(CheckTest, BothStripsThatUseABlockKeepItsBytes) {
  Lab lab;
  const format::Strip before = strip_of(lab);
  for (const Case& damage : cases())
    if (damage.name == "BlocksOfAStripUsedTwice") damage.damage(lab);
  EXPECT_EQ(lab.check(RepairMode::kAll, true).exit_code(), 1);
  Key key = lab.movie_strip_key;
  const format::Strip first = strip_of(lab);
  ++key.offset;
  const format::Strip second = *format::decode_strip(lab.get(key), lab.movie_shape, 4096);
  EXPECT_EQ(first.live, before.live);
  EXPECT_EQ(second.live, before.live);
  EXPECT_NE(first.address, second.address);
  EXPECT_EQ(second.crc32c.size(), first.crc32c.size());
  const CheckReport clean = lab.check(RepairMode::kNothing, true);
  EXPECT_TRUE(clean.findings.empty()) << text_of(clean);
}

TEST(CheckTest, AHealthyVolumeIsCleanWithAndWithoutItsData) {
  Lab lab;
  for (const bool data : {false, true}) {
    const CheckReport report = lab.check(RepairMode::kNothing, data);
    EXPECT_EQ(report.exit_code(), 0) << text_of(report);
    EXPECT_TRUE(report.findings.empty()) << text_of(report);
    EXPECT_EQ(report.objects, Lab::kObjects);
    EXPECT_EQ(report.data_bytes, data ? lab.data_bytes : 0u);
  }
}

TEST(CheckTest, DamagedDataAreFoundByChecksumsOnlyAndStayAsTheyAre) {
  Lab lab;
  lab.damage(lab.cells_run.disk, (lab.cells_run.block + 1) * 4096 + 77, 1);
  lab.damage(lab.extent_run.disk, lab.extent_run.block * 4096 + 4095, 1);
  EXPECT_EQ(lab.check(RepairMode::kNothing).exit_code(), 0);
  const auto before = lab.digests();
  const CheckReport report = lab.check(RepairMode::kAll, true);
  EXPECT_EQ(names_of(report), std::vector<std::string>{"data-damaged"});
  EXPECT_EQ(report.findings.size(), 2u) << text_of(report);
  EXPECT_EQ(report.exit_code(), 4);
  EXPECT_EQ(lab.digests(), before);
}

TEST(CheckTest, LongAttributesComeThroughTheLossOfTheSecretWhole) {
  Lab lab;
  lab.change([](Transaction& t) { t.erase(format::kSecretKey); });
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
  const auto secret = format::decode_secret(lab.get(format::kSecretKey));
  ASSERT_TRUE(secret.ok());
  ASSERT_NE(*secret, Lab::kSecret);
  const std::uint64_t cookie = format::first_cookie(*secret, "user.report");
  const auto first = format::decode_xattr(lab.get({Lab::kInline, MDFS_KIND_XATTR, cookie}));
  ASSERT_TRUE(first.ok());
  ByteVector value = first->first;
  for (unsigned number = 0; number < format::xattr_rests(first->rest_length); ++number) {
    const ByteVector rest = lab.get({Lab::kInline, MDFS_KIND_XATTR_REST + number, cookie});
    value.insert(value.end(), rest.begin(), rest.end());
  }
  EXPECT_EQ(value, Lab::report());
}

TEST(CheckTest, AnOrphanIsNoErrorAndIsFreedByARepair) {
  Lab lab;
  lab.change([](Transaction& t) {
    t.erase(Lab::entry_key(kRoot, "cells"));
    t.put({MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, Lab::kCells}, {});
  });
  lab.edit_inode(kRoot, [](auto& inode) { --inode.entries; });
  const CheckReport found = lab.check(RepairMode::kNothing);
  EXPECT_EQ(found.exit_code(), 0) << text_of(found);
  EXPECT_EQ(names_of(found), std::vector<std::string>{"orphan"});
  const CheckReport repaired = lab.check(RepairMode::kPreen);
  EXPECT_EQ(repaired.exit_code(), 0) << text_of(repaired);
  const CheckReport clean = lab.check(RepairMode::kNothing);
  EXPECT_TRUE(clean.findings.empty()) << text_of(clean);
  EXPECT_EQ(clean.used_blocks, found.used_blocks - 3);
}

TEST(CheckTest, WhatAFileLeftAsItBecameAnImageIsNoError) {
  const auto geometry = [](Lab& lab) { return lab.get({Lab::kImage, MDFS_KIND_GEOMETRY, 0}); };
  const std::function<void(Lab&, format::Inode&)> become[] = {
      [&](Lab& lab, format::Inode& cells) {  // the cells are left
        cells.flags = MDFS_INODE_IMAGE;
        cells.size = 128 * 128;
        const ByteVector item = geometry(lab);
        lab.change([&](Transaction& t) { t.put({Lab::kCells, MDFS_KIND_GEOMETRY, 0}, item); });
      },
      [](Lab&, format::Inode& image) { image.flags = 0; }};  // the extents are there already
  const std::uint64_t numbers[] = {Lab::kCells, Lab::kImage};
  for (unsigned state : {0u, 1u}) {
    Lab lab;
    auto inode = *format::decode_inode(lab.get(Lab::inode_key(numbers[state])));
    become[state](lab, inode);
    inode.stored_bytes = 0;
    lab.change([&](Transaction& t) {
      t.put(Lab::inode_key(numbers[state]), format::encode(inode));
      t.put({MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, numbers[state]}, {});
    });
    for (const RepairMode mode : {RepairMode::kNothing, RepairMode::kPreen, RepairMode::kAll}) {
      const CheckReport report = lab.check(mode, true);
      EXPECT_EQ(report.exit_code(), 0) << text_of(report);
      EXPECT_EQ(names_of(report), std::vector<std::string>{"orphan"}) << text_of(report);
    }
    // Without its place among the orphans it is damage.
    lab.change([&](Transaction& t) { t.erase({MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, numbers[state]}); });
    EXPECT_EQ(lab.check(RepairMode::kNothing).exit_code(), 4);
    EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
    EXPECT_EQ(lab.check(RepairMode::kNothing).exit_code(), 0);
  }
}

TEST(CheckTest, ALostLeafCostsOnlyWhatItHeld) {
  Lab whole;
  const std::size_t leaves = whole.leaves().size();
  ASSERT_GT(leaves, 4u);
  for (std::size_t i = 0; i < leaves; ++i) {
    Lab lab;
    const NodeRef leaf = lab.leaves()[i];
    for (std::size_t copy = 0; copy < leaf.pointer.copies; ++copy) lab.damage_node(leaf.pointer, copy);
    const CheckReport found = lab.check(RepairMode::kPreen);
    EXPECT_EQ(found.exit_code(), 4);
    EXPECT_EQ(found.findings[0].id, FindingId::kNodeLost) << text_of(found);
    const CheckReport repaired = lab.check(RepairMode::kAll);
    EXPECT_EQ(repaired.exit_code(), 1) << text_of(repaired);
    const CheckReport clean = lab.check(RepairMode::kNothing, true);
    EXPECT_TRUE(clean.findings.empty()) << i << text_of(clean);
    // At most the items of one leaf are gone, and objects that had lost their inodes.
    EXPECT_GE(clean.objects + 300, Lab::kObjects) << i;
  }
}

TEST(CheckTest, ALostRootNodeLeavesAnEmptyVolumeThatWorks) {
  Lab lab;
  const format::Pointer root = lab.root();
  for (std::size_t copy = 0; copy < root.copies; ++copy) lab.damage_node(root, copy);
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
  const CheckReport clean = lab.check(RepairMode::kNothing);
  EXPECT_TRUE(clean.findings.empty()) << text_of(clean);
  EXPECT_EQ(clean.objects, 1u);
  EXPECT_FALSE(lab.get(Lab::inode_key(kRoot)).empty());
}

TEST(CheckTest, WhatHasNoNameIsFoundInLostAndFound) {
  Lab lab;
  erase(lab, Lab::entry_key(kRoot, "dir"));
  erase(lab, Lab::entry_key(kRoot, "image"));
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
  const auto home = *format::decode_dirent(lab.get(Lab::entry_key(kRoot, "lost+found")));
  EXPECT_EQ(home.inode, MDFS_OBJECT_LOST_FOUND);
  for (const std::uint64_t number : {Lab::kDir, Lab::kImage}) {
    const std::string name = "#" + std::to_string(number);
    const auto entry = *format::decode_dirent(lab.get(Lab::entry_key(home.inode, name)));
    EXPECT_EQ(entry.inode, number);
  }
  const auto inode = *format::decode_inode(lab.get(Lab::inode_key(home.inode)));
  EXPECT_EQ(inode.entries, 2u);
  EXPECT_EQ(inode.links, 3u);
}

TEST(CheckTest, AMissingDiskIsReportedAndNothingIsCommittedWithoutIt) {
  Lab lab;
  lab.edit_inode(Lab::kInline, [](auto& inode) { inode.links = 7; });
  auto taken = std::move(lab.disks[1]);
  const auto before = lab.digests();
  const CheckReport report = lab.check(RepairMode::kAll);
  EXPECT_EQ(report.exit_code(), 4) << text_of(report);
  EXPECT_EQ(lab.digests(), before);
  EXPECT_EQ(report.findings[0].id, FindingId::kDiskMissing);
  lab.disks[1] = std::move(taken);
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
}

// A later commit was begun on all disks, and may be complete on the one that is away.
TEST(CheckTest, NothingIsRepairedWhileADiskIsAwayThatMayHoldALaterCommit) {
  Lab lab;
  format::CommitSlot later;
  for (const format::CommitSlot& slot : read_labels(*lab.disks[0]).slots)
    if (slot.generation > later.generation) later = slot;
  later.parent_id = std::exchange(later.commit_id, Uuid{{0x4d}});
  later.generation += 1;
  later.checksum_records.clear();
  later.state = MDFS_SLOT_PREPARED;
  const AlignedBuffer bytes = encode_slot(later);
  for (const auto& disk : lab.disks)
    for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i)
      disk->poke(lab.layout().slot_offset(i, format::ring_slot(later.generation, later.state)), bytes.bytes());
  lab.damage(0, lab.layout().label_offset(1));
  auto taken = std::move(lab.disks[2]);
  const auto before = lab.digests();
  const CheckReport report = lab.check(RepairMode::kAll);
  EXPECT_EQ(report.exit_code(), 4) << text_of(report);
  EXPECT_NE(report.repair_error.find("may hold a later commit"), std::string::npos) << report.repair_error;
  EXPECT_EQ(lab.digests(), before);
  lab.disks[2] = std::move(taken);
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
  EXPECT_TRUE(lab.check(RepairMode::kNothing).findings.empty());
}

TEST(CheckTest, AStaleDiskIsReported) {
  Lab lab;
  auto old = lab.disks[2]->clone();
  for (int i = 0; i < 5; ++i) lab.edit_inode(Lab::kInline, [](auto& inode) { ++inode.atime_ns; });
  lab.disks[2] = std::move(old);
  EXPECT_EQ(names_of(lab.check(RepairMode::kNothing)), std::vector<std::string>{"disk-stale"});
}

TEST(CheckTest, BlocksWithoutAUserAreReportedAsLeaked) {
  Lab lab;
  erase(lab, {Lab::kCells, MDFS_KIND_FILE_CELL, 0});
  lab.edit_inode(Lab::kCells, [](auto& inode) { inode.stored_bytes = 0; });
  const CheckReport found = lab.check(RepairMode::kNothing);
  EXPECT_EQ(names_of(found), std::vector<std::string>{"block-leaked"}) << text_of(found);
  EXPECT_EQ(lab.check(RepairMode::kPreen).exit_code(), 1);
  EXPECT_TRUE(lab.check(RepairMode::kNothing).findings.empty());
}

// Of the first finding of that name; "none" if there is none.
std::string path_of(const CheckReport& report, std::string_view name) {
  for (const Finding& finding : report.findings)
    if (info(finding.id).name == name) return finding.path;
  return "none";
}

TEST(CheckTest, FindingsNameObjectsAndEntriesByTheirPaths) {
  const struct {
    const char *damage, *finding, *path;
  } wanted[] = {{"InodeDamaged", "inode-damaged", "/cells"},
                {"InodeDamaged", "entry-to-nothing", "/cells"},
                {"InodeDamaged", "directory-entries", "/"},
                {"InodeDamaged", "block-leaked", ""},
                {"LinkCountOfADirectory", "link-count", "/dir"},
                {"ParentOfADirectory", "directory-parent", "/dir/deep"},
                {"TypeOfAnEntry", "entry-type", "/inline"},
                {"StoredBytes", "stored-bytes", "/image"},
                {"FileWithoutAName", "unreachable", ""},
                {"EntryToNothing", "entry-to-nothing", "/dir/deep/ghost"},
                {"EntryUnderTheWrongHash", "entry-cookie", "/inline"},
                {"NameTwice", "entry-duplicate", "/inline"},
                {"DirectoryInItself", "directory-cycle", ""},
                {"DirectoryNamedTwice", "directory-named-twice", "/dir/deep"},
                {"OrphanWithAName", "orphan-stray", "/inline"},
                {"OrphanOfNothing", "orphan-stray", ""},
                {"PlacementMissing", "placement-missing", ""},
                {"GeometryMissing", "content-missing", "/image"},
                {"BlocksBeyondTheEndOfAFile", "beyond-end", "/cells"}};
  const std::vector<Case> all = cases();
  for (const auto& one : wanted) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Case& c) { return c.name == one.damage; });
    ASSERT_NE(found, all.end()) << one.damage;
    Lab lab;
    found->damage(lab);
    const CheckReport report = lab.check(RepairMode::kNothing);
    EXPECT_EQ(path_of(report, one.finding), one.path) << one.damage << "\n" << text_of(report);
    // A repair says the same of what it found at first, and repairs it.
    const CheckReport repaired = lab.check(RepairMode::kAll);
    EXPECT_EQ(path_of(repaired, one.finding), one.path) << one.damage;
    EXPECT_EQ(repaired.exit_code(), 1) << one.damage << "\n" << text_of(repaired);
  }
}

TEST(CheckTest, DamagedDataAreNamedByTheirFile) {
  Lab lab;
  lab.damage(lab.cells_run.disk, lab.cells_run.block * 4096);
  lab.edit_inode(Lab::kFirstFile + 250, [](auto& inode) { inode.links = 3; });
  const CheckReport report = lab.check(RepairMode::kNothing, true);
  EXPECT_EQ(path_of(report, "data-damaged"), "/cells") << text_of(report);
  EXPECT_EQ(path_of(report, "link-count"), "/f250") << text_of(report);
}

TEST(FindingsTest, NumbersAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (const FindingInfo& row : finding_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(&info(row.id), &row);
  }
  EXPECT_GE(names.size(), 40u);
}

}  // namespace
}  // namespace mdfs::store
