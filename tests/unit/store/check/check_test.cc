// The checker: every structure damaged in turn is found, mended, and clean afterwards.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/check.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/crc32c.h"
#include "format/dirent.h"
#include "format/extents.h"
#include "format/file_cell.h"
#include "format/geometry_item.h"
#include "format/strip.h"
#include "lab.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kRoot = MDFS_OBJECT_ROOT_DIRECTORY;

struct Case {
  std::string name;                   // of the test
  std::vector<std::string> findings;  // all of these, and no others
  bool preen;                         // -p mends it
  std::function<void(Lab&)> damage;
  bool data_survive = true;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

format::FileCell cell_of(Lab& lab) {
  return *format::decode_file_cell(lab.get({Lab::kCells, MDFS_KIND_FILE_CELL, 0}), 4096);
}

void put_cell(Lab& lab, const format::FileCell& cell) {
  lab.change([&](Transaction& t) { t.put({Lab::kCells, MDFS_KIND_FILE_CELL, 0}, format::encode(cell)); });
}

void edit_page(Lab& lab, const std::function<void(format::ExtentPage&)>& how) {
  const Key key{Lab::kImage, MDFS_KIND_EXTENTS, 0};
  auto page = *format::ExtentPage::decode(lab.get(key), {MDFS_CODEC_RAW, 4096});
  how(page);
  lab.change([&](Transaction& t) { t.put(key, page.encode()); });
}

format::Strip strip_of(Lab& lab) { return *format::decode_strip(lab.get(lab.movie_strip_key), lab.movie_shape, 4096); }

// Beside the one that there is.
void put_strip(Lab& lab, const format::Strip& strip, std::uint64_t away) {
  Key key = lab.movie_strip_key;
  key.offset += away;
  lab.change([&](Transaction& t) { t.put(key, format::encode(strip)); });
}

void put_garbage(Lab& lab, const Key& key) {
  lab.change([&](Transaction& t) { t.put(key, value_of(50, 9)); });
}

void erase(Lab& lab, const Key& key) {
  lab.change([&](Transaction& t) { t.erase(key); });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::size_t label = 0; label < 4; ++label)
    all.push_back({"Label" + std::to_string(label), {"label-damaged"}, true, [label](Lab& lab) {
                     lab.damage(1, lab.layout().label_offset(static_cast<unsigned>(label)) + 40);
                   }});
  all.push_back({"AllLabelsOfADiskButOne", {"label-damaged"}, true, [](Lab& lab) {
                   for (unsigned label : {0u, 1u, 3u}) lab.damage(0, lab.layout().label_offset(label) + 100);
                 }});
  all.push_back({"CommitSlotsOfARing", {"commit-slot-missing"}, true, [](Lab& lab) {
                   for (unsigned slot = 0; slot < 8; ++slot) lab.damage(2, lab.layout().slot_offset(1, slot) + 64);
                 }});
  for (std::size_t copy = 0; copy < 3; ++copy)
    all.push_back({"Copy" + std::to_string(copy) + "OfEveryNode", {"node-copy-damaged"}, true, [copy](Lab& lab) {
                     const format::Pointer root = lab.root();
                     for (const NodeRef& leaf : lab.leaves()) lab.damage_node(leaf.pointer, copy);
                     lab.damage_node(root, copy);
                   }});
  all.push_back({"BitmapPage", {"space-page-damaged"}, true, [](Lab& lab) {
                   for (unsigned place : {0u, 1u}) lab.damage(0, lab.layout().space_offset({0, 0}, place) + 9);
                 }});
  all.push_back({"BlockMarkedFree", {"block-marked-free"}, true, [](Lab& lab) {
                   lab.change([&](Transaction& t) { t.unlink(lab.cells_run); });
                 }});
  all.push_back(
      {"BlockUsedTwiceByAnotherFile", {"block-used-twice", "stored-bytes"}, false, [](Lab& lab) {
         lab.change([&](Transaction& t) {
           format::FileCell cell = *format::decode_file_cell(**t.get({Lab::kCells, MDFS_KIND_FILE_CELL, 0}), 4096);
           t.put({Lab::kFirstFile, MDFS_KIND_FILE_CELL, 0}, format::encode(cell));
           auto inode = *format::decode_inode(**t.get(Lab::inode_key(Lab::kFirstFile)));
           inode.size = 3 * 4096 - 100;
           t.put(Lab::inode_key(Lab::kFirstFile), format::encode(inode));
         });
       }});
  all.push_back({"DataOnTopOfANode",
                 {"block-used-twice"},
                 false,
                 [](Lab& lab) {
                   format::FileCell cell = cell_of(lab);
                   lab.change([&](Transaction& t) { t.unlink(lab.cells_run); });
                   cell.runs[0].address = lab.leaves()[0].pointer.address[0];
                   put_cell(lab, cell);
                   // The node moved with that commit; the bitmap is as the checker will make it in any case.
                   cell.runs[0].address = lab.leaves().back().pointer.address[0];
                   put_cell(lab, cell);
                 },
                 false});
  all.push_back({"InodeDamaged",
                 {"inode-damaged", "entry-to-nothing", "directory-entries", "block-leaked", "object-count"},
                 false,
                 [](Lab& lab) { put_garbage(lab, Lab::inode_key(Lab::kCells)); }});
  all.push_back(
      {"InodeMissing", {"inode-missing", "entry-to-nothing", "directory-entries", "object-count"}, false, [](Lab& lab) {
         erase(lab, Lab::inode_key(Lab::kInline));
       }});
  all.push_back({"LinkCountOfAFile", {"link-count"}, true, [](Lab& lab) {
                   lab.edit_inode(Lab::kInline, [](auto& inode) { inode.links = 7; });
                 }});
  all.push_back({"LinkCountOfADirectory", {"link-count"}, true, [](Lab& lab) {
                   lab.edit_inode(Lab::kDir, [](auto& inode) { inode.links = 2; });
                 }});
  all.push_back({"EntriesOfADirectory", {"directory-entries"}, true, [](Lab& lab) {
                   lab.edit_inode(kRoot, [](auto& inode) { inode.entries = 1; });
                 }});
  all.push_back({"ParentOfADirectory", {"directory-parent"}, true, [](Lab& lab) {
                   lab.edit_inode(Lab::kDeep, [](auto& inode) { inode.parent = kRoot; });
                 }});
  all.push_back({"TypeOfAnEntry", {"entry-type"}, true, [](Lab& lab) {
                   lab.change([](Transaction& t) { Lab::put_entry(t, kRoot, "inline", Lab::kInline, 4); });
                 }});
  all.push_back({"StoredBytes", {"stored-bytes"}, true, [](Lab& lab) {
                   lab.edit_inode(Lab::kImage, [](auto& inode) { inode.stored_bytes = 5; });
                 }});
  all.push_back({"FileWithoutAName", {"unreachable", "directory-entries"}, false, [](Lab& lab) {
                   erase(lab, Lab::entry_key(kRoot, "inline"));
                 }});
  all.push_back({"DirectoryWithoutAName", {"unreachable", "link-count", "directory-entries"}, false, [](Lab& lab) {
                   erase(lab, Lab::entry_key(kRoot, "dir"));
                 }});
  all.push_back({"EntryToNothing", {"entry-to-nothing"}, false, [](Lab& lab) {
                   lab.change([](Transaction& t) { Lab::put_entry(t, Lab::kDeep, "ghost", 9999, 8); });
                   lab.edit_inode(Lab::kDeep, [](auto& inode) { inode.entries = 0; });
                 }});
  all.push_back({"EntryUnderTheWrongHash", {"entry-cookie"}, false, [](Lab& lab) {
                   lab.change([](Transaction& t) {
                     const ByteVector value = **t.get(Lab::entry_key(kRoot, "inline"));
                     t.erase(Lab::entry_key(kRoot, "inline"));
                     t.put({kRoot, MDFS_KIND_DIRENT, 1u << 20}, value);
                   });
                 }});
  all.push_back({"NameTwice", {"entry-duplicate"}, false, [](Lab& lab) {
                   lab.change([](Transaction& t) {
                     Key key = Lab::entry_key(kRoot, "inline");
                     const ByteVector value = **t.get(key);
                     ++key.offset;
                     t.put(key, value);
                   });
                   lab.edit_inode(kRoot, [](auto& inode) { inode.reach = 1; });
                 }});
  all.push_back({"SecretLost", {"secret-missing"}, false, [](Lab& lab) {
                   lab.change([](Transaction& t) { t.erase(format::kSecretKey); });
                 }});
  all.push_back({"SecretDamaged", {"secret-missing"}, false, [](Lab& lab) { put_garbage(lab, format::kSecretKey); }});
  all.push_back({"DirectoryInItself",
                 {"directory-parent", "directory-cycle", "link-count", "directory-entries"},
                 false,
                 [](Lab& lab) {
                   lab.change([](Transaction& t) {
                     t.erase(Lab::entry_key(kRoot, "dir"));
                     Lab::put_entry(t, Lab::kDeep, "dir", Lab::kDir, 4);
                   });
                 }});
  all.push_back({"DirectoryNamedTwice", {"directory-named-twice"}, false, [](Lab& lab) {
                   lab.change([](Transaction& t) { Lab::put_entry(t, Lab::kDir, "root", Lab::kDeep, 4); });
                 }});
  all.push_back({"OrphanWithAName", {"orphan-stray"}, true, [](Lab& lab) {
                   lab.change([](Transaction& t) { t.put({MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, Lab::kInline}, {}); });
                 }});
  all.push_back({"OrphanOfNothing", {"orphan-stray"}, true, [](Lab& lab) {
                   lab.change([](Transaction& t) { t.put({MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, 9999}, {}); });
                 }});
  all.push_back(
      {"RootDirectoryMissing", {"inode-missing", "root-missing", "unreachable", "object-count"}, false, [](Lab& lab) {
         erase(lab, Lab::inode_key(kRoot));
       }});
  all.push_back({"PlacementMissing", {"placement-missing"}, false, [](Lab& lab) {
                   erase(lab, {MDFS_OBJECT_VOLUME, MDFS_KIND_PLACEMENT, Lab::kPlacement});
                 }});
  all.push_back({"OperationOfNonsense", {"operation-damaged"}, true, [](Lab& lab) {
                   lab.change([](Transaction& t) {
                     t.put({MDFS_OBJECT_VOLUME, MDFS_KIND_OPERATION, MDFS_OPERATION_SCRUB}, ByteVector(368));
                   });
                 }});
  all.push_back(
      {"DiskErrorsOfNonsense", {"disk-errors-damaged"}, true, [](Lab& lab) {
         lab.change([](Transaction& t) { t.put({MDFS_OBJECT_VOLUME, MDFS_KIND_DISK_ERRORS, 1}, ByteVector(96)); });
       }});
  all.push_back({"GeometryMissing",
                 {"content-missing", "entry-to-nothing", "directory-entries", "block-leaked", "object-count"},
                 false,
                 [](Lab& lab) {
                   erase(lab, {Lab::kImage, MDFS_KIND_GEOMETRY, 0});
                 }});
  all.push_back({"TargetMissing",
                 {"content-missing", "entry-to-nothing", "directory-entries", "object-count"},
                 false,
                 [](Lab& lab) {
                   erase(lab, {Lab::kLink, MDFS_KIND_SYMLINK, 0});
                 }});
  all.push_back({"BlocksBeyondTheEndOfAFile", {"beyond-end"}, true, [](Lab& lab) {
                   lab.edit_inode(Lab::kCells, [](auto& inode) { inode.size = 4097; });
                 }});
  all.push_back({"ExtentsBeyondTheEndOfAnImage", {"image-size", "beyond-end"}, true, [](Lab& lab) {
                   lab.edit_inode(Lab::kImage, [](auto& inode) { inode.size = 128 * 64; });
                 }});
  all.push_back({"InlineBytesBeyondTheEnd", {"beyond-end"}, true, [](Lab& lab) {
                   lab.edit_inode(Lab::kInline, [](auto& inode) { inode.size = 100; });
                 }});
  all.push_back({"ExtentOutsideTheDisk", {"address-outside", "stored-bytes", "block-leaked"}, false, [](Lab& lab) {
                   edit_page(lab, [](format::ExtentPage& page) {
                     auto record = *page.get(0);
                     record.address = format::Address{0, 1u << 30}.packed();
                     page.set(0, record);
                   });
                 }});
  all.push_back({"FileRunOnTheLabels", {"address-outside", "stored-bytes", "block-leaked"}, false, [](Lab& lab) {
                   format::FileCell cell = cell_of(lab);
                   cell.runs[0].address.block = 0;
                   put_cell(lab, cell);
                 }});
  all.push_back(
      {"RunsOfAScatteredExtentMissing", {"runs-missing", "stored-bytes", "block-leaked"}, false, [](Lab& lab) {
         edit_page(lab, [](format::ExtentPage& page) {
           auto record = *page.get(0);
           record.address = MDFS_SCATTERED;
           page.set(0, record);
         });
       }});
  all.push_back(
      {"RunsOfAScatteredExtentDamaged", {"runs-missing", "stored-bytes", "block-leaked"}, false, [](Lab& lab) {
         put_garbage(lab, lab.movie_runs_key);
       }});
  all.push_back({"StripDamaged", {"item-damaged", "stored-bytes", "block-leaked"}, false, [](Lab& lab) {
                   put_garbage(lab, lab.movie_strip_key);
                 }});
  all.push_back({"BytesInTwoStrips", {"strip-twice", "block-used-twice", "stored-bytes"}, false, [](Lab& lab) {
                   put_strip(lab, strip_of(lab), 1);
                 }});
  all.push_back({"BlocksOfAStripUsedTwice", {"block-used-twice", "stored-bytes"}, false, [](Lab& lab) {
                   format::Strip strip = strip_of(lab);
                   strip.begin = 2048;
                   put_strip(lab, strip, 1);
                 }});
  all.push_back({"StripOutsideTheDisk", {"address-outside", "stored-bytes", "block-leaked"}, false, [](Lab& lab) {
                   format::Strip strip = strip_of(lab);
                   strip.address.block = 1u << 30;
                   put_strip(lab, strip, 0);
                 }});
  all.push_back({"StripOfAPageBeyondTheEnd", {"beyond-end", "block-used-twice", "stored-bytes"}, false, [](Lab& lab) {
                   put_strip(lab, strip_of(lab), 1000 * MDFS_STRIPS_PER_PAGE);
                 }});
  all.push_back({"StripOfAFile", {"item-misplaced"}, false, [](Lab& lab) {
                   put_garbage(lab, {Lab::kCells, MDFS_KIND_STRIP, 0});
                 }});
  all.push_back({"BlockOfAScatteredExtentUsedTwice",
                 {"block-used-twice", "stored-bytes"},
                 false,
                 [](Lab& lab) {
                   format::FileCell cell = cell_of(lab);
                   lab.change([&](Transaction& t) { t.unlink(lab.cells_run); });
                   cell.runs[0].address = lab.movie_runs[1].address;
                   cell.runs[0].crc32c.resize(1);
                   put_cell(lab, cell);
                 },
                 false});
  all.push_back({"ShapeOfAnImage", {"image-size"}, true, [](Lab& lab) {
                   lab.change([](Transaction& t) {
                     const Key key{Lab::kImage, MDFS_KIND_GEOMETRY, 0};
                     auto geometry = *format::decode_geometry(**t.get(key));
                     geometry.shape[0] = 200;
                     t.put(key, format::encode(geometry));
                   });
                 }});
  all.push_back({"ItemThatDoesNotBelong", {"item-misplaced"}, false, [](Lab& lab) {
                   put_garbage(lab, {Lab::kDir, MDFS_KIND_INLINE, 0});
                 }});
  all.push_back({"ItemOfAReservedObject", {"item-misplaced"}, false, [](Lab& lab) {
                   put_garbage(lab, {7, MDFS_KIND_INODE, 0});
                 }});
  all.push_back({"XattrDamaged", {"item-damaged"}, false, [](Lab& lab) {
                   put_garbage(lab, {Lab::kInline, MDFS_KIND_XATTR, format::first_cookie(Lab::kSecret, "user.note")});
                 }});
  all.push_back({"ExtentPageDamaged", {"item-damaged", "stored-bytes", "block-leaked"}, false, [](Lab& lab) {
                   put_garbage(lab, {Lab::kImage, MDFS_KIND_EXTENTS, 0});
                 }});
  all.push_back({"ObjectCount", {"object-count"}, true, [](Lab& lab) {
                   lab.change([](Transaction& t) { t.count_objects(5); });
                 }});
  all.push_back({"NextObject", {"next-object", "object-count", "unreachable"}, false, [](Lab& lab) {
                   format::Inode inode;
                   inode.mode = S_IFREG;
                   lab.change([&](Transaction& t) { t.put(Lab::inode_key(100000), format::encode(inode)); });
                 }});
  return all;
}

