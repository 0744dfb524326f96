// Write-back of extents that are being filled: what is new goes to strips, and whole extents are written later.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "base/checked.h"
#include "base/crc32c.h"
#include "engine/requests.h"
#include "engine/strip_choice.h"
#include "engine/write_back.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

// The same bytes of some extents of one page.
struct WriteBack::StripJob {
  StagedStrip staged;
  std::vector<std::size_t> units;  // of the batch, in the order of their places
  std::uint16_t disk = 0;
  std::uint32_t blocks = 0;
  std::uint64_t order = 0;
  store::Run run;  // no blocks: none was found
  BufferRef bytes;
};

namespace {

constexpr std::uint64_t kGroupBytes = 4u << 20;  // contiguous blocks asked for at once
constexpr std::uint64_t kMostStripBytes = 4u << 20;
// Strips are their own owners, so that their groups come and go as a whole and leave those of extents alone.
constexpr std::uint64_t kStripOwner = std::uint64_t{1} << 63;
constexpr std::uint64_t kMostPages = UINT64_MAX / MDFS_STRIPS_PER_PAGE;

bool overlaps(const Strips& strips, unsigned place, const ChangedBytes& changed) {
  return std::any_of(strips.begin(), strips.end(), [&](const auto& entry) {
    const format::Strip& strip = entry.second;
    return strip.has(place) && strip.begin < changed.end && changed.begin < strip.end();
  });
}

std::uint64_t blocks_in(const Strips& strips, unsigned place, std::uint32_t block_size) {
  std::uint64_t blocks = 0;
  for (const auto& [number, strip] : strips)
    if (strip.has(place)) blocks += strip.part_blocks(block_size);
  return blocks;
}

// Where the placement looks for a strip's disk: neighbours in space and in time go to different ones.
geometry::Coord position_of(const Content& content, const geometry::Coord& first, std::uint32_t begin,
                            std::uint32_t bytes) {
  geometry::Coord position = first;
  for (unsigned axis = 1; axis < content.rank; ++axis) position[axis] /= content.page_box.side[axis];
  position[content.rank - 1] += begin / bytes;
  return position;
}

}  // namespace

std::uint64_t WriteBack::bytes_to_write(const Content& content, const Unit& unit) {
  const std::uint64_t changed = unit.changed_bytes.empty() ? 0 : unit.changed_bytes.end - unit.changed_bytes.begin;
  const bool part = content.may_have_strips && changed > 0 && 2 * changed <= content.unit_bytes;
  return part ? align_up(changed, content.block_size) : content.unit_bytes;
}

// Like claim(), but only the changed bytes have to be valid. What is clean, or another thread's, is nobody's to write.
WriteBack::Claimed WriteBack::claim_changes(Content& content, const UnitPtr& unit, Batch& batch) {
  const std::lock_guard lock(unit->mutex);
  ChangedBytes changed = unit->changed_bytes;
  if (!unit->dirty || unit->claimed) return Claimed::kNot;
  if (unit->full || changed.empty() || !unit->buffer) return Claimed::kNotInParts;
  StripFacts facts;  // as far as they are known without a look at the page
  facts.extent_blocks = content.capacity_bytes / content.block_size;
  facts.changed_blocks = ceil_div(changed.end - changed.begin, content.block_size);
  if (!worth_a_strip(facts) || !unit->covers(changed.begin, changed.end)) return Claimed::kNotInParts;
  const geometry::Coord coord = content.unit_coord(unit->key.index);
  if (content.page_of(coord).page >= kMostPages) return Claimed::kNotInParts;
  const std::uint32_t padded = content.end_with_padding(coord, changed.end);
  if (unit->covers(changed.begin, padded)) changed.end = padded;
  unit->claimed = true;
  Staged staged;
  staged.index = unit->key.index;
  staged.coord = coord;
  staged.content = unit->buffer;
  staged.unit = unit;
  unit->filled_bytes = 0;
  unit->changed_bytes = {};
  {
    const std::lock_guard state(content.state_mutex);
    if (std::exchange(unit->full, false)) content.remove_full(coord);
    batch.snapshots.push_back({unit->changes, changed, unit->promised});
    batch.reservation.absorb(content.reservation.split(std::exchange(unit->promised, {})));
  }
  batch.units.push_back(std::move(staged));
  return Claimed::kTaken;
}

