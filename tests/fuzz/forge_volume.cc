// Changes of the decoded structures of a small volume.
// SPDX-License-Identifier: Apache-2.0
#include "forge_volume.h"

#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "format/commit.h"
#include "format/fields.h"
#include "format/label.h"
#include "fuzz.h"
#include "small_volume.h"

namespace mdfs::fuzz {
namespace {

using test::Forge;
using test::ForgedNode;

// A field of a structure by its offset and width.
struct Field {
  std::size_t offset = 0;
  std::size_t width = 0;
};

#define FIELD(type, name) \
  Field { offsetof(type, name), sizeof(type::name) }

constexpr std::array kSlotFields = {
    FIELD(mdfs_commit_slot, generation),        FIELD(mdfs_commit_slot, time_ns),
    FIELD(mdfs_commit_slot, participants),      FIELD(mdfs_commit_slot, next_object),
    FIELD(mdfs_commit_slot, objects),           FIELD(mdfs_commit_slot, flags),
    FIELD(mdfs_commit_slot, disk_count),        FIELD(mdfs_commit_slot, root_count),
    FIELD(mdfs_commit_slot, membership),        FIELD(mdfs_commit_slot, features_ro_compat),
    FIELD(mdfs_commit_slot, features_incompat),
};
constexpr std::array kRootFields = {FIELD(mdfs_root, kind), FIELD(mdfs_root, level), FIELD(mdfs_root, nodes)};
constexpr std::array kTopFields = {FIELD(mdfs_space_top, crc32c), FIELD(mdfs_space_top, slot),
                                   FIELD(mdfs_space_top, free_blocks)};
constexpr std::array kMemberFields = {FIELD(mdfs_member, blocks), FIELD(mdfs_member, weight),
                                      FIELD(mdfs_member, flags)};
constexpr std::array kPointerFields = {FIELD(mdfs_pointer, length),
                                       FIELD(mdfs_pointer, checksum_type),
                                       FIELD(mdfs_pointer, birth),
                                       FIELD(mdfs_pointer, copies),
                                       Field{offsetof(mdfs_pointer, address), 8},
                                       Field{offsetof(mdfs_pointer, address) + 8, 8},
                                       Field{offsetof(mdfs_pointer, address) + 16, 8}};
constexpr std::array kLabelFields = {
    FIELD(mdfs_label, features_ro_compat), FIELD(mdfs_label, disk_index),  FIELD(mdfs_label, disk_count),
    FIELD(mdfs_label, block_size),         FIELD(mdfs_label, disk_blocks), FIELD(mdfs_label, zone_blocks),
    FIELD(mdfs_label, metadata_blocks),    FIELD(mdfs_label, membership),  FIELD(mdfs_label, policy),
    FIELD(mdfs_label, features_incompat),  FIELD(mdfs_label, room_blocks),
};
constexpr std::array kNodeFields = {FIELD(mdfs_node_header, generation), FIELD(mdfs_node_header, owner),
                                    FIELD(mdfs_node_header, level),      FIELD(mdfs_node_header, item_count),
                                    FIELD(mdfs_node_header, used),       Field{offsetof(mdfs_node_header, address), 8}};
constexpr std::array kKeyFields = {FIELD(mdfs_key, object), FIELD(mdfs_key, kind), FIELD(mdfs_key, offset)};

std::uint64_t get(ConstBytes bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{std::to_integer<std::uint8_t>(bytes[at + i])} << 8 * i;
  return value;
}

void put(MutableBytes bytes, std::size_t at, std::size_t width, std::uint64_t value) {
  for (std::size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

class Forger {
 public:
  Forger(const ForgedBase& base, Reader& reader, const test::MemoryDisks& disks)
      : forge_(base.forge), reader_(reader), disks_(disks) {}

  void run() {
    constexpr unsigned kMostChanges = 12;
    for (unsigned i = 0; i < kMostChanges && !reader_.empty(); ++i) change();
    for (std::size_t disk = 0; disk < disks_.size(); ++disk) {
      if (labels_.contains(disk)) forge_.put_back_label(disk, disks_);
      if (bitmaps_.contains(disk)) forge_.put_back_bitmap(disk, disks_);
    }
    forge_.put_back({nodes_.begin(), nodes_.end()}, disks_);
  }

 private:
  std::size_t below(std::size_t count) { return reader_.take<std::uint16_t>() % count; }

  // A number that is more likely than others to be at an edge.
  std::uint64_t number(std::uint64_t old) {
    const unsigned how = reader_.take<std::uint8_t>();
    const std::uint64_t power = std::uint64_t{1} << (how % 64);
    if (how < 64) return power;
    if (how < 128) return power - 1;
    if (how < 160) return ~(power - 1);
    if (how < 176) return how - 160;
    if (how < 192) return old + (how - 175);
    if (how < 208) return old - (how - 191);
    if (how < 216) return old ^ (std::uint64_t{1} << (8 * (how - 208)));
    if (how < 232) return last_;  // what was there where something was changed before
    return reader_.take<std::uint64_t>();
  }

  void set(ByteVector& bytes, std::size_t at, std::size_t width) {
    if (at + width > bytes.size()) return;
    const std::uint64_t old = get(bytes, at, width);
    put(bytes, at, width, number(old));
    last_ = old;
  }
  template <std::size_t N>
  void set(ByteVector& bytes, std::size_t base, const std::array<Field, N>& fields) {
    const Field& field = fields[below(N)];
    set(bytes, base + field.offset, field.width);
  }

  std::size_t any_node() { return below(forge_.nodes.size()); }
  std::size_t any_leaf() {
    for (std::size_t i = any_node();; i = (i + 1) % forge_.nodes.size())
      if (forge_.nodes[i].level == 0) return i;
  }
  static std::size_t count_of(const ForgedNode& node) {
    const std::size_t entry = node.level == 0 ? sizeof(mdfs_leaf_slot) : sizeof(mdfs_branch);
    return std::min<std::size_t>(MDFS_GET(node.bytes, 0, mdfs_node_header, item_count),
                                 (MDFS_NODE_SIZE - sizeof(mdfs_node_header)) / entry);
  }

  void change() {
    switch (reader_.take<std::uint8_t>() % 16) {
      case 0:
        return set(forge_.slot, 0, kSlotFields);
      case 1:
        return change_slot_parts();
      case 2: {
        const std::size_t disk = below(disks_.size());
        labels_.insert(disk);
        if (below(3) > 0) return set(forge_.labels[disk], 0, kLabelFields);
        return set(forge_.labels[disk], offsetof(mdfs_label, members) + below(4) * sizeof(mdfs_member), kMemberFields);
      }
      case 3: {
        const std::size_t disk = below(disks_.size());
        bitmaps_.insert(disk);
        return set(forge_.bitmaps[disk], 8 * below(64), 8);
      }
      case 4: {
        const std::size_t node = any_node();
        nodes_.insert(node);
        return set(forge_.nodes[node].bytes, 0, kNodeFields);
      }
      case 5:
      case 6:
        return change_pointer();
      case 7: {
        const std::size_t node = any_node();
        ForgedNode& in = forge_.nodes[node];
        if (count_of(in) == 0) return;
        nodes_.insert(node);
        const std::size_t entry = in.level == 0 ? sizeof(mdfs_leaf_slot) : sizeof(mdfs_branch);
        return set(in.bytes, sizeof(mdfs_node_header) + below(count_of(in)) * entry, kKeyFields);
      }
      case 8:
      case 9:
        return change_items();
      default:
        return change_value();
    }
  }

  void change_slot_parts() {
    switch (below(4)) {
      case 0:
        return set(forge_.slot, offsetof(mdfs_commit_slot, roots), kRootFields);
      case 1:
        return set(forge_.slot, offsetof(mdfs_commit_slot, space) + below(4) * sizeof(mdfs_space_top), kTopFields);
      case 2:
        return set(forge_.slot, offsetof(mdfs_commit_slot, members) + below(4) * sizeof(mdfs_member), kMemberFields);
      default:
        return set(forge_.slot, forge_.root_pointer(), kPointerFields);
    }
  }

  // Of the pointer to a node and of the node itself, so that the two agree; or of the pointer alone.
  void change_pointer() {
    const std::size_t number_of = any_node();
    ForgedNode& node = forge_.nodes[number_of];
    ByteVector& holder = forge_.holder_of(node);
    const std::size_t pointer = forge_.pointer_to(node);
    nodes_.insert(number_of);
    const unsigned how = reader_.take<std::uint8_t>() % 4;
    if (how == 0) return set(holder, pointer, kPointerFields);
    const std::size_t copy = below(node.places.size());
    const std::size_t in_pointer = pointer + offsetof(mdfs_pointer, address) + 8 * copy;
    if (how == 1) {
      set(holder, in_pointer, 8);
    } else {
      const auto& other = forge_.nodes[any_node()].places;
      put(holder, in_pointer, 8, other[below(other.size())].packed());
    }
    const std::uint64_t address = get(holder, in_pointer, 8);
    put(node.bytes, offsetof(mdfs_node_header, address) + 8 * copy, 8, address);
    node.places[copy] = format::Address::unpack(address);
  }

  // Takes an item away, puts it under another key, or puts another value under its key; the leaf stays in order.
  void change_items() {
    const std::size_t leaf = any_leaf();
    format::Node node = decoded(leaf);
    if (node.items.empty()) return;
    const std::size_t at = below(node.items.size());
    const unsigned how = reader_.take<std::uint8_t>() % 4;
    format::LeafItem item = node.items[at];
    if (how < 2) node.items.erase(node.items.begin() + static_cast<std::ptrdiff_t>(at));
    if (how > 0 && how < 3) {
      std::uint64_t* const fields[] = {&item.key.object, &item.key.kind, &item.key.offset, &item.key.offset};
      std::uint64_t& field = *fields[below(4)];
      field = number(field);
      node.items.push_back(item);
    }
    if (how == 3) {
      const format::Node other = decoded(any_leaf());
      if (other.items.empty()) return;
      const format::LeafItem& source = other.items[below(other.items.size())];
      node.items[at].value = source.value;
    }
    std::stable_sort(node.items.begin(), node.items.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    node.items.erase(
        std::unique(node.items.begin(), node.items.end(), [](const auto& a, const auto& b) { return a.key == b.key; }),
        node.items.end());
    if (!format::fits(node)) return;
    format::encode(node, forge_.nodes[leaf].bytes);
    nodes_.insert(leaf);
  }

  // A number within a value; records of extents and runs of files among them.
  void change_value() {
    const std::size_t leaf = any_leaf();
    ByteVector& bytes = forge_.nodes[leaf].bytes;
    const std::size_t count = count_of(forge_.nodes[leaf]);
    if (count == 0) return;
    // Names and contents are many: rather something else.
    std::size_t slot = 0;
    for (unsigned tries = 0; tries < 4; ++tries) {
      slot = sizeof(mdfs_node_header) + below(count) * sizeof(mdfs_leaf_slot);
      const std::uint64_t kind = get(bytes, slot + offsetof(mdfs_key, kind), 8);
      if (kind != MDFS_KIND_DIRENT && kind != MDFS_KIND_INLINE) break;
    }
    const std::size_t at = MDFS_GET(bytes, slot, mdfs_leaf_slot, data_offset);
    const std::size_t length = MDFS_GET(bytes, slot, mdfs_leaf_slot, length);
    const std::size_t width = std::size_t{1} << (reader_.take<std::uint8_t>() % 4);
    if (length < width || length > MDFS_NODE_SIZE || at > MDFS_NODE_SIZE - length) return;
    nodes_.insert(leaf);
    set(bytes, at + below(length / width) * width, width);
  }

  // As far as it is one: a change before may have left something else.
  format::Node decoded(std::size_t number_of) {
    const ForgedNode& node = forge_.nodes[number_of];
    format::NodeExpectation expectation;
    expectation.volume_uuid = format::get_uuid(node.bytes, offsetof(mdfs_node_header, volume_uuid));
    const auto generation = MDFS_GET(node.bytes, 0, mdfs_node_header, generation);
    if (generation == 0) return {};
    expectation.pointer = format::make_pointer(node.bytes, generation, node.places);
    auto got = format::decode_node(node.bytes, expectation);
    return got.ok() ? std::move(*got) : format::Node();
  }

  Forge forge_;
  Reader& reader_;
  const test::MemoryDisks& disks_;
  std::uint64_t last_ = 0;
  std::set<std::size_t> labels_, bitmaps_, nodes_;
};

const volume::Caller kRoot;

Result<volume::Ino> make(volume::Volume& volume, volume::Ino parent, std::string_view name, ConstBytes bytes) {
  MDFS_TRY_ASSIGN(const volume::Attributes made, volume.make_node(parent, name, S_IFREG | 0644, 0, kRoot));
  if (!bytes.empty()) MDFS_TRY(volume.write(made.ino, 0, bytes, false));
  return made.ino;
}

Result<volume::Ino> make_image(volume::Volume& volume, std::string_view name, geometry::Geometry geometry) {
  MDFS_TRY_ASSIGN(const volume::Ino ino, make(volume, volume::kRootIno, name, {}));
  volume::ImageOptions options;
  options.geometry = std::move(geometry);
  MDFS_TRY(volume.make_image(ino, options));
  return ino;
}

// Small, so that a thousand of them are gone through in a second.
Status fill(volume::Volume& volume) {
  ByteVector bytes(24'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 5);
  const ConstBytes all = bytes;
  MDFS_TRY_ASSIGN(const volume::Ino small, make(volume, volume::kRootIno, "small", all.first(100)));
  // Of this size, so that the tree has two levels.
  for (const char* name : {"user.a", "user.b", "user.c", "user.d", "user.e", "user.f"})
    MDFS_TRY(volume.set_xattr(small, name, all.first(3'000), volume::XattrMode::kSet));
  MDFS_TRY_ASSIGN(const volume::Ino file, make(volume, volume::kRootIno, "file", all));
  MDFS_TRY(volume.allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8'192, 4'096));
  for (const auto codec : {geometry::Codec::kRaw, geometry::Codec::kZstd}) {
    geometry::Geometry geometry;
    geometry.rank = 2;
    geometry.shape = {32, 64};
    geometry.extent = {16, 32};
    geometry.codec = codec;
    geometry.axes = "yx";
    MDFS_TRY_ASSIGN(const volume::Ino ino,
                    make_image(volume, codec == geometry::Codec::kRaw ? "raw" : "zstd", geometry));
    MDFS_TRY(volume.write(ino, 0, all.first(32 * 64), false));
  }
  geometry::Geometry stack;
  stack.rank = 3;
  stack.shape = {0, 32, 32};
  stack.extent = {8, 32, 32};
  stack.codec = geometry::Codec::kZstd;
  stack.axes = "zyx";
  MDFS_TRY_ASSIGN(const volume::Ino frames, make_image(volume, "stack", stack));
  for (std::uint64_t frame = 0; frame < 2; ++frame) {
    MDFS_TRY(volume.write(frames, frame * 1024, all.first(1024), false));
    MDFS_TRY(volume.fsync(frames, false));
  }
  MDFS_TRY(volume.make_symlink(volume::kRootIno, "link", "dir/sub/a", kRoot));
  MDFS_TRY_ASSIGN(const volume::Attributes dir, volume.make_directory(volume::kRootIno, "dir", 0755, kRoot));
  MDFS_TRY_ASSIGN(const volume::Attributes sub, volume.make_directory(dir.ino, "sub", 0700, kRoot));
  for (const char* name : {"a", "b", "c"}) MDFS_TRY(make(volume, sub.ino, name, all.first(40)));
  return volume.sync();
}

test::MemoryDisks make_disks() {
  SeededEnvironment environment(7);
  test::MemoryDisks disks = test::format_memory_disks(2, 4u << 20, environment);
  auto volume = safety::mount(disks, environment);
  MDFS_CHECK(volume.ok());
  const Status filled = fill(**volume);
  MDFS_CHECK(filled.ok() && (*volume)->close().ok());
  return disks;
}

}  // namespace

ForgedBase::ForgedBase() : disks(make_disks()), forge(disks) { MDFS_CHECK(forge.nodes.size() > 2); }

void forge(const ForgedBase& base, ConstBytes script, const test::MemoryDisks& disks) {
  Reader reader(script);
  Forger(base, reader, disks).run();
}

}  // namespace mdfs::fuzz
