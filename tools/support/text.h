// Numbers and sizes in the words of the command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.h"

namespace mdfs::tools {

using mdfs::format_shape;
using mdfs::format_size;
using mdfs::parse_number;
using mdfs::parse_size;

}  // namespace mdfs::tools
