// How samples are shown in pictures of 8 bits: the range of an image, kept in an extended attribute of it. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

inline constexpr std::string_view kDisplayAttribute = "user.mdfs.display";

// The samples that are black and white; those beyond are so, too. White may be the smaller one.
struct DisplayRange {
  double black = 0;
  double white = 0;
  bool operator==(const DisplayRange&) const = default;
};
// "BLACK,WHITE", as the attribute has it; kInvalidArgument unless they are two finite numbers that differ.
Result<DisplayRange> parse_display(std::string_view text);
std::string to_text(const DisplayRange& range);

// From the 0.1st to the 99.9th percentile of the finite samples (elements of one channel, little endian, whole ones:
// abort); one more, where these are equal. kNoData: none is finite.
Result<DisplayRange> automatic_display(ElementType type, ConstBytes samples);

// One byte for each sample (an element of one channel): 0 is black, 255 is white, rounded to the nearest. A NaN is
// black. `samples` are little endian, and their number is into.size() (abort).
void to_8_bits(ElementType type, const DisplayRange& range, ConstBytes samples, MutableBytes into);

}  // namespace mdfs::geometry
