// What a failed MDFS_CHECK does.
// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace mdfs {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "mdfs: %s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace mdfs
