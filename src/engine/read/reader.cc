// Reads of byte ranges, windows and versions of windows.
// SPDX-License-Identifier: Apache-2.0
#include "engine/read/reader.h"

#include <algorithm>

#include "base/checked.h"
#include "engine/read/window_version.h"
#include "geometry/copy_box.h"

namespace mdfs::engine {

namespace {

constexpr unsigned kOptimisticReads = 8;
// Pieces of a window that its starter looks at itself, to see whether anything is missing at all.
constexpr std::uint64_t kMostChecked = 256;
constexpr std::uint64_t kReadAheadBytes = 8u << 20;
// Bytes of one pass over the parts of a huge read, so that its plan stays small.
constexpr std::uint64_t kPassBytes = 64u << 20;
constexpr std::uint64_t kPassParts = 16384;  // the same for extents that are tiny
constexpr std::uint64_t kChannelPassBytes = 4u << 20;
// Of a read from the cache alone: those of one pass stay in a processor's cache for whoever takes them.
constexpr std::uint64_t kCachedPassBytes = 256u << 10;
constexpr std::uint64_t kMostCachedPassBytes = 2u << 20;  // of parts that would be smaller than this in shorter passes:
constexpr std::uint64_t kCachedPartBytes = 8u << 10;      // finding one takes as long as copying so many bytes
// A plane across a volume has a row of one sample in each row of its extents, and as many misses of the processor's
// cache: from some 0.1 ms of them on other threads help.
constexpr std::uint64_t kRowsWorthSharing = 64u << 10;
constexpr std::size_t kSharesOfThread = 4;
constexpr std::size_t kMostHeldBytes = 4u << 20;  // by one read, in spite of evictions meanwhile

// Bytes of the next pass of a read, over a box or, without one, over the canonical bytes: `left` at most, and few
// enough that its plan stays small.
std::uint64_t pass_bytes(const OpenObject& object, const geometry::Box* box, std::uint64_t offset, std::uint64_t left) {
  std::uint64_t bytes = std::min(left, kPassBytes);
  if (!object.is_image()) return bytes;
  const auto parts = [&] {
    return box == nullptr ? count_parts(object, offset, bytes) : count_parts(object, *box, offset, bytes);
  };
  while (bytes > kPassParts && parts() > kPassParts) bytes = ceil_div(bytes, std::uint64_t{2});
  return bytes;
}

// The most bytes, `most` at most if a row allows it, that are whole rows, planes and so on of the box.
std::uint64_t whole_rows(const geometry::Box& box, unsigned rank, std::uint64_t most) {
  std::uint64_t unit = 1;
  for (unsigned axis = rank; axis-- > 0 && unit * box.length[axis] <= most;) unit *= box.length[axis];
  return most / unit * unit;
}

// Bytes of a pass of Reader::read_cached().
std::uint64_t cached_pass(const OpenObject& object, const geometry::Box& box, std::uint64_t bytes) {
  std::uint64_t pass = whole_rows(box, object.rank, kCachedPassBytes);
  const auto has_small_parts = [&] { return count_parts(object, box, 0, pass) > pass / kCachedPartBytes; };
  while (pass <= std::min(bytes, kMostCachedPassBytes) / 2 && has_small_parts()) pass *= 2;
  return pass;
}

std::uint64_t rows_of(const OpenObject& object, const Transfer& transfer) {
  std::uint64_t rows = 0;
  for (const Transfer::Part& part : transfer.parts) {
    std::uint64_t of_part = 1;
    for (unsigned axis = 0; axis + 1 < object.rank; ++axis) of_part *= part.piece.in_extent.length[axis];
    rows += of_part;
  }
  return rows;
}

}  // namespace

Status Reader::consistently(OpenObject& object, const std::function<Status()>& attempt) {
  for (unsigned i = 0; i < kOptimisticReads; ++i) {
    const std::uint64_t before = object.swaps.load(std::memory_order_acquire);
    if (before % 2 != 0) {  // for as long as it takes to exchange buffers in memory
      const std::lock_guard wait(object.swapping);
      continue;
    }
    Status status = attempt();
    if (object.swaps.load(std::memory_order_acquire) == before) return status;
  }
  // Window writes keep coming: now they wait for us.
  GridBox all;
  all.last.fill(UINT64_MAX);
  const RangeLock::Hold hold(object.range_lock, object.rank, all, RangeLock::Mode::kShared);
  return attempt();
}

std::vector<std::uint32_t> Reader::copy_cached(OpenObject& object, const Transfer& transfer, MutableBytes into,
                                               bool first_only) {
  const bool together = core_.tasks.threads() > 1 && rows_of(object, transfer) >= kRowsWorthSharing;
  std::vector<std::uint32_t> missing;
  std::vector<Hit> hits;
  std::size_t held_bytes = 0;
  for (std::uint32_t i = 0; i < transfer.parts.size(); ++i) {
    const Transfer::Part& part = transfer.parts[i];
    const CacheBlockPtr block = core_.cache.find(object.key_of(part.extent));
    BufferRef buffer;
    bool hit = false;
    if (block != nullptr) {
      const std::lock_guard lock(block->mutex);
      hit = covers(object, *block, part.piece.in_extent);
      if (hit) buffer = block->buffer;
    }
    if (!hit) {
      missing.push_back(i);
      if (first_only) return missing;
    } else if (together) {
      held_bytes += buffer.size();
      hits.push_back({i, std::move(buffer)});
      if (held_bytes < kMostHeldBytes) continue;
      copy_together(object, transfer, hits, into);
      held_bytes = 0;
    } else {
      copy_out(object, transfer, part, buffer, into);
    }
  }
  copy_together(object, transfer, hits, into);
  return missing;
}

Status Reader::transfer(OpenObject& object, const Transfer& transfer, MutableBytes into, const Stop& stop) {
  std::vector<std::uint32_t> missing = copy_cached(object, transfer, into, false);
  core_.cache.count(transfer.parts.size() - missing.size(), missing.size());
  return missing.empty() ? Status{} : load_missing(object, transfer, missing, into, stop);
}

// On all threads; leaves none.
void Reader::copy_together(const OpenObject& object, const Transfer& transfer, std::vector<Hit>& hits,
                           MutableBytes into) {
  const std::size_t step = ceil_div(hits.size() + 1, std::size_t{core_.tasks.threads()} * kSharesOfThread);
  core_.tasks.parallel_for(ceil_div(hits.size(), step), [&](std::size_t share) {
    for (std::size_t i = share * step; i < std::min((share + 1) * step, hits.size()); ++i)
      copy_out(object, transfer, transfer.parts[hits[i].part], hits[i].buffer, into);
  });
  hits.clear();
}

Status Reader::load_missing(OpenObject& object, const Transfer& transfer, std::vector<std::uint32_t>& missing,
                            MutableBytes into, const Stop& stop) {
  // Parts of one cache block come together: it is wanted once.
  std::stable_sort(missing.begin(), missing.end(), [&](std::uint32_t a, std::uint32_t b) {
    return transfer.parts[a].extent < transfer.parts[b].extent;
  });
  std::vector<Want> wants;
  std::vector<std::size_t> first_of;  // in `missing`, of each want
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const Transfer::Part& part = transfer.parts[missing[i]];
    if (i == 0 || transfer.parts[missing[i - 1]].extent != part.extent) {
      wants.push_back({core_.cache.find_or_create(object.key_of(part.extent)), part.piece.extent, {}});
      first_of.push_back(i);
    }
    const std::vector<ByteRanges::Range> touched = parts_under(object, part.piece.in_extent);
    wants.back().ranges.insert(wants.back().ranges.end(), touched.begin(), touched.end());
  }
  first_of.push_back(missing.size());
  const auto copy = [&](std::size_t want, const BufferRef& buffer) {
    for (std::size_t i = first_of[want]; i < first_of[want + 1]; ++i)
      copy_out(object, transfer, transfer.parts[missing[i]], buffer, into);
  };
  return loader_.load(object, std::move(wants), copy, stop);
}

