// Image files through OpenImageIO; without it every call is refused with a line that says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "imagefile/image_file.h"

namespace mdfs::imagefile {

// Pages of equal shape become axis z; `page` picks one. Samples come as they are stored: no change of colour space,
// alpha or orientation. `pages`: how many the file
// holds by what was seen of it before; refused if the library does not find as many.
Result<std::unique_ptr<ImageSource>> open_oiio(const std::string& path, std::optional<unsigned> page,
                                               std::optional<std::uint64_t> pages);

// Two axes, or three as pages where the format has them. Refuses types and channel counts that the format would change.
Result<std::unique_ptr<ImageSink>> create_oiio(const std::string& path, const ArrayInfo& array, bool overwrite);

}  // namespace mdfs::imagefile
