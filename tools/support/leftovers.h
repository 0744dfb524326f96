// Files that do not stay behind when a signal ends the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace mdfs::tools {

// While it lives, SIGINT, SIGTERM and SIGHUP remove the file before they end the program as they always do; a signal
// that is ignored or has another handler is left alone. Any thread; a few at a time, further ones are not looked after.
class Leftover {
 public:
  explicit Leftover(const std::string& path);
  ~Leftover();
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;

 private:
  std::size_t slot_ = 0;
};

}  // namespace mdfs::tools
