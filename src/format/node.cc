// Nodes of the tree.
// SPDX-License-Identifier: Apache-2.0
#include "format/node.h"

#include "base/checked.h"
#include "base/crc32c.h"
#include "format/fields.h"

namespace mdfs::format {
namespace {

constexpr std::size_t kHeader = sizeof(mdfs_node_header);

std::size_t branch_offset(std::size_t i) { return kHeader + i * sizeof(mdfs_branch); }
std::size_t slot_offset(std::size_t i) { return kHeader + i * sizeof(mdfs_leaf_slot); }

template <typename Entry>
bool ascending(const std::vector<Entry>& entries) {
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (!(entries[i - 1].key < entries[i].key)) return false;
  return true;
}

template <typename Entry>
Status check_keys(const std::vector<Entry>& entries, const NodeExpectation& expectation) {
  MDFS_FORMAT_REQUIRE(ascending(entries), "node.key-order");
  if (entries.empty()) return {};
  MDFS_FORMAT_REQUIRE(entries.front().key >= expectation.lower, "node.key-range");
  MDFS_FORMAT_REQUIRE(entries.back().key <= expectation.upper, "node.key-range");
  return {};
}

void encode_leaf(const Node& node, MutableBytes out) {
  std::size_t end = MDFS_NODE_SIZE;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const LeafItem& item = node.items[i];
    MDFS_CHECK(item.value.size() <= MDFS_MAX_ITEM);
    end -= item.value.size();
    std::copy(item.value.begin(), item.value.end(), out.subspan(end, item.value.size()).begin());
    encode(item.key, out, slot_offset(i));
    MDFS_PUT(out, slot_offset(i), mdfs_leaf_slot, data_offset, static_cast<std::uint32_t>(end));
    MDFS_PUT(out, slot_offset(i), mdfs_leaf_slot, length, static_cast<std::uint32_t>(item.value.size()));
  }
  MDFS_PUT(out, 0, mdfs_node_header, item_count, static_cast<std::uint16_t>(node.items.size()));
  MDFS_PUT(out, 0, mdfs_node_header, used, static_cast<std::uint32_t>(MDFS_NODE_SIZE - end));
}

void encode_interior(const Node& node, MutableBytes out) {
  for (std::size_t i = 0; i < node.branches.size(); ++i) {
    encode(node.branches[i].key, out, branch_offset(i) + offsetof(mdfs_branch, key));
    encode(node.branches[i].pointer, out, branch_offset(i) + offsetof(mdfs_branch, pointer));
  }
  MDFS_PUT(out, 0, mdfs_node_header, item_count, static_cast<std::uint16_t>(node.branches.size()));
}

Status decode_header(ConstBytes bytes, const NodeExpectation& expectation, Node& node) {
  MDFS_FORMAT_REQUIRE(has_text(bytes, offsetof(mdfs_node_header, magic), MDFS_NODE_MAGIC), "node.magic");
  node.volume_uuid = get_uuid(bytes, offsetof(mdfs_node_header, volume_uuid));
  MDFS_FORMAT_REQUIRE(node.volume_uuid == expectation.volume_uuid, "node.volume-uuid");
  node.generation = MDFS_GET(bytes, 0, mdfs_node_header, generation);
  MDFS_FORMAT_REQUIRE(node.generation == expectation.pointer.birth, "node.generation");
  node.owner = MDFS_GET(bytes, 0, mdfs_node_header, owner);
  MDFS_FORMAT_REQUIRE(node.owner == expectation.owner, "node.owner");
  for (std::size_t i = 0; i < MDFS_MAX_COPIES; ++i)
    node.address[i] = Address::unpack(load_le<std::uint64_t>(bytes, offsetof(mdfs_node_header, address) + 8 * i));
  MDFS_FORMAT_REQUIRE(node.address == expectation.pointer.address, "node.address");
  node.level = MDFS_GET(bytes, 0, mdfs_node_header, level);
  MDFS_FORMAT_REQUIRE(node.level <= kMaxTreeLevel && (!expectation.level || node.level == *expectation.level),
                      "node.level");
  return {};
}

Status decode_leaf(ConstBytes bytes, std::size_t count, Node& node) {
  MDFS_FORMAT_REQUIRE(count <= kNodeRoom / sizeof(mdfs_leaf_slot), "node.item-count");
  node.items.resize(count);
  std::size_t end = MDFS_NODE_SIZE;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t base = slot_offset(i);
    const std::size_t offset = MDFS_GET(bytes, base, mdfs_leaf_slot, data_offset);
    const std::size_t length = MDFS_GET(bytes, base, mdfs_leaf_slot, length);
    MDFS_FORMAT_REQUIRE(length <= MDFS_MAX_ITEM, "node.item-size");
    MDFS_FORMAT_REQUIRE(length <= end - slot_offset(count) && offset == end - length, "node.item-data");
    end = offset;
    node.items[i].key = decode_key(bytes, base + offsetof(mdfs_leaf_slot, key));
    const ConstBytes value = bytes.subspan(offset, length);
    node.items[i].value.assign(value.begin(), value.end());
  }
  MDFS_FORMAT_REQUIRE(MDFS_GET(bytes, 0, mdfs_node_header, used) == MDFS_NODE_SIZE - end, "node.used");
  return {};
}

