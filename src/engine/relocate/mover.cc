// Moving stored bytes: look up, allocate, copy, publish.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/mover.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/checked.h"
#include "device/urgency.h"
#include "engine/core.h"
#include "engine/map/extent_map.h"
#include "engine/open_object.h"
#include "engine/relocate/read_piece.h"
#include "engine/relocate/same_record.h"
#include "engine/requests.h"
#include "engine/write/publisher.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

// One extent or cell on its way.
struct Mover::Part {
  geometry::Coord coord{};
  std::uint64_t index = 0;
  StoredExtent from;          // as it was looked up; `runs` are those of the piece that moves
  std::uint64_t avoided = 0;  // disks of the other pieces, a bit each
  bool is_parity = false;     // of the group of which the extent is a member
  format::CellPieces cell;    // files: as it was looked up
  format::Runs to;            // in order of the stored bytes
  std::uint32_t blocks = 0;
  std::uint16_t disk = 0;  // that takes it
  BufferRef bytes;         // while it is being copied
  enum class State : std::uint8_t { kOpen, kNoRoom, kChanged, kDamaged, kCopied, kMoved } state = State::kOpen;
};

struct Mover::Job {
  const MoveRequest& request;
  std::vector<Part> parts;  // by disk, then in the order in which they are to lie
  store::Reservation reservation;
  MoveOutcome outcome;
};

namespace {

std::uint64_t bytes_of(const OpenObject& object, std::uint64_t blocks) { return blocks * object.block_size; }

std::uint64_t number_of(const OpenObject& object, std::uint64_t index) {
  if (!object.is_image()) return index * object.extent_bytes;
  const geometry::PagePlace place = object.page_of(object.extent_coord(index));
  return place.page * format::kMaxPlaces + place.place;
}

// The blocks of a cell, or their copies, as one extent, run after run. `other`: the other pieces. Blocks that have none
// are the same in the extent's copy.
StoredExtent stored_cell(const OpenObject& object, const format::FileCell& cell, const format::FileCell& other) {
  StoredExtent whole;
  for (const format::FileRun& run : cell.runs) {
    whole.runs.push_back(run.place());
    whole.crc32c.append(run.crc32c.begin(), run.crc32c.end());
  }
  whole.stored_bytes = cell.blocks() * object.block_size;
  whole.part_bytes = object.block_size;
  if (other.empty()) return whole;
  for (const format::FileRun& run : cell.runs) {
    for (unsigned block = run.first; block < run.end(); ++block) {
      const format::BlockPlace place = other.find(block).value_or(*cell.find(block));
      format::append_run(whole.copy, {place.address.disk, place.address.block, 1});
    }
  }
  return whole;
}

// All blocks of a cell, or all their copies, at new places: one.extent.runs.
void stage_cell(const format::CellPieces& cell, bool of_copies, Staged& one) {
  one.cell_piece = of_copies ? CellPieceKind::kCopy : CellPieceKind::kFirst;
  one.blocks = (of_copies ? cell.copy : cell.first).block_mask();
  one.extent.copy.clear();
  if (of_copies) std::swap(one.extent.runs, one.extent.copy);
}

}  // namespace

MoveOutcome& MoveOutcome::operator+=(MoveOutcome&& other) {
  moved += other.moved;
  moved_bytes += other.moved_bytes;
  changed += other.changed;
  no_room.insert(no_room.end(), other.no_room.begin(), other.no_room.end());
  std::move(other.damaged.begin(), other.damaged.end(), std::back_inserter(damaged));
  return *this;
}

Result<MoveOutcome> Mover::move(OpenObject& object, const MoveRequest& request) {
  Job job{request, {}, {}, {}};
  MDFS_TRY(look_up(object, job, request.extents));
  Status status = find_room(object, job);
  if (status.ok()) status = copy(object, job);
  if (status.ok()) status = publish(object, job);
  for (Part& part : job.parts)
    if (part.state != Part::State::kMoved) give_back(part);
  if (!status.ok() && status.error().code != Errc::kNoSpace) return std::move(status).error();
  for (const Part& part : job.parts) {
    if (part.state == Part::State::kMoved) {
      ++job.outcome.moved;
      job.outcome.moved_bytes += bytes_of(object, part.blocks);
    } else if (part.state == Part::State::kChanged) {
      ++job.outcome.changed;
    } else if (part.state != Part::State::kDamaged) {
      job.outcome.no_room.push_back(part.coord);
    }
  }
  return std::move(job.outcome);
}

