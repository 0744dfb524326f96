// A small volume with one of everything, and ways to damage it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../store_fixture.h"
#include "format/cell_copies.h"
#include "format/dirent.h"
#include "format/extent_copies.h"
#include "format/extents.h"
#include "format/inode.h"
#include "geometry/geometry.h"
#include "store/check/check.h"
#include "store/check/tree_scan.h"

namespace mdfs::store {

// Three disks with:
//   /            names, f0 .. f399 (empty files, so that the tree has several leaves)
//   /inline      200 bytes in the tree, with two extended attributes; the long one has its value in three items
//   /cells       three blocks of an ordinary file
//   /link        a symbolic link
//   /image       a raw 8-bit image of 128 x 128 in extents of 64 x 64, all four stored
//   /dir/deep/   directories
//   /movie       a zstd 16-bit image of 5 x 300 x 200 in extents of 2 x 32 x 32, three stored: one at the far corner,
//   one
//                scattered over two disks
class Lab {
 public:
  static constexpr std::uint64_t kPlacement = 16, kInline = 17, kCells = 18, kLink = 19, kImage = 20, kDir = 21,
                                 kDeep = 22, kMovie = 23, kFirstFile = 24, kFiles = 400;
  static constexpr format::NameSecret kSecret{1, 2};
  static constexpr std::uint64_t kObjects = 8 + kFiles;  // with the root
  // The samples of the movie where it is stored; noise in the scattered extent.
  static std::uint16_t movie_sample(std::uint64_t t, std::uint64_t y, std::uint64_t x);

  static ByteVector report();  // the long attribute

  Lab();

  // As a program that writes wrong things would: through the store.
  void change(const std::function<void(Transaction&)>& how);
  void edit_inode(std::uint64_t number, const std::function<void(format::Inode&)>& how);
  static Key inode_key(std::uint64_t number) { return {number, MDFS_KIND_INODE, 0}; }
  static Key entry_key(std::uint64_t directory, const std::string& name);
  static void put_entry(Transaction& transaction, std::uint64_t directory, const std::string& name, std::uint64_t inode,
                        std::uint8_t type);
  ByteVector get(const Key& key);  // empty if absent

  // Gives each extent of the image a copy on the disk behind its own; that of the last one has its run in an item.
  void protect_image();
  // Gives the extents parities: places 0 and 1 on disk 2, 8 and 9 on disk 1. Place 9 of the second group has been
  // written anew, and has a copy.
  void group_image();
  static constexpr Key kCopies{kImage, MDFS_KIND_PARITY, 0};
  format::CopyPage copies();
  void edit_copies(const std::function<void(format::CopyPage&)>& how);

  // Gives the blocks of the file with cells copies: two on disk 2, the last one on another.
  void protect_cells(std::uint16_t last_disk = 0);
  static constexpr Key kCell{kCells, MDFS_KIND_FILE_CELL, 0}, kCellCopies{kCells, MDFS_KIND_FILE_PARITY, 0};
  format::CellPieces cell_pieces();
  void edit_cell_copies(const std::function<void(format::CellPieces&)>& how);

  // As a bad disk would.
  void damage(std::size_t disk, std::uint64_t offset, std::size_t bytes = 8);
  void damage_node(const format::Pointer& pointer, std::size_t copy);
  std::vector<NodeRef> leaves();
  format::Pointer root();
  format::DiskLayout layout() const;

  // `map_pages`: of the map of blocks at a time; the disks have one bitmap page each.
  CheckReport check(RepairMode mode, bool data = false, std::optional<std::uint64_t> map_pages = {},
                    std::optional<std::uint64_t> rollback = {});
  std::vector<std::uint64_t> digests() const;

  Disks disks;
  Run cells_run, extent_run;
  Run copy_run;                     // of that extent of the image
  Run parity_run, leaver_run;       // of its group, and what left the other one
  std::vector<Run> cell_copy_runs;  // of the file with cells
  format::Runs movie_runs;          // of the scattered extent
  Key movie_runs_key;
  Key movie_strip_key;
  format::ExtentTableShape movie_shape;
  std::uint64_t data_bytes = 0;  // stored, of all

 private:
  void add_image(Store& store, Transaction& transaction);
  void add_movie(Store& store, Transaction& transaction);
  Recovered recover_all();
  // A transaction of a volume with the feature of second copies.
  void protect(const std::function<void(Store&, Transaction&)>& how);
  Run store_data(Store& store, Transaction& transaction, std::uint16_t disk, const ByteVector& bytes);
  SeededEnvironment environment_{1};
};

// The names of a report's findings, each once, in order.
std::vector<std::string> names_of(const CheckReport& report);
// One line a finding, for messages.
std::string text_of(const CheckReport& report);

}  // namespace mdfs::store
