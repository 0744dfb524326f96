// A host and a port in options.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace mdfs::tools {

struct Address {
  std::string host;  // a name or a number, without brackets
  int port = 0;
};

// "HOST:PORT" or "[IPv6]:PORT". `option` names the option in the error.
Result<Address> parse_address(const std::string& text, std::string_view option);

}  // namespace mdfs::tools
