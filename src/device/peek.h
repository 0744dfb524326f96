// Reads places of a disk that may be in use: labels, commit slots, signatures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "device/disk.h"
#include "device/unique_fd.h"

namespace mdfs::device {

// A disk of any scheme, opened for reading without a lock. Files and block devices are read through the page cache, at
// any offset and length. One thread at a time.
class Peek {
 public:
  // kInvalidArgument: neither a block device nor a file. Else the error of opening.
  static Result<Peek> open(const std::string& disk);
  std::uint64_t size_bytes() const { return size_bytes_; }
  // All of `bytes`; an error if the disk ends before. Other schemes take multiples of kAlignment.
  Status read(std::uint64_t offset, MutableBytes bytes);

 private:
  std::string name_;
  std::uint64_t size_bytes_ = 0;
  UniqueFd fd_;                 // of a path
  std::unique_ptr<Disk> disk_;  // of another scheme
};

}  // namespace mdfs::device
