// Reading the whole tree.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/tree_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/checked.h"

namespace mdfs::store {
namespace {

using format::Address;
using format::Key;

std::string name_of(const NodeRef& ref) {
  std::string places;
  for (const Address& place : ref.pointer.places()) places += fmt::format(" {}:{}", place.disk, place.block);
  return fmt::format("level {} at{}, keys from {}", ref.level, places, to_string(ref.lower));
}

// Marks the blocks of a node; what does not lie right is reported.
void place(NodeRef& ref, BlockMap& blocks, Findings& findings, TreeScan& scan) {
  for (const Address& address : ref.pointer.places()) {
    const std::uint32_t block_size = blocks.layouts().front().block_size();
    const format::Run run{address.disk, address.block, static_cast<std::uint32_t>(format::node_blocks(block_size))};
    if (blocks.holds(run) && blocks.mark(run)) continue;
    // Findings of an earlier section have been reported.
    if (blocks.section_begin() > 0 && (!blocks.holds(run) || (ref.moved && blocks.begins_before(run)))) continue;
    findings.add(FindingId::kNodeMisplaced, name_of(ref));
    ref.moved = true;
    scan.must_rewrite = true;
  }
}

std::vector<NodeRef> children(const NodeRef& parent, const format::Node& node) {
  std::vector<NodeRef> refs(node.branches.size());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    refs[i].pointer = node.branches[i].pointer;
    refs[i].level = static_cast<std::uint16_t>(node.level - 1);
    refs[i].lower = i == 0 ? parent.lower : node.branches[i].key;
    refs[i].upper = i + 1 < refs.size() ? key_before(node.branches[i + 1].key) : parent.upper;
  }
  return refs;
}

// Reports the findings of one loaded node of any level.
void report(NodeRef& ref, const LoadedNode& loaded, Findings& findings, TreeScan& scan) {
  if (!loaded.node) {
    findings.add(FindingId::kNodeLost, name_of(ref) + ": " + loaded.why);
    ref.lost = true;
    scan.must_rewrite = true;
    return;
  }
  ++scan.nodes;
  for (const std::size_t copy : loaded.bad_copies) {
    findings.add(FindingId::kNodeCopyDamaged, fmt::format("{}, copy {}: {}", name_of(ref), copy, loaded.why));
    if (!ref.moved) scan.to_repair.push_back({ref.pointer, copy});
  }
}

NodeRef lost_leaf(const NodeRef& ref) {
  NodeRef leaf = ref;
  leaf.level = 0;
  leaf.lost = true;
  return leaf;
}

}  // namespace

Key key_before(const Key& key) {
  if (key.offset > 0) return {key.object, key.kind, key.offset - 1};
  if (key.kind > 0) return {key.object, key.kind - 1, UINT64_MAX};
  return {key.object - 1, UINT64_MAX, UINT64_MAX};
}

std::string to_string(const Key& key) { return fmt::format("({}, {}, {})", key.object, key.kind, key.offset); }

std::vector<LoadedNode> NodeLoader::load(std::span<const NodeRef> refs) const {
  struct Copy {
    std::size_t ref;
    std::size_t copy;
    AlignedBuffer buffer;
    device::Io io;
  };
  std::vector<LoadedNode> loaded(refs.size());
  std::vector<Copy> copies;
  copies.reserve(refs.size() * MDFS_MAX_COPIES);
  std::vector<device::Addressed> requests;
  for (std::size_t i = 0; i < refs.size(); ++i)
    for (std::size_t c = 0; c < refs[i].pointer.copies; ++c) {
      const Address address = refs[i].pointer.address[c];
      if (address.disk >= layouts_.size()) continue;
      const format::DiskLayout& layout = layouts_[address.disk];
      if (!layout.is_usable(address.block, format::node_blocks(layout.block_size()))) continue;
      if (!volume_.members[address.disk].healthy()) continue;
      Copy& copy = copies.emplace_back(Copy{i, c, AlignedBuffer(MDFS_NODE_SIZE), {}});
      copy.io.offset = address.block * layout.block_size();
      copy.io.buffers = {copy.buffer.bytes()};
      requests.push_back({volume_.members[address.disk].disk.get(), &copy.io});
    }
  (void)device::run(requests);  // each request's own status counts
  for (Copy& copy : copies) {
    const NodeRef& ref = refs[copy.ref];
    LoadedNode& result = loaded[copy.ref];
    Status status = copy.io.status;
    if (status.ok()) {
      auto node = format::decode_node(copy.buffer.bytes(), {volume_.label.volume_uuid, ref.pointer, MDFS_ROOT_MAIN,
                                                            ref.level, ref.lower, ref.upper});
      if (node.ok() && !result.node) result.node = std::move(*node);
      if (!node.ok()) status = node.error();
    }
    if (status.ok()) continue;
    result.bad_copies.push_back(copy.copy);
    result.why = status.error().message();
  }
  for (LoadedNode& result : loaded)
    if (!result.node && result.why.empty()) result.why = "no copy lies on a disk that is here";
  return loaded;
}

