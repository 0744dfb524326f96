// Write-back of extents that are being filled: what is new goes to strips, and whole extents are written later.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "base/crc32c.h"
#include "engine/requests.h"
#include "engine/strips/strip_choice.h"
#include "engine/strips/strip_judge.h"
#include "engine/write/write_back.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

constexpr std::uint64_t kMostStripBytes = 4u << 20;
// Strips are their own owners, so that their groups come and go as a whole and leave those of extents alone.
constexpr std::uint64_t kStripOwner = std::uint64_t{1} << 63;
constexpr std::uint64_t kMostPages = UINT64_MAX / MDFS_STRIPS_PER_PAGE;

// Where the placement looks for a strip's disk: neighbours in space and in time go to different ones.
geometry::Coord position_of(const OpenObject& object, const geometry::Coord& first, std::uint32_t begin,
                            std::uint32_t bytes) {
  geometry::Coord position = first;
  for (unsigned axis = 1; axis < object.rank; ++axis) position[axis] /= object.page_box.side[axis];
  position[object.rank - 1] += begin / bytes;
  return position;
}

// As far as is known without a look at its page; its mutex is held.
bool may_go_in_parts(const OpenObject& object, const CacheBlock& block) {
  const ChangedBytes& changed = block.changed_bytes;
  if (!block.dirty || block.write_locked || block.full || changed.empty() || !block.buffer) return false;
  StripFacts facts;
  facts.extent_blocks = object.capacity_bytes / object.block_size;
  facts.changed_blocks = ceil_div(changed.end - changed.begin, object.block_size);
  return worth_a_strip(facts) && block.covers(changed.begin, changed.end) &&
         object.page_of(object.extent_coord(block.key.index)).page < kMostPages;
}

}  // namespace

std::vector<CacheBlockPtr> WriteBack::collect_pieces(OpenObject& object) {
  std::vector<CacheBlockPtr> dirty;
  std::uint64_t published_size = 0;
  {
    const std::lock_guard lock(object.state_mutex);
    object.early_bytes = 0;
    published_size = object.published_size;
    dirty.reserve(object.dirty_cache_blocks.size());
    for (const auto& [index, block] : object.dirty_cache_blocks) dirty.push_back(block);
  }
  const std::uint32_t step_bytes = object.extent_bytes / static_cast<std::uint32_t>(object.array().extent[0]);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<CacheBlockPtr>> rows;  // by page and step of the grid
  for (CacheBlockPtr& block : dirty) {
    const geometry::Coord coord = object.extent_coord(block->key.index);
    {
      const std::lock_guard lock(block->mutex);
      const ChangedBytes& changed = block->changed_bytes;
      const bool whole_steps = !changed.empty() && changed.begin % step_bytes == 0 &&
                               object.end_with_padding(coord, changed.end) % step_bytes == 0;
      if (!whole_steps || object.canonical_offset(coord, changed.begin) < published_size) continue;
      if (!may_go_in_parts(object, *block)) continue;
    }
    rows[{object.page_of(coord).page, coord[0]}].push_back(std::move(block));
  }
  std::erase_if(rows,
                [&](const auto& row) { return row.second.size() != object.extents_in_page_row(row.first.first); });
  std::vector<CacheBlockPtr> blocks;
  std::uint64_t bytes = 0;
  for (auto& [name, row] : rows) {
    if (bytes >= core_.batch_bytes() || blocks.size() >= kMaxBatchBlocks) {
      const std::lock_guard lock(object.state_mutex);
      object.early_bytes = std::max<std::uint64_t>(object.early_bytes, core_.options.early_batch_bytes);
      break;
    }
    for (CacheBlockPtr& block : row) {
      const std::lock_guard lock(block->mutex);
      bytes += bytes_to_write(object, *block);
      blocks.push_back(block);
    }
  }
  return blocks;
}

std::uint64_t WriteBack::bytes_to_write(const OpenObject& object, const CacheBlock& block) {
  const std::uint64_t changed = block.changed_bytes.empty() ? 0 : block.changed_bytes.end - block.changed_bytes.begin;
  const bool part = object.may_have_strips && changed > 0 && 2 * changed <= object.extent_bytes;
  return part ? align_up(changed, object.block_size) : object.extent_bytes;
}

// Like lock_whole(), but only the changed bytes have to be valid.
bool WriteBack::lock_changes(OpenObject& object, const CacheBlockPtr& block, Batch& batch) {
  const std::lock_guard lock(block->mutex);
  ChangedBytes changed = block->changed_bytes;
  if (!may_go_in_parts(object, *block)) return false;
  const geometry::Coord coord = object.extent_coord(block->key.index);
  const std::uint64_t end = object.canonical_offset(coord, changed.end - 1) + 1;
  const std::uint32_t padded = object.end_with_padding(coord, changed.end);
  if (block->covers(changed.begin, padded)) changed.end = padded;
  block->write_locked = true;
  Staged staged;
  staged.index = block->key.index;
  staged.coord = coord;
  staged.decoded = block->buffer;
  staged.block = block;
  block->filled_bytes = 0;
  block->changed_bytes = {};
  {
    const std::lock_guard state(object.state_mutex);
    if (std::exchange(block->full, false)) object.remove_full(coord);
    batch.in_parts.snapshots.push_back({block->changes, changed, block->reserved, end});
    batch.reservation.absorb(object.reservation.split(std::exchange(block->reserved, {})));
  }
  batch.in_parts.extents.push_back(std::move(staged));
  return true;
}

