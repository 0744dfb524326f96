// Plans the requests of each disk from the parts of extents that a window needs.
// Pure. The engine reads with it; the simulator and `mdfs window explain` predict with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace mdfs::geometry {

// A contiguous part of a disk to read: a whole stored extent, or some of its sub-blocks.
struct PlanPart {
  unsigned disk = 0;  // index into the limits
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;  // 0: no request
};

// Bounds of the requests to a disk.
struct DiskLimits {
  std::uint64_t max_request_bytes = 256u << 10;  // at least 1; a multiple of the block size for O_DIRECT
  // Two requests with at most this many other bytes between them become one that reads the gap as well. For reads
  // only. It pays up to about rate / requests per second.
  std::uint64_t max_gap_bytes = 0;
};

// A piece of a part inside a request. A part longer than a request has several pieces.
struct RequestPiece {
  std::size_t part = 0;  // index into the list of parts
  std::uint64_t part_offset_bytes = 0;
  std::uint64_t request_offset_bytes = 0;
  std::uint64_t length_bytes = 0;
};

// A request to a disk.
struct PlanRequest {
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
  std::size_t first_piece = 0;  // pieces [first_piece, first_piece + piece_count) of the disk's plan
  std::size_t piece_count = 0;
};

// All requests to one disk.
struct DiskPlan {
  unsigned disk = 0;
  std::vector<PlanRequest> requests;  // ascending, disjoint
  std::vector<RequestPiece> pieces;   // by request, then by offset
  std::uint64_t bytes = 0;            // of all requests
  std::uint64_t runs = 0;             // contiguous runs of wanted bytes: 1 is ideal
  std::span<const RequestPiece> pieces_of(const PlanRequest& request) const {
    return std::span(pieces).subspan(request.first_piece, request.piece_count);
  }
};

struct Plan {
  std::vector<DiskPlan> disks;  // disks with requests, ascending
};

// For each disk: sorts parts, merges touching or overlapping ones, and cuts runs into the fewest requests, between
// parts where that costs no further request. Every wanted byte is read once. kInvalidArgument: a part wraps around
// 2^64 or names a disk without limits, or a limit is 0.
Result<Plan> plan_requests(std::span<const PlanPart> parts, std::span<const DiskLimits> limits);

}  // namespace mdfs::geometry
