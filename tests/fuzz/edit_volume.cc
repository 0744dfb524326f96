// Edits of a stored volume whose checksums are made right afterwards.
// SPDX-License-Identifier: Apache-2.0
#include "edit_volume.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/checked.h"
#include "base/crc32c.h"
#include "format/fields.h"
#include "format/label.h"
#include "format/sealed.h"
#include "format/space.h"
#include "fuzz.h"
#include "store/labels.h"

namespace mdfs::fuzz {
namespace {

using format::Address;
using test::MemoryDisks;

constexpr std::uint32_t kBlock = MDFS_MIN_BLOCK_SIZE;  // of the volumes that are edited
constexpr unsigned kMaxDepth = 8;

ByteVector peek(const MemoryDisks& disks, std::size_t disk, std::uint64_t offset, std::size_t bytes) {
  ByteVector out(bytes);
  if (disk < disks.size() && inside(offset, bytes, disks[disk]->size_bytes())) disks[disk]->peek(offset, out);
  return out;
}

format::DiskLayout layout_of(const MemoryDisks& disks, std::size_t disk) {
  const auto label = format::decode_label(peek(disks, disk, 0, MDFS_SECTOR));
  MDFS_CHECK(label.ok() && label->block_size == kBlock);
  return store::layout_of(*label);
}

bool is_zero(ConstBytes bytes) { return format::all_zero(bytes); }

// Goes through what commit slots lead to, repairing checksums on the way; the undecoded fields may hold anything.
class VolumeSealer {
 public:
  VolumeSealer(const MemoryDisks& disks, std::vector<format::DiskLayout> layouts, unsigned leave)
      : disks_(disks), layouts_(std::move(layouts)), leave_(leave) {}

  void repair_slots() {
    for (std::size_t disk = 0; disk < disks_.size(); ++disk)
      for (unsigned number = 0; number < MDFS_LABELS_PER_DISK; ++number) {
        repair_sector(disk, layouts_[disk].label_offset(number), offsetof(mdfs_label, crc32c), MDFS_LABEL_MAGIC);
        for (unsigned ring = 0; ring < MDFS_RING_SLOTS; ++ring)
          repair_slot(disk, layouts_[disk].slot_offset(number, ring));
      }
  }

  // Addresses of all nodes that were seen, by the first.
  const std::map<Address, std::vector<Address>>& nodes() const { return nodes_; }

 private:
  void repair_sector(std::size_t disk, std::uint64_t offset, std::size_t crc_offset, std::string_view magic) {
    ByteVector sector = peek(disks_, disk, offset, MDFS_SECTOR);
    if (!format::has_text(sector, 0, magic)) return;
    format::seal(sector, crc_offset);
    disks_[disk]->poke(offset, sector);
  }

  void repair_slot(std::size_t disk, std::uint64_t offset) {
    ByteVector slot = peek(disks_, disk, offset, MDFS_SLOT_SIZE);
    if (!format::has_text(slot, 0, MDFS_COMMIT_MAGIC)) return;
    const std::size_t root = offsetof(mdfs_commit_slot, roots) + offsetof(mdfs_root, pointer);
    repair_pointer(slot, root, 0);
    for (std::size_t of = 0; of < disks_.size(); ++of) repair_space(slot, of);
    repair_recorded(slot);
    format::seal(slot, offsetof(mdfs_commit_slot, crc32c));
    disks_[disk]->poke(offset, slot);
  }

  // To be what they checksum record now.
  void repair_recorded(ByteVector& slot) {
    const std::size_t count = MDFS_GET(slot, 0, mdfs_commit_slot, checksum_record_count);
    for (std::size_t i = 0; i < std::min<std::size_t>(count, MDFS_MAX_CHECKSUM_RECORDS); ++i) {
      const std::size_t base = offsetof(mdfs_commit_slot, checksum_records) + i * sizeof(mdfs_checksum_record);
      const std::size_t disk = MDFS_GET(slot, base, mdfs_checksum_record, disk);
      const std::uint64_t bytes = std::uint64_t{MDFS_GET(slot, base, mdfs_checksum_record, sectors)} * MDFS_SECTOR;
      const std::uint64_t sector = MDFS_GET(slot, base, mdfs_checksum_record, sector);
      if (disk >= disks_.size() || sector > disks_[disk]->size_bytes() / MDFS_SECTOR) continue;
      if (bytes > disks_[disk]->size_bytes() - sector * MDFS_SECTOR) continue;
      MDFS_PUT(slot, base, mdfs_checksum_record, crc32c, crc32c(peek(disks_, disk, sector * MDFS_SECTOR, bytes)));
    }
  }

  // These disks are small: the top page is the one bitmap.
  void repair_space(ByteVector& slot, std::size_t disk) {
    if ((leave_ & 4) != 0) return;
    const std::size_t top = offsetof(mdfs_commit_slot, space) + disk * sizeof(mdfs_space_top);
    const unsigned place = MDFS_GET(slot, top, mdfs_space_top, slot) % 2;
    const ByteVector page = peek(disks_, disk, layouts_[disk].space_offset({0, 0}, place), MDFS_SECTOR);
    MDFS_PUT(slot, top, mdfs_space_top, crc32c, crc32c(page));
    MDFS_PUT(slot, top, mdfs_space_top, free_blocks, format::bitmap_free(page));
  }

