// How urgent the requests are that a thread makes of disks, and the time that they take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace mdfs::device {

// The time for which disks were busy with some of their requests, by the number of the disk. Any thread.
class BusyTime {
 public:
  static constexpr unsigned kDisks = 64;
  void add(unsigned disk, std::int64_t ns) { ns_[disk % kDisks].fetch_add(ns, std::memory_order_relaxed); }
  std::int64_t ns(unsigned disk) const { return ns_[disk % kDisks].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::int64_t>, kDisks> ns_{};
};

struct Urgency {
  // Counts where a schedule of requests is kept (request_schedule.h).
  enum class Kind : std::uint8_t {
    kReserved,    // by a deadline, before all others
    kOrdinary,    // in the order of arrival
    kBackground,  // when there is nothing else
  };
  Kind kind = Kind::kOrdinary;
  std::int64_t deadline_ns = 0;    // of kReserved, on the monotonic clock
  std::shared_ptr<BusyTime> busy;  // null: not counted
};

inline Urgency in_background() { return {Urgency::Kind::kBackground, 0, nullptr}; }

// As the priorities of I/O in Linux, the urgency is that of the thread which submits a request.
const Urgency& urgency();

// While the scope lasts, this thread's requests have this urgency. The innermost scope counts.
class UrgencyScope {
 public:
  explicit UrgencyScope(Urgency urgency);
  UrgencyScope(const UrgencyScope&) = delete;
  UrgencyScope& operator=(const UrgencyScope&) = delete;
  ~UrgencyScope();

 private:
  friend const Urgency& urgency();
  const Urgency urgency_;
  const UrgencyScope* const outer_;
};

}  // namespace mdfs::device
