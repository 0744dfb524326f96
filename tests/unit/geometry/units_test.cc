// Claims about the units of distances.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/units.h"

#include <gtest/gtest.h>

namespace mdfs::geometry {
namespace {

TEST(UnitsTest, AUnitIsFoundBySymbolAndByNameInUdunits) {
  for (const char* text : {"um", "\u00b5m", "\u03bcm", "micrometer"}) {
    ASSERT_NE(find_unit(text), nullptr) << text;
    EXPECT_EQ(find_unit(text)->name, "micrometer");
    EXPECT_EQ(find_unit(text)->kind, UnitKind::kLength);
    EXPECT_EQ(find_unit(text)->size, 1e-4);
  }
  EXPECT_EQ(find_unit("h")->size, 3600);
  EXPECT_EQ(find_unit("h")->kind, UnitKind::kTime);
}

TEST(UnitsTest, AMistypedUnitIsNotFound) {
  for (const char* text : {"", "un", "UM", "um ", "parsec", "mm\n"}) EXPECT_EQ(find_unit(text), nullptr) << text;
}

TEST(UnitsTest, OnlyLengthsHaveCentimetres) {
  EXPECT_EQ(centimetres("in"), 2.54);
  EXPECT_EQ(centimetres("nanometer"), 1e-7);
  EXPECT_EQ(centimetres("s"), 0);
  EXPECT_EQ(centimetres("parsec"), 0);
}

TEST(UnitsTest, MessagesListEachSymbolThatCanBeTypedOnce) {
  EXPECT_EQ(unit_symbols(), "m, cm, mm, um, nm, pm, A, km, in, ft, d, h, min, s, ms, us, ns");
}

}  // namespace
}  // namespace mdfs::geometry