Result<std::size_t> Reader::read(OpenObject& object, std::uint64_t offset, MutableBytes into, const Stop& stop) {
  std::size_t length = 0;
  Status outcome = consistently(object, [&]() -> Status {
    const std::uint64_t size = object.size.load(std::memory_order_acquire);
    length = offset >= size ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size - offset));
    for (std::uint64_t done = 0; done < length;) {
      const std::uint64_t bytes = pass_bytes(object, nullptr, offset + done, length - done);
      MDFS_TRY(transfer(object, plan_range(object, offset + done, bytes), into.subspan(done, bytes), stop));
      done += bytes;
    }
    return {};
  });
  if (!outcome.ok()) return std::move(outcome).error();
  if (length > 0) read_ahead(object, offset, length);
  return length;
}

Status Reader::read_box(OpenObject& object, const geometry::Box& box, std::uint64_t offset, MutableBytes into,
                        const WindowVersion* version, const Stop& stop) {
  for (std::uint64_t done = 0; done < into.size();) {
    const std::uint64_t bytes = pass_bytes(object, &box, offset + done, into.size() - done);
    const Transfer pass = plan_window(object, box, offset + done, bytes);
    const MutableBytes part = into.subspan(done, bytes);
    MDFS_TRY(version == nullptr ? transfer(object, pass, part, stop)
                                : transfer_version(object, pass, *version, part, stop));
    done += bytes;
  }
  return {};
}

