// Samples of every element type as types of C++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "geometry/geometry.h"
#include "geometry/half.h"

namespace mdfs::geometry {

// Calls `call` with a value of the type of C++ that the samples have.
template <typename Call>
auto with_type(ElementType type, const Call& call) {
  switch (type) {
    case ElementType::kU8:
      return call(std::uint8_t{});
    case ElementType::kU16:
      return call(std::uint16_t{});
    case ElementType::kU32:
      return call(std::uint32_t{});
    case ElementType::kU64:
      return call(std::uint64_t{});
    case ElementType::kI8:
      return call(std::int8_t{});
    case ElementType::kI16:
      return call(std::int16_t{});
    case ElementType::kI32:
      return call(std::int32_t{});
    case ElementType::kI64:
      return call(std::int64_t{});
    case ElementType::kF16:
      return call(Half{});
    case ElementType::kF32:
      return call(float{});
    case ElementType::kF64:
      break;
  }
  return call(double{});
}

}  // namespace mdfs::geometry