Status WriteBack::take_parts(OpenObject& object, std::vector<CacheBlockPtr>& whole,
                             std::vector<CacheBlockPtr>& in_parts) {
  StripJudge judge(core_, object);
  std::vector<CacheBlockPtr> rest;
  for (CacheBlockPtr& block : whole) {
    ChangedBytes changed;
    bool worth = false;
    {
      const std::lock_guard lock(block->mutex);
      if (!block->dirty || block->write_locked) continue;  // clean, or another thread writes it
      worth = may_go_in_parts(object, *block);
      changed = block->changed_bytes;
    }
    if (worth) {
      MDFS_TRY_ASSIGN(worth, judge.is_worth_a_strip(object.extent_coord(block->key.index), changed));
    }
    (worth ? in_parts : rest).push_back(std::move(block));
  }
  whole = std::move(rest);
  return {};
}

// Equal bytes of extents of one page make a strip. Cache blocks in no job are not worth one.
Result<std::vector<WriteBack::StripJob>> WriteBack::plan_strips(OpenObject& object, const Locked& locked) {
  StripJudge judge(core_, object);
  using Name = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // page, begin, end
  std::map<Name, std::map<unsigned, std::size_t>> together;              // cache blocks by place
  for (std::size_t i = 0; i < locked.extents.size(); ++i) {
    const geometry::Coord& coord = locked.extents[i].coord;
    const ChangedBytes& changed = locked.snapshots[i].changed;
    MDFS_TRY_ASSIGN(const bool worth, judge.is_worth_a_strip(coord, changed));
    const geometry::PagePlace place = object.page_of(coord);
    if (worth) together[{place.page, changed.begin, changed.end}].emplace(place.place, i);
  }
  std::vector<StripJob> jobs;
  for (const auto& [name, places] : together) {
    const auto& [page, begin, end] = name;
    const auto part_blocks = static_cast<std::uint32_t>(ceil_div(end - begin, object.block_size));
    const std::size_t most =
        std::clamp<std::size_t>(kMostStripBytes / (std::uint64_t{part_blocks} * object.block_size), 1,
                                format::strip_parts(part_blocks));  // at least 1 of what is worth a strip
    for (auto next = places.begin(); next != places.end();) {
      StripJob job;
      job.staged.page = page;
      job.staged.strip.begin = begin;
      job.staged.strip.bytes = end - begin;
      const geometry::Coord first = object.extent_of({page, next->first});
      const geometry::Coord position = position_of(object, first, begin, end - begin);
      job.disk = static_cast<std::uint16_t>(object.placement_disk(position));
      job.copy_disk = static_cast<std::uint16_t>(object.copy_disk(position));
      job.order = object.groups.order_of(first);
      for (; next != places.end() && job.extents.size() < most; ++next) {
        job.staged.strip.places |= std::uint64_t{1} << next->first;
        job.extents.push_back(next->second);
        job.blocks += part_blocks;
      }
      job.staged.strip.live = job.staged.strip.places;
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

// Contiguous blocks for the strips of each disk together; those that find none keep an empty run.
Status WriteBack::place_strips(OpenObject& object, std::vector<StripJob>& jobs, store::Reservation& reservation) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const StripJob& a, const StripJob& b) {
    return std::tie(a.disk, a.order) < std::tie(b.disk, b.order);
  });
  std::uint64_t group_blocks = std::max<std::uint64_t>(1, kBytesAskedAtOnce / object.block_size);
  for (std::size_t next = 0; next < jobs.size();) {
    std::uint64_t blocks = jobs[next].blocks;
    std::size_t end = next + 1;
    while (end < jobs.size() && jobs[end].disk == jobs[next].disk && blocks + jobs[end].blocks <= group_blocks)
      blocks += jobs[end++].blocks;
    store::AllocationRequest request;
    request.disk = jobs[next].disk;
    request.blocks = static_cast<std::uint32_t>(blocks);
    request.owner = object.number | kStripOwner;
    request.policy = object.image->policy;
    Result<store::Run> run = core_.store.allocate(request, reservation.blocks() >= blocks ? &reservation : nullptr);
    if (!run.ok() && run.error().code != Errc::kNoSpace) return std::move(run).error();
    if (!run.ok() && end - next > 1) {
      group_blocks = blocks / 2;
      continue;
    }
    for (; next < end; ++next) {
      if (!run.ok()) continue;
      jobs[next].run = {run->disk, run->block, jobs[next].blocks};
      run->block += jobs[next].blocks;
    }
  }
  return {};
}

