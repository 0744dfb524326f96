// Writes the binary seeds: what a small volume stores. Made on demand: `ninja tests/fuzz/make_seeds`.
// usage: make_seeds DIRECTORY (the one that holds label/, node/ ..)
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "edit_volume.h"
#include "format/fields.h"
#include "format/space.h"
#include "fuse/ioctl_structs.h"
#include "small_volume.h"

using namespace mdfs;

namespace {

void write(const std::filesystem::path& path, ConstBytes bytes) {
  std::filesystem::create_directories(path.parent_path());
  const std::string_view text = as_text(bytes);
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

template <typename T>
ByteVector bytes_of(const T& value) {
  const std::string_view text(reinterpret_cast<const char*>(&value), sizeof value);
  return {as_bytes(text).begin(), as_bytes(text).end()};
}

void append(ByteVector& to, ConstBytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// One item of each kind.
void write_items(const std::filesystem::path& to, const ByteVector& node, std::set<std::uint64_t>& seen) {
  const std::size_t count = MDFS_GET(node, 0, mdfs_node_header, item_count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slot = sizeof(mdfs_node_header) + i * sizeof(mdfs_leaf_slot);
    const auto kind = load_le<std::uint64_t>(node, slot + offsetof(mdfs_key, kind));
    if (!seen.insert(kind).second) continue;
    ByteVector seed = {static_cast<std::byte>(kind), std::byte{20}, std::byte{0}};
    append(seed, ConstBytes(node).subspan(MDFS_GET(node, slot, mdfs_leaf_slot, data_offset),
                                          MDFS_GET(node, slot, mdfs_leaf_slot, length)));
    write(to / "items" / ("kind" + std::to_string(kind)), seed);
  }
}

void write_structures(const std::filesystem::path& to, const safety::SmallVolume& volume) {
  using Kind = fuzz::Structure::Kind;
  std::set<std::uint64_t> kinds;
  std::set<std::string> written;
  for (const fuzz::Structure& structure : fuzz::find_structures(volume.disks)) {
    ByteVector bytes(structure.bytes);
    volume.disks[structure.places[0].disk]->peek(structure.places[0].offset, bytes);
    const bool leaf = structure.kind == Kind::kNode && MDFS_GET(bytes, 0, mdfs_node_header, level) == 0;
    if (leaf) write_items(to, bytes, kinds);
    std::string name;
    if (structure.kind == Kind::kLabel) name = "label/first";
    if (structure.kind == Kind::kSlot && !format::all_zero(bytes)) name = "commit/first";
    if (name == "commit/first" && MDFS_GET(bytes, 0, mdfs_commit_slot, checksum_record_count) != 0)
      name = "commit/checksum_records";
    if (structure.kind == Kind::kNode) name = leaf ? "node/leaf" : "node/interior";
    if (structure.kind == Kind::kBitmap) {
      name = "space/bitmap";
      const ByteVector page = bytes;
      bytes = {std::byte{0}, std::byte{4}};  // 4 MiB in blocks of 4 KiB
      bytes.resize(10);
      append(bytes, page);
    }
    if (!name.empty() && written.insert(name).second) write(to / name, bytes);
  }
}

void write_ioctls(const std::filesystem::path& to) {
  mdfs_ioc_geometry geometry{};
  geometry.struct_bytes = sizeof geometry;
  geometry.rank = 2;
  geometry.type = MDFS_TYPE_U16;
  geometry.channels = 3;
  geometry.shape[0] = 600;
  geometry.shape[1] = 500;
  geometry.row_offset = geometry.plane_offset = -1;
  mdfs_ioc_window window{};
  window.struct_bytes = sizeof window;
  window.rank = 2;
  window.start[0] = 10;
  window.length[0] = 100;
  window.length[1] = 500;
  window.channel = -1;
  ByteVector seed = bytes_of(geometry);
  append(seed, bytes_of(window));
  window.channel = 2;
  append(seed, bytes_of(window));
  write(to / "ioctl" / "two-windows", seed);
}

void write_pages_above(const std::filesystem::path& to) {
  const format::DiskLayout layout(4096, format::disk_blocks(4096, std::uint64_t{300} << 30), 4096);
  std::vector<format::SpaceEntry> entries(
      static_cast<std::size_t>(std::min<std::uint64_t>(MDFS_ENTRIES_PER_PAGE, layout.space_pages(0))));
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = {static_cast<std::uint32_t>(i), i % 2 == 0, 1000 + i};
  ByteVector page(MDFS_SECTOR);
  format::encode_space_page(entries, page);
  ByteVector seed = {std::byte{0}, std::byte{0}, std::byte{0xb0}, std::byte{4}, std::byte{0}, std::byte{1}};
  seed.resize(10);
  append(seed, page);
  write(to / "space" / "level1", seed);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_seeds DIRECTORY\n", stderr);
    return 2;
  }
  write_structures(argv[1], safety::SmallVolume(2, 4u << 20));
  write_ioctls(argv[1]);
  write_pages_above(argv[1]);
  return 0;
}
