// Making, repairing and removing second copies of the blocks of files.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/cell_protector.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "device/urgency.h"
#include "engine/core.h"
#include "engine/map/extent_map.h"
#include "engine/open_object.h"
#include "engine/relocate/place_apart.h"
#include "engine/relocate/protect_job.h"
#include "engine/relocate/same_record.h"
#include "engine/requests.h"
#include "engine/write/publisher.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

using format::BlockPlace;
using format::CellPieces;

// Blocks of a cell that get new places together.
struct CellProtector::NewPiece {
  CellPieceKind part = CellPieceKind::kCopy;
  std::uint32_t blocks = 0;
  format::Runs to;
  BufferRef bytes;  // one block after another
};

struct CellProtector::Part {
  std::uint64_t index = 0;
  CellPieces cell;                            // as it was looked up
  std::uint32_t bad_first = 0, bad_copy = 0;  // not to stay
  std::uint32_t held = 0;                     // blocks whose bytes are in `bytes`
  bool drops_copy = false;
  CellWork work;
  BufferRef bytes;  // of the whole cell
  std::vector<NewPiece> pieces;
  ProtectState state = ProtectState::kOpen;

  bool has_copy() const { return cell.has_copies(); }
  bool gets_copy() const { return work.copy != 0; }
  std::vector<store::Run> new_runs() const {
    std::vector<store::Run> runs;
    for (const NewPiece& piece : pieces) runs.insert(runs.end(), piece.to.begin(), piece.to.end());
    return runs;
  }
};

struct CellProtector::Job : ProtectJob<Part> {};

namespace {

// Calls `visit` for the blocks of a mask, in order.
template <typename Visit>
void each_block(std::uint32_t blocks, const Visit& visit) {
  for (unsigned block = 0; block < 32; ++block)
    if ((blocks >> block & 1) != 0) visit(block);
}

std::uint32_t blocks_on(const format::FileCell& cell, std::uint64_t disks) {
  std::uint32_t blocks = 0;
  for (const format::FileRun& run : cell.runs)
    if ((disks >> run.address.disk & 1) != 0)
      for (unsigned block = run.first; block < run.end(); ++block) blocks |= 1u << block;
  return blocks;
}

bool is_as_wanted(const CellPieces& cell, bool copies, std::uint64_t gone) {
  return copies ? cell.protected_blocks(gone) == cell.first.block_mask() : !cell.has_copies();
}

std::uint64_t bytes_of(const OpenObject& object, std::uint32_t blocks) {
  return std::uint64_t(std::popcount(blocks)) * object.block_size;
}

}  // namespace

CellWork work_on_cell(const CellPieces& cell, std::uint32_t bad_first, std::uint32_t bad_copy, std::uint32_t held) {
  const std::uint32_t all = cell.first.block_mask(), copied = cell.copy.block_mask();
  CellWork work;
  work.damaged = all & ~held;
  work.first = bad_first & copied & held;
  work.copy = held & (~copied | (bad_copy & ~bad_first)) & all;
  work.again = (held & bad_first & (~copied | bad_copy)) != 0;
  return work;
}

// ---- what is there

// Of some cells. A damaged item ends it.
template <typename Visit>
Status CellProtector::each_cell(const OpenObject& object, std::uint64_t& cell, const Visit& visit) {
  MDFS_TRY_ASSIGN(const auto items,
                  core_.store.scan(cell_key(object, cell), cell_key(object, UINT64_MAX), kCellsAtOnce));
  for (const store::Item& item : items) {
    MDFS_TRY_ASSIGN(const CellPieces pieces, core_.extent_map.cell_pieces(object, item));
    if (!pieces.first.empty()) visit(item.key.offset, pieces);
    cell = item.key.offset + 1;
  }
  if (items.size() < kCellsAtOnce) cell = UINT64_MAX;
  return {};
}

Result<ProtectionState> CellProtector::look(const OpenObject& object, std::uint64_t& cell) {
  ProtectionState state;
  const std::uint64_t gone = core_.gone_disks(), unreadable = core_.store.lost_disks();
  MDFS_TRY(each_cell(object, cell, [&](std::uint64_t /*index*/, const CellPieces& pieces) {
    const std::uint32_t all = pieces.first.block_mask();
    const std::uint32_t copied = pieces.protected_blocks(gone);
    const std::uint32_t lost =
        blocks_on(pieces.first, unreadable) & (~pieces.copy.block_mask() | blocks_on(pieces.copy, unreadable));
    ++state.extents;
    state.copied += copied == all ? 1 : 0;
    state.stored_bytes += bytes_of(object, all);
    state.copied_bytes += bytes_of(object, copied);
    state.lost += lost != 0 ? 1 : 0;
    state.lost_bytes += bytes_of(object, lost);
  }));
  return state;
}

