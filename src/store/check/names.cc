// Names and directories: what leads where, and how often.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "format/dirent.h"
#include "format/geometry_item.h"
#include "geometry/placement.h"
#include "store/check/objects.h"

namespace mdfs::store {
namespace {

using format::Key;

constexpr std::uint64_t kRoot = MDFS_OBJECT_ROOT_DIRECTORY;
constexpr std::uint32_t kRootMode = S_IFDIR | 0755;
constexpr std::uint32_t kLostFoundMode = S_IFDIR | 0700;

std::uint8_t type_of(std::uint32_t mode) { return static_cast<std::uint8_t>((mode >> 12) & 15); }

class NameChecker {
 public:
  NameChecker(ObjectTable& table, std::size_t disks, Findings& findings, Edits& edits)
      : table_(table), disks_(disks), findings_(findings), edits_(edits) {}

  void run() {
    check_root();
    check_orphan_items();
    check_targets();
    drop_outdated_levels();
    choose_directory_names();
    find_unreachable();
    for (const ObjectTable::MovedEntry& entry : table_.moved)
      if (const ObjectSummary* target = find(entry.inode); target != nullptr)
        put_entry(entry.directory, entry.name, entry.inode, target->mode);
    check_counts();
    check_placements();
  }

 private:
  ObjectSummary* find(std::uint64_t object) {
    const auto found = table_.objects.find(object);
    return found == table_.objects.end() ? nullptr : &found->second;
  }

  static Key key_of(const EntrySummary& entry) {
    return {entry.directory, entry.is_level ? MDFS_KIND_LEVEL : MDFS_KIND_DIRENT, entry.cookie};
  }

  static std::string name_of(const EntrySummary& entry) {
    if (entry.is_level) return fmt::format("image {}, level {}, object {}", entry.directory, entry.cookie, entry.inode);
    return fmt::format("directory {}, cookie {}, object {}", entry.directory, entry.cookie, entry.inode);
  }

  void drop(EntrySummary& entry, FindingId id) {
    findings_.add(id, name_of(entry), {entry.directory, entry.cookie});
    entry.dropped = true;
    edits_.items[key_of(entry)] = EraseItem{};
  }

  void check_root() {
    const ObjectSummary* root = find(kRoot);
    if (root != nullptr && root->is_directory()) return;
    findings_.add(FindingId::kRootMissing, "");
    edits_.erased_objects.insert(kRoot);
    format::Inode inode;
    inode.mode = kRootMode;
    inode.links = 2;
    inode.parent = kRoot;
    edits_.items[{kRoot, MDFS_KIND_INODE, 0}] = PutItem{format::encode(inode)};
    ObjectSummary made;
    made.mode = kRootMode;
    made.links = 2;
    made.parent = kRoot;
    table_.objects[kRoot] = made;
    std::erase_if(table_.entries, [](const EntrySummary& entry) { return entry.directory == kRoot; });
  }

  void check_orphan_items() {
    for (const std::uint64_t number : table_.orphans) {
      if (ObjectSummary* object = find(number); object != nullptr) {
        object->orphan = true;
        continue;
      }
      findings_.add(FindingId::kOrphanStray, fmt::format("object {}", number), {number});
      edits_.items[{MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, number}] = EraseItem{};
    }
  }

  // Names of other objects than directories are counted here.
  void check_targets() {
    for (EntrySummary& entry : table_.entries) {
      ObjectSummary* target = find(entry.inode);
      if (target == nullptr) {
        drop(entry, FindingId::kEntryToNothing);
        continue;
      }
      if (entry.is_level && !target->is_image) {
        drop(entry, FindingId::kEntryToNothing);
        continue;
      }
      if (entry.type != type_of(target->mode)) {
        findings_.add(FindingId::kEntryType, name_of(entry), {entry.directory, entry.cookie});
        edits_.items.try_emplace({entry.directory, MDFS_KIND_DIRENT, entry.cookie}, FixType{type_of(target->mode)});
      }
      if (!target->is_directory()) ++target->names;
    }
  }

  // True if a repair takes samples of the image away, or may have: then what stands above them is no longer their
  // reduction.
  bool loses_samples(std::uint64_t image) const {
    const Key first{image, MDFS_KIND_GEOMETRY, 0}, last{image, MDFS_KIND_STRIP, UINT64_MAX};
    for (auto edit = edits_.items.lower_bound(first); edit != edits_.items.end() && !(last < edit->first); ++edit)
      if (edit->first.kind != MDFS_KIND_FILE_CELL) return true;
    return std::any_of(table_.lost.begin(), table_.lost.end(),
                       [&](const auto& range) { return !(range.second < first) && !(last < range.first); });
  }

