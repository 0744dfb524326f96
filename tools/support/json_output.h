// JSON for standard output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mdfs::tools {

// Without a newline at the end. `indent`: columns a level; -1 for one line. Bytes of strings that are not UTF-8 become
// U+FFFD. Control characters are escaped, so that a terminal shows them and a program gets them back.
std::string dump_json(const nlohmann::ordered_json& json, int indent = 2);

}  // namespace mdfs::tools
