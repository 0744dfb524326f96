// Parses numbers and sizes of the command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace mdfs::tools {

using mdfs::format_shape;
using mdfs::format_size;
using mdfs::parse_number;
using mdfs::parse_size;

// The same; the error names the option or file. A value of an option that is too large is an invalid value.
template <typename T>
Result<T> named(std::string_view what, Result<T> result) {
  if (result.ok()) return result;
  Errc code = result.error().code;
  if (what.starts_with("--") && (code == Errc::kTooBig || code == Errc::kOverflow)) code = Errc::kInvalidArgument;
  return Error{code, std::string(what) + ": " + result.error().where};
}

}  // namespace mdfs::tools