Status Reader::read_window(OpenObject& object, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                           const Stop& stop) {
  if (!object.is_image()) return {Errc::kNotImage, "window of an ordinary file"};
  if (!inside(offset, into.size(), geometry::window_bytes(*object.image, window)))
    return {Errc::kOutOfRange, "bytes beyond the window"};
  if (into.empty()) return {};
  return consistently(object, [&] {
    return window.channel ? read_channel(object, window, offset, into, nullptr, stop)
                          : read_box(object, geometry::byte_box(*object.image, window), offset, into, nullptr, stop);
  });
}

bool Reader::read_cached(OpenObject& object, const geometry::Window& window, MutableBytes into,
                         const ReadProgress& progress) {
  if (!object.is_image() || window.channel || into.empty()) return false;
  const geometry::Box box = geometry::byte_box(*object.image, window);
  const std::uint64_t pass = progress ? cached_pass(object, box, into.size()) : into.size();
  for (unsigned i = 0; i < kOptimisticReads; ++i) {
    const std::uint64_t before = object.swaps.load(std::memory_order_acquire);
    if (before % 2 != 0) {  // for as long as it takes to exchange buffers in memory
      const std::lock_guard wait(object.swapping);
      continue;
    }
    if (i > 0 && progress) progress(0);
    std::size_t parts = 0;
    for (std::uint64_t done = 0; done < into.size();) {
      const std::uint64_t bytes = pass_bytes(object, &box, done, std::min(pass, into.size() - done));
      const Transfer plan = plan_window(object, box, done, bytes);
      if (!copy_cached(object, plan, into.subspan(done, bytes), true).empty()) return false;
      parts += plan.parts.size();
      done += bytes;
      if (done < into.size() && progress) progress(done);
    }
    if (object.swaps.load(std::memory_order_acquire) != before) continue;
    core_.cache.count(parts, 0);
    return true;
  }
  return false;
}

Status Reader::read_version(WindowVersion& version, std::uint64_t offset, MutableBytes into, const Stop& stop) {
  OpenObject& object = version.object();
  if (!inside(offset, into.size(), geometry::window_bytes(*object.image, version.window())))
    return {Errc::kOutOfRange, "bytes beyond the window"};
  if (version.is_stale()) return WindowVersion::stale_error();
  Status status = version.window().channel ? read_channel(object, version.window(), offset, into, &version, stop)
                                           : read_box(object, version.box(), offset, into, &version, stop);
  return end_if_stale(version, std::move(status));
}

