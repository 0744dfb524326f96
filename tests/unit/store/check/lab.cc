// A small volume with one of everything.
// SPDX-License-Identifier: Apache-2.0
#include "lab.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/crc32c.h"
#include "codec/codec.h"
#include "device/testing/recorder_disk.h"
#include "device/testing/replay.h"
#include "format/dirent.h"
#include "format/extents.h"
#include "format/file_cell.h"
#include "format/geometry_item.h"
#include "format/strip.h"
#include "geometry/page.h"
#include "store/check/findings.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kRoot = MDFS_OBJECT_ROOT_DIRECTORY;
constexpr std::uint64_t kBlock = 4096;

format::Inode inode_of(std::uint32_t mode, std::uint32_t links) {
  format::Inode inode;
  inode.mode = mode;
  inode.links = links;
  return inode;
}

void put_inode(Transaction& transaction, std::uint64_t number, const format::Inode& inode) {
  transaction.put(Lab::inode_key(number), format::encode(inode));
}

}  // namespace

// No part of it equals one of the data.
ByteVector Lab::report() {
  ByteVector bytes(MDFS_XATTR_FIRST + MDFS_MAX_ITEM + 100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i >> 8) * 37 ^ i * i);
  return bytes;
}

Lab::Lab() : disks(make_disks(3, 16u << 20)) {
  EXPECT_OK(format_disks(disks, environment_));
  auto opened = open_disks(disks, environment_);
  Store& store = **opened;
  EXPECT_OK(store.transact(Purpose::kNormal, [&](Transaction& t) -> Status {
    for (std::uint64_t i = 0; i < kFiles + 8; ++i) EXPECT_EQ(t.new_object(), MDFS_OBJECT_FIRST + i);
    t.put(format::kSecretKey, format::encode(kSecret));
    geometry::Placement placement;
    placement.disks = 3;
    placement.row = placement.plane = {0, 1, 2};
    placement.slot = {0, 1, 2};
    t.put({MDFS_OBJECT_VOLUME, MDFS_KIND_PLACEMENT, kPlacement}, format::encode(placement));

    format::Inode inode = inode_of(S_IFREG | 0644, 1);
    inode.size = 200;
    inode.flags = MDFS_INODE_INLINE;
    put_inode(t, kInline, inode);
    t.put({kInline, MDFS_KIND_INLINE, 0}, value_of(200, 1));
    t.put({kInline, MDFS_KIND_XATTR, format::first_cookie(Lab::kSecret, "user.note")},
          format::encode(format::make_xattr("user.note", value_of(10, 2))));
    const ByteVector report = Lab::report();
    const std::uint64_t cookie = format::first_cookie(Lab::kSecret, "user.report");
    t.put({kInline, MDFS_KIND_XATTR, cookie}, format::encode(format::make_xattr("user.report", report)));
    t.put({kInline, MDFS_KIND_XATTR_REST, cookie}, ConstBytes(report).subspan(MDFS_XATTR_FIRST, MDFS_MAX_ITEM));
    t.put({kInline, MDFS_KIND_XATTR_REST + 1, cookie}, ConstBytes(report).subspan(MDFS_XATTR_FIRST + MDFS_MAX_ITEM));

    inode = inode_of(S_IFREG | 0644, 1);
    inode.size = 3 * kBlock - 100;
    inode.stored_bytes = 3 * kBlock;
    inode.placement = kPlacement;
    put_inode(t, kCells, inode);
    ByteVector cells;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const ByteVector block = value_of(kBlock, 3 + i);
      cells.insert(cells.end(), block.begin(), block.end());
    }
    std::fill(cells.end() - 100, cells.end(), std::byte{0});  // beyond the end
    cells_run = store_data(store, t, 1, cells);
    format::FileRun run{{1, cells_run.block}, t.generation(), t.generation(), 0, {}};
    for (std::uint64_t i = 0; i < 3; ++i) run.crc32c.push_back(crc32c(ConstBytes(cells).subspan(i * kBlock, kBlock)));
    t.put({kCells, MDFS_KIND_FILE_CELL, 0}, format::encode(format::FileCell{{run}, {}}));

    inode = inode_of(S_IFLNK | 0777, 1);
    inode.size = 6;
    put_inode(t, kLink, inode);
    t.put({kLink, MDFS_KIND_SYMLINK, 0}, as_bytes("inline"));

    add_image(store, t);
    add_movie(store, t);

    inode = inode_of(S_IFDIR | 0755, 3);
    inode.parent = kRoot;
    inode.entries = 1;
    put_inode(t, kDir, inode);
    inode = inode_of(S_IFDIR | 0755, 2);
    inode.parent = kDir;
    put_inode(t, kDeep, inode);
    put_entry(t, kDir, "deep", kDeep, 4);

    put_entry(t, kRoot, "inline", kInline, 8);
    put_entry(t, kRoot, "cells", kCells, 8);
    put_entry(t, kRoot, "link", kLink, 10);
    put_entry(t, kRoot, "image", kImage, 8);
    put_entry(t, kRoot, "dir", kDir, 4);
    put_entry(t, kRoot, "movie", kMovie, 8);
    for (std::uint64_t i = 0; i < kFiles; ++i) {
      put_inode(t, kFirstFile + i, inode_of(S_IFREG | 0600, 1));
      put_entry(t, kRoot, "f" + std::to_string(i), kFirstFile + i, 8);
    }
    format::Inode root = inode_of(S_IFDIR | 0755, 3);
    root.parent = kRoot;
    root.entries = 6 + kFiles;
    put_inode(t, kRoot, root);
    t.count_objects(kObjects - 1);
    return {};
  }));
  EXPECT_OK(store.commit());
  EXPECT_OK(store.finalize());
}

