// Pieces of what a commit published.
// SPDX-License-Identifier: Apache-2.0
#include "store/commit_pieces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "format/cell_copies.h"
#include "format/cell_parts.h"
#include "format/extent_copies.h"
#include "format/geometry_item.h"
#include "format/inode.h"
#include "format/strip.h"
#include "store/commit_nodes.h"
#include "store/read_stored.h"

namespace mdfs::store {
namespace {

using format::Key;
using format::StoredExtent;

// A commit with checksum records has written less than half of this, so that only a forged one asks for more.
constexpr std::uint64_t kMostBytes = 256u << 20;
constexpr std::uint64_t kMostPathBytes = std::uint64_t{format::kMaxTreeLevel} * MDFS_NODE_SIZE;

bool overlap(const alloc::Run& a, const alloc::Run& b) {
  return a.disk == b.disk && a.block < b.end() && b.block < a.end();
}

// disks[i] is disk i.
auto disk_in(std::span<device::Disk* const> disks) {
  return [disks](unsigned disk) { return disk < disks.size() ? disks[disk] : nullptr; };
}

// Writes bytes one after another to runs. What has no disk now is left out.
class RunWriter {
 public:
  RunWriter(const format::Runs& runs, std::span<device::Disk* const> disks, std::uint32_t block_size)
      : runs_(runs), disks_(disks), block_size_(block_size) {}

  Status write(ConstBytes bytes) {
    while (!bytes.empty() && run_ < runs_.size()) {
      const alloc::Run& run = runs_[run_];
      const std::uint64_t left = std::uint64_t{run.blocks} * block_size_ - done_;
      const std::uint64_t now = std::min<std::uint64_t>(left, bytes.size());
      if (device::Disk* const disk = disk_in(disks_)(run.disk))
        MDFS_TRY(device::write(*disk, run.block * block_size_ + done_, bytes.first(now)));
      bytes = bytes.subspan(now);
      done_ = now == left ? 0 : done_ + now;
      if (done_ == 0) ++run_;
    }
    return {};
  }

 private:
  const format::Runs& runs_;
  const std::span<device::Disk* const> disks_;
  const std::uint32_t block_size_;
  std::size_t run_ = 0;
  std::uint64_t done_ = 0;  // bytes of that run
};

// What may still be read.
class ReadBudget {
 public:
  bool take(std::uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  std::uint64_t left_ = kMostBytes;
};

// Items of the commit's tree by their keys, for the decoders of src/format.
class CommitItems {
 public:
  CommitItems(const format::CommitSlot& slot, std::vector<format::LeafItem> items, std::span<device::Disk* const> disks,
              std::uint32_t block_size, ReadBudget& budget)
      : slot_(slot), disks_(disks), block_size_(block_size), budget_(budget) {
    for (format::LeafItem& item : items) written_.emplace(item.key, std::move(item.value));
  }

  const std::map<Key, ByteVector>& written() const { return written_; }
  Result<std::optional<ByteVector>> get(const Key& key) {
    const auto found = written_.find(key);
    if (found != written_.end()) return std::optional(found->second);
    if (!budget_.take(kMostPathBytes)) return Error{Errc::kCorrupt, "more items than a commit with records has"};
    return read_item(slot_, disks_, block_size_, key);
  }

 private:
  const format::CommitSlot& slot_;
  const std::span<device::Disk* const> disks_;
  const std::uint32_t block_size_;
  ReadBudget& budget_;
  std::map<Key, ByteVector> written_;
};

class PieceSearch {
 public:
  PieceSearch(std::uint64_t generation, CommitItems& items, std::span<const alloc::Run> bad,
              std::span<device::Disk* const> disks, std::uint32_t block_size, ReadBudget& budget)
      : generation_(generation), items_(items), bad_(bad), disks_(disks), block_size_(block_size), budget_(budget) {}

  PiecesElsewhere run() && {
    for (const auto& [key, value] : items_.written()) {
      if (key.kind == MDFS_KIND_EXTENTS || key.kind == MDFS_KIND_PARITY)
        take_page({key.object, MDFS_KIND_EXTENTS, key.offset});
      else if (key.kind == MDFS_KIND_FILE_CELL || key.kind == MDFS_KIND_FILE_PARITY)
        take_cell({key.object, MDFS_KIND_FILE_CELL, key.offset});
      else if (key.kind == MDFS_KIND_STRIP)
        take_strip(key, value);
    }
    return std::move(found_);
  }

 private:
  // Absent: the object is no image, or its geometry cannot be read.
  std::optional<format::ExtentTableShape> shape_of(std::uint64_t object) {
    const auto [known, is_new] = shapes_.try_emplace(object);
    if (!is_new) return known->second;
    const auto value = items_.get({object, MDFS_KIND_GEOMETRY, 0});
    if (!value.ok() || !*value) return std::nullopt;
    const auto geometry = format::decode_geometry(**value);
    if (geometry.ok()) known->second = format::table_shape(*geometry);
    return known->second;
  }

  bool is_level(std::uint64_t object) {
    const auto [known, is_new] = levels_.try_emplace(object, false);
    if (!is_new) return known->second;
    const auto value = items_.get({object, MDFS_KIND_INODE, 0});
    if (!value.ok() || !*value) return false;
    const auto inode = format::decode_inode(**value);
    known->second = inode.ok() && inode->is_level();
    return known->second;
  }

