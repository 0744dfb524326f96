// One load at work: verifying, decoding, and putting bytes into their cache blocks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/crc32c.h"
#include "codec/codec.h"
#include "engine/read/load_operation.h"

namespace mdfs::engine {

// Notes which pieces are bad.
Status LoadOperation::verify_cell(Fetch& fetch) const {
  Status status;
  std::uint32_t bad_first = 0, bad_copy = 0;
  for (const std::uint32_t part : fetch.parts) {
    const std::optional<format::BlockPlace> place = choose_block(fetch, part);
    if (!place || is_zeroed(place->address.disk)) continue;
    const ConstBytes block(fetch.stored.data() + std::size_t{part} * object_.block_size, object_.block_size);
    if (crc32c(block) == place->crc32c) continue;
    const bool is_first = place->address == fetch.cell.first.find(part)->address;
    (is_first ? bad_first : bad_copy) |= 1u << part;
    if (status.ok())
      status =
          damage(fetch, fmt::format("file.checksum of disk {} block {}", place->address.disk, place->address.block));
  }
  fetch.bad_first |= bad_first;
  fetch.bad_copy |= bad_copy;
  return status;
}

Status LoadOperation::verify(Fetch& fetch) const {
  if (!object_.is_image()) return verify_cell(fetch);
  Status strips = verify_strips(fetch);
  if (!fetch.extent.has_record()) return strips;
  Status record = verify_record(fetch);
  const format::StoredExtent& read = fetch.extent.record;
  if (!record.ok()) fetch.bad_pieces.push_back(fetch.from_others ? read.others.pieces().front().run : read.first());
  return strips.ok() ? std::move(record) : std::move(strips);
}

Status LoadOperation::verify_record(const Fetch& fetch) const {
  if (!object_.is_raw()) {
    const ConstBytes frame(fetch.stored.data(), fetch.extent.record.stored_bytes);
    return fetch.extent.record.matches_part(0, frame) ? Status{} : damage(fetch, "extent.checksum");
  }
  for (const std::uint32_t part : fetch.parts) {
    const ByteRanges::Range range = part_range(part);
    const ConstBytes bytes(fetch.stored.data() + range.begin, range.end - range.begin);
    if (!fetch.extent.record.matches_part(part, bytes))
      return damage(fetch, fmt::format("extent.checksum of sub-block {}", part));
  }
  return {};
}

// The disk of the first block that was read, of a file of the first one that does not match.
unsigned LoadOperation::disk_of(const Fetch& fetch) {
  if (fetch.extent.has_record()) return fetch.extent.record.first().disk;
  if (!fetch.extent.parts.empty()) return fetch.extent.parts.front().run().disk;
  const std::uint32_t bad = fetch.bad_first | fetch.bad_copy;
  for (const std::uint32_t part : fetch.parts)
    if ((bad >> part & 1) != 0) return fetch.cell.first.find(part)->address.disk;
  return fetch.cell.first.empty() ? MDFS_MAX_DISKS : fetch.cell.first.runs.front().address.disk;
}

// Notes which parts are bad.
Status LoadOperation::verify_strips(Fetch& fetch) const {
  Status status;
  for (const Fetch::Piece& piece : fetch.pieces) {
    const StripPart& part = fetch.extent.parts[piece.part];
    if (is_zeroed(part.run().disk)) continue;
    for (std::uint32_t i = 0; i < piece.blocks; ++i) {
      const ConstBytes block(fetch.strips.data() + piece.at + std::size_t{i} * object_.block_size, object_.block_size);
      if (part.stored.matches_part(piece.first_block + i, block)) continue;
      fetch.bad_pieces.push_back(part.run());
      if (status.ok())
        status = damage(fetch, fmt::format("strip.checksum of disk {} block {}", part.run().disk,
                                           part.run().block + piece.first_block + i));
      break;
    }
  }
  return status;
}

void LoadOperation::overlay_strips(Fetch& fetch, BufferRef& decoded) const {
  if (!object_.is_raw() && !decoded) {
    decoded = core_.cache.acquire(object_.capacity_bytes);
    std::memset(decoded.data(), 0, decoded.size());
  }
  BufferRef& into = object_.is_raw() ? fetch.stored : decoded;
  for (const Fetch::Piece& piece : fetch.pieces) {
    const StripPart& part = fetch.extent.parts[piece.part];
    const std::uint32_t first =
        part.begin + piece.first_block * object_.block_size;  // byte of the cache block read first
    for (const std::uint32_t wanted : fetch.parts) {
      const ByteRanges::Range range = part_range(wanted);
      const std::uint32_t from = std::max(range.begin, first);
      const std::uint32_t to = std::min({range.end, part.end(), first + piece.blocks * object_.block_size});
      if (from < to) std::memcpy(into.data() + from, fetch.strips.data() + piece.at + (from - first), to - from);
    }
  }
  fetch.strips = BufferRef();
}

Status LoadOperation::decode(Fetch& fetch, BufferRef& decoded) const {
  decoded = core_.cache.acquire(object_.capacity_bytes);
  const ConstBytes frame(fetch.stored.data(), fetch.extent.record.stored_bytes);
  const Status status = codec::decode(object_.image->codec, frame, {decoded.data(), object_.extent_bytes});
  std::memset(decoded.data() + object_.extent_bytes, 0, decoded.size() - object_.extent_bytes);
  fetch.stored = BufferRef();
  return status.ok() ? Status{} : damage(fetch, status.error().where);
}

void LoadOperation::release(CacheBlock& block) {
  block.loading = false;
  block.changed.notify_all();
}

void LoadOperation::release_failed(const Fetch& fetch) const {
  const std::lock_guard lock(fetch.block->mutex);
  if (fetch.stands_in) leave_buffer(*fetch.block);
  release(*fetch.block);
}

void LoadOperation::leave_buffer(CacheBlock& block) const {
  if (!block.buffer) return;
  BufferRef other = core_.cache.acquire(block.buffer.size());
  block.copy_valid(other);
  block.buffer = std::move(other);
}

void LoadOperation::finish(Fetch& fetch) {
  CacheBlock& block = *fetch.block;
  BufferRef decoded;
  Status status = std::move(fetch.status);
  if (status.ok() && fetch.from_others && fetch.stored) make_from_others(fetch);
  if (status.ok() && (fetch.stored || fetch.strips)) status = verify(fetch);
  const bool decodes = fetch.stored && object_.is_image() && !object_.is_raw() && !fetch.as_frame;
  if (status.ok() && decodes) status = decode(fetch, decoded);
  if (status.ok() && fetch.strips) overlay_strips(fetch, decoded);
  if (!status.ok()) {
    drop_buffers(fetch);
    const bool retry = may_retry(fetch, status.error());
    note_failure(fetch, status.error());
    if (retry) {
      const std::lock_guard lock(mutex_);
      again_.push_back(&fetch);
      return;
    }
    release_failed(fetch);
    // An extent that moved while the disk took its time is not looked up again.
    if (status.error().code == Errc::kCorrupt && fetch.kept == nullptr && !is_alone_)
      core_.store.note_checksum_error(disk_of(fetch));
    const std::lock_guard lock(mutex_);
    if (error_.ok()) error_ = std::move(status);
    return;
  }

  if (fetch.found_damage && has_choice(fetch) && fetch.kept == nullptr && !core_.store.read_only())
    core_.relocations.note_damaged(object_.number, fetch.block->key.index);
  BufferRef buffer;
  {
    const std::lock_guard lock(block.mutex);
    if (fetch.stands_in) leave_buffer(block);
    if (fetch.as_frame) {
      block.buffer = fetch.stored;
      block.complete = true;
    } else if (fetch.inline_bytes) {
      put_inline(fetch, block);
    } else if (!object_.is_image()) {
      block.known_on_disk = block.known_on_disk || !fetch.cell.first.empty();
      put_parts(fetch, block);
      put_cell_holes(fetch, block);
    } else if (fetch.extent.is_hole()) {
      put_hole(block);
    } else {
      block.known_on_disk = true;
      if (!object_.is_raw() && !decoded) {
        put_hole(block);  // of its parts in strips nothing was wanted
      } else if (decoded) {
        put_decoded(block, std::move(decoded));
      } else {
        put_parts(fetch, block);
      }
    }
    if (!block.complete && block.valid.covers(0, object_.extent_bytes)) block.complete = true;
    if (block.complete) block.valid.clear();
    release(block);
    buffer = block.buffer;
  }
  fetch.stored = BufferRef();
  (*loaded_)(fetch.want, buffer);
}

// Bytes that are valid already are newer and stay. No other thread looks at the bytes written here, which are not valid
// yet.
void LoadOperation::put_parts(const Fetch& fetch, CacheBlock& block) const {
  for (const std::uint32_t part : fetch.parts) {
    const ByteRanges::Range range = part_range(part);
    if (!object_.is_image() && !fetch.cell.first.find(part)) continue;
    if (!fetch.direct)
      for (const ByteRanges::Range& gap : block.valid.gaps(range.begin, range.end))
        std::memcpy(block.buffer.data() + gap.begin, fetch.stored.data() + gap.begin, gap.end - gap.begin);
    block.valid.add(range.begin, range.end);
  }
  if (object_.is_image())
    std::memset(block.buffer.data() + object_.extent_bytes, 0, block.buffer.size() - object_.extent_bytes);
}

// The whole cell has been looked up: all its holes are known now.
void LoadOperation::put_cell_holes(const Fetch& fetch, CacheBlock& cached) const {
  const std::uint32_t blocks = object_.extent_bytes / object_.block_size;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    if (fetch.cell.first.find(block)) continue;
    const ByteRanges::Range range = part_range(block);
    for (const ByteRanges::Range& gap : cached.valid.gaps(range.begin, range.end))
      if (gap.begin < cached.buffer.size())
        std::memset(cached.buffer.data() + gap.begin, 0,
                    std::min<std::size_t>(gap.end, cached.buffer.size()) - gap.begin);
    cached.valid.add(range.begin, range.end);
  }
}

void LoadOperation::put_hole(CacheBlock& block) const {
  if (block.valid.ranges().empty()) {
    block.buffer = BufferRef();
  } else {
    block.buffer.charge(block.buffer.size());
    for (const ByteRanges::Range& gap : block.valid.gaps(0, static_cast<std::uint32_t>(block.buffer.size())))
      std::memset(block.buffer.data() + gap.begin, 0, gap.end - gap.begin);
  }
  block.complete = true;
}

void LoadOperation::put_decoded(CacheBlock& block, BufferRef decoded) const {
  block.copy_valid(decoded);
  block.buffer = std::move(decoded);
  block.complete = true;
}

void LoadOperation::put_inline(const Fetch& fetch, CacheBlock& block) const {
  BufferRef whole = core_.cache.acquire(std::max<std::size_t>(block.buffer.size(), object_.block_size));
  std::memset(whole.data(), 0, whole.size());
  std::copy(fetch.inline_bytes->begin(), fetch.inline_bytes->end(), whole.data());  // a damaged file may have none
  block.copy_valid(whole);
  block.buffer = std::move(whole);
  block.complete = true;
}

}  // namespace mdfs::engine
