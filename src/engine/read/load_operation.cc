// One load at work: look-ups, requests and completions.
// SPDX-License-Identifier: Apache-2.0
#include "engine/read/load_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/stop.h"
#include "device/disk_counters.h"
#include "engine/cache/slab_classes.h"
#include "engine/read/piece_choice.h"

namespace mdfs::engine {

namespace {

// Of blocks and parts of strips, each of which may be bad in another piece: one that does not match, then a request to
// another disk that fails, and all is looked up again before each.
constexpr unsigned kMostTriesByParts = 3;

// Buffers of cells grow by powers of two.
std::size_t cell_buffer_bytes(const OpenObject& object, std::size_t bytes) {
  return std::min<std::size_t>(std::bit_ceil(std::max<std::size_t>(bytes, object.block_size)), object.capacity_bytes);
}

}  // namespace

LoadOperation::LoadOperation(Core& core, OpenObject& object, const Loaded* loaded)
    : core_(core), object_(object), zeroed_disks_(object.is_level ? 0 : core.zeroed_disks), loaded_(loaded) {}

void LoadOperation::keep(const std::shared_ptr<OpenObject>& object, ByteBudget::Share share) {
  kept_object_ = object;
  kept_share_ = std::move(share);
}

Status LoadOperation::run(const Stop& stop, ByteBudget::Share& share) {
  if (fetches_.empty()) return {};
  waits_ = retries_ = true;
  std::vector<Fetch*> fetches = all_fetches();
  for (bool again = false; !fetches.empty(); again = true) {
    begin(fetches, again);
    if (!help_until_done(stop) && go_on_alone(share)) return interrupted();
    fetches = std::exchange(again_, {});
  }
  const std::lock_guard lock(mutex_);
  if (late_ > 0) {
    keep_late_bytes(share);
    outlive(share);
    waits_ = false;
  }
  return std::move(error_);
}

std::vector<Fetch*> LoadOperation::all_fetches() const {
  std::vector<Fetch*> fetches;
  for (const std::unique_ptr<Fetch>& fetch : fetches_) fetches.push_back(fetch.get());
  return fetches;
}

void LoadOperation::keep_late_bytes(ByteBudget::Share& share) const {
  std::size_t bytes = 0;
  for (const std::unique_ptr<Fetch>& fetch : fetches_)
    if (fetch->given_up && fetch->pending > 0) bytes += buffer_bytes(*fetch);
  if (ByteBudget::Share apart = core_.late_bytes.try_for(bytes))
    share = std::move(apart);
  else
    share.keep_at_most(bytes);
}

void LoadOperation::outlive(ByteBudget::Share& share) {
  kept_self_ = shared_from_this();
  keep(object_.shared_from_this(), std::move(share));
  object_.barrier.enter_again();
}

bool LoadOperation::go_on_alone(ByteBudget::Share& share) {
  static const Loaded nothing = [](std::size_t, const BufferRef&) {};
  const std::shared_ptr<LoadOperation> self = shared_from_this();
  std::unique_lock lock(mutex_);
  leaving_ = true;
  changed_.wait(lock, [this] { return finishing_ == 0; });
  if (unfinished_ == 0) return false;
  // What had a checksum mismatch is left to its next reader.
  for (const Fetch* const fetch : std::exchange(again_, {})) release_failed(*fetch);
  loaded_ = &nothing;
  retries_ = false;
  is_alone_ = true;
  outlive(share);
  waits_ = false;
  const bool wants_help = !ready_.empty();
  lock.unlock();
  if (wants_help) core_.tasks.post([self] { self->help(); });
  return true;
}

void LoadOperation::start() {
  if (fetches_.empty()) return end();
  kept_self_ = shared_from_this();
  begin(all_fetches(), false);
}

// The last step of an operation without a waiting caller. Releases what keep() kept, the share of the budget last.
void LoadOperation::end() {
  const std::shared_ptr<LoadOperation> self = std::move(kept_self_);
  fetches_.clear();
  kept_object_->barrier.leave();
  kept_object_.reset();
  const ByteBudget::Share share = std::move(kept_share_);
}

ByteRanges::Range LoadOperation::part_range(std::uint32_t part) const {
  const std::uint32_t begin = part * object_.part_bytes;
  return {begin, std::min(begin + object_.part_bytes, object_.extent_bytes)};
}

Error LoadOperation::damage(const Fetch& fetch, const std::string& what) const {
  std::string place = "in the tree";
  if (!fetch.extent.is_hole()) {
    const store::Run& run = fetch.extent.has_record() ? fetch.extent.record.first() : fetch.extent.parts.front().run();
    place = fmt::format("disk {} ({}) block {}", run.disk, core_.store.disk(run.disk).name(), run.block);
  }
  return {Errc::kCorrupt, fmt::format("{}: object {} extent [{}], {}", what, object_.number,
                                      fmt::join(fetch.coord.begin(), fetch.coord.begin() + object_.rank, ","), place)};
}

Status LoadOperation::look_up(Fetch& fetch, bool fresh) {
  fetch.inline_bytes.reset();
  fetch.pieces.clear();
  if (fetch.kept != nullptr || object_.is_image()) {
    if (fetch.kept != nullptr) {
      fetch.extent = *fetch.kept;
    } else {
      MDFS_TRY_ASSIGN(fetch.extent, core_.extent_map.extent(object_, fetch.coord, fresh));
    }
    return {};
  }
  bool in_tree = false;
  if (fetch.block->key.index == 0) {
    const std::lock_guard lock(object_.state_mutex);
    in_tree = object_.published_inline;
  }
  if (in_tree) {
    MDFS_TRY_ASSIGN(fetch.inline_bytes, core_.extent_map.inline_bytes(object_));
    if (!fetch.inline_bytes || fetch.inline_bytes->size() > MDFS_MAX_INLINE) return damage(fetch, "inline.length");
    return {};
  }
  MDFS_TRY_ASSIGN(format::CellPieces cell, core_.extent_map.cell_pieces(object_, fetch.block->key.index));
  if (!(cell == fetch.cell)) fetch.bad_first = fetch.bad_copy = fetch.prefers_copies = 0;
  fetch.cell = std::move(cell);
  return {};
}

std::uint64_t LoadOperation::avoided_disks(const Fetch& fetch) const {
  // What stands in may be read from any disk but those that it stands in for.
  return core_.absent_disks.load(std::memory_order_relaxed) | zeroed_disks_ | fetch.failed_disks | fetch.late_disks |
         (fetch.stands_in ? 0 : core_.late_disks.mask());
}

bool LoadOperation::is_good(const Fetch& fetch, const format::Runs& piece) const {
  const std::uint64_t away = avoided_disks(fetch);
  const auto& bad = fetch.bad_pieces;
  return (StoredExtent::disks_of(piece) & away) == 0 && std::find(bad.begin(), bad.end(), piece.front()) == bad.end();
}

void LoadOperation::choose_piece(Fetch& fetch) const {
  StoredExtent& record = fetch.extent.record;
  fetch.from_others = false;
  if (record.others && !is_good(fetch, record.runs)) {
    const bool have_zeros = (record.others.disks() & zeroed_disks_) != 0;
    fetch.from_others = are_others_good(fetch) || (fetch.tries % 2 == 1 && !have_zeros);
    if (fetch.from_others) return;
  }
  if (!record.has_copy()) return forget_zeroed(record);
  if (fetch.prefers_copy) record = record.by_copy();
  const bool good = is_good(fetch, record.runs), other_good = is_good(fetch, record.copy);
  const bool other_has_zeros = (StoredExtent::disks_of(record.copy) & zeroed_disks_) != 0;
  if (!good && (other_good || (fetch.tries % 2 == 1 && !other_has_zeros))) record = record.by_copy();
  forget_zeroed(record);
}

void LoadOperation::choose_parts(Fetch& fetch) const {
  for (StripPart& part : fetch.extent.parts)
    if (part.stored.has_copy() && !is_good(fetch, part.stored.runs) &&
        (is_good(fetch, part.stored.copy) || is_zeroed(part.run().disk)))
      part.stored = part.stored.by_copy();
}

// As if it had never been written, under its strips.
void LoadOperation::forget_zeroed(StoredExtent& record) const {
  if ((StoredExtent::disks_of(record.runs) & zeroed_disks_) != 0) record.runs.clear();
}

std::uint64_t LoadOperation::bytes_to_read(const Fetch& fetch) const {
  if (!object_.is_raw()) return fetch.extent.record.stored_bytes;
  std::uint64_t bytes = 0;
  for (const std::uint32_t part : fetch.parts) bytes += part_range(part).end - part_range(part).begin;
  return bytes;
}

// False: damage.
bool LoadOperation::is_on_disks(const format::Runs& runs) const {
  return runs.size() == 1 && runs.front().disk < core_.store.disk_count();
}

void LoadOperation::add_extent(Fetch& fetch, std::vector<Choice>& choices, std::vector<PieceToRead>& pieces) const {
  const StoredExtent& record = fetch.extent.record;
  if (!is_on_disks(record.runs) || !is_on_disks(record.copy)) return;
  choices.push_back({&fetch, 0});
  pieces.push_back({&record, bytes_to_read(fetch)});
}

void LoadOperation::add_cell(Fetch& fetch, std::vector<Choice>& choices, std::vector<PieceToRead>& pieces,
                             std::deque<format::CellPart>& parts) const {
  std::uint32_t wanted = 0;
  for (const std::uint32_t part : fetch.parts) wanted |= 1u << part;
  for (format::CellPart& part : format::cell_parts(fetch.cell.first, fetch.cell.copy, object_.block_size)) {
    if (!is_on_disks(part.bytes.runs) || !is_on_disks(part.bytes.copy)) continue;
    const std::uint32_t all = ~std::uint32_t{0} >> (32 - part.bytes.runs.front().blocks) << part.first;
    if ((all & wanted) == 0) continue;
    choices.push_back({&fetch, all});
    parts.push_back(std::move(part));
    const auto blocks = static_cast<std::uint64_t>(std::popcount(all & wanted));
    pieces.push_back({&parts.back().bytes, blocks * object_.block_size});
  }
}

LoadOperation::Paces LoadOperation::paces() const {
  const std::int64_t now_ns = device::ReadPace::now_ns();
  Paces all(core_.store.disk_count());
  for (unsigned disk = 0; disk < all.size(); ++disk)
    if (const device::DiskCounters* const counters = core_.store.disk(disk).counters())
      all[disk] = counters->pace.ns_per_byte(now_ns);
  return all;
}

double LoadOperation::queued_bytes(unsigned disk) const {
  const device::DiskCounters* const counters = core_.store.disk(disk).counters();
  return counters == nullptr ? 0 : static_cast<double>(counters->queued_bytes());
}

void LoadOperation::prefer_pieces(const std::vector<Fetch*>& fetches, Paces paces) {
  std::vector<Choice> choices;
  std::vector<PieceToRead> pieces;
  std::deque<format::CellPart> parts;
  for (Fetch* const fetch : fetches) {
    if (!fetch->status.ok() || fetch->tries > 0) continue;
    if (object_.is_image())
      add_extent(*fetch, choices, pieces);
    else if (fetch->cell.has_copies())
      add_cell(*fetch, choices, pieces, parts);
  }
  if (choices.empty()) return;
  const std::uint64_t absent =
      core_.absent_disks.load(std::memory_order_relaxed) | core_.zeroed_disks | core_.late_disks.mask();
  std::vector<DiskToRead> disks;
  for (unsigned disk = 0; disk < core_.store.disk_count(); ++disk) {
    const bool is_lost = disk < MDFS_MAX_DISKS && (absent >> disk & 1) != 0;
    disks.push_back({is_lost ? std::numeric_limits<double>::infinity() : queued_bytes(disk), 1});
    if (is_lost) paces[disk].reset();
  }
  const std::vector<double> slow = device::slowness(paces);
  for (std::size_t disk = 0; disk < disks.size(); ++disk) disks[disk].slowness = slow[disk];
  const std::vector<bool> chosen = choose_pieces(pieces, disks);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (!chosen[i]) continue;
    if (choices[i].blocks == 0)
      choices[i].fetch->prefers_copy = true;
    else
      choices[i].fetch->prefers_copies |= choices[i].blocks;
  }
}

