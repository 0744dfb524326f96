// Checks that the items of each object make sense together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/dirent.h"
#include "format/file_cell.h"
#include "format/inode.h"
#include "format/key.h"
#include "format/node.h"
#include "geometry/geometry.h"
#include "store/check/block_map.h"
#include "store/check/edits.h"
#include "store/check/findings.h"
#include "store/check/stored_data.h"

namespace mdfs::store {

// The item with the copies of extents of a page, to be compared with the records there.
struct CopyPageRef {
  format::Key key;
  format::ExtentTableShape shape;
};

using DataVisitor = std::function<void(StoredData data)>;

// Kept for each object until all items have been seen.
struct ObjectSummary {
  std::uint32_t mode = 0;
  std::uint32_t links = 0;
  std::uint64_t parent = 0;
  std::uint64_t entries = 0;
  std::uint64_t placement = 0;
  std::uint32_t reach = 0;
  // Counted while the items pass:
  std::uint32_t names = 0;
  std::uint32_t subdirectories = 0;
  std::uint64_t found_entries = 0;
  bool is_image = false;
  bool orphan = false;
  bool leftovers = false;  // data of the kind that the object no longer has

  bool is_directory() const;
};

// A name in a directory.
struct EntrySummary {
  std::uint64_t directory = 0;
  std::uint64_t cookie = 0;
  std::uint64_t inode = 0;
  std::uint8_t type = 0;
  bool dropped = false;
  bool is_level = false;  // not a name in a directory, but the item of level `cookie` of the image `directory`
};

// The facts of all items together, for check_names().
struct ObjectTable {
  std::unordered_map<std::uint64_t, ObjectSummary> objects;
  std::vector<EntrySummary> entries;  // in order of directory and cookie
  std::set<std::uint64_t> orphans;
  std::set<std::uint64_t> placements;
  std::vector<std::pair<format::Key, format::Key>> lost;  // first and last key of ranges whose items are lost
  std::vector<CopyPageRef> copy_pages;                    // in order of keys
  std::vector<std::uint64_t> files_with_copies;           // in order
  std::map<std::string, std::uint64_t> root_names;        // names that may collide with lost+found
  struct MovedEntry {                                     // to be put under the right hash
    std::uint64_t directory = 0;
    std::uint64_t inode = 0;
    std::string name;
  };
  std::vector<MovedEntry> moved;
  format::NameSecret secret{};  // of the names: the volume's, or a new one
  std::uint64_t highest_object = 0;
};

// Takes every item of the tree in order of keys. Marks the blocks of data, reports items that make no sense, and notes
// their repair. One thread.
class ItemChecker {
 public:
  // `on_data` may be empty. A pass for a further section of `blocks` only reports blocks that are used twice.
  // `new_secret` becomes the secret of names if the volume has lost its own. `has_copies`: the volume has the feature.
  ItemChecker(std::uint32_t block_size, BlockMap& blocks, Findings& findings, Edits& edits, DataVisitor on_data,
              const format::NameSecret& new_secret, bool has_copies)
      : block_size_(block_size),
        has_copies_(has_copies),
        blocks_(blocks),
        again_(blocks.section_begin() > 0),
        findings_(findings),
        edits_(edits),
        on_data_(std::move(on_data)) {
    table_.secret = new_secret;
  }

  void item(const format::Key& key, ConstBytes value);
  void finish();

  ObjectTable& table() { return table_; }
  std::uint64_t items() const { return items_; }

