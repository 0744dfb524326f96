// The thread that looks after loads whose disks may take too long.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <vector>

namespace mdfs::engine {

// A load that can be asked whether it waits for too long.
class WatchedLoad {
 public:
  virtual ~WatchedLoad() = default;
  // By the thread of LateLoads. Returns when to ask again, if at all.
  virtual std::optional<std::int64_t> help_late(std::int64_t now_ns) = 0;
};

// Asks each load at its time, on the clock of device::ReadPace::now_ns(), if it is still there. Any thread.
class LateLoads {
 public:
  LateLoads();
  LateLoads(const LateLoads&) = delete;
  LateLoads& operator=(const LateLoads&) = delete;
  ~LateLoads();

  void watch(std::weak_ptr<WatchedLoad> load, std::int64_t due_ns);

 private:
  struct Entry {
    std::int64_t due_ns = 0;
    std::weak_ptr<WatchedLoad> load;
    bool operator<(const Entry& other) const { return due_ns > other.due_ns; }  // the first one on top
  };
  void run();

  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  std::priority_queue<Entry> entries_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace mdfs::engine
