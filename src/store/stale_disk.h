// A disk that missed commits. MDFS reads it, and never writes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/disk.h"

namespace mdfs::store {

// No blocks were allocated on the disk while it was absent. The blocks that the tree names are therefore on it, unless
// the disk is an old copy; the checksums in the tree show that. Requests other than reads end with kMissingDisk. Any
// thread may call any method.
class StaleDisk final : public device::Disk {
 public:
  explicit StaleDisk(std::unique_ptr<device::Disk> disk) : disk_(std::move(disk)) {}

  const std::string& name() const override { return disk_->name(); }
  std::uint64_t size_bytes() const override { return disk_->size_bytes(); }
  Result<device::Condition> condition() override { return disk_->condition(); }
  std::uint64_t room_bytes() override { return disk_->room_bytes(); }
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
