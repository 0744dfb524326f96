// The choice between rings and /dev/fuse for the kernel's requests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace mdfs::fuse {

enum class RingUse : std::uint8_t { kAuto, kOn, kOff };

// True if the kernel offers rings to new mounts, by /sys/module/fuse/parameters/enable_uring, which `parameter` names.
// Unless kOff, root switches the parameter on: it lets filesystems ask for rings, and changes nothing for those that do
// not. kNotSupported with kOn if the kernel offers none.
Result<bool> kernel_offers_rings(RingUse use, const std::string& parameter);
inline constexpr const char* kRingParameter = "/sys/module/fuse/parameters/enable_uring";

}  // namespace mdfs::fuse
