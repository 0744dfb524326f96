// Plans, and bounds of reading ahead.
// SPDX-License-Identifier: Apache-2.0
#include "streams/demand.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "device/disk.h"
#include "device/read_pace.h"

namespace mdfs::streams {
namespace {

// Of the course so many runs of frames are planned, which lie apart. Frames that are evenly apart could all lie on the
// same disk.
constexpr std::uint64_t kRuns = 8, kFramesOfRun = 64;
constexpr double kLookaheadSeconds = 0.5;
constexpr unsigned kLeastLookahead = 3, kMostDefaultLookahead = 64;
constexpr std::int64_t kMostPrefillNs = 1'500'000'000;
constexpr std::int64_t kLeastPrefillNs = 50'000'000;
constexpr std::uint64_t kMostTrialBytes = 256u << 10;  // of a request

}  // namespace

double cost_ns(const DiskReads& reads, double ns_per_byte) {
  return (reads.requests * static_cast<double>(device::kRequestBytes) + reads.bytes) * ns_per_byte;
}

std::uint64_t trial_request_bytes(const DiskReads& reads) {
  const double mean = reads.requests > 0 ? reads.bytes / reads.requests : 0;
  return std::clamp<std::uint64_t>(align_up(static_cast<std::uint64_t>(mean), device::kAlignment), device::kAlignment,
                                   kMostTrialBytes);
}

std::pair<geometry::Window, std::uint64_t> frames_together(const FrameWindows& windows, const Course& course,
                                                           std::uint64_t extent_length, std::uint64_t frame) {
  const std::uint64_t length = windows.window.length[windows.axis];
  if (std::abs(course.step) != 1 || length >= extent_length) return {windows.at(frame), 1};
  geometry::Window window = windows.at(frame);
  const std::uint64_t first = window.start[windows.axis] / extent_length * extent_length / length;
  const std::uint64_t count = std::min(extent_length / length, windows.frames - first);
  window.start[windows.axis] = first * length;
  window.length[windows.axis] = count * length;
  return {window, count};
}

Result<std::vector<DiskReads>> mean_reads(const FrameWindows& windows, const Course& course,
                                          std::uint64_t extent_length, const PlanReads& plan,
                                          const std::function<bool()>& is_enough) {
  const std::uint64_t count = frame_count(course);
  const std::uint64_t runs = count <= kRuns * kFramesOfRun ? 1 : kRuns;
  const std::uint64_t of_run = runs == 1 ? count : kFramesOfRun;
  std::vector<DiskReads> reads;
  std::uint64_t planned = 0;
  for (std::uint64_t run = 0; run < runs && (run == 0 || !is_enough()); ++run)
    for (std::uint64_t i = 0; i < of_run; ++i, ++planned) {
      const auto frame = frame_at(course, run * (count / runs) + i);
      const auto [window, frames] = frames_together(windows, course, extent_length, *frame);
      MDFS_TRY_ASSIGN(const std::vector<DiskReads> found, plan(window));
      reads.resize(std::max(reads.size(), found.size()));
      for (std::size_t disk = 0; disk < found.size(); ++disk) {
        reads[disk].requests += found[disk].requests / static_cast<double>(frames);
        reads[disk].bytes += found[disk].bytes / static_cast<double>(frames);
      }
    }
  for (DiskReads& one : reads) {
    one.requests /= static_cast<double>(planned);
    one.bytes /= static_cast<double>(planned);
  }
  return reads;
}

unsigned lookahead_of(unsigned asked, double rate, std::uint64_t frame_bytes, std::uint64_t memory_bytes) {
  if (asked > 0) return asked;
  auto lookahead = static_cast<unsigned>(
      std::clamp(std::ceil(rate * kLookaheadSeconds), double{kLeastLookahead}, double{kMostDefaultLookahead}));
  while (lookahead > kLeastLookahead && (lookahead + 1) * frame_bytes > memory_bytes / 4) --lookahead;
  return lookahead;
}

std::int64_t prefill_ns(unsigned lookahead, const Course& course) {
  // Twice the time that they are shown: the disks may have to end what they were asked before.
  const double ahead_ns = 2 * static_cast<double>(lookahead) * static_cast<double>(period_ns(course));
  return static_cast<std::int64_t>(std::clamp(ahead_ns, double{kLeastPrefillNs}, double{kMostPrefillNs}));
}

}  // namespace mdfs::streams
