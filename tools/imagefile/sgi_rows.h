// Checks that the rows of an SGI file are there. The reader of OpenImageIO takes missing bytes for samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

// Raw samples must lie within the file. Of a run-length encoded file, each row must lie within the file and decode to
// exactly its width. Errors begin with `name`. Source: The SGI Image File Format, version 1.00.
bool is_sgi(ConstBytes start);
Status check_sgi(ByteSource& bytes, const std::string& name);

}  // namespace mdfs::imagefile
