// Resolves paths.
// SPDX-License-Identifier: Apache-2.0
#include "base/real_path.h"

#include <climits>
#include <cstdlib>

namespace mdfs {

std::string without_last_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::optional<std::string> real_path(const std::string& path) {
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) return {};
  return std::string(resolved);
}

}  // namespace mdfs
