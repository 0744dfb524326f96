// The limit on the size of files that a process may write (RLIMIT_FSIZE, `ulimit -f`).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace mdfs::device {

// Raises the limit as far as the process may: root to no limit, others to their hard limit.
void raise_file_limit();

// kTooBig: the process may not write a file of this size.
Status check_file_limit(const std::string& name, std::uint64_t size_bytes);

}  // namespace mdfs::device
