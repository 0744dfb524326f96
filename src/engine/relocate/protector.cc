// Making, repairing and removing second copies.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/protector.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/background_pace.h"
#include "base/checked.h"
#include "device/urgency.h"
#include "engine/core.h"
#include "engine/map/extent_map.h"
#include "engine/open_object.h"
#include "engine/relocate/place_apart.h"
#include "engine/relocate/protect_job.h"
#include "engine/relocate/read_piece.h"
#include "engine/relocate/same_record.h"
#include "engine/requests.h"
#include "engine/write/publisher.h"
#include "format/layout.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

struct Protector::Part {
  geometry::Coord coord{};
  StoredExtent from;                         // as it was looked up
  bool bad_first = false, bad_copy = false;  // not to be kept
  bool makes_first = false, makes_copy = false;
  bool gathers = false;  // the first piece, on one disk; there is no copy
  bool drops_copy = false;
  BufferRef bytes;       // of a good piece
  bool is_read = false;  // `bytes` are those of the piece that stays
  bool stays_by_copy() const { return from.has_copy() && bad_first; }
  format::Runs to;
  ProtectState state = ProtectState::kOpen;

  bool has_copy() const { return from.has_copy(); }
  bool gets_copy() const { return makes_copy; }
  const format::Runs& new_runs() const { return to; }
};

struct Protector::Job : ProtectJob<Part> {};

ProtectRequest ProtectRequest::wanted_by(const OpenObject& object) {
  ProtectRequest request;
  request.copies = object.wants_copies.load(std::memory_order_relaxed);
  request.width = object.group_members.load(std::memory_order_relaxed);
  return request;
}

ProtectOutcome& ProtectOutcome::operator+=(ProtectOutcome&& other) {
  made += other.made;
  repaired += other.repaired;
  removed += other.removed;
  bytes += other.bytes;
  for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk) bytes_of_disks[disk] += other.bytes_of_disks[disk];
  changed += other.changed;
  no_room += other.no_room;
  again = again || other.again;
  std::move(other.damaged.begin(), other.damaged.end(), std::back_inserter(damaged));
  return *this;
}

ProtectionState& ProtectionState::operator+=(const ProtectionState& other) {
  extents += other.extents;
  copied += other.copied;
  stored_bytes += other.stored_bytes;
  copied_bytes += other.copied_bytes;
  grouped += other.grouped;
  grouped_bytes += other.grouped_bytes;
  lost += other.lost;
  lost_bytes += other.lost_bytes;
  in_strips += other.in_strips;
  return *this;
}

// ---- what is there

bool Protector::is_as_wanted(const StoredExtent& extent, bool copies, std::uint64_t gone) const {
  if (!copies) return !extent.has_copy();
  const std::uint64_t first = StoredExtent::disks_of(extent.runs), second = StoredExtent::disks_of(extent.copy);
  return extent.has_copy() && (first & second) == 0 && ((first | second) & gone) == 0;
}

// Calls `visit` with the number and the content of some pages, until is_over() behind one.
template <typename Visit, typename IsOver>
Status Protector::each_page(const OpenObject& object, std::uint64_t& page, const Visit& visit, const IsOver& is_over) {
  MDFS_TRY_ASSIGN(const auto items,
                  core_.store.scan(page_key(object, page), page_key(object, UINT64_MAX), kPagesAtOnce));
  for (const store::Item& item : items) {
    KnownPage known;
    MDFS_TRY_ASSIGN(format::ExtentPage records, format::ExtentPage::decode(item.value, object.table));
    known.page = std::make_shared<const format::ExtentPage>(std::move(records));
    MDFS_TRY_ASSIGN(known.copies, core_.extent_map.copies_of(core_.store, object, item.key.offset));
    MDFS_TRY(visit(item.key.offset, known));
    page = item.key.offset + 1;
    if (is_over()) return {};
  }
  if (items.size() < kPagesAtOnce) page = UINT64_MAX;
  return {};
}

// Calls `visit` for the stored extents of a page.
template <typename Visit>
Status Protector::each_extent(const OpenObject& object, std::uint64_t page, const KnownPage& known,
                              const Visit& visit) {
  for (unsigned place = 0; place < object.page_box.places; ++place) {
    MDFS_TRY_ASSIGN(const auto extent, format::read_pieces(core_.store, page_key(object, page), *known.page,
                                                           known.copies.get(), place, object.block_size));
    if (extent && extent->is_stored()) visit(object.extent_of({page, place}), *extent);
  }
  return {};
}

