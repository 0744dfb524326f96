// Do JPEG, PNG and GIF files go on to their end? Their libraries fill up with grey or zeros what is missing, or do not
// look. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

// They walk from the start to the end mark; what follows it does not count. Errors begin with `name`.
bool is_jpeg(ConstBytes start);
Status check_jpeg(ByteSource& bytes, const std::string& name);
bool is_png(ConstBytes start);
Status check_png(ByteSource& bytes, const std::string& name);
bool is_gif(ConstBytes start);
Status check_gif(ByteSource& bytes, const std::string& name);

}  // namespace mdfs::imagefile
