// Disk requests of many extents: sorted by disk and place, neighbours merged, long ones cut.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "device/disk.h"
#include "geometry/plan.h"
#include "store/items.h"
#include "store/members.h"

namespace mdfs::engine {

// Bytes of one extent on one disk, and their place in memory (null while only planning).
struct Segment {
  std::uint16_t disk = 0;
  std::uint64_t offset = 0;  // multiple of device::kAlignment, as bytes
  std::uint64_t bytes = 0;
  std::byte* memory = nullptr;
  std::uint32_t owner = 0;  // number of the extent, chosen by the caller
};

// Bytes that a request has read for one segment, and another one wants as well.
struct SharedBytes {
  ConstBytes from;  // within a buffer of the request
  std::byte* to = nullptr;
};

// One request to a disk.
struct Request {
  std::uint16_t disk = 0;
  std::uint64_t offset = 0;
  std::vector<MutableBytes> buffers;
  std::vector<SharedBytes> shared;    // to be copied after a read
  std::vector<std::uint32_t> owners;  // ascending, each once: also those that get copies
};

// After the request has read its bytes.
void copy_shared(std::span<const SharedBytes> shared);

// Requests as geometry::plan_requests makes them, ordered by disk and offset: bytes that several segments want are read
// once. A request that has more buffers than a disk takes is sent as several. Pure.
std::vector<Request> merge_segments(const std::vector<Segment>& segments, std::size_t largest_bytes);
// The plan alone. `largest_bytes` is reduced to the largest request that a disk takes.
geometry::Plan plan_segments(const std::vector<Segment>& segments, std::size_t largest_bytes);

// Appends the segments of stored bytes [begin, end) of an extent that lies in `runs`, in order. Both ends are multiples
// of the alignment. The bytes must lie within the runs (abort).
void append_segments(std::span<const store::Run> runs, std::uint32_t block_size, std::uint64_t begin, std::uint64_t end,
                     std::byte* memory, std::uint32_t owner, std::vector<Segment>& segments);

// Reads all segments at once and waits. Returns the first error, if any.
Status read_all(store::Members& members, const std::vector<Segment>& segments, std::size_t largest_bytes);
// Writes them; no two may have bytes in common (abort). Returns the first error, if any. Adds the disks that failed to
// `failed`, unless null, a bit each.
Status write_all(store::Members& members, const std::vector<Segment>& segments, std::size_t largest_bytes,
                 std::uint64_t* failed = nullptr);

}  // namespace mdfs::engine