  void take_page(const Key& key) {
    if (!seen_.insert(key).second) return;
    const auto records = items_.get(key);
    if (!records.ok() || !*records) return;
    const auto shape = shape_of(key.object);
    if (!shape) return;
    const auto page = format::ExtentPage::decode(**records, *shape);
    if (!page.ok()) return;
    std::optional<format::CopyPage> copies;
    if (const auto value = items_.get(format::copies_key(key)); value.ok() && *value)
      if (auto found = format::CopyPage::decode(**value, *shape); found.ok()) copies = std::move(*found);
    if (copies)
      for (const format::ParityGroup& group : copies->groups())
        if (const auto parity = group.stored_parity(*page, block_size_)) take_member(*parity);
    for (unsigned place = 0; place < shape->places(); ++place) {
      const auto extent = format::read_pieces(items_, key, *page, copies ? &*copies : nullptr, place, block_size_);
      if (!extent.ok() || !*extent) continue;
      take(**extent);
      if ((*extent)->birth == generation_ && is_bad((*extent)->runs) && is_level(key.object)) add((*extent)->runs);
    }
  }

  void take_cell(const Key& key) {
    if (!seen_.insert(key).second) return;
    const auto pieces = format::read_cell(items_, key, block_size_, true);
    if (!pieces.ok()) return;
    for (const format::CellPart& part : format::cell_parts(pieces->first, pieces->copy, block_size_)) take(part.bytes);
  }

  void take_strip(const Key& key, ConstBytes value) {
    const auto shape = shape_of(key.object);
    if (!shape) return;
    const auto strip = format::decode_strip(value, *shape, block_size_);
    if (!strip.ok()) return;
    for (unsigned place = 0; place < format::kMaxPlaces; ++place)
      if (strip->has(place)) take(strip->stored_part(place, block_size_));
  }

  void take(const StoredExtent& extent) {
    if (extent.others) return take_member(extent);
    if (!extent.has_copy() || (StoredExtent::disks_of(extent.runs) & StoredExtent::disks_of(extent.copy)) != 0) return;
    take_piece(extent, extent.by_copy());
    take_piece(extent.by_copy(), extent);
  }
  void take_piece(const StoredExtent& piece, const StoredExtent& other) {
    if (piece.birth != generation_ || !is_bad(piece.runs) || !matches(other)) return;
    add(piece.runs);
    if (!matches(piece)) found_.bad.push_back({other, piece.runs});
  }

  // A piece of a parity group.
  void take_member(const StoredExtent& piece) {
    if (piece.birth != generation_ || !is_bad(piece.runs) || (piece.disks() & piece.others.disks()) != 0) return;
    if (!budget_.take((1 + piece.others.pieces().size()) * piece.piece_blocks() * block_size_)) return;
    if (!read_from_others(piece, block_size_, disk_in(disks_)).ok()) return;
    add(piece.runs);
    if (!matches(piece)) found_.bad.push_back({piece, piece.runs});
  }

  void add(const format::Runs& runs) { found_.runs.insert(found_.runs.end(), runs.begin(), runs.end()); }

  bool is_bad(const format::Runs& runs) const {
    return std::any_of(runs.begin(), runs.end(), [&](const alloc::Run& run) {
      return std::any_of(bad_.begin(), bad_.end(), [&](const alloc::Run& bad) { return overlap(run, bad); });
    });
  }

  bool matches(const StoredExtent& extent) {
    if (!budget_.take(extent.piece_blocks() * block_size_)) return false;
    return verify_stored(extent, block_size_, disk_in(disks_)).ok();
  }

  const std::uint64_t generation_;
  CommitItems& items_;
  const std::span<const alloc::Run> bad_;
  const std::span<device::Disk* const> disks_;
  const std::uint32_t block_size_;
  ReadBudget& budget_;
  std::set<Key> seen_;
  std::map<std::uint64_t, std::optional<format::ExtentTableShape>> shapes_;  // of images
  std::map<std::uint64_t, bool> levels_;
  PiecesElsewhere found_;
};

}  // namespace

PiecesElsewhere pieces_good_elsewhere(const format::CommitSlot& slot, std::vector<format::LeafItem> items,
                                      std::span<const alloc::Run> bad, std::span<device::Disk* const> disks,
                                      std::uint32_t block_size) {
  ReadBudget budget;
  CommitItems found(slot, std::move(items), disks, block_size, budget);
  return PieceSearch(slot.generation, found, bad, disks, block_size, budget).run();
}

Status repair(const CommitDamage& damage, std::span<device::Disk* const> disks, std::uint32_t block_size) {
  MDFS_TRY(repair_copies(damage.nodes, disks, block_size));
  for (const BadPiece& piece : damage.pieces) {
    RunWriter writer(piece.bad, disks, block_size);
    if (piece.good.others) {
      MDFS_TRY_ASSIGN(const ByteVector bytes, read_from_others(piece.good, block_size, disk_in(disks)));
      AlignedBuffer aligned(bytes.size());
      std::copy(bytes.begin(), bytes.end(), aligned.bytes().begin());
      MDFS_TRY(writer.write(aligned.bytes()));
      continue;
    }
    MDFS_TRY(
        read_stored(piece.good, block_size, disk_in(disks), [&](ConstBytes bytes) { return writer.write(bytes); }));
  }
  return {};
}

}  // namespace mdfs::store
