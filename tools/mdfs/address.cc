// Hosts and ports.
// SPDX-License-Identifier: Apache-2.0
#include "address.h"

#include <fmt/format.h>

#include <charconv>

namespace mdfs::tools {

Result<Address> parse_address(const std::string& text, std::string_view option) {
  const std::size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    const char* const end = text.data() + text.size();
    const auto [last, failure] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (failure == std::errc{} && last == end && !address.host.empty() && address.port >= 0 && address.port <= 65535)
      return address;
  }
  return Error{Errc::kInvalidArgument, fmt::format("{}: {} requires HOST:PORT, such as 127.0.0.1:8080", text, option)};
}

}  // namespace mdfs::tools