Result<std::vector<geometry::Coord>> CellProtector::find(const OpenObject& object, bool copies, std::uint64_t& cell) {
  std::vector<geometry::Coord> found;
  const std::uint64_t gone = core_.gone_disks();
  MDFS_TRY(each_cell(object, cell, [&](std::uint64_t index, const CellPieces& pieces) {
    if (!is_as_wanted(pieces, copies, gone)) found.push_back(object.extent_coord(index));
  }));
  return found;
}

// ---- the work

Result<ProtectOutcome> CellProtector::run(OpenObject& object, const ProtectRequest& request) {
  Job job{{request, core_.gone_disks() | request.drained_disks}};
  for (std::size_t i = 0; i < request.extents.size(); ++i) {
    MDFS_TRY(look_up(object, job, object.extent_index(request.extents[i])));
    if (job.parts.empty() || (job.parts.size() < kCellsAtOnce && i + 1 < request.extents.size())) continue;
    if (request.pace) MDFS_TRY(request.pace(job.parts.size() * object.extent_bytes));
    MDFS_TRY(run_batch(object, job));
  }
  return std::move(job.outcome);
}

// Notes the cell unless all is as it should be.
Status CellProtector::look_up(OpenObject& object, Job& job, std::uint64_t cell) {
  Part part;
  part.index = cell;
  MDFS_TRY_ASSIGN(part.cell, core_.extent_map.cell_pieces(object, cell));
  if (part.cell.first.empty()) return {};
  const bool verifies = job.request.verifies && part.cell.has_copies();
  if (is_as_wanted(part.cell, job.request.copies, job.gone) && !verifies) return {};
  part.drops_copy = !job.request.copies && !verifies;
  part.bad_first = blocks_on(part.cell.first, job.gone);
  const std::uint32_t together = part.cell.copy.block_mask() & ~part.cell.protected_blocks(0);
  part.bad_copy = blocks_on(part.cell.copy, job.gone) | together;
  // Not while the copy has to stand in for a first piece on a lost disk: that is made anew before.
  if (part.drops_copy && (part.bad_first & part.cell.copy.block_mask()) != 0) {
    part.drops_copy = false;
    job.outcome.again = true;
  }
  job.parts.push_back(std::move(part));
  return {};
}

Status CellProtector::run_batch(OpenObject& object, Job& job) {
  const ByteBudget::Share share = core_.loads.wait_for(job.parts.size() * object.extent_bytes);
  Status status = read(object, job);
  if (status.ok()) status = write(object, job);
  if (status.ok()) status = publish(object, job);
  return job.end(core_, std::move(status));
}

bool CellProtector::read_block(const BlockPlace& place, MutableBytes to) {
  std::vector<Segment> segments;
  const store::Run run{place.address.disk, place.address.block, 1};
  append_segments({&run, 1}, core_.store.block_size(), 0, to.size(), to.data(), 0, segments);
  return read_all(core_.store, segments, core_.options.largest_request_bytes).ok() && crc32c(to) == place.crc32c;
}

// Of all cells at once the pieces that stay. What that does not read is read block by block.
Status CellProtector::read(OpenObject& object, Job& job) {
  const auto stays = [](const Part& part, unsigned block) {
    const bool by_copy = (part.bad_first >> block & 1) != 0 && part.cell.copy.find(block);
    return by_copy ? part.cell.copy.find(block) : part.cell.first.find(block);
  };
  const device::UrgencyScope scope(device::in_background());
  std::vector<Segment> segments;
  for (Part& part : job.parts) {
    if (part.drops_copy) continue;
    part.bytes = core_.cache.acquire(object.extent_bytes, Use::kBrief);
    each_block(part.cell.first.block_mask(), [&](unsigned block) {
      const BlockPlace place = *stays(part, block);
      const store::Run run{place.address.disk, place.address.block, 1};
      append_segments({&run, 1}, object.block_size, 0, object.block_size,
                      part.bytes.data() + std::size_t{block} * object.block_size, 0, segments);
    });
  }
  const bool all_read = read_all(core_.store, segments, core_.options.largest_request_bytes).ok();
  for (Part& part : job.parts) {
    if (part.drops_copy) continue;
    each_block(part.cell.first.block_mask(), [&](unsigned block) {
      const ConstBytes bytes(part.bytes.data() + std::size_t{block} * object.block_size, object.block_size);
      if (all_read && crc32c(bytes) == stays(part, block)->crc32c) part.held |= 1u << block;
    });
    MDFS_TRY(judge(object, job, part));
  }
  return {};
}