bool LoadOperation::may_retry(const Fetch& fetch, const Error& error) const {
  if (!retries_ || error.code == Errc::kCancelled) return false;
  if (fetch.extent.has_copied_part() || fetch.cell.has_copies()) return fetch.tries < kMostTriesByParts;
  if (fetch.extent.record.is_protected()) return fetch.tries < 2;
  return error.code == Errc::kCorrupt && fetch.tries == 0;
}

void LoadOperation::note_failure(Fetch& fetch, const Error& error) {
  const StoredExtent& record = fetch.extent.record;
  if (error.code != Errc::kMissingDisk)
    fetch.found_damage = true;
  else if (!object_.is_image() || fetch.extent.has_copied_part() || fetch.from_others)
    core_.absent_disks.fetch_or(fetch.failed_disks, std::memory_order_relaxed);
  else if (record.is_contiguous())
    core_.absent_disks.fetch_or(StoredExtent::disks_of(record.runs), std::memory_order_relaxed);
  ++fetch.tries;
}

void LoadOperation::begin(const std::vector<Fetch*>& fetches, bool fresh) {
  const std::shared_ptr<LoadOperation> self = shared_from_this();  // it may end with the last submission
  urgency_ = device::urgency();
  {
    const std::lock_guard lock(mutex_);
    unfinished_ = fetches.size();
    submitting_ = true;
    for (Fetch* const fetch : fetches)
      if (fetch->other != nullptr && fetch->other->pending == 0) fetch->other = nullptr;
  }
  std::size_t choices = 0;
  for (Fetch* const fetch : fetches) {
    fetch->late_disks = 0;
    fetch->status = look_up(*fetch, fresh);
    if (fetch->status.ok() && has_choice(*fetch)) ++choices;
  }
  const Paces seen = choices > 0 ? paces() : Paces();
  prefer_pieces(fetches, seen);
  for (Fetch* const fetch : fetches) {
    if (!fetch->status.ok()) continue;
    choose_piece(*fetch);
    choose_parts(*fetch);
  }
  if (choices > 0) core_.hedges.earn(choices);
  submit(fetches, device::usual_paces(seen));
}

