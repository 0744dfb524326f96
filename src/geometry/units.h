// Units of the distance of samples: those whose meaning is known. An image may have others; they are kept as text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mdfs::geometry {

enum class UnitKind : std::uint8_t { kLength, kTime };

struct Unit {
  std::string_view symbol;
  std::string_view name;  // in UDUNITS-2, which OME-NGFF takes
  UnitKind kind = UnitKind::kLength;
  double size = 0;  // in centimetres, or in seconds
};

// By symbol (um) or by name (micrometer). Null: the meaning of the unit is not known. Any thread.
const Unit* find_unit(std::string_view text);
// A length in centimetres; 0: the unit is not known, or none of length.
double centimetres(std::string_view text);
// "m, cm, mm, .. ns": each symbol of plain ASCII once, for messages.
std::string unit_symbols();

}  // namespace mdfs::geometry