void Lab::add_image(Store& store, Transaction& t) {
  geometry::Geometry geometry;
  geometry.rank = 2;
  geometry.shape = {128, 128};
  geometry.extent = {64, 64};
  geometry.codec = geometry::Codec::kRaw;
  geometry.axes = "yx";
  format::Inode inode = inode_of(S_IFREG | 0644, 1);
  inode.size = 128 * 128;
  inode.stored_bytes = 4 * kBlock;
  inode.flags = MDFS_INODE_IMAGE;
  inode.placement = kPlacement;
  put_inode(t, kImage, inode);
  t.put({kImage, MDFS_KIND_GEOMETRY, 0}, format::encode(geometry));
  format::ExtentPage page({MDFS_CODEC_RAW, 4096});
  for (const unsigned place : {0u, 1u, 8u, 9u}) {
    const Run data = store_data(store, t, static_cast<std::uint16_t>(place % 3), value_of(kBlock, 100 + place));
    if (place == 0) extent_run = data;
    page.set(place, {format::Address{data.disk, data.block}.packed(),
                     t.generation(),
                     t.generation(),
                     4096,
                     {crc32c(value_of(kBlock, 100 + place))}});
  }
  t.put({kImage, MDFS_KIND_EXTENTS, 0}, page.encode());
}

std::uint16_t Lab::movie_sample(std::uint64_t t, std::uint64_t y, std::uint64_t x) {
  if (t >= 5 || y >= 300 || x >= 200) return 0;
  std::uint64_t value = (t * 1000 + y) * 1000 + x;
  if (y / 32 == 5) {
    value *= 0x9e3779b97f4a7c15;
    value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9 >> 40;
  }
  return static_cast<std::uint16_t>(value);
}

