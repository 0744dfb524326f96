// Removes files when a signal ends the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace mdfs::tools {

// While the object exists, SIGINT, SIGTERM and SIGHUP remove the file before they end the program; a signal
// that is ignored or has another handler is unchanged. Any thread; supports a few files at a time, others stay.
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