Result<ProtectionState> Protector::look(const OpenObject& object, std::uint64_t& page, const Stop& stop) {
  MDFS_TRY(stopped(stop));
  if (!object.is_image()) return cells_.look(object, page);
  ProtectionState state;
  const std::uint64_t gone = core_.gone_disks(), unreadable = core_.store.lost_disks();
  const auto count = [&](const geometry::Coord&, const StoredExtent& extent) {
    ++state.extents;
    state.stored_bytes += extent.stored_bytes;
    const std::uint64_t first = StoredExtent::disks_of(extent.runs), others = extent.other_disks();
    if (extent.is_protected() && (first & others) == 0 && ((first | others) & gone) == 0) {
      ++state.copied;
      state.copied_bytes += extent.stored_bytes;
    }
    if (extent.others) {
      ++state.grouped;
      state.grouped_bytes += extent.stored_bytes;
    }
    if ((first & unreadable) == 0 || (extent.is_protected() && (others & unreadable) == 0)) return;
    ++state.lost;
    state.lost_bytes += extent.stored_bytes;
  };
  const auto visit = [&](std::uint64_t number, const KnownPage& known) {
    return each_extent(object, number, known, count);
  };
  MDFS_TRY(each_page(object, page, visit, [] { return false; }));
  return state;
}

Result<std::uint64_t> Protector::strips_to_consolidate(const OpenObject& object, bool copies, const Stop& stop) {
  const std::uint64_t gone = core_.gone_disks();
  std::uint64_t count = 0;
  for (format::Key next = strip_key(object, 0, 0);;) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const auto items,
                    core_.store.scan(next, {object.number, MDFS_KIND_STRIP, UINT64_MAX}, kPagesAtOnce));
    for (const store::Item& item : items) {
      MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, object.table, object.block_size));
      const bool has_both = strip.copy && ((gone >> strip.address.disk | gone >> strip.copy->address.disk) & 1) == 0;
      count += (copies ? has_both : !strip.copy) ? 0 : 1;
    }
    if (items.size() < kPagesAtOnce || items.back().key.offset == UINT64_MAX) return count;
    next.offset = items.back().key.offset + 1;
  }
}

Result<std::vector<geometry::Coord>> Protector::find(const OpenObject& object, const ProtectRequest& wanted,
                                                     std::uint64_t& page, std::size_t most) {
  if (!object.is_image()) return cells_.find(object, wanted.copies, page);
  std::vector<geometry::Coord> found;
  const std::uint64_t gone = core_.gone_disks() | wanted.drained_disks;
  const auto note = [&](const geometry::Coord& coord, const StoredExtent& extent) {
    if (!is_as_wanted(extent, wanted.copies, gone)) found.push_back(coord);
  };
  const auto visit = [&](std::uint64_t number, const KnownPage& known) -> Status {
    if (wanted.width <= 1 && !has_groups(known)) return each_extent(object, number, known, note);
    MDFS_TRY_ASSIGN(const std::vector<geometry::Coord> grouped, groups_.planner().find(object, number, known, wanted));
    found.insert(found.end(), grouped.begin(), grouped.end());
    return {};
  };
  MDFS_TRY(each_page(object, page, visit, [&] { return found.size() >= most; }));
  return found;
}

// ---- the work

Result<ProtectOutcome> Protector::run(OpenObject& object, const ProtectRequest& request) {
  if (!object.is_image()) return cells_.run(object, request);
  ProtectRequest copies = request, grouped = request;
  copies.extents.clear();
  grouped.extents.clear();
  for (const geometry::Coord& extent : request.extents) {
    bool in_groups = request.width > 1;
    if (!in_groups && core_.extent_map.has_copies()) {
      MDFS_TRY_ASSIGN(const KnownPage known, core_.extent_map.page(object, object.page_of(extent).page, false));
      in_groups = has_groups(known);
    }
    (in_groups ? grouped : copies).extents.push_back(extent);
  }
  if (grouped.extents.empty()) return run_copies(object, copies);
  MDFS_TRY_ASSIGN(ProtectOutcome outcome, run_copies(object, copies));
  MDFS_TRY_ASSIGN(ProtectOutcome more, groups_.run(object, grouped));
  outcome += std::move(more);
  return outcome;
}

Result<ProtectOutcome> Protector::run_copies(OpenObject& object, const ProtectRequest& request) {
  Job job{{request, core_.gone_disks() | request.drained_disks}};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < request.extents.size(); ++i) {
    const std::size_t before = job.parts.size();
    MDFS_TRY(look_up(object, job, request.extents[i]));
    if (job.parts.size() > before) bytes += job.parts.back().from.piece_blocks() * object.block_size;
    if (job.parts.empty() || (bytes < kRebuildPieceBytes && i + 1 < request.extents.size())) continue;
    if (request.pace) MDFS_TRY(request.pace(bytes));
    MDFS_TRY(run_batch(object, job));
    bytes = 0;
  }
  return std::move(job.outcome);
}

