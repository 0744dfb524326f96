// The items of the tree that the volume reads and writes, as values: inodes, entries, attributes, placements. Every
// function that reads takes the store, with its present state, or a transaction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/dirent.h"
#include "format/inode.h"
#include "format/key.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "store/store.h"
#include "volume/volume.h"

namespace mdfs::volume {

inline format::Key inode_key(Ino ino) { return {ino, MDFS_KIND_INODE, 0}; }
inline format::Key geometry_key(Ino ino) { return {ino, MDFS_KIND_GEOMETRY, 0}; }
inline format::Key symlink_key(Ino ino) { return {ino, MDFS_KIND_SYMLINK, 0}; }
inline format::Key orphan_key(Ino ino) { return {MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, ino}; }
inline format::Key placement_key(std::uint64_t id) { return {MDFS_OBJECT_VOLUME, MDFS_KIND_PLACEMENT, id}; }

// Reader is store::Store or store::Transaction.
template <typename Reader>
Result<std::optional<format::Inode>> find_inode(Reader& reader, Ino ino);
// kNotFound if there is no such inode.
template <typename Reader>
Result<format::Inode> read_inode(Reader& reader, Ino ino);
// kNotFound if it does not exist or has been removed; kNotDirectory if it is something else.
template <typename Reader>
Result<format::Inode> read_directory_inode(Reader& reader, Ino ino);
template <typename Reader>
Result<geometry::Geometry> read_geometry(Reader& reader, Ino ino);

// Regular files that have a name, with inode numbers from `next` on, some at a time. `next` advances, and is 0 at the
// end. Inodes that cannot be read are left out.
struct FileItem {
  Ino ino = 0;
  format::Inode inode;
};
Result<std::vector<FileItem>> next_files(store::Items& tree, Ino& next);
// True for the error of an object that was removed meanwhile, was replaced by one without data, or has damaged records.
// Work on many objects then continues with the next one.
bool is_passed_over(const Error& error);

// The secret of the volume. kCorrupt if it is missing.
Result<format::NameSecret> read_secret(store::Items& items);

// The place of a name in a directory; for an absent name the lowest free cookie.
struct NamePlace {
  std::optional<format::Dirent> entry;
  std::uint64_t cookie = 0;  // of the entry, or a free one
  std::uint32_t reach = 0;   // that the directory needs for the name at this place
};
template <typename Reader>
Result<NamePlace> find_name(Reader& reader, const format::NameSecret& secret, Ino directory, std::string_view name);

struct XattrPlace {
  std::optional<ByteVector> value;  // whole
  std::uint64_t cookie = 0;
  std::uint32_t reach = 0;
};
template <typename Reader>
Result<XattrPlace> find_xattr(Reader& reader, const format::NameSecret& secret, Ino ino, std::string_view name);

void put_inode(store::Transaction& transaction, Ino ino, const format::Inode& inode);
// The caller puts the inode of the directory, whose reach is at least that of the place.
void put_entry(store::Transaction& transaction, Ino directory, std::uint64_t cookie, const format::Dirent& entry);
void erase_entry(store::Transaction& transaction, Ino directory, std::uint64_t cookie);
// Inserts the value, or replaces that of `place`. The caller puts `inode`.
void put_xattr(store::Transaction& transaction, Ino ino, format::Inode& inode, const XattrPlace& place,
               std::string_view name, ConstBytes value);
void erase_xattr(store::Transaction& transaction, Ino ino, const XattrPlace& place);

}  // namespace mdfs::volume