void LoadOperation::submit(const std::vector<Fetch*>& fetches, const Paces& usual) {
  const bool watched = !usual.empty();
  std::vector<Segment> segments;
  for (std::uint32_t i = 0; i < fetches.size(); ++i)
    if (fetches[i]->status.ok()) prepare(*fetches[i], i, segments);
  std::vector<Request> requests = merge_segments(segments, core_.options.largest_request_bytes);
  const std::int64_t now_ns = watched ? device::ReadPace::now_ns() : 0;
  std::int64_t first_late_ns = INT64_MAX;
  struct Batch {
    std::uint16_t disk;
    std::vector<device::Io*> requests;
    double queued_bytes = 0;
  };
  std::vector<Batch> batches;
  const std::shared_ptr<LoadOperation> self = shared_from_this();
  bool wants_help = false;
  {
    const std::lock_guard lock(mutex_);
    for (Request& request : requests) {
      if (batches.empty() || batches.back().disk != request.disk) {
        batches.push_back({request.disk, {}, queued_bytes(request.disk)});
      }
      Batch& batch = batches.back();
      Pending& pending = pending_.emplace_back();
      pending.operation = this;
      pending.disk = request.disk;
      pending.io.offset = request.offset;
      pending.io.buffers = std::move(request.buffers);
      pending.shared = std::move(request.shared);
      pending.io.done = &LoadOperation::completed;
      pending.io.context = &pending;
      for (const std::uint32_t owner : request.owners) {
        pending.owners.push_back(fetches[owner]);
        ++fetches[owner]->pending;
      }
      batch.requests.push_back(&pending.io);
      if (!watched) continue;
      for (const MutableBytes& buffer : pending.io.buffers) batch.queued_bytes += static_cast<double>(buffer.size());
      batch.queued_bytes += static_cast<double>(device::kRequestBytes);
      pending.late_ns = now_ns + device::late_after_ns(batch.queued_bytes, usual[request.disk]);
      first_late_ns = std::min(first_late_ns, pending.late_ns);
    }
    for (Fetch* const fetch : fetches)
      if (fetch->pending == 0) ready_.push_back(fetch);
    wants_help = !ready_.empty() && !waits_;
    submitting_ = false;
  }
  if (first_late_ns != INT64_MAX) core_.late_loads.watch(weak_from_this(), first_late_ns);
  if (wants_help) core_.tasks.post([self] { self->help(); });
  for (const Batch& batch : batches) core_.store.disk(batch.disk).submit(batch.requests);
}

