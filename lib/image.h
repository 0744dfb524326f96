// An open image.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "channel.h"
#include "handle_pool.h"
#include "mdfs/mdfs.h"

struct mdfs_image {
  std::unique_ptr<mdfs::client::HandlePool> pool;
  std::uint64_t sample_bytes = 0, element_bytes = 0;  // never change; 0: unknown
  std::array<std::uint32_t, MDFS_IOC_MAX_RANK> extent{};
  mdfs::client::ImageChannel channel{};  // ends before the pool
};
