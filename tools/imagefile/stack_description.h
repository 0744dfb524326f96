// Parses the description of a TIFF stack: OME-XML, the lines of ImageJ, and the shapes of the Python library tifffile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "imagefile/page_facts.h"
#include "imagefile/tiff_directory.h"

namespace mdfs::imagefile {

// The axis of the pages, and known distances. Refuses, unless `flatten` is set: pages that lie
// along more than one axis, along channels, or of several images. Refuses, unless `one_page` is set: a stack
// most of whose images have no directory. Errors begin with `name`. Pure.
Result<PageFacts> judge_stack(const TiffFile& tiff, bool flatten, bool one_page, const std::string& name);

}  // namespace mdfs::imagefile
