// Converts TOML to ASCII for its library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace mdfs::model {

// The same document in ASCII: in quoted text other characters become \u escapes, in comments question marks. (The
// library, version 3.3, tests characters for blanks when it looks for the end of a word, and looks some of them up
// beyond the end of a table.) kInvalidArgument, with `where` and the line: such a character stands
// elsewhere, directly behind a backslash, or between apostrophes, where there are no escapes; or it is not UTF-8; or a
// name has more than 16 parts, because the library recurses for each part. The library reports all other errors.
Result<std::string> ascii_toml(std::string_view text, const std::string& where);

}  // namespace mdfs::model
