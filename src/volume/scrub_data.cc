// Pieces of data: taken out of the tree, read, and compared with their checksums.
// SPDX-License-Identifier: Apache-2.0
#include "volume/scrub_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/log.h"
#include "device/disk.h"
#include "format/file_cell.h"
#include "format/strip.h"
#include "volume/records.h"

namespace mdfs::volume {
namespace {

constexpr std::size_t kRecordsAtOnce = 128;
constexpr std::uint64_t kLargestGap = 65536;  // read over rather than around

format::Key after(const format::Key& key) {
  if (key.offset != UINT64_MAX) return {key.object, key.kind, key.offset + 1};
  if (key.kind != UINT64_MAX) return {key.object, key.kind + 1, 0};
  return {key.object + 1, 0, 0};
}

// Of one that is not the smallest.
format::Key before(const format::Key& key) {
  if (key.offset > 0) return {key.object, key.kind, key.offset - 1};
  if (key.kind > 0) return {key.object, key.kind - 1, UINT64_MAX};
  return {key.object - 1, UINT64_MAX, UINT64_MAX};
}

std::string name_of(const StoredPiece& piece) {
  const format::Address& at = piece.runs.front().address;
  const std::string part = piece.is_extent ? fmt::format("page {}, place {}", piece.where / 64, piece.where % 64)
                                           : fmt::format("byte {}", piece.where);
  return fmt::format("inode {}, {}: block {} of disk {}", piece.object, part, at.block, at.disk);
}

bool same(const StoredPiece& a, const StoredPiece& b) {
  return a.birth == b.birth && a.runs == b.runs && a.stored_bytes == b.stored_bytes && a.crc32c == b.crc32c;
}

}  // namespace

// ---- taking pieces out of the tree

Result<std::optional<format::ExtentTableShape>> PieceCollector::shape_of(std::uint64_t object) {
  if (shape_object_ == object && shape_) return shape_;
  MDFS_TRY_ASSIGN(const auto item, store_.get(geometry_key(object)));
  if (!item) return std::optional<format::ExtentTableShape>();  // deleted meanwhile
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, read_geometry(store_, object));
  shape_object_ = object;
  shape_ = format::ExtentTableShape{static_cast<std::uint8_t>(geometry.codec),
                                    static_cast<std::uint32_t>(geometry.extent_bytes())};
  return shape_;
}

Result<std::optional<StoredPiece>> PieceCollector::extent(const format::Key& key, unsigned place,
                                                          const format::ExtentRecord& record,
                                                          const format::ExtentTableShape& shape) {
  StoredPiece piece;
  piece.object = key.object;
  piece.where = key.offset * format::kMaxPlaces + place;
  piece.is_extent = true;
  piece.stored_bytes = record.stored_bytes;
  piece.part_bytes = shape.codec == MDFS_CODEC_RAW ? MDFS_SUB_BLOCK : record.stored_bytes;
  piece.crc32c = record.crc32c;
  piece.birth = record.birth;
  piece.shape = shape;
  const std::uint64_t blocks = ceil_div(record.stored_bytes, store_.block_size());
  if (!record.is_scattered()) {
    piece.runs = {{record.place(), blocks}};
    return std::optional(std::move(piece));
  }
  MDFS_TRY_ASSIGN(const auto runs, store_.get({key.object, MDFS_KIND_EXTENT_RUNS, piece.where}));
  if (!runs) return std::optional<StoredPiece>();  // moved meanwhile
  MDFS_TRY_ASSIGN(piece.runs, format::decode_extent_runs(*runs, blocks));
  return std::optional(std::move(piece));
}

Status PieceCollector::take_extents(const store::Item& item, std::vector<StoredPiece>& pieces) {
  MDFS_TRY_ASSIGN(const auto shape, shape_of(item.key.object));
  if (!shape) return {};
  MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(item.value, *shape));
  for (unsigned place = 0; place < shape->places(); ++place) {
    const auto record = page.get(place);
    if (!record) continue;
    MDFS_TRY_ASSIGN(auto piece, extent(item.key, place, *record, *shape));
    if (piece) pieces.push_back(std::move(*piece));
  }
  return {};
}

