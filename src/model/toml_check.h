// What the TOML library must not be given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace mdfs::model {

// kInvalidArgument, with `where` and the line: outside of quoted text and comments there is a name of more than 16
// parts (the library calls itself for each, so that a long one would end the program), or a character that is not
// ASCII, which TOML does not allow there and the library (3.3) looks up in a table that ends before it. Else the text
// is left to the library, which finds all other mistakes.
Status check_toml(std::string_view text, const std::string& where);

}  // namespace mdfs::model