// Equal bytes of extents of one page make a strip. Units in no job are not worth one.
Result<std::vector<WriteBack::StripJob>> WriteBack::plan_strips(Content& content, const Batch& batch) {
  std::uint64_t linked_size = 0;
  {
    const std::lock_guard lock(content.state_mutex);
    linked_size = content.linked_size;
  }
  using Name = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // page, begin, end
  std::map<Name, std::map<unsigned, std::size_t>> together;              // units by place
  for (std::size_t i = 0; i < batch.units.size(); ++i) {
    const geometry::Coord& coord = batch.units[i].coord;
    const ChangedBytes& changed = batch.snapshots[i].changed;
    const geometry::PagePlace place = content.page_of(coord);
    MDFS_TRY_ASSIGN(const KnownPage known, core_.records.page(content, place.page, false));
    StripFacts facts;
    facts.extent_blocks = content.capacity_bytes / content.block_size;
    facts.changed_blocks = ceil_div(changed.end - changed.begin, content.block_size);
    facts.has_record = known.page->has(place.place);
    facts.appends = content.canonical_offset(coord, changed.begin) >= linked_size;
    facts.overlaps = overlaps(*known.strips, place.place, changed);
    facts.strip_blocks = blocks_in(*known.strips, place.place, content.block_size);
    facts.strips_in_page = known.strips->size();
    if (worth_a_strip(facts)) together[{place.page, changed.begin, changed.end}].emplace(place.place, i);
  }
  std::vector<StripJob> jobs;
  for (const auto& [name, places] : together) {
    const auto& [page, begin, end] = name;
    const auto part_blocks = static_cast<std::uint32_t>(ceil_div(end - begin, content.block_size));
    const std::size_t most =
        std::clamp<std::size_t>(kMostStripBytes / (std::uint64_t{part_blocks} * content.block_size), 1,
                                std::max(1u, format::strip_parts(part_blocks)));
    for (auto next = places.begin(); next != places.end();) {
      StripJob job;
      job.staged.page = page;
      job.staged.strip.begin = begin;
      job.staged.strip.bytes = end - begin;
      const geometry::Coord first = content.unit_of({page, next->first});
      job.disk = static_cast<std::uint16_t>(content.wished_disk(position_of(content, first, begin, end - begin)));
      job.order = content.groups.order_of(first);
      for (; next != places.end() && job.units.size() < most; ++next) {
        job.staged.strip.places |= std::uint64_t{1} << next->first;
        job.units.push_back(next->second);
        job.blocks += part_blocks;
      }
      job.staged.strip.live = job.staged.strip.places;
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

// Contiguous blocks for the strips of each disk together; those that find none keep an empty run.
Status WriteBack::place_strips(Content& content, std::vector<StripJob>& jobs, store::Reservation& reservation) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const StripJob& a, const StripJob& b) {
    return std::tie(a.disk, a.order) < std::tie(b.disk, b.order);
  });
  std::uint64_t group_blocks = std::max<std::uint64_t>(1, kGroupBytes / content.block_size);
  for (std::size_t next = 0; next < jobs.size();) {
    std::uint64_t blocks = jobs[next].blocks;
    std::size_t end = next + 1;
    while (end < jobs.size() && jobs[end].disk == jobs[next].disk && blocks + jobs[end].blocks <= group_blocks)
      blocks += jobs[end++].blocks;
    store::AllocationRequest request;
    request.disk = jobs[next].disk;
    request.blocks = static_cast<std::uint32_t>(blocks);
    request.owner = content.object | kStripOwner;
    request.policy = content.image->policy;
    Result<store::Run> run = core_.store.allocate(request, reservation.blocks() >= blocks ? &reservation : nullptr);
    if (!run.ok() && run.error().code != Errc::kNoSpace) {
      for (const StripJob& job : jobs)
        if (job.run.blocks > 0) core_.store.abandon(job.run);
      return std::move(run).error();
    }
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

// The parts one after another, each from a block on; checksums of all blocks; to all disks at once.
Status WriteBack::store_strips(Content& content, const Batch& batch, std::vector<StripJob>& jobs) {
  const std::uint32_t block_size = content.block_size;
  core_.tasks.parallel_for(jobs.size(), [&](std::size_t i) {
    StripJob& job = jobs[i];
    format::Strip& strip = job.staged.strip;
    strip.address = {job.run.disk, job.run.block};
    job.bytes = core_.cache.acquire(std::size_t{job.blocks} * block_size);
    const std::size_t part_bytes = std::size_t{strip.part_blocks(block_size)} * block_size;
    std::byte* to = job.bytes.data();
    for (const std::size_t unit : job.units) {
      std::memcpy(to, batch.units[unit].content.data() + strip.begin, strip.bytes);
      std::memset(to + strip.bytes, 0, part_bytes - strip.bytes);
      for (std::size_t at = 0; at < part_bytes; at += block_size) strip.crc32c.push_back(crc32c({to + at, block_size}));
      to += part_bytes;
    }
  });
  std::vector<Segment> segments;
  for (const StripJob& job : jobs)
    append_segments({job.run}, block_size, 0, std::uint64_t{job.blocks} * block_size, job.bytes.data(), 0, segments);
  Status status = write_all(core_.store, segments, core_.options.largest_request_bytes);
  for (StripJob& job : jobs) job.bytes = BufferRef();
  return status;
}

Status WriteBack::write_strips(Content& content, std::vector<UnitPtr>& units) {
  Batch batch;
  batch.size = content.size.load(std::memory_order_acquire);
  std::vector<UnitPtr> rest;
  for (UnitPtr& unit : units)
    if (claim_changes(content, unit, batch) == Claimed::kNotInParts) rest.push_back(std::move(unit));
  units = std::move(rest);
  if (batch.units.empty()) return {};

  Result<std::vector<StripJob>> planned = plan_strips(content, batch);
  Status status;
  if (!planned.ok()) {
    status = std::move(planned).error();
    finish(content, batch, false);
    return status;
  }
  std::vector<StripJob> jobs = std::move(planned).value();
  status = place_strips(content, jobs, batch.reservation);
  std::vector<bool> kept(batch.units.size(), false);
  if (status.ok()) {
    std::erase_if(jobs, [](const StripJob& job) { return job.run.blocks == 0; });
    for (const StripJob& job : jobs)
      for (const std::size_t unit : job.units) kept[unit] = true;
    if (!jobs.empty()) status = store_strips(content, batch, jobs);
  }
  // Those for which no strip was made are dirty as before, and are written whole.
  Batch whole;
  Batch linked;
  linked.size = batch.size;
  for (std::size_t i = 0; i < batch.units.size(); ++i) {
    Batch& to = kept[i] ? linked : whole;
    if (!kept[i]) units.push_back(batch.units[i].unit);
    to.units.push_back(std::move(batch.units[i]));
    to.snapshots.push_back(batch.snapshots[i]);
  }
  for (const Snapshot& snapshot : whole.snapshots) whole.reservation.absorb(batch.reservation.split(snapshot.promised));
  linked.reservation = std::move(batch.reservation);
  finish(content, whole, false);
  if (linked.units.empty()) return status;

  core_.settle.note(content.weak_from_this());
  for (StripJob& job : jobs) linked.strips.push_back(std::move(job.staged));
  if (status.ok()) status = link_batch(content, linked);
  const bool full_page = !status.ok() && status.error().code == Errc::kBusy;
  if (!status.ok())
    for (const StripJob& job : jobs) core_.store.abandon(job.run);
  if (full_page)
    for (const Staged& staged : linked.units) units.push_back(staged.unit);
  finish(content, linked, status.ok());
  return full_page ? Status{} : status;
}

}  // namespace mdfs::engine