  // The node that a pointer within `bytes` leads to, and then the pointer.
  void repair_pointer(ByteVector& bytes, std::size_t at, unsigned depth) {
    const unsigned copies = std::min<unsigned>(MDFS_GET(bytes, at, mdfs_pointer, copies), MDFS_MAX_COPIES);
    std::vector<Address> places;
    for (unsigned i = 0; i < copies; ++i) {
      const Address place =
          Address::unpack(load_le<std::uint64_t>(bytes, at + offsetof(mdfs_pointer, address) + 8 * std::size_t{i}));
      if (place.disk < disks_.size() && place.block < disks_[place.disk]->size_bytes() / kBlock)
        places.push_back(place);
    }
    if (places.empty() || depth > kMaxDepth) return;
    const auto known = crcs_.find(places[0]);
    if (known == crcs_.end()) repair_node(places, depth);
    if ((leave_ & 2) == 0) store_le<std::uint32_t>(bytes, at + offsetof(mdfs_pointer, checksum), crcs_[places[0]]);
  }

  void repair_node(const std::vector<Address>& places, unsigned depth) {
    ByteVector node = peek(disks_, places[0].disk, places[0].block * kBlock, MDFS_NODE_SIZE);
    crcs_[places[0]] = crc32c(node);  // ends a circle of nodes
    nodes_[places[0]] = places;
    const ByteVector before = node;
    const unsigned level = MDFS_GET(node, 0, mdfs_node_header, level);
    const std::size_t count = MDFS_GET(node, 0, mdfs_node_header, item_count);
    const std::size_t entry = level == 0 ? sizeof(mdfs_leaf_slot) : sizeof(mdfs_branch);
    for (std::size_t i = 0; i < count && sizeof(mdfs_node_header) + (i + 1) * entry <= node.size(); ++i) {
      const std::size_t at = sizeof(mdfs_node_header) + i * entry;
      if (level == 0) {
        repair_item(node, at);
      } else {
        repair_pointer(node, at + offsetof(mdfs_branch, pointer), depth + 1);
      }
    }
    if (node == before) return;
    crcs_[places[0]] = crc32c(node);
    for (const Address& place : places)
      if (inside(place.block * kBlock, node.size(), disks_[place.disk]->size_bytes()))
        disks_[place.disk]->poke(place.block * kBlock, node);
  }

  void repair_item(ByteVector& node, std::size_t slot) {
    const std::uint64_t kind = load_le<std::uint64_t>(node, slot + offsetof(mdfs_key, kind));
    const std::size_t at = MDFS_GET(node, slot, mdfs_leaf_slot, data_offset);
    const std::size_t length = MDFS_GET(node, slot, mdfs_leaf_slot, length);
    if ((leave_ & 1) != 0 || !inside(at, length, node.size())) return;
    if (kind == MDFS_KIND_EXTENTS) repair_extents(node, at, at + length);
    if (kind == MDFS_KIND_FILE_CELL) repair_cell(node, at, at + length);
    if (kind == MDFS_KIND_FILE_PARITY) repair_cell(node, at + sizeof(mdfs_group), at + length);
    if (kind == MDFS_KIND_STRIP) repair_strip(node, at, at + length);
  }

  void repair_strip(ByteVector& node, std::size_t at, std::size_t end) {
    if (at + sizeof(mdfs_strip) > end) return;
    const Address place = Address::unpack(MDFS_GET(node, at, mdfs_strip, address));
    at += sizeof(mdfs_strip);
    for (std::size_t i = 0; at + 4 * (i + 1) <= end; ++i)
      store_le<std::uint32_t>(node, at + 4 * i, crc32c(peek(disks_, place.disk, (place.block + i) * kBlock, kBlock)));
  }

  // The extents of these volumes are smaller than a sub-block: one checksum each.
  void repair_extents(ByteVector& node, std::size_t at, std::size_t end) {
    const std::size_t step =
        at + sizeof(mdfs_extent_page) <= end ? MDFS_GET(node, at, mdfs_extent_page, record_bytes) : 0;
    if (step < sizeof(mdfs_extent_record)) return;
    for (at += sizeof(mdfs_extent_page); at + step <= end; at += step) {
      const Address place = Address::unpack(MDFS_GET(node, at, mdfs_extent_record, address));
      const std::uint32_t bytes = std::min(MDFS_GET(node, at, mdfs_extent_record, stored_bytes), 4 * kBlock);
      const std::uint32_t crc = crc32c(peek(disks_, place.disk, place.block * kBlock, bytes));
      store_le<std::uint32_t>(node, at + offsetof(mdfs_extent_record, crc32c), crc);
    }
  }