// Finds good pieces of all blocks, and what is to be made from them.
Status CellProtector::judge(OpenObject& object, Job& job, Part& part) {
  std::optional<BlockPlace> bad;
  const auto note_bad = [&](bool copy, unsigned block, const BlockPlace& place) {
    (copy ? part.bad_copy : part.bad_first) |= 1u << block;
    if (!bad) bad = place;
  };
  AlignedBuffer other(object.block_size);
  each_block(part.cell.first.block_mask(), [&](unsigned block) {
    const std::uint32_t bit = 1u << block;
    const MutableBytes bytes(part.bytes.data() + std::size_t{block} * object.block_size, object.block_size);
    const BlockPlace first = *part.cell.first.find(block);
    const std::optional<BlockPlace> copy = part.cell.copy.find(block);
    const bool by_copy = (part.bad_first & bit) != 0 && copy;
    const BlockPlace stays = by_copy ? *copy : first;
    if ((part.held & bit) == 0 && read_block(stays, bytes)) part.held |= bit;
    if ((part.held & bit) == 0) note_bad(by_copy, block, stays);
    if (!copy || ((part.held & bit) != 0 && !job.request.verifies)) return;
    const BlockPlace rest = by_copy ? first : *copy;
    const bool good = read_block(rest, other.bytes());
    if (!good) note_bad(!by_copy, block, rest);
    if (!good || (part.held & bit) != 0) return;
    std::memcpy(bytes.data(), other.data(), bytes.size());
    part.held |= bit;
  });
  if (bad) {
    MDFS_TRY_ASSIGN(const bool current, is_same(core_, core_.store, object, part.index, part.cell));
    if (!current) {
      part.state = ProtectState::kChanged;
      return {};
    }
    if (!job.request.verifies) core_.store.note_checksum_error(bad->address.disk);  // what is verified has been counted
  }
  part.work = work_on_cell(part.cell, part.bad_first, part.bad_copy, part.held);
  if (!job.request.copies) part.work.copy &= job.request.verifies ? part.cell.copy.block_mask() : 0;
  if (part.work.damaged != 0) {
    const BlockPlace place = *part.cell.first.find(static_cast<unsigned>(std::countr_zero(part.work.damaged)));
    job.outcome.damaged.push_back(
        {object.extent_coord(part.index),
         part.index * object.extent_bytes,
         {place.address.disk, place.address.block, 1},
         {Errc::kCorrupt, fmt::format("file.checksum: object {} cell {}, disk {} block {}", object.number, part.index,
                                      place.address.disk, place.address.block)}});
  }
  job.outcome.again = job.outcome.again || part.work.again;
  if ((part.work.first | part.work.copy) == 0) part.state = ProtectState::kDone;
  return {};
}

// One piece for all blocks, or one for the blocks of each disk that they have to avoid.
void CellProtector::place(const OpenObject& object, Job& job, Part& part) {
  const geometry::Coord coord = object.extent_coord(part.index);
  const auto place_blocks = [&](CellPieceKind which, std::uint32_t blocks, std::uint64_t taken) {
    const std::vector<std::uint64_t> free_blocks = core_.store.free_of_disks();
    PieceToPlace wanted;
    wanted.taken = taken | job.gone;
    wanted.blocks = static_cast<std::uint64_t>(std::popcount(blocks));
    wanted.where.disk = which == CellPieceKind::kFirst
                            ? static_cast<std::uint16_t>(object.placement_disk(coord))
                            : object.disk_for_copy(coord, wanted.blocks, wanted.taken, free_blocks);
    wanted.where.owner = which == CellPieceKind::kFirst ? object.number : object.number | kCopyOwner;
    NewPiece piece{which, blocks, {}, {}};
    if (!place_apart(core_, wanted, free_blocks, job.reservation, piece.to)) return false;
    part.pieces.push_back(std::move(piece));
    return true;
  };
  const auto place_all = [&](CellPieceKind which, std::uint32_t blocks, const format::FileCell& other) {
    if (blocks == 0 || place_blocks(which, blocks, CellPieces::disks_of(other, blocks))) return true;
    std::map<std::uint16_t, std::uint32_t> by_disk;
    each_block(blocks, [&](unsigned block) { by_disk[other.find(block)->address.disk] |= 1u << block; });
    return by_disk.size() > 1 && std::all_of(by_disk.begin(), by_disk.end(), [&](const auto& some) {
             return place_blocks(which, some.second, std::uint64_t{1} << some.first);
           });
  };
  const bool placed = place_all(CellPieceKind::kFirst, part.work.first, part.cell.copy) &&
                      place_all(CellPieceKind::kCopy, part.work.copy, part.cell.first);
  part.state = placed ? ProtectState::kReady : ProtectState::kNoRoom;
}

