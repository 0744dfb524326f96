// Pool of open file descriptions of one image, one for each running window call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "mdfs/ioctl.h"

namespace mdfs::client {

// A window is bound to an open file description, so each running call has its own; idle ones are kept for the
// next call. Any thread may call any method. The first descriptor identifies the file: renaming or unlinking it
// changes nothing.
class HandlePool {
 public:
  static constexpr std::size_t kMaxIdle = 16;

  // O_RDONLY or O_RDWR.
  static Result<std::unique_ptr<HandlePool>> open(const std::string& path, int flags);
  ~HandlePool();
  HandlePool(const HandlePool&) = delete;
  HandlePool& operator=(const HandlePool&) = delete;

  // For calls without a binding; never bound, never closed before the pool.
  int plain() const { return plain_; }
  const std::string& path() const { return path_; }
  bool writable() const;

  // A new descriptor on which the ioctl has succeeded, to be closed by the caller; with O_DIRECT where the kernel needs
  // it.
  Result<int> open_for(unsigned long command, void* argument);
  // A descriptor bound to the window; sets window.bytes. Return it with put(), or close it if the call failed:
  // closing drops written bytes that were not applied.
  Result<int> bind(mdfs_ioc_window& window);
  void put(int fd);

 private:
  HandlePool(std::string path, int flags, int plain) : path_(std::move(path)), flags_(flags), plain_(plain) {}
  Result<int> open_again(int more_flags);

  const std::string path_;
  const int flags_;
  const int plain_;
  std::mutex mutex_;  // guards idle_ and needs_direct_
  std::vector<int> idle_;
  bool needs_direct_ = false;  // this kernel binds only descriptors opened with O_DIRECT
};

}  // namespace mdfs::client