void Lab::add_movie(Store& store, Transaction& t) {
  geometry::Geometry geometry;
  geometry.rank = 3;
  geometry.shape = {5, 300, 200};
  geometry.extent = {2, 32, 32};
  geometry.type = geometry::ElementType::kU16;
  geometry.axes = "tyx";
  t.put({kMovie, MDFS_KIND_GEOMETRY, 0}, format::encode(geometry));
  const format::ExtentTableShape shape{MDFS_CODEC_ZSTD, static_cast<std::uint32_t>(geometry.extent_bytes())};
  const geometry::PageBox box = geometry::page_box(3, shape.record_bytes());
  std::uint64_t blocks = 0;
  for (const geometry::Coord& index : {geometry::Coord{0, 0, 0}, {1, 5, 3}, {2, 9, 6}}) {
    ByteVector samples(geometry.extent_bytes());
    for (std::uint64_t i = 0; i < samples.size() / 2; ++i)
      store_le<std::uint16_t>(
          samples, 2 * i, movie_sample(index[0] * 2 + i / 1024, index[1] * 32 + i / 32 % 32, index[2] * 32 + i % 32));
    ByteVector stored(codec::compress_bound(codec::Codec::kZstd, samples.size()));
    stored.resize(*codec::encode(codec::Codec::kZstd, 3, samples, stored));
    data_bytes += stored.size();
    format::ExtentRecord record{
        0, t.generation(), t.generation(), static_cast<std::uint32_t>(stored.size()), {crc32c(stored)}};
    stored.resize((stored.size() + kBlock - 1) / kBlock * kBlock);
    blocks += stored.size() / kBlock;
    const geometry::PagePlace place = geometry::page_place(3, geometry.grid(), box, index);
    if (stored.size() > kBlock) {
      for (std::size_t done = 0; done < stored.size(); done += kBlock) {
        const auto first = stored.begin() + static_cast<std::ptrdiff_t>(done);
        const Run run =
            store_data(store, t, static_cast<std::uint16_t>(done / kBlock * 2 % 3), {first, first + kBlock});
        movie_runs.push_back({run.disk, run.block, 1});
      }
      record.address = MDFS_SCATTERED;
      movie_runs_key = {kMovie, MDFS_KIND_EXTENT_RUNS, place.page * format::kMaxPlaces + place.place};
      t.put(movie_runs_key, format::encode_extent_runs(movie_runs));
    } else {
      const Run run = store_data(store, t, 1, stored);
      record.address = format::Address{run.disk, run.block}.packed();
    }
    format::ExtentPage page(shape);
    page.set(place.place, record);
    t.put({kMovie, MDFS_KIND_EXTENTS, place.page}, page.encode());
  }
  EXPECT_EQ(blocks, 4u);  // the noise takes two
  // The first step of the first extent, as its record has it, and of one without a record.
  const geometry::PagePlace first = geometry::page_place(3, geometry.grid(), box, {0, 0, 0});
  const geometry::PagePlace second = geometry::page_place(3, geometry.grid(), box, {0, 0, 1});
  EXPECT_EQ(first.page, second.page);
  ByteVector parts(2 * kBlock);
  for (std::uint64_t x = 0; x < 2; ++x)
    for (std::uint64_t i = 0; i < 1024; ++i)
      store_le<std::uint16_t>(parts, x * kBlock + 2 * i, movie_sample(0, i / 32, x * 32 + i % 32));
  const Run strip_run = store_data(store, t, 2, parts);
  format::Strip strip;
  strip.address = {strip_run.disk, strip_run.block};
  strip.birth = strip.written = t.generation();
  strip.places = strip.live = std::uint64_t{1} << first.place | std::uint64_t{1} << second.place;
  strip.bytes = 2048;
  for (std::size_t i = 0; i < 2; ++i) strip.crc32c.push_back(crc32c(ConstBytes(parts).subspan(i * kBlock, kBlock)));
  movie_strip_key = {kMovie, MDFS_KIND_STRIP, first.page * MDFS_STRIPS_PER_PAGE + 3};
  movie_shape = shape;
  t.put(movie_strip_key, format::encode(strip));
  blocks += 2;
  data_bytes += 9 * kBlock;  // of the strip, the file and the other image
  format::Inode inode = inode_of(S_IFREG | 0644, 1);
  inode.size = geometry.size_bytes();
  inode.stored_bytes = blocks * kBlock;
  inode.flags = MDFS_INODE_IMAGE;
  inode.placement = kPlacement;
  put_inode(t, kMovie, inode);
}

Run Lab::store_data(Store& store, Transaction& transaction, std::uint16_t disk, const ByteVector& bytes) {
  AllocationRequest request;
  request.disk = disk;
  request.blocks = static_cast<std::uint32_t>(bytes.size() / kBlock);
  request.owner = kPlacement;
  auto run = store.allocate(request, nullptr);
  EXPECT_OK(run);
  disks[run->disk]->poke(run->block * kBlock, bytes);
  transaction.publish(*run);
  return *run;
}

void Lab::change(const std::function<void(Transaction&)>& how) {
  auto store = open_disks(disks, environment_);
  ASSERT_OK(store);
  ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& t) -> Status {
    how(t);
    return {};
  }));
  ASSERT_OK((*store)->commit());
  ASSERT_OK((*store)->finalize());
}

void Lab::protect(const std::function<void(Store&, Transaction&)>& how) {
  auto store = open_disks(disks, environment_);
  ASSERT_OK(store);
  (*store)->add_features_ro_compat(MDFS_RO_COMPAT_PROTECTION);
  ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& t) -> Status {
    how(**store, t);
    return {};
  }));
  ASSERT_OK((*store)->commit());
  ASSERT_OK((*store)->finalize());
}

