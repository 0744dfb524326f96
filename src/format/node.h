// Nodes of the tree, in memory and as the MDFS_NODE_SIZE bytes on the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "format/key.h"
#include "format/pointer.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

inline constexpr unsigned kMaxTreeLevel = 16;
inline constexpr std::size_t kNodeRoom = MDFS_NODE_SIZE - sizeof(mdfs_node_header);
inline constexpr std::size_t kMaxBranches = kNodeRoom / sizeof(mdfs_branch);

struct Branch {
  Key key;
  Pointer pointer;
  bool operator==(const Branch&) const = default;
};

struct LeafItem {
  Key key;
  ByteVector value;
  bool operator==(const LeafItem&) const = default;
};

// A node in memory: a leaf (level 0) has items, an interior node has branches, both in ascending order of key.
struct Node {
  Uuid volume_uuid;
  std::uint64_t generation = 0;
  std::uint64_t owner = MDFS_ROOT_MAIN;
  std::array<Address, MDFS_MAX_COPIES> address{};  // as in the pointer; zero beyond its copies
  std::uint16_t level = 0;
  std::vector<Branch> branches;
  std::vector<LeafItem> items;

  bool operator==(const Node&) const = default;
  bool is_leaf() const { return level == 0; }
};

// Bytes that an item with a value of this size takes in a leaf, and that all items of a leaf take.
constexpr std::size_t leaf_item_bytes(std::size_t value_bytes) { return sizeof(mdfs_leaf_slot) + value_bytes; }
std::size_t leaf_bytes(const Node& leaf);
// True if the items take at most kNodeRoom, or the branches are at most kMaxBranches.
bool fits(const Node& node);

// Writes MDFS_NODE_SIZE bytes. The node fits, its keys ascend, no value is larger than MDFS_MAX_ITEM, and an interior
// node has a branch (else abort).
void encode(const Node& node, MutableBytes out);

// The expected values of a node, from its parent or the commit slot. Keys of the node lie in [lower, upper].
struct NodeExpectation {
  Uuid volume_uuid;
  Pointer pointer;
  std::uint64_t owner = MDFS_ROOT_MAIN;
  std::optional<std::uint16_t> level;  // not checked if absent
  Key lower = kMinKey;
  Key upper = kMaxKey;
};

// Total on any bytes. Checks, in order: node.size, node.checksum, node.magic, node.volume-uuid, node.generation,
// node.owner, node.address, node.level, node.item-count, node.key-order, node.key-range; interior: node.used,
// node.branch (a pointer that is null, younger than the node or no node's length); leaf: node.item-size,
// node.item-data (values lie packed from the end of the node, the first item's last), node.used.
// Items of unknown kinds are returned unchanged.
Result<Node> decode_node(ConstBytes bytes, const NodeExpectation& expectation);

}  // namespace mdfs::format
