// Reading the nodes of a commit.
// SPDX-License-Identifier: Apache-2.0
#include "store/commit_nodes.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/aligned_buffer.h"
#include "format/layout.h"
#include "format/node.h"

namespace mdfs::store {
namespace {

// A node by what its parent says, without its address.
struct Wanted {
  format::Pointer pointer;
  std::uint16_t level = 0;
  format::Key lower = format::kMinKey;
  format::Key upper = format::kMaxKey;
};

device::Disk* disk_of(std::span<device::Disk* const> disks, const format::Address& address) {
  return address.disk < disks.size() ? disks[address.disk] : nullptr;
}

format::NodeExpectation expectation_of(const format::CommitSlot& slot, const Wanted& wanted) {
  format::NodeExpectation expectation;
  expectation.volume_uuid = slot.volume_uuid;
  expectation.pointer = wanted.pointer;
  expectation.level = wanted.level;
  expectation.lower = wanted.lower;
  expectation.upper = wanted.upper;
  return expectation;
}

// The node below a branch of a node.
Wanted below(const Wanted& wanted, const format::Node& node, std::size_t branch) {
  const bool last = branch + 1 == node.branches.size();
  // The first branch of a node may stand for anything smaller than its key.
  return {node.branches[branch].pointer, static_cast<std::uint16_t>(node.level - 1),
          branch == 0 ? wanted.lower : node.branches[branch].key, last ? wanted.upper : node.branches[branch + 1].key};
}

// The first good copy of one node.
Result<format::Node> read_node(const format::CommitSlot& slot, const Wanted& wanted,
                               std::span<device::Disk* const> disks, std::uint32_t block_size) {
  AlignedBuffer buffer(MDFS_NODE_SIZE);
  for (std::size_t copy = 0; copy < wanted.pointer.copies; ++copy) {
    const format::Address& address = wanted.pointer.address[copy];
    device::Disk* disk = disk_of(disks, address);
    if (disk == nullptr || !device::read(*disk, address.block * block_size, buffer.bytes()).ok()) continue;
    auto node = format::decode_node(buffer.bytes(), expectation_of(slot, wanted));
    if (node.ok()) return node;
  }
  return Error{Errc::kCorrupt, "no good copy of a tree node"};
}

// All copies of one node. kCorrupt if none is good.
Result<format::Node> read_copies(const format::CommitSlot& slot, const Wanted& wanted,
                                 std::span<device::Disk* const> disks, std::uint32_t block_size, CommitNodes& nodes) {
  const format::NodeExpectation expectation = expectation_of(slot, wanted);
  std::optional<format::Node> found;
  std::size_t good = 0;
  std::vector<std::size_t> bad;
  AlignedBuffer buffer(MDFS_NODE_SIZE);
  for (std::size_t copy = 0; copy < wanted.pointer.copies; ++copy) {
    const format::Address& address = wanted.pointer.address[copy];
    nodes.runs.push_back({address.disk, address.block, static_cast<std::uint32_t>(format::node_blocks(block_size))});
    device::Disk* disk = disk_of(disks, address);
    if (disk == nullptr) continue;
    const Status read = device::read(*disk, address.block * block_size, buffer.bytes());
    auto node = read.ok() ? format::decode_node(buffer.bytes(), expectation) : read.error();
    if (!node.ok()) {
      bad.push_back(copy);
    } else if (!found) {
      found = std::move(*node);
      good = copy;
    }
  }
  if (!found) return Error{Errc::kCorrupt, "no good copy of a tree node"};
  for (const std::size_t copy : bad) nodes.bad.push_back({wanted.pointer, copy, good});
  return std::move(*found);
}

// Copies of nodes that the records have room for.
std::uint64_t most_copies(const format::CommitSlot& slot) {
  std::uint64_t bytes = 0;
  for (const format::ChecksumRecord& record : slot.checksum_records) bytes += record.bytes();
  return bytes / MDFS_NODE_SIZE;
}

}  // namespace

Result<CommitNodes> read_commit_nodes(const format::CommitSlot& slot, std::span<device::Disk* const> disks,
                                      std::uint32_t block_size) {
  CommitNodes nodes;
  const std::uint64_t most = most_copies(slot);
  std::vector<Wanted> to_read;
  const format::Root& root = *slot.root(MDFS_ROOT_MAIN);
  if (root.pointer.birth == slot.generation) to_read.push_back({root.pointer, root.level});
  while (!to_read.empty()) {
    const Wanted wanted = to_read.back();
    to_read.pop_back();
    MDFS_TRY_ASSIGN(format::Node node, read_copies(slot, wanted, disks, block_size, nodes));
    if (nodes.runs.size() > most) return Error{Errc::kCorrupt, "more tree nodes than the records of the commit cover"};
    for (std::size_t i = 0; i < node.branches.size(); ++i)
      if (node.branches[i].pointer.birth == slot.generation) to_read.push_back(below(wanted, node, i));
    std::move(node.items.begin(), node.items.end(), std::back_inserter(nodes.items));
    if (to_read.size() > most) return Error{Errc::kCorrupt, "more tree nodes than the records of the commit cover"};
  }
  return nodes;
}

Result<std::optional<ByteVector>> read_item(const format::CommitSlot& slot, std::span<device::Disk* const> disks,
                                            std::uint32_t block_size, const format::Key& key) {
  const format::Root& root = *slot.root(MDFS_ROOT_MAIN);
  Wanted wanted{root.pointer, root.level};
  for (;;) {
    MDFS_TRY_ASSIGN(format::Node node, read_node(slot, wanted, disks, block_size));
    if (node.is_leaf()) {
      const auto item = std::find_if(node.items.begin(), node.items.end(),
                                     [&](const format::LeafItem& one) { return one.key == key; });
      return item == node.items.end() ? std::optional<ByteVector>() : std::optional(std::move(item->value));
    }
    const auto above = std::upper_bound(
        node.branches.begin(), node.branches.end(), key,
        [](const format::Key& wanted_key, const format::Branch& branch) { return wanted_key < branch.key; });
    wanted = below(wanted, node, above == node.branches.begin() ? 0 : std::size_t(above - node.branches.begin() - 1));
  }
}

Status repair_copies(std::span<const BadNodeCopy> copies, std::span<device::Disk* const> disks,
                     std::uint32_t block_size) {
  AlignedBuffer buffer(MDFS_NODE_SIZE);
  for (const BadNodeCopy& copy : copies) {
    const format::Address& from = copy.pointer.address[copy.good];
    const format::Address& to = copy.pointer.address[copy.bad];
    device::Disk* source = disk_of(disks, from);
    device::Disk* target = disk_of(disks, to);
    if (source == nullptr || target == nullptr) continue;
    MDFS_TRY(device::read(*source, from.block * block_size, buffer.bytes()));
    MDFS_TRY(format::verify(copy.pointer, buffer.bytes()));
    MDFS_TRY(device::write(*target, to.block * block_size, buffer.bytes()));
  }
  return {};
}

}  // namespace mdfs::store