  void drop_outdated_levels() {
    std::uint64_t image = 0;
    bool outdated = false;
    for (EntrySummary& entry : table_.entries) {
      if (!entry.is_level || entry.dropped) continue;
      if (std::exchange(image, entry.directory) != entry.directory) {
        outdated = loses_samples(image);
        if (outdated) findings_.add(FindingId::kLevelsOutdated, fmt::format("image {}", image), {image});
      }
      if (!outdated) continue;
      entry.dropped = true;
      edits_.items[key_of(entry)] = EraseItem{};
      if (--find(entry.inode)->names == 0) edits_.erased_objects.insert(entry.inode);
    }
  }

  // A directory has one name: the one in its own parent if there is such, else the first.
  void choose_directory_names() {
    for (std::size_t i = 0; i < table_.entries.size(); ++i) {
      EntrySummary& entry = table_.entries[i];
      ObjectSummary* target = entry.dropped ? nullptr : find(entry.inode);
      if (target == nullptr || !target->is_directory()) continue;
      if (entry.inode == kRoot) {
        drop(entry, FindingId::kDirectoryNamedTwice);
        continue;
      }
      const auto [kept, is_first] = name_.try_emplace(entry.inode, i);
      if (is_first) continue;
      EntrySummary& other = table_.entries[kept->second];
      const bool better = entry.directory == target->parent && other.directory != target->parent;
      drop(better ? other : entry, FindingId::kDirectoryNamedTwice);
      if (better) kept->second = i;
    }
    for (const auto& [directory, entry] : name_) {
      ObjectSummary* target = find(directory);
      target->names = 1;
      const std::uint64_t parent = table_.entries[entry].directory;
      if (target->parent == parent) continue;
      findings_.add(FindingId::kDirectoryParent,
                    fmt::format("directory {}: {}, named in {}", directory, target->parent, parent), {directory});
      edits_.inodes[directory].parent = parent;
    }
  }

  // Follows the names of directories upwards; what does not end at the root is cut loose and goes to lost+found.
  void find_unreachable() {
    std::set<std::uint64_t> reached = {kRoot};
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, object] : table_.objects)
      if (object.is_directory()) numbers.push_back(number);
    std::sort(numbers.begin(), numbers.end());
    for (const std::uint64_t number : numbers) {
      std::vector<std::uint64_t> path;
      std::set<std::uint64_t> on_path;
      std::uint64_t at = number;
      while (!reached.contains(at)) {
        if (!on_path.insert(at).second) {
          cut(at);
          break;
        }
        path.push_back(at);
        const auto name = name_.find(at);
        if (name == name_.end()) {
          lose(at);
          break;
        }
        at = table_.entries[name->second].directory;
      }
      reached.insert(path.begin(), path.end());
    }
    std::vector<std::uint64_t> others;
    for (const auto& [number, object] : table_.objects)
      if (!object.is_directory() && object.names == 0 && !edits_.erased_objects.contains(number))
        others.push_back(number);
    std::sort(others.begin(), others.end());
    for (const std::uint64_t number : others) lose(number);
  }

  void cut(std::uint64_t directory) {
    drop(table_.entries[name_.at(directory)], FindingId::kDirectoryCycle);
    name_.erase(directory);
    find(directory)->names = 0;
    attach(directory);
  }

  void lose(std::uint64_t number) {
    if (find(number)->orphan) {
      findings_.add(FindingId::kOrphan, fmt::format("object {}", number), {number});
      edits_.erased_objects.insert(number);
      edits_.items[{MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, number}] = EraseItem{};
      erase_levels_of(number);
      return;
    }
    findings_.add(FindingId::kUnreachable, fmt::format("object {}", number), {number});
    attach(number);
  }

  // They have no other name.
  void erase_levels_of(std::uint64_t image) {
    auto entry = std::lower_bound(table_.entries.begin(), table_.entries.end(), image,
                                  [](const EntrySummary& one, std::uint64_t object) { return one.directory < object; });
    for (; entry != table_.entries.end() && entry->directory == image; ++entry) {
      if (!entry->is_level || entry->dropped) continue;
      entry->dropped = true;
      if (--find(entry->inode)->names == 0) edits_.erased_objects.insert(entry->inode);
    }
  }

  // The directory lost+found, made if need be.
  std::uint64_t lost_found() {
    if (lost_found_ != 0) return lost_found_;
    const auto named = table_.root_names.find("lost+found");
    const ObjectSummary* there = named == table_.root_names.end() ? nullptr : find(named->second);
    if (there != nullptr && there->is_directory()) return lost_found_ = named->second;
    std::string name = "lost+found";
    for (unsigned i = 1; table_.root_names.contains(name); ++i) name = fmt::format("lost+found.{}", i);
    lost_found_ = MDFS_OBJECT_LOST_FOUND;
    if (find(lost_found_) == nullptr) {
      format::Inode inode;
      inode.mode = kLostFoundMode;
      inode.links = 2;
      inode.parent = kRoot;
      edits_.items[{lost_found_, MDFS_KIND_INODE, 0}] = PutItem{format::encode(inode)};
    }
    put_entry(kRoot, name, lost_found_, kLostFoundMode);
    return lost_found_;
  }

