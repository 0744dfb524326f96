// MDFS_CHECK: a programmer's error ends the program, in release builds too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mdfs {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace mdfs

#define MDFS_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::mdfs::check_failed(#condition, __FILE__, __LINE__))