void Mover::give_back(Part& part) {
  for (const store::Run& run : part.to) core_.store.abandon(run);
  part.to.clear();
}

// ---- where everything is, and where it goes

Status Mover::look_up(OpenObject& object, Job& job, const std::vector<geometry::Coord>& extents) {
  std::set<std::uint64_t> known;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> group_targets;  // disks, by page and members
  for (const geometry::Coord& extent : extents) {
    Part part;
    part.index = object.extent_index(extent);
    if (!known.insert(part.index).second) continue;
    const geometry::Coord coord = part.coord = object.extent_coord(part.index);
    if (object.is_image()) {
      const geometry::PagePlace place = object.page_of(coord);
      MDFS_TRY_ASSIGN(const KnownPage known_page, core_.extent_map.page(object, place.page, false));
      MDFS_TRY_ASSIGN(const auto from, format::read_pieces(core_.store, page_key(object, place.page), *known_page.page,
                                                           known_page.copies.get(), place.place, object.block_size));
      if (!from || (job.request.of_copies && !from->is_protected())) continue;  // replaced meanwhile
      part.is_parity = job.request.of_copies && from->others;
      if (part.is_parity) {
        const auto parity =
            known_page.copies->group_of(place.place)->stored_parity(*known_page.page, object.block_size);
        if (!parity) continue;
        part.from = *parity;
      } else {
        part.from = job.request.of_copies ? from->by_copy() : *from;
      }
      part.avoided = part.from.other_disks() | group_targets[{place.page, part.from.others.members()}];
    } else {
      MDFS_TRY_ASSIGN(part.cell, core_.extent_map.cell_pieces(object, part.index));
      part.from = stored_cell(object, job.request.of_copies ? part.cell.copy : part.cell.first,
                              job.request.of_copies ? part.cell.first : part.cell.copy);
      part.avoided = format::CellPieces::disks_of(job.request.of_copies ? part.cell.first : part.cell.copy, UINT32_MAX);
    }
    if (!part.from.is_stored()) continue;
    MDFS_TRY(core_.extent_map.check(part.from));
    part.blocks = static_cast<std::uint32_t>(part.from.piece_blocks());
    const unsigned disk = job.request.disk        ? job.request.disk(coord)
                          : job.request.of_copies ? object.copy_disk(coord)
                                                  : object.placement_disk(coord);
    if (disk < MDFS_MAX_DISKS && (part.avoided >> disk & 1) != 0) {
      job.outcome.no_room.push_back(coord);
      continue;
    }
    if (disk >= core_.store.disk_count()) return {Errc::kInvalidArgument, fmt::format("move to disk {}", disk)};
    part.disk = static_cast<std::uint16_t>(disk);
    if (part.from.others)
      group_targets[{object.page_of(coord).page, part.from.others.members()}] |= std::uint64_t{1} << disk;
    job.parts.push_back(std::move(part));
  }
  std::stable_sort(job.parts.begin(), job.parts.end(), [&](const Part& a, const Part& b) {
    if (a.disk != b.disk) return a.disk < b.disk;
    return object.groups.order_of(a.coord) < object.groups.order_of(b.coord);
  });
  return {};
}

Status Mover::find_room(OpenObject& object, Job& job) {
  store::SpaceAmount blocks, again, nodes;
  for (const Part& part : job.parts) {
    blocks.blocks += part.blocks;
    for (const store::Run& run : part.from.runs) again.blocks += job.request.freed ? job.request.freed(run) : 0;
    if (job.request.most_runs > 0) continue;  // records stay as long as they are, or become shorter
    const store::SpaceAmount worst = object.worst_case(part.blocks, false);
    nodes += {0, worst.items, worst.bytes};
  }
  const auto reserve = [&](const store::SpaceAmount& amount, store::Purpose purpose) -> Status {
    if (amount.empty()) return {};
    MDFS_TRY_ASSIGN(store::Reservation reservation, core_.store.reserve(amount, purpose));
    job.reservation.absorb(std::move(reservation));
    return {};
  };
  Status status = reserve(blocks.less(again), store::Purpose::kMoving);
  if (status.ok()) status = reserve(again, job.request.purpose);
  if (!status.ok() && job.request.most_runs > 0) return status;
  if (status.ok()) status = reserve(nodes, job.request.purpose);
  // Without space for all extents some may have it. Publishing fails where no space is left for its nodes.
  if (!status.ok() && status.error().code != Errc::kNoSpace) return status;
  for (std::size_t first = 0, last = 0; first < job.parts.size(); first = last) {
    while (last < job.parts.size() && job.parts[last].disk == job.parts[first].disk) ++last;
    std::uint32_t runs_left = job.request.most_runs > 0 ? job.request.most_runs : UINT32_MAX;
    if (place(object, job, first, last, runs_left) || job.request.most_runs == 0) continue;
    for (std::size_t i = first; i < last; ++i) {
      give_back(job.parts[i]);
      job.parts[i].state = Part::State::kNoRoom;
    }
  }
  return {};
}

