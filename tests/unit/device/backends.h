// The kinds of disk that the conformance suite runs against.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/disk.h"

namespace mdfs::device {

// A disk with all that it stands on. Starts as zeros.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Disk& disk() = 0;
};

struct BackendKind {
  std::string name;
  std::unique_ptr<Backend> (*make)(std::uint64_t size_bytes, bool writable);
};

const std::vector<BackendKind>& backend_kinds();

}  // namespace mdfs::device