Status Reader::read_version_parts(WindowVersion& version, std::span<const geometry::Window> parts, MutableBytes into,
                                  const Stop& stop) {
  OpenObject& object = version.object();
  std::vector<geometry::RangeBox> boxes;
  std::uint64_t bytes = 0;
  for (const geometry::Window& part : parts) {
    for (unsigned axis = 0; axis < object.rank; ++axis)
      if (part.start[axis] < version.window().start[axis] ||
          !inside(part.start[axis] - version.window().start[axis], part.length[axis], version.window().length[axis]))
        return {Errc::kOutOfRange, "a part beyond the window"};
    boxes.push_back({geometry::byte_box(*object.image, part), bytes});
    bytes += geometry::box_bytes(object.rank, boxes.back().box);
  }
  if (bytes != into.size()) return {Errc::kInvalidArgument, "not the bytes of the parts"};
  if (version.is_stale()) return WindowVersion::stale_error();
  return end_if_stale(version, transfer_version(object, plan_boxes(object, boxes), version, into, stop));
}

Status Reader::end_if_stale(WindowVersion& version, Status status) {
  if (!status.ok() && status.error().code == Errc::kStaleDisk) version.give_up();
  return version.is_stale() ? Status(WindowVersion::stale_error()) : std::move(status);
}

Status Reader::transfer_version(OpenObject& object, const Transfer& transfer, const WindowVersion& version,
                                MutableBytes into, const Stop& stop) {
  std::vector<std::uint32_t> live, kept;
  for (std::uint32_t i = 0; i < transfer.parts.size(); ++i)
    (version.has_kept() && version.find(transfer.parts[i].extent) != nullptr ? kept : live).push_back(i);
  if (kept.empty()) {
    MDFS_TRY(this->transfer(object, transfer, into, stop));
  } else if (!live.empty()) {
    Transfer rest;
    rest.regions = transfer.regions;
    for (const std::uint32_t part : live) rest.parts.push_back(transfer.parts[part]);
    MDFS_TRY(this->transfer(object, rest, into, stop));
  }
  // A cache block that has been kept meanwhile may have been read after it changed.
  if (version.has_kept())
    for (const std::uint32_t part : live)
      if (version.find(transfer.parts[part].extent) != nullptr) kept.push_back(part);
  return kept.empty() ? Status{} : load_kept(object, transfer, version, kept, into, stop);
}

Status Reader::load_kept(OpenObject& object, const Transfer& transfer, const WindowVersion& version,
                         std::vector<std::uint32_t>& parts, MutableBytes into, const Stop& stop) {
  std::stable_sort(parts.begin(), parts.end(), [&](std::uint32_t a, std::uint32_t b) {
    return transfer.parts[a].extent < transfer.parts[b].extent;
  });
  std::vector<std::shared_ptr<KeptBlock>> kept;
  std::vector<Want> wants;
  std::vector<std::size_t> first_of;  // in `parts`, of each want
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Transfer::Part& part = transfer.parts[parts[i]];
    if (i == 0 || transfer.parts[parts[i - 1]].extent != part.extent) {
      kept.push_back(version.find(part.extent));
      if (kept.back() == nullptr) return WindowVersion::stale_error();  // given up meanwhile
      wants.push_back({kept.back()->block, part.piece.extent, {}, &kept.back()->stored});
      first_of.push_back(i);
    }
    const std::vector<ByteRanges::Range> touched = parts_under(object, part.piece.in_extent);
    wants.back().ranges.insert(wants.back().ranges.end(), touched.begin(), touched.end());
  }
  first_of.push_back(parts.size());
  const auto copy = [&](std::size_t want, const BufferRef& buffer) {
    for (std::size_t i = first_of[want]; i < first_of[want + 1]; ++i)
      copy_out(object, transfer, transfer.parts[parts[i]], buffer, into);
  };
  Status status = loader_.load(object, std::move(wants), copy, stop);
  for (const std::shared_ptr<KeptBlock>& extent : kept) {
    version.count_memory(*extent);
    if (extent->hold != nullptr && extent->hold->is_broken()) return WindowVersion::stale_error();
  }
  // Of a store that cannot hold blocks, or damaged: it cannot be read any more in either case.
  if (!status.ok() && status.error().code == Errc::kCorrupt) return WindowVersion::stale_error();
  return status;
}

