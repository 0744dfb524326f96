// The structures of a stored volume, to be changed under checksums that are right: what no checksum shows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "device/testing/memory_disk.h"
#include "format/layout.h"
#include "format/node.h"

namespace mdfs::test {

// A node of the tree and its place in it. Nodes stand before their children.
struct ForgedNode {
  ByteVector bytes;
  std::vector<format::Address> places;
  std::size_t parent = SIZE_MAX;  // of the root
  std::size_t branch = 0;         // of the parent
  std::uint16_t level = 0;
};

// Labels, newest commit slot, bitmaps and tree of a sound volume on disks with one bitmap page each (up to 128 MiB).
// Change the bytes, then call put_back() with what has changed. Copies share nothing.
class Forge {
 public:
  explicit Forge(const std::vector<std::unique_ptr<device::MemoryDisk>>& disks);

  std::vector<ByteVector> labels;   // of each disk, number 0
  std::vector<ByteVector> bitmaps;  // the valid one of each disk
  ByteVector slot;
  std::vector<ForgedNode> nodes;  // the root first
  std::uint32_t block_size = 0;

  std::size_t root_pointer() const;  // its offset in `slot`
  // Of the pointer to a node, in the bytes of its parent or of the slot.
  std::size_t pointer_to(const ForgedNode& node) const;
  ByteVector& holder_of(const ForgedNode& node) { return node.parent == SIZE_MAX ? slot : nodes[node.parent].bytes; }

  // Nodes whose bytes or places were changed: they are written to their places, and the pointers up to the slot get
  // their checksums. The slot is sealed and goes to each place that held the newest commit. Disks as those that the
  // forge was made from, or clones of them.
  void put_back(std::vector<std::size_t> changed_nodes, const std::vector<std::unique_ptr<device::MemoryDisk>>& disks);
  // All four labels of a disk, with their numbers and checksums.
  void put_back_label(std::size_t disk, const std::vector<std::unique_ptr<device::MemoryDisk>>& disks) const;
  // Before put_back(): the bitmap, and its checksum and count in the slot.
  void put_back_bitmap(std::size_t disk, const std::vector<std::unique_ptr<device::MemoryDisk>>& disks);

 private:
  struct SlotPlace {
    std::size_t disk = 0;
    std::uint64_t offset = 0;
    std::uint32_t state = 0;
  };
  std::vector<format::DiskLayout> layouts_;
  std::vector<SlotPlace> slot_places_;
};

}  // namespace mdfs::test
