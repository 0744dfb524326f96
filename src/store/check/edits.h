// Changes of items by a repair.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "format/extents.h"
#include "format/key.h"

namespace mdfs::store {

// Fields of an inode that get a new value.
struct InodeFix {
  std::optional<std::uint32_t> links;
  std::optional<std::uint64_t> parent;
  std::optional<std::uint64_t> entries;
  std::optional<std::uint64_t> stored_bytes;
  std::optional<std::uint32_t> reach;
};

struct EraseItem {};
struct PutItem {
  ByteVector value;
};
struct FixType {
  std::uint8_t type = 0;  // of a directory entry
};
// shape[0] of a geometry.
struct FixShape {
  std::uint64_t shape0 = 0;
};
// The number of the copy of a strip's part, beside those of the parts.
constexpr unsigned copy_part(unsigned place) { return format::kMaxPlaces + place; }

// Extent records or file runs that are removed, or whose blocks are copied to another place. Copies whose blocks would
// have to move are removed.
struct FixRecords {
  std::optional<format::ExtentTableShape> shape;  // absent: a file cell, or its copies
  std::set<unsigned> erase;                       // places, or numbers of runs
  std::map<unsigned, format::Runs> move;          // with their new places
  std::optional<unsigned> end_block;              // of a file cell: blocks at or above this one are removed
  std::uint32_t erase_copies = 0;                 // of a file cell: blocks (a bit each) whose copies are removed
};

using ItemEdit = std::variant<EraseItem, PutItem, FixType, FixShape, FixRecords>;

// At most one change for each item. An erased object loses all its items.
struct Edits {
  std::map<format::Key, ItemEdit> items;
  std::map<std::uint64_t, InodeFix> inodes;
  std::set<std::uint64_t> erased_objects;

  bool empty() const { return items.empty() && inodes.empty() && erased_objects.empty(); }
  // True if any change lies in [lower, upper].
  bool touches(const format::Key& lower, const format::Key& upper) const;
};

}  // namespace mdfs::store