// All channels are read, one is kept.
Status Reader::read_channel(OpenObject& object, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                            const WindowVersion* version, const Stop& stop) {
  const geometry::Box box = geometry::byte_box(*object.image, window);
  const unsigned element = geometry::element_bytes(object.image->type);
  const std::uint64_t sample = object.image->sample_bytes();
  const std::uint64_t pass_samples = std::max<std::uint64_t>(1, kChannelPassBytes / sample);
  const std::uint64_t end = offset + into.size();
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t first = at / element;
    const std::uint64_t count = std::min(pass_samples, ceil_div(end, element) - first);
    const BufferRef samples = core_.cache.acquire(count * sample, Use::kBrief);
    const BufferRef plane = core_.cache.acquire(count * element, Use::kBrief);
    const MutableBytes sample_bytes = samples.bytes().first(count * sample);
    const MutableBytes plane_bytes = plane.bytes().first(count * element);
    MDFS_TRY(read_box(object, box, first * sample, sample_bytes, version, stop));
    geometry::take_channel(sample_bytes, object.image->channels, *window.channel, element, plane_bytes);
    const std::uint64_t skip = at - first * element;
    const std::uint64_t bytes = std::min(end - at, count * element - skip);
    std::copy_n(plane_bytes.begin() + static_cast<std::ptrdiff_t>(skip), bytes,
                into.begin() + static_cast<std::ptrdiff_t>(at - offset));
    at += bytes;
  }
  return {};
}

// ---- ahead of the reader

void Reader::start_window(OpenObject& object, const geometry::Window& window) {
  if (!object.is_image()) return;
  const geometry::Box box = geometry::byte_box(*object.image, window);
  // As much as loads may take at once. The reader of the rest starts that.
  const std::uint64_t most = core_.loads.limit_bytes() / 2;
  std::uint64_t bytes = 1;
  for (unsigned axis = 0; axis < object.rank; ++axis) bytes = checked_mul(bytes, box.length[axis]).value_or(UINT64_MAX);
  bytes = std::min(bytes, most);
  const std::uint64_t pieces = geometry::piece_count(object.array(), box);
  if (pieces > most / 4096 || bytes == 0) return;
  if (pieces <= kMostChecked && is_warm(object, plan_window(object, box, 0, bytes))) return;
  PlannedLoad plan;
  plan.extents = extents_under(object, box);
  plan.box = box;
  plan.bytes = bytes;
  loader_.start_later(object.shared_from_this(), plan);
}

bool Reader::is_warm(const OpenObject& object, const Transfer& transfer) {
  return std::all_of(transfer.parts.begin(), transfer.parts.end(), [&](const Transfer::Part& part) {
    const CacheBlockPtr block = core_.cache.peek(object.key_of(part.extent));
    if (block == nullptr) return false;
    const std::lock_guard lock(block->mutex);
    return covers(object, *block, part.piece.in_extent);
  });
}

void Reader::read_ahead(OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = offset + length;
  const std::uint64_t previous = object.last_read_end.exchange(end, std::memory_order_relaxed);
  if (previous != offset) {
    object.read_ahead_to.store(end, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t reach =
      pass_bytes(object, nullptr, end, std::min<std::uint64_t>(kReadAheadBytes, core_.loads.limit_bytes() / 4));
  const std::uint64_t size = object.size.load(std::memory_order_relaxed);
  const std::uint64_t from = std::max(object.read_ahead_to.load(std::memory_order_relaxed), end);
  const std::uint64_t to = std::min(end + reach, size);
  if (to <= from || (to - from < reach / 2 && to < size)) return;
  object.read_ahead_to.store(to, std::memory_order_relaxed);
  PlannedLoad plan;
  plan.extents.last.fill(UINT64_MAX);
  const std::uint64_t row = std::max<std::uint64_t>(1, object.grid_row_bytes());
  plan.extents.first[0] = from / row;
  plan.extents.last[0] = ceil_div(to, row);
  plan.offset = from;
  plan.bytes = to - from;
  loader_.start_later(object.shared_from_this(), plan);
}

}  // namespace mdfs::engine
