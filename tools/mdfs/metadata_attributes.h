// Metadata of an image in its extended attributes (FORMAT.md, section 7).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "imagefile/metadata.h"

namespace mdfs::tools {

// `path` leads to the image; errors begin with `name`. The image has no metadata yet.
Status store_metadata(const std::string& path, const std::string& name, const imagefile::Metadata& metadata);
// Empty if the image has none.
Result<imagefile::Metadata> load_metadata(const std::string& path);

}  // namespace mdfs::tools