Status decode_interior(ConstBytes bytes, std::size_t count, Node& node) {
  MDFS_FORMAT_REQUIRE(count >= 1 && count <= kMaxBranches, "node.item-count");
  MDFS_FORMAT_REQUIRE(MDFS_GET(bytes, 0, mdfs_node_header, used) == 0, "node.used");
  node.branches.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    node.branches[i].key = decode_key(bytes, branch_offset(i) + offsetof(mdfs_branch, key));
    auto pointer = decode_pointer(bytes, branch_offset(i) + offsetof(mdfs_branch, pointer));
    MDFS_FORMAT_REQUIRE(
        pointer.ok() && !pointer->is_null() && pointer->birth <= node.generation && pointer->length == MDFS_NODE_SIZE,
        "node.branch");
    node.branches[i].pointer = *pointer;
  }
  return {};
}

}  // namespace

std::size_t leaf_bytes(const Node& leaf) {
  std::size_t sum = 0;
  for (const LeafItem& item : leaf.items) sum += leaf_item_bytes(item.value.size());
  return sum;
}

bool fits(const Node& node) {
  return node.is_leaf() ? leaf_bytes(node) <= kNodeRoom : node.branches.size() <= kMaxBranches;
}

void encode(const Node& node, MutableBytes out) {
  MDFS_CHECK(out.size() == MDFS_NODE_SIZE && fits(node) && ascending(node.items) && ascending(node.branches));
  MDFS_CHECK(node.is_leaf() ? node.branches.empty() : (node.items.empty() && !node.branches.empty()));
  std::fill(out.begin(), out.end(), std::byte{0});
  put_text(out, offsetof(mdfs_node_header, magic), MDFS_NODE_MAGIC);
  put_uuid(out, offsetof(mdfs_node_header, volume_uuid), node.volume_uuid);
  MDFS_PUT(out, 0, mdfs_node_header, generation, node.generation);
  MDFS_PUT(out, 0, mdfs_node_header, owner, node.owner);
  for (std::size_t i = 0; i < MDFS_MAX_COPIES; ++i)
    store_le<std::uint64_t>(out, offsetof(mdfs_node_header, address) + 8 * i, node.address[i].packed());
  MDFS_PUT(out, 0, mdfs_node_header, level, node.level);
  if (node.is_leaf())
    encode_leaf(node, out);
  else
    encode_interior(node, out);
}

Result<Node> decode_node(ConstBytes bytes, const NodeExpectation& expectation) {
  MDFS_FORMAT_REQUIRE(bytes.size() == MDFS_NODE_SIZE && expectation.pointer.length == MDFS_NODE_SIZE, "node.size");
  MDFS_FORMAT_REQUIRE(crc32c(bytes) == expectation.pointer.crc32c, "node.checksum");
  Node node;
  MDFS_TRY(decode_header(bytes, expectation, node));
  const std::size_t count = MDFS_GET(bytes, 0, mdfs_node_header, item_count);
  if (node.is_leaf()) {
    MDFS_TRY(decode_leaf(bytes, count, node));
    MDFS_TRY(check_keys(node.items, expectation));
  } else {
    MDFS_TRY(decode_interior(bytes, count, node));
    MDFS_TRY(check_keys(node.branches, expectation));
  }
  return node;
}

}  // namespace mdfs::format