void LoadOperation::prepare(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments) {
  if (fetch.inline_bytes) return;
  if (!object_.is_image()) return prepare_cell(fetch, number, segments);
  if (!fetch.extent.parts.empty()) prepare_strips(fetch, number, segments);
  if (fetch.extent.is_hole()) return;
  if (object_.is_raw()) return prepare_raw(fetch, number, segments);
  if (!fetch.extent.has_record()) return;
  const std::size_t bytes = align_up(fetch.extent.record.stored_bytes, device::kAlignment);
  fetch.stored = core_.cache.acquire(bytes, fetch.as_frame ? Use::kLasting : Use::kBrief);
  if (fetch.from_others) return prepare_others(fetch, number, segments);
  append_segments(fetch.extent.record.runs, object_.block_size, 0, bytes, fetch.stored.data(), number, segments);
}

void LoadOperation::prepare_raw(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments) {
  choose_target(fetch, object_.capacity_bytes);
  if (fetch.from_others) return prepare_others(fetch, number, segments);
  for (const std::uint32_t part : fetch.parts) {
    const ByteRanges::Range range = part_range(part);
    if (fetch.extent.has_record())
      append_segments(fetch.extent.record.runs, object_.block_size, range.begin,
                      align_up(range.end, device::kAlignment), fetch.stored.data() + range.begin, number, segments);
    else
      std::memset(fetch.stored.data() + range.begin, 0, range.end - range.begin);
  }
}

