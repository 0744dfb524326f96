// A whole volume on disks in memory.
// SPDX-License-Identifier: Apache-2.0
#include "memory_volume.h"

#include <sys/stat.h>

#include <algorithm>

#include "format/dirent.h"
#include "format/inode.h"
#include "format/level_item.h"
#include "maintenance/maintenance.h"
#include "store/format_volume.h"

namespace mdfs::test {

using volume::Ino;
using volume::kRootIno;
using volume::Volume;

volume::VolumeOptions quiet_options(std::size_t cache_bytes) {
  volume::VolumeOptions options;
  options.engine.cache_bytes = cache_bytes;
  options.engine.decode_threads = 2;
  options.commit_interval_ns = 0;
  options.atime = volume::AtimeMode::kNoAtime;
  return options;
}

std::vector<device::Disk*> borrowed(const MemoryDisks& disks) {
  std::vector<device::Disk*> pointers;
  for (const auto& disk : disks) pointers.push_back(disk.get());
  return pointers;
}

MemoryDisks format_memory_disks(unsigned disks, std::uint64_t disk_bytes, Environment& environment) {
  MemoryDisks made;
  for (unsigned i = 0; i < disks; ++i)
    made.push_back(std::make_unique<device::MemoryDisk>("disk" + std::to_string(i), disk_bytes));
  MDFS_CHECK(store::format_volume(borrowed(made), {}, environment).ok());
  return made;
}

Result<std::unique_ptr<Volume>> open_volume(const std::vector<device::Disk*>& disks,
                                            const volume::VolumeOptions& options, Environment& environment,
                                            const store::StoreOptions& store_options) {
  std::vector<std::unique_ptr<device::Disk>> doors;
  for (device::Disk* disk : disks) doors.push_back(std::make_unique<BorrowedDisk>(*disk));
  MDFS_TRY_ASSIGN(auto store, store::Store::open(std::move(doors), store_options, environment));
  return Volume::open(std::move(store), options, environment, maintenance::make_operations);
}

namespace {

Result<std::string> read_text(Volume& volume, Ino ino, std::uint64_t bytes) {
  ByteVector buffer(bytes);
  MDFS_TRY_ASSIGN(const std::size_t got, volume.read(ino, 0, buffer));
  if (got != bytes) return Error{Errc::kCorrupt, "a short read within the file"};
  return std::string(as_text(buffer));
}

Result<Seen> see(Volume& volume, const volume::Attributes& attributes, std::uint64_t most_bytes) {
  Seen seen{
      attributes.ino, attributes.mode, attributes.links, attributes.uid, attributes.gid, attributes.size_bytes, {}, {}};
  if (S_ISDIR(seen.mode)) seen.size_bytes = 0;
  if (S_ISREG(seen.mode)) {
    MDFS_TRY_ASSIGN(seen.text, read_text(volume, seen.ino, std::min(most_bytes, seen.size_bytes)));
  }
  if (S_ISLNK(seen.mode)) {
    MDFS_TRY_ASSIGN(seen.text, volume.read_symlink(seen.ino));
  }
  MDFS_TRY_ASSIGN(const std::vector<std::string> names, volume.list_xattrs(seen.ino));
  for (const std::string& name : names) {
    MDFS_TRY_ASSIGN(const ByteVector value, volume.get_xattr(seen.ino, name));
    seen.xattrs[name] = std::string(as_text(value));
  }
  return seen;
}

Status read_below(Volume& volume, Ino directory, const std::string& path, std::uint64_t most_bytes, Tree& tree) {
  for (std::uint64_t cookie = 0;;) {
    MDFS_TRY_ASSIGN(const auto entries, volume.read_directory(directory, cookie, 64));
    if (entries.empty()) return {};
    for (const volume::DirectoryEntry& entry : entries) {
      if (entry.name == "." || entry.name == "..") continue;
      const std::string below = path + "/" + entry.name;
      auto attributes = volume.lookup(directory, entry.name);
      if (!attributes.ok()) return Error{attributes.error().code, below + ": " + attributes.error().where};
      auto seen = see(volume, *attributes, most_bytes);
      volume.forget(attributes->ino, 1);
      if (!seen.ok()) return Error{seen.error().code, below + ": " + seen.error().where};
      if (entry.ino != seen->ino || entry.type != ((seen->mode >> 12) & 15))
        return Error{Errc::kCorrupt, below + ": entry and inode disagree"};
      const bool is_directory = S_ISDIR(seen->mode);
      tree[below] = std::move(*seen);
      if (is_directory) MDFS_TRY(read_below(volume, attributes->ino, below, most_bytes, tree));
    }
    cookie = entries.back().cookie;
  }
}

struct Counted {
  std::map<Ino, format::Inode> inodes;
  std::map<Ino, std::uint32_t> names;           // that lead to an inode
  std::map<Ino, std::uint64_t> entries;         // in a directory
  std::map<Ino, std::uint32_t> subdirectories;  // in a directory
  std::map<Ino, bool> orphans;
};

std::string count_items(store::Store& store, Counted& counted) {
  auto items = store.scan(format::kMinKey, format::kMaxKey, SIZE_MAX);
  if (!items.ok()) return items.error().message();
  for (const store::Item& item : *items) {
    if (item.key.kind == MDFS_KIND_INODE) {
      auto inode = format::decode_inode(item.value);
      if (!inode.ok()) return inode.error().message();
      counted.inodes[item.key.object] = *inode;
    } else if (item.key.kind == MDFS_KIND_DIRENT) {
      auto entry = format::decode_dirent(item.value);
      if (!entry.ok()) return entry.error().message();
      ++counted.names[entry->inode];
      ++counted.entries[item.key.object];
      if (entry->type == 4) ++counted.subdirectories[item.key.object];
    } else if (item.key.kind == MDFS_KIND_LEVEL) {
      auto level = format::decode_level(item.value);
      if (!level.ok()) return level.error().message();
      ++counted.names[level->object];
    } else if (item.key.kind == MDFS_KIND_ORPHAN) {
      counted.orphans[item.key.offset] = true;
    }
  }
  for (const store::Item& item : *items)
    if (item.key != format::kSecretKey && item.key.object != MDFS_OBJECT_VOLUME &&
        !counted.inodes.contains(item.key.object))
      return "an item of kind " + std::to_string(item.key.kind) + " of the missing inode " +
             std::to_string(item.key.object);
  return "";
}

}  // namespace

Result<Tree> read_tree(Volume& volume, std::uint64_t most_bytes) {
  Tree tree;
  MDFS_TRY_ASSIGN(const volume::Attributes root, volume.attributes(kRootIno));
  MDFS_TRY_ASSIGN(tree[""], see(volume, root, most_bytes));
  MDFS_TRY(read_below(volume, kRootIno, "", most_bytes, tree));
  return tree;
}

std::string find_inconsistency(Volume& volume, bool orphans_allowed) {
  Counted counted;
  std::string wrong = count_items(volume.store(), counted);
  if (!wrong.empty()) return wrong;
  for (const auto& [ino, inode] : counted.inodes) {
    const std::string name = "inode " + std::to_string(ino) + ": ";
    const bool orphan = counted.orphans.contains(ino);
    if (orphan && (!orphans_allowed || inode.links != 0)) return name + "is an orphan";
    if (!orphan && inode.links == 0) return name + "has no links and is no orphan";
    const std::uint32_t expected = inode.is_directory() ? 2 + counted.subdirectories[ino] : counted.names[ino];
    if (!orphan && inode.links != expected)
      return name + std::to_string(inode.links) + " links, found " + std::to_string(expected);
    if (inode.is_directory() && inode.entries != counted.entries[ino]) return name + "entries miscounted";
    if (inode.is_directory() && !orphan && ino != kRootIno && counted.names[ino] != 1) return name + "has not one name";
    if (inode.is_directory() && !counted.inodes.contains(inode.parent)) return name + "its parent is missing";
  }
  for (const auto& [ino, names] : counted.names)
    if (!counted.inodes.contains(ino)) return "a name of the missing inode " + std::to_string(ino);
  if (volume.space().objects != counted.inodes.size())
    return "objects: " + std::to_string(volume.space().objects) + " counted, " + std::to_string(counted.inodes.size()) +
           " found";
  return "";
}

}  // namespace mdfs::test
