// The structures of a stored volume, to be changed under checksums that are right.
// SPDX-License-Identifier: Apache-2.0
#include "forge.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "format/commit.h"
#include "format/fields.h"
#include "format/label.h"
#include "format/sealed.h"
#include "format/space.h"

namespace mdfs::test {
namespace {

using format::Address;
using Disks = std::vector<std::unique_ptr<device::MemoryDisk>>;

ByteVector peek(const device::MemoryDisk& disk, std::uint64_t offset, std::size_t bytes) {
  ByteVector out(bytes);
  disk.peek(offset, out);
  return out;
}

std::size_t top_offset(std::size_t disk) { return offsetof(mdfs_commit_slot, space) + disk * sizeof(mdfs_space_top); }

}  // namespace

Forge::Forge(const Disks& disks) {
  Uuid volume_uuid;
  for (const auto& disk : disks) {
    labels.push_back(peek(*disk, 0, MDFS_SECTOR));
    const auto label = format::decode_label(labels.back());
    MDFS_CHECK(label.ok());
    volume_uuid = label->volume_uuid;
    block_size = label->block_size;
    layouts_.emplace_back(label->block_size, label->disk_blocks, label->metadata_blocks, label->room_blocks);
    MDFS_CHECK(layouts_.back().space_levels() == 1);
  }
  std::uint64_t newest = 0;
  for (std::size_t disk = 0; disk < disks.size(); ++disk)
    for (unsigned number = 0; number < MDFS_LABELS_PER_DISK; ++number)
      for (unsigned ring = 0; ring < MDFS_RING_SLOTS; ++ring) {
        const std::uint64_t offset = layouts_[disk].slot_offset(number, ring);
        ByteVector bytes = peek(*disks[disk], offset, MDFS_SLOT_SIZE);
        const auto decoded = format::decode_commit_slot(bytes, volume_uuid);
        if (!decoded.ok() || decoded->generation < newest) continue;
        if (decoded->generation > newest) slot_places_.clear();
        newest = decoded->generation;
        slot_places_.push_back({disk, offset, decoded->state});
        slot = std::move(bytes);
      }
  const auto decoded = format::decode_commit_slot(slot, volume_uuid);
  MDFS_CHECK(decoded.ok());
  for (std::size_t disk = 0; disk < disks.size(); ++disk)
    bitmaps.push_back(peek(*disks[disk], layouts_[disk].space_offset({0, 0}, decoded->space[disk].place), MDFS_SECTOR));

  const format::Root& root = *decoded->root(MDFS_ROOT_MAIN);
  const auto add = [&](const format::Pointer& pointer, std::size_t parent, std::size_t branch, std::uint16_t level) {
    ForgedNode& node = nodes.emplace_back();
    for (const Address& place : pointer.places()) node.places.push_back(place);
    node.bytes = peek(*disks[node.places[0].disk], node.places[0].block * block_size, MDFS_NODE_SIZE);
    node.parent = parent;
    node.branch = branch;
    node.level = level;
    MDFS_CHECK(format::verify(pointer, node.bytes).ok());
  };
  add(root.pointer, SIZE_MAX, 0, root.level);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].level == 0) continue;
    const std::size_t count = MDFS_GET(nodes[i].bytes, 0, mdfs_node_header, item_count);
    for (std::size_t branch = 0; branch < count; ++branch) {
      const std::size_t at = sizeof(mdfs_node_header) + branch * sizeof(mdfs_branch) + offsetof(mdfs_branch, pointer);
      const auto pointer = format::decode_pointer(nodes[i].bytes, at);
      MDFS_CHECK(pointer.ok());
      add(*pointer, i, branch, static_cast<std::uint16_t>(nodes[i].level - 1));
    }
  }
}

std::size_t Forge::root_pointer() const { return offsetof(mdfs_commit_slot, roots) + offsetof(mdfs_root, pointer); }

std::size_t Forge::pointer_to(const ForgedNode& node) const {
  if (node.parent == SIZE_MAX) return root_pointer();
  return sizeof(mdfs_node_header) + node.branch * sizeof(mdfs_branch) + offsetof(mdfs_branch, pointer);
}

void Forge::put_back(std::vector<std::size_t> changed_nodes, const Disks& disks) {
  // Children have higher numbers than their parents.
  std::sort(changed_nodes.begin(), changed_nodes.end());
  while (!changed_nodes.empty()) {
    const std::size_t number = changed_nodes.back();
    while (!changed_nodes.empty() && changed_nodes.back() == number) changed_nodes.pop_back();
    ForgedNode& node = nodes[number];
    for (const Address& place : node.places)
      if (place.disk < disks.size() &&
          inside(place.block * block_size, MDFS_NODE_SIZE, disks[place.disk]->size_bytes()))
        disks[place.disk]->poke(place.block * block_size, node.bytes);
    ByteVector& holder = holder_of(node);
    store_le<std::uint32_t>(holder, pointer_to(node) + offsetof(mdfs_pointer, checksum), crc32c(node.bytes));
    if (node.parent == SIZE_MAX) continue;
    changed_nodes.insert(std::upper_bound(changed_nodes.begin(), changed_nodes.end(), node.parent), node.parent);
  }
  for (const SlotPlace& place : slot_places_) {
    MDFS_PUT(slot, 0, mdfs_commit_slot, state, place.state);
    format::seal(slot, offsetof(mdfs_commit_slot, crc32c));
    disks[place.disk]->poke(place.offset, slot);
  }
}

void Forge::put_back_label(std::size_t disk, const Disks& disks) const {
  ByteVector label = labels[disk];
  for (unsigned number = 0; number < MDFS_LABELS_PER_DISK; ++number) {
    MDFS_PUT(label, 0, mdfs_label, label_number, static_cast<std::uint16_t>(number));
    format::seal(label, offsetof(mdfs_label, crc32c));
    disks[disk]->poke(layouts_[disk].label_offset(number), label);
  }
}

void Forge::put_back_bitmap(std::size_t disk, const Disks& disks) {
  const std::size_t top = top_offset(disk);
  const unsigned place = MDFS_GET(slot, top, mdfs_space_top, slot) % 2;
  disks[disk]->poke(layouts_[disk].space_offset({0, 0}, place), bitmaps[disk]);
  MDFS_PUT(slot, top, mdfs_space_top, crc32c, crc32c(bitmaps[disk]));
  MDFS_PUT(slot, top, mdfs_space_top, free_blocks, format::bitmap_free(bitmaps[disk]));
}

}  // namespace mdfs::test
