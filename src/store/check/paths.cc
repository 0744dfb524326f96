// Paths of what findings are about.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/paths.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "format/dirent.h"

namespace mdfs::store {
namespace {

using format::Key;

constexpr std::uint8_t kDirectoryType = S_IFDIR >> 12;
constexpr std::size_t kMostBytes = 4096;  // of a path

class PathFinder {
 public:
  PathFinder(const ObjectTable& table, const std::vector<Finding>& findings) : table_(table) {
    for (const Finding& finding : findings)
      if (finding.about.object != 0) wanted_.insert(finding.about.object);
  }

  void run(const TreeScan& tree, const NodeLoader& loader, std::vector<Finding>& findings) {
    if (wanted_.empty()) return;
    choose_entries();
    for (const Finding& finding : findings) {
      if (finding.about.cookie != 0) names_[entry_key(finding.about)];
      climb(finding.about.object);
    }
    read_names(tree, loader);
    for (Finding& finding : findings)
      if (finding.about.object != 0) finding.path = path_of(finding.about).value_or("");
  }

 private:
  static Key entry_key(const About& about) { return {about.object, MDFS_KIND_DIRENT, about.cookie}; }

  bool is_directory(const EntrySummary& entry) const {
    const auto object = table_.objects.find(entry.inode);
    return entry.type == kDirectoryType || (object != table_.objects.end() && object->second.is_directory());
  }

  // One entry of each object that is wanted, and of all directories; rather one that is good.
  void choose_entries() {
    for (const EntrySummary& entry : table_.entries) {
      if (!wanted_.contains(entry.inode) && !is_directory(entry)) continue;
      const auto [kept, is_first] = entry_.try_emplace(entry.inode, &entry);
      if (!is_first && kept->second->dropped && !entry.dropped) kept->second = &entry;
    }
  }

  // Notes the names of an object and of the directories above it, as far as they are not noted yet.
  void climb(std::uint64_t object) {
    while (object != MDFS_OBJECT_ROOT_DIRECTORY) {
      const auto found = entry_.find(object);
      if (found == entry_.end()) return;
      const EntrySummary& entry = *found->second;
      if (!names_.try_emplace(entry_key({entry.directory, entry.cookie})).second) return;
      object = entry.directory;
    }
  }

  // Leaf by leaf, in order of keys, as both are.
  void read_names(const TreeScan& tree, const NodeLoader& loader) {
    for (auto name = names_.begin(); name != names_.end();) {
      const auto leaf = std::partition_point(tree.leaves.begin(), tree.leaves.end(),
                                             [&](const NodeRef& one) { return one.upper < name->first; });
      if (leaf == tree.leaves.end()) return;
      std::vector<LoadedNode> loaded;
      if (!leaf->lost) loaded = loader.load({&*leaf, 1});
      for (; name != names_.end() && !(leaf->upper < name->first); ++name)
        if (!loaded.empty() && loaded.front().node) name->second = name_in(*loaded.front().node, name->first);
    }
  }

  static std::string name_in(const format::Node& leaf, const Key& key) {
    const auto item = std::lower_bound(leaf.items.begin(), leaf.items.end(), key,
                                       [](const format::LeafItem& one, const Key& wanted) { return one.key < wanted; });
    if (item == leaf.items.end() || item->key != key) return {};
    const auto entry = format::decode_dirent(item->value);
    return entry.ok() ? entry->name : std::string();
  }

  // Nothing if it is not known, or too long; directories that lie in each other come to an end by the latter.
  std::optional<std::string> path_of(const About& about) const {
    std::string path;
    const auto prepend = [&](const Key& key) {
      const auto name = names_.find(key);
      if (name == names_.end() || name->second.empty() || path.size() + name->second.size() > kMostBytes) return false;
      path.insert(0, "/" + name->second);
      return true;
    };
    if (about.cookie != 0 && !prepend(entry_key(about))) return std::nullopt;
    for (std::uint64_t object = about.object; object != MDFS_OBJECT_ROOT_DIRECTORY;) {
      const auto found = entry_.find(object);
      if (found == entry_.end()) return std::nullopt;
      object = found->second->directory;
      if (!prepend(entry_key({object, found->second->cookie}))) return std::nullopt;
    }
    return path.empty() ? "/" : path;
  }

  const ObjectTable& table_;
  std::unordered_set<std::uint64_t> wanted_;
  std::unordered_map<std::uint64_t, const EntrySummary*> entry_;  // by which an object is named here
  std::map<Key, std::string> names_;                              // of entries; empty: cannot be read
};

}  // namespace

void find_paths(const ObjectTable& table, const TreeScan& tree, const NodeLoader& loader,
                std::vector<Finding>& findings) {
  PathFinder(table, findings).run(tree, loader, findings);
}

}  // namespace mdfs::store
