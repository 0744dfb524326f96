// What the TOML library must not be given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace mdfs::model {

// kInvalidArgument, with `where` and the line, where outside of quoted text and comments there is
// - a name of more than 16 parts: the library calls itself for each, so that a long one would end the program;
// - a character that is not ASCII: the library (3.3) looks it up in a table that ends before it;
// - a quote within a word: the library does not take it for the beginning of text, and goes on to such characters.
// TOML allows none of them. It would allow what is refused, too:
// - in text, a line that ends in a backslash before a line that begins with such a character.
// Else the text is left to the library, which finds all other mistakes.
Status check_toml(std::string_view text, const std::string& where);

}  // namespace mdfs::model
