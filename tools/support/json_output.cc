// SPDX-License-Identifier: Apache-2.0
#include "support/json_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace mdfs::tools {

std::string dump_json(const nlohmann::ordered_json& json, int indent) {
  const std::string dumped = json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string shown;
  // The library escapes those below 0x20. All others here are between quotes.
  for (std::string_view rest = dumped; !rest.empty();) {
    const std::string_view before = rest;
    const auto code = take_character(rest);
    if (code && *code != '\n' && is_control(*code))
      shown += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(*code));
    else
      shown += before.substr(0, before.size() - rest.size());
  }
  return shown;
}

}  // namespace mdfs::tools
