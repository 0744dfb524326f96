// The place of an absent disk: every request ends with kMissingDisk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "device/disk.h"

namespace mdfs::store {

// May keep the real, unusable disk open, so that no other program takes it meanwhile. Any thread may call any method.
class MissingDisk final : public device::Disk {
 public:
  MissingDisk(std::string name, std::uint64_t size_bytes, std::unique_ptr<device::Disk> kept)
      : name_(std::move(name)), size_bytes_(size_bytes), kept_(std::move(kept)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  bool writable() const override { return false; }
  bool has_disk() const { return kept_ != nullptr; }
  void submit(std::span<device::Io* const> batch) override {
    for (device::Io* io : batch) {
      io->status = Error{Errc::kMissingDisk, name_};
      io->done(*io);
    }
  }

 private:
  std::string name_;
  std::uint64_t size_bytes_;
  std::unique_ptr<device::Disk> kept_;
};

}  // namespace mdfs::store
