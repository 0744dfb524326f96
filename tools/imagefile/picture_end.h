// Checks that JPEG, JPEG 2000, PNG and GIF files are complete, and the checksums of PNG. Their libraries replace
// missing data by grey or zeros, or do not look.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

// kBadData: a file of this format and size does not end as it should.
Status cut_short(const std::string& name, const char* format, std::uint64_t size);

// They walk from the start to the end mark; bytes after it are ignored. Errors begin with `name`.
bool is_jpeg(ConstBytes start);
Status check_jpeg(ByteSource& bytes, const std::string& name);
bool is_png(ConstBytes start);
Status check_png(ByteSource& bytes, const std::string& name);
bool is_gif(ConstBytes start);
Status check_gif(ByteSource& bytes, const std::string& name);
// JPEG 2000, as a codestream (J2K) or in boxes (JP2).
bool is_jpeg2000(ConstBytes start);
Status check_jpeg2000(ByteSource& bytes, const std::string& name);

}  // namespace mdfs::imagefile
