// Disks that pass everything on to another one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "device/disk.h"

namespace mdfs::test {

// To derive from: what happens on the way. The disk behind it outlives it. Any thread may call any method, as of that
// disk.
class PassingDisk : public device::Disk {
 public:
  explicit PassingDisk(device::Disk& disk) : disk_(disk) {}
  PassingDisk(const PassingDisk&) = delete;
  PassingDisk& operator=(const PassingDisk&) = delete;
  const std::string& name() const override { return disk_.name(); }
  std::uint64_t size_bytes() const override { return disk_.size_bytes(); }
  Result<std::uint64_t> measure() override { return disk_.measure(); }
  Result<device::Condition> condition() override { return disk_.condition(); }
  std::uint64_t room_bytes() override { return disk_.room_bytes(); }
  bool writable() const override { return disk_.writable(); }
  void submit(std::span<device::Io* const> batch) override { disk_.submit(batch); }

 private:
  device::Disk& disk_;
};

// An owner of a disk for a store that somebody else keeps.
class BorrowedDisk final : public PassingDisk {
 public:
  using PassingDisk::PassingDisk;
};

}  // namespace mdfs::test