void Lab::protect_image() {
  protect([&](Store& store, Transaction& t) {
    format::CopyPage page;
    for (const unsigned place : {0u, 1u, 8u, 9u}) {
      const Run run = store_data(store, t, static_cast<std::uint16_t>((place + 1) % 3), value_of(kBlock, 100 + place));
      if (place == 0) copy_run = run;
      const bool scattered = place == 9;
      page.set(place, {scattered ? MDFS_SCATTERED : run.address().packed(), t.generation(), kBlock});
      if (scattered)
        t.put({kImage, MDFS_KIND_PARITY_RUNS, place}, format::encode_extent_runs({{run.disk, run.block, 1}}));
    }
    t.put(kCopies, page.encode({MDFS_CODEC_RAW, 4096}));
    auto inode = *format::decode_inode(**t.get(inode_key(kImage)));
    inode.set_copies(true);
    inode.stored_bytes *= 2;
    t.put(inode_key(kImage), format::encode(inode));
  });
}

void Lab::group_image() {
  protect([&](Store& store, Transaction& t) {
    const format::ExtentTableShape shape{MDFS_CODEC_RAW, 4096};
    const auto parity_of = [](unsigned a, unsigned b) {
      ByteVector sum = value_of(kBlock, 100 + a);
      format::add_to_parity(sum, value_of(kBlock, 100 + b));
      return sum;
    };
    const auto piece = [&](std::uint16_t disk, const ByteVector& bytes, Run& run) {
      run = store_data(store, t, disk, bytes);
      return format::ExtentRecord{run.address().packed(), t.generation(), t.generation(), kBlock, {crc32c(bytes)}};
    };
    Run other_parity, new_run, copy;
    format::CopyPage page;
    format::ParityGroup group;
    group.members = 0b11;
    group.parity = piece(2, parity_of(0, 1), parity_run);
    page.add_group(group);
    // The second group was made of places 8 and 9; place 9 is something else now.
    auto records = *format::ExtentPage::decode(**t.get({kImage, MDFS_KIND_EXTENTS, 0}), shape);
    group.members = 1u << 8;
    group.parity = piece(1, parity_of(8, 9), other_parity);
    group.leavers = {*records.get(9)};
    group.leavers.front().crc32c = {};
    leaver_run = {format::Address::unpack(records.get(9)->address).disk,
                  format::Address::unpack(records.get(9)->address).block, 1};
    page.add_group(group);
    records.set(9, piece(0, value_of(kBlock, 200), new_run));
    t.put({kImage, MDFS_KIND_EXTENTS, 0}, records.encode());
    (void)piece(2, value_of(kBlock, 200), copy);
    page.set(9, {copy.address().packed(), t.generation(), kBlock});
    t.put(kCopies, page.encode(shape));
    auto inode = *format::decode_inode(**t.get(inode_key(kImage)));
    inode.set_copies(true, 2);
    inode.stored_bytes += 4 * kBlock;
    t.put(inode_key(kImage), format::encode(inode));
  });
}

void Lab::protect_cells(std::uint16_t last_disk) {
  protect([&](Store& store, Transaction& t) {
    format::CellPieces pieces;
    pieces.first = *format::decode_file_cell(**t.get(kCell), kBlock);
    const format::FileRun& run = pieces.first.runs.front();
    const auto add_copies = [&](std::uint16_t disk, unsigned first, unsigned count) {
      ByteVector bytes(count * kBlock);
      disks[run.address.disk]->peek((run.address.block + first) * kBlock, bytes);
      cell_copy_runs.push_back(store_data(store, t, disk, bytes));
      pieces.copy.replace({cell_copy_runs.back().address(),
                           t.generation(),
                           run.written,
                           static_cast<std::uint16_t>(first),
                           {run.crc32c.begin() + first, run.crc32c.begin() + first + count}});
    };
    add_copies(2, 0, 2);
    add_copies(last_disk, 2, 1);
    t.put(kCellCopies, format::encode_cell_copies(pieces));
    auto inode = *format::decode_inode(**t.get(inode_key(kCells)));
    inode.set_copies(true);
    inode.stored_bytes *= 2;
    t.put(inode_key(kCells), format::encode(inode));
  });
}

format::CellPieces Lab::cell_pieces() {
  format::CellPieces pieces;
  if (const ByteVector value = get(kCell); !value.empty()) pieces.first = *format::decode_file_cell(value, kBlock);
  const ByteVector copies = get(kCellCopies);
  if (copies.empty()) return pieces;
  EXPECT_OK(format::decode_cell_copies(copies, kBlock, pieces));
  return pieces;
}

void Lab::edit_cell_copies(const std::function<void(format::CellPieces&)>& how) {
  format::CellPieces pieces = cell_pieces();
  how(pieces);
  change([&](Transaction& t) { t.put(kCellCopies, format::encode_cell_copies(pieces)); });
}

