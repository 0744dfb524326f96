// Finding and reading frames.
// SPDX-License-Identifier: Apache-2.0
#include "engine/read/frames.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/read/window_version.h"

namespace mdfs::engine {
namespace {

constexpr unsigned kLookUps = 2;  // after the first, of a frame that has moved

// Generations are far smaller than 2^56, and numbers of objects than 2^63.
CacheBlockKey key_of(const format::StoredExtent& stored) {
  const store::Run& first = stored.first();
  static_assert(MDFS_MAX_DISKS <= 128);
  return {std::uint64_t{1} << 63 | std::uint64_t{first.disk} << 56 | (stored.birth & ((std::uint64_t{1} << 56) - 1)),
          first.block};
}

bool same_bytes(const format::StoredExtent& one, const format::StoredExtent& other) {
  return one.stored_bytes == other.stored_bytes && one.written == other.written && one.crc32c == other.crc32c;
}

}  // namespace

StoredFrame::StoredFrame(std::shared_ptr<OpenObject> object, const geometry::Coord& extent, MappedExtent stored,
                         std::shared_ptr<const store::BlockHold> hold)
    : object_(std::move(object)),
      extent_(extent),
      size_bytes_(stored.record.stored_bytes),
      place_(std::make_shared<const Place>(Place{std::move(stored), std::move(hold)})) {}

std::shared_ptr<const StoredFrame::Place> StoredFrame::place() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

void StoredFrame::move_to(std::shared_ptr<const Place> place) {
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
}

Result<std::shared_ptr<StoredFrame>> Frames::find(OpenObject& object, const geometry::Coord& extent, const Stop& stop) {
  const std::shared_ptr<StoredFrame> none;
  if (!object.is_image() || object.is_raw()) return none;
  const InsideBarrier inside(object.barrier, stop);
  if (!inside) return interrupted();
  // Before the record: bytes are published before their cache block is clean.
  {
    const std::lock_guard lock(object.state_mutex);
    if (object.dirty_cache_blocks.contains(object.extent_index(extent))) return none;
  }
  MDFS_TRY_ASSIGN(MappedExtent stored, core_.extent_map.extent(object, extent, false));
  if (!stored.has_record() || !stored.parts.empty()) return none;
  // The caller makes the frame of such bytes: of a level by computing them, of other objects of zeros.
  const std::uint64_t made_by_caller = object.is_level ? core_.store.lost_disks() : core_.zeroed_disks;
  if ((format::StoredExtent::disks_of(stored.record.runs) & made_by_caller) != 0) return none;
  // In time: freed blocks are pending free for two commits.
  std::vector<store::Run> held;
  stored.append_runs(held);
  auto hold = core_.store.hold(std::move(held));
  return std::make_shared<StoredFrame>(object.shared_from_this(), extent, std::move(stored), std::move(hold));
}

Status Frames::read(StoredFrame& frame, std::uint64_t offset, MutableBytes into, const Stop& stop) {
  MDFS_CHECK(offset <= frame.size_bytes() && into.size() <= frame.size_bytes() - offset);
  for (unsigned look_ups = 0;; ++look_ups) {
    const std::shared_ptr<const StoredFrame::Place> place = frame.place();
    Status status = read_at(frame, *place, offset, into, stop);
    if (status.ok() || status.error().code == Errc::kCancelled) return status;
    if (!place->hold->is_broken()) {
      if (status.error().code == Errc::kCorrupt) core_.store.note_checksum_error(place->extent.record.first().disk);
      return status;
    }
    if (look_ups == kLookUps) return WindowVersion::stale_error();
    MDFS_TRY_ASSIGN(const auto now, find(*frame.object_, frame.extent_, stop));
    if (!now || !same_bytes(now->place()->extent.record, place->extent.record)) return WindowVersion::stale_error();
    frame.move_to(now->place());
  }
}

Status Frames::read_at(const StoredFrame& frame, const StoredFrame::Place& place, std::uint64_t offset,
                       MutableBytes into, const Stop& stop) {
  OpenObject& object = *frame.object_;
  const Loaded copy = [&](std::size_t, const BufferRef& buffer) {
    std::memcpy(into.data(), buffer.data() + offset, into.size());
  };
  Want want{core_.cache.find_or_create(key_of(place.extent.record)), frame.extent_, {{0, object.extent_bytes}}};
  want.stored = &place.extent;
  want.as_frame = true;
  std::vector<Want> wants;
  wants.push_back(std::move(want));
  return loader_.load(object, std::move(wants), copy, stop);
}

}  // namespace mdfs::engine
