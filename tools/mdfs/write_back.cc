// A bar for commands that wait until the disks hold what was written.
// SPDX-License-Identifier: Apache-2.0
#include "write_back.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fuse/daemon.h"
#include "mounted.h"
#include "support/progress.h"

namespace mdfs::tools {
namespace {

constexpr auto kWatchStep = std::chrono::milliseconds(100);

// Shows how the dirty bytes of the volume become fewer, until it is told to end.
void watch_write_back(const std::string& path, std::uint64_t total, const std::atomic<bool>& ended) {
  Progress bar("writing back", total);
  for (std::uint64_t done = 0; !ended; std::this_thread::sleep_for(kWatchStep)) {
    const auto volume = volume_info(path);
    if (!volume.ok() || volume->cache_dirty_bytes >= total - done) continue;
    bar.add(total - done - volume->cache_dirty_bytes);
    done = total - volume->cache_dirty_bytes;
  }
}

}  // namespace

Status wait_with_bar(const std::string& path, bool wanted, const std::function<Status()>& wait) {
  if (!wanted || ::isatty(STDERR_FILENO) != 1) return wait();
  const auto before = volume_info(path);
  const std::uint64_t dirty = before.ok() ? before->cache_dirty_bytes : 0;
  if (dirty == 0) return wait();
  std::atomic<bool> ended{false};
  std::thread watcher([&] { watch_write_back(path, dirty, ended); });
  Status status = wait();
  ended = true;
  watcher.join();
  return status;
}

Status sync_with_bar(const std::string& path) {
  return wait_with_bar(path, true, [&] { return fuse::sync_mount(path); });
}

}  // namespace mdfs::tools