format::CopyPage Lab::copies() {
  const ByteVector value = get(kCopies);
  return value.empty() ? format::CopyPage() : *format::CopyPage::decode(value, {MDFS_CODEC_RAW, 4096});
}

void Lab::edit_copies(const std::function<void(format::CopyPage&)>& how) {
  format::CopyPage page = copies();
  how(page);
  change([&](Transaction& t) { t.put(kCopies, page.encode({MDFS_CODEC_RAW, 4096})); });
}

void Lab::edit_inode(std::uint64_t number, const std::function<void(format::Inode&)>& how) {
  change([&](Transaction& t) {
    auto inode = format::decode_inode(**t.get(inode_key(number)));
    how(*inode);
    t.put(inode_key(number), format::encode(*inode));
  });
}

Key Lab::entry_key(std::uint64_t directory, const std::string& name) {
  return {directory, MDFS_KIND_DIRENT, format::first_cookie(kSecret, name)};
}

void Lab::put_entry(Transaction& transaction, std::uint64_t directory, const std::string& name, std::uint64_t inode,
                    std::uint8_t type) {
  transaction.put(entry_key(directory, name), format::encode(format::Dirent{inode, type, name}));
}

ByteVector Lab::get(const Key& key) {
  auto store = open_disks(disks, environment_);
  EXPECT_OK(store);
  auto value = (*store)->get(key);
  EXPECT_OK(value);
  return value->value_or(ByteVector());
}

void Lab::damage(std::size_t disk, std::uint64_t offset, std::size_t bytes) {
  ByteVector old(bytes);
  disks[disk]->peek(offset, old);
  for (std::byte& byte : old) byte ^= std::byte{0x5a};
  disks[disk]->poke(offset, old);
}

void Lab::damage_node(const format::Pointer& pointer, std::size_t copy) {
  damage(pointer.address[copy].disk, pointer.address[copy].block * kBlock + 200);
}

Recovered Lab::recover_all() { return *recover(borrow(disks)); }

format::DiskLayout Lab::layout() const {
  const std::uint64_t blocks = (16u << 20) / kBlock;
  return {kBlock, blocks, format::default_metadata_blocks(kBlock, blocks)};
}

std::vector<NodeRef> Lab::leaves() {
  const Recovered recovered = recover_all();
  const std::vector<format::DiskLayout> layouts(3, layout());
  const NodeLoader loader(recovered, layouts);
  BlockMap blocks(layouts, std::vector<bool>(3, true));
  Findings findings;
  return scan_tree(loader, *recovered.winner.root(MDFS_ROOT_MAIN), blocks, findings, [](const format::Node&) {})
      ->leaves;
}

format::Pointer Lab::root() { return recover_all().winner.root(MDFS_ROOT_MAIN)->pointer; }

CheckReport Lab::check(RepairMode mode, bool data, std::optional<std::uint64_t> map_pages,
                       std::optional<std::uint64_t> rollback) {
  device::RecorderLog log;
  std::vector<std::unique_ptr<device::Disk>> recorders;
  std::vector<const device::MemoryDisk*> bases;
  for (const auto& disk : disks) {
    if (!disk) continue;
    recorders.push_back(
        std::make_unique<device::RecorderDisk>(*disk, log, static_cast<std::uint32_t>(recorders.size())));
    bases.push_back(disk.get());
  }
  CheckOptions options;
  options.repair = mode;
  options.data = data;
  if (map_pages) options.map_bytes = *map_pages * MDFS_SECTOR;
  options.rollback = rollback;
  auto report = check_volume(std::move(recorders), options, environment_);
  EXPECT_OK(report);
  device::Replayer replayer(bases, log.events());
  replayer.advance_to(log.size());
  EXPECT_TRUE(replayer.outstanding().empty()) << "the checker leaves writes in the caches of the disks";
  return report.ok() ? *report : CheckReport();
}

std::vector<std::uint64_t> Lab::digests() const {
  std::vector<std::uint64_t> all;
  for (const auto& disk : disks)
    if (disk) all.push_back(disk->digest());
  return all;
}

std::vector<std::string> names_of(const CheckReport& report) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Finding& finding : report.findings)
    if (seen.insert(std::string(info(finding.id).name)).second) names.emplace_back(info(finding.id).name);
  return names;
}

std::string text_of(const CheckReport& report) {
  std::string text = report.repair_error + "\n";
  for (const Finding& finding : report.findings)
    text += std::string(info(finding.id).name) + (finding.repaired ? " (repaired): " : ": ") + finding.where + "\n";
  return text;
}

}  // namespace mdfs::store