// Notes the extent unless all is as it should be.
Status Protector::look_up(OpenObject& object, Job& job, const geometry::Coord& extent) {
  Part part;
  part.coord = extent;
  const geometry::PagePlace place = object.page_of(extent);
  MDFS_TRY_ASSIGN(const KnownPage known, core_.extent_map.page(object, place.page, false));
  MDFS_TRY_ASSIGN(const auto from, format::read_pieces(core_.store, page_key(object, place.page), *known.page,
                                                       known.copies.get(), place.place, object.block_size));
  if (!from || !from->is_stored()) return {};
  if (from->others) {  // it has joined a group meanwhile
    ++job.outcome.changed;
    return {};
  }
  MDFS_TRY(core_.extent_map.check(*from));
  part.from = *from;
  const std::uint64_t first = StoredExtent::disks_of(from->runs), second = StoredExtent::disks_of(from->copy);
  part.bad_first = (first & job.gone) != 0;
  part.bad_copy = from->has_copy() && ((second & job.gone) != 0 || (first & second) != 0);
  const bool verifies = job.request.verifies && from->has_copy();
  if (is_as_wanted(*from, job.request.copies, job.gone) && !verifies) return {};
  part.drops_copy = !job.request.copies && !verifies;
  job.parts.push_back(std::move(part));
  return {};
}

Status Protector::run_batch(OpenObject& object, Job& job) {
  std::uint64_t bytes = 0;
  for (const Part& part : job.parts) bytes += part.from.piece_blocks() * object.block_size;
  const ByteBudget::Share share = core_.loads.wait_for(bytes);
  Status status = read(object, job);
  if (status.ok()) status = write(object, job);
  if (status.ok()) status = publish(object, job);
  return job.end(core_, std::move(status));
}

// Of all extents at once the piece that stays. What that does not read is read one by one.
Status Protector::read(OpenObject& object, Job& job) {
  const device::UrgencyScope scope(device::in_background());
  std::vector<Segment> segments;
  for (Part& part : job.parts) {
    if (part.drops_copy) continue;
    const std::uint64_t bytes = part.from.piece_blocks() * object.block_size;
    part.bytes = core_.cache.acquire(bytes, Use::kBrief);
    append_segments(part.stays_by_copy() ? part.from.copy : part.from.runs, object.block_size, 0, bytes,
                    part.bytes.data(), 0, segments);
  }
  const bool all_read = read_all(core_.store, segments, core_.options.largest_request_bytes).ok();
  for (Part& part : job.parts) {
    part.is_read = all_read && part.bytes && holds(part.from, part.bytes.bytes());
    MDFS_TRY(judge(object, job, part));
  }
  return {};
}

// Finds a good piece, and what is to be made from it.
Status Protector::judge(OpenObject& object, Job& job, Part& part) {
  if (part.drops_copy) {
    part.state = ProtectState::kReady;
    return {};
  }
  const bool both = job.request.verifies && part.from.has_copy();
  // The piece that stays is read first, and the other one only if it is to be verified, or nothing else is left.
  Status bad = Error{Errc::kCorrupt, "no piece"};
  bool found = false;
  std::optional<unsigned> bad_disk;
  const auto try_piece = [&](bool copy) {
    if (copy == part.stays_by_copy() && std::exchange(part.is_read, false)) return found = true;
    const StoredExtent piece = copy ? part.from.by_copy() : part.from;
    const Status status = read_piece(core_, piece, part.bytes.bytes());
    found = found || status.ok();
    if (status.ok()) return true;
    bad = status;
    if (status.error().code == Errc::kCorrupt) {
      bad_disk = piece.first().disk;
      bad = Error{Errc::kCorrupt, fmt::format("extent.checksum: object {}, disk {} block {}", object.number,
                                              piece.first().disk, piece.first().block)};
    }
    return false;
  };
  if (part.from.has_copy()) {
    const bool copy_first = part.stays_by_copy();
    const bool one = try_piece(copy_first);
    if (!one) (copy_first ? part.bad_copy : part.bad_first) = true;
    // The last good bytes stay in the buffer: after a failed second read the first one is read again.
    if (both || !one) {
      const bool other = try_piece(!copy_first);
      if (!other) (copy_first ? part.bad_first : part.bad_copy) = true;
      if (one && !other && !try_piece(copy_first)) found = false;
    }
  } else {
    (void)try_piece(false);
  }
  MDFS_TRY_ASSIGN(const bool current, is_same(core_, core_.store, object, part.coord, part.from));
  if (!current) {
    part.state = ProtectState::kChanged;
    return {};
  }
  if (bad_disk && !both) core_.store.note_checksum_error(*bad_disk);  // what is verified has been counted
  if (!found) {
    part.state = ProtectState::kDamaged;
    const geometry::PagePlace place = object.page_of(part.coord);
    job.outcome.damaged.push_back(
        {part.coord, place.page * format::kMaxPlaces + place.place, part.from.first(), bad.error()});
    return {};
  }
  // A piece that lies on all disks leaves none for the other one: it is gathered on one disk, and copied then.
  const bool fills_disks = (StoredExtent::disks_of(part.from.runs) | job.gone) == ~std::uint64_t{0};
  part.gathers = !part.from.has_copy() && fills_disks && !part.from.is_contiguous();
  part.makes_copy = !part.gathers && (!part.from.has_copy() || (part.bad_copy && !part.bad_first));
  part.makes_first = part.gathers || (part.from.has_copy() && part.bad_first);
  job.outcome.again = job.outcome.again || part.gathers || (part.bad_first && (!part.from.has_copy() || part.bad_copy));
  part.state = part.makes_copy || part.makes_first ? ProtectState::kOpen : ProtectState::kDone;
  return {};
}

