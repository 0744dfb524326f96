// Image files through OpenImageIO. In a build without it every call fails with a message.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "imagefile/image_file.h"
#include "imagefile/page_facts.h"

namespace mdfs::imagefile {

// Pages of equal shape become one axis, z unless the facts name another; `page` selects one. Parts of formats other
// than TIFF and GIF only if the facts accept it. Samples as the library gives them: palettes become RGB; no change of
// colour space, alpha or orientation. Refused if the library does not find as many pages as the facts name.
Result<std::unique_ptr<ImageSource>> open_oiio(const std::string& path, std::optional<unsigned> page,
                                               const PageFacts& facts);

// Two axes, or three as pages where the format has them. Refuses types and channel counts that the format would change.
Result<std::unique_ptr<ImageSink>> create_oiio(const std::string& path, const ArrayInfo& array, bool overwrite,
                                               const Metadata& metadata);

std::vector<MetadataField> describe_by_oiio(const Metadata& metadata);

}  // namespace mdfs::imagefile