Status PieceCollector::take_cell(const store::Item& item, std::vector<StoredPiece>& pieces) const {
  const std::uint32_t block_size = store_.block_size();
  MDFS_TRY_ASSIGN(const format::FileCell cell, format::decode_file_cell(item.value, block_size));
  for (const format::FileRun& run : cell.runs) {
    StoredPiece piece;
    piece.object = item.key.object;
    piece.where = item.key.offset * MDFS_FILE_CELL + std::uint64_t{run.first} * block_size;
    piece.stored_bytes = run.blocks() * block_size;
    piece.part_bytes = block_size;
    piece.runs = {{run.address, run.blocks()}};
    piece.crc32c = run.crc32c;
    piece.birth = run.birth;
    pieces.push_back(std::move(piece));
  }
  return {};
}

Status PieceCollector::take_strip(const store::Item& item, std::vector<StoredPiece>& pieces) {
  const std::uint32_t block_size = store_.block_size();
  MDFS_TRY_ASSIGN(const auto shape, shape_of(item.key.object));
  if (!shape) return {};
  MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, *shape, block_size));
  for (unsigned place = 0; place < shape->places(); ++place) {
    if (!strip.has(place)) continue;
    StoredPiece piece;
    piece.object = item.key.object;
    piece.where = item.key.offset / MDFS_STRIPS_PER_PAGE * format::kMaxPlaces + place;
    piece.is_extent = true;
    piece.strip = item.key.offset;
    piece.stored_bytes = strip.part_blocks(block_size) * block_size;
    piece.part_bytes = block_size;
    piece.runs = {strip.part(place, block_size)};
    const auto checksums = strip.part_checksums(place, block_size);
    piece.crc32c.assign(checksums.begin(), checksums.end());
    piece.birth = strip.birth;
    piece.shape = *shape;
    pieces.push_back(std::move(piece));
  }
  return {};
}

void PieceCollector::take(const std::vector<store::Item>& items, std::vector<StoredPiece>& pieces,
                          format::OperationRecord& record) {
  for (const store::Item& item : items) {
    Status status;
    if (item.key.kind == MDFS_KIND_EXTENTS) status = take_extents(item, pieces);
    if (item.key.kind == MDFS_KIND_FILE_CELL) status = take_cell(item, pieces);
    if (item.key.kind == MDFS_KIND_STRIP) status = take_strip(item, pieces);
    if (status.ok()) continue;
    spdlog::error("scrub: item ({}, {}, {}): {}; run mdfsck", item.key.object, item.key.kind, item.key.offset,
                  status.error().message());
    record.note_trouble({item.key.object, item.key.offset, 0, 0, MDFS_TROUBLE_SKIPPED});
  }
}

bool PieceCollector::collect(format::Key& next, std::vector<StoredPiece>& pieces, format::OperationRecord& record) {
  const auto items = store_.scan(next, format::kMaxKey, kRecordsAtOnce);
  if (items.ok()) {
    take(*items, pieces, record);
    if (items->size() < kRecordsAtOnce) return false;
    next = after(items->back().key);
    return true;
  }
  // One of the leaves cannot be read, which the look at the nodes has named. Leaf by leaf, then, until it is behind us.
  const std::optional<format::Key> behind = verifier_.next_leaf(next);
  const auto leaf = store_.scan(next, behind ? before(*behind) : format::kMaxKey, SIZE_MAX);
  if (leaf.ok()) {
    take(*leaf, pieces, record);
  } else {
    spdlog::error("scrub: the tree from ({}, {}, {}) on cannot be read: {}", next.object, next.kind, next.offset,
                  leaf.error().message());
    record.note_trouble({next.object, next.offset, 0, 0, MDFS_TROUBLE_SKIPPED});
  }
  if (behind) next = *behind;
  return behind.has_value();
}