 private:
  // The object whose items are being taken.
  struct Current {
    std::uint64_t number = 0;
    std::optional<format::Inode> inode;
    std::optional<geometry::Geometry> geometry;
    format::ExtentTableShape shape;
    bool has_target = false;
    bool given_up = false;
    std::uint64_t stored_blocks = 0;
    std::map<std::uint64_t, StoredData> scattered;            // by page * 64 + place: their runs are still to come
    std::map<std::uint64_t, std::uint32_t> scattered_copies;  // the same of copies, with their bytes
    // Recent names, as far back as the reach of their directory, which a damaged inode may give as very far. A name is
    // identified by the hash of its cookie and another hash.
    using NameId = std::pair<std::uint64_t, std::size_t>;
    std::deque<std::pair<std::uint64_t, NameId>> near;  // by cookie
    std::map<NameId, unsigned> near_names;              // with their numbers
    // By cookie, values whose further parts are to come: the new place of the name's item, or none, and the parts so
    // far.
    struct LongValue {
      std::uint32_t rest_length = 0;
      std::uint64_t new_cookie = 0;
      unsigned found = 0;
    };
    std::map<std::uint64_t, LongValue> long_values;
    std::uint64_t strip_page = 0;  // whose strips are being taken
    std::map<unsigned, std::vector<std::pair<std::uint32_t, std::uint32_t>>> strip_ranges;  // of its extents, so far
  };

  void secret_item(const format::Key& key, ConstBytes value);
  // The volume's own secret has not come, and no later item may hold it: all names get new hashes.
  void secret_is_lost();
  void volume_item(const format::Key& key, ConstBytes value);
  void inode(const format::Key& key, ConstBytes value);
  void inline_bytes(const format::Key& key, ConstBytes value);
  void symlink(const format::Key& key, ConstBytes value);
  void dirent(const format::Key& key, ConstBytes value);
  void xattr(const format::Key& key, ConstBytes value);
  void xattr_rest(const format::Key& key, ConstBytes value);
  void finish_xattrs();
  void geometry(const format::Key& key, ConstBytes value);
  void extents(const format::Key& key, ConstBytes value);
  void extent(const format::Key& key, unsigned place, const format::ExtentRecord& record);
  void extent_runs(const format::Key& key, ConstBytes value);
  void copies(const format::Key& key, ConstBytes value);
  void copy_runs(const format::Key& key, ConstBytes value);
  void finish_copies();
  void strip(const format::Key& key, ConstBytes value);
  void file_cell(const format::Key& key, ConstBytes value);
  void cell_copies(const format::Key& key, ConstBytes value);
  // Marks the blocks of a cell, or of its copies. Passes them to the visitor if `to_visitor`.
  void use_cell(const format::Key& key, const format::FileCell& cell, bool to_visitor);
  void level(const format::Key& key, ConstBytes value);
  void finish_object();
  void give_up(FindingId id, const std::string& why);
  void misplaced(const format::Key& key);
  void damaged(const format::Key& key, const Error& error);
  bool page_is_inside(std::uint64_t page) const;
  bool place_is_inside(std::uint64_t page, unsigned place) const;
  // True if data of an image or of another file, by `image`, belong to the object, perhaps only until they are freed.
  bool takes_data(bool image);
  // Marks the blocks of a record; false if they cannot belong to it.
  bool use(const format::Key& key, unsigned part, const format::Runs& runs);
  FixRecords& records_fix(const format::Key& key);
  // In the first pass only.
  void report(FindingId id, std::string where, About about = {});
  void edit(const format::Key& key, ItemEdit change);
  void erase_record(const format::Key& key, unsigned part);

  const std::uint32_t block_size_;
  const bool has_copies_;
  BlockMap& blocks_;
  const bool again_;
  Findings& findings_;
  Edits& edits_;
  DataVisitor on_data_;
  ObjectTable table_;
  Current current_;
  FixRecords unused_;  // for records of a page that is removed as a whole
  std::uint64_t items_ = 0;
  bool secret_passed_ = false;  // found, or given up
  bool secret_lost_ = false;
};

// Checks names, link counts, directories and reachability, and that each object's placement exists. `disks`: their
// number in the volume.
void check_names(ObjectTable& table, std::size_t disks, Findings& findings, Edits& edits);

}  // namespace mdfs::store