Status CellProtector::write(OpenObject& object, Job& job) {
  store::SpaceAmount amount;
  for (Part& part : job.parts) {
    if (part.state != ProtectState::kOpen) continue;
    const std::uint32_t made = part.work.first | part.work.copy;
    const auto blocks = static_cast<std::uint64_t>(std::popcount(part.work.first) + std::popcount(part.work.copy));
    const store::SpaceAmount worst =
        object.worst_case(static_cast<std::uint64_t>(std::popcount(made | part.cell.copy.block_mask())), false);
    amount += {blocks, 2 * worst.items, 2 * worst.bytes};
    if (part.drops_copy) part.state = ProtectState::kReady;
  }
  if (amount.empty()) return {};
  MDFS_TRY_ASSIGN(job.reservation, core_.store.reserve(amount, job.purpose()));
  std::vector<Segment> segments;
  for (Part& part : job.parts) {
    if (part.state != ProtectState::kOpen) continue;
    place(object, job, part);
    if (part.state != ProtectState::kReady) continue;
    for (NewPiece& piece : part.pieces) {
      const std::uint64_t bytes = bytes_of(object, piece.blocks);
      piece.bytes = core_.cache.acquire(bytes, Use::kBrief);
      std::byte* to = piece.bytes.data();
      each_block(piece.blocks, [&](unsigned block) {
        std::memcpy(to, part.bytes.data() + std::size_t{block} * object.block_size, object.block_size);
        to += object.block_size;
      });
      append_segments(piece.to, object.block_size, 0, bytes, piece.bytes.data(), 0, segments);
    }
  }
  const device::UrgencyScope scope(device::in_background());
  return write_all(core_.store, segments, core_.options.largest_request_bytes);
}

Status CellProtector::publish(OpenObject& object, Job& job) {
  const auto ready = [](const Part& part) { return part.state == ProtectState::kReady; };
  if (std::none_of(job.parts.begin(), job.parts.end(), ready)) return {};
  std::vector<Part*> published;
  const std::lock_guard publishing(object.publishing);
  const auto change = [&](store::Transaction& transaction) -> Status {
    published.clear();
    Publisher publisher(core_, object, transaction);
    std::vector<Staged> staged;
    for (Part& part : job.parts) {
      if (!ready(part)) continue;
      MDFS_TRY_ASSIGN(const bool same, is_same(core_, transaction, object, part.index, part.cell));
      if (!same) continue;
      published.push_back(&part);
      const auto add = [&](CellPieceKind which) -> Staged& {
        Staged& one = staged.emplace_back();
        one.index = part.index;
        one.coord = object.extent_coord(part.index);
        one.cell_piece = which;
        one.is_moved = true;
        return one;
      };
      for (const NewPiece& piece : part.pieces) {
        Staged& one = add(piece.part);
        one.blocks = piece.blocks;
        (piece.part == CellPieceKind::kFirst ? one.extent.runs : one.extent.copy) = piece.to;
        each_block(piece.blocks,
                   [&](unsigned block) { one.extent.crc32c.push_back(part.cell.first.find(block)->crc32c); });
      }
      if (part.drops_copy) add(CellPieceKind::kCopy).holes = part.cell.copy.block_mask();
    }
    if (staged.empty()) return {};
    MDFS_TRY(publisher.publish(staged));
    return publisher.update_inode();
  };
  const auto purpose = job.request.copies ? store::Purpose::kReserved : store::Purpose::kFreeing;
  MDFS_TRY(core_.store.transact(purpose, change, &job.reservation));
  job.note_published(published, object.block_size);
  return {};
}

}  // namespace mdfs::engine
