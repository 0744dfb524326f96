// Registrations of an io_uring.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <liburing.h>

#include <span>

namespace mdfs::device {

// All return 0, or a negative errno. The ring was made with IORING_SETUP_R_DISABLED.

// The ring takes these operations only.
int allow_only(const io_uring& ring, std::span<const io_uring_op> operations);
int enable(const io_uring& ring);

}  // namespace mdfs::device
