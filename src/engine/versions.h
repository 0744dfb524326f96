// The window versions of one object that are being read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "geometry/decompose.h"

namespace mdfs::engine {

class WindowVersion;

// Any thread. A thread that changes the object asks for the versions before its change can be seen. A version that is
// added later therefore holds the change.
class Versions {
 public:
  // With one version more the oldest one ends.
  static constexpr std::size_t kMost = 1024;

  // A change of [first, last) along the slowest axis, in steps of the array, from which versions cannot be kept.
  // Versions that reach into the range end. New versions of the range wait until the change has ended.
  class Change {
   public:
    Change(Versions& versions, std::uint64_t first, std::uint64_t last);
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change();

   private:
    Versions& versions_;
    const std::pair<std::uint64_t, std::uint64_t> steps_;
  };

  bool any() const { return count_.load(std::memory_order_acquire) > 0; }
  // False while a Change under the version is in progress: the caller waits for it, without a lock, and asks again.
  bool add(const std::shared_ptr<WindowVersion>& version);
  void wait_for_changes(const geometry::Box& box) const;
  // Drops versions that have ended.
  void forget_ended();
  std::vector<std::shared_ptr<WindowVersion>> all() const;
  // The versions that hold some of `changed`, a box of the array, and do not keep the extent yet.
  std::vector<std::shared_ptr<WindowVersion>> wanting(std::uint64_t extent, const geometry::Box& changed) const;

 private:
  bool is_changing(const geometry::Box& box) const;  // mutex_ is held

  std::atomic<std::size_t> count_{0};
  mutable std::mutex mutex_;                            // guards versions_ and changes_
  std::vector<std::weak_ptr<WindowVersion>> versions_;  // the oldest first
  std::vector<std::pair<std::uint64_t, std::uint64_t>> changes_;
  mutable std::condition_variable changed_;  // a change has ended
};

}  // namespace mdfs::engine
