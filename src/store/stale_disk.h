// A disk that missed commits: it is read from, and never written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/disk.h"

namespace mdfs::store {

// While it was away nothing was given out on it, so what the tree says to lie here is here, unless the disk itself is
// an old copy; the checksums in the tree tell which. Other requests end with kMissingDisk. Any thread may call any
// method.
class StaleDisk final : public device::Disk {
 public:
  explicit StaleDisk(std::unique_ptr<device::Disk> disk) : disk_(std::move(disk)) {}

  const std::string& name() const override { return disk_->name(); }
  std::uint64_t size_bytes() const override { return disk_->size_bytes(); }
  bool writable() const override { return false; }
  void submit(std::span<device::Io* const> batch) override {
    std::vector<device::Io*> reads;
    for (device::Io* io : batch)
      if (io->op == device::Op::kRead) reads.push_back(io);
    for (device::Io* io : batch) {
      if (io->op == device::Op::kRead) continue;
      io->status = Error{Errc::kMissingDisk, name()};
      io->done(*io);
    }
    if (!reads.empty()) disk_->submit(reads);
  }

 private:
  std::unique_ptr<device::Disk> disk_;
};

}  // namespace mdfs::store
