// The allowed names of files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "volume/volume.h"

namespace mdfs::volume {

// For a look-up: kNotFound if empty, kNameTooLong beyond 255 bytes, kInvalidArgument with a slash or a NUL.
Status check_name(std::string_view name);
// For a new name: also kExists for "." and "..", kInvalidArgument for reserved names.
Status check_new_name(Ino parent, std::string_view name);
// For a name that is removed: also kInvalidArgument for "." and kNotEmpty for "..".
Status check_old_name(std::string_view name);

}  // namespace mdfs::volume
