// The interface of encoders of pictures: rows in, bytes out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::views {

// Bytes that an encoder has finished, in order.
using ByteSink = std::function<Status(ConstBytes)>;
// Fills one row with samples in the order of the host; called once for each row, from the first to the last.
using RowSource = std::function<Status(MutableBytes row)>;

}  // namespace mdfs::views
