// Ways to damage a small volume, and what the checker says of each.
// SPDX-License-Identifier: Apache-2.0
#include "damages.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "format/dirent.h"
#include "format/extents.h"
#include "format/geometry_item.h"
#include "format/level_item.h"
#include "store/check/check.h"

namespace mdfs::store {
namespace {

void put_cell(Lab& lab, const format::FileCell& cell) {
  lab.change([&](Transaction& t) { t.put({Lab::kCells, MDFS_KIND_FILE_CELL, 0}, format::encode(cell)); });
}

void edit_page(Lab& lab, const std::function<void(format::ExtentPage&)>& how) {
  const Key key{Lab::kImage, MDFS_KIND_EXTENTS, 0};
  auto page = *format::ExtentPage::decode(lab.get(key), {MDFS_CODEC_RAW, 4096});
  how(page);
  lab.change([&](Transaction& t) { t.put(key, page.encode()); });
}

// Beside the one that there is.
void put_strip(Lab& lab, const format::Strip& strip, std::uint64_t away) {
  Key key = lab.movie_strip_key;
  key.offset += away;
  lab.change([&](Transaction& t) { t.put(key, format::encode(strip)); });
}

void put_garbage(Lab& lab, const Key& key) {
  lab.change([&](Transaction& t) { t.put(key, value_of(50, 9)); });
}

Key level_key(std::uint64_t level) { return {Lab::kImage, MDFS_KIND_LEVEL, level}; }

// An empty level of the image, as a program that knows levels makes it.
void put_level(Lab& lab, std::uint64_t level) {
  lab.change([&](Transaction& t) {
    const std::uint64_t object = t.new_object();
    auto geometry = *format::decode_geometry(**t.get({Lab::kImage, MDFS_KIND_GEOMETRY, 0}));
    geometry = geometry::geometry_above(geometry);
    auto inode = *format::decode_inode(**t.get(Lab::inode_key(Lab::kImage)));
    inode.size = geometry.size_bytes();
    inode.stored_bytes = 0;
    t.put(Lab::inode_key(object), format::encode(inode));
    t.put({object, MDFS_KIND_GEOMETRY, 0}, format::encode(geometry));
    t.put(level_key(level), format::encode(format::LevelItem{object}));
    t.count_objects(1);
  });
}

// A case of the file with cells after its blocks got copies.
Case of_copies(std::string name, std::vector<std::string> findings, bool preen, std::function<void(Lab&)> damage) {
  return {std::move(name), std::move(findings), preen, [damage = std::move(damage)](Lab& lab) {
            lab.protect_cells();
            damage(lab);
          }};
}

void add_cases_of_cell_copies(std::vector<Case>& all) {
  all.push_back(of_copies("CopiesBeyondTheEndOfAFile", {"beyond-end"}, true,
                          [](Lab& lab) { lab.edit_inode(Lab::kCells, [](auto& inode) { inode.size = 4097; }); }));
  all.push_back(of_copies("CopiesOfACellDamaged", {"item-damaged", "stored-bytes", "block-leaked"}, false,
                          [](Lab& lab) { put_garbage(lab, Lab::kCellCopies); }));
  all.push_back(
      of_copies("CopiesOfAGroupOfCells", {"item-damaged", "stored-bytes", "block-leaked"}, false, [](Lab& lab) {
        ByteVector value = lab.get(Lab::kCellCopies);
        value[0] |= std::byte{2};
        lab.change([&](Transaction& t) { t.put(Lab::kCellCopies, value); });
      }));
  all.push_back(of_copies("CopiesOfAnInlineFile", {"item-misplaced"}, false, [](Lab& lab) {
    put_garbage(lab, {Lab::kInline, MDFS_KIND_FILE_PARITY, 0});
  }));
  all.push_back(of_copies("CopiesOfCellsOfAnImage", {"item-misplaced"}, false, [](Lab& lab) {
    put_garbage(lab, {Lab::kImage, MDFS_KIND_FILE_PARITY, 0});
  }));
  all.push_back(of_copies("CopiesOfACellBeyondTheLargestFile", {"item-damaged"}, false, [](Lab& lab) {
    const ByteVector value = lab.get(Lab::kCellCopies);
    lab.change([&](Transaction& t) { t.put({Lab::kCells, MDFS_KIND_FILE_PARITY, UINT64_MAX}, value); });
  }));
  all.push_back(of_copies("CellOfCopiesDamaged", {"item-damaged", "copy-stray", "stored-bytes", "block-leaked"}, false,
                          [](Lab& lab) { put_garbage(lab, Lab::kCell); }));
  all.push_back(of_copies(
      "CopyOfABlockOutsideTheDisk", {"address-outside", "stored-bytes", "block-leaked"}, false,
      [](Lab& lab) { lab.edit_cell_copies([](auto& pieces) { pieces.copy.runs[0].address.block = 1u << 30; }); }));
  all.push_back(
      of_copies("CopyOfABlockOnADiskThatDoesNotExist", {"address-outside", "stored-bytes", "block-leaked"}, false,
                [](Lab& lab) { lab.edit_cell_copies([](auto& pieces) { pieces.copy.runs[0].address.disk = 40; }); }));
  all.push_back(of_copies("CopyOfOtherBytes", {"copy-stray"}, true, [](Lab& lab) {
    lab.edit_cell_copies([](auto& pieces) { pieces.copy.runs[0].crc32c[0] ^= 1; });
  }));
  all.push_back({"CopyOnTheDiskOfItsBlock", {"pieces-together"}, true, [](Lab& lab) { lab.protect_cells(1); }});
  all.push_back(of_copies("CopiesOfTwoBlocksOnOne", {"block-used-twice", "block-leaked"}, false, [](Lab& lab) {
    lab.edit_cell_copies([](auto& pieces) { pieces.copy.runs[1].address = pieces.copy.runs[0].address; });
  }));
  all.push_back(of_copies("BlocksAndCopiesUsedTwice", {"block-used-twice", "stored-bytes"}, false, [](Lab& lab) {
    const ByteVector cell = lab.get(Lab::kCell), copies = lab.get(Lab::kCellCopies);
    lab.change([&](Transaction& t) {
      t.put({Lab::kFirstFile, MDFS_KIND_FILE_CELL, 0}, cell);
      t.put({Lab::kFirstFile, MDFS_KIND_FILE_PARITY, 0}, copies);
    });
    lab.edit_inode(Lab::kFirstFile, [](auto& inode) { inode.size = 3 * 4096 - 100; });
  }));
}

}  // namespace

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
                   lab.change([&](Transaction& t) { t.free(lab.cells_run); });
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
                   lab.change([&](Transaction& t) { t.free(lab.cells_run); });
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
  all.push_back({"LevelWithoutAnObject", {"entry-to-nothing"}, false, [](Lab& lab) {
                   lab.change([](Transaction& t) { t.put(level_key(1), format::encode(format::LevelItem{9999})); });
                 }});
  all.push_back({"LevelThatIsNoImage", {"entry-to-nothing"}, false, [](Lab& lab) {
                   lab.change(
                       [](Transaction& t) { t.put(level_key(1), format::encode(format::LevelItem{Lab::kCells})); });
                 }});
  all.push_back({"LevelDamaged", {"item-damaged"}, false, [](Lab& lab) { put_garbage(lab, level_key(1)); }});
  all.push_back({"LevelOfAFile", {"item-misplaced"}, false, [](Lab& lab) {
                   put_garbage(lab, {Lab::kCells, MDFS_KIND_LEVEL, 1});
                 }});
  all.push_back({"LevelsOfAnImageThatLosesAnExtent",
                 {"address-outside", "stored-bytes", "block-leaked", "levels-outdated"},
                 false,
                 [](Lab& lab) {
                   put_level(lab, 1);
                   edit_page(lab, [](format::ExtentPage& page) {
                     auto record = *page.get(0);
                     record.address = std::uint64_t{1} << 40;
                     page.set(0, record);
                   });
                 }});
  all.push_back({"BlockOfAScatteredExtentUsedTwice",
                 {"block-used-twice", "stored-bytes"},
                 false,
                 [](Lab& lab) {
                   format::FileCell cell = cell_of(lab);
                   lab.change([&](Transaction& t) { t.free(lab.cells_run); });
                   cell.runs[0].address = lab.movie_runs[1].address();
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
  all.push_back(
      {"RestOfAnXattrMissing", {"item-damaged"}, false, [](Lab& lab) {
         lab.change([](Transaction& t) {
           t.erase({Lab::kInline, MDFS_KIND_XATTR_REST + 1, format::first_cookie(Lab::kSecret, "user.report")});
         });
       }});
  all.push_back(
      {"RestOfAnXattrCutShort", {"item-damaged"}, false, [](Lab& lab) {
         put_garbage(lab, {Lab::kInline, MDFS_KIND_XATTR_REST, format::first_cookie(Lab::kSecret, "user.report")});
       }});
  all.push_back(
      {"RestOfNoXattr", {"item-misplaced"}, false, [](Lab& lab) {
         put_garbage(lab, {Lab::kInline, MDFS_KIND_XATTR_REST, format::first_cookie(Lab::kSecret, "user.note")});
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
  add_cases_of_cell_copies(all);
  return all;
}

}  // namespace mdfs::store
