// The thread that writes extents whole, out of their strips, while nobody reads or writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

#include "engine/core.h"
#include "engine/write/replacer.h"

namespace mdfs::engine {

// Works in steps of a few MiB, each of which is a transaction or some, and looks before each whether the disks are
// wanted by somebody else.
class Settler {
 public:
  Settler(Core& core, Replacer& replacer);
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;
  ~Settler();

 private:
  static constexpr unsigned kLookMs = 50;
  static constexpr std::uint64_t kStepBytes = 8u << 20;

  void run();

  Core& core_;
  Replacer& replacer_;
  std::thread thread_;
};

}  // namespace mdfs::engine