// The blocks of its strips that hold bytes of the parts to load.
void LoadOperation::prepare_strips(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < fetch.extent.parts.size(); ++i) {
    const StripPart& part = fetch.extent.parts[i];
    std::uint32_t begin = UINT32_MAX, end = 0;  // of the bytes wanted of it, with what lies between
    for (const std::uint32_t wanted : fetch.parts) {
      const ByteRanges::Range range = part_range(wanted);
      const std::uint32_t from = std::max(range.begin, part.begin), to = std::min(range.end, part.end());
      if (from >= to) continue;
      begin = std::min(begin, from);
      end = std::max(end, to);
    }
    if (begin >= end) continue;
    Fetch::Piece piece{i, (begin - part.begin) / object_.block_size, 0, bytes};
    piece.blocks = static_cast<std::uint32_t>(ceil_div(end - part.begin, object_.block_size)) - piece.first_block;
    bytes += std::size_t{piece.blocks} * object_.block_size;
    fetch.pieces.push_back(piece);
  }
  if (fetch.pieces.empty()) return;
  fetch.strips = core_.cache.acquire(bytes, Use::kBrief);
  for (const Fetch::Piece& piece : fetch.pieces) {
    if (is_zeroed(fetch.extent.parts[piece.part].run().disk)) {
      std::memset(fetch.strips.data() + piece.at, 0, std::size_t{piece.blocks} * object_.block_size);
      continue;
    }
    const std::uint64_t begin = std::uint64_t{piece.first_block} * object_.block_size;
    append_segments(fetch.extent.parts[piece.part].stored.runs, object_.block_size, begin,
                    begin + std::uint64_t{piece.blocks} * object_.block_size, fetch.strips.data() + piece.at, number,
                    segments);
  }
}

std::optional<format::BlockPlace> LoadOperation::choose_block(const Fetch& fetch, unsigned block) const {
  const std::optional<format::BlockPlace> first = fetch.cell.first.find(block), copy = fetch.cell.copy.find(block);
  if (!first || !copy) return first;
  const std::uint64_t away = avoided_disks(fetch);
  const auto is_good = [&](const format::BlockPlace& place, std::uint32_t bad) {
    return (bad >> block & 1) == 0 && (away >> place.address.disk & 1) == 0;
  };
  const bool first_good = is_good(*first, fetch.bad_first), copy_good = is_good(*copy, fetch.bad_copy);
  if ((fetch.prefers_copies >> block & 1) != 0 && copy_good) return copy;
  if (first_good) return first;
  return copy_good || is_zeroed(first->address.disk) ? copy : first;
}

void LoadOperation::prepare_cell(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments) {
  std::size_t needed = 0;
  for (const std::uint32_t part : fetch.parts)
    if (fetch.cell.first.find(part)) needed = (std::size_t{part} + 1) * object_.block_size;
  if (needed == 0) return;
  choose_target(fetch, needed);
  fetch.extent.record.runs.clear();
  for (const std::uint32_t part : fetch.parts) {
    const std::optional<format::BlockPlace> place = choose_block(fetch, part);
    if (!place) continue;
    const store::Run run{place->address.disk, place->address.block, 1};
    const std::size_t at = std::size_t{part} * object_.block_size;
    if (is_zeroed(run.disk)) {
      std::memset(fetch.stored.data() + at, 0, object_.block_size);
      continue;
    }
    fetch.extent.record.runs.push_back(run);
    append_segments({&run, 1}, object_.block_size, 0, object_.block_size, fetch.stored.data() + at, number, segments);
  }
}

