// OME-XML that describes the pages of a TIFF file, for microscopy programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "geometry/geometry.h"

namespace mdfs::views {

// The axes, type and spacing of an image whose pages are its steps along all axes but the last two. Empty if OME-XML
// has no place for it: the last two axes are y and x, the others z, c and t, and the type has at most 32 bits of an
// integer, or 32 or 64 of a float. Lengths are in um and times in s, which are the units without a name.
// Source: OME data model of June 2016 (www.openmicroscopy.org/Schemas/OME/2016-06).
std::string ome_xml(const geometry::Geometry& image);

// True if a text is OME-XML of one image with these planes, all of them in the file that has the text.
bool is_ome_xml_of(std::string_view text, const geometry::Geometry& image);

}  // namespace mdfs::views
