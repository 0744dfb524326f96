// What the kernel offers.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ring_use.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "device/unique_fd.h"

namespace mdfs::fuse {

Result<bool> kernel_offers_rings(RingUse use, const std::string& parameter) {
  if (use == RingUse::kOff) return false;
  char now = 0;
  const device::UniqueFd file(::open(parameter.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open() || ::read(file.get(), &now, 1) != 1) {
    if (use == RingUse::kAuto) return false;
    return Error{Errc::kNotSupported,
                 "io_uring=on: this kernel has no FUSE over io_uring, which Linux has since 6.14; mount with "
                 "io_uring=auto"};
  }
  if (now == 'Y') return true;
  const device::UniqueFd writable(::open(parameter.c_str(), O_WRONLY | O_CLOEXEC));
  if (writable.open() && ::write(writable.get(), "Y", 1) == 1) return true;
  if (use == RingUse::kAuto) return false;
  return Error{Errc::kNotSupported,
               fmt::format("io_uring=on: FUSE over io_uring is switched off; let root write Y to {}", parameter)};
}

}  // namespace mdfs::fuse
