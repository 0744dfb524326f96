// Units of the distance of samples.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/units.h"

#include <algorithm>
#include <array>

namespace mdfs::geometry {
namespace {

constexpr std::array kUnits = {
    Unit{"m", "meter", UnitKind::kLength, 100},
    Unit{"cm", "centimeter", UnitKind::kLength, 1},
    Unit{"mm", "millimeter", UnitKind::kLength, 0.1},
    Unit{"um", "micrometer", UnitKind::kLength, 1e-4},
    Unit{"\u00b5m", "micrometer", UnitKind::kLength, 1e-4},
    Unit{"\u03bcm", "micrometer", UnitKind::kLength, 1e-4},
    Unit{"nm", "nanometer", UnitKind::kLength, 1e-7},
    Unit{"pm", "picometer", UnitKind::kLength, 1e-10},
    Unit{"A", "angstrom", UnitKind::kLength, 1e-8},
    Unit{"\u00c5", "angstrom", UnitKind::kLength, 1e-8},
    Unit{"km", "kilometer", UnitKind::kLength, 1e5},
    Unit{"in", "inch", UnitKind::kLength, 2.54},
    Unit{"ft", "foot", UnitKind::kLength, 30.48},
    Unit{"d", "day", UnitKind::kTime, 86400},
    Unit{"h", "hour", UnitKind::kTime, 3600},
    Unit{"min", "minute", UnitKind::kTime, 60},
    Unit{"s", "second", UnitKind::kTime, 1},
    Unit{"ms", "millisecond", UnitKind::kTime, 1e-3},
    Unit{"us", "microsecond", UnitKind::kTime, 1e-6},
    Unit{"\u00b5s", "microsecond", UnitKind::kTime, 1e-6},
    Unit{"ns", "nanosecond", UnitKind::kTime, 1e-9},
};

}  // namespace

const Unit* find_unit(std::string_view text) {
  const auto* const unit = std::find_if(kUnits.begin(), kUnits.end(),
                                        [&](const Unit& row) { return row.symbol == text || row.name == text; });
  return unit == kUnits.end() ? nullptr : unit;
}

double centimetres(std::string_view text) {
  const Unit* const unit = find_unit(text);
  return unit != nullptr && unit->kind == UnitKind::kLength ? unit->size : 0;
}

std::string unit_symbols() {
  std::string symbols;
  for (const Unit& unit : kUnits)
    if (static_cast<unsigned char>(unit.symbol.front()) < 0x80)
      symbols.append(symbols.empty() ? "" : ", ").append(unit.symbol);
  return symbols;
}

}  // namespace mdfs::geometry
