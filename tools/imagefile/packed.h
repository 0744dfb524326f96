// Files whose samples lie packed behind a header: raw, NPY, PNM.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "imagefile/header.h"
#include "imagefile/image_file.h"
#include "support/file.h"

namespace mdfs::imagefile {

// Refuses a file that is shorter or longer than header and samples.
Result<std::unique_ptr<ImageSource>> open_packed(tools::File file, const PackedHeader& header);

// Writes `header`, then the samples, big endian if asked. "-" is standard output.
Result<std::unique_ptr<ImageSink>> create_packed(const std::string& path, const std::string& header,
                                                 const ArrayInfo& array, bool big_endian, bool overwrite);

// Reverses the bytes of each element.
void swap_elements(MutableBytes bytes, unsigned element_bytes);

}  // namespace mdfs::imagefile
