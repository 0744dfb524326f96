// One load at work: pieces whose disks are late are read from other disks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "engine/read/load_operation.h"

namespace mdfs::engine {
namespace {

constexpr std::int64_t kLookAgainNs = 10'000'000;

}  // namespace

bool LoadOperation::has_choice(const Fetch& fetch) const {
  return fetch.extent.record.is_protected() || fetch.extent.has_copied_part() || fetch.cell.has_copies();
}

std::uint64_t LoadOperation::disks_to_read(const Fetch& fetch) const {
  const StoredExtent& record = fetch.extent.record;
  std::uint64_t disks = fetch.from_others ? record.others.disks() : StoredExtent::disks_of(record.runs);
  if (object_.is_image()) {
    for (const StripPart& part : fetch.extent.parts) disks |= StoredExtent::disks_of(part.stored.runs);
    return disks;
  }
  disks = 0;
  for (const std::uint32_t part : fetch.parts)
    if (const auto place = choose_block(fetch, part)) disks |= std::uint64_t{1} << place->address.disk;
  return disks;
}

std::unique_ptr<Fetch> LoadOperation::elsewhere(const Fetch& fetch, std::uint64_t late_disks) const {
  auto other = std::make_unique<Fetch>();
  other->block = fetch.block;
  other->coord = fetch.coord;
  other->want = fetch.want;
  other->parts = fetch.parts;
  other->kept = fetch.kept;
  other->as_frame = fetch.as_frame;
  other->tries = fetch.tries;
  other->found_damage = fetch.found_damage;
  other->failed_disks = fetch.failed_disks;
  other->bad_pieces = fetch.bad_pieces;
  other->bad_first = fetch.bad_first;
  other->bad_copy = fetch.bad_copy;
  other->late_disks = late_disks;
  other->stands_in = true;
  other->extent = fetch.extent;
  other->cell = fetch.cell;
  choose_piece(*other);
  choose_parts(*other);
  if ((disks_to_read(*other) & late_disks) != 0) return nullptr;
  return other;
}

bool LoadOperation::take_after_all(Fetch& fetch) {
  Fetch* const other = fetch.other;
  if (!fetch.status.ok() || other == nullptr || other->pending == 0) return false;
  fetch.given_up = false;
  other->given_up = true;  // it is late instead: late_ stays
  return true;
}

std::optional<std::int64_t> LoadOperation::help_late(std::int64_t now_ns) {
  std::int64_t next_ns = INT64_MAX;
  std::vector<Fetch*> others;
  {
    const std::lock_guard lock(mutex_);
    if (submitting_) return now_ns + kLookAgainNs;
    std::map<Fetch*, std::uint64_t> late;  // with the disks
    for (Pending& request : pending_) {
      if (request.ended) continue;
      if (request.late_ns > now_ns) {
        next_ns = std::min(next_ns, request.late_ns);
        continue;
      }
      for (Fetch* const fetch : request.owners)
        if (!fetch->given_up && fetch->other == nullptr) late[fetch] |= std::uint64_t{1} << request.disk;
      if (!std::exchange(request.is_late, true)) core_.late_disks.begin(request.disk);
    }
    for (const auto& [fetch, disks] : late) {
      std::unique_ptr<Fetch> other = elsewhere(*fetch, disks);
      if (!other) continue;
      if (!core_.hedges.spend()) {
        next_ns = std::min(next_ns, now_ns + device::kLeastLateNs);  // it may be made again then
        break;
      }
      fetch->given_up = true;
      fetch->other = other.get();
      other->other = fetch;
      ++late_;
      others.push_back(other.get());
      fetches_.push_back(std::move(other));
    }
  }
  if (!others.empty()) {
    const device::UrgencyScope scope(urgency_);
    submit(others, {});
  }
  return next_ns == INT64_MAX ? std::nullopt : std::optional(next_ns);
}

}  // namespace mdfs::engine
