// A disk on a block device or a plain file, through io_uring.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "device/disk.h"
#include "device/unique_fd.h"
#include "device/uring_context.h"

namespace mdfs::device {

// Made by open_disk(). Flush is fdatasync of a file and fsync of a block device, so that its volatile cache is
// written. A discarded range reads as zeros, except on block devices that can only discard: there its contents are
// undefined. Discard is kNotSupported where the device or the filesystem below cannot do it.
class UringDisk final : public Disk {
 public:
  struct Properties {
    std::string name;
    std::uint64_t size_bytes = 0;
    bool writable = false;
    bool block_device = false;
    bool direct = true;  // O_DIRECT
  };

  UringDisk(std::shared_ptr<UringContext> context, UniqueFd fd, Properties properties);

  // Of an open block device or regular file, rounded down to kAlignment. kNotSupported: sectors that do not divide it.
  static Result<std::uint64_t> size_of(const std::string& name, int fd);

  const std::string& name() const override { return properties_.name; }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  Result<std::uint64_t> measure() override;
  Result<Condition> condition() override;
  std::uint64_t room_bytes() override;
  bool writable() const override { return properties_.writable; }
  bool direct() const { return properties_.direct; }
  void submit(std::span<Io* const> batch) override;

 private:
  const std::shared_ptr<UringContext> context_;
  const UniqueFd fd_;
  const Properties properties_;
  const bool had_name_;
  std::atomic<std::uint64_t> size_bytes_;
};

}  // namespace mdfs::device
