// Checks that DPX and Cineon files are complete. The reader of OpenImageIO takes missing samples for any bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

// The size that the header asks for is compared with the size of the file; bytes after the samples are ignored.
// Run-length encoded DPX files are refused, because their header does not tell their size. So are Cineon files of
// unusual packing. Errors begin with `name`. Sources: SMPTE ST 268-1 (DPX), Kodak's Cineon file format 4.5.
bool is_dpx(ConstBytes start);
Status check_dpx(ByteSource& bytes, const std::string& name);
bool is_cineon(ConstBytes start);
Status check_cineon(ByteSource& bytes, const std::string& name);

}  // namespace mdfs::imagefile