// A small part of an extent is loaded into a sparse buffer. Where more than a half of it is filled, it becomes a plain
// one.
void LoadOperation::choose_sparse(const Fetch& fetch, CacheBlock& block) const {
  const std::size_t size = object_.capacity_bytes;
  // The last page is filled up with zeros.
  std::size_t wanted = object_.extent_bytes < size ? kPageBytes : 0;
  for (const std::uint32_t part : fetch.parts)
    wanted += align_up(part_range(part).end - part_range(part).begin, kPageBytes);
  if (!block.buffer) {
    if (wanted <= size / kSparseShare) block.buffer = core_.cache.acquire_sparse(size, wanted);
  } else if (block.buffer.is_sparse() && block.buffer.charged_bytes() + wanted <= size / 2) {
    core_.cache.charge(block.buffer, wanted);
  } else if (block.buffer.is_sparse()) {
    BufferRef plain = core_.cache.acquire(size);
    block.copy_valid(plain);
    block.buffer = std::move(plain);
  }
}

void LoadOperation::choose_target(Fetch& fetch, std::size_t bytes) {
  CacheBlock& block = *fetch.block;
  const std::size_t size = object_.is_image() ? object_.capacity_bytes : cell_buffer_bytes(object_, bytes);
  if (fetch.stands_in) {
    fetch.direct = false;
    fetch.stored = core_.cache.acquire(size, Use::kBrief);
    return;
  }
  const std::lock_guard lock(block.mutex);
  if (object_.is_raw()) choose_sparse(fetch, block);
  if (block.buffer.size() < size) {
    BufferRef larger = core_.cache.acquire(size);
    const std::size_t old = block.buffer.size();
    if (old > 0) std::memcpy(larger.data(), block.buffer.data(), old);
    if (!block.valid.ranges().empty()) std::memset(larger.data() + old, 0, larger.size() - old);
    block.buffer = std::move(larger);
  }
  fetch.direct = std::none_of(fetch.parts.begin(), fetch.parts.end(), [&](std::uint32_t part) {
    const ByteRanges::Range range = part_range(part);
    return block.valid.touches(range.begin, range.end);
  });
  fetch.stored = fetch.direct ? block.buffer : core_.cache.acquire(size);
}

void LoadOperation::completed(device::Io& io) {
  auto* const pending = static_cast<Pending*>(io.context);
  pending->operation->arrived(*pending, io.status);
}

void LoadOperation::arrived(Pending& request, const Status& status) {
  const std::shared_ptr<LoadOperation> self = shared_from_this();
  if (status.ok()) copy_shared(request.shared);  // the owners still hold their buffers
  bool wants_help = false, over = false;
  std::vector<BufferRef> left;  // of fetches that were given up
  {
    const std::lock_guard lock(mutex_);
    request.ended = true;
    if (request.is_late) core_.late_disks.end(request.disk);
    for (Fetch* const fetch : request.owners) {
      if (!status.ok() && fetch->status.ok()) fetch->status = status.error();
      if (!status.ok()) fetch->failed_disks |= std::uint64_t{1} << request.disk;
      if (--fetch->pending > 0) continue;
      if (!fetch->given_up || take_after_all(*fetch)) {
        ready_.push_back(fetch);
        continue;
      }
      left.push_back(std::move(fetch->stored));
      left.push_back(std::move(fetch->strips));
      for (BufferRef& other : fetch->others) left.push_back(std::move(other));
      --late_;
      over = late_ == 0 && unfinished_ == 0 && !waits_;
    }
    wants_help = !ready_.empty() && (!waits_ || ready_.size() > 1);
    changed_.notify_one();
  }
  left.clear();
  if (wants_help) core_.tasks.post([self] { self->help(); });
  if (over) end();
}

void LoadOperation::help() {
  std::unique_lock lock(mutex_);
  while (!ready_.empty()) {
    Fetch& fetch = *ready_.front();
    ready_.pop_front();
    ++finishing_;
    lock.unlock();
    finish(fetch);
    lock.lock();
    if (--finishing_ == 0 && leaving_) changed_.notify_all();
    if (--unfinished_ > 0) continue;
    changed_.notify_all();
    const bool over = !waits_ && late_ == 0;
    if (!waits_ && !over) keep_late_bytes(kept_share_);
    lock.unlock();
    if (over) end();
    return;
  }
}

bool LoadOperation::help_until_done(const Stop& stop) {
  const auto woken = [this] { return unfinished_ == 0 || !ready_.empty(); };
  while (true) {
    help();
    std::unique_lock lock(mutex_);
    if (!wait_or_stop(changed_, lock, kStopPoll, stop, woken)) return false;
    if (unfinished_ == 0) return true;
  }
}

}  // namespace mdfs::engine