Result<AlignedBuffer> NodeLoader::read_good(const format::Pointer& pointer) const {
  for (const Address& address : pointer.places()) {
    if (address.disk >= layouts_.size() || !volume_.members[address.disk].healthy()) continue;
    AlignedBuffer buffer(MDFS_NODE_SIZE);
    const std::uint64_t offset = address.block * layouts_[address.disk].block_size();
    if (!device::read(*volume_.members[address.disk].disk, offset, buffer.bytes()).ok()) continue;
    if (format::verify(pointer, buffer.bytes()).ok()) return buffer;
  }
  return {Errc::kCorrupt, "no copy of a node is good"};
}

Result<TreeScan> scan_tree(const NodeLoader& loader, const format::Root& root, BlockMap& blocks, Findings& findings,
                           const LeafVisitor& leaf, const MemoryLimit& limit) {
  TreeScan scan;
  NodeRef top;
  top.pointer = root.pointer;
  top.level = root.level;
  std::vector<NodeRef> current = {top};
  for (NodeRef& ref : current) place(ref, blocks, findings, scan);
  for (std::uint16_t level = root.level;; --level) {
    // The leaves stay where they are: there may be very many.
    std::vector<NodeRef> next;
    // A vector that grows by itself takes twice the memory; the count may be wrong, and more than there can be.
    if (level == 1) next.reserve(std::min<std::uint64_t>(root.nodes, current.size() * format::kMaxBranches));
    for (std::size_t first = 0; first < current.size(); first += NodeLoader::kBatch) {
      if (limit) MDFS_TRY(limit((current.capacity() + next.capacity() + scan.interiors.capacity()) * sizeof(NodeRef)));
      const std::size_t count = std::min(NodeLoader::kBatch, current.size() - first);
      // Subtrees lost above are carried along, so that the leaves tile all keys.
      std::vector<NodeRef> wanted;
      for (std::size_t i = first; i < first + count; ++i)
        if (!current[i].lost) wanted.push_back(current[i]);
      std::vector<LoadedNode> loaded = loader.load(wanted);
      std::size_t at = 0;
      for (std::size_t i = first; i < first + count; ++i) {
        NodeRef& ref = current[i];
        if (ref.lost) {
          if (level > 0) next.push_back(lost_leaf(ref));
          continue;
        }
        LoadedNode& node = loaded[at++];
        report(ref, node, findings, scan);
        if (level == 0) {
          if (ref.lost) ref = lost_leaf(ref);
          if (node.node) leaf(*node.node);
          continue;
        }
        if (ref.lost) {
          next.push_back(lost_leaf(ref));
          continue;
        }
        scan.interiors.push_back(ref);
        for (NodeRef& child : children(ref, *node.node)) {
          place(child, blocks, findings, scan);
          next.push_back(child);
        }
      }
    }
    if (level == 0) break;
    current = std::move(next);
  }
  scan.leaves = std::move(current);
  if (scan.nodes != root.nodes && !scan.must_rewrite)
    findings.add(FindingId::kNodeCount, fmt::format("{} found, {} expected", scan.nodes, root.nodes));
  return scan;
}

void scan_again(const NodeLoader& loader, TreeScan& scan, BlockMap& blocks, Findings& findings,
                const LeafVisitor& leaf) {
  for (NodeRef& ref : scan.interiors) place(ref, blocks, findings, scan);
  for (NodeRef& ref : scan.leaves) place(ref, blocks, findings, scan);  // a lost subtree is one of them
  std::vector<NodeRef> wanted;
  for (std::size_t i = 0; i <= scan.leaves.size(); ++i) {
    if (i < scan.leaves.size() && !scan.leaves[i].lost) wanted.push_back(scan.leaves[i]);
    if (wanted.size() < NodeLoader::kBatch && i < scan.leaves.size()) continue;
    for (const LoadedNode& loaded : loader.load(wanted))
      if (loaded.node) leaf(*loaded.node);
    wanted.clear();
  }
}

}  // namespace mdfs::store