// On other disks. A strip whose copy finds no contiguous room has no place at all: its extents are written whole, in
// runs where they fit. If there is no other disk the strip has one copy.
Status WriteBack::place_strip_copies(OpenObject& object, std::vector<StripJob>& jobs, store::Reservation& reservation) {
  for (StripJob& job : jobs) {
    if (job.run.blocks == 0) continue;
    store::AllocationRequest request;
    request.disk = job.copy_disk;
    request.blocks = job.blocks;
    request.owner = object.number | kStripOwner | kCopyOwner;
    request.policy = object.image->policy;
    request.avoided_disks = std::uint64_t{1} << job.run.disk;
    Result<store::Run> run = core_.store.allocate(request, reservation.blocks() >= job.blocks ? &reservation : nullptr);
    if (!run.ok() && run.error().code != Errc::kNoSpace) return std::move(run).error();
    if (run.ok())
      job.copy = *run;
    else if (std::popcount(~core_.gone_disks()) > 1)
      core_.store.abandon(std::exchange(job.run, {}));
  }
  return {};
}

// The parts one after another, each from a block on; checksums of all blocks; to all disks at once. Parts that are
// whole blocks are written from where they are: valid bytes of a buffer that is shared do not change.
Status WriteBack::store_strips(OpenObject& object, const Locked& locked, std::vector<StripJob>& jobs) {
  const std::uint32_t block_size = object.block_size;
  core_.tasks.parallel_for(jobs.size(), [&](std::size_t i) {
    StripJob& job = jobs[i];
    format::Strip& strip = job.staged.strip;
    strip.address = {job.run.disk, job.run.block};
    if (job.copy.blocks > 0) strip.copy = format::StripCopy{{job.copy.disk, job.copy.block}, 0};
    strip.crc32c.reserve(job.blocks);
    const std::size_t part_bytes = std::size_t{strip.part_blocks(block_size)} * block_size;
    const bool in_place = strip.begin % device::kAlignment == 0 && strip.bytes == part_bytes;
    if (!in_place) job.bytes = core_.cache.acquire(std::size_t{job.blocks} * block_size);
    for (std::size_t part = 0; part < job.extents.size(); ++part) {
      std::byte* bytes = locked.extents[job.extents[part]].decoded.data() + strip.begin;
      if (!in_place) {
        std::byte* const copy = job.bytes.data() + part * part_bytes;
        std::memcpy(copy, bytes, strip.bytes);
        std::memset(copy + strip.bytes, 0, part_bytes - strip.bytes);
        bytes = copy;
      }
      for (std::size_t at = 0; at < part_bytes; at += block_size)
        strip.crc32c.push_back(crc32c({bytes + at, block_size}));
      job.parts.push_back(bytes);
    }
  });
  std::vector<Segment> segments;
  for (const StripJob& job : jobs) {
    const std::uint32_t part_blocks = job.staged.strip.part_blocks(block_size);
    for (const store::Run& piece : {job.run, job.copy}) {
      if (piece.blocks == 0) continue;
      store::Run run{piece.disk, piece.block, part_blocks};
      for (std::byte* const part : job.parts) {
        append_segments({&run, 1}, block_size, 0, std::uint64_t{part_blocks} * block_size, part, 0, segments);
        run.block += part_blocks;
      }
    }
  }
  Status status = write_all(core_.store, segments, core_.options.largest_request_bytes);
  for (StripJob& job : jobs) {
    job.parts.clear();
    job.bytes = BufferRef();
  }
  return status;
}

void WriteBack::abandon_strips(Batch& batch) {
  for (const StripJob& job : batch.strips)
    for (const store::Run& run : {job.run, job.copy})
      if (run.blocks > 0) core_.store.abandon(run);
  batch.strips.clear();
}

Status WriteBack::write_strips(OpenObject& object, Batch& batch, std::vector<CacheBlockPtr>& not_taken) {
  Locked& locked = batch.in_parts;
  if (locked.extents.empty()) return {};
  MDFS_TRY_ASSIGN(batch.strips, plan_strips(object, locked));
  MDFS_TRY(place_strips(object, batch.strips, batch.reservation));
  if (object.wants_copies.load(std::memory_order_relaxed))
    MDFS_TRY(place_strip_copies(object, batch.strips, batch.reservation));
  std::erase_if(batch.strips, [](const StripJob& job) { return job.run.blocks == 0; });
  // A disk refused a write: the extents are written as a whole, if need be to other disks.
  if (!store_strips(object, locked, batch.strips).ok()) abandon_strips(batch);
  if (!batch.strips.empty()) core_.relocations.note_strips(object.number);

  std::vector<bool> kept(locked.extents.size(), false);
  for (const StripJob& job : batch.strips)
    for (const std::size_t extent : job.extents) kept[extent] = true;
  Locked rest, in_strips;
  for (std::size_t i = 0; i < locked.extents.size(); ++i) {
    Locked& to = kept[i] ? in_strips : rest;
    if (!kept[i]) not_taken.push_back(locked.extents[i].block);
    to.end = std::max(to.end, std::min(locked.end, locked.snapshots[i].end));
    to.extents.push_back(std::move(locked.extents[i]));
    to.snapshots.push_back(locked.snapshots[i]);
  }
  locked = std::move(in_strips);
  finish(object, rest, batch.reservation, false, true);
  return {};
}

}  // namespace mdfs::engine
