// Files and directories below the root of the server.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "serve/pages.h"

namespace mdfs::serve {

// A descriptor, closed at its end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();
  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

// Opens a path of a URL, decoded, below `root`: links and ".." do not lead out of it, nor into another mount. Without
// a descriptor `error` is an errno.
struct Opened {
  Descriptor fd{-1};
  int error = 0;
};
Opened open_below(int root, const std::string& path, int flags);

// The first entries by name, and whether there are more.
struct Listing {
  std::vector<Entry> entries;
  bool more = false;
  int error = 0;
};
inline constexpr std::size_t kMaxListed = 10000;
Listing list(Descriptor directory);

}  // namespace mdfs::serve