Result<store::Run> Mover::allocate(const OpenObject& object, Job& job, std::uint16_t disk, std::uint32_t blocks) {
  store::AllocationRequest request;
  request.disk = disk;
  request.blocks = blocks;
  request.owner = object.number;
  request.may_fall_back = false;
  request.fits = job.request.most_runs > 0;
  request.at_block = job.request.at_block;
  if (object.is_image()) request.policy = object.image->policy;
  return core_.store.allocate(request, job.reservation.blocks() >= blocks ? &job.reservation : nullptr);
}

// One run for all of them, or for each half in turn. True: all have one.
bool Mover::place(const OpenObject& object, Job& job, std::size_t first, std::size_t last, std::uint32_t& runs_left) {
  std::uint64_t blocks = 0;
  for (std::size_t i = first; i < last; ++i) blocks += job.parts[i].blocks;
  if (runs_left == 0) return false;
  if (blocks <= MDFS_BITS_PER_PAGE) {
    Result<store::Run> run = allocate(object, job, job.parts[first].disk, static_cast<std::uint32_t>(blocks));
    if (run.ok()) {
      --runs_left;
      for (std::size_t i = first; i < last; ++i) {
        job.parts[i].to = {{run->disk, run->block, job.parts[i].blocks}};
        run->block += job.parts[i].blocks;
      }
      return true;
    }
  }
  if (job.request.at_block != 0) {  // there is no other place
    for (std::size_t i = first; i < last; ++i) job.parts[i].state = Part::State::kNoRoom;
    return false;
  }
  if (last - first == 1) {
    // The pieces of groups lie in one run.
    if (job.request.most_runs == 0 && !job.parts[first].from.others && scatter(object, job, job.parts[first]))
      return true;
    job.parts[first].state = Part::State::kNoRoom;
    return false;
  }
  const std::size_t middle = first + (last - first) / 2;
  const bool left = place(object, job, first, middle, runs_left);
  if (!left && job.request.most_runs > 0) return false;
  const bool right = place(object, job, middle, last, runs_left);
  return left && right;
}

// No contiguous room is left for this extent: smaller and smaller pieces.
bool Mover::scatter(const OpenObject& object, Job& job, Part& part) {
  std::uint32_t left = part.blocks;
  for (std::uint32_t piece = std::max(1u, left / 2); left > 0;) {
    const Result<store::Run> run = allocate(object, job, part.disk, std::min(piece, left));
    if (run.ok()) {
      part.to.push_back(*run);
      left -= run->blocks;
    } else if (run.error().code != Errc::kNoSpace || piece == 1) {
      give_back(part);
      return false;
    } else {
      piece /= 2;
    }
  }
  return true;
}

// ---- copying

Status Mover::copy(OpenObject& object, Job& job) {
  for (std::size_t first = 0; first < job.parts.size();) {
    std::size_t last = first;
    std::uint64_t bytes = 0;
    for (; last < job.parts.size() && (bytes == 0 || bytes < kPieceBytes); ++last)
      if (job.parts[last].state == Part::State::kOpen) bytes += bytes_of(object, job.parts[last].blocks);
    if (bytes > 0) {
      if (job.request.pace) MDFS_TRY(job.request.pace(bytes));
      MDFS_TRY(copy_piece(object, job, first, last));
    }
    first = last;
  }
  return {};
}

