// Staging: encode, place, write.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "codec/codec.h"
#include "engine/requests.h"
#include "engine/write/place.h"
#include "format/layout.h"

namespace mdfs::engine {

namespace {

bool is_zero(ConstBytes bytes) {
  // Equal to itself shifted by one, and the first is zero.
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

void encode_raw(const OpenObject& object, Staged& staged) {
  for (std::uint32_t begin = 0; begin < object.extent_bytes; begin += MDFS_SUB_BLOCK) {
    const std::size_t length = std::min<std::size_t>(MDFS_SUB_BLOCK, object.extent_bytes - begin);
    staged.extent.crc32c.push_back(crc32c({staged.decoded.data() + begin, length}));
  }
  staged.extent.stored_bytes = object.extent_bytes;
  staged.extent.part_bytes = MDFS_SUB_BLOCK;
  staged.stored = staged.decoded;
}

void keep_frame(const OpenObject& object, BufferRef frame, std::size_t used, Staged& staged) {
  std::memset(frame.data() + used, 0, align_up(used, object.block_size) - used);
  staged.extent.stored_bytes = staged.extent.part_bytes = static_cast<std::uint32_t>(used);
  staged.extent.crc32c = {crc32c({frame.data(), used})};
  staged.stored = std::move(frame);
}

void take_frame(Core& core, const OpenObject& object, Staged& staged) {
  MDFS_CHECK(staged.frame.size() <= codec::compress_bound(object.image->codec, object.extent_bytes));
  const BufferRef frame = core.cache.acquire(align_up(staged.frame.size(), object.block_size));
  std::memcpy(frame.data(), staged.frame.data(), staged.frame.size());
  keep_frame(object, frame, staged.frame.size(), staged);
}

Status encode_zstd(Core& core, const OpenObject& object, Staged& staged) {
  const std::size_t bound = codec::compress_bound(object.image->codec, object.extent_bytes);
  BufferRef frame = core.cache.acquire(align_up(bound, object.block_size));
  codec::Encoder encoder = core.encoding.idle().take();
  MDFS_TRY_ASSIGN(const std::size_t used,
                  codec::encode(object.image->codec, object.image->codec_level,
                                {staged.decoded.data(), object.extent_bytes}, frame.bytes(), encoder));
  core.encoding.idle().give_back(std::move(encoder));
  keep_frame(object, std::move(frame), used, staged);
  return {};
}

// The blocks to write lie in `stored` one after another. A cell's buffer may end before the cell does.
void encode_cell(Core& core, const OpenObject& object, Staged& staged) {
  const auto count = static_cast<std::size_t>(std::popcount(staged.blocks));
  if (count == 0) return;
  staged.stored = core.cache.acquire(count * object.block_size);
  staged.extent.stored_bytes = static_cast<std::uint32_t>(count * object.block_size);
  staged.extent.part_bytes = object.block_size;
  std::byte* to = staged.stored.data();
  for (std::uint32_t block = 0; block < 32; ++block) {
    if ((staged.blocks >> block & 1) == 0) continue;
    const std::size_t at = std::size_t{block} * object.block_size;
    const std::size_t have =
        staged.decoded.size() > at ? std::min<std::size_t>(staged.decoded.size() - at, object.block_size) : 0;
    if (have > 0) std::memcpy(to, staged.decoded.data() + at, have);
    std::memset(to + have, 0, object.block_size - have);
    staged.extent.crc32c.push_back(crc32c({to, object.block_size}));
    to += object.block_size;
  }
}

Status encode(Core& core, const OpenObject& object, Staged& staged) {
  staged.extent = {};
  if (!object.is_image()) {
    encode_cell(core, object, staged);
    return {};
  }
  if (!staged.decoded || (!staged.stores_zeros && is_zero({staged.decoded.data(), object.extent_bytes}))) {
    staged.decoded = BufferRef();
    return {};
  }
  if (object.is_raw()) {
    encode_raw(object, staged);
  } else if (!staged.frame.empty()) {
    take_frame(core, object, staged);
  } else {
    return encode_zstd(core, object, staged);
  }
  return {};
}

// Encoders that are larger than half of their budget work one after another, and others may have turns between them.
Status encode_all(Core& core, const OpenObject& object, std::vector<Staged>& extents, const Stop& stop) {
  const std::size_t each = encoder_bytes(object);
  ByteBudget& budget = core.encoding.encoders_of(each);
  const std::size_t most = encoders_at_once(budget.limit_bytes(), each, extents.size(), core.tasks.threads() + 1);
  if (most == 1) {
    for (Staged& staged : extents) {
      const ByteBudget::Share share = each > 0 ? budget.wait_for(each) : ByteBudget::Share();
      MDFS_TRY(stopped(stop));
      MDFS_TRY(encode(core, object, staged));
    }
    return {};
  }
  const ByteBudget::Share share = each > 0 ? budget.wait_for(most * each) : ByteBudget::Share();
  std::mutex mutex;  // guards status
  Status status;
  const auto encode_one = [&](std::size_t i) {
    Status one = stopped(stop);
    if (one.ok()) one = encode(core, object, extents[i]);
    if (one.ok()) return;
    const std::lock_guard lock(mutex);
    if (status.ok()) status = std::move(one);
  };
  core.tasks.parallel_for(extents.size(), encode_one, most);
  return status;
}

Status write_extents(Core& core, const OpenObject& object, const std::vector<Staged*>& extents, std::uint64_t& failed) {
  std::vector<Segment> segments;
  for (const Staged* const staged : extents)
    for (const format::Runs* const piece : {&staged->extent.runs, &staged->extent.copy})
      if (!piece->empty())
        append_segments(*piece, object.block_size, 0, std::uint64_t{blocks_of(object, *staged)} * object.block_size,
                        staged->stored.data(), 0, segments);
  return write_all(core.store, segments, core.options.largest_request_bytes, &failed);
}

void abandon_one(Core& core, Staged& staged) {
  for (const store::Run& run : staged.extent.all_runs()) core.store.abandon(run);
  staged.extent.runs.clear();
  staged.extent.copy.clear();
}

// The blocks of the extents have gone back to the store, not to the reservation. Without room they are looked for
// where nothing is reserved.
void reserve_again(Core& core, const OpenObject& object, const std::vector<Staged*>& extents,
                   store::Reservation& reservation) {
  std::uint64_t blocks = 0;
  for (const Staged* const staged : extents) blocks += blocks_of(object, *staged);
  Result<store::Reservation> again = core.store.reserve(object.worst_case_blocks(blocks), store::Purpose::kFreeing);
  if (again.ok()) reservation.absorb(std::move(again).value());
}

// Extents of which a write failed are placed on other disks, and written there, until that succeeds or no disk is left.
Status place_and_write(Core& core, OpenObject& object, std::vector<Staged>& extents, store::Reservation& reservation) {
  std::vector<Staged*> list;
  for (Staged& staged : extents) list.push_back(&staged);
  std::uint64_t failed = 0;
  MDFS_TRY(place(core, object, list, reservation, failed));
  Status written = write_extents(core, object, list, failed);
  while (!written.ok() && failed != 0) {
    std::erase_if(list, [&](const Staged* staged) { return (staged->extent.disks() & failed) == 0; });
    for (Staged* const staged : list) abandon_one(core, *staged);
    spdlog::warn("writes of {} extents failed ({}); they go to other disks", list.size(),
                 written.error().within(written.error().code));
    reserve_again(core, object, list, reservation);
    if (!place(core, object, list, reservation, failed).ok()) return written;
    std::uint64_t again = 0;
    const Status repeated = write_extents(core, object, list, again);
    if (repeated.ok()) return {};
    if ((again & ~failed) == 0) return written;
    failed |= again;
  }
  return written;
}

}  // namespace

Status stage(Core& core, OpenObject& object, std::vector<Staged>& extents, store::Reservation& reservation,
             const Stop& stop) {
  std::size_t frames = 0;
  for (const Staged& staged : extents)
    frames += frame_bytes(object, static_cast<std::size_t>(std::popcount(staged.blocks)));
  ByteBudget::Share share = frames > 0 ? core.encoding.frames_of(frames).wait_for(frames) : ByteBudget::Share();
  Status status = encode_all(core, object, extents, stop);
  if (status.ok()) status = place_and_write(core, object, extents, reservation);
  for (Staged& staged : extents) staged.stored = BufferRef();
  if (!status.ok()) abandon(core, extents);
  return status;
}

void abandon(Core& core, std::vector<Staged>& extents) {
  for (Staged& staged : extents) abandon_one(core, staged);
}

}  // namespace mdfs::engine