bool PieceCollector::is_current(const StoredPiece& piece) {
  std::vector<StoredPiece> now;
  const std::uint64_t kind = piece.is_extent ? MDFS_KIND_EXTENTS : MDFS_KIND_FILE_CELL;
  const std::uint64_t offset = piece.is_extent ? piece.where / format::kMaxPlaces : piece.where / MDFS_FILE_CELL;
  format::Key key{piece.object, kind, offset};
  if (piece.strip) key = {piece.object, MDFS_KIND_STRIP, *piece.strip};
  const auto value = store_.get(key);
  if (!value.ok()) return true;
  if (!*value) return false;
  const store::Item item{key, **value};
  const Status status = piece.strip       ? take_strip(item, now)
                        : piece.is_extent ? take_extents(item, now)
                                          : take_cell(item, now);
  if (!status.ok()) return true;
  return std::any_of(now.begin(), now.end(),
                     [&](const StoredPiece& other) { return other.where == piece.where && same(piece, other); });
}

// ---- reading

void PieceReader::forget() {
  pieces_.clear();
  disks_.clear();
}

std::uint64_t PieceReader::first_byte(const StoredPiece& piece) const {
  return piece.runs.front().address.block * store_.block_size();
}

std::uint64_t PieceReader::end_byte(const StoredPiece& piece) const {
  return first_byte(piece) + align_up(piece.stored_bytes, device::kAlignment);
}

// What the tree says of a place is not believed before it is known to be one.
PieceReader::Where PieceReader::place_of(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks) {
  Where where = Where::kHere;
  for (const format::BlockRun& run : piece.runs) {
    if (run.address.disk >= disks.size()) return Where::kNowhere;
    const store::DiskInfo& disk = disks[run.address.disk];
    if (!inside(run.address.block, run.blocks, disk.blocks)) return Where::kNowhere;
    if (disk.is_lost()) return Where::kLost;
    if (!disk.is_there()) where = Where::kLeftOut;
  }
  return where;
}

void PieceReader::note_lost(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks,
                            format::OperationRecord& record) {
  const auto run = std::find_if(piece.runs.begin(), piece.runs.end(),
                                [&](const format::BlockRun& one) { return disks[one.address.disk].is_lost(); });
  const format::Address& at = run->address;
  record.note_trouble({piece.object, piece.where, at.block, at.disk, MDFS_TROUBLE_UNREADABLE});
}

void PieceReader::begin(std::vector<StoredPiece> pieces, format::OperationRecord& record) {
  pieces_ = std::move(pieces);
  disks_.assign(store_.disk_count(), {});
  std::vector<store::DiskInfo> disks;
  for (unsigned i = 0; i < store_.disk_count(); ++i) disks.push_back(store_.disk_info(i));
  for (std::uint32_t i = 0; i < pieces_.size(); ++i) {
    const StoredPiece& piece = pieces_[i];
    const Where where = place_of(piece, disks);
    if (where == Where::kHere) disks_[piece.runs.front().address.disk].order.push_back(i);
    if (where == Where::kHere || where == Where::kLeftOut || !collector_.is_current(piece)) continue;
    if (where == Where::kLost) {
      note_lost(piece, disks, record);
      continue;
    }
    spdlog::error("scrub: {}: there is no such place; run mdfsck", name_of(piece));
    record.note_trouble({piece.object, piece.where, piece.runs.front().address.block, 0, MDFS_TROUBLE_SKIPPED});
  }
  for (Disk& disk : disks_)
    std::sort(disk.order.begin(), disk.order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return pieces_[a].runs.front().address.block < pieces_[b].runs.front().address.block;
    });
}

bool PieceReader::done() const {
  return std::all_of(disks_.begin(), disks_.end(), [](const Disk& disk) { return disk.next == disk.order.size(); });
}