// On a disk where the piece that stays does not lie.
bool Protector::place(const OpenObject& object, Job& job, Part& part) {
  const std::vector<std::uint64_t> free_blocks = core_.store.free_of_disks();
  PieceToPlace piece;
  piece.taken =
      (part.gathers ? 0 : StoredExtent::disks_of(part.makes_first ? part.from.copy : part.from.runs)) | job.gone;
  piece.blocks = part.from.piece_blocks();
  piece.on_one_disk = part.gathers;
  piece.where.disk = part.makes_first ? static_cast<std::uint16_t>(object.placement_disk(part.coord))
                                      : object.disk_for_copy(part.coord, piece.blocks, piece.taken, free_blocks);
  piece.where.owner = part.makes_first ? object.number : object.number | kCopyOwner;
  piece.where.policy = object.image->policy;
  return place_apart(core_, piece, free_blocks, job.reservation, part.to);
}

Status Protector::write(OpenObject& object, Job& job) {
  store::SpaceAmount amount;
  for (const Part& part : job.parts) {
    if (part.state != ProtectState::kOpen && part.state != ProtectState::kReady) continue;
    const std::uint64_t blocks = part.state == ProtectState::kOpen ? part.from.piece_blocks() : 0;
    const store::SpaceAmount worst = object.worst_case(0, false);
    amount += {blocks, worst.items + 1, worst.bytes + sizeof(mdfs_group) + sizeof(mdfs_parity)};
  }
  if (amount.empty()) return {};
  MDFS_TRY_ASSIGN(job.reservation, core_.store.reserve(amount, job.purpose()));
  std::vector<Segment> segments;
  for (Part& part : job.parts) {
    if (part.state != ProtectState::kOpen) continue;
    if (!place(object, job, part)) {
      part.state = ProtectState::kNoRoom;
      continue;
    }
    append_segments(part.to, object.block_size, 0, part.from.piece_blocks() * object.block_size, part.bytes.data(), 0,
                    segments);
    part.state = ProtectState::kReady;
  }
  const device::UrgencyScope scope(device::in_background());
  return write_all(core_.store, segments, core_.options.largest_request_bytes);
}

Status Protector::publish(OpenObject& object, Job& job) {
  const auto ready = [](const Part& part) { return part.state == ProtectState::kReady; };
  if (std::none_of(job.parts.begin(), job.parts.end(), ready)) return {};
  std::vector<Part*> published;
  Publisher::Pages pages;
  const std::lock_guard publishing(object.publishing);
  const auto change = [&](store::Transaction& transaction) -> Status {
    published.clear();
    Publisher publisher(core_, object, transaction);
    std::vector<Staged> staged;
    for (Part& part : job.parts) {
      if (!ready(part)) continue;
      MDFS_TRY_ASSIGN(const bool same, is_same(core_, transaction, object, part.coord, part.from));
      if (!same) continue;
      Staged& one = staged.emplace_back();
      one.index = object.extent_index(part.coord);
      one.coord = part.coord;
      one.extent = part.from;
      if (part.makes_copy) one.extent.copy = part.to;
      if (part.makes_first) one.extent.runs = part.to;
      if (part.drops_copy && part.bad_first && !part.bad_copy) one.extent = one.extent.by_copy();
      if (part.drops_copy) one.extent.copy.clear();
      one.is_moved = true;
      published.push_back(&part);
    }
    if (staged.empty()) return {};
    MDFS_TRY(publisher.publish(staged));
    pages = publisher.pages();
    return publisher.update_inode();
  };
  const auto purpose = job.request.copies ? store::Purpose::kReserved : store::Purpose::kFreeing;
  MDFS_TRY(core_.store.transact(purpose, change, &job.reservation));
  update_cached_pages(core_, object, pages);
  job.note_published(published, object.block_size);
  return {};
}

}  // namespace mdfs::engine
