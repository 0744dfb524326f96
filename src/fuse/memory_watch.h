// Watches the memory of the machine and lets the cache grow and shrink with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/environment.h"
#include "device/unique_fd.h"
#include "fuse/memory_policy.h"

namespace mdfs::fuse {

// Memory of the machine, or of the strictest cgroup of this process where that is less. 0: neither is known.
struct UsableMemory {
  std::uint64_t machine_bytes = 0;
  std::optional<std::uint64_t> cgroup_limit_bytes;
};
UsableMemory usable_memory();
// The same from files below `root` instead of / (for tests).
UsableMemory usable_memory(const std::string& root);

// The files in which the kernel reports memory pressure. Opened before the daemon gives up its rights: since Linux 6.1
// a process without CAP_SYS_RESOURCE can only set slower triggers.
class PressureFiles {
 public:
  // Opens the existing files. The trigger is that of the process's cgroup if it has one, else that of the machine.
  static PressureFiles open(const std::string& root = {});
  int trigger() const { return trigger_.get(); }  // -1: there is none
  void forget_trigger() { trigger_.reset(); }
  // Nothing where /proc/meminfo cannot be read.
  std::optional<MemoryInfo> meminfo() const;

 private:
  device::UniqueFd trigger_;  // readable with POLLPRI when tasks have waited for memory
  device::UniqueFd meminfo_;
};

// The cache as the watch sees and changes it; the watch's thread calls these.
struct WatchedCache {
  std::function<std::uint64_t()> used_bytes;
  std::function<std::int64_t()> idle_ns;
  std::function<void(std::uint64_t)> set_limit;
  std::function<void(std::uint64_t)> trim_to;
  std::function<void()> give_back;
  std::function<std::uint64_t()> freed_bytes;  // kept by the allocator
  std::function<void()> trim_allocator;
};

// A thread that applies MemoryPolicy until it is destroyed.
class MemoryWatch {
 public:
  // `wake`: an eventfd.
  MemoryWatch(PressureFiles files, device::UniqueFd wake, std::uint64_t budget_bytes, WatchedCache cache,
              Environment& environment);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

 private:
  void run();
  bool scarce() const;

  PressureFiles files_;
  const device::UniqueFd wake_;
  MemoryPolicy policy_;
  const WatchedCache cache_;
  Environment& environment_;
  std::uint64_t limit_bytes_;
  std::thread thread_;
};

}  // namespace mdfs::fuse