class DamageTest : public testing::TestWithParam<Case> {};

TEST_P(DamageTest, IsFoundByItsNameAndMendedAndNothingIsWrittenBefore) {
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
    const CheckReport mended = lab.check(RepairMode::kAll);
    EXPECT_EQ(mended.exit_code(), 1) << text_of(mended);
  }
  const CheckReport clean = lab.check(RepairMode::kNothing, GetParam().data_survive);
  EXPECT_EQ(clean.exit_code(), 0) << text_of(clean);
  EXPECT_TRUE(clean.findings.empty()) << text_of(clean);
  const auto mended = lab.digests();
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 0);
  EXPECT_EQ(lab.digests(), mended);  // nothing left to write
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
  const CheckReport mended = lab.check(RepairMode::kPreen);
  EXPECT_EQ(mended.exit_code(), 0) << text_of(mended);
  const CheckReport clean = lab.check(RepairMode::kNothing);
  EXPECT_TRUE(clean.findings.empty()) << text_of(clean);
  EXPECT_EQ(clean.used_blocks, found.used_blocks - 3);
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
    const CheckReport mended = lab.check(RepairMode::kAll);
    EXPECT_EQ(mended.exit_code(), 1) << text_of(mended);
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

TEST(CheckTest, AStaleDiskIsReported) {
  Lab lab;
  auto old = lab.disks[2]->clone();
  for (int i = 0; i < 5; ++i) lab.edit_inode(Lab::kInline, [](auto& inode) { ++inode.atime_ns; });
  lab.disks[2] = std::move(old);
  EXPECT_EQ(names_of(lab.check(RepairMode::kNothing)), std::vector<std::string>{"disk-stale"});
}

TEST(CheckTest, BlocksThatNobodyUsesAreReportedAsLeaked) {
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
    // A repair says the same of what it found at first, and mends it.
    const CheckReport mended = lab.check(RepairMode::kAll);
    EXPECT_EQ(path_of(mended, one.finding), one.path) << one.damage;
    EXPECT_EQ(mended.exit_code(), 1) << one.damage << "\n" << text_of(mended);
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
