// Resource limits.
// SPDX-License-Identifier: Apache-2.0
#include "device/file_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>

#include "base/text.h"

namespace mdfs::device {

void raise_file_limit() {
  const struct rlimit none { RLIM_INFINITY, RLIM_INFINITY };
  if (::setrlimit(RLIMIT_FSIZE, &none) == 0) return;
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_FSIZE, &limit);  // a limit that stays is found by check_file_limit()
}

Status check_file_limit(const std::string& name, std::uint64_t size_bytes) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return from_errno(errno, "getrlimit");
  if (limit.rlim_cur == RLIM_INFINITY || size_bytes <= limit.rlim_cur) return {};
  return {Errc::kTooBig, fmt::format("{}: has {}, but the limit on file sizes is {} (ulimit -f, LimitFSIZE=); raise it",
                                     name, format_size(size_bytes), format_size(limit.rlim_cur))};
}

}  // namespace mdfs::device
