// How fast a disk reads, as seen by its requests, and which disks are slower than the others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace mdfs::device {

// A request counts as much as so many bytes, which a disk transfers in the time that the request costs beside: between
// flash, 0.05 ms, and magnetic disks, 9 ms.
inline constexpr std::uint64_t kRequestBytes = 256u << 10;

// Where a schedule of requests is kept: of a disk of which too little has been read lately.
inline constexpr double kUnknownNsPerByte = 10;

// Measures one disk while it has reads to do. Of the time that they take the last few seconds count, and nothing counts
// for longer than kMemoryNs: a disk that is no longer read is tried again. Times are those of now_ns(), or of one clock
// of a test. Any thread.
class ReadPace {
 public:
  static constexpr std::int64_t kWindowNs = 1'000'000'000;   // busy; beyond it the older half fades
  static constexpr std::int64_t kMemoryNs = 30'000'000'000;  // since the last read
  static constexpr std::int64_t kLeastNs = 200'000'000;      // busy
  static constexpr std::uint64_t kLeastRequests = 16;

  static std::int64_t now_ns();
  void begin(std::int64_t now_ns);
  // `counts`: the read has read its bytes.
  void end(std::int64_t now_ns, std::uint64_t bytes, bool counts);
  // For a byte, requests counted as kRequestBytes each. Absent: too little has been read lately.
  std::optional<double> ns_per_byte(std::int64_t now_ns) const;
  void reset();  // the reads that wait stay

 private:
  void fade(std::int64_t now_ns);

  mutable std::mutex mutex_;  // guards all below
  std::uint64_t waiting_ = 0;
  std::int64_t since_ns_ = 0;  // the time until here is counted
  std::int64_t last_ns_ = 0;   // of the last read that ended
  double busy_ns_ = 0, bytes_ = 0;
  std::uint64_t requests_ = 0;  // since nothing was known
};

// From here on a disk is slow: what has another piece elsewhere is read from there as if each byte took that much
// longer. Disks of one kind differ less, by what is read of them.
inline constexpr double kSlow = 3;
// Of each disk the time for a byte over the median of the others that are known; 1 if that is less than kSlow, or
// unknown. Two others must be known. At most kMostSlowness. Pure.
inline constexpr double kMostSlowness = 1000;
std::vector<double> slowness(std::span<const std::optional<double>> ns_per_byte);

}  // namespace mdfs::device