Status Mover::copy_piece(OpenObject& object, Job& job, std::size_t first, std::size_t last) {
  std::vector<Segment> reads, writes;
  std::uint64_t bytes = 0;
  for (std::size_t i = first; i < last; ++i) bytes += bytes_of(object, job.parts[i].blocks);
  const ByteBudget::Share share = core_.loads.wait_for(bytes);
  const device::UrgencyScope scope(device::in_background());
  for (std::size_t i = first; i < last; ++i) {
    Part& part = job.parts[i];
    if (part.state != Part::State::kOpen) continue;
    part.bytes = core_.cache.acquire(bytes_of(object, part.blocks), Use::kBrief);
    append_segments(part.from.runs, object.block_size, 0, bytes_of(object, part.blocks), part.bytes.data(), 0, reads);
  }
  const Status read = read_all(core_.store, reads, core_.options.largest_request_bytes);
  for (std::size_t i = first; i < last; ++i) {
    Part& part = job.parts[i];
    if (part.state != Part::State::kOpen) continue;
    if (!read.ok() || !holds(part.from, part.bytes.bytes())) {
      const Status again = read_again(object, part);
      if (!again.ok())
        job.outcome.damaged.push_back({part.coord, number_of(object, part.index), part.from.first(), again.error()});
    } else {
      part.state = Part::State::kCopied;
    }
    if (part.state == Part::State::kCopied)
      append_segments(part.to, object.block_size, 0, bytes_of(object, part.blocks), part.bytes.data(), 0, writes);
  }
  const Status written = write_all(core_.store, writes, core_.options.largest_request_bytes);
  for (std::size_t i = first; i < last; ++i) job.parts[i].bytes = BufferRef();
  return written;
}

// Alone, after looking whether it is still there; then the other copy. An error is that of a damaged extent.
Status Mover::read_again(OpenObject& object, Part& part) {
  MDFS_TRY_ASSIGN(const bool current, is_current(object, part));
  part.state = Part::State::kChanged;
  if (!current) return {};
  const Status read = read_any_piece(core_, part.from, part.bytes.bytes());
  if (read.ok()) {
    part.state = Part::State::kCopied;
    return {};
  }
  MDFS_TRY_ASSIGN(const bool still, is_current(object, part));
  if (!still) return {};
  part.state = Part::State::kDamaged;
  if (read.error().code != Errc::kCorrupt) return read;
  return {Errc::kCorrupt, fmt::format("{}: object {} extent {}, disk {} block {}",
                                      object.is_image() ? "extent.checksum" : "file.checksum", object.number,
                                      part.index, part.from.first().disk, part.from.first().block)};
}

template <typename Reader>
Result<bool> Mover::is_current(Reader& reader, const OpenObject& object, const Part& part) {
  if (!object.is_image()) return is_same(core_, reader, object, part.index, part.cell);
  if (!part.is_parity) return is_same(core_, reader, object, part.coord, part.from);
  return is_same_parity(core_, reader, object, part.coord, part.from);
}

Result<bool> Mover::is_current(const OpenObject& object, const Part& part) {
  return is_current(core_.store, object, part);
}

// ---- publishing

Status Mover::publish(OpenObject& object, Job& job) {
  const auto copied = [](const Part& part) { return part.state == Part::State::kCopied; };
  if (std::none_of(job.parts.begin(), job.parts.end(), copied)) return {};
  std::vector<Part*> published;
  Publisher::Pages pages;
  const std::lock_guard publishing(object.publishing);
  const auto change = [&](store::Transaction& transaction) -> Status {
    published.clear();
    Publisher publisher(core_, object, transaction);
    std::vector<Staged> staged;
    std::vector<const Part*> moved_parities;
    for (Part& part : job.parts) {
      if (!copied(part)) continue;
      const Result<bool> same = is_current(transaction, object, part);
      MDFS_TRY(same);
      if (!*same) continue;
      if (part.is_parity) {
        moved_parities.push_back(&part);
        published.push_back(&part);
        continue;
      }
      Staged& one = staged.emplace_back();
      one.index = part.index;
      one.coord = part.coord;
      one.extent = part.from;
      one.extent.runs = part.to;
      one.is_moved = true;
      if (!object.is_image())
        stage_cell(part.cell, job.request.of_copies, one);
      else if (job.request.of_copies)
        one.extent = one.extent.by_copy();
      published.push_back(&part);
    }
    if (!staged.empty()) MDFS_TRY(publisher.publish(staged));
    for (const Part* const part : moved_parities)
      MDFS_TRY(publisher.move_parity(object.page_of(part->coord), part->to));
    if (published.empty()) return {};
    MDFS_CHECK(publisher.stored_bytes_change() == 0);
    pages = publisher.pages();
    return {};
  };
  MDFS_TRY(core_.store.transact(job.request.purpose, change, &job.reservation));
  update_cached_pages(core_, object, pages);
  for (Part& part : job.parts)
    if (copied(part)) part.state = Part::State::kChanged;
  for (Part* part : published) part->state = Part::State::kMoved;
  return {};
}

}  // namespace mdfs::engine
