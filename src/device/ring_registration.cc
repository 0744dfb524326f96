// liburing 2.3 declares functions for these registrations, and its library lacks them.
// SPDX-License-Identifier: Apache-2.0
#include "device/ring_registration.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace mdfs::device {
namespace {

int register_with(const io_uring& ring, unsigned what, const void* argument, std::size_t count) {
  const long result = ::syscall(__NR_io_uring_register, ring.ring_fd, what, argument, static_cast<unsigned>(count));
  return result < 0 ? -errno : 0;
}

}  // namespace

int allow_only(const io_uring& ring, std::span<const io_uring_op> operations) {
  std::vector<io_uring_restriction> restrictions(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    restrictions[i].opcode = IORING_RESTRICTION_SQE_OP;
    restrictions[i].sqe_op = static_cast<__u8>(operations[i]);
  }
  return register_with(ring, IORING_REGISTER_RESTRICTIONS, restrictions.data(), restrictions.size());
}

int enable(const io_uring& ring) { return register_with(ring, IORING_REGISTER_ENABLE_RINGS, nullptr, 0); }

}  // namespace mdfs::device
