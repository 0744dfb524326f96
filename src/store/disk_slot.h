// The place of one disk in a mounted volume: a disk comes, goes and is followed by another while the volume works.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "device/disk.h"
#include "device/disk_counters.h"
#include "store/unflushed.h"

namespace mdfs::store {

// Counts requests. Without a disk every request ends with kMissingDisk. Any thread may call any method of Disk;
// attach() and detach() are called by one thread at a time.
class DiskSlot final : public device::Disk {
 public:
  // The name is that of a place without a disk.
  explicit DiskSlot(std::string name, std::unique_ptr<device::Disk> disk = nullptr);

  const std::string& name() const override { return *name_.load(); }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  bool writable() const override { return writable_; }
  void submit(std::span<device::Io* const> batch) override;

  // Of the disk that is here, since it came.
  device::DiskCounters* counters() override { return &counters_; }
  // What was written through here and is not known to be flushed.
  Unflushed& unflushed() { return unflushed_; }

  // There is none yet.
  void attach(std::unique_ptr<device::Disk> disk);
  // Requests that come from now on find no disk; returns, the disk closed, when those under way have ended.
  void detach();

 private:
  struct Pending;
  static void ended(device::Io& io);

  std::unique_ptr<device::Disk> owned_;
  std::atomic<device::Disk*> disk_{nullptr};
  std::atomic<std::uint64_t> users_{0};  // requests under way, and threads that are inside submit()
  std::deque<std::string> names_;        // all that there were: somebody may hold one
  std::atomic<const std::string*> name_{nullptr};
  std::atomic<std::uint64_t> size_bytes_{0};
  std::atomic<bool> writable_{false};
  device::DiskCounters counters_;
  Unflushed unflushed_;
};

}  // namespace mdfs::store
