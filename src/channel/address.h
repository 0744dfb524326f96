// The address of the daemon's socket. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace mdfs::channel {

// Fills the address of a socket with an abstract name, which no file has. Returns its length; 0 if the name is empty or
// too long.
inline socklen_t fill_address(std::string_view name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path) return 0;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

}  // namespace mdfs::channel
