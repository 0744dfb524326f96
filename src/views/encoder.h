// The interface of encoders of pictures: rows in, bytes out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "base/result.h"
#include "views/raster.h"

namespace mdfs::views {

// Bytes that an encoder has finished, in order.
using ByteSink = std::function<Status(ConstBytes)>;
// Fills one row with samples in the order of the host; called once for each row, from the first to the last.
using RowSource = std::function<Status(MutableBytes row)>;

// The functions of an encoded format.
struct Encoder {
  std::uint64_t (*max_bytes)(const Raster& raster);  // that encode() writes
  Status (*encode)(const Raster& raster, const RowSource& rows, const ByteSink& sink);
};

}  // namespace mdfs::views