  // Counts and links of what is attached are put right by the round that follows.
  void attach(std::uint64_t number) {
    if (number == MDFS_OBJECT_LOST_FOUND) {
      lost_found_ = 0;
      (void)lost_found();
      return;
    }
    const std::uint64_t home = lost_found();
    ObjectSummary* object = find(number);
    put_entry(home, fmt::format("#{}", number), number, object->mode);
    if (object->is_directory()) edits_.inodes[number].parent = home;
    attached_.insert(number);
  }

  void put_entry(std::uint64_t directory, const std::string& name, std::uint64_t inode, std::uint32_t mode) {
    const std::uint64_t first = format::first_cookie(table_.secret, name);
    std::uint64_t cookie = first;
    const auto taken = [&](std::uint64_t wanted) {
      const auto at = std::lower_bound(
          table_.entries.begin(), table_.entries.end(), std::pair(directory, wanted),
          [](const EntrySummary& entry, const auto& key) { return std::pair(entry.directory, entry.cookie) < key; });
      if (at != table_.entries.end() && at->directory == directory && at->cookie == wanted) return true;
      return edits_.items.contains({directory, MDFS_KIND_DIRENT, wanted});
    };
    while (taken(cookie)) ++cookie;
    // lost+found, made just now, is no object of the table yet; its names are few and new.
    if (ObjectSummary* above = find(directory); above != nullptr && cookie - first > above->reach) {
      above->reach = static_cast<std::uint32_t>(cookie - first);
      edits_.inodes[directory].reach = above->reach;
    }
    edits_.items[{directory, MDFS_KIND_DIRENT, cookie}] =
        PutItem{format::encode(format::Dirent{inode, type_of(mode), name})};
  }

  void check_counts() {
    for (const EntrySummary& entry : table_.entries) {
      if (entry.dropped || entry.is_level) continue;
      ObjectSummary* directory = find(entry.directory);
      ++directory->found_entries;
      if (find(entry.inode)->is_directory()) ++directory->subdirectories;
    }
    for (auto& [number, object] : table_.objects) {
      if (edits_.erased_objects.contains(number) || attached_.contains(number)) continue;
      if (object.orphan && object.names > 0 && object.leftovers) {
        findings_.add(FindingId::kOrphan, fmt::format("object {}: data left by its becoming an image", number),
                      {number});
      } else if (object.orphan && object.names > 0) {
        findings_.add(FindingId::kOrphanStray, fmt::format("object {} has a name", number), {number});
        edits_.items[{MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, number}] = EraseItem{};
      }
      const std::uint32_t links = object.is_directory() ? 2 + object.subdirectories : object.names;
      if (links != object.links) {
        findings_.add(FindingId::kLinkCount, fmt::format("object {}: {}, found {}", number, object.links, links),
                      {number});
        edits_.inodes[number].links = links;
      }
      if (object.found_entries != object.entries) {
        findings_.add(FindingId::kDirectoryEntries,
                      fmt::format("directory {}: {}, found {}", number, object.entries, object.found_entries),
                      {number});
        edits_.inodes[number].entries = object.found_entries;
      }
    }
  }

  void check_placements() {
    std::set<std::uint64_t> missing;
    for (const auto& [number, object] : table_.objects)
      if (object.placement != 0 && !table_.placements.contains(object.placement)) missing.insert(object.placement);
    if (missing.empty()) return;
    constexpr unsigned kRank = 3;  // of most images; a lost placement costs others speed
    std::vector<std::uint16_t> all(disks_);
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    const ByteVector value = format::encode(geometry::default_placement(kRank, all));
    for (const std::uint64_t id : missing) {
      findings_.add(FindingId::kPlacementMissing, fmt::format("placement {}", id));
      edits_.items[{MDFS_OBJECT_VOLUME, MDFS_KIND_PLACEMENT, id}] = PutItem{value};
    }
  }

  ObjectTable& table_;
  const std::size_t disks_;
  Findings& findings_;
  Edits& edits_;
  std::map<std::uint64_t, std::size_t> name_;  // of each directory: its entry
  std::set<std::uint64_t> attached_;
  std::uint64_t lost_found_ = 0;
};

}  // namespace

void check_names(ObjectTable& table, std::size_t disks, Findings& findings, Edits& edits) {
  NameChecker(table, disks, findings, edits).run();
}

}  // namespace mdfs::store