  void repair_cell(ByteVector& node, std::size_t at, std::size_t end) {
    at += sizeof(mdfs_file_cell);
    while (at + sizeof(mdfs_file_run) <= end) {
      const Address place = Address::unpack(MDFS_GET(node, at, mdfs_file_run, address));
      const std::size_t blocks = MDFS_GET(node, at, mdfs_file_run, blocks);
      at += sizeof(mdfs_file_run);
      for (std::size_t i = 0; i < blocks && at + 4 * (i + 1) <= end; ++i)
        store_le<std::uint32_t>(node, at + 4 * i, crc32c(peek(disks_, place.disk, (place.block + i) * kBlock, kBlock)));
      at += align_up(4 * blocks, 8);
    }
  }

  const MemoryDisks& disks_;
  std::vector<format::DiskLayout> layouts_;  // as they were before the edits
  unsigned leave_;
  std::map<Address, std::uint32_t> crcs_;
  std::map<Address, std::vector<Address>> nodes_;
};

std::vector<format::DiskLayout> layouts_of(const MemoryDisks& disks) {
  std::vector<format::DiskLayout> layouts;
  for (std::size_t disk = 0; disk < disks.size(); ++disk) layouts.push_back(layout_of(disks, disk));
  return layouts;
}

struct Edit {
  unsigned structure = 0;
  unsigned flags = 0;
  std::size_t offset = 0;
  ConstBytes bytes;
};

void carry_out(const Structure& structure, const Edit& edit, const MemoryDisks& disks) {
  const std::size_t places = (edit.flags & 1) != 0 ? 1 : structure.places.size();
  const std::size_t at = edit.offset % structure.bytes;
  const std::size_t count = std::min<std::size_t>(edit.bytes.size(), structure.bytes - at);
  for (std::size_t i = 0; i < places; ++i) {
    const Structure::Place& place = structure.places[i];
    ByteVector bytes = peek(disks, place.disk, place.offset + at, count);
    unsigned carry = 0;
    for (std::size_t b = 0; b < count; ++b) {
      const unsigned sum = std::to_integer<unsigned>(bytes[b]) + std::to_integer<unsigned>(edit.bytes[b]) + carry;
      bytes[b] = (edit.flags & 2) != 0 ? static_cast<std::byte>(sum) : edit.bytes[b];
      carry = sum >> 8;
    }
    disks[place.disk]->poke(place.offset + at, bytes);
  }
}

}  // namespace

std::vector<Structure> find_structures(const MemoryDisks& disks) {
  using Kind = Structure::Kind;
  const std::vector<format::DiskLayout> layouts = layouts_of(disks);
  std::vector<Structure> structures;
  VolumeSealer sealer(disks, layouts, 0);
  sealer.repair_slots();
  std::set<std::pair<std::size_t, std::uint64_t>> in_nodes;
  for (const auto& [first, places] : sealer.nodes()) {
    Structure node{Kind::kNode, {}, MDFS_NODE_SIZE};
    for (const Address& place : places) {
      node.places.push_back({place.disk, place.block * kBlock});
      for (std::uint64_t i = 0; i < MDFS_NODE_SIZE / kBlock; ++i) in_nodes.insert({place.disk, place.block + i});
    }
    structures.push_back(node);
  }
  for (unsigned ring = 0; ring < MDFS_RING_SLOTS; ++ring) {
    Structure slot{Kind::kSlot, {}, MDFS_SLOT_SIZE};
    for (std::size_t disk = 0; disk < disks.size(); ++disk)
      for (unsigned number = 0; number < MDFS_LABELS_PER_DISK; ++number)
        slot.places.push_back({disk, layouts[disk].slot_offset(number, ring)});
    structures.push_back(slot);
  }
  for (std::size_t disk = 0; disk < disks.size(); ++disk) {
    Structure label{Kind::kLabel, {}, MDFS_SECTOR};
    for (unsigned number = 0; number < MDFS_LABELS_PER_DISK; ++number)
      label.places.push_back({disk, layouts[disk].label_offset(number)});
    structures.push_back(label);
    for (unsigned place = 0; place < 2; ++place)
      structures.push_back({Kind::kBitmap, {{disk, layouts[disk].space_offset({0, 0}, place)}}, MDFS_SECTOR});
    for (std::uint64_t block = layouts[disk].metadata_end(); block < layouts[disk].end_usable(); ++block)
      if (!in_nodes.contains({disk, block}) && !is_zero(peek(disks, disk, block * kBlock, kBlock)))
        structures.push_back({Kind::kData, {{disk, block * kBlock}}, kBlock});
  }
  return structures;
}

void edit(const std::vector<Structure>& structures, ConstBytes script, const MemoryDisks& disks) {
  const std::vector<format::DiskLayout> layouts = layouts_of(disks);
  Reader reader(script);
  const unsigned leave = reader.take<std::uint8_t>();
  while (!reader.empty()) {
    Edit one;
    one.structure = reader.take<std::uint8_t>();
    one.flags = reader.take<std::uint8_t>();
    one.offset = reader.take<std::uint16_t>();
    one.bytes = reader.take_bytes(reader.take<std::uint8_t>());
    carry_out(structures[one.structure % structures.size()], one, disks);
  }
  VolumeSealer(disks, layouts, leave).repair_slots();
}

}  // namespace mdfs::fuzz