PieceReader::Span PieceReader::next_span(unsigned index) const {
  const Disk& disk = disks_[index];
  const auto piece = [&](std::size_t i) -> const StoredPiece& { return pieces_[disk.order[i]]; };
  const auto simple = [](const StoredPiece& p) { return p.runs.size() == 1; };
  Span span;
  span.disk = index;
  span.first = disk.next;
  span.last = disk.next + 1;
  span.start = first_byte(piece(span.first));
  span.end = end_byte(piece(span.first));
  span.together = simple(piece(span.first)) && span.end - span.start <= kReadBytes;
  if (!span.together) return span;
  while (span.last < disk.order.size()) {
    const StoredPiece& next = piece(span.last);
    if (!simple(next) || first_byte(next) > span.end + kLargestGap || end_byte(next) > span.start + kReadBytes) break;
    span.end = std::max(span.end, end_byte(next));
    ++span.last;
  }
  return span;
}

// Run by run.
Status PieceReader::check_alone(const StoredPiece& piece) {
  store::PartChecker parts(piece);
  AlignedBuffer buffer(kReadBytes);
  for (const format::BlockRun& run : piece.runs) {
    const std::uint64_t bytes = run.blocks * store_.block_size();
    for (std::uint64_t done = 0; done < bytes; done += kReadBytes) {
      const MutableBytes part = buffer.bytes().first(std::min<std::uint64_t>(kReadBytes, bytes - done));
      MDFS_TRY(device::read(store_.disk(run.address.disk), run.address.block * store_.block_size() + done, part));
      parts.take(part);
    }
  }
  if (!parts.good()) return {Errc::kCorrupt, "data.checksum"};
  return {};
}

// What was freed or moved meanwhile holds something else by now: only what the tree still insists on is damaged. It is
// read once more, since it may have been the way from the disk that was.
void PieceReader::judge(const StoredPiece& piece, Status status, format::OperationRecord& record) {
  if (status.ok() || !collector_.is_current(piece)) return;
  status = check_alone(piece);
  if (status.ok() || !collector_.is_current(piece)) return;
  const bool damaged = status.error().code == Errc::kCorrupt;
  spdlog::error("scrub: {}: {}", name_of(piece),
                damaged ? "does not match its checksum" : "cannot be read: " + status.error().message());
  const format::Address& at = piece.runs.front().address;
  if (damaged) store_.note_checksum_error(at.disk);
  record.note_trouble({piece.object, piece.where, at.block, at.disk,
                       static_cast<std::uint16_t>(damaged ? MDFS_TROUBLE_DATA : MDFS_TROUBLE_UNREADABLE)});
}

std::uint64_t PieceReader::step(format::OperationRecord& record) {
  std::vector<Span> spans;
  for (unsigned i = 0; i < disks_.size(); ++i)
    if (disks_[i].next < disks_[i].order.size()) spans.push_back(next_span(i));
  AlignedBuffer buffer(std::max<std::size_t>(1, spans.size()) * kReadBytes);
  std::vector<device::Io> ios(spans.size());
  std::vector<device::Addressed> requests;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i].together) continue;
    ios[i].offset = spans[i].start;
    ios[i].buffers = {buffer.bytes().subspan(i * kReadBytes, spans[i].end - spans[i].start)};
    requests.push_back({&store_.disk(spans[i].disk), &ios[i]});
  }
  (void)device::run(requests);  // each request's own status counts
  std::uint64_t read_bytes = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    Disk& disk = disks_[span.disk];
    std::uint64_t bytes = 0;
    for (; disk.next < span.last; ++disk.next) {
      const StoredPiece& piece = pieces_[disk.order[disk.next]];
      bytes += align_up(piece.stored_bytes, std::uint64_t{store_.block_size()});
      ++record.items_done;
      if (!span.together || !ios[i].status.ok()) {
        judge(piece, check_alone(piece), record);
        continue;
      }
      store::PartChecker parts(piece);
      parts.take(ConstBytes(ios[i].buffers[0]).subspan(first_byte(piece) - span.start, piece.stored_bytes));
      judge(piece, parts.good() ? Status() : Status(Errc::kCorrupt, "data.checksum"), record);
    }
    record.bytes_done += bytes;
    if (span.disk < record.disks.size()) record.disks[span.disk].read_bytes += bytes;
    read_bytes += bytes;
  }
  return read_bytes;
}

}  // namespace mdfs::volume
