// Writing a tree anew.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/tree_rewrite.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace mdfs::store {
namespace {

using format::Address;
using format::Key;
using format::LeafItem;
using format::Node;
using format::Pointer;

constexpr std::size_t kWritesAtOnce = 64;

}  // namespace

Result<format::Root> TreeRewriter::rewrite(const TreeScan& scan, const Edits& edits) {
  leaves_.clear();
  open_leaf_ = {};
  open_bytes_ = 0;
  nodes_ = 0;
  for (const NodeRef& leaf : scan.leaves) {
    if (!leaf.lost && !leaf.moved && !edits.touches(leaf.lower, leaf.upper)) {
      MDFS_TRY(end_leaf());
      leaves_.push_back({leaf.lower, leaf.pointer});
      ++nodes_;
      continue;
    }
    MDFS_TRY_ASSIGN(std::vector<LeafItem> items, edited(leaf, edits));
    MDFS_TRY(add_items(std::move(items)));
  }
  MDFS_TRY(end_leaf());
  if (leaves_.empty()) {
    MDFS_TRY_ASSIGN(const Pointer empty, write_node(Node{}));
    leaves_.push_back({format::kMinKey, empty});
  }
  MDFS_TRY_ASSIGN(format::Root root, build(std::move(leaves_)));
  MDFS_TRY(flush_writes());
  return root;
}

Status TreeRewriter::add_items(std::vector<LeafItem> items) {
  for (LeafItem& item : items) {
    const std::size_t bytes = format::leaf_item_bytes(item.value.size());
    if (open_bytes_ + bytes > format::kNodeRoom) MDFS_TRY(end_leaf());
    open_bytes_ += bytes;
    open_leaf_.items.push_back(std::move(item));
  }
  return {};
}

Status TreeRewriter::end_leaf() {
  if (open_leaf_.items.empty()) return {};
  const Key key = open_leaf_.items.front().key;
  MDFS_TRY_ASSIGN(const Pointer pointer, write_node(std::move(open_leaf_)));
  leaves_.push_back({key, pointer});
  open_leaf_ = {};
  open_bytes_ = 0;
  return {};
}

Result<format::Root> TreeRewriter::build(std::vector<Child> children) {
  std::uint16_t level = 0;
  while (children.size() > 1) {
    ++level;
    const std::size_t groups = ceil_div(children.size(), format::kMaxBranches);
    std::vector<Child> parents;
    for (std::size_t group = 0; group < groups; ++group) {
      Node node;
      node.level = level;
      const std::size_t last = children.size() * (group + 1) / groups;
      for (std::size_t i = children.size() * group / groups; i < last; ++i)
        node.branches.push_back({children[i].key, children[i].pointer});
      const Key key = node.branches.front().key;
      MDFS_TRY_ASSIGN(const Pointer pointer, write_node(std::move(node)));
      parents.push_back({key, pointer});
    }
    children = std::move(parents);
  }
  return format::Root{MDFS_ROOT_MAIN, level, nodes_, 0, children.front().pointer, {}};
}

Result<Address> TreeRewriter::place_node(std::size_t copy, const std::vector<Address>& others) {
  const std::size_t disks = volume_.members.size();
  // First a disk that holds no copy yet, then any.
  for (const bool apart : {true, false})
    for (std::size_t i = 0; i < disks; ++i) {
      const auto disk = static_cast<std::uint16_t>((next_disk_ + copy + i) % disks);
      const bool used = std::any_of(others.begin(), others.end(), [&](const Address& a) { return a.disk == disk; });
      if (!volume_.members[disk].healthy() || (apart && used)) continue;
      const format::DiskLayout& layout = taken_.layouts()[disk];
      const auto blocks = static_cast<std::uint32_t>(format::node_blocks(layout.block_size()));
      // A second copy on the same disk goes far from the first, if there is room.
      const std::uint64_t middle = (layout.first_usable() + layout.end_usable()) / 2;
      const std::uint64_t end = layout.end_usable();
      std::uint64_t block = used ? taken_.find_free(disk, middle, end, blocks) : end;
      if (block == end) block = taken_.find_free(disk, layout.first_usable(), end, blocks);
      if (block == end) continue;
      taken_.mark({disk, block, blocks});
      return Address{disk, block};
    }
  return {Errc::kNoSpace, "no room for the repaired tree"};
}

Result<Pointer> TreeRewriter::write_node(Node node) {
  constexpr std::size_t kFew = 2;
  const std::size_t copies = volume_.disks() >= MDFS_MAX_COPIES ? MDFS_MAX_COPIES : kFew;
  std::vector<Address> places;
  for (std::size_t copy = 0; copy < copies; ++copy) {
    MDFS_TRY_ASSIGN(const Address place, place_node(copy, places));
    places.push_back(place);
  }
  next_disk_ = (next_disk_ + 1) % volume_.members.size();
  node.volume_uuid = volume_.label.volume_uuid;
  node.generation = generation_;
  node.owner = MDFS_ROOT_MAIN;
  std::copy(places.begin(), places.end(), node.address.begin());
  AlignedBuffer bytes(MDFS_NODE_SIZE);
  format::encode(node, bytes.bytes());
  const Pointer pointer = format::make_pointer(bytes.bytes(), generation_, places);
  writes_.push_back({pointer, std::move(bytes)});
  ++nodes_;
  if (writes_.size() >= kWritesAtOnce) MDFS_TRY(flush_writes());
  return pointer;
}

Status TreeRewriter::flush_writes() {
  std::vector<device::Io> ios;
  std::vector<device::Addressed> requests;
  ios.reserve(writes_.size() * MDFS_MAX_COPIES);
  for (Write& write : writes_)
    for (const Address& address : write.pointer.places()) {
      device::Io& io = ios.emplace_back();
      io.op = device::Op::kWrite;
      io.offset = address.block * taken_.layouts()[address.disk].block_size();
      io.buffers = {write.bytes.bytes()};
      requests.push_back({volume_.members[address.disk].disk.get(), &io});
    }
  MDFS_TRY(device::run(requests));
  writes_.clear();
  return {};
}

Result<Address> TreeRewriter::copy_blocks(const format::Runs& runs) {
  const std::uint16_t disk = runs.front().disk;
  const format::DiskLayout& layout = taken_.layouts()[disk];
  std::uint32_t blocks = 0;
  for (const format::Run& run : runs) blocks += run.blocks;
  const std::uint64_t end = layout.end_usable();
  std::uint64_t to = taken_.find_free(disk, layout.metadata_end(), end, blocks);
  if (to == end) to = taken_.find_free(disk, layout.first_usable(), end, blocks);
  if (to == end) return {Errc::kNoSpace, fmt::format("no room for {} blocks in a row on disk {}", blocks, disk)};
  taken_.mark({disk, to, blocks});
  std::uint64_t offset = to * layout.block_size();
  constexpr std::uint64_t kStep = 1u << 20;
  AlignedBuffer buffer(kStep);
  for (const format::Run& run : runs) {
    const std::uint64_t bytes = std::uint64_t{run.blocks} * layout.block_size();
    for (std::uint64_t done = 0; done < bytes; done += kStep) {
      const MutableBytes part = buffer.bytes().first(std::min(kStep, bytes - done));
      const std::uint64_t from = run.block * layout.block_size() + done;
      MDFS_TRY(device::read(*volume_.members[run.disk].disk, from, part));
      MDFS_TRY(device::write(*volume_.members[disk].disk, offset, part));
      offset += part.size();
    }
  }
  return Address{disk, to};
}

}  // namespace mdfs::store
