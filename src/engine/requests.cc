// Disk requests of many extents.
// SPDX-License-Identifier: Apache-2.0
#include "engine/requests.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::engine {

namespace {

// Appends memory to a request's list, which must not grow beyond what a disk takes.
void append_memory(std::vector<MutableBytes>& buffers, std::byte* memory, std::uint64_t bytes) {
  if (!buffers.empty() && buffers.back().data() + buffers.back().size() == memory)
    buffers.back() = {buffers.back().data(), buffers.back().size() + bytes};
  else
    buffers.push_back({memory, bytes});
}

}  // namespace

geometry::Plan plan_segments(const std::vector<Segment>& segments, std::size_t largest_bytes) {
  geometry::DiskLimits limit;
  limit.max_request_bytes =
      std::clamp<std::uint64_t>(align_down(largest_bytes, device::kAlignment), device::kAlignment, device::kMaxIoBytes);
  std::vector<geometry::PlanPart> parts;
  parts.reserve(segments.size());
  std::size_t disks = 0;
  for (const Segment& segment : segments) {
    parts.push_back({segment.disk, segment.offset, segment.bytes});
    disks = std::max<std::size_t>(disks, segment.disk + 1u);
  }
  Result<geometry::Plan> plan = geometry::plan_requests(parts, std::vector<geometry::DiskLimits>(disks, limit));
  MDFS_CHECK(plan.ok());
  return std::move(plan).value();
}

std::vector<Request> merge_segments(const std::vector<Segment>& segments, std::size_t largest_bytes) {
  std::vector<Request> requests;
  if (segments.empty()) return requests;
  geometry::Plan plan = plan_segments(segments, largest_bytes);
  for (geometry::DiskPlan& planned : plan.disks) {
    const geometry::DiskPlan disk = geometry::with_own_bytes(std::move(planned));
    for (const geometry::PlanRequest& sent : disk.requests) {
      requests.push_back({static_cast<std::uint16_t>(disk.disk), sent.offset_bytes, {}, {}});
      for (const geometry::RequestPiece& piece : disk.pieces_of(sent)) {
        if (requests.back().buffers.size() == device::kMaxIoVectors)
          requests.push_back(
              {static_cast<std::uint16_t>(disk.disk), sent.offset_bytes + piece.request_offset_bytes, {}, {}});
        const Segment& segment = segments[piece.part];
        append_memory(requests.back().buffers, segment.memory + piece.part_offset_bytes, piece.length_bytes);
        requests.back().owners.push_back(segment.owner);
      }
    }
  }
  for (Request& request : requests) {
    std::sort(request.owners.begin(), request.owners.end());
    request.owners.erase(std::unique(request.owners.begin(), request.owners.end()), request.owners.end());
  }
  return requests;
}

void append_segments(std::span<const store::Run> runs, std::uint32_t block_size, std::uint64_t begin, std::uint64_t end,
                     std::byte* memory, std::uint32_t owner, std::vector<Segment>& segments) {
  std::uint64_t run_begin = 0;
  for (const store::Run& run : runs) {
    const std::uint64_t run_end = run_begin + std::uint64_t{run.blocks} * block_size;
    const std::uint64_t from = std::max(begin, run_begin);
    const std::uint64_t to = std::min(end, run_end);
    if (from < to) {
      segments.push_back({run.disk, run.block * block_size + (from - run_begin), to - from, memory, owner});
      if (memory != nullptr) memory += to - from;
    }
    run_begin = run_end;
  }
  MDFS_CHECK(end <= run_begin);
}

namespace {

Status run_all(store::Members& members, const std::vector<Segment>& segments, std::size_t largest_bytes, device::Op op,
               std::uint64_t* failed) {
  std::deque<device::Io> ios;
  std::vector<std::uint64_t> disks;  // a bit for each request
  std::vector<device::Addressed> addressed;
  for (Request& request : merge_segments(segments, largest_bytes)) {
    disks.push_back(std::uint64_t{1} << request.disk);
    device::Io& io = ios.emplace_back();
    io.op = op;
    io.offset = request.offset;
    io.buffers = std::move(request.buffers);
    addressed.push_back({&members.disk(request.disk), &io});
  }
  if (addressed.empty()) return {};
  Status status = device::run(addressed);
  for (std::size_t i = 0; i < ios.size() && failed != nullptr; ++i)
    if (!ios[i].status.ok()) *failed |= disks[i];
  return status;
}

}  // namespace

Status read_all(store::Members& members, const std::vector<Segment>& segments, std::size_t largest_bytes) {
  return run_all(members, segments, largest_bytes, device::Op::kRead, nullptr);
}

Status write_all(store::Members& members, const std::vector<Segment>& segments, std::size_t largest_bytes,
                 std::uint64_t* failed) {
  return run_all(members, segments, largest_bytes, device::Op::kWrite, failed);
}

}  // namespace mdfs::engine
