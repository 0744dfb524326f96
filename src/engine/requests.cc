// Disk requests of many extents.
// SPDX-License-Identifier: Apache-2.0
#include "engine/requests.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::engine {

namespace {

// The requests of one planned request, while its pieces are added by offset.
class Planned {
 public:
  Planned(std::vector<Request>& requests, std::uint16_t disk, std::uint64_t offset)
      : requests_(requests), offset_(offset) {
    requests_.push_back({disk, offset, {}, {}, {}});
  }

  // Bytes from `begin` on in the planned request.
  void add(std::uint64_t begin, MutableBytes memory, std::uint32_t owner) {
    MDFS_CHECK(begin <= end_);  // no gaps
    const std::size_t known = std::min<std::uint64_t>(end_ - begin, memory.size());
    if (known > 0) share(begin, memory.first(known), owner);
    if (known < memory.size()) read(memory.subspan(known), owner);
  }

 private:
  struct Filled {
    std::uint64_t begin = 0;  // in the planned request
    MutableBytes memory;
    std::size_t request = 0;
  };

  void read(MutableBytes memory, std::uint32_t owner) {
    std::vector<MutableBytes>* buffers = &requests_.back().buffers;
    if (!buffers->empty() && buffers->back().data() + buffers->back().size() == memory.data()) {
      buffers->back() = {buffers->back().data(), buffers->back().size() + memory.size()};
    } else {
      if (buffers->size() == device::kMaxIoVectors) {
        requests_.push_back({requests_.back().disk, offset_ + end_, {}, {}, {}});
        buffers = &requests_.back().buffers;
      }
      buffers->push_back(memory);
    }
    requests_.back().owners.push_back(owner);
    filled_.push_back({end_, memory, requests_.size() - 1});
    end_ += memory.size();
  }

  // Of bytes that are read for others.
  void share(std::uint64_t begin, MutableBytes memory, std::uint32_t owner) {
    const std::uint64_t end = begin + memory.size();
    for (std::size_t i = filled_.size(); i > 0 && filled_[i - 1].begin + filled_[i - 1].memory.size() > begin; --i) {
      const Filled& filled = filled_[i - 1];
      const std::uint64_t from = std::max(begin, filled.begin);
      const std::uint64_t to = std::min(end, filled.begin + filled.memory.size());
      if (from >= to) continue;
      Request& request = requests_[filled.request];
      request.shared.push_back({filled.memory.subspan(from - filled.begin, to - from), memory.data() + (from - begin)});
      request.owners.push_back(owner);
    }
  }

  std::vector<Request>& requests_;
  std::uint64_t offset_;
  std::uint64_t end_ = 0;       // of the bytes that are read, in the planned request
  std::vector<Filled> filled_;  // ascending
};

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
  const geometry::Plan plan = plan_segments(segments, largest_bytes);
  for (const geometry::DiskPlan& disk : plan.disks)
    for (const geometry::PlanRequest& sent : disk.requests) {
      Planned planned(requests, static_cast<std::uint16_t>(disk.disk), sent.offset_bytes);
      for (const geometry::RequestPiece& piece : disk.pieces_of(sent)) {
        const Segment& segment = segments[piece.part];
        planned.add(piece.request_offset_bytes,
                    {segment.memory + piece.part_offset_bytes, static_cast<std::size_t>(piece.length_bytes)},
                    segment.owner);
      }
    }
  for (Request& request : requests) {
    std::sort(request.owners.begin(), request.owners.end());
    request.owners.erase(std::unique(request.owners.begin(), request.owners.end()), request.owners.end());
  }
  return requests;
}

void copy_shared(std::span<const SharedBytes> shared) {
  for (const SharedBytes& bytes : shared) std::memcpy(bytes.to, bytes.from.data(), bytes.from.size());
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
  std::vector<std::uint64_t> disks;              // a bit for each request
  std::vector<std::vector<SharedBytes>> shared;  // likewise
  std::vector<device::Addressed> addressed;
  for (Request& request : merge_segments(segments, largest_bytes)) {
    MDFS_CHECK(op == device::Op::kRead || request.shared.empty());
    disks.push_back(std::uint64_t{1} << request.disk);
    shared.push_back(std::move(request.shared));
    device::Io& io = ios.emplace_back();
    io.op = op;
    io.offset = request.offset;
    io.buffers = std::move(request.buffers);
    addressed.push_back({&members.disk(request.disk), &io});
  }
  if (addressed.empty()) return {};
  Status status = device::run(addressed);
  for (std::size_t i = 0; i < ios.size(); ++i) {
    if (ios[i].status.ok())
      copy_shared(shared[i]);
    else if (failed != nullptr)
      *failed |= disks[i];
  }
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
